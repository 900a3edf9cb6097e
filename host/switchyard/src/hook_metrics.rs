//! Metrics of hooks, and of the engine's hook calls.

use crate::hook_service::HookService;
use admin::metrics::{self, MetricsPage};
use hooks::{CallCounts, FaultKind, HostInterface, PluginCounts};
use model::{Hook, PluginVersion};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Host calls of a plugin by interface, for the interfaces that it has called.
pub(crate) fn host_calls(counts: &CallCounts) -> impl Iterator<Item = (&'static str, u64)> {
    let named = HostInterface::ALL.iter().zip(counts.host_calls);
    named.filter(|(_, count)| *count > 0).map(|(interface, count)| (interface.name(), count))
}

/// The counts summed by plugin version: one version may have a thousand bindings.
fn by_version(counts: Vec<PluginCounts>) -> Vec<PluginCounts> {
    let mut sums: Vec<PluginCounts> = Vec::new();
    let mut places: HashMap<Arc<PluginVersion>, usize> = HashMap::new();
    for one in counts {
        match places.get(&one.by).and_then(|place| sums.get_mut(*place)) {
            Some(sum) => sum.counts.add(&one.counts),
            None => {
                places.insert(one.by.clone(), sums.len());
                sums.push(one);
            }
        }
    }
    sums
}

impl HookService {
    pub(crate) fn write_hook_metrics(&self, page: &mut MetricsPage) {
        let all = Hook::ALL.map(|hook| (hook.name(), by_version(self.routing.hooks.counts(hook))));
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
        let tenants = self.routing.hooks.tenant_calls();
        for (tenant, calls) in &tenants {
            page.put(&metrics::TENANT_PLUGIN_CALLS, &[tenant], calls.calls as f64);
        }
        for (tenant, calls) in &tenants {
            page.put(&metrics::TENANT_PLUGIN_FAULTS, &[tenant], calls.faults as f64);
        }
        for (tenant, calls) in &tenants {
            page.put(&metrics::TENANT_PLUGIN_SECONDS, &[tenant], calls.nanoseconds as f64 / 1e9);
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
