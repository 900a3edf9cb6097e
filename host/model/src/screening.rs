use crate::{DroppedAs, MessageChanges, PluginVersion, RejectReason, Text, Verdict};
use std::sync::Arc;

/// The verdict of the screens on a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScreenVerdict {
    /// It may pass: the routers decide.
    Pass,
    /// Refuse it.
    Reject(RejectReason),
    /// Accept it, and keep it until an admin releases or purges it, or its validity ends.
    Quarantine,
    /// Accept it, and do not deliver it. The submitter's DLR has this state.
    Drop(DroppedAs),
}

impl ScreenVerdict {
    /// The verdict that replaces the routing; `None` for a message that passes.
    #[must_use]
    pub fn verdict_without_routing<P>(self) -> Option<Verdict<P>> {
        match self {
            Self::Pass => None,
            Self::Reject(reason) => Some(Verdict::Reject(reason)),
            Self::Quarantine => Some(Verdict::Quarantine),
            Self::Drop(shown) => Some(Verdict::Drop(shown)),
        }
    }
}

/// The verdict of the screens on a message, and its origin, for the trace and for replays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Screening {
    /// The verdict.
    pub verdict: ScreenVerdict,
    /// The plugin version that decided; the last one if all passed.
    pub by: Arc<PluginVersion>,
    /// The plugin's note, or the fault that `on-fault` handled.
    pub note: Option<Box<str>>,
    /// The changes by the screens, if the message continues to the routers.
    pub changes: Option<Box<MessageChanges>>,
    /// The text as submitted, if a screen replaced it.
    pub submitted_text: Option<Text>,
    /// The host calls of the screens and their results, as in [`crate::RoutingDecision::host_calls`].
    pub host_calls: Option<Box<[u8]>>,
}
