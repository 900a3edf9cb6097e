//! Size of a batch while events are added.

use model::Batch;

/// Maximum octets of messages in a batch, which is one record of the journal: a batch of that size takes no more
/// events.
pub(crate) const BATCH_OCTETS: usize = 4 << 20;
/// The same limit in a cluster: etcd is made for small values.
pub(crate) const REPLICATED_BATCH_OCTETS: usize = 256 << 10;

/// Approximate size of a growing batch: the octets of its messages.
pub(crate) struct BatchSize {
    /// Numbers of accepted and of replaced messages that are counted already.
    counted: (usize, usize),
    octets: usize,
    limit: usize,
}

impl BatchSize {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { counted: (0, 0), octets: 0, limit }
    }

    /// Resets the size for the next batch.
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
