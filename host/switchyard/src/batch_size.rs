//! The size of a batch that grows.

use model::Batch;

/// A batch with messages of so many octets takes no more events: it is one record of the journal.
pub(crate) const BATCH_OCTETS: usize = 4 << 20;
/// The same in a cluster: etcd is made for small values.
pub(crate) const REPLICATED_BATCH_OCTETS: usize = 256 << 10;

/// The size of a growing batch, roughly: the octets of its messages.
pub(crate) struct BatchSize {
    /// So many accepted and replaced messages are counted.
    counted: (usize, usize),
    octets: usize,
    limit: usize,
}

impl BatchSize {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { counted: (0, 0), octets: 0, limit }
    }

    /// For the next batch.
    pub(crate) const fn reset(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Counts new messages. Returns whether the batch is full.
    pub(crate) fn update(&mut self, batch: &Batch) -> bool {
        let new = batch.accepted.get(self.counted.0..).unwrap_or_default().iter();
        for message in new.chain(batch.replaced.get(self.counted.1..).unwrap_or_default()) {
            self.octets +=
                message.text.octets.len() + message.tlvs.len() + message.protocol_fields.len() + 256;
        }
        self.counted = (batch.accepted.len(), batch.replaced.len());
        self.octets >= self.limit
    }
}
