use model::{Message, Routed};

/// The way into the engine. The daemon implements it.
pub trait Core: Send + Sync {
    /// Hands over what happened, in order. Must not block: links call it on their own threads, once per socket read.
    fn push(&self, events: Vec<engine::Event>);
}

/// The routing chain. The daemon implements it.
pub trait Routing: Send + Sync {
    /// Decides where a submission, or an MO of a peer's, is to go. Called on the link's thread for every message before
    /// it is given to the engine; a refusal is a verdict too, and the engine turns it into an answer.
    fn route(&self, message: &Message) -> Routed;
}
