//! The candidate on trial: its start, its end and its promotion.

use super::rollback::{log_rollback, rollback_reason};
use super::{HookSlot, LiveChain, counts};
use crate::HookError;
use crate::binding::{CandidateRecord, TrialMode};
use crate::chain::Chain;
use crate::hook_state::add_event;
use crate::hook_status::PluginCounts;
use crate::host_calls::{Purpose, shadow_counter_space};
use crate::policy_reference::ActivationConditions;
use crate::shadow::Shadow;
use crate::tenant_bindings::{describe_chain, plugin_space};
use crate::worlds::World;
use api::{Binding, BindingChange, BindingRecord};
use model::Timestamp;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub(super) struct Candidate<W: World> {
    pub(super) record: CandidateRecord,
    pub(super) chain: Chain<W>,
    pub(super) shadow: Option<Shadow<W>>,
    /// Questions to a canary, and the number of these on which it failed and the live chain answered.
    pub(super) asked: AtomicU64,
    pub(super) failed: AtomicU64,
    /// Questions outside the canary's share.
    pub(super) bypassed: AtomicU64,
}

impl<W: World> Candidate<W> {
    /// Call counts of the plugins that are not shared with the live chain.
    pub(super) fn counts(&self, live: &Chain<W>) -> Vec<PluginCounts> {
        let own = self.chain.generations.iter().filter(|one| !live.contains(one));
        counts(&Chain::new(own.cloned().collect()), false)
    }
}

impl<W: World> HookSlot<W> {
    /// Starts the trial of a candidate. It replaces an earlier candidate.
    pub(crate) fn start_trial(
        &self,
        now: Timestamp,
        mode: TrialMode,
        bindings: Vec<Binding>,
        conditions: ActivationConditions,
    ) -> Result<CandidateRecord, HookError> {
        let _lock = self.change_lock.lock();
        self.check_serial(conditions.expected)?;
        if let TrialMode::Canary { share } = mode
            && !(1..=10_000).contains(&share)
        {
            return Err(HookError::BadShare);
        }
        let record = CandidateRecord { since: now, mode, chain: self.pin_digests(bindings)? };
        let previous = self.live.load().candidate.clone();
        if let Some(previous) = &previous {
            self.drop_shadow_counters(&previous.record);
        }
        let candidate = self.start_candidate(record.clone(), Self::purpose(conditions))?;
        if !conditions.force {
            self.check_names_and_grants(&candidate.chain)?;
        }
        let names = describe_chain(&record.chain);
        let change = match mode {
            TrialMode::Shadow => "in shadow".to_owned(),
            TrialMode::Canary { share } => format!("canary, {} percent", f64::from(share) / 100.0),
        };
        self.write(|state| {
            state.candidate = Some(record.clone());
            add_event(state, now, "candidate", format!("{names}, {change}"));
        })?;
        self.install_candidate(candidate);
        Ok(record)
    }

    /// Starts a candidate. `purpose` applies to a canary.
    pub(super) fn start_candidate(
        &self,
        record: CandidateRecord,
        purpose: Purpose,
    ) -> Result<Candidate<W>, HookError> {
        let live = self.live.load_full();
        let is_shadow = record.mode == TrialMode::Shadow;
        // A canary shares unchanged plugins with the live chain. A shadow shares none, because its counters are
        // separate.
        let running = if is_shadow { &[][..] } else { &live.chain.generations[..] };
        let purpose = if is_shadow { Purpose::Isolated } else { purpose };
        let chain = self.start(&record.chain, running, purpose)?;
        if is_shadow && !W::HAS_SHADOW {
            return Err(HookError::NoShadow(W::HOOK.name()));
        }
        let shadow = if is_shadow {
            let directory = self.deps.environment.directory.clone();
            let started = Shadow::start(chain.clone(), directory, self.deps.reporter.unobserved());
            Some(started.map_err(|error| HookError::Engine(format!("starting the shadow: {error}")))?)
        } else {
            None
        };
        Ok(Candidate {
            record,
            chain,
            shadow,
            asked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bypassed: AtomicU64::new(0),
        })
    }

    pub(super) fn install_candidate(&self, candidate: Candidate<W>) {
        let live = self.live.load_full();
        self.live.store(Arc::new(LiveChain {
            record: live.record.clone(),
            chain: live.chain.clone(),
            candidate: Some(Arc::new(candidate)),
        }));
    }

    /// Ends the trial of the candidate.
    pub(crate) fn end_trial(&self, now: Timestamp, kind: &str, why: &str) -> Result<(), HookError> {
        let _lock = self.change_lock.lock();
        self.end_trial_locked(now, kind, why)
    }

    pub(super) fn end_trial_locked(&self, now: Timestamp, kind: &str, why: &str) -> Result<(), HookError> {
        let live = self.live.load_full();
        let Some(candidate) = &live.candidate else { return Err(HookError::NoCandidate) };
        self.drop_shadow_counters(&candidate.record);
        // In memory first: the candidate may be failing now. A failed write is still reported.
        let (record, chain) = (live.record.clone(), live.chain.clone());
        self.live.store(Arc::new(LiveChain { record, chain, candidate: None }));
        self.write(|state| {
            state.candidate = None;
            add_event(state, now, kind, why.to_owned());
        })
    }

    /// Makes the candidate live.
    pub(crate) fn promote(&self, now: Timestamp, expected: Option<u64>) -> Result<BindingRecord, HookError> {
        let _lock = self.change_lock.lock();
        self.check_serial(expected)?;
        let live = self.live.load_full();
        let candidate = live.candidate.as_ref().ok_or(HookError::NoCandidate)?;
        let bindings = candidate.record.chain.clone();
        let chain = match candidate.record.mode {
            TrialMode::Canary { .. } => candidate.chain.clone(),
            // A shadow has its own counters, so the plugins are started again.
            TrialMode::Shadow => self.start(&bindings, &[], Purpose::Serve)?,
        };
        chain.warm_like(&live.chain);
        self.replace_live(now, bindings, chain, BindingChange::Promoted, None)
    }

    pub(super) fn end_faulty_trial(&self, now: Timestamp) {
        let live = self.live.load_full();
        let Some(candidate) = &live.candidate else { return };
        let Some(faulty) = candidate.chain.generations.iter().find(|one| one.watch.tripped()) else { return };
        let why = rollback_reason(faulty);
        let result = self.end_trial_locked(now, "candidate-faulty", &why);
        log_rollback::<W>("candidate ended automatically", &why, result);
    }

    /// Drops the counters of a shadow candidate, so that the next one starts from zero.
    pub(super) fn drop_shadow_counters(&self, candidate: &CandidateRecord) {
        if candidate.mode == TrialMode::Shadow {
            for binding in &candidate.chain {
                self.deps.environment.services.counters.forget(&shadow_counter_space(&plugin_space(binding)));
            }
        }
    }
}
