use crate::BoxError;
use model::{Final, Message, MessageId, PeerId};
use std::sync::Arc;

/// Who stands behind the numbers of peers.
pub trait Parties: Send + Sync {
    /// The name of a peer or account; removed ones keep theirs.
    fn name(&self, id: PeerId) -> Arc<str>;

    /// Whether it is an account (a customer of the house), not a gateway.
    fn is_account(&self, id: PeerId) -> bool;
}

/// Where finished messages wait. The daemon implements it over its store.
///
/// `read` and `removed` are called on threads of their own and may block.
pub trait Source: Parties + 'static {
    /// Finished messages with ids greater than `after`, by growing id, at most `most` of them; none when there are no
    /// more. It may give fewer than there are, to bound memory.
    ///
    /// # Errors
    /// When the store cannot be read; the pump tries again later.
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<(Message, Final)>, BoxError>;

    /// These are in the archive for good; they may leave. Returns when they have, durably.
    ///
    /// # Errors
    /// When they could not be removed; they are given to the archive again later, which knows them by their ids.
    fn removed(&self, ids: Vec<MessageId>) -> Result<(), BoxError>;

    /// How many wait. Called often; must be cheap.
    fn backlog(&self) -> u64;
}
