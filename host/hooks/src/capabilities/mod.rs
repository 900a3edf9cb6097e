//! What plugins are given: one module per WIT interface, with its limits.

mod ambient;
mod body;
mod clock;
mod counters;
mod hlr;
pub(crate) mod http;
mod kv;
pub(crate) mod log;
pub(crate) mod numbers;
pub(crate) mod peers;
mod previous;
pub(crate) mod tables;

use crate::generation::Purpose;
use crate::reference::{self, Reference, ReferenceKind};
use crate::seen::Seen;
use crate::{Binding, HookError};
use bytes::Bytes;
use capabilities::{
    CounterGrant, Counters, DurableCounter, DurableCounters, Fetch, FetchLimits, Grant, Hlr, LogBudget,
    LogBudgets, Shelf, Space, Values,
};
use model::{SenderWish, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::StoreLimits;

/// What the house has to give. A harness gives its own.
pub struct Powers {
    /// The states of peers.
    pub board: Arc<peers::Board>,
    /// The states of number pools.
    pub pools: Arc<numbers::PoolBoard>,
    /// Sliding windows.
    pub counters: Arc<Counters>,
    /// Counts of calendar periods, for the counters that bindings name.
    pub durable_counters: Arc<DurableCounters>,
    /// The plugins' durable store.
    pub values: Arc<dyn Values>,
    /// The way out by HTTP.
    pub fetch: Arc<dyn Fetch>,
    /// The appliance's tables.
    pub shelf: Arc<Shelf>,
    /// The home location register.
    pub hlr: Arc<dyn Hlr>,
    /// How much plugins may write to the log.
    pub lines: LogBudgets,
}

/// What the instances of one generation have in common.
pub(crate) struct Label {
    pub(crate) plugin: Arc<str>,
    pub(crate) version: Arc<str>,
    /// Its counters: the plugin's, or its own while it is in shadow.
    pub(crate) space: Arc<Space>,
    /// The counters that its binding names: the plugin's, or its own over the plugin's while it is tried out.
    pub(crate) durable: Vec<Arc<DurableCounter>>,
    pub(crate) grants: crate::Grants,
    /// Where it may go by HTTP.
    pub(crate) places: capabilities::Grants,
    /// What it keeps: the plugin's, or its own over the plugin's while it is tried out.
    pub(crate) values: Arc<dyn Values>,
    pub(crate) lines: Arc<LogBudget>,
    /// It has served before, with the tables that it opens.
    pub(crate) had_tables: bool,
}

/// The name of the counters of a plugin that is only tried out.
pub(crate) fn shadow_space(plugin: &str) -> String {
    format!("{plugin}#shadow")
}

impl Label {
    pub(crate) fn new(binding: &Binding, purpose: Purpose, powers: &Powers) -> Result<Self, HookError> {
        let aside = purpose == Purpose::Aside;
        let grants = &binding.grants;
        let places = grants
            .http
            .iter()
            .map(|place| Grant::parse(place).map_err(|error| HookError::BadGrant(error.to_string())))
            .collect::<Result<Vec<_>, _>>()?;
        let limits = FetchLimits {
            time_out: Duration::from_millis(grants.http_timeout_ms),
            answer: grants.http_answer,
            ..FetchLimits::default()
        };
        let bad_counter = |error: capabilities::Error| HookError::BadCounter(error.to_string());
        CounterGrant::check_all(&grants.counters).map_err(bad_counter)?;
        let durable = grants.counters.iter().map(|grant| {
            let counter = powers.durable_counters.counter(&binding.plugin, grant)?;
            Ok(if aside { counter.aside() } else { counter })
        });
        let durable = durable.collect::<Result<Vec<_>, _>>().map_err(bad_counter)?;
        let space = if aside { shadow_space(&binding.plugin) } else { binding.plugin.clone() };
        let values: Arc<dyn Values> =
            if aside { Arc::new(kv::Aside::over(powers.values.clone())) } else { powers.values.clone() };
        Ok(Self {
            plugin: binding.plugin.as_str().into(),
            version: binding.version.as_str().into(),
            space: powers.counters.space(&space),
            durable,
            grants: grants.clone(),
            places: capabilities::Grants { places, limits },
            values,
            lines: powers.lines.of(&binding.plugin),
            had_tables: purpose == Purpose::ServeAnyhow,
        })
    }

    /// Whether the log may be told something of this plugin now.
    pub(crate) fn may_say(&self) -> bool {
        self.lines.take(crate::hooks::wall()).is_some()
    }
}

/// What the host keeps for one instance.
pub(crate) struct State {
    pub(crate) limits: StoreLimits,
    pub(crate) label: Arc<Label>,
    pub(crate) powers: Arc<Powers>,
    /// When the call began.
    pub(crate) now: Timestamp,
    /// The destination of the message at hand, as digits.
    pub(crate) destination: tables::Digits,
    /// The text of the message at hand.
    pub(crate) body: Bytes,
    /// The number that the call wants for the message's sender.
    pub(crate) sender: Option<Box<SenderWish>>,
    pub(crate) tables: Arc<tables::Tables>,
    /// `configure` is running: tables may be filled and opened.
    pub(crate) configuring: bool,
    /// What the document names, as far as `configure` has asked for it.
    pub(crate) references: BTreeSet<Reference>,
    /// Set when a deadline is first looked at: what the thread had run by then.
    pub(crate) looked: Option<crate::patience::Look>,
    /// Log lines that this call may still write.
    pub(crate) log_lines: u32,
    /// HTTP requests that this call may still make.
    pub(crate) fetches: u32,
    /// The call may wait for others.
    pub(crate) may_fetch: bool,
    pub(crate) seen: Seen,
    /// How long the call has waited for the disk.
    pub(crate) waited: Duration,
    /// What it keeps during a call of somebody who only wants to know.
    pub(crate) aside: Option<Arc<dyn Values>>,
    /// Where the fixed sequence of numbers stands, for guests that want chance and are not granted it.
    pub(crate) sequence: u64,
}

impl State {
    pub(crate) fn new(
        limits: StoreLimits,
        label: Arc<Label>,
        powers: Arc<Powers>,
        tables: Arc<tables::Tables>,
    ) -> Self {
        Self {
            limits,
            label,
            powers,
            now: Timestamp(0),
            destination: tables::Digits::NONE,
            body: Bytes::new(),
            sender: None,
            tables,
            configuring: true,
            references: BTreeSet::new(),
            looked: None,
            log_lines: log::LINES,
            fetches: 0,
            may_fetch: false,
            // Until it is configured: it has nothing to count yet.
            seen: Seen::Nowhere,
            waited: Duration::ZERO,
            aside: None,
            sequence: 0,
        }
    }
}

impl State {
    /// Notes a name that is asked for while the document is read.
    fn refer(&mut self, kind: ReferenceKind, name: &str) {
        if self.configuring && self.references.len() < reference::MOST {
            self.references.insert(Reference { kind, name: name.to_owned() });
        }
    }
}

impl crate::bindings::router::switchyard::hooks::types::Host for State {}
impl crate::bindings::delivery::switchyard::hooks::types::Host for State {}
impl crate::bindings::biller::switchyard::hooks::types::Host for State {}
