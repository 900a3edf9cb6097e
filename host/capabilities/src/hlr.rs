mod chain_hlr;

pub use chain_hlr::ChainHlr;

use crate::table_store::TableStore;
use std::sync::Arc;

/// The home location register: maps a number to its subscriber.
pub trait Hlr: Send + Sync {
    /// Finds a subscriber by the digits of a number; a leading plus sign is ignored. May block: do not call it on the
    /// submit path.
    ///
    /// # Errors
    /// The subscriber is unknown, or the register is unreachable.
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure>;
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HlrSubscriber {
    /// International mobile subscriber identity: 6 to 15 decimal digits.
    pub imsi: String,
    /// The peer that serves the subscriber, if known.
    pub serving: Option<String>,
}

/// The reason for a missing subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HlrFailure {
    /// There is no such subscriber.
    Unknown,
    /// The register did not answer.
    Unreachable,
}

/// Answers from the table `hlr`, for use without a reachable real register: the key is the number; the value is the
/// IMSI and, after a comma, the serving peer.
#[derive(Debug)]
pub struct TableHlr(Arc<TableStore>);

impl TableHlr {
    /// The table's name.
    pub const TABLE: &str = "hlr";

    /// Creates a register on a table store.
    #[must_use]
    pub fn new(table_store: Arc<TableStore>) -> Self {
        Self(table_store)
    }
}

impl Hlr for TableHlr {
    /// If the table is missing or the value is not an IMSI, the result is "unreachable": "unknown" would be final.
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let table = self.0.get(Self::TABLE).ok_or(HlrFailure::Unreachable)?;
        let value = table.get(msisdn.strip_prefix('+').unwrap_or(msisdn)).ok_or(HlrFailure::Unknown)?;
        let (imsi, serving) = match value.split_once(',') {
            Some((imsi, serving)) => (imsi.trim(), Some(serving.trim()).filter(|name| !name.is_empty())),
            None => (value.trim(), None),
        };
        if !(6..=15).contains(&imsi.len()) || !imsi.bytes().all(|digit| digit.is_ascii_digit()) {
            tracing::warn!(
                table = Self::TABLE,
                "a value is not an IMSI of 6 to 15 digits; upload the table again"
            );
            return Err(HlrFailure::Unreachable);
        }
        Ok(HlrSubscriber { imsi: imsi.to_owned(), serving: serving.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_store::TableStoreOptions;
    use api::TableKind;

    #[test]
    fn the_table_hlr_answers_from_rows() {
        let folder = tempfile::tempdir().unwrap();
        let table_store = Arc::new(TableStore::open(folder.path(), TableStoreOptions::default()).unwrap());
        let hlr = TableHlr::new(Arc::clone(&table_store));
        assert_eq!(hlr.look_up("4915112345"), Err(HlrFailure::Unreachable), "no table, no answer");
        let csv = "4915112345,262011234567890\n4915112346,\"262011234567891, msc-a\"\n4915112347,nonsense\n";
        table_store.put("hlr", TableKind::Exact, csv.as_bytes()).unwrap();
        let subscriber = hlr.look_up("+4915112345").unwrap();
        assert_eq!(subscriber, HlrSubscriber { imsi: "262011234567890".into(), serving: None });
        assert_eq!(hlr.look_up("4915112346").unwrap().serving.as_deref(), Some("msc-a"));
        assert_eq!(hlr.look_up("4915112347"), Err(HlrFailure::Unreachable));
        assert_eq!(hlr.look_up("4915112348"), Err(HlrFailure::Unknown));
    }
}
