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
        let chains = self.records.iter().rev().map(|record| record.chain.clone());
        self.never_rolled_back(
            chains.filter(|chain| !chain.is_empty() && chain != live && !chain.contains(faulty)),
        )
    }

    /// Chains to roll back to where a question names its plugin, newest first: the live chain with an earlier binding of the
    /// faulty plugin, so that the other plugins stay.
    pub(crate) fn rollback_targets_of_plugin(&self, live: &[Binding], faulty: &Binding) -> Vec<Vec<Binding>> {
        let bindings = self.records.iter().rev().flat_map(|record| &record.chain);
        let earlier = bindings.filter(|one| one.plugin == faulty.plugin && *one != faulty);
        self.never_rolled_back(earlier.map(|earlier| {
            let replace = |one: &Binding| if one == faulty { earlier.clone() } else { one.clone() };
            live.iter().map(replace).collect()
        }))
    }

    /// Each of these chains once, without those that were rolled back automatically.
    fn never_rolled_back(&self, chains: impl Iterator<Item = Vec<Binding>>) -> Vec<Vec<Binding>> {
        let mut targets = Vec::new();
        for chain in chains {
            if !self.was_rolled_back(&chain) && !targets.contains(&chain) {
                targets.push(chain);
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
