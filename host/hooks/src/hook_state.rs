//! The stored state of a hook: its chains, its candidate and its events.

use crate::HookError;
use crate::binding::CandidateRecord;
use crate::library::write_atomically;
use api::{Binding, BindingRecord, HookEvent};
use model::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Maximum number of stored chains and events.
pub(crate) const MAX_HISTORY: usize = 200;

/// The stored state of a slot (`<hook>.json`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct HookState {
    pub(crate) records: Vec<BindingRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) candidate: Option<CandidateRecord>,
    #[serde(default)]
    pub(crate) events: Vec<HookEvent>,
}

/// Writes the state of a slot.
pub(crate) fn store_state(path: &Path, state: &HookState) -> Result<(), HookError> {
    let octets = serde_json::to_vec_pretty(state).map_err(|error| HookError::Engine(error.to_string()))?;
    write_atomically(path, &octets)
}

impl HookState {
    /// Whether a chain was rolled back automatically.
    pub(crate) fn was_rolled_back(&self, chain: &[Binding]) -> bool {
        self.records.iter().any(|record| record.rollback_reason.is_some() && record.chain == chain)
    }

    /// Chains to roll back to, newest first: they do not contain the faulty binding and were never rolled back
    /// automatically.
    pub(crate) fn rollback_targets(&self, live: &[Binding], faulty: &Binding) -> Vec<Vec<Binding>> {
        let mut targets: Vec<Vec<Binding>> = Vec::new();
        for BindingRecord { chain, .. } in self.records.iter().rev() {
            let is_fit = !chain.is_empty() && chain != live && !chain.contains(faulty);
            if is_fit && !self.was_rolled_back(chain) && !targets.contains(chain) {
                targets.push(chain.clone());
            }
        }
        targets
    }

    /// Chains to roll back to where a question names its plugin, newest first: the live chain with an earlier binding of the
    /// faulty plugin, so that the other plugins stay.
    pub(crate) fn rollback_targets_of_plugin(&self, live: &[Binding], faulty: &Binding) -> Vec<Vec<Binding>> {
        let mut targets: Vec<Vec<Binding>> = Vec::new();
        let earlier = self.records.iter().rev().flat_map(|record| &record.chain);
        for earlier in earlier.filter(|one| one.plugin == faulty.plugin && *one != faulty) {
            let replace = |one: &Binding| if one == faulty { earlier.clone() } else { one.clone() };
            let target: Vec<Binding> = live.iter().map(replace).collect();
            if !self.was_rolled_back(&target) && !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets
    }
}

pub(crate) fn add_event(state: &mut HookState, at: Timestamp, kind: &str, what: String) {
    state.events.push(HookEvent { at, kind: kind.to_owned(), what });
    let surplus = state.events.len().saturating_sub(MAX_HISTORY);
    state.events.drain(..surplus);
}
