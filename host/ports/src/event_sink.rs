/// The way into the engine, for every front end. The daemon implements it.
pub trait EventSink: Send + Sync {
    /// Passes events to the engine, in order. Must not block: links call it on their own threads, once per socket
    /// read.
    fn push(&self, events: Vec<engine::Event>);
}
