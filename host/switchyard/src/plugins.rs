//! Plugins and hooks in the admin API.

use crate::api_backend::Switchyard;
use admin::metrics::{self, MetricsPage};
use admin::{Problem, ProblemKind};
use engine::Event;
use hooks::{
    ActivationConditions, Binding, BindingRecord, CallCounts, FaultKind, HookError, Hooks, HostInterface,
    PluginCounts, TrialMode, VersionInfo,
};
use model::{Hook, NumberDisplay, Timestamp};
use ports::EventSink as _;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) fn hook_problem(error: &HookError) -> Problem {
    let kind = match error {
        HookError::Storage { .. } | HookError::Engine(_) => ProblemKind::Internal,
        HookError::Unknown { .. }
        | HookError::NoPolicySchema { .. }
        | HookError::NoSbom { .. }
        | HookError::NoCandidate => ProblemKind::NotFound,
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

/// The request is well-formed but contradictory.
fn unprocessable(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Unprocessable, what)
}

/// The chain described by a request: `chain`, or a single binding. With `position`, the binding is inserted into the
/// live chain, replacing one of the same plugin. A binding with peers takes them over, and the others keep theirs. Missing fields
/// come from the live binding of the plugin.
pub(crate) fn chain(
    request: api::ActivationRequest,
    live_chain: &[Binding],
) -> Result<Vec<Binding>, Problem> {
    let api::ActivationRequest { chain, position, plugin, .. } = request;
    let single = api::BindingRequest {
        plugin: plugin.unwrap_or_default(),
        version: request.version,
        policy: request.policy,
        peers: request.peers,
        on_fault: request.on_fault,
        memory: request.memory,
        deadline_ms: request.deadline_ms,
        table_rows: request.table_rows,
        instance: request.instance,
        grants: request.grants,
        tolerance: request.tolerance,
    };
    if let Some(chain) = chain {
        if position.is_some() || single != api::BindingRequest::default() {
            return Err(unprocessable("`chain` must be a list of bindings, without other keys"));
        }
        return chain.into_iter().map(|one| binding(one, live_chain)).collect();
    }
    let binding = binding(single, live_chain)?;
    if !binding.peers.is_empty() {
        return match position {
            Some(_) => Err(unprocessable("`position` is for chains; bindings of peers have no order")),
            None => Ok(take_over(binding, live_chain)),
        };
    }
    let Some(position) = position else { return Ok(vec![binding]) };
    let mut all: Vec<Binding> =
        live_chain.iter().filter(|other| other.plugin != binding.plugin).cloned().collect();
    let position = usize::try_from(position).unwrap_or(usize::MAX).min(all.len());
    all.insert(position, binding);
    Ok(all)
}

/// The live chain with this binding for its peers. A binding that has no peer left is dropped.
fn take_over(binding: Binding, live_chain: &[Binding]) -> Vec<Binding> {
    let mut all = live_chain.to_vec();
    for other in &mut all {
        other.peers.retain(|peer| !binding.peers.contains(peer));
    }
    all.retain(|other| !other.peers.is_empty());
    all.push(binding);
    all
}

/// The request, as a hook means it: a single front end takes the place of the same plugin, and the others stay.
fn for_hook(request: api::ActivationRequest, hook: Hook) -> api::ActivationRequest {
    let is_added = hook == Hook::FrontEnd && request.chain.is_none() && request.position.is_none();
    if is_added { api::ActivationRequest { position: Some(u32::MAX.into()), ..request } } else { request }
}

fn binding(request: api::BindingRequest, live_chain: &[Binding]) -> Result<Binding, Problem> {
    let serves = |live: &&Binding, peers: &[String]| live.peers.iter().any(|peer| peers.contains(peer));
    let mut same_plugin = live_chain.iter().filter(|binding| binding.plugin == request.plugin);
    let live = match &request.peers {
        Some(peers) => same_plugin.clone().find(|live| serves(live, peers)).or_else(|| same_plugin.next()),
        None => {
            let live = same_plugin.next();
            if live.is_some_and(|live| !live.peers.is_empty()) && same_plugin.next().is_some() {
                let what = format!(
                    "{} serves peers by several bindings: name those of this one in `peers`",
                    request.plugin
                );
                return Err(unprocessable(what));
            }
            live
        }
    };
    let live = live.cloned();
    let version = request.version.or_else(|| live.as_ref().map(|live| live.version.clone()));
    let missing = |field: &str| unprocessable(format!("invalid binding: missing field `{field}`"));
    if request.plugin.is_empty() {
        return Err(missing("plugin"));
    }
    let version = version.ok_or_else(|| missing("version"))?;
    let base = live.unwrap_or_else(|| Binding::new(&request.plugin, "", ""));
    // The digest of the live component does not match another version.
    let sha256 = if version == base.version { base.sha256 } else { String::new() };
    let size = |size: Option<u64>, base: usize| {
        size.map_or(base, |size| usize::try_from(size).unwrap_or(usize::MAX))
    };
    Ok(Binding {
        plugin: request.plugin,
        version,
        sha256,
        policy: request.policy.unwrap_or(base.policy),
        peers: request.peers.unwrap_or(base.peers),
        on_fault: request.on_fault.unwrap_or(base.on_fault),
        memory: size(request.memory, base.memory),
        deadline: request.deadline_ms.map_or(base.deadline, Duration::from_millis),
        table_rows: size(request.table_rows, base.table_rows),
        instance: request.instance.unwrap_or(base.instance),
        grants: request.grants.unwrap_or(base.grants),
        tolerance: request.tolerance.unwrap_or(base.tolerance),
    })
}

fn conditions(request: &api::ActivationRequest) -> ActivationConditions {
    ActivationConditions { expected: request.expected, force: request.force.unwrap_or(false) }
}

pub(crate) fn plugin_version(info: VersionInfo) -> api::PluginVersionView {
    api::PluginVersionView {
        plugin: info.plugin,
        version: info.version,
        sha256: info.sha256,
        size: info.size,
        hook: info.hook,
        wit: info.wit.number().to_owned(),
        imports: info.imports,
        signed_by: info.signed_by,
        policy_schema: info.policy_schema,
        debug_info: info.debug_info,
        sbom: info.sbom,
        origin: info.origin,
    }
}

/// The host calls of a plugin, by interface; those that it has made.
fn host_calls(counts: &CallCounts) -> impl Iterator<Item = (&'static str, u64)> {
    let named = HostInterface::ALL.iter().zip(counts.host_calls);
    named.filter(|(_, count)| *count > 0).map(|(interface, count)| (interface.name(), count))
}

fn plugin_counts(counts: &[PluginCounts]) -> Vec<api::PluginCountsView> {
    let one = |PluginCounts { by, live, counts }: &PluginCounts| {
        // In the order of [`FaultKind::ALL`].
        let [trap, deadline, memory, verdict, instance] = counts.faults;
        api::PluginCountsView {
            plugin: by.plugin.clone(),
            version: by.version.clone(),
            live: *live,
            calls: counts.calls,
            faults: api::PluginFaultCounts { trap, deadline, memory, verdict, instance },
            nanoseconds: counts.nanoseconds,
            memory: counts.memory,
            host_calls: host_calls(counts).map(|(name, count)| (name.to_owned(), count)).collect(),
            log_lines_left_out: counts.lines_left_out,
        }
    };
    counts.iter().map(one).collect()
}

fn hook_state(hooks: &Hooks, hook: Hook, history: Option<Vec<BindingRecord>>) -> api::HookStateView {
    let status = hooks.status(hook);
    let candidate = status.candidate.map(|candidate| api::CandidateStateView {
        record: candidate.record.into(),
        counts: plugin_counts(&candidate.counts),
        asked: candidate.asked,
        failed: candidate.failed,
        bypassed: candidate.bypassed,
        comparison: candidate.comparison,
    });
    api::HookStateView {
        hook: status.hook,
        live: status.live,
        counts: plugin_counts(&status.counts),
        candidate,
        events: status.events,
        faults: hooks.faults(hook),
        unknown: status.unknown,
        history,
    }
}

impl Switchyard {
    /// Tells the engine which hooks are bound.
    fn notify_engine(&self, hook: Hook) {
        // With two concurrent changes, the later one reports last.
        let _turn = self.binding.lock();
        let mut events = vec![crate::plugin_setup::hooks_bound_event(&self.routing.hooks)];
        if hook == Hook::Resolver {
            events.push(Event::ResolverReplaced);
        }
        if hook == Hook::Lookup {
            self.routing.lookups.cache.clear();
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
        for (hook, counts) in &all {
            for PluginCounts { by, counts, .. } in counts {
                for (interface, count) in host_calls(counts) {
                    let labels = [hook, by.plugin.as_str(), by.version.as_str(), interface];
                    page.put(&metrics::HOOK_HOST_CALLS, &labels, count as f64);
                }
            }
        }
        for (hook, counts) in &all {
            for PluginCounts { by, counts, .. } in counts {
                let labels = [hook, by.plugin.as_str(), by.version.as_str()];
                page.put(&metrics::HOOK_MEMORY, &labels, counts.memory as f64);
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
        page.put(&metrics::OBSERVATIONS_LOST, &[], self.peer_observer.lost() as f64);
        page.put(&metrics::OBSERVATIONS_REFUSED, &[], self.quality.refused_keys() as f64);
        for (table, info) in self.tables.list() {
            page.put(&metrics::TABLE_ROWS, &[&table], info.rows as f64);
        }
        self.write_engine_metrics(page);
    }

    /// Metrics of the engine about resolver, delivery policy, receipt policy and biller.
    fn write_engine_metrics(&self, page: &mut MetricsPage) {
        let snapshot = self.core.query(|engine, _| {
            let accounts = engine.balances().map(|(name, balance)| (name.clone(), balance));
            let money = (accounts.collect::<BTreeMap<_, _>>(), engine.totals().unpaid, engine.unsettled());
            let questions = (engine.pending_decisions(), engine.pending_receipts());
            (engine.resolver_status(), engine.lookup_status(), questions, money)
        });
        let Some((resolving, lookups, (deciding, receipts), (accounts, unpaid, unsettled))) = snapshot else {
            return;
        };
        let cache = self.routing.lookups.cache.counts();
        for (what, count) in
            [("messages", lookups.messages), ("numbers", lookups.numbers), ("cached", cache.entries)]
        {
            page.put(&metrics::LOOKUPS, &[what], count as f64);
        }
        page.put(&metrics::LOOKUP_QUESTIONS, &[], lookups.questions as f64);
        page.put(&metrics::LOOKUP_FAILURES, &[], lookups.failed as f64);
        page.put(&metrics::LOOKUP_HITS, &[], cache.hits as f64);
        page.put(&metrics::LOOKUP_MISSES, &[], cache.misses as f64);
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
        page.put(&metrics::RECEIPT_QUESTIONS, &[], receipts as f64);
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
    fn plugins(&self) -> Result<Vec<api::PluginVersionView>, Problem> {
        let versions = self.routing.hooks.versions().map_err(|error| hook_problem(&error))?;
        Ok(versions.into_iter().map(plugin_version).collect())
    }

    fn upload(
        &self,
        name: &str,
        component: &[u8],
        signature: Option<&str>,
    ) -> Result<api::PluginVersionView, Problem> {
        let info =
            self.routing.hooks.upload(name, component, signature).map_err(|error| hook_problem(&error))?;
        tracing::info!(plugin = info.plugin, version = info.version, size = info.size, "plugin uploaded");
        Ok(plugin_version(info))
    }

    fn add_debug_info(
        &self,
        name: &str,
        version: &str,
        octets: &[u8],
    ) -> Result<api::PluginVersionView, Problem> {
        let info =
            self.routing.hooks.add_debug_info(name, version, octets).map_err(|error| hook_problem(&error))?;
        tracing::info!(plugin = name, version, size = octets.len(), "debug information stored");
        Ok(plugin_version(info))
    }

    fn policy_schema(&self, name: &str, version: &str) -> Result<serde_json::Value, Problem> {
        self.routing.hooks.policy_schema(name, version).map_err(|error| hook_problem(&error))
    }

    fn hooks(&self) -> Vec<api::HookStateView> {
        Hook::ALL.map(|hook| hook_state(&self.routing.hooks, hook, None)).into()
    }

    fn hook(&self, hook: &str) -> Result<api::HookStateView, Problem> {
        let hook = parse_hook(hook)?;
        let mut history = self.routing.hooks.history(hook);
        history.reverse();
        Ok(hook_state(&self.routing.hooks, hook, Some(history)))
    }

    fn fault_case(&self, hook: &str, id: u64) -> Result<api::FaultCase, Problem> {
        let hook = parse_hook(hook)?;
        let Some(details) = self.routing.hooks.fault(hook, id) else {
            let what = format!(
                "hook {} keeps no fault {id}: the examples of GET /v1/hooks/{} have the numbers",
                hook.name(),
                hook.name()
            );
            return Err(Problem::new(ProblemKind::NotFound, what));
        };
        Ok(api::FaultCase {
            plugin: details.by.plugin.clone(),
            version: details.by.version.clone(),
            case: workbench::fault_case(&details, &self.directory.load()),
        })
    }

    fn activate(&self, hook: &str, request: api::ActivationRequest) -> Result<BindingRecord, Problem> {
        let hook = parse_hook(hook)?;
        let conditions = conditions(&request);
        self.peer_snapshots.publish();
        let chain = chain(for_hook(request, hook), &self.live_chain(hook))?;
        let record = self
            .routing
            .hooks
            .activate(hook, Timestamp::now(), chain, conditions)
            .map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(
            hook = hook.name(),
            plugins = record.chain.len(),
            serial = record.serial,
            "binding activated"
        );
        Ok(record)
    }

    fn unbind(&self, hook: &str) -> Result<BindingRecord, Problem> {
        let hook = parse_hook(hook)?;
        let record =
            self.routing.hooks.unbind(hook, Timestamp::now()).map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(hook = hook.name(), "hook unbound");
        Ok(record)
    }

    fn rollback(&self, hook: &str) -> Result<BindingRecord, Problem> {
        let hook = parse_hook(hook)?;
        let record =
            self.routing.hooks.rollback(hook, Timestamp::now()).map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(hook = hook.name(), serial = record.serial, "binding rolled back");
        Ok(record)
    }

    fn start_trial(
        &self,
        hook: &str,
        request: api::TrialRequest,
    ) -> Result<api::CandidateRecordView, Problem> {
        let hook = parse_hook(hook)?;
        let api::TrialRequest { mode, share, activation } = request;
        let conditions = conditions(&activation);
        self.peer_snapshots.publish();
        let trying = match (mode, share) {
            (api::TrialModeView::Shadow, None) => TrialMode::Shadow,
            (api::TrialModeView::Canary, Some(percent)) => match (percent * 100.0).round() {
                share if (1.0..=10_000.0).contains(&share) => TrialMode::Canary { share: share as u16 },
                _ => return Err(hook_problem(&HookError::BadShare)),
            },
            _ => {
                return Err(unprocessable(
                    "`mode` must be \"shadow\", or \"canary\" with a `share` in percent",
                ));
            }
        };
        let chain = chain(for_hook(activation, hook), &self.live_chain(hook))?;
        let record = self
            .routing
            .hooks
            .start_trial(hook, Timestamp::now(), trying, chain, conditions)
            .map_err(|error| hook_problem(&error))?;
        tracing::info!(hook = hook.name(), ?trying, "candidate trial started");
        Ok(record.into())
    }

    fn end_trial(&self, hook: &str) -> Result<(), Problem> {
        self.routing
            .hooks
            .end_trial(parse_hook(hook)?, Timestamp::now())
            .map_err(|error| hook_problem(&error))
    }

    fn promote(&self, hook: &str, expected: Option<u64>) -> Result<BindingRecord, Problem> {
        let hook = parse_hook(hook)?;
        let record = self
            .routing
            .hooks
            .promote(hook, Timestamp::now(), expected)
            .map_err(|error| hook_problem(&error))?;
        self.notify_engine(hook);
        tracing::info!(hook = hook.name(), serial = record.serial, "candidate promoted");
        Ok(record)
    }

    fn try_policy(
        &self,
        hook: &str,
        request: api::PolicyTryRequest,
        numbers: NumberDisplay,
    ) -> Result<api::PolicyTryView, Problem> {
        self.peer_snapshots.publish();
        self.try_document(parse_hook(hook)?, request, numbers)
    }

    fn message_cases(
        &self,
        hook: &str,
        request: api::PolicyTryRequest,
    ) -> Result<Vec<api::MessageCase>, Problem> {
        self.peer_snapshots.publish();
        self.make_message_cases(parse_hook(hook)?, request)
    }

    fn replay(&self, request: api::ReplayRequest) -> Result<api::ReplayStart, Problem> {
        self.replays.begin(self, request)
    }

    fn replays(&self) -> Vec<api::ReplayStateView> {
        self.replays.all()
    }

    fn replay_report(
        &self,
        id: &str,
        numbers: NumberDisplay,
        body: bool,
    ) -> Result<api::ReplayStateView, Problem> {
        self.replays.report(id, numbers, body)
    }

    fn end_replay(&self, id: &str) -> Result<(), Problem> {
        self.replays.end(id)
    }

    fn tables(&self) -> Vec<api::TableView> {
        let view = |(name, info): (String, api::TableFillResult)| {
            let api::TableFillResult { kind, rows, octets } = info;
            api::TableView { name, kind, rows, octets }
        };
        self.tables.list().into_iter().map(view).collect()
    }

    fn put_table(
        &self,
        name: &str,
        kind: api::TableKind,
        rows: &mut dyn std::io::Read,
    ) -> Result<api::TableFillResult, Problem> {
        self.tables.put(name, kind, rows).map_err(|error| unprocessable(error.to_string()))
    }

    fn look_up(&self, name: &str, key: &str) -> Result<api::TableLookUpView, Problem> {
        let table = self
            .tables
            .get(name)
            .ok_or_else(|| Problem::new(ProblemKind::NotFound, format!("table {name:?} does not exist")))?;
        let longest = table.longest(key);
        Ok(api::TableLookUpView {
            exact: table.get(key).map(str::to_owned),
            longest: longest.map(|(length, value)| api::LongestKeyView {
                length: length.into(),
                value: value.to_owned(),
            }),
        })
    }

    fn remove_table(&self, name: &str) -> Result<(), Problem> {
        match self.tables.remove(name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Problem::new(ProblemKind::NotFound, format!("table {name:?} does not exist"))),
            Err(error) => Err(Problem::new(ProblemKind::Internal, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_fields_come_from_the_live_binding_of_the_plugin() {
        let live = Binding {
            sha256: "1d9e".to_owned(),
            tolerance: hooks::Tolerance { faults: 3, window_ms: 5 },
            ..Binding::new("router", "96fced7a19c6", "policy")
        };
        let other = Binding::new("other", "58cd962459f1", "");
        let live_chain = [other.clone(), live.clone()];
        let mut request = api::ActivationRequest {
            plugin: Some("router".to_owned()),
            deadline_ms: Some(50),
            position: Some(0),
            ..api::ActivationRequest::default()
        };
        let expected = Binding { deadline: Duration::from_millis(50), ..live };
        assert_eq!(chain(request.clone(), &live_chain).unwrap(), [expected.clone(), other]);
        // The digest belongs to the live version.
        (request.position, request.version) = (None, Some("58cd962459f1".to_owned()));
        let expected = Binding { version: "58cd962459f1".to_owned(), sha256: String::new(), ..expected };
        assert_eq!(chain(request.clone(), &live_chain).unwrap(), [expected]);
        request.chain = Some(Vec::new());
        assert!(chain(request, &live_chain).is_err(), "a chain and a binding");
    }

    #[test]
    fn a_binding_takes_its_peers_over() {
        let of = |policy: &str, peers: &[&str]| Binding {
            peers: peers.iter().map(|peer| (*peer).to_owned()).collect(),
            ..Binding::new("http-peer", "96fced7a19c6", policy)
        };
        let live = [of("a", &["north", "south"]), of("b", &["east"])];
        let request = |peers: Option<&[&str]>, policy: Option<&str>| api::ActivationRequest {
            plugin: Some("http-peer".to_owned()),
            policy: policy.map(str::to_owned),
            peers: peers.map(|peers| peers.iter().map(|peer| (*peer).to_owned()).collect()),
            ..api::ActivationRequest::default()
        };
        // The rest comes from the binding that serves the peer now.
        let moved = chain(request(Some(&["east"]), None), &live).unwrap();
        assert_eq!(moved, [of("a", &["north", "south"]), of("b", &["east"])]);
        let split = chain(request(Some(&["south", "west"]), Some("c")), &live).unwrap();
        assert_eq!(split, [of("a", &["north"]), of("b", &["east"]), of("c", &["south", "west"])]);
        let whole = chain(request(Some(&["north", "south"]), Some("c")), &live).unwrap();
        assert_eq!(whole, [of("b", &["east"]), of("c", &["north", "south"])]);
        assert!(chain(request(None, Some("c")), &live).is_err(), "two bindings of the plugin");
        assert_eq!(chain(request(None, Some("c")), &live[1..]).unwrap(), [of("c", &["east"])]);
        let first = api::ActivationRequest { position: Some(0), ..request(Some(&["east"]), None) };
        assert!(chain(first, &live).is_err(), "a position");
    }
}
