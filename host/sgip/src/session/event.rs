use crate::{Bind, Pdu, ResultCode, Sequence};

/// An event for the owner of a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Acceptor: a login to decide on, by [`crate::Session::accept_bind`] or [`crate::Session::refuse_bind`].
    Bind(Bind),
    /// Connector: the login was accepted. Some servers accept it and then close at once.
    Bound,
    /// Connector: the login was refused. [`Event::Closing`] follows.
    BindRefused(ResultCode),
    /// A command to answer with [`crate::Session::respond`].
    Command {
        /// The session's number of the command; two commands may have the same sequence.
        number: u64,
        /// The sequence.
        sequence: Sequence,
        /// The command.
        pdu: Pdu,
    },
    /// The answer to a command of ours.
    Answer {
        /// The owner's token of the command.
        token: u64,
        /// The result.
        result: ResultCode,
        /// Whether it comes after [`Event::Unanswered`].
        late: bool,
    },
    /// A command of ours was sent [`tries`](crate::SgipOptions::tries) times and not answered. Its answer may still come.
    Unanswered {
        /// The owner's token of the command.
        token: u64,
    },
    /// An answer to no command; it is ignored (SGIP 1.2 §3.7.2.4.2).
    UnexpectedAnswer(Sequence),
    /// The session has ended: write [`crate::Session::output`], then close the connection.
    Closing(SgipCloseReason),
}

/// The reason why a session has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SgipCloseReason {
    /// We refused the peer's login.
    BindRefused(ResultCode),
    /// The peer refused our login.
    Refused(ResultCode),
    /// No login, or no answer to our login, in time.
    NoBind,
    /// A command came before the login.
    CommandBeforeBind,
    /// A PDU could not be decoded.
    Malformed(&'static str),
    /// A PDU was not complete within `partial_timeout`.
    Partial,
    /// The connection was idle for too long.
    Idle,
    /// We unbound.
    Unbound,
    /// The peer unbound.
    PeerUnbound,
}

/// The reason why a command cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SgipRequestError {
    /// The connection is not bound, or is unbinding.
    #[error("not bound")]
    NotBound,
    /// The window is full.
    #[error("the window is full")]
    WindowFull,
    /// A command with this sequence is unanswered.
    #[error("a command with this sequence is unanswered")]
    SequenceInUse,
}
