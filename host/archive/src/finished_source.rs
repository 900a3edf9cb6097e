use crate::SourceError;
use model::{FinalRecord, Message, MessageId, PeerId};
use std::sync::Arc;

/// Names and kinds of peers by id.
pub trait PeerDirectory: Send + Sync {
    /// The name of a peer or account. Removed peers and accounts keep their names.
    fn name(&self, id: PeerId) -> Arc<str>;

    /// Whether the peer is an account (a customer of the operator).
    fn is_account(&self, id: PeerId) -> bool;
}

/// The queue of finished messages. The daemon implements it over its store.
///
/// `read` and `remove` are called on blocking threads.
pub trait FinishedSource: PeerDirectory + 'static {
    /// At most `most` finished messages with ids greater than `after`, by ascending id; none at the end. May return
    /// fewer to limit memory.
    ///
    /// # Errors
    /// Fails if the store cannot be read; the pump retries later.
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<(Message, FinalRecord)>, SourceError>;

    /// Removes messages that are safely archived. Durable when it returns.
    ///
    /// # Errors
    /// Fails if they could not be removed; the pump archives them again later, which has no effect.
    fn remove(&self, ids: Vec<MessageId>) -> Result<(), SourceError>;

    /// The number of queued messages. Called often; must be cheap.
    fn backlog(&self) -> u64;
}
