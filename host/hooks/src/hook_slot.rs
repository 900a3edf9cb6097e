//! The slot of one hook: the live chain, the candidate on trial, and the history of both.

mod calls;
mod rollback;
mod trial;

use crate::binding::{check_tenants_and_peers, missing_grants};
use crate::chain::Chain;
use crate::fault_reporter::FaultReporter;
use crate::generation::{Generation, HostEnvironment};
use crate::hook_state::{HookState, add_event, store_state};
use crate::hook_status::{CandidateState, HookStatus, PluginCounts};
use crate::host_calls::Purpose;
use crate::library::Library;
use crate::linked_component::{LinkedComponents, VerifiedComponents};
use crate::policy_reference::ActivationConditions;
use crate::running_generations::RunningGenerations;
use crate::runtime::Runtime;
use crate::shadow::Shadow;
use crate::tenant_bindings::describe_chain;
use crate::worlds::World;
use crate::{HookError, policy_reference, used_grants};
use api::{Binding, BindingChange, BindingRecord, OnFault};
use arc_swap::ArcSwap;
use model::Timestamp;
use parking_lot::Mutex;
use rollback::log_rollback;
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use trial::Candidate;

/// Dependencies of a slot.
pub(crate) struct HookDeps {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) library: Arc<Library>,
    pub(crate) environment: HostEnvironment,
    pub(crate) reporter: FaultReporter,
    pub(crate) components: LinkedComponents,
}

struct LiveChain<W: World> {
    record: BindingRecord,
    chain: Chain<W>,
    candidate: Option<Arc<Candidate<W>>>,
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
        let mut state = read_state(&path)?;
        if Self::pin_old_records(&mut state, &deps.library) {
            store_state(&path, &state)?;
        }
        let slot = Self {
            deps,
            path,
            live: ArcSwap::from_pointee(LiveChain {
                record: state.records.last().cloned().unwrap_or_else(unbound),
                chain: Chain::new(Vec::new()),
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
        slot.resume_candidate();
        Ok(slot)
    }

    /// Starts the stored candidate.
    fn resume_candidate(&self) {
        let candidate = self.state.lock().candidate.clone();
        if let Some(record) = candidate
            && let Err(error) = self
                .start_candidate(record, Purpose::ServeUnchecked)
                .map(|candidate| self.install_candidate(candidate))
        {
            // A broken candidate must not stop the live chain from starting.
            let why = format!("it no longer starts: {error}");
            let result = self.write(|state| {
                state.candidate = None;
                add_event(state, Timestamp::now(), "candidate-faulty", why.clone());
            });
            log_rollback::<W>("candidate ended automatically", &why, result);
        }
    }

    /// Loads the stored chain and candidate, which another node of the cluster has changed. Calls in flight finish on the
    /// old chain. A failure changes nothing.
    pub(crate) fn refresh(&self) -> Result<(), HookError> {
        let _lock = self.change_lock.lock();
        let stored = read_state(&self.path)?;
        let live = self.live.load_full();
        let record = stored.records.last().cloned().unwrap_or_else(unbound);
        let is_same_chain = record == live.record;
        let is_same_candidate = stored.candidate == self.state.lock().candidate;
        if !is_same_chain {
            let chain = match record.chain.is_empty() {
                true => Chain::new(Vec::new()),
                false => self.start(&record.chain, &live.chain.generations, Purpose::ServeUnchecked)?,
            };
            chain.warm_like(&live.chain);
            chain.generations.iter().for_each(|one| one.reactivate());
            let candidate = live.candidate.clone().filter(|_| is_same_candidate);
            let new = Arc::new(LiveChain { record: record.clone(), chain, candidate });
            let old = self.live.swap(new.clone());
            let stays = |one: &Arc<Generation<W>>| {
                new.chain.contains(one)
                    || new.candidate.as_ref().is_some_and(|candidate| candidate.chain.contains(one))
            };
            old.chain.generations.iter().filter(|one| !stays(one)).for_each(|one| one.retire());
            *self.previous.lock() = None;
            tracing::info!(hook = W::HOOK.name(), serial = record.serial, "binding of the cluster applied");
        }
        *self.state.lock() = stored;
        if !is_same_candidate {
            let live = self.live.load_full();
            let (record, chain) = (live.record.clone(), live.chain.clone());
            self.live.store(Arc::new(LiveChain { record, chain, candidate: None }));
            self.resume_candidate();
        }
        Ok(())
    }

    /// Starts a generation for each binding. Reuses generations of `running` with the same binding, and tenants' generations
    /// of the live chain: there may be a thousand, and a change concerns few.
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
                return Err(HookError::DuplicatePlugin(twice.plugin.clone()));
            }
        }
        let deps = &self.deps;
        let live = self.live.load();
        let serves = matches!(purpose, Purpose::Serve | Purpose::ServeUnchecked);
        let is_kept =
            |one: &&Arc<Generation<W>>| serves && one.binding.tenant.is_some() && !one.watch.tripped();
        let kept = live.chain.generations.iter().filter(is_kept);
        let running = RunningGenerations::of(running.iter().chain(kept));
        let mut verified = VerifiedComponents::default();
        let generations = bindings.iter().map(|binding| {
            if let OnFault::Peer(peer) = &binding.on_fault
                && deps.environment.directory.load().id(peer).is_none()
            {
                return Err(HookError::UnknownPeer(peer.clone()));
            }
            if let Some(running) = running.find(binding) {
                return Ok(running.clone());
            }
            let component = deps.components.get((&deps.library, &deps.runtime), binding, &mut verified)?;
            if component.hook != W::HOOK {
                return Err(HookError::WrongHook {
                    plugin: binding.plugin.clone(),
                    version: binding.version.clone(),
                    serves: component.hook.name(),
                    wanted: W::HOOK.name(),
                });
            }
            let environment = deps.environment.clone();
            Generation::start(&deps.runtime, component, binding.clone(), environment, purpose).map(Arc::new)
        });
        let chain = Chain::new(generations.collect::<Result<Vec<_>, _>>()?);
        check_tenants_and_peers::<W>(bindings)?;
        Ok(chain)
    }

    /// Refuses plugins whose calls would fail: a policy names an unknown object, or a component imports a capability that is
    /// not granted. A problem of one tenant's live binding does not prevent a change of another tenant's binding.
    fn check_names_and_grants(&self, chain: &Chain<W>) -> Result<(), HookError> {
        let directory = self.deps.environment.directory.load();
        let live = self.live.load();
        let is_checked =
            |one: &&Arc<Generation<W>>| one.binding.tenant.is_none() || !live.chain.contains(one);
        for one in chain.generations.iter().filter(is_checked) {
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
            if let Some(tenant) = &one.binding.tenant {
                self.check_tenant(tenant, one)?;
            }
            let mut imports = missing_grants(&one.binding.grants, &one.component().imports);
            if !imports.is_empty()
                && let Ok(schema) = self.deps.library.policy_schema(&plugin, &version)
            {
                imports.retain(|capability| used_grants::needs(&schema, &one.binding.policy, capability));
            }
            if !imports.is_empty() {
                return Err(HookError::NotGranted { plugin, version, imports: imports.join(" and ") });
            }
        }
        Ok(())
    }

    fn check_tenant(&self, tenant: &str, generation: &Generation<W>) -> Result<(), HookError> {
        if !self.deps.environment.services.tenant_lines.has(tenant) {
            return Err(HookError::UnknownTenant(tenant.to_owned()));
        }
        match generation.peers_not_allowed() {
            peers if peers.is_empty() => Ok(()),
            peers => Err(HookError::PeersNotAllowed {
                plugin: generation.by.plugin.clone(),
                tenant: tenant.to_owned(),
                names: peers.join(", "),
            }),
        }
    }

    /// Sets the full SHA-256 of the component in each binding that has none.
    fn pin_digests(&self, mut bindings: Vec<Binding>) -> Result<Vec<Binding>, HookError> {
        // Each component is read once.
        let mut pinned: FxHashMap<(String, String), (String, String)> = FxHashMap::default();
        for binding in bindings.iter_mut().filter(|binding| binding.sha256.is_empty()) {
            let named = (binding.plugin.clone(), binding.version.clone());
            match pinned.get(&named) {
                Some(known) => (binding.version, binding.sha256) = known.clone(),
                None => {
                    self.deps.library.pin(binding)?;
                    pinned.insert(named, (binding.version.clone(), binding.sha256.clone()));
                }
            }
        }
        Ok(bindings)
    }

    /// Sets the full SHA-256 in stored bindings of a release that did not record it. A version that is no longer stored gets
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
        self.start(&self.pin_digests(bindings.to_vec())?, &[], Purpose::DryRun)
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
        self.replace_live(now, Vec::new(), Chain::new(Vec::new()), BindingChange::Unbound, None)
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
        let names = describe_chain(&record.chain);
        let (kind, what) = match change {
            BindingChange::Activated => ("activated", names),
            BindingChange::Promoted => ("promoted", names),
            BindingChange::RolledBack => ("rolled-back", names),
            BindingChange::RolledBackAutomatically => (
                "rolled-back-by-itself",
                format!("to {names}: {}", rollback_reason.as_deref().unwrap_or_default()),
            ),
            BindingChange::Unbound => ("unbound", String::new()),
        };
        let candidate = if change == BindingChange::Promoted { None } else { live.candidate.clone() };
        let ended_trial = live.candidate.as_ref().filter(|_| candidate.is_none());
        self.write(|state| {
            if let (Some(last), Some(why)) = (state.records.last_mut(), rollback_reason) {
                last.rollback_reason = Some(why);
            }
            state.add_record(record.clone());
            state.candidate = candidate.as_ref().map(|candidate| candidate.record.clone());
            add_event(state, now, kind, what);
        })?;
        if let Some(ended_trial) = ended_trial {
            self.drop_shadow_counters(&ended_trial.record);
        }
        chain.generations.iter().for_each(|one| one.reactivate());
        let new = Arc::new(LiveChain { record: record.clone(), chain, candidate });
        let old = self.live.swap(new.clone());
        let in_candidate =
            |one| new.candidate.as_ref().is_some_and(|candidate| candidate.chain.contains(one));
        old.chain
            .generations
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

    /// The live chain.
    pub(crate) fn chain(&self) -> Chain<W> {
        self.live.load().chain.clone()
    }

    /// Whether the hook has a live plugin.
    pub(crate) fn is_bound(&self) -> bool {
        !self.live.load().chain.generations.is_empty()
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

/// The state of a hook that has never been bound.
const fn unbound() -> BindingRecord {
    BindingRecord {
        serial: 0,
        since: Timestamp(0),
        chain: Vec::new(),
        change: BindingChange::Unbound,
        rollback_reason: None,
    }
}

/// Reads the stored state of a slot.
fn read_state(path: &Path) -> Result<HookState, HookError> {
    let octets = match std::fs::read(path) {
        Ok(octets) => octets,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HookState::default()),
        Err(source) => return Err(HookError::Storage { path: path.to_owned(), source }),
    };
    serde_json::from_slice(&octets)
        .or_else(|error| {
            // Versions before 0.2 stored only the list of records.
            let records = serde_json::from_slice(&octets).map_err(|_| error)?;
            Ok(HookState { records, ..HookState::default() })
        })
        .map_err(|error: serde_json::Error| HookError::Storage {
            path: path.to_owned(),
            source: error.into(),
        })
}

fn counts<W: World>(chain: &Chain<W>, live: bool) -> Vec<PluginCounts> {
    let one = |one: &Arc<Generation<W>>| PluginCounts {
        by: one.by.clone(),
        tenant: one.binding.tenant.as_deref().map(Into::into),
        live,
        counts: one.counts(),
    };
    chain.generations.iter().map(one).collect()
}
