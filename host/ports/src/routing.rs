use model::{Message, RoutingDecision};

/// The routing chain. The daemon implements it.
pub trait Routing: Send + Sync {
    /// Routes a submission, or an MO of a peer. Runs on the link's thread for every message, before the engine gets
    /// the message. A refusal is a verdict too; the engine turns it into an answer.
    fn route(&self, message: &Message) -> RoutingDecision;
}
