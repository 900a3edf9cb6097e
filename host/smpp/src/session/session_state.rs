use super::{CloseReason, InterfaceVersion};
use crate::pdu::BindMode;

/// Our side of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionRole {
    /// The SMSC.
    Server,
    /// The ESME.
    Client,
}

/// The state of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionState {
    /// Connected, not bound.
    Open,
    /// Client: our bind is sent.
    Binding {
        /// Its sequence number.
        sequence: u32,
    },
    /// Server: a bind waits for the owner's decision; later input waits too.
    BindPending {
        /// The requested mode.
        mode: BindMode,
        /// Its sequence number.
        sequence: u32,
    },
    /// Bound.
    Bound {
        /// The bind mode.
        mode: BindMode,
        /// The peer's version.
        version: InterfaceVersion,
    },
    /// We have sent unbind; incoming requests are still answered.
    Unbinding {
        /// The bind mode before.
        mode: BindMode,
        /// The peer's version.
        version: InterfaceVersion,
        /// The unbind's sequence number.
        sequence: u32,
    },
    /// The peer has sent unbind; its earlier requests are still answered.
    PeerUnbinding {
        /// The bind mode before.
        mode: BindMode,
        /// The peer's version.
        version: InterfaceVersion,
        /// The unbind's sequence number.
        sequence: u32,
    },
    /// The session has ended.
    Closed(CloseReason),
}

impl SessionState {
    /// The bind mode and the peer's version, while bound or unbinding; `None` otherwise.
    pub(super) fn binding(self) -> Option<(BindMode, InterfaceVersion)> {
        match self {
            Self::Bound { mode, version }
            | Self::Unbinding { mode, version, .. }
            | Self::PeerUnbinding { mode, version, .. } => Some((mode, version)),
            Self::Open | Self::Binding { .. } | Self::BindPending { .. } | Self::Closed(_) => None,
        }
    }

    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

/// The reason why a request cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The window is full.
    #[error("the window is full")]
    WindowFull,
    /// The session is not bound, not in a mode that allows the request, or unbinding.
    #[error("the session's state does not allow it")]
    WrongState,
}
