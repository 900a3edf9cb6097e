//! One plugin version at work with one policy document: warm instances, limits, counts.

use crate::capabilities::{Label, Powers, State, log, tables::Digits, tables::Tables};
use crate::counts::{AtomicCounts, Counts};
use crate::fault::{Fault, FaultKind, NO_ROOM, Watch};
use crate::library::Kept;
use crate::reference::{Reference, ReferenceKind};
use crate::runtime::{Runtime, TICK};
use crate::seen::Seen;
use crate::worlds::World;
use crate::{Binding, HookError, InstanceUse, patience};
use arc_swap::ArcSwap;
use bytes::Bytes;
use model::{DecidedBy, Directory, PeerId, Timestamp};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wasmtime::{PoolConcurrencyLimitError, Store, StoreLimitsBuilder, UpdateDeadline};

/// Octets that a row of a table may take in the host while it is handed over: the record, and a key of 30 digits.
const ROW: usize = 64;

/// How long a plugin may read its policy document, where its calls may not take longer anyway.
const CONFIGURATION: Duration = Duration::from_secs(5);

/// How long it may take to make instances for calls that are to come.
const WARMING: Duration = Duration::from_secs(2);

/// Octets that one host call or answer of a running plugin may hand over: 255 legs with names and addresses and a note stay
/// far below it, and so does an answer from the web.
const HANDED_OVER: usize = 2 << 20;

pub(crate) struct Instance<W: World> {
    pub(crate) store: Store<State>,
    pub(crate) guest: W::Guest,
}

/// What a generation is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To serve.
    Serve,
    /// To serve in any case: as it did before, after a restart or because there is a way back to it, or because somebody
    /// forces it. A table that is not on the shelf is empty for it.
    ServeAnyhow,
    /// To be asked and not used: it counts and keeps for itself.
    Aside,
}

/// What generations of all hooks have around them.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) powers: Arc<Powers>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    /// The peer that messages for our own subscribers go to, unless the resolver names another.
    pub(crate) home: Option<PeerId>,
}

/// Instances that wait for a call.
struct Idle<W: World> {
    waiting: Vec<Instance<W>>,
    /// So many waited at most: as many calls ran at a time.
    most: usize,
}

impl<W: World> Idle<W> {
    fn push(&mut self, instance: Instance<W>) {
        self.waiting.push(instance);
        self.most = self.most.max(self.waiting.len());
    }
}

pub(crate) struct Generation<W: World> {
    pub(crate) binding: Binding,
    pub(crate) by: Arc<DecidedBy>,
    pub(crate) around: Surroundings,
    pub(crate) watch: Watch,
    label: Arc<Label>,
    pre: W::Pre,
    engine: wasmtime::Engine,
    tables: Arc<Tables>,
    /// What its document names of the appliance's.
    references: Vec<Reference>,
    idle: Mutex<Idle<W>>,
    /// It is kept for a quick way back: one instance is enough.
    resting: AtomicBool,
    counts: AtomicCounts,
    /// Why it had too many faults.
    condemned: Mutex<Option<String>>,
}

impl<W: World> Generation<W> {
    /// Brings a binding to life: instantiate, configure, try out. Nothing is live yet.
    pub(crate) fn start(
        runtime: &Runtime,
        kept: &Kept,
        binding: Binding,
        around: Surroundings,
        purpose: Purpose,
    ) -> Result<Self, HookError> {
        let pre = W::pre(runtime, &kept.component, kept.wit)
            .map_err(|error| HookError::Broken(format!("{error:#}")))?;
        let by = Arc::new(DecidedBy { plugin: binding.plugin.clone(), version: binding.version.clone() });
        let label = Arc::new(Label::new(&binding, purpose, &around.powers)?);
        let mut generation = Self {
            tables: Arc::new(Tables::new(binding.table_rows)),
            binding,
            by,
            around,
            watch: Watch::default(),
            label,
            pre,
            engine: runtime.engine.clone(),
            references: Vec::new(),
            idle: Mutex::new(Idle { waiting: Vec::new(), most: 0 }),
            resting: AtomicBool::new(false),
            counts: AtomicCounts::default(),
            condemned: Mutex::default(),
        };
        let plugin = generation.binding.plugin.clone();
        let faulty = |stage| {
            let plugin = plugin.clone();
            move |why: String| HookError::Faulty { plugin, stage, why }
        };
        let mut first = match generation.instance() {
            Ok(instance) => instance,
            Err(Configured::Refused(why)) => {
                return Err(HookError::Refused { plugin: generation.binding.plugin.clone(), why });
            }
            Err(Configured::Fault(fault)) => return Err(faulty("configuration")(fault.what)),
        };
        generation.arm(&mut first, Timestamp(0));
        // It may share its counters with one that is live: what it is tried out with is no traffic.
        first.store.data_mut().seen = Seen::Nowhere;
        W::check(&mut first).map_err(|error| faulty("self-check")(Fault::of(&error).what))?;
        generation.references = std::mem::take(&mut first.store.data_mut().references).into_iter().collect();
        if generation.binding.instance == InstanceUse::Warm {
            generation.idle.lock().push(first);
        }
        Ok(generation)
    }

    /// What its document names and the appliance does not know now.
    pub(crate) fn unknown(&self) -> Vec<Reference> {
        let directory = self.around.directory.load();
        let is_known = |one: &&Reference| match one.kind {
            ReferenceKind::Peer => directory.id(&one.name).is_some(),
            ReferenceKind::Pool => self.around.powers.pools.has(&one.name),
            ReferenceKind::Table => self.around.powers.shelf.place(&one.name).is_some(),
        };
        self.references.iter().filter(|one| !is_known(one)).cloned().collect()
    }

    fn ticks(&self, time: Duration) -> u64 {
        let tick = TICK.as_millis().max(1);
        u64::try_from(time.as_millis().div_ceil(tick)).unwrap_or(u64::MAX / 2) + 1
    }

    fn arm(&self, instance: &mut Instance<W>, now: Timestamp) {
        instance.store.set_epoch_deadline(self.ticks(self.binding.deadline / 2));
        let state = instance.store.data_mut();
        state.looked = None;
        state.now = now;
        state.log_lines = log::LINES;
        state.fetches = crate::capabilities::http::FETCHES;
        state.sequence = 0;
    }

    /// A fresh instance, configured.
    fn instance(&self) -> Result<Instance<W>, Configured> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(self.binding.memory)
            .table_elements(20_000)
            .instances(64)
            .memories(8)
            .tables(64)
            .trap_on_grow_failure(true)
            .build();
        let state = State::new(limits, self.label.clone(), self.around.powers.clone(), self.tables.clone());
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        // What a guest hands over is copied into the host's memory, and a list may name one text a million times: the
        // copies have a limit of their own. A table of many rows needs more of it than a verdict.
        store.set_hostcall_fuel(self.binding.memory.max(self.binding.table_rows.saturating_mul(ROW)));
        // A policy document may be large: reading it may take longer than a call.
        let (call, configuration) = (self.binding.deadline, self.binding.deadline.max(CONFIGURATION));
        let ticks = (self.ticks(call / 2), self.ticks(configuration / 2));
        store.epoch_deadline_callback(move |mut context| {
            let state = context.data_mut();
            let (deadline, ticks) =
                if state.configuring { (configuration, ticks.1) } else { (call, ticks.0) };
            Ok(patience::judge(&mut state.looked, deadline, ticks).unwrap_or(UpdateDeadline::Interrupt))
        });
        store.set_epoch_deadline(ticks.1);
        let guest = W::instantiate(&self.pre, &mut store).map_err(|error| {
            let what = if error.is::<PoolConcurrencyLimitError>() {
                NO_ROOM.to_owned()
            } else {
                format!("no instance: {error:#}")
            };
            Configured::Fault(Fault { kind: FaultKind::Instance, what })
        })?;
        match W::configure(&guest, &mut store, &self.binding.policy) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(Configured::Refused(short(why, REFUSAL))),
            Err(error) => return Err(Configured::Fault(Fault::of(&error))),
        }
        let state = store.data_mut();
        (state.configuring, state.seen) = (false, Seen::Off);
        store.set_hostcall_fuel(HANDED_OVER);
        Ok(Instance { store, guest })
    }

    /// Asks the plugin its world's question.
    pub(crate) fn ask(
        &self,
        question: W::Question<'_>,
        now: Timestamp,
        seen: &mut Seen,
    ) -> Result<W::Answer, Fault> {
        self.call(now, seen, |instance| {
            W::prepare(instance.store.data_mut(), question);
            W::ask(self, instance, question)
        })
    }

    /// Lets an instance do something, and counts it. The outer error of `work` is a trap, which costs the instance; the
    /// inner one is an answer that makes no sense.
    pub(crate) fn call<A>(
        &self,
        now: Timestamp,
        seen: &mut Seen,
        work: impl FnOnce(&mut Instance<W>) -> wasmtime::Result<Result<A, Fault>>,
    ) -> Result<A, Fault> {
        let begun = Instant::now();
        let answer = self.work(now, seen, work);
        if !matches!(seen, Seen::Looking) {
            self.counts.call(begun.elapsed(), answer.as_ref().err());
        }
        answer
    }

    fn work<A>(
        &self,
        now: Timestamp,
        seen: &mut Seen,
        work: impl FnOnce(&mut Instance<W>) -> wasmtime::Result<Result<A, Fault>>,
    ) -> Result<A, Fault> {
        let warm = match self.binding.instance {
            InstanceUse::Warm => self.idle.lock().waiting.pop(),
            InstanceUse::PerCall => None,
        };
        let mut instance = match warm {
            Some(instance) => instance,
            None => self.instance().map_err(|failed| match failed {
                Configured::Fault(fault) => fault,
                Configured::Refused(what) => Fault { kind: FaultKind::Instance, what },
            })?,
        };
        self.arm(&mut instance, now);
        // Lent for the call, and taken back whatever came of it: the next plugin of the chain goes on with it.
        instance.store.data_mut().seen = std::mem::take(seen);
        let answer = work(&mut instance);
        let state = instance.store.data_mut();
        *seen = std::mem::take(&mut state.seen);
        (state.aside, state.waited) = (None, Duration::ZERO);
        // A fault drops the instance here; only a call that returned gives it back.
        let answer = answer.map_err(|error| Fault::of(&error))?;
        if self.binding.instance == InstanceUse::Warm {
            state.body = Bytes::new();
            state.destination = Digits::NONE;
            let mut idle = self.idle.lock();
            if idle.waiting.is_empty() || !self.resting.load(Relaxed) {
                idle.push(instance);
            }
        }
        answer
    }

    /// It is not asked any more, unless it is gone back to: its instances are others' to have, but for one.
    pub(crate) fn rest(&self) {
        self.resting.store(true, Relaxed);
        self.idle.lock().waiting.truncate(1);
    }

    /// How many calls ran at a time, at most.
    pub(crate) fn most_at_a_time(&self) -> usize {
        self.idle.lock().most
    }

    /// Makes instances until so many wait, while the house has room and it does not take too long: whoever calls first is
    /// not to wait until its document is read.
    pub(crate) fn warm(&self, wanted: usize) {
        if self.binding.instance == InstanceUse::PerCall {
            return;
        }
        let begun = Instant::now();
        while self.idle.lock().waiting.len() < wanted && begun.elapsed() < WARMING {
            let Ok(instance) = self.instance() else { return };
            self.idle.lock().push(instance);
        }
    }

    /// It is asked again.
    pub(crate) fn wake(&self) {
        self.resting.store(false, Relaxed);
    }

    /// Whether the log may be told of this plugin now: its faults and its own lines have one budget.
    pub(crate) fn may_say(&self) -> bool {
        self.label.may_say()
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts { lines_left_out: self.label.lines.left_out(), ..self.counts.read() }
    }

    /// It has had too many faults, for this reason.
    pub(crate) fn condemn(&self, why: String) {
        *self.condemned.lock() = Some(why);
    }

    pub(crate) fn condemnation(&self) -> Option<String> {
        self.condemned.lock().clone()
    }

    /// Another one of the same binding may stand in for this one.
    pub(crate) fn serves(&self, binding: &Binding) -> bool {
        self.binding == *binding
    }
}

enum Configured {
    Refused(String),
    Fault(Fault),
}

/// Octets of a plugin's words about its document or its settlements: for a person, not for a disk.
pub(crate) const REFUSAL: usize = 2_000;

/// A guest's words, cut where they are longer than anybody reads.
pub(crate) fn short(mut words: String, octets: usize) -> String {
    if words.len() > octets {
        let end = (0..=octets).rev().find(|end| words.is_char_boundary(*end)).unwrap_or(0);
        words.truncate(end);
    }
    words
}

/// A note is for one line of a trace.
pub(crate) fn note(note: Option<String>) -> Option<Box<str>> {
    note.map(|note| short(note, 200).into_boxed_str())
}
