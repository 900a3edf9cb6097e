//! An observer of the calls of plugins, for traces of messages.

use crate::{Fault, FaultKind};
use model::{Hook, MessageId, PluginVersion};
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

/// One call of a live plugin on behalf of one message.
#[derive(Debug, Clone)]
pub struct PluginCall {
    /// The hook.
    pub hook: Hook,
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// Start of the call.
    pub begun: SystemTime,
    /// Duration of the call, from a monotonic clock.
    pub took: Duration,
    /// The kind of its fault, if it failed.
    pub fault: Option<FaultKind>,
}

/// Observes the calls of live chains and canaries on behalf of messages, on the threads that call: it must not block.
pub trait CallObserver: Debug + Send + Sync {
    /// Observes a call. `message` receives the message's id when it is accepted; a call after that finds it set.
    fn observe(&self, message: Arc<OnceLock<MessageId>>, call: PluginCall);
}

/// The start of a call that is observed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallStart {
    begun: SystemTime,
    started: Instant,
}

impl CallStart {
    pub(crate) fn now() -> Self {
        Self { begun: SystemTime::now(), started: Instant::now() }
    }

    /// The call, which ends now.
    pub(crate) fn end(self, hook: Hook, by: &Arc<PluginVersion>, fault: Option<&Fault>) -> PluginCall {
        PluginCall {
            hook,
            by: by.clone(),
            begun: self.begun,
            took: self.started.elapsed(),
            fault: fault.map(|fault| fault.kind),
        }
    }
}
