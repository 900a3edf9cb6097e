//! For the leader of a partition other than 0: applies changes that the leader of partition 0 makes to the shared state
//! of all partitions.

use crate::config_manager::ConfigManager;
use crate::critical_thread;
use crate::hook_service::HookService;
use crate::leading_node::LeadingNode;
use crate::shared_state::{CONFIGURATION, PLUGINS, TABLES};
use anyhow::Result;
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use std::sync::Arc;
use std::time::Duration;

/// Interval at which it checks for changes.
const POLL: Duration = Duration::from_millis(200);

/// The components that apply the changes.
pub(crate) struct FollowedState {
    pub(crate) hooks: Arc<HookService>,
    pub(crate) config_manager: Arc<ConfigManager>,
}

impl FollowedState {
    /// Follows the shared state until the result is dropped. `None` if this node leads partition 0, which owns that
    /// state.
    pub(crate) fn start(self, node: &LeadingNode) -> Result<Option<Sender<()>>> {
        let Some(replica) = node.replica_of_all().cloned() else { return Ok(None) };
        let (stop, stopped) = bounded::<()>(0);
        critical_thread::spawn("followed-state", move || {
            let mut has_failed = false;
            // Changes between the claim and now are on disk already; they are applied with the first check.
            let mut waiting: Vec<&str> = vec![CONFIGURATION, PLUGINS, TABLES];
            while stopped.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
                let mut replica = replica.lock();
                match replica.poll() {
                    Ok(changed) => {
                        has_failed = false;
                        waiting.extend(
                            changed.into_iter().filter(|part| !waiting.contains(part)).collect::<Vec<_>>(),
                        );
                    }
                    Err(error) if !has_failed => {
                        has_failed = true;
                        tracing::warn!(%error, "reading the shared state of all partitions failed, trying again");
                    }
                    Err(_) => {}
                }
                if waiting.is_empty() {
                    continue;
                }
                let unusable = self.take_over(&waiting).err();
                if let Some(reason) = &unusable {
                    tracing::error!(
                        reason,
                        "a change to the shared state of all partitions is not in force here"
                    );
                }
                replica.set_unusable(unusable);
                waiting.clear();
            }
        })?;
        Ok(Some(stop))
    }

    /// Applies these parts.
    fn take_over(&self, parts: &[&str]) -> Result<(), String> {
        // First, because bindings refer to peers.
        let configured = match parts.contains(&CONFIGURATION) {
            true => self.config_manager.take_over(),
            false => Ok(()),
        };
        let bound = self.hooks.take_over(parts.contains(&PLUGINS), parts.contains(&TABLES));
        configured.and(bound)
    }
}
