use super::InterfaceVersion;
use crate::CommandStatus;
use crate::pdu::{AlertNotification, Bind, CommandId, Outbind, Request, Response};
use bytes::Bytes;

/// An event for the owner of a session.
#[derive(Debug)]
pub enum Event {
    /// Server: a bind to decide on, by [`Session::accept_bind`](crate::Session::accept_bind) or
    /// [`Session::refuse_bind`](crate::Session::refuse_bind).
    Bind(Bind),
    /// Client: the bind was accepted.
    Bound {
        /// The system_id of the peer.
        system_id: Bytes,
        /// The peer's sc_interface_version, if it sent one.
        version: Option<InterfaceVersion>,
    },
    /// Client: the bind was refused. [`Event::Closing`] follows.
    BindRefused(CommandStatus),
    /// Client: the SMSC sent an outbind with the right password; our bind has been sent.
    Outbind(Outbind),
    /// A request to answer with [`Session::respond`](crate::Session::respond).
    Request {
        /// The sequence number of the request.
        sequence: u32,
        /// The request.
        request: Request,
    },
    /// The answer to a request of ours.
    Answer {
        /// The owner's token of the request.
        token: u64,
        /// The status.
        status: CommandStatus,
        /// The body.
        response: Response,
        /// Whether it comes after [`Event::Unanswered`].
        late: bool,
    },
    /// A request of ours was not answered in time. Its answer may still come.
    Unanswered {
        /// The owner's token of the request.
        token: u64,
    },
    /// A subscriber has become available; no response is sent.
    Alert(AlertNotification),
    /// A protocol anomaly, for the log.
    Anomaly(ProtocolAnomaly),
    /// The session has ended: write [`Session::output`](crate::Session::output), then close the connection.
    Closing(CloseReason),
}

/// A protocol anomaly of a peer. It never contains message text or numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolAnomaly {
    /// The anomaly.
    pub description: &'static str,
    /// The command of the PDU.
    pub command: CommandId,
    /// The sequence number of the PDU.
    pub sequence: u32,
}

/// The reason why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The peer unbound.
    PeerUnbound,
    /// We unbound.
    Unbound,
    /// The peer sent a length that no PDU can have.
    BadLength,
    /// The peer did not bind in time.
    NoBind,
    /// A PDU was not complete within `partial_timeout`.
    Partial,
    /// The peer sent no PDU after several enquire_links.
    Dead,
    /// The peer was silent for the inactivity time.
    Inactive,
    /// The bind was refused.
    Refused,
    /// The peer sent an outbind with a wrong password.
    WrongOutbind,
}

impl CloseReason {
    /// The reason as text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PeerUnbound => "the peer unbound",
            Self::Unbound => "we unbound",
            Self::BadLength => "invalid PDU length",
            Self::NoBind => "bind timeout",
            Self::Partial => "incomplete PDU",
            Self::Dead => "enquire_link timeout",
            Self::Inactive => "inactivity timeout",
            Self::Refused => "bind refused",
            Self::WrongOutbind => "outbind with a wrong password",
        }
    }
}
