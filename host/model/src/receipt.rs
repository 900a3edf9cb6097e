//! The inputs of the receipt hook, and its decisions.

use crate::{DlrState, PeerId, PluginVersion};
use std::sync::Arc;
use std::time::Duration;

/// A submission that a peer has accepted and whose DLR is expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceptedSubmission {
    /// Attempts so far, over all legs.
    pub attempts: u16,
    /// The index of the leg, and the number of legs.
    pub leg: (u8, u8),
    /// The peer.
    pub peer: PeerId,
    /// The time since the message was accepted.
    pub age: Duration,
    /// The remaining validity.
    pub left: Duration,
}

/// An event of an accepted submission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiptEvent {
    /// The peer has accepted it; no DLR came yet.
    Accepted,
    /// A DLR came.
    Dlr(DlrFacts),
    /// The time of [`ReceiptDecision::wait`] has passed without a final DLR.
    Timeout,
}

/// A DLR, as the receipt hook gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlrFacts {
    /// Whether the state is final.
    pub is_final: bool,
    /// The state.
    pub state: DlrState,
    /// The operator's error code; 0 if there is none.
    pub error: u16,
    /// SMPP network_error_code, if given.
    pub network_error: Option<[u8; 3]>,
    /// From the submit attempt to the DLR.
    pub latency: Duration,
}

/// The receipt hook's verdict on a [`ReceiptEvent`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiptVerdict {
    /// The DLR counts as it is; without a DLR, the message keeps waiting.
    Accept,
    /// Try the next leg; if there is none, as [`ReceiptVerdict::Accept`].
    NextLeg,
    /// The DLR counts as one with this state and error code. After a timeout, a final state ends the message.
    Remap {
        /// The state.
        state: DlrState,
        /// The error code.
        error: u16,
    },
    /// The DLR is ignored: the message keeps waiting. Without a DLR, as [`ReceiptVerdict::Accept`].
    Suspect,
}

/// The receipt hook's decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptDecision {
    /// The verdict.
    pub verdict: ReceiptVerdict,
    /// The hook is called again if no final DLR comes within this time. `None` leaves an earlier wait unchanged.
    pub wait: Option<Duration>,
    /// The plugin version that decided.
    pub by: Arc<PluginVersion>,
    /// Its note, for the trace.
    pub note: Option<Box<str>>,
}

impl std::fmt::Display for ReceiptVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Accept => f.write_str("accept"),
            Self::NextLeg => f.write_str("next leg"),
            Self::Remap { state, error } => write!(f, "remap to {}, error {error}", state.name()),
            Self::Suspect => f.write_str("suspect"),
        }
    }
}

impl std::fmt::Display for ReceiptDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.verdict)?;
        match self.wait {
            Some(wait) => write!(f, ", ask again after {} s", wait.as_secs_f32()),
            None => Ok(()),
        }
    }
}
