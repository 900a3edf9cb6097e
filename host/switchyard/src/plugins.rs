//! Plugins and hooks in the admin API.

use crate::api_backend::Switchyard;
use crate::core_loop::wall_clock;
use admin::metrics::{self, MetricsPage};
use admin::{Problem, ProblemKind};
use capabilities::{TableInfo, TableKind};
use engine::Event;
use hooks::{ActivationConditions, Binding, FaultKind, HookError, HookStatus, PluginCounts, TrialMode};
use model::Hook;
use ports::EventSink as _;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn hook_problem(error: &HookError) -> Problem {
    let kind = match error {
        HookError::Storage { .. } | HookError::Engine(_) => ProblemKind::Internal,
        HookError::Unknown { .. } | HookError::NoCandidate => ProblemKind::NotFound,
        HookError::NothingBefore | HookError::Changed { .. } => ProblemKind::Conflict,
        _ => ProblemKind::Unprocessable,
    };
    Problem::new(kind, error.to_string())
}

fn parse_hook(hook: &str) -> Result<Hook, Problem> {
    Hook::named(hook).ok_or_else(|| {
        let names = Hook::ALL.map(Hook::name).join(", ");
        Problem::new(ProblemKind::NotFound, format!("{hook:?} is not a hook: the hooks are {names}"))
    })
}

fn bad_request(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, what)
}

/// The request is well-formed but contradictory.
fn unprocessable(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Unprocessable, what)
}

fn to_json(value: impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(value).map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))
}

/// Removes a field from a request; `null` counts as missing.
fn take_field(request: &mut Map<String, Value>, key: &str) -> Option<Value> {
    request.remove(key).filter(|value| !value.is_null())
}

/// The serial that the request expects to be active.
fn expected(request: &mut Map<String, Value>) -> Result<Option<u64>, Problem> {
    take_field(request, "expected")
        .map(|value| value.as_u64().ok_or_else(|| bad_request("`expected` must be a serial: a number")))
        .transpose()
}

/// The conditions of a request: the expected serial, and whether it is forced.
fn conditions(request: &mut Map<String, Value>) -> Result<ActivationConditions, Problem> {
    let force = take_field(request, "force")
        .map(|value| value.as_bool().ok_or_else(|| bad_request("`force` must be true or false")))
        .transpose()?;
    Ok(ActivationConditions { expected: expected(request)?, force: force.unwrap_or(false) })
}

pub(crate) fn object(request: Value) -> Result<Map<String, Value>, Problem> {
    match request {
        Value::Object(mut map) => {
            map.values_mut().for_each(normalize_integers);
            Ok(map)
        }
        Value::Null => Ok(Map::new()),
        _ => Err(bad_request("the body must be an object")),
    }
}

/// The chain described by a request: `chain`, or a single binding. With `position`, the binding is inserted into the
/// live chain, replacing one of the same plugin. Missing fields come from the live binding of the plugin.
pub(crate) fn chain(
    mut request: Map<String, Value>,
    live_chain: &[Binding],
) -> Result<Vec<Binding>, Problem> {
    if let Some(chain) = take_field(&mut request, "chain") {
        let (Value::Array(items), true) = (chain, request.is_empty()) else {
            return Err(unprocessable("`chain` must be a list of bindings, without other keys"));
        };
        return items.into_iter().map(|item| binding(object(item)?, live_chain)).collect();
    }
    let position = match take_field(&mut request, "position") {
        None => None,
        Some(value) => {
            Some(value.as_u64().ok_or_else(|| bad_request("`position` must be a number, from 0"))?)
        }
    };
    let binding = binding(request, live_chain)?;
    let Some(position) = position else { return Ok(vec![binding]) };
    let mut all: Vec<Binding> =
        live_chain.iter().filter(|other| other.plugin != binding.plugin).cloned().collect();
    let position = usize::try_from(position).unwrap_or(usize::MAX).min(all.len());
    all.insert(position, binding);
    Ok(all)
}

/// Converts floats without a fraction to integers, because JSON may write 4 as 4.0.
fn normalize_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let exact = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
            if let (None, Some(whole)) = (number.as_i64(), number.as_f64().filter(exact)) {
                *number = (whole as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize_integers),
        Value::Object(map) => map.values_mut().for_each(normalize_integers),
        _ => {}
    }
}

fn binding(fields: Map<String, Value>, live_chain: &[Binding]) -> Result<Binding, Problem> {
    let plugin = fields.get("plugin").and_then(Value::as_str).unwrap_or_default();
    let base = live_chain.iter().find(|binding| binding.plugin == plugin);
    let mut merged = match base.map(serde_json::to_value) {
        Some(Ok(Value::Object(base))) => base,
        _ => Map::new(),
    };
    merged.extend(fields);
    serde_json::from_value(Value::Object(merged))
        .map_err(|error| unprocessable(format!("invalid binding: {error}")))
}

/// Counts with faults by name instead of by index.
fn counts(counts: &[PluginCounts]) -> Vec<Value> {
    let one = |one: &PluginCounts| {
        let faults: BTreeMap<&str, u64> =
            FaultKind::ALL.iter().map(|kind| kind.name()).zip(one.counts.faults).collect();
        json!({
            "plugin": one.by.plugin,
            "version": one.by.version,
            "live": one.live,
            "calls": one.counts.calls,
            "faults": faults,
            "nanoseconds": one.counts.nanoseconds,
            "log-lines-left-out": one.counts.lines_left_out,
        })
    };
    counts.iter().map(one).collect()
}

fn hook_state_json(state: &HookStatus) -> Result<Value, Problem> {
    let mut value = to_json(state)?;
    value["counts"] = json!(counts(&state.counts));
    if let Some(candidate) = &state.candidate {
        value["candidate"]["counts"] = json!(counts(&candidate.counts));
    }
    Ok(value)
}

impl Switchyard {
    /// Tells the engine which hooks are bound.
    fn notify_engine(&self, hook: Hook) {
        // With two concurrent changes, the later one reports last.
        let _turn = self.binding.lock();
        let mut events = vec![crate::serve::hooks_bound_event(&self.routing.hooks)];
        if hook == Hook::Resolver {
            events.push(Event::ResolverReplaced);
        }
        self.core.push(events);
    }

    /// The live chain of a hook.
    fn live_chain(&self, hook: Hook) -> Vec<Binding> {
        self.routing.hooks.status(hook).live.chain
    }

    pub(crate) fn write_hook_metrics(&self, page: &mut MetricsPage) {
        let all = Hook::ALL.map(|hook| (hook.name(), self.routing.hooks.counts(hook)));
        let bounds: Vec<f64> = (0..19).map(|power| f64::from(1_u32 << power) / 1e6).collect();
        for (hook, counts) in &all {
            for PluginCounts { by, counts, .. } in counts {
                let labels = [hook, by.plugin.as_str(), by.version.as_str()];
                let seconds = counts.nanoseconds as f64 / 1e9;
                page.histogram(&metrics::HOOK_SECONDS, &labels, &bounds, &counts.buckets, seconds);
            }
        }
        for (hook, counts) in &all {
            for PluginCounts { by, counts, .. } in counts {
                for (kind, count) in FaultKind::ALL.iter().zip(counts.faults) {
                    let labels = [hook, by.plugin.as_str(), by.version.as_str(), kind.name()];
                    page.put(&metrics::HOOK_FAULTS, &labels, count as f64);
                }
            }
        }
        for hook in Hook::ALL {
            let Some(candidate) = self.routing.hooks.status(hook).candidate else { continue };
            let mut put = |mode, outcome, count: u64| {
                page.put(&metrics::CANDIDATE, &[hook.name(), mode, outcome], count as f64);
            };
            match candidate.comparison {
                Some(comparison) => {
                    put("shadow", "same", comparison.same);
                    put("shadow", "different", comparison.different);
                    put("shadow", "skipped", comparison.skipped);
                }
                None => {
                    put("canary", "asked", candidate.asked);
                    put("canary", "failed", candidate.failed);
                    put("canary", "bypassed", candidate.bypassed);
                }
            }
        }
        for (plugin, counters) in self.counters.metrics() {
            page.put(&metrics::DURABLE_COUNTER_KEYS, &[&plugin], counters.keys as f64);
            page.put(&metrics::DURABLE_COUNTER_REFUSED, &[&plugin], counters.refused as f64);
        }
        let failures = self.counters.write_failures();
        page.put(&metrics::DURABLE_COUNTER_WRITE_FAILURES, &[], failures as f64);
        for (table, info) in self.tables.list() {
            page.put(&metrics::TABLE_ROWS, &[&table], info.rows as f64);
        }
        self.write_engine_metrics(page);
    }

    /// Metrics of the engine about resolver, delivery policy and biller.
    fn write_engine_metrics(&self, page: &mut MetricsPage) {
        let snapshot = self.core.query(|engine, _| {
            let accounts = engine.balances().map(|(name, balance)| (name.clone(), balance));
            let money = (accounts.collect::<BTreeMap<_, _>>(), engine.totals().unpaid, engine.unsettled());
            (engine.resolver_status(), engine.pending_decisions(), money)
        });
        let Some((resolving, deciding, (accounts, unpaid, unsettled))) = snapshot else { return };
        for (what, count) in [
            ("numbers", resolving.numbers),
            ("messages", resolving.messages),
            ("questions", resolving.in_flight),
            ("cached", resolving.cached),
        ] {
            page.put(&metrics::RESOLVING, &[what], count as f64);
        }
        page.put(&metrics::RESOLVER_QUESTIONS, &[], resolving.questions as f64);
        page.put(&metrics::RESOLVER_HITS, &[], resolving.hits as f64);
        page.put(&metrics::DECIDING, &[], deciding as f64);
        for (account, balance) in &accounts {
            for (what, amount) in [
                ("balance", balance.balance as f64),
                ("reserved", balance.reserved as f64),
                ("captured", balance.captured as f64),
                ("funded", balance.funded as f64),
            ] {
                page.put(&metrics::LEDGER, &[account, what], amount);
            }
        }
        page.put(&metrics::UNPAID, &[], unpaid as f64);
        page.put(&metrics::UNSETTLED, &[], unsettled as f64);
    }
}

impl admin::Plugins for Switchyard {
    fn plugins(&self) -> Result<Value, Problem> {
        to_json(self.routing.hooks.versions().map_err(|error| hook_problem(&error))?)
    }

    fn upload(&self, name: &str, component: &[u8], signature: Option<&str>) -> Result<Value, Problem> {
        let info =
            self.routing.hooks.upload(name, component, signature).map_err(|error| hook_problem(&error))?;
        tracing::info!(plugin = info.plugin, version = info.version, size = info.size, "plugin uploaded");
        to_json(info)
    }

    fn hooks(&self) -> Result<Value, Problem> {
        let states = Hook::ALL.iter().map(|hook| hook_state_json(&self.routing.hooks.status(*hook)));
        Ok(Value::Array(states.collect::<Result<Vec<_>, _>>()?))
    }

    fn hook(&self, hook: &str) -> Result<Value, Problem> {
        let hook = parse_hook(hook)?;
        let mut value = hook_state_json(&self.routing.hooks.status(hook))?;
        let mut history = self.routing.hooks.history(hook);
        history.reverse();
        value["history"] = to_json(history)?;
        Ok(value)
    }

    fn activate(&self, hook: &str, request: Value) -> Result<Value, Problem> {
        let hook = parse_hook(hook)?;
        let mut request = object(request)?;
        let conditions = conditions(&mut request)?;
        self.peer_snapshots.publish();
        let chain = chain(request, &self.live_chain(hook))?;
        let record = self
            .routing
            .hooks
            .activate(hook, wall_clock(), chain, conditions)
            .map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(
            hook = hook.name(),
            plugins = record.chain.len(),
            serial = record.serial,
            "binding activated"
        );
        to_json(record)
    }

    fn unbind(&self, hook: &str) -> Result<Value, Problem> {
        let hook = parse_hook(hook)?;
        let record = self.routing.hooks.unbind(hook, wall_clock()).map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(hook = hook.name(), "hook unbound");
        to_json(record)
    }

    fn rollback(&self, hook: &str) -> Result<Value, Problem> {
        let hook = parse_hook(hook)?;
        let record = self.routing.hooks.rollback(hook, wall_clock()).map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(hook = hook.name(), serial = record.serial, "binding rolled back");
        to_json(record)
    }

    fn start_trial(&self, hook: &str, request: Value) -> Result<Value, Problem> {
        let hook = parse_hook(hook)?;
        let mut request = object(request)?;
        let conditions = conditions(&mut request)?;
        self.peer_snapshots.publish();
        let mode = take_field(&mut request, "mode");
        let share = take_field(&mut request, "share");
        let trying = match (mode.as_ref().and_then(Value::as_str), share) {
            (Some("shadow"), None) => TrialMode::Shadow,
            (Some("canary"), Some(share)) => {
                let hundredths = share.as_f64().map(|percent| (percent * 100.0).round());
                match hundredths {
                    Some(share) if (1.0..=10_000.0).contains(&share) => {
                        TrialMode::Canary { share: share as u16 }
                    }
                    _ => return Err(hook_problem(&HookError::BadShare)),
                }
            }
            _ => {
                return Err(unprocessable(
                    "`mode` must be \"shadow\", or \"canary\" with a `share` in percent",
                ));
            }
        };
        let chain = chain(request, &self.live_chain(hook))?;
        let record = self
            .routing
            .hooks
            .start_trial(hook, wall_clock(), trying, chain, conditions)
            .map_err(|error| hook_problem(&error))?;
        tracing::info!(hook = hook.name(), ?trying, "candidate trial started");
        to_json(record)
    }

    fn end_trial(&self, hook: &str) -> Result<(), Problem> {
        self.routing.hooks.end_trial(parse_hook(hook)?, wall_clock()).map_err(|error| hook_problem(&error))
    }

    fn promote(&self, hook: &str, request: Value) -> Result<Value, Problem> {
        let hook = parse_hook(hook)?;
        let mut request = object(request)?;
        let expected = expected(&mut request)?;
        if let Some(key) = request.keys().next() {
            return Err(bad_request(format!("`{key}` is unknown; known is `expected`")));
        }
        let record =
            self.routing.hooks.promote(hook, wall_clock(), expected).map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(hook = hook.name(), serial = record.serial, "candidate promoted");
        to_json(record)
    }

    fn replay(&self, request: Value) -> Result<Value, Problem> {
        self.replays.begin(self, request)
    }

    fn replays(&self) -> Value {
        self.replays.all()
    }

    fn replay_report(&self, id: &str) -> Result<Value, Problem> {
        self.replays.report(id)
    }

    fn end_replay(&self, id: &str) -> Result<(), Problem> {
        self.replays.end(id)
    }

    fn tables(&self) -> Value {
        let table_json = |(name, info): (String, TableInfo)| json!({ "name": name, "kind": info.kind, "rows": info.rows, "octets": info.octets });
        self.tables.list().into_iter().map(table_json).collect()
    }

    fn put_table(&self, name: &str, kind: &str, rows: &[u8]) -> Result<Value, Problem> {
        let kind = match kind {
            "exact" => TableKind::Exact,
            "prefix" => TableKind::Prefix,
            other => return Err(bad_request(format!("kind is {other:?}, and must be exact or prefix"))),
        };
        let info = self
            .tables
            .put(name, kind, rows)
            .map_err(|error| Problem::new(ProblemKind::Unprocessable, error.to_string()))?;
        to_json(info)
    }

    fn look_up(&self, name: &str, key: &str) -> Result<Value, Problem> {
        let table = self
            .tables
            .get(name)
            .ok_or_else(|| Problem::new(ProblemKind::NotFound, format!("table {name:?} does not exist")))?;
        let longest = table.longest(key).map(|(length, value)| json!({ "length": length, "value": value }));
        Ok(json!({ "exact": table.get(key), "longest": longest }))
    }

    fn remove_table(&self, name: &str) -> Result<(), Problem> {
        match self.tables.remove(name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Problem::new(ProblemKind::NotFound, format!("table {name:?} does not exist"))),
            Err(error) => Err(Problem::new(ProblemKind::Internal, error.to_string())),
        }
    }
}
