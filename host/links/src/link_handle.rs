use crate::link_record::{LinkRecord, LinkRole};
use crate::shared::Shared;
use std::sync::Arc;

/// The record of a bound link among those that the API shows.
pub(crate) struct ListedRecord {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
}

impl Drop for ListedRecord {
    fn drop(&mut self) {
        if self.record.role == LinkRole::Server {
            self.shared.records.remove(&self.record);
        }
    }
}

impl ListedRecord {
    /// Lists the record of a server's link; the dialer has listed those of a client.
    pub(crate) fn list(shared: Arc<Shared>, record: Arc<LinkRecord>) -> Self {
        if record.role == LinkRole::Server {
            shared.records.add(record.clone());
        }
        Self { shared, record }
    }
}
