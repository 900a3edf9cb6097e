//! Plugins as the admin's API sees them.

use crate::appliance::Switchyard;
use crate::core_loop::wall;
use admin::metrics::{self, Page};
use admin::{Kind, Problem};
use capabilities::{TableInfo, TableKind};
use doors::Core as _;
use engine::Event;
use hooks::{Binding, Conditions, FaultKind, HookError, HookState, PluginCounts, Trying};
use model::Hook;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn refused(error: &HookError) -> Problem {
    let kind = match error {
        HookError::Storage { .. } | HookError::Engine(_) => Kind::Internal,
        HookError::Unknown { .. } | HookError::NoCandidate => Kind::NotFound,
        HookError::NothingBefore | HookError::Changed { .. } => Kind::Conflict,
        _ => Kind::Refused,
    };
    Problem::new(kind, error.to_string())
}

fn named(hook: &str) -> Result<Hook, Problem> {
    Hook::named(hook).ok_or_else(|| {
        let names = Hook::ALL.map(Hook::name).join(", ");
        Problem::new(Kind::NotFound, format!("there is no hook {hook:?}: the hooks are {names}"))
    })
}

fn bad(what: impl Into<String>) -> Problem {
    Problem::new(Kind::BadRequest, what)
}

/// Each part can be understood, and together they mean nothing.
fn odd(what: impl Into<String>) -> Problem {
    Problem::new(Kind::Refused, what)
}

fn shown(value: impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(value).map_err(|error| Problem::new(Kind::Internal, error.to_string()))
}

/// What is left of a request once `keys` are taken out of it.
fn take(request: &mut Map<String, Value>, key: &str) -> Option<Value> {
    request.remove(key).filter(|value| !value.is_null())
}

/// The serial that a request expects to find.
fn expected(request: &mut Map<String, Value>) -> Result<Option<u64>, Problem> {
    take(request, "expected")
        .map(|value| value.as_u64().ok_or_else(|| bad("`expected` must be a serial: a number")))
        .transpose()
}

/// What a request sets as conditions: the serial that it expects, and whether it is forced.
fn conditions(request: &mut Map<String, Value>) -> Result<Conditions, Problem> {
    let force = take(request, "force")
        .map(|value| value.as_bool().ok_or_else(|| bad("`force` must be true or false")))
        .transpose()?;
    Ok(Conditions { expected: expected(request)?, force: force.unwrap_or(false) })
}

pub(crate) fn object(request: Value) -> Result<Map<String, Value>, Problem> {
    match request {
        Value::Object(mut map) => {
            map.values_mut().for_each(make_whole);
            Ok(map)
        }
        Value::Null => Ok(Map::new()),
        _ => Err(bad("the body must be an object")),
    }
}

/// The chain that a request describes: `chain`, or one binding; with `position`, that one in the live chain, instead of the
/// one of the same plugin where there is one. What a binding leaves out is as in the live binding of its plugin.
pub(crate) fn chain(mut request: Map<String, Value>, live: &[Binding]) -> Result<Vec<Binding>, Problem> {
    if let Some(chain) = take(&mut request, "chain") {
        let (Value::Array(items), true) = (chain, request.is_empty()) else {
            return Err(odd("`chain` must be a list of bindings, and stand alone"));
        };
        return items.into_iter().map(|item| binding(object(item)?, live)).collect();
    }
    let position = match take(&mut request, "position") {
        None => None,
        Some(value) => Some(value.as_u64().ok_or_else(|| bad("`position` must be a number, from 0"))?),
    };
    let binding = binding(request, live)?;
    let Some(position) = position else { return Ok(vec![binding]) };
    let mut all: Vec<Binding> = live.iter().filter(|other| other.plugin != binding.plugin).cloned().collect();
    let position = usize::try_from(position).unwrap_or(usize::MAX).min(all.len());
    all.insert(position, binding);
    Ok(all)
}

/// Whole numbers are whole in whatever way JSON writes them: 4.0 is 4.
fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let exact = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
            if let (None, Some(whole)) = (number.as_i64(), number.as_f64().filter(exact)) {
                *number = (whole as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(map) => map.values_mut().for_each(make_whole),
        _ => {}
    }
}

fn binding(given: Map<String, Value>, live: &[Binding]) -> Result<Binding, Problem> {
    let plugin = given.get("plugin").and_then(Value::as_str).unwrap_or_default();
    let base = live.iter().find(|binding| binding.plugin == plugin);
    let mut whole = match base.map(serde_json::to_value) {
        Some(Ok(Value::Object(base))) => base,
        _ => Map::new(),
    };
    whole.extend(given);
    serde_json::from_value(Value::Object(whole))
        .map_err(|error| odd(format!("the binding is not as expected: {error}")))
}

/// Faults by their names, instead of by their places.
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

fn state(state: &HookState) -> Result<Value, Problem> {
    let mut value = shown(state)?;
    value["counts"] = json!(counts(&state.counts));
    if let Some(candidate) = &state.candidate {
        value["candidate"]["counts"] = json!(counts(&candidate.counts));
    }
    Ok(value)
}

impl Switchyard {
    /// The engine asks only those who are there.
    fn tell_engine_of(&self, hook: Hook) {
        // Of two who change something at once, the later one tells last.
        let _turn = self.binding.lock();
        let mut events = vec![crate::serve::bound(&self.routing.hooks)];
        if hook == Hook::Resolver {
            events.push(Event::ResolverExchanged);
        }
        self.core.push(events);
    }

    /// The live chain of a hook.
    fn live(&self, hook: Hook) -> Vec<Binding> {
        self.routing.hooks.state(hook).live.chain
    }

    pub(crate) fn write_hook_metrics(&self, page: &mut Page) {
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
            let Some(candidate) = self.routing.hooks.state(hook).candidate else { continue };
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
                    put("canary", "passed", candidate.passed);
                }
            }
        }
        for (plugin, counters) in self.counters.metrics() {
            page.put(&metrics::DURABLE_COUNTER_KEYS, &[&plugin], counters.keys as f64);
            page.put(&metrics::DURABLE_COUNTER_REFUSED, &[&plugin], counters.refused as f64);
        }
        let failures = self.counters.write_failures();
        page.put(&metrics::DURABLE_COUNTER_WRITE_FAILURES, &[], failures as f64);
        for (table, info) in self.shelf.list() {
            page.put(&metrics::TABLE_ROWS, &[&table], info.rows as f64);
        }
        self.write_engine_metrics(page);
    }

    /// What the engine tells of what plugins decide.
    fn write_engine_metrics(&self, page: &mut Page) {
        let look = self.core.look(|engine, _| {
            let accounts = engine.balances().map(|(name, balance)| (name.clone(), balance));
            let money = (accounts.collect::<BTreeMap<_, _>>(), engine.totals().unpaid, engine.unsettled());
            (engine.resolving(), engine.deciding(), money)
        });
        let Some((resolving, deciding, (accounts, unpaid, unsettled))) = look else { return };
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
        shown(self.routing.hooks.versions().map_err(|error| refused(&error))?)
    }

    fn upload(&self, name: &str, component: &[u8], signature: Option<&str>) -> Result<Value, Problem> {
        let info = self.routing.hooks.upload(name, component, signature).map_err(|error| refused(&error))?;
        tracing::info!(plugin = info.plugin, version = info.version, size = info.size, "plugin version kept");
        shown(info)
    }

    fn hooks(&self) -> Result<Value, Problem> {
        let states = Hook::ALL.iter().map(|hook| state(&self.routing.hooks.state(*hook)));
        Ok(Value::Array(states.collect::<Result<Vec<_>, _>>()?))
    }

    fn hook(&self, hook: &str) -> Result<Value, Problem> {
        let hook = named(hook)?;
        let mut value = state(&self.routing.hooks.state(hook))?;
        let mut history = self.routing.hooks.history(hook);
        history.reverse();
        value["history"] = shown(history)?;
        Ok(value)
    }

    fn activate(&self, hook: &str, request: Value) -> Result<Value, Problem> {
        let hook = named(hook)?;
        let mut request = object(request)?;
        let conditions = conditions(&mut request)?;
        self.boards.publish();
        let chain = chain(request, &self.live(hook))?;
        let record =
            self.routing.hooks.activate(hook, wall(), chain, conditions).map_err(|error| refused(&error))?;
        self.tell_engine_of(hook);
        tracing::info!(hook = hook.name(), plugins = record.chain.len(), serial = record.serial, "activated");
        shown(record)
    }

    fn unbind(&self, hook: &str) -> Result<Value, Problem> {
        let hook = named(hook)?;
        let record = self.routing.hooks.unbind(hook, wall()).map_err(|error| refused(&error))?;
        self.tell_engine_of(hook);
        tracing::info!(hook = hook.name(), "unbound");
        shown(record)
    }

    fn rollback(&self, hook: &str) -> Result<Value, Problem> {
        let hook = named(hook)?;
        let record = self.routing.hooks.rollback(hook, wall()).map_err(|error| refused(&error))?;
        self.tell_engine_of(hook);
        tracing::info!(hook = hook.name(), serial = record.serial, "rolled back");
        shown(record)
    }

    fn try_out(&self, hook: &str, request: Value) -> Result<Value, Problem> {
        let hook = named(hook)?;
        let mut request = object(request)?;
        let conditions = conditions(&mut request)?;
        self.boards.publish();
        let mode = take(&mut request, "mode");
        let share = take(&mut request, "share");
        let trying = match (mode.as_ref().and_then(Value::as_str), share) {
            (Some("shadow"), None) => Trying::Shadow,
            (Some("canary"), Some(share)) => {
                let hundredths = share.as_f64().map(|percent| (percent * 100.0).round());
                match hundredths {
                    Some(share) if (1.0..=10_000.0).contains(&share) => {
                        Trying::Canary { share: share as u16 }
                    }
                    _ => return Err(refused(&HookError::BadShare)),
                }
            }
            _ => {
                return Err(odd("`mode` must be \"shadow\", or \"canary\" with a `share` in percent"));
            }
        };
        let chain = chain(request, &self.live(hook))?;
        let record = self
            .routing
            .hooks
            .try_out(hook, wall(), trying, chain, conditions)
            .map_err(|error| refused(&error))?;
        tracing::info!(hook = hook.name(), ?trying, "candidate on trial");
        shown(record)
    }

    fn dismiss(&self, hook: &str) -> Result<(), Problem> {
        self.routing.hooks.dismiss(named(hook)?, wall()).map_err(|error| refused(&error))
    }

    fn promote(&self, hook: &str, request: Value) -> Result<Value, Problem> {
        let hook = named(hook)?;
        let mut request = object(request)?;
        let expected = expected(&mut request)?;
        if let Some(key) = request.keys().next() {
            return Err(bad(format!("`{key}` means nothing here; `expected` does")));
        }
        let record = self.routing.hooks.promote(hook, wall(), expected).map_err(|error| refused(&error))?;
        self.tell_engine_of(hook);
        tracing::info!(hook = hook.name(), serial = record.serial, "promoted");
        shown(record)
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
        let shown = |(name, info): (String, TableInfo)| json!({ "name": name, "kind": info.kind, "rows": info.rows, "octets": info.octets });
        self.shelf.list().into_iter().map(shown).collect()
    }

    fn put_table(&self, name: &str, kind: &str, rows: &[u8]) -> Result<Value, Problem> {
        let kind = match kind {
            "exact" => TableKind::Exact,
            "prefix" => TableKind::Prefix,
            other => return Err(bad(format!("kind is {other:?}, and must be exact or prefix"))),
        };
        let info = self
            .shelf
            .put(name, kind, rows)
            .map_err(|error| Problem::new(Kind::Refused, error.to_string()))?;
        shown(info)
    }

    fn look_up(&self, name: &str, key: &str) -> Result<Value, Problem> {
        let table = self
            .shelf
            .get(name)
            .ok_or_else(|| Problem::new(Kind::NotFound, format!("there is no table {name:?}")))?;
        let longest = table.longest(key).map(|(length, value)| json!({ "length": length, "value": value }));
        Ok(json!({ "exact": table.get(key), "longest": longest }))
    }

    fn remove_table(&self, name: &str) -> Result<(), Problem> {
        match self.shelf.remove(name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Problem::new(Kind::NotFound, format!("there is no table {name:?}"))),
            Err(error) => Err(Problem::new(Kind::Internal, error.to_string())),
        }
    }
}
