//! The slot of one hook: the live chain, the candidate on trial, and the history of both.

use crate::batch::BatchQuestion;
use crate::binding::{CandidateRecord, TrialMode, check_peers, missing_grants};
use crate::chain::{Chain, ChainOutcome};
use crate::fault_examples::LazyMessageId;
use crate::fault_reporter::FaultReporter;
use crate::generation::{Generation, HostEnvironment};
use crate::hook_state::{HookState, MAX_HISTORY, add_event, store_state};
use crate::hook_status::{CandidateState, HookStatus, PluginCounts};
use crate::host_call_log::HostCallLog;
use crate::host_calls::{Purpose, shadow_counter_space};
use crate::library::Library;
use crate::policy_reference::ActivationConditions;
use crate::runtime::Runtime;
use crate::shadow::{Shadow, comparable_answer};
use crate::worlds::World;
use crate::{HookError, contract, policy_reference};
use api::{Binding, BindingChange, BindingRecord, OnFault};
use arc_swap::ArcSwap;
use model::{PluginVersion, Timestamp};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The event kind for a faulty plugin that keeps serving, and the minimum time between two such events of one plugin.
const FAULTY_EVENT: &str = "faulty";
const FAULTY_EVENT_INTERVAL: Duration = Duration::from_secs(60);

/// Dependencies of a slot.
pub(crate) struct HookDeps {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) library: Arc<Library>,
    pub(crate) environment: HostEnvironment,
    pub(crate) reporter: FaultReporter,
}

struct LiveChain<W: World> {
    record: BindingRecord,
    chain: Chain<W>,
    candidate: Option<Arc<Candidate<W>>>,
}

struct Candidate<W: World> {
    record: CandidateRecord,
    chain: Chain<W>,
    shadow: Option<Shadow<W>>,
    /// Questions to a canary, and those of them that it failed and the live chain answered.
    asked: AtomicU64,
    failed: AtomicU64,
    /// Questions outside the canary's share.
    bypassed: AtomicU64,
}

/// The slot of one hook.
pub(crate) struct HookSlot<W: World> {
    deps: Arc<HookDeps>,
    path: PathBuf,
    live: ArcSwap<LiveChain<W>>,
    state: Mutex<HookState>,
    /// The previous live chain, still warm for a quick rollback.
    previous: Mutex<Option<(Vec<Binding>, Chain<W>)>>,
    /// Serializes changes of the bindings.
    change_lock: Mutex<()>,
}

impl<W: World> HookSlot<W> {
    /// Restores the stored chain and candidate.
    pub(crate) fn open(deps: Arc<HookDeps>) -> Result<Self, HookError> {
        let path = deps.library.bindings(W::HOOK);
        let mut state: HookState = match std::fs::read(&path) {
            Ok(octets) => serde_json::from_slice(&octets)
                .or_else(|error| {
                    // Versions before 0.2 stored only the list of records.
                    let records = serde_json::from_slice(&octets).map_err(|_| error)?;
                    Ok(HookState { records, ..HookState::default() })
                })
                .map_err(|error: serde_json::Error| HookError::Storage {
                    path: path.clone(),
                    source: error.into(),
                })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => HookState::default(),
            Err(source) => return Err(HookError::Storage { path, source }),
        };
        if Self::pin_old_records(&mut state, &deps.library) {
            store_state(&path, &state)?;
        }
        let unbound = BindingRecord {
            serial: 0,
            since: Timestamp(0),
            chain: Vec::new(),
            change: BindingChange::Unbound,
            rollback_reason: None,
        };
        let slot = Self {
            deps,
            path,
            live: ArcSwap::from_pointee(LiveChain {
                record: state.records.last().cloned().unwrap_or(unbound),
                chain: Chain(Vec::new()),
                candidate: None,
            }),
            state: Mutex::new(state),
            previous: Mutex::default(),
            change_lock: Mutex::default(),
        };
        let record = slot.live.load().record.clone();
        if !record.chain.is_empty() {
            let chain = slot.start(&record.chain, &[], Purpose::ServeUnchecked)?;
            slot.live.store(Arc::new(LiveChain { record, chain, candidate: None }));
        }
        let candidate = slot.state.lock().candidate.clone();
        if let Some(record) = candidate
            && let Err(error) = slot
                .start_candidate(record, Purpose::ServeUnchecked)
                .map(|candidate| slot.install_candidate(candidate))
        {
            // A broken candidate must not stop the live chain from starting.
            let why = format!("it no longer starts: {error}");
            let result = slot.write(|state| {
                state.candidate = None;
                add_event(state, Timestamp::now(), "candidate-faulty", why.clone());
            });
            log_rollback::<W>("candidate ended automatically", &why, result);
        }
        Ok(slot)
    }

    /// Starts a generation for each binding. Reuses generations of `running` that have the same binding.
    fn start(
        &self,
        bindings: &[Binding],
        running: &[Arc<Generation<W>>],
        purpose: Purpose,
    ) -> Result<Chain<W>, HookError> {
        if bindings.is_empty() {
            return Err(HookError::EmptyChain);
        }
        let takes_chain = matches!(
            W::HOOK,
            model::Hook::Router
                | model::Hook::Screen
                | model::Hook::Lookup
                | model::Hook::Receipt
                | model::Hook::Peer
                | model::Hook::FrontEnd
        );
        if bindings.len() > 1 && !takes_chain {
            return Err(HookError::OneOnly(W::HOOK.name()));
        }
        if W::BY_PLUGIN {
            let mut names = std::collections::BTreeSet::new();
            if let Some(twice) = bindings.iter().find(|binding| !names.insert(binding.plugin.as_str())) {
                return Err(HookError::PluginTwice(twice.plugin.clone()));
            }
        }
        let deps = &self.deps;
        let generations = bindings.iter().map(|binding| {
            if let OnFault::Peer(peer) = &binding.on_fault
                && deps.environment.directory.load().id(peer).is_none()
            {
                return Err(HookError::UnknownPeer(peer.clone()));
            }
            if let Some(running) = running.iter().find(|generation| generation.has_binding(binding)) {
                return Ok(running.clone());
            }
            let compiled = deps.library.compiled(
                &deps.runtime.engine,
                &binding.plugin,
                &binding.version,
                &binding.sha256,
            )?;
            if compiled.hook != W::HOOK {
                return Err(HookError::WrongHook {
                    plugin: binding.plugin.clone(),
                    version: binding.version.clone(),
                    serves: compiled.hook.name(),
                    wanted: W::HOOK.name(),
                });
            }
            let environment = deps.environment.clone();
            Generation::start(&deps.runtime, &compiled, binding.clone(), environment, purpose).map(Arc::new)
        });
        let chain = Chain(generations.collect::<Result<Vec<_>, _>>()?);
        check_peers(W::HOOK, bindings)?;
        Ok(chain)
    }

    /// Refuses plugins that would only fail: a policy names something unknown, or a component imports something that is
    /// not granted.
    fn check_names_and_grants(&self, chain: &Chain<W>) -> Result<(), HookError> {
        let directory = self.deps.environment.directory.load();
        for one in &chain.0 {
            if let Some(peer) = one.binding.peers.iter().find(|peer| directory.id(peer).is_none()) {
                return Err(HookError::ServesUnknownPeer(peer.clone()));
            }
            let (plugin, version) = (one.by.plugin.clone(), one.by.version.clone());
            let unknown = one.unknown();
            if !unknown.is_empty() {
                return Err(HookError::UnknownReferences {
                    plugin,
                    names: policy_reference::format_references(&unknown),
                });
            }
            let engine = &self.deps.runtime.engine;
            let compiled = self.deps.library.compiled(engine, &plugin, &version, &one.binding.sha256)?;
            let imports =
                missing_grants(&one.binding.grants, &contract::imports(engine, &compiled.component));
            if !imports.is_empty() {
                return Err(HookError::NotGranted { plugin, version, imports: imports.join(" and ") });
            }
        }
        Ok(())
    }

    /// Sets the full SHA-256 of the component in each binding that has none.
    fn pin_digests(&self, mut bindings: Vec<Binding>) -> Result<Vec<Binding>, HookError> {
        bindings.iter_mut().try_for_each(|binding| self.deps.library.pin(binding))?;
        Ok(bindings)
    }

    /// Sets the full SHA-256 in stored bindings of a release that did not record it. A version that is not stored any more gets
    /// none, and cannot serve.
    fn pin_old_records(state: &mut HookState, library: &Library) -> bool {
        let records = state.records.iter_mut().flat_map(|record| &mut record.chain);
        let candidate = state.candidate.iter_mut().flat_map(|record| &mut record.chain);
        let mut changed = false;
        for binding in records.chain(candidate).filter(|binding| binding.sha256.is_empty()) {
            match library.pin(binding) {
                Ok(()) => changed = true,
                Err(error) => tracing::warn!(hook = W::HOOK.name(), %error, "old binding without a digest"),
            }
        }
        changed
    }

    fn purpose(conditions: ActivationConditions) -> Purpose {
        if conditions.force { Purpose::ServeUnchecked } else { Purpose::Serve }
    }

    /// Starts a chain without traffic, for replays and test harnesses.
    pub(crate) fn dry_run(&self, bindings: &[Binding]) -> Result<Chain<W>, HookError> {
        self.start(&self.pin_digests(bindings.to_vec())?, &[], Purpose::Isolated)
    }

    /// Starts a chain without traffic that shares its counters with no other.
    pub(crate) fn try_run(&self, bindings: &[Binding]) -> Result<Chain<W>, HookError> {
        self.start(&self.pin_digests(bindings.to_vec())?, &[], Purpose::Tried)
    }

    fn check_serial(&self, expected: Option<u64>) -> Result<(), HookError> {
        let found = self.live.load().record.serial;
        match expected {
            Some(expected) if expected != found => {
                Err(HookError::Changed { hook: W::HOOK.name(), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Activates a chain: starts it, then replaces the live chain atomically. Calls in flight finish on the old chain.
    /// A failure changes nothing. With `conditions.expected`, the newest change must have that serial.
    pub(crate) fn activate(
        &self,
        now: Timestamp,
        bindings: Vec<Binding>,
        conditions: ActivationConditions,
    ) -> Result<BindingRecord, HookError> {
        let _lock = self.change_lock.lock();
        self.check_serial(conditions.expected)?;
        let bindings = self.pin_digests(bindings)?;
        let chain = self.start(&bindings, &[], Self::purpose(conditions))?;
        if !conditions.force {
            self.check_names_and_grants(&chain)?;
        }
        chain.warm_like(&self.live.load().chain);
        self.replace_live(now, bindings, chain, BindingChange::Activated, None)
    }

    /// Removes all plugins from the hook.
    pub(crate) fn unbind(&self, now: Timestamp) -> Result<BindingRecord, HookError> {
        let _lock = self.change_lock.lock();
        self.replace_live(now, Vec::new(), Chain(Vec::new()), BindingChange::Unbound, None)
    }

    /// Stores the change and replaces the live chain. `rollback_reason` is set for an automatic rollback and is stored
    /// with the replaced chain.
    fn replace_live(
        &self,
        now: Timestamp,
        bindings: Vec<Binding>,
        chain: Chain<W>,
        change: BindingChange,
        rollback_reason: Option<String>,
    ) -> Result<BindingRecord, HookError> {
        let live = self.live.load_full();
        let record = BindingRecord {
            serial: live.record.serial + 1,
            since: now,
            chain: bindings,
            change,
            rollback_reason: None,
        };
        let names: Vec<String> =
            record.chain.iter().map(|binding| format!("{} {}", binding.plugin, binding.version)).collect();
        let (kind, what) = match change {
            BindingChange::Activated => ("activated", names.join(", ")),
            BindingChange::Promoted => ("promoted", names.join(", ")),
            BindingChange::RolledBack => ("rolled-back", names.join(", ")),
            BindingChange::RolledBackAutomatically => (
                "rolled-back-by-itself",
                format!("to {}: {}", names.join(", "), rollback_reason.as_deref().unwrap_or_default()),
            ),
            BindingChange::Unbound => ("unbound", String::new()),
        };
        let candidate = if change == BindingChange::Promoted { None } else { live.candidate.clone() };
        let ended_trial = live.candidate.as_ref().filter(|_| candidate.is_none());
        self.write(|state| {
            if let (Some(last), Some(why)) = (state.records.last_mut(), rollback_reason) {
                last.rollback_reason = Some(why);
            }
            state.records.push(record.clone());
            let surplus = state.records.len().saturating_sub(MAX_HISTORY);
            state.records.drain(..surplus);
            state.candidate = candidate.as_ref().map(|candidate| candidate.record.clone());
            add_event(state, now, kind, what);
        })?;
        if let Some(ended_trial) = ended_trial {
            self.drop_shadow_counters(&ended_trial.record);
        }
        chain.0.iter().for_each(|one| one.reactivate());
        let new = Arc::new(LiveChain { record: record.clone(), chain, candidate });
        let old = self.live.swap(new.clone());
        let in_candidate =
            |one| new.candidate.as_ref().is_some_and(|candidate| candidate.chain.contains(one));
        old.chain
            .0
            .iter()
            .filter(|one| !new.chain.contains(one) && !in_candidate(one))
            .for_each(|one| one.retire());
        *self.previous.lock() = Some((old.record.chain.clone(), old.chain.clone()));
        Ok(record)
    }

    /// Changes the stored state, on disk first.
    fn write(&self, change: impl FnOnce(&mut HookState)) -> Result<(), HookError> {
        let mut state = self.state.lock();
        let mut new = state.clone();
        change(&mut new);
        store_state(&self.path, &new)?;
        *state = new;
        Ok(())
    }

    /// Drops the counters of a shadow candidate, so that the next one starts from zero.
    fn drop_shadow_counters(&self, candidate: &CandidateRecord) {
        if candidate.mode == TrialMode::Shadow {
            for binding in &candidate.chain {
                self.deps.environment.services.counters.forget(&shadow_counter_space(&binding.plugin));
            }
        }
    }

    /// Activates the previous chain. Skips chains that were rolled back automatically.
    pub(crate) fn rollback(&self, now: Timestamp) -> Result<BindingRecord, HookError> {
        let _lock = self.change_lock.lock();
        let live = self.live.load().record.chain.clone();
        let target = {
            let state = self.state.lock();
            let is_fit =
                |record: &&BindingRecord| record.chain != live && !state.was_rolled_back(&record.chain);
            let other = state.records.iter().rev().find(is_fit);
            other.map(|record| record.chain.clone()).ok_or(HookError::NothingBefore)?
        };
        let target = self.pin_digests(target)?;
        let chain = self.reuse_or_start(&target)?;
        chain.warm_like(&self.live.load().chain);
        self.replace_live(now, target, chain, BindingChange::RolledBack, None)
    }

    fn reuse_or_start(&self, bindings: &[Binding]) -> Result<Chain<W>, HookError> {
        if bindings.is_empty() {
            return Ok(Chain(Vec::new()));
        }
        // The generations of the previous chain may still be warm.
        let previous = self.previous.lock().clone();
        match previous {
            Some((warm, chain)) if warm == bindings && chain.0.iter().all(|one| !one.watch.tripped()) => {
                Ok(chain)
            }
            _ => self.start(bindings, &[], Purpose::ServeUnchecked),
        }
    }

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
        let names: Vec<String> =
            record.chain.iter().map(|binding| format!("{} {}", binding.plugin, binding.version)).collect();
        let change = match mode {
            TrialMode::Shadow => "in shadow".to_owned(),
            TrialMode::Canary { share } => format!("canary, {} percent", f64::from(share) / 100.0),
        };
        self.write(|state| {
            state.candidate = Some(record.clone());
            add_event(state, now, "candidate", format!("{}, {change}", names.join(", ")));
        })?;
        self.install_candidate(candidate);
        Ok(record)
    }

    /// Starts a candidate. `purpose` applies to a canary.
    fn start_candidate(&self, record: CandidateRecord, purpose: Purpose) -> Result<Candidate<W>, HookError> {
        let live = self.live.load_full();
        let is_shadow = record.mode == TrialMode::Shadow;
        // A canary shares unchanged plugins with the live chain. A shadow shares none, because its counters are
        // separate.
        let running = if is_shadow { &[][..] } else { &live.chain.0[..] };
        let purpose = if is_shadow { Purpose::Isolated } else { purpose };
        let chain = self.start(&record.chain, running, purpose)?;
        if is_shadow && !W::HAS_SHADOW {
            return Err(HookError::NoShadow(W::HOOK.name()));
        }
        let shadow = if is_shadow {
            let directory = self.deps.environment.directory.clone();
            let started = Shadow::start(chain.clone(), directory, self.deps.reporter.clone());
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

    fn install_candidate(&self, candidate: Candidate<W>) {
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

    fn end_trial_locked(&self, now: Timestamp, kind: &str, why: &str) -> Result<(), HookError> {
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

    /// Rolls back a faulty live chain and ends the trial of a faulty candidate.
    pub(crate) fn roll_back_faulty(&self, now: Timestamp) {
        let _lock = self.change_lock.lock();
        // The live chain first: a candidate that shares the faulty plugin ends with it.
        self.roll_back_live(now);
        self.end_faulty_trial(now);
    }

    fn end_faulty_trial(&self, now: Timestamp) {
        let live = self.live.load_full();
        let Some(candidate) = &live.candidate else { return };
        let Some(faulty) = candidate.chain.0.iter().find(|one| one.watch.tripped()) else { return };
        let why = rollback_reason(faulty);
        let result = self.end_trial_locked(now, "candidate-faulty", &why);
        log_rollback::<W>("candidate ended automatically", &why, result);
    }

    fn roll_back_live(&self, now: Timestamp) {
        let live = self.live.load_full();
        let Some(faulty) = live.chain.0.iter().find(|generation| generation.watch.tripped()) else { return };
        let why = rollback_reason(faulty);
        let targets = {
            let (state, chain) = (self.state.lock(), &live.record.chain);
            match W::BY_PLUGIN {
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

    /// Asks the canary for its share of the traffic, and the live chain otherwise or if the canary fails. A shadow
    /// candidate gets a copy of the question.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        call_log: &mut HostCallLog,
        message_id: &LazyMessageId,
    ) -> ChainOutcome<W> {
        let live = self.live.load();
        let reporter = &self.deps.reporter;
        let Some(candidate) = &live.candidate else {
            return live.chain.ask(question, now, call_log, reporter, message_id);
        };
        if let TrialMode::Canary { share } = candidate.record.mode {
            let is_fit = candidate.chain.serves(question)
                && !candidate.chain.0.iter().any(|generation| generation.watch.tripped());
            if is_fit && W::canary_bucket(question) < share {
                candidate.asked.fetch_add(1, Relaxed);
                // A canary's `on-fault` does not apply during the trial. A fault in a plugin that it shares with the
                // live chain is handled as in the live chain.
                let own = |one: &Arc<Generation<W>>| !live.chain.contains(one);
                match candidate.chain.ask_with_strict(question, now, call_log, (reporter, message_id), own) {
                    ChainOutcome::Fault(fault, faulty) if own(&faulty) => {
                        candidate.failed.fetch_add(1, Relaxed);
                        if !W::may_ask_again(&fault) {
                            return ChainOutcome::Fault(fault, faulty);
                        }
                    }
                    outcome => return outcome,
                }
                *call_log = call_log.restarted();
            } else {
                candidate.bypassed.fetch_add(1, Relaxed);
            }
        }
        let outcome = live.chain.ask(question, now, call_log, reporter, message_id);
        if let Some(shadow) = &candidate.shadow {
            shadow.ask(question, now, call_log, message_id, comparable_answer(&outcome));
        }
        outcome
    }

    /// Asks one generation, which answered an earlier question of the same call. A shadow candidate gets a copy of the question.
    pub(crate) fn ask_generation(
        &self,
        generation: &Arc<Generation<W>>,
        question: W::Question<'_>,
        now: Timestamp,
    ) -> ChainOutcome<W> {
        let (call_log, message_id) = (&mut HostCallLog::Off, &LazyMessageId::default());
        let chain = Chain(vec![generation.clone()]);
        let outcome = chain.ask(question, now, call_log, &self.deps.reporter, message_id);
        let live = self.live.load();
        if let Some(shadow) = live.candidate.as_ref().and_then(|candidate| candidate.shadow.as_ref()) {
            shadow.ask(question, now, call_log, message_id, comparable_answer(&outcome));
        }
        outcome
    }

    /// Like [`HookSlot::ask`] for each question, in order.
    pub(crate) fn ask_many(
        &self,
        asked: &mut [BatchQuestion<'_, W>],
        now: Timestamp,
    ) -> Vec<ChainOutcome<W>> {
        let live = self.live.load();
        let candidate = live.candidate.as_deref();
        if candidate.is_some_and(|candidate| candidate.shadow.is_none()) {
            // A canary may share counters with the live chain, so the order between the two shows.
            let each = |one: &mut BatchQuestion<'_, W>| {
                self.ask(one.question, now, &mut one.call_log, one.message_id)
            };
            return asked.iter_mut().map(each).collect();
        }
        let outcomes = live.chain.ask_many(asked, now, &self.deps.reporter);
        if let Some(shadow) = candidate.and_then(|candidate| candidate.shadow.as_ref()) {
            for (one, outcome) in asked.iter().zip(&outcomes) {
                shadow.ask(one.question, now, &one.call_log, one.message_id, comparable_answer(outcome));
            }
        }
        outcomes
    }

    /// The live chain.
    pub(crate) fn chain(&self) -> Chain<W> {
        self.live.load().chain.clone()
    }

    /// Whether the hook has a live plugin.
    pub(crate) fn is_bound(&self) -> bool {
        !self.live.load().chain.0.is_empty()
    }

    pub(crate) fn history(&self) -> Vec<BindingRecord> {
        self.state.lock().records.clone()
    }

    /// Call counts of all active plugins.
    pub(crate) fn counts(&self) -> Vec<PluginCounts> {
        let live = self.live.load();
        let mut counts = counts(&live.chain, true);
        if let Some(candidate) = &live.candidate {
            counts.extend(candidate.counts(&live.chain));
        }
        counts
    }

    pub(crate) fn status(&self) -> HookStatus {
        let live = self.live.load();
        let candidate = live.candidate.as_ref().map(|candidate| CandidateState {
            record: candidate.record.clone(),
            counts: candidate.counts(&live.chain),
            asked: candidate.asked.load(Relaxed),
            failed: candidate.failed.load(Relaxed),
            bypassed: candidate.bypassed.load(Relaxed),
            comparison: candidate.shadow.as_ref().map(Shadow::comparison),
        });
        HookStatus {
            hook: W::HOOK,
            live: live.record.clone(),
            counts: counts(&live.chain, true),
            candidate,
            events: self.state.lock().events.iter().rev().cloned().collect(),
            unknown: live.chain.unknown(),
        }
    }
}

impl<W: World> Candidate<W> {
    /// Call counts of the plugins that are not shared with the live chain.
    fn counts(&self, live: &Chain<W>) -> Vec<PluginCounts> {
        let own = self.chain.0.iter().filter(|one| !live.contains(one));
        counts(&Chain(own.cloned().collect()), false)
    }
}

fn counts<W: World>(chain: &Chain<W>, live: bool) -> Vec<PluginCounts> {
    let one = |one: &Arc<Generation<W>>| PluginCounts { by: one.by.clone(), live, counts: one.counts() };
    chain.0.iter().map(one).collect()
}

/// The reason for a rollback, as text.
fn rollback_reason<W: World>(faulty: &Generation<W>) -> String {
    format!("{}: {}", version_label(&faulty.by), faulty.fault_reason().unwrap_or_default())
}

fn version_label(by: &PluginVersion) -> String {
    format!("{} {}", by.plugin, by.version)
}

fn log_rollback<W: World>(what: &str, why: &str, result: Result<(), HookError>) {
    match result {
        Ok(()) => tracing::error!(hook = W::HOOK.name(), why, "{what}"),
        Err(error) => {
            tracing::error!(hook = W::HOOK.name(), why, %error, "{what}, but the change could not be stored");
        }
    }
}
