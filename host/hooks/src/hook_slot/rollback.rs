//! Rollback: by an admin, or automatically after faults.

use super::HookSlot;
use crate::HookError;
use crate::chain::Chain;
use crate::generation::Generation;
use crate::hook_state::add_event;
use crate::host_calls::Purpose;
use crate::worlds::World;
use api::{Binding, BindingChange, BindingRecord};
use model::{PluginVersion, Timestamp};
use std::time::Duration;

/// The event kind for a faulty plugin that keeps serving, and the minimum time between two such events of one plugin.
const FAULTY_EVENT: &str = "faulty";
const FAULTY_EVENT_INTERVAL: Duration = Duration::from_secs(60);

impl<W: World> HookSlot<W> {
    /// Activates the previous chain. Skips chains that were rolled back automatically.
    pub(crate) fn rollback(&self, now: Timestamp) -> Result<BindingRecord, HookError> {
        let _lock = self.change_lock.lock();
        let live = self.live.load().record.chain.clone();
        let target = {
            let state = self.state.lock();
            let is_fit =
                |record: &&BindingRecord| record.chain != live && !state.was_rolled_back(&record.chain);
            let other = state.records.iter().rev().find(is_fit);
            other.map(|record| record.chain.clone()).ok_or(HookError::NoEarlierBinding)?
        };
        let target = self.pin_digests(target)?;
        let chain = self.reuse_or_start(&target)?;
        chain.warm_like(&self.live.load().chain);
        self.replace_live(now, target, chain, BindingChange::RolledBack, None)
    }

    fn reuse_or_start(&self, bindings: &[Binding]) -> Result<Chain<W>, HookError> {
        if bindings.is_empty() {
            return Ok(Chain::new(Vec::new()));
        }
        // The generations of the previous chain may still be warm.
        let previous = self.previous.lock().clone();
        match previous {
            Some((warm, chain))
                if warm == bindings && chain.generations.iter().all(|one| !one.watch.tripped()) =>
            {
                Ok(chain)
            }
            _ => self.start(bindings, &[], Purpose::ServeUnchecked),
        }
    }

    /// Rolls back a faulty live chain and ends the trial of a faulty candidate.
    pub(crate) fn roll_back_faulty(&self, now: Timestamp) {
        let _lock = self.change_lock.lock();
        // The live chain first: a candidate that shares the faulty plugin ends with it.
        self.roll_back_live(now);
        self.end_faulty_trial(now);
    }

    fn roll_back_live(&self, now: Timestamp) {
        let live = self.live.load_full();
        let Some(faulty) = live.chain.generations.iter().find(|generation| generation.watch.tripped()) else {
            return;
        };
        let why = rollback_reason(faulty);
        let targets = {
            let (state, chain) = (self.state.lock(), &live.record.chain);
            // The rollback of a tenant's plugin must not undo later changes to other bindings.
            match W::BY_PLUGIN || faulty.binding.tenant.is_some() {
                true => state.rollback_targets_of_plugin(chain, &faulty.binding),
                false => state.rollback_targets(chain, &faulty.binding),
            }
        };
        let mut failed = None;
        for target in targets {
            let result = self.reuse_or_start(&target).and_then(|chain| {
                self.replace_live(
                    now,
                    target,
                    chain,
                    BindingChange::RolledBackAutomatically,
                    Some(why.clone()),
                )
            });
            match result {
                Ok(_) => {
                    log_rollback::<W>("rolled back automatically", &why, Ok(()));
                    // The rollback does not wait for warm instances; they are made now, before the next calls need
                    // them.
                    return self.live.load().chain.warm_like(&live.chain);
                }
                // An older chain may still start.
                Err(error) => {
                    tracing::error!(hook = W::HOOK.name(), %error, "rollback failed");
                    failed.get_or_insert(error);
                }
            }
        }
        faulty.watch.reset();
        let end = match failed {
            None => "there is nothing to roll back to".to_owned(),
            Some(error) => format!("nothing to roll back to starts: {error}"),
        };
        // This may repeat with every call: report it once a minute, so that it does not push out other events.
        let recently_reported = self.state.lock().events.last().is_some_and(|last| {
            last.kind == FAULTY_EVENT
                && last.what.starts_with(&version_label(&faulty.by))
                && now - last.at < FAULTY_EVENT_INTERVAL
        });
        let result = match recently_reported {
            true => Ok(()),
            false => self.write(|state| add_event(state, now, FAULTY_EVENT, format!("{why}; {end}"))),
        };
        log_rollback::<W>("faulty, with nothing to roll back to", &why, result);
    }
}

/// The reason for a rollback, as text.
pub(super) fn rollback_reason<W: World>(faulty: &Generation<W>) -> String {
    format!("{}: {}", version_label(&faulty.by), faulty.fault_reason().unwrap_or_default())
}

fn version_label(by: &PluginVersion) -> String {
    format!("{} {}", by.plugin, by.version)
}

pub(super) fn log_rollback<W: World>(what: &str, why: &str, result: Result<(), HookError>) {
    match result {
        Ok(()) => tracing::error!(hook = W::HOOK.name(), why, "{what}"),
        Err(error) => {
            tracing::error!(hook = W::HOOK.name(), why, %error, "{what}, but the change could not be stored");
        }
    }
}
