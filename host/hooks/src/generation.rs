//! One plugin version at work with one policy document: warm instances, limits, counts.

use crate::bindings::exports::switchyard::hooks::routing as wit;
use crate::bindings::switchyard::hooks::types as wit_types;
use crate::bindings::{Router, RouterPre};
use crate::capabilities::{State, log, peers::Board, tables::Digits, tables::Tables};
use crate::runtime::{Runtime, TICK};
use crate::{Binding, HookError, InstanceUse, patience};
use arc_swap::ArcSwap;
use bytes::Bytes;
use model::{Address, DecidedBy, Directory, Leg, Message, RejectReason, Timestamp, Verdict};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wasmtime::component::Component;
use wasmtime::{Store, StoreLimitsBuilder, Trap, UpdateDeadline};

/// What kind of fault a call ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The plugin trapped (or panicked).
    Trap,
    /// It did not return in time.
    Deadline,
    /// It ran out of the memory that its binding allows.
    Memory,
    /// Its verdict makes no sense: an unknown peer, no leg.
    Verdict,
    /// No instance could be made.
    Instance,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Trap, Self::Deadline, Self::Memory, Self::Verdict, Self::Instance];

    /// The word used in metrics and notes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::Verdict => "verdict",
            Self::Instance => "instance",
        }
    }
}

/// A call that gave no verdict.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// In words.
    pub what: String,
}

/// Calls, faults and time of one generation. Buckets of a histogram are in powers of two of a microsecond, from 1.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Counts {
    /// Calls.
    pub calls: u64,
    /// Faults in the order of [`FaultKind::ALL`].
    pub faults: [u64; 5],
    /// Nanoseconds in all.
    pub nanoseconds: u64,
    /// Calls of less than 1, 2, 4 … 2^18 µs, and longer ones.
    pub buckets: [u64; 20],
}

#[derive(Debug, Default)]
struct AtomicCounts {
    calls: AtomicU64,
    faults: [AtomicU64; 5],
    nanoseconds: AtomicU64,
    buckets: [AtomicU64; 20],
}

/// Octets that a row of a table may take in the host while it is handed over: the record, and a key of 30 digits.
const ROW: usize = 64;

/// How long a plugin may read its policy document, where its calls may not take longer anyway.
const CONFIGURATION: Duration = Duration::from_secs(5);

/// Octets that one host call or verdict of a running plugin may hand over: 255 legs with names and addresses and a
/// note stay far below it.
const HANDED_OVER: usize = 1 << 20;

struct Instance {
    store: Store<State>,
    router: Router,
}

/// What a plugin said, in the host's words; `None` is pass.
pub(crate) struct Decision {
    pub(crate) verdict: Option<Verdict>,
    pub(crate) note: Option<String>,
}

pub(crate) struct Generation {
    pub(crate) binding: Binding,
    pub(crate) by: Arc<DecidedBy>,
    name: Arc<str>,
    pre: RouterPre<State>,
    engine: wasmtime::Engine,
    tables: Arc<Tables>,
    board: Arc<Board>,
    directory: Arc<ArcSwap<Directory>>,
    idle: Mutex<Vec<Instance>>,
    counts: AtomicCounts,
}

impl Generation {
    /// Brings a binding to life: instantiate, configure, try out. Nothing is live yet.
    pub(crate) fn start(
        runtime: &Runtime,
        component: &Component,
        binding: Binding,
        board: Arc<Board>,
        directory: Arc<ArcSwap<Directory>>,
    ) -> Result<Self, HookError> {
        let pre = runtime
            .linker
            .instantiate_pre(component)
            .and_then(RouterPre::new)
            .map_err(|error| HookError::Broken(format!("{error:#}")))?;
        let by = Arc::new(DecidedBy { plugin: binding.plugin.clone(), version: binding.version.clone() });
        let generation = Self {
            name: binding.plugin.as_str().into(),
            tables: Arc::new(Tables::new(binding.table_rows)),
            binding,
            by,
            pre,
            engine: runtime.engine.clone(),
            board,
            directory,
            idle: Mutex::default(),
            counts: AtomicCounts::default(),
        };
        let faulty = |stage| {
            let plugin = generation.binding.plugin.clone();
            move |why: String| HookError::Faulty { plugin, stage, why }
        };
        let mut first = match generation.instance() {
            Ok(instance) => instance,
            Err(Configured::Refused(why)) => {
                return Err(HookError::Refused { plugin: generation.binding.plugin.clone(), why });
            }
            Err(Configured::Fault(fault)) => return Err(faulty("configuration")(fault.what)),
        };
        // The self-check: a message that no plugin has a reason to choke on.
        let probe = wit::Message {
            origin: "self-check",
            source: wit_types::AddressParam { ton: 1, npi: 1, value: "10000" },
            destination: wit_types::AddressParam { ton: 1, npi: 1, value: "1000000000" },
            service_type: None,
            data_coding: 0,
            priority: 0,
            length: 0,
            udhi: false,
            wants_receipt: false,
        };
        generation.arm(&mut first, Timestamp(0), Digits::of(b"1000000000"), Bytes::new());
        first
            .router
            .switchyard_hooks_routing()
            .call_route(&mut first.store, probe)
            .map_err(|error| faulty("self-check")(fault_of(&error).what))?;
        generation.idle.lock().push(first);
        Ok(generation)
    }

    fn ticks(&self, time: Duration) -> u64 {
        let tick = TICK.as_millis().max(1);
        u64::try_from(time.as_millis().div_ceil(tick)).unwrap_or(u64::MAX / 2) + 1
    }

    fn arm(&self, instance: &mut Instance, now: Timestamp, destination: Digits, body: Bytes) {
        instance.store.set_epoch_deadline(self.ticks(self.binding.deadline / 2));
        let state = instance.store.data_mut();
        state.looked = None;
        state.now = now;
        state.destination = destination;
        state.body = body;
        state.log_lines = log::LINES;
    }

    /// A fresh instance, configured.
    fn instance(&self) -> Result<Instance, Configured> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(self.binding.memory)
            .table_elements(20_000)
            .instances(64)
            .memories(8)
            .tables(64)
            .trap_on_grow_failure(true)
            .build();
        let mut store = Store::new(
            &self.engine,
            State {
                limits,
                plugin: self.name.clone(),
                now: Timestamp(0),
                destination: Digits::NONE,
                body: Bytes::new(),
                board: self.board.clone(),
                tables: self.tables.clone(),
                configuring: true,
                looked: None,
                log_lines: log::LINES,
            },
        );
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
        let router = self.pre.instantiate(&mut store).map_err(|error| {
            Configured::Fault(Fault { kind: FaultKind::Instance, what: format!("no instance: {error:#}") })
        })?;
        match router.switchyard_hooks_routing().call_configure(&mut store, &self.binding.policy) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => return Err(Configured::Refused(why)),
            Err(error) => return Err(Configured::Fault(fault_of(&error))),
        }
        store.data_mut().configuring = false;
        store.set_hostcall_fuel(HANDED_OVER);
        Ok(Instance { store, router })
    }

    /// Asks the plugin about one message.
    pub(crate) fn route(&self, message: &Message, now: Timestamp) -> Result<Decision, Fault> {
        let begun = Instant::now();
        let answer = self.ask(message, now);
        let taken = begun.elapsed();
        let nanoseconds = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        self.counts.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        let bucket = (u64::BITS - (nanoseconds / 1000).leading_zeros()).min(19) as usize;
        self.counts.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        if let Err(fault) = &answer {
            let index = FaultKind::ALL.iter().position(|kind| *kind == fault.kind).unwrap_or(0);
            self.counts.faults[index].fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    fn ask(&self, message: &Message, now: Timestamp) -> Result<Decision, Fault> {
        let warm = match self.binding.instance {
            InstanceUse::Warm => self.idle.lock().pop(),
            InstanceUse::PerCall => None,
        };
        let mut instance = match warm {
            Some(instance) => instance,
            None => self.instance().map_err(|failed| match failed {
                Configured::Fault(fault) => fault,
                Configured::Refused(what) => Fault { kind: FaultKind::Instance, what },
            })?,
        };
        let digits = Digits::of_address(&message.destination.value);
        self.arm(&mut instance, now, digits, message.text.octets.clone());
        let directory = self.directory.load();
        let origin = directory.name(message.origin);
        let (source, destination) = (message.source.text(), message.destination.text());
        let service_type = String::from_utf8_lossy(&message.service_type);
        let address =
            |address: &Address, value| wit_types::AddressParam { ton: address.ton, npi: address.npi, value };
        let question = wit::Message {
            origin: &origin,
            source: address(&message.source, &source),
            destination: address(&message.destination, &destination),
            service_type: (!service_type.is_empty()).then_some(&*service_type),
            data_coding: message.text.data_coding,
            priority: message.priority.level(),
            length: u32::try_from(message.text.octets.len()).unwrap_or(u32::MAX),
            udhi: message.text.udhi,
            wants_receipt: message.receipts.any(),
        };
        // A fault drops the instance here; only a call that returned gives it back.
        let decision = instance
            .router
            .switchyard_hooks_routing()
            .call_route(&mut instance.store, question)
            .map_err(|error| fault_of(&error))?;
        if self.binding.instance == InstanceUse::Warm {
            instance.store.data_mut().body = Bytes::new();
            self.idle.lock().push(instance);
        }
        let verdict = match decision.verdict {
            wit_types::Verdict::Pass => None,
            wit_types::Verdict::Forward(legs) => Some(Verdict::Forward(legs_in(legs, &directory)?)),
            wit_types::Verdict::Hold(until) => Some(Verdict::Hold(Timestamp(until))),
            wit_types::Verdict::Reject(reason) => Some(Verdict::Reject(match reason {
                wit_types::RejectReason::NoRoute => RejectReason::NoRoute,
                wit_types::RejectReason::InvalidDestination => RejectReason::InvalidDestination,
                wit_types::RejectReason::InvalidSource => RejectReason::InvalidSource,
                wit_types::RejectReason::Prohibited => RejectReason::Prohibited,
                wit_types::RejectReason::NotAuthorised => RejectReason::NotAuthorised,
                wit_types::RejectReason::TryLater => RejectReason::TryLater,
            })),
        };
        Ok(Decision { verdict, note: decision.note.map(shorten) })
    }

    pub(crate) fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            calls: load(&self.counts.calls),
            faults: std::array::from_fn(|index| load(&self.counts.faults[index])),
            nanoseconds: load(&self.counts.nanoseconds),
            buckets: std::array::from_fn(|index| load(&self.counts.buckets[index])),
        }
    }
}

/// A note is for one line of a trace.
fn shorten(mut note: String) -> String {
    if note.len() > 200 {
        let end = (0..=200).rev().find(|end| note.is_char_boundary(*end)).unwrap_or(0);
        note.truncate(end);
    }
    note
}

enum Configured {
    Refused(String),
    Fault(Fault),
}

fn address_in(address: &wit_types::AddressResult) -> Result<Address, Fault> {
    if address.value.len() > 20 || address.value.contains('\0') {
        let what = format!("an address of {} octets, or with a NUL; at most 20 fit", address.value.len());
        return Err(Fault { kind: FaultKind::Verdict, what });
    }
    Ok(Address::new(address.ton, address.npi, address.value.as_bytes()))
}

fn legs_in(legs: Vec<wit_types::Leg>, directory: &Directory) -> Result<Vec<Leg>, Fault> {
    if legs.is_empty() || legs.len() > 255 {
        let what = format!("forwarded to {} legs; 1 to 255 make sense", legs.len());
        return Err(Fault { kind: FaultKind::Verdict, what });
    }
    legs.into_iter()
        .map(|leg| {
            let peer = directory.id(&leg.peer).ok_or_else(|| Fault {
                kind: FaultKind::Verdict,
                what: format!("forwarded to peer {:?}, which is not in the configuration", leg.peer),
            })?;
            Ok(Leg {
                peer,
                rank: leg.rank,
                weight: leg.weight,
                cost: leg.cost,
                longest_wait: leg.longest_wait.map(Duration::from_millis),
                source: leg.source.as_ref().map(address_in).transpose()?,
                destination: leg.destination.as_ref().map(address_in).transpose()?,
                resolve: false,
                imsi: None,
            })
        })
        .collect()
}

fn fault_of(error: &wasmtime::Error) -> Fault {
    if let Some(Trap::Interrupt) = error.downcast_ref::<Trap>() {
        return Fault { kind: FaultKind::Deadline, what: "did not return within its deadline".to_owned() };
    }
    let text = format!("{error:#}");
    if text.contains("forcing trap when growing memory") || text.contains("memory minimum size") {
        return Fault {
            kind: FaultKind::Memory,
            what: "wanted more memory than its binding allows".to_owned(),
        };
    }
    let what = error.root_cause().to_string().lines().next().unwrap_or("trap").to_owned();
    Fault { kind: FaultKind::Trap, what: format!("trapped: {what}") }
}
