//! A generation: one plugin version running with one policy document, its warm instances, limits and counts.

use crate::call_counts::{AtomicCallCounts, CallCounts};
use crate::fault::{Fault, FaultKind, FaultWatch, INSTANCE_LIMIT_REACHED};
use crate::fault_examples::{FailedQuestion, FaultDetails};
use crate::guest_function::{Configure, Exports, GuestFunction};
use crate::host_answer::HostAnswer;
use crate::host_call_log::HostCallLog;
use crate::host_calls::{
    CurrentMessage, GenerationContext, HostCallCounts, HostServices, InstanceState, Purpose, log,
    tables::Digits, tables::PluginTables,
};
use crate::linked_component::LinkedComponent;
use crate::memory_limits::MemoryLimits;
use crate::policy_reference::PolicyReference;
use crate::profile::{self, Profiler};
use crate::runtime::{Runtime, TICK};
use crate::tenant_costs::{TenantCost, TenantCosts};
use crate::text_limits::{MAX_REASON_OCTETS, truncate};
use crate::warm_instances::WarmInstances;
use crate::worlds::World;
use crate::{HookError, deadline};
use api::{Binding, InstanceUse, PolicyReferenceKind};
use arc_swap::ArcSwap;
use model::{Directory, PeerId, PluginVersion, Timestamp};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::{PoolConcurrencyLimitError, Store, StoreLimitsBuilder, UpdateDeadline};

/// Host memory of one table row while it is copied, in octets: the record and a key of 30 digits.
const ROW_OCTETS: usize = 64;

/// Minimum time limit of `configure`.
const MIN_CONFIGURE_TIME: Duration = Duration::from_secs(5);

/// Time limit for making warm instances.
const MAX_WARM_TIME: Duration = Duration::from_secs(2);

/// Octets that one host call or answer may copy into the host. 255 legs with names, addresses and a note stay far
/// below, and so does an HTTP response.
const MAX_HOSTCALL_OCTETS: usize = 2 << 20;

pub(crate) struct Instance<W: World> {
    pub(crate) store: Store<InstanceState>,
    /// The functions of the world.
    pub(crate) guest: W::Guest,
}

/// The host's services for generations of all hooks.
#[derive(Clone)]
pub(crate) struct HostEnvironment {
    pub(crate) services: Arc<HostServices>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    /// The default peer for messages to the operator's own subscribers.
    pub(crate) home: Option<PeerId>,
    /// The costs of each tenant's plugins.
    pub(crate) tenant_costs: Arc<TenantCosts>,
}

pub(crate) struct Generation<W: World> {
    pub(crate) binding: Arc<Binding>,
    pub(crate) by: Arc<PluginVersion>,
    pub(crate) environment: HostEnvironment,
    pub(crate) watch: FaultWatch,
    context: Arc<GenerationContext>,
    component: Arc<LinkedComponent>,
    /// Whether the plugin takes batches.
    pub(crate) accepts_batches: bool,
    engine: wasmtime::Engine,
    /// The epoch's deadline at the start of a call, in increments.
    call_ticks: u64,
    /// Samples the calls.
    profiler: Option<Arc<Profiler>>,
    tables: Arc<PluginTables>,
    /// Names of the appliance's objects in the policy document.
    references: Vec<PolicyReference>,
    warm: Arc<WarmInstances<W>>,
    pub(crate) counts: AtomicCallCounts,
    /// The costs of its calls for the tenant that it serves.
    tenant_cost: Option<Arc<TenantCost>>,
    /// The reason why it exceeded its fault tolerance; `None` if it did not.
    fault_reason: Mutex<Option<String>>,
}

impl<W: World> Generation<W> {
    /// Starts a binding: instantiates, configures and self-checks the plugin. It serves no traffic yet.
    pub(crate) fn start(
        runtime: &Runtime,
        component: Arc<LinkedComponent>,
        binding: Binding,
        environment: HostEnvironment,
        purpose: Purpose,
    ) -> Result<Self, HookError> {
        let by = Arc::new(PluginVersion { plugin: binding.plugin.clone(), version: binding.version.clone() });
        let context = Arc::new(GenerationContext::new(&binding, purpose, &environment.services)?);
        let call_ticks = match runtime.profiler {
            Some(_) => profile::NEXT_TICK,
            None => ticks(binding.deadline / 2),
        };
        let share = binding.tenant.is_some().then(|| runtime.tenant_instances.clone());
        let serves = matches!(purpose, Purpose::Serve | Purpose::ServeUnchecked);
        let tenant = binding.tenant.as_deref().filter(|_| serves);
        let tenant_cost = tenant.map(|tenant| environment.tenant_costs.of(tenant));
        let mut generation = Self {
            tables: Arc::new(PluginTables::new(binding.table_rows)),
            binding: Arc::new(binding),
            by,
            environment,
            watch: FaultWatch::default(),
            context,
            component,
            accepts_batches: false,
            engine: runtime.engine.clone(),
            call_ticks,
            profiler: runtime.profiler.clone(),
            references: Vec::new(),
            warm: WarmInstances::new(share),
            tenant_cost,
            counts: AtomicCallCounts::default(),
            fault_reason: Mutex::default(),
        };
        let plugin = generation.binding.plugin.clone();
        let faulty = |stage| {
            let plugin = plugin.clone();
            move |why: String| HookError::Faulty { plugin, stage, why }
        };
        let mut first = match generation.instance() {
            Ok(instance) => instance,
            Err(StartError::Refused(why)) => {
                return Err(HookError::Refused { plugin: generation.binding.plugin.clone(), why });
            }
            Err(StartError::Fault(fault)) => return Err(faulty("configuration")(fault.summary())),
        };
        generation.arm(&mut first, Timestamp(0));
        // The self-check is not traffic and must not count, because the counters may be shared with a live plugin.
        first.store.data_mut().call_log = HostCallLog::Discard;
        let checked = W::check(&mut first);
        first.store.data_mut().host_calls = HostCallCounts::default();
        let report = first.store.data_mut().report.take();
        checked.map_err(|error| faulty("self-check")(Fault::of(&error, report).summary()))?;
        generation.accepts_batches =
            generation.binding.instance == InstanceUse::Warm && W::accepts_batches(&first.guest);
        generation.references = std::mem::take(&mut first.store.data_mut().references).into_iter().collect();
        if generation.binding.instance == InstanceUse::Warm {
            generation.warm.add(first);
        }
        Ok(generation)
    }

    /// Names in the policy document that the appliance does not know now.
    pub(crate) fn unknown(&self) -> Vec<PolicyReference> {
        let directory = self.environment.directory.load();
        let is_known = |one: &&PolicyReference| match one.kind {
            PolicyReferenceKind::Peer => directory.id(&one.name).is_some(),
            PolicyReferenceKind::Pool => self.environment.services.pool_snapshots.has(&one.name),
            PolicyReferenceKind::Table => self.environment.services.tables.handle(&one.name).is_some(),
        };
        self.references.iter().filter(|one| !is_known(one)).cloned().collect()
    }

    fn arm(&self, instance: &mut Instance<W>, now: Timestamp) {
        instance.store.set_epoch_deadline(self.call_ticks);
        let state = instance.store.data_mut();
        state.last_check = None;
        state.now = now;
        state.log_lines_left = log::LINES;
        state.fetches_left = crate::host_calls::http::MAX_FETCHES_PER_CALL;
        (state.has_sent_request, state.has_unanswered_request) = (false, false);
        state.dns_queries_left = crate::host_calls::dns::MAX_QUERIES_PER_CALL;
        state.random_sequence = model::Random::new(0);
    }

    /// Makes and configures an instance.
    fn instance(&self) -> Result<Instance<W>, StartError> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(self.binding.memory)
            .table_elements(20_000)
            .instances(64)
            .memories(8)
            .tables(64)
            .trap_on_grow_failure(true)
            .build();
        let state = InstanceState::new(
            MemoryLimits::new(limits, self.counts.memory.clone()),
            self.context.clone(),
            self.environment.services.clone(),
            self.tables.clone(),
        );
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        // Values from a guest are copied into the host's memory, and a list may name one text a million times, so
        // copies have their own limit. A table with many rows needs more than a verdict.
        store.set_hostcall_fuel(self.binding.memory.max(self.binding.table_rows.saturating_mul(ROW_OCTETS)));
        // A policy document may be large: reading it may take longer than a call.
        let (call, configuration) = (self.binding.deadline, self.binding.deadline.max(MIN_CONFIGURE_TIME));
        let ticks = (self.call_ticks, ticks(configuration / 2));
        store.epoch_deadline_callback(move |mut context| {
            let state = context.data_mut();
            if state.is_host_time_over() {
                return Ok(UpdateDeadline::Interrupt);
            }
            let (deadline, ticks) =
                if state.configuring { (configuration, ticks.1) } else { (call, ticks.0) };
            Ok(deadline::check_deadline(&mut state.last_check, deadline, ticks)
                .unwrap_or(UpdateDeadline::Interrupt))
        });
        store.set_epoch_deadline(ticks.1);
        if let Some(profiler) = &self.profiler {
            profiler.attach(&mut store, call, configuration);
        }
        let instantiated = self.component.pre.instantiate(&mut store).and_then(|instance| {
            let exports = &mut Exports {
                store: &mut store,
                instance,
                interface: W::INTERFACE,
                version: self.component.wit,
            };
            Ok((GuestFunction::<Configure>::find(exports)?, W::guest(exports)?))
        });
        let (configure, guest) = instantiated.map_err(|error| {
            let what = if error.is::<PoolConcurrencyLimitError>() {
                INSTANCE_LIMIT_REACHED.to_owned()
            } else {
                format!("no instance: {error:#}")
            };
            StartError::Fault(Fault::new(FaultKind::Instance, what))
        })?;
        match configure.call(&mut store, (&self.binding.policy,)) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(StartError::Refused(truncate(why, MAX_REASON_OCTETS))),
            Err(error) => {
                return Err(StartError::Fault(Fault::of(&error, store.data_mut().report.take())));
            }
        }
        let state = store.data_mut();
        (state.configuring, state.call_log) = (false, HostCallLog::Off);
        (state.host_time, state.disk_wait) = (Duration::ZERO, Duration::ZERO);
        state.host_calls = HostCallCounts::default();
        store.set_hostcall_fuel(MAX_HOSTCALL_OCTETS);
        Ok(Instance { store, guest })
    }

    /// Calls the plugin's function. `earlier`: see [`World::prepare`].
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        earlier: Option<&W::Answer>,
        now: Timestamp,
        call_log: &mut HostCallLog,
    ) -> Result<W::Answer, Fault> {
        self.call(now, call_log, |instance| {
            W::prepare(instance.store.data_mut(), question, earlier);
            W::ask(self, instance, question)
        })
    }

    /// Runs `work` on an instance and counts the call. The outer error of `work` is a trap, which costs the instance;
    /// the inner error is an invalid answer.
    pub(crate) fn call<A>(
        &self,
        now: Timestamp,
        call_log: &mut HostCallLog,
        work: impl FnOnce(&mut Instance<W>) -> wasmtime::Result<Result<A, Fault>>,
    ) -> Result<A, Fault> {
        let started = Instant::now();
        let answer = self.work(now, call_log, work);
        if !matches!(call_log, HostCallLog::Preview) {
            self.count_call(started.elapsed(), answer.as_ref().err());
        }
        answer
    }

    fn work<A>(
        &self,
        now: Timestamp,
        call_log: &mut HostCallLog,
        work: impl FnOnce(&mut Instance<W>) -> wasmtime::Result<Result<A, Fault>>,
    ) -> Result<A, Fault> {
        let mut instance = self.take_instance()?;
        let answer = self.work_on(&mut instance, now, call_log, work)?;
        self.put_back(instance);
        answer
    }

    /// An instance for one call, or for one batch of calls.
    pub(crate) fn take_instance(&self) -> Result<Instance<W>, Fault> {
        let warm = match self.binding.instance {
            InstanceUse::Warm => self.warm.take(),
            InstanceUse::PerCall => None,
        };
        match warm {
            Some(instance) => Ok(instance),
            None => self.instance().map_err(|failed| match failed {
                StartError::Fault(fault) => fault,
                StartError::Refused(what) => Fault::new(FaultKind::Instance, what),
            }),
        }
    }

    /// Runs `work` on an instance. After an outer error, the instance must not be used again.
    pub(crate) fn work_on<A>(
        &self,
        instance: &mut Instance<W>,
        now: Timestamp,
        call_log: &mut HostCallLog,
        work: impl FnOnce(&mut Instance<W>) -> wasmtime::Result<Result<A, Fault>>,
    ) -> Result<Result<A, Fault>, Fault> {
        self.arm(instance, now);
        // The instance borrows the log for the call; the next plugin of the chain continues it.
        instance.store.data_mut().call_log = std::mem::take(call_log);
        let answer = work(instance);
        let state = instance.store.data_mut();
        *call_log = std::mem::take(&mut state.call_log);
        let report = state.report.take();
        let answer = answer
            .map(|answer| answer.map_err(|fault| Fault { sent_request: state.has_sent_request, ..fault }));
        let answer = answer.map_err(|error| {
            let mut fault = Fault { sent_request: state.has_sent_request, ..Fault::of(&error, report) };
            if fault.kind == FaultKind::Deadline && state.is_host_time_over() {
                fault.what = state.describe_host_time();
            }
            fault
        });
        (state.kv_overlay, state.host_time, state.disk_wait) = (None, Duration::ZERO, Duration::ZERO);
        if matches!(call_log, HostCallLog::Preview) {
            state.host_calls = HostCallCounts::default();
        } else {
            self.counts.add_host_calls(&mut state.host_calls);
        }
        answer
    }

    /// Keeps an instance for later calls.
    pub(crate) fn put_back(&self, mut instance: Instance<W>) {
        if self.binding.instance == InstanceUse::Warm {
            let state = instance.store.data_mut();
            state.message = CurrentMessage::default();
            state.destination = Digits::NONE;
            state.peer = None;
            self.warm.put_back(instance);
        }
    }

    /// A fault with all inputs of its call.
    pub(crate) fn fault_details(
        &self,
        fault: Fault,
        at: Timestamp,
        question: FailedQuestion,
        host_answers: Vec<HostAnswer>,
    ) -> FaultDetails {
        FaultDetails { by: self.by.clone(), binding: self.binding.clone(), at, fault, question, host_answers }
    }

    /// Retires the generation after its replacement: see [`WarmInstances::retire`].
    pub(crate) fn retire(&self) {
        self.warm.retire();
    }

    /// Counts a call and its time.
    pub(crate) fn count_call(&self, taken: Duration, fault: Option<&Fault>) {
        self.counts.call(taken, fault);
        if let Some(cost) = &self.tenant_cost {
            cost.call(taken, fault);
        }
    }

    /// Its component.
    pub(crate) fn component(&self) -> &LinkedComponent {
        &self.component
    }

    /// Peak number of concurrent calls.
    pub(crate) fn peak_concurrency(&self) -> usize {
        self.warm.peak()
    }

    /// Makes instances until `target` are idle, within the instance limit and [`MAX_WARM_TIME`], so that the first
    /// calls do not wait for `configure`.
    pub(crate) fn warm(&self, target: usize) {
        if self.binding.instance == InstanceUse::PerCall || self.warm.are_on_demand() {
            return;
        }
        let started = Instant::now();
        while self.warm.len() < target && started.elapsed() < MAX_WARM_TIME {
            let Ok(instance) = self.instance() else { return };
            self.warm.add(instance);
        }
    }

    /// Puts a retired generation back into service.
    pub(crate) fn reactivate(&self) {
        self.warm.reactivate();
    }

    /// Whether a log line about this plugin is within its budget. Faults and the plugin's own lines share the budget.
    pub(crate) fn may_log(&self) -> bool {
        self.context.may_log()
    }

    pub(crate) fn counts(&self) -> CallCounts {
        CallCounts { lines_left_out: self.context.log_budget.dropped(), ..self.counts.read() }
    }

    /// Names of peers in the policy document of a tenant's binding, to which it may not forward.
    pub(crate) fn peers_not_allowed(&self) -> Vec<&str> {
        let peers = self.references.iter().filter(|one| one.kind == PolicyReferenceKind::Peer);
        let names = peers.map(|one| one.name.as_str());
        names.filter(|peer| !self.context.may_use_peer(peer)).collect()
    }

    /// Records why the generation exceeded its fault tolerance.
    pub(crate) fn set_fault_reason(&self, why: String) {
        *self.fault_reason.lock() = Some(why);
    }

    pub(crate) fn fault_reason(&self) -> Option<String> {
        self.fault_reason.lock().clone()
    }

    /// Whether it was started for exactly this binding.
    pub(crate) fn has_binding(&self, binding: &Binding) -> bool {
        *self.binding == *binding
    }
}

/// A time in increments of the epoch, rounded up.
fn ticks(time: Duration) -> u64 {
    let tick = TICK.as_millis().max(1);
    u64::try_from(time.as_millis().div_ceil(tick)).unwrap_or(u64::MAX / 2) + 1
}

enum StartError {
    Refused(String),
    Fault(Fault),
}
