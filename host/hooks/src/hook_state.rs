//! The stored state of a hook: its chains, its candidate and its events.

use crate::HookError;
use crate::binding::CandidateRecord;
use crate::library::write_atomically;
use crate::tenant_bindings::with_tenants_of;
use api::{Binding, BindingRecord, HookEvent};
use model::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Maximum number of stored chains and events.
pub(crate) const MAX_HISTORY: usize = 200;
/// Maximum number of bindings in all stored chains together, beyond the last two chains. The file is written with each change.
const MAX_HISTORY_BINDINGS: usize = 10_000;

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
    /// Adds the newest chain, and removes the oldest ones beyond the limits.
    pub(crate) fn add_record(&mut self, record: BindingRecord) {
        self.records.push(record);
        let mut bindings: usize = self.records.iter().map(|record| record.chain.len()).sum();
        let mut surplus = 0;
        for record in &self.records {
            let left = self.records.len() - surplus;
            if left <= 2 || (left <= MAX_HISTORY && bindings <= MAX_HISTORY_BINDINGS) {
                break;
            }
            bindings -= record.chain.len();
            surplus += 1;
        }
        self.records.drain(..surplus);
    }

    /// Whether a chain was rolled back automatically.
    pub(crate) fn was_rolled_back(&self, chain: &[Binding]) -> bool {
        self.records.iter().any(|record| record.rollback_reason.is_some() && record.chain == chain)
    }

    /// Chains to roll back to, newest first: they do not contain the faulty binding and were never rolled back
    /// automatically. The bindings of tenants stay unchanged.
    pub(crate) fn rollback_targets(&self, live: &[Binding], faulty: &Binding) -> Vec<Vec<Binding>> {
        let has_tenants = live.iter().any(|one| one.tenant.is_some());
        let is_operators = |one: &&Binding| !has_tenants || one.tenant.is_none();
        let operators =
            self.records.iter().rev().map(|record| -> Vec<Binding> {
                record.chain.iter().filter(is_operators).cloned().collect()
            });
        let operators = operators.filter(|chain| !chain.is_empty());
        let chains = operators.map(|chain| if has_tenants { with_tenants_of(live, chain) } else { chain });
        self.never_rolled_back(
            chains.filter(|chain| !chain.is_empty() && chain != live && !chain.contains(faulty)),
        )
    }

    /// Chains to roll back to, newest first, if questions choose the plugin by its name or by the tenant: the live chain
    /// with an earlier binding of the faulty plugin for the same tenant, so that the other plugins stay.
    pub(crate) fn rollback_targets_of_plugin(&self, live: &[Binding], faulty: &Binding) -> Vec<Vec<Binding>> {
        let bindings = self.records.iter().rev().flat_map(|record| &record.chain);
        let earlier = bindings
            .filter(|one| one.plugin == faulty.plugin && one.tenant == faulty.tenant && *one != faulty);
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
