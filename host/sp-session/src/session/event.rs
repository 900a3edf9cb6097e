use super::SpProtocol;
use std::time::Duration;

/// Our side of the connection: the SP connects, the gateway accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionRole {
    /// We are the SP.
    Sp,
    /// We are the gateway.
    Gateway,
}

/// Options of a session. A time of zero means never.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Maximum number of unanswered requests of ours.
    pub window_out: usize,
    /// Maximum number of unanswered requests of the peer; further ones are not read.
    pub window_in: usize,
    /// Maximum time for an answer, after which the request is sent again (CMPP 3.0 §7.1: T).
    pub response_timeout: Duration,
    /// Maximum number of times that a request is sent (CMPP 3.0 §7.1: N).
    pub tries: u32,
    /// Maximum time for the login and its answer.
    pub login_timeout: Duration,
    /// Idle time after which a link test is sent (CMPP 3.0 §7.1: C).
    pub idle: Duration,
    /// Maximum time for the rest of a PDU after its first octet.
    pub partial_timeout: Duration,
    /// Maximum length of a received PDU, in octets.
    pub limit: u32,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            window_out: 16,
            window_in: 100,
            response_timeout: Duration::from_secs(60),
            tries: 3,
            login_timeout: Duration::from_secs(30),
            idle: Duration::from_secs(180),
            partial_timeout: Duration::from_secs(30),
            limit: 8192,
        }
    }
}

/// An event for the owner of a session.
#[derive(Debug, PartialEq)]
pub enum Event<P: SpProtocol> {
    /// Gateway: a login to decide on, by [`crate::Session::accept_login`] or [`crate::Session::refuse_login`].
    Login(P::Pdu),
    /// SP: the login was accepted, with this answer.
    LoggedIn(P::Pdu),
    /// SP: the login was refused, with this answer. [`Event::Closing`] follows.
    LoginRefused(P::Pdu),
    /// A request to answer with [`crate::Session::respond`].
    Request {
        /// The request's sequence id; no other unanswered request has the same.
        sequence: u32,
        /// The request.
        pdu: P::Pdu,
    },
    /// The answer to a request of ours.
    Answer {
        /// The owner's token of the request.
        token: u64,
        /// The answer.
        pdu: P::Pdu,
        /// Whether it comes after [`Event::Unanswered`].
        late: bool,
    },
    /// A request of ours was sent [`SessionOptions::tries`] times and not answered. Its answer may still come.
    Unanswered {
        /// The owner's token of the request.
        token: u64,
    },
    /// An answer that matches no request; it is ignored.
    UnexpectedAnswer {
        /// Its sequence id.
        sequence: u32,
    },
    /// The session has ended: write [`crate::Session::output`], then close the connection.
    Closing(SpCloseReason),
}

/// The reason why a session has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpCloseReason {
    /// We refused the peer's login, with this status.
    LoginRefused(u32),
    /// The peer refused our login, with this status.
    Refused(u32),
    /// No login, or no answer to our login, in time.
    NoLogin,
    /// A request came before the login.
    RequestBeforeLogin,
    /// A PDU could not be decoded.
    Malformed(&'static str),
    /// A PDU was not complete within `partial_timeout`.
    Partial,
    /// The peer did not answer the link tests.
    Dead,
    /// We logged out.
    LoggedOut,
    /// The peer logged out.
    PeerLoggedOut,
}

/// The reason why a request cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpRequestError {
    /// Not logged in, or one side is logging out.
    #[error("not logged in")]
    NotLoggedIn,
    /// The window is full.
    #[error("the window is full")]
    WindowFull,
    /// A field of the request does not fit.
    #[error("{0}")]
    Unencodable(#[from] crate::FieldError),
}
