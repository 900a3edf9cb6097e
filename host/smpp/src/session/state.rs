use super::{CloseReason, Version};
use crate::pdu::BindMode;

/// Which end of the connection we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// The SMSC's.
    Server,
    /// The ESME's.
    Client,
}

/// Where a session stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionState {
    /// Connected; nobody has bound.
    Open,
    /// Client: our bind is sent.
    Binding {
        /// Its sequence number.
        sequence: u32,
    },
    /// Server: a bind waits for the owner's judgement. What comes after it waits too.
    Judging {
        /// What it asks for.
        mode: BindMode,
        /// Its sequence number.
        sequence: u32,
    },
    /// Bound.
    Bound {
        /// As what.
        mode: BindMode,
        /// What the peer speaks.
        version: Version,
    },
    /// We have sent unbind; what comes in is still answered.
    Unbinding {
        /// As what it was bound.
        mode: BindMode,
        /// What the peer speaks.
        version: Version,
        /// The unbind's sequence number.
        sequence: u32,
    },
    /// The peer has sent unbind; its earlier requests are being answered.
    PeerUnbinding {
        /// As what it was bound.
        mode: BindMode,
        /// What the peer speaks.
        version: Version,
        /// The unbind's sequence number.
        sequence: u32,
    },
    /// Over.
    Closed(CloseReason),
}

impl SessionState {
    /// As what the session is or was bound, and what its peer speaks; `None` before the bind and after the end.
    pub(super) fn binding(self) -> Option<(BindMode, Version)> {
        match self {
            Self::Bound { mode, version }
            | Self::Unbinding { mode, version, .. }
            | Self::PeerUnbinding { mode, version, .. } => Some((mode, version)),
            Self::Open | Self::Binding { .. } | Self::Judging { .. } | Self::Closed(_) => None,
        }
    }

    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

/// Why a request cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// As many requests are unanswered as may be.
    #[error("the window is full")]
    WindowFull,
    /// Not bound, or not in the mode that allows it, or already unbinding.
    #[error("the session's state does not allow it")]
    WrongState,
}
