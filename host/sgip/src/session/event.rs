use crate::{Bind, Pdu, ResultCode, Sequence};

/// Something the owner must know.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Acceptor: a login to judge, by [`crate::Session::accept_bind`] or [`crate::Session::refuse_bind`].
    Bind(Bind),
    /// Connector: the login was taken. Some servers say so and close at once; what comes next tells.
    Bound,
    /// Connector: the login was refused. [`Event::Closing`] follows.
    BindRefused(ResultCode),
    /// A command to answer with [`crate::Session::respond`].
    Command {
        /// The session's number for it; two commands may have one sequence.
        number: u64,
        /// Its sequence.
        sequence: Sequence,
        /// What is asked.
        pdu: Pdu,
    },
    /// The answer to a command of ours.
    Answer {
        /// The owner's mark of the command.
        token: u64,
        /// How it went.
        result: ResultCode,
        /// It comes after [`Event::Unanswered`].
        late: bool,
    },
    /// A command of ours was sent as often as it may, and not answered. Its answer may still come.
    Unanswered {
        /// The owner's mark of the command.
        token: u64,
    },
    /// An answer that nobody asked for; it is ignored (SGIP 1.2 §3.7.2.4.2).
    Unasked(Sequence),
    /// The session has ended: write what is in [`crate::Session::output`], then close the connection.
    Closing(CloseReason),
}

/// Why a session has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// We refused its login.
    BindRefused(ResultCode),
    /// It refused our login.
    Refused(ResultCode),
    /// No login, or no answer to ours, in time.
    NoBind,
    /// A command came before the login.
    Unbidden,
    /// A PDU that cannot be understood.
    Broken(&'static str),
    /// The rest of a PDU did not come.
    Partial,
    /// Nothing was said for too long.
    Idle,
    /// We took leave.
    Unbound,
    /// The peer took leave.
    PeerUnbound,
}

/// Why a command cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The connection is not bound, or is taking leave.
    #[error("not bound")]
    NotBound,
    /// As many commands are unanswered as may be.
    #[error("the window is full")]
    WindowFull,
    /// A command with this sequence is unanswered.
    #[error("a command with this sequence is unanswered")]
    SequenceInUse,
}
