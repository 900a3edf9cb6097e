use super::Version;
use crate::Status;
use crate::pdu::{AlertNotification, Bind, CommandId, Outbind, Request, Response};
use bytes::Bytes;

/// Something the owner must know.
#[derive(Debug)]
pub enum Event {
    /// Server: a bind to judge, by [`Session::accept_bind`](crate::Session::accept_bind) or [`Session::refuse_bind`](crate::Session::refuse_bind).
    Bind(Bind),
    /// Client: the bind was accepted.
    Bound {
        /// What the peer calls itself.
        system_id: Bytes,
        /// Its sc_interface_version, where it showed one.
        version: Option<Version>,
    },
    /// Client: the bind was refused. [`Event::Closing`] follows.
    BindRefused(Status),
    /// Client: the SMSC asked us to bind, with the right password; our bind has been sent.
    Outbind(Outbind),
    /// A request to answer with [`Session::respond`](crate::Session::respond).
    Request {
        /// The number to answer with.
        sequence: u32,
        /// What is asked.
        request: Request,
    },
    /// The answer to a request of ours.
    Answer {
        /// The owner's mark of the request.
        token: u64,
        /// How it went.
        status: Status,
        /// The body.
        response: Response,
        /// It comes after [`Event::Unanswered`].
        late: bool,
    },
    /// A request of ours was not answered in time. Its answer may still come.
    Unanswered {
        /// The owner's mark of the request.
        token: u64,
    },
    /// A subscriber has become available; there is nothing to answer.
    Alert(AlertNotification),
    /// Something odd, for the log.
    Noted(Note),
    /// The session has ended: write what is in [`Session::output`](crate::Session::output), then close the connection.
    Closing(CloseReason),
}

/// Something odd that a peer did. Never carries message text or numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// What was wrong.
    pub what: &'static str,
    /// In which PDU.
    pub command: CommandId,
    /// Its sequence number.
    pub sequence: u32,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The peer unbound.
    PeerUnbound,
    /// We unbound.
    Unbound,
    /// A length that no PDU can have.
    BadLength,
    /// No bind in time.
    NoBind,
    /// A PDU that never became whole.
    Partial,
    /// No sign of life.
    Dead,
    /// Silence.
    Inactive,
    /// The bind was refused.
    Refused,
    /// An outbind with a wrong password.
    WrongOutbind,
}

impl CloseReason {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PeerUnbound => "the peer unbound",
            Self::Unbound => "we unbound",
            Self::BadLength => "impossible PDU length",
            Self::NoBind => "no bind in time",
            Self::Partial => "a PDU stayed incomplete",
            Self::Dead => "no sign of life",
            Self::Inactive => "silent for too long",
            Self::Refused => "bind refused",
            Self::WrongOutbind => "outbind with a wrong password",
        }
    }
}
