use crate::cloud_event::EventType;
use model::Timestamp;

/// An event, serialised for sending.
#[derive(Debug)]
pub(crate) struct EncodedEvent {
    pub(crate) id: String,
    pub(crate) kind: EventType,
    /// Subject of the event.
    pub(crate) subject: Option<String>,
    pub(crate) time: Timestamp,
    pub(crate) json: Vec<u8>,
}

/// The sink did not accept the events; some may have arrived.
#[derive(Debug)]
pub(crate) struct SendError(pub(crate) String);

/// A protocol over which events are sent to a sink.
pub(crate) trait EventTransport: Send {
    /// Sends events in order. On success, the sink has accepted all of them.
    fn send(&mut self, events: &[EncodedEvent]) -> Result<(), SendError>;
}
