use crate::cloud_event::EventType;
use model::Timestamp;

/// An event in the form in which it is sent.
#[derive(Debug)]
pub(crate) struct EncodedEvent {
    pub(crate) id: String,
    pub(crate) kind: EventType,
    /// What it is about.
    pub(crate) subject: Option<String>,
    pub(crate) time: Timestamp,
    pub(crate) json: Vec<u8>,
}

/// The sink has not accepted events; some may have arrived.
#[derive(Debug)]
pub(crate) struct SendError(pub(crate) String);

/// How events get to a sink.
pub(crate) trait EventTransport: Send {
    /// Sends events in order. When it returns, the sink has accepted all of them.
    fn send(&mut self, events: &[EncodedEvent]) -> Result<(), SendError>;
}
