//! Plugins and hooks in the admin API.

use crate::binding_requests::{chain, for_hook};
use crate::hook_metrics::host_calls;
use crate::hook_service::HookService;
use crate::problems::{hook_problem, unprocessable};
use admin::{Problem, ProblemKind};
use hooks::{ActivationConditions, BindingRecord, HookError, Hooks, PluginCounts, TrialMode, VersionInfo};
use model::{Hook, NumberDisplay, Timestamp};

fn parse_hook(hook: &str) -> Result<Hook, Problem> {
    Hook::named(hook).ok_or_else(|| {
        let names = Hook::ALL.map(Hook::name).join(", ");
        Problem::new(ProblemKind::NotFound, format!("{hook:?} is not a hook: the hooks are {names}"))
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

fn plugin_counts(counts: &[PluginCounts]) -> Vec<api::PluginCountsView> {
    let one = |PluginCounts { by, tenant, live, counts }: &PluginCounts| {
        // In the order of [`FaultKind::ALL`].
        let [trap, deadline, memory, verdict, instance] = counts.faults;
        api::PluginCountsView {
            plugin: by.plugin.clone(),
            version: by.version.clone(),
            tenant: tenant.as_deref().map(str::to_owned),
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

impl admin::Plugins for HookService {
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
                "hook {} has no fault {id}: the examples of GET /v1/hooks/{} contain the numbers",
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
        self.replays.begin((&self.routing, &self.directory), request)
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
