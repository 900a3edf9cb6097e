//! The metrics history: ring files for an hour, a day and thirty days, and the events shown in charts.

mod ring;
mod starts;

use crate::configuration::Configuration;
use crate::plugins::Plugins;
use crate::problem::Problem;
use crate::recent_metrics::MetricsSampler;
use crate::request::QueryParams;
use crate::service::{Provides, Service, call};
use api::{
    BindingChange, HistoryEventKind, HistoryEventView, HistoryRange, MetricsHistoryView, MetricsSampleView,
};
use axum::Json;
use axum::extract::Extension;
use model::{Hook, Timestamp};
use parking_lot::Mutex;
use ring::Ring;
use serde::Deserialize;
use starts::Starts;
use std::io;
use std::path::Path;
use std::sync::Arc;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum number of events in a range.
const MAX_EVENTS: usize = 200;

pub(crate) fn routes<S: Provides<dyn Configuration> + Provides<dyn Plugins>>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(metrics_history))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// The range; default one hour.
    #[param(inline)]
    range: Option<HistoryRange>,
}

/// Shows the history of this node over an hour, a day or thirty days: counts by interval, and events.
#[utoipa::path(
    get,
    path = "/v1/metrics/history",
    params(HistoryQuery),
    responses((status = 200, description = "The history.", body = MetricsHistoryView)),
)]
async fn metrics_history(
    configuration: Service<dyn Configuration>,
    plugins: Service<dyn Plugins>,
    Extension(sampler): Extension<Arc<MetricsSampler>>,
    QueryParams(query): QueryParams<HistoryQuery>,
) -> Result<Json<MetricsHistoryView>, Problem> {
    let range = query.range.unwrap_or_default();
    let mut view = sampler.history(range, Timestamp::now().0);
    let (from, until) = (view.from, view.until);
    view.events.extend(call(configuration, |configuration| Ok(configuration_events(configuration))).await?);
    view.events.extend(call(plugins, |plugins| Ok(plugin_events(plugins))).await?);
    view.events.retain(|event| event.at >= from && event.at < until);
    view.events.sort_by_key(|event| event.at);
    let excess = view.events.len().saturating_sub(MAX_EVENTS);
    view.events.drain(..excess);
    Ok(Json(view))
}

/// Versions of the configuration; none if they cannot be read.
fn configuration_events(configuration: &dyn Configuration) -> Vec<HistoryEventView> {
    let versions = configuration.configuration_versions(None, MAX_EVENTS).unwrap_or_default().into_iter();
    let event = |version: api::ConfigVersionSummaryView| HistoryEventView {
        at: version.at,
        kind: HistoryEventKind::Configuration,
        subject: version.version.to_string(),
        text: match version.why.is_empty() {
            true => version.by,
            false => format!("{}: {}", version.by, version.why),
        },
    };
    versions.map(event).collect()
}

/// Binding changes and faults of plugins.
fn plugin_events(plugins: &dyn Plugins) -> Vec<HistoryEventView> {
    let mut events = Vec::new();
    for hook in Hook::ALL {
        let Ok(state) = plugins.hook(hook.name()) else { continue };
        let mut add = |at: u64, kind, text: String| {
            events.push(HistoryEventView { at, kind, subject: hook.name().to_owned(), text });
        };
        let history = state.history.unwrap_or_default();
        for record in history.iter().chain([&state.live]).filter(|record| record.serial > 0) {
            let kind = match record.change {
                BindingChange::RolledBackAutomatically => HistoryEventKind::Fault,
                _ => HistoryEventKind::Exchange,
            };
            let chain: Vec<String> =
                record.chain.iter().map(|one| format!("{} {}", one.plugin, one.version)).collect();
            add(record.since.0, kind, chain.join(", "));
        }
        for event in state.events.into_iter().filter(|event| event.kind == "faulty") {
            add(event.at.0, HistoryEventKind::Fault, event.what);
        }
    }
    events
}

/// The metrics history of this node.
#[derive(Debug)]
pub(crate) struct MetricsHistory {
    rings: Mutex<[Ring; 3]>,
    starts: Mutex<Starts>,
}

impl Default for MetricsHistory {
    fn default() -> Self {
        Self {
            rings: Mutex::new(HistoryRange::ALL.map(Ring::in_memory)),
            starts: Mutex::new(Starts::default()),
        }
    }
}

impl MetricsHistory {
    /// Opens the files in `folder`. If the disk cannot be written, the history is kept in memory only.
    pub(crate) fn open(folder: &Path) -> Self {
        Self::open_files(folder).unwrap_or_else(|error| {
            tracing::warn!(%error, folder = %folder.display(), "the metrics history is not recorded: its files cannot be opened");
            Self::default()
        })
    }

    fn open_files(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let [hour, day, month] = HistoryRange::ALL.map(|range| Ring::open(range, folder));
        let starts = Starts::open(&folder.join("starts.jsonl"))?;
        Ok(Self { rings: Mutex::new([hour?, day?, month?]), starts: Mutex::new(starts) })
    }

    /// Records a start of the daemon. `term` is the term, if this node leads a cluster.
    pub(crate) fn note_start(&self, at: u64, term: Option<u64>) {
        if let Err(error) = self.starts.lock().add(at, term) {
            tracing::warn!(%error, "the start is not in the metrics history: its file cannot be written");
        }
    }

    /// Adds the differences between two consecutive samples.
    pub(crate) fn add(&self, before: &MetricsSampleView, now: &MetricsSampleView) {
        let mut rings = self.rings.lock();
        let passed = now.at.saturating_sub(before.at);
        // The clock was set.
        if passed == 0 || passed > 60_000 {
            return;
        }
        for ring in rings.iter_mut() {
            let record = ring.record(now.at);
            record.observed_ms = record.observed_ms.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
            record.accepted += now.accepted.saturating_sub(before.accepted);
            record.refused += now.refused.saturating_sub(before.refused);
            record.delivered += now.delivered.saturating_sub(before.delivered);
            record.failed += now.failed.saturating_sub(before.failed);
            record.waiting = record.waiting.max(now.waiting);
            record.round_trip_us =
                now.round_trip_us.and_then(|micros| u32::try_from(micros).ok()).or(record.round_trip_us);
            let commits = now.commits.saturating_sub(before.commits);
            if let Some(mean) = now.commit_us.saturating_sub(before.commit_us).checked_div(commits) {
                // Weighted mean of all samples so far, by their observed time.
                let weight = f64::from(record.observed_ms).max(1.0) / passed as f64;
                let known = record.commit_us.map_or(mean as f64, f64::from);
                record.commit_us = Some((known + (mean as f64 - known) / weight) as u32);
            }
            if let Err(error) = ring.write(now.at) {
                tracing::debug!(%error, "a record of the metrics history cannot be written");
            }
        }
    }

    /// The range that ends at `now`, with the starts of the daemon.
    pub(crate) fn view(&self, range: HistoryRange, now: u64) -> MetricsHistoryView {
        let interval_ms = range.interval_ms();
        let until = now - now % interval_ms + interval_ms;
        let from = until.saturating_sub(range.length_ms());
        let samples = HistoryRange::ALL
            .iter()
            .zip(self.rings.lock().iter())
            .filter(|(of, _)| **of == range)
            .flat_map(|(_, ring)| ring.between(from, until))
            .collect();
        let events = self.starts.lock().between(from, until);
        MetricsHistoryView { from, until, interval_ms, samples, events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_800_000_000_000;

    fn sample(at: u64, accepted: u64) -> MetricsSampleView {
        MetricsSampleView {
            at: AT + at,
            accepted,
            commits: accepted,
            commit_us: accepted * 100,
            waiting: accepted % 7,
            ..MetricsSampleView::default()
        }
    }

    #[test]
    fn the_history_survives_a_restart_in_all_ranges() {
        let folder = tempfile::tempdir().unwrap();
        let history = MetricsHistory::open(folder.path());
        history.note_start(AT, None);
        for turn in 0..20 {
            history.add(&sample(turn * 2_000, turn * 10), &sample((turn + 1) * 2_000, (turn + 1) * 10));
        }
        drop(history);
        let history = MetricsHistory::open(folder.path());
        history.note_start(AT + 60_000, Some(7));
        // The counters begin at 0 again.
        history.add(&sample(62_000, 0), &sample(64_000, 10));
        for range in HistoryRange::ALL {
            let view = history.view(range, AT + 70_000);
            assert_eq!(view.samples.iter().map(|sample| sample.accepted).sum::<u64>(), 210, "{range:?}");
            assert_eq!(view.samples.iter().map(|sample| sample.observed_ms).sum::<u32>(), 42_000);
            assert!(view.samples.iter().all(|sample| sample.commit_us == Some(100)), "{:?}", view.samples);
            assert_eq!(
                view.events.iter().map(|event| (event.kind, &*event.subject)).collect::<Vec<_>>(),
                [(HistoryEventKind::Start, ""), (HistoryEventKind::TakeOver, "7")]
            );
        }
        assert_eq!(history.view(HistoryRange::Hour, AT + 70_000).samples.len(), 6);
        assert!(history.view(HistoryRange::Hour, AT + 3_700_000).samples.is_empty());
    }

    #[test]
    fn a_history_that_cannot_be_written_is_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let history = MetricsHistory::open(&file);
        history.add(&sample(0, 0), &sample(2_000, 3));
        assert_eq!(history.view(HistoryRange::Day, AT + 2_000).samples[0].accepted, 3);
    }
}
