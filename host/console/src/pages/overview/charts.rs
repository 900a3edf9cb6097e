//! The charts of the overview: ten minutes, an hour, a day or thirty days, with events.

use crate::api_caller::encode_segment;
use crate::chart::{Line, Mark, TimeAxis, chart};
use crate::format::{clock_tag, day_tag, time_tag, with_times};
use crate::request_context::RequestContext;
use api::{
    HistoryEventKind, HistoryEventView, HistoryRange, HistorySampleView, MetricsHistoryView,
    MetricsSampleView, RecentMetricsView,
};
use maud::{Markup, html};

/// The number of samples of a rate.
const RATE_SAMPLES: usize = 5;
/// The number of events that are listed below the charts.
const MAX_EVENTS: usize = 10;

/// The range of the charts. `None`: the last ten minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChartRange(Option<HistoryRange>);

impl ChartRange {
    const ALL: [Self; 4] = [
        Self(None),
        Self(Some(HistoryRange::Hour)),
        Self(Some(HistoryRange::Day)),
        Self(Some(HistoryRange::Month)),
    ];

    /// The range of this name; ten minutes for other names.
    pub(super) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|range| range.name() == name).unwrap_or(Self(None))
    }

    pub(super) fn name(self) -> &'static str {
        self.0.map_or("minutes", HistoryRange::name)
    }

    fn label(self) -> &'static str {
        match self.0 {
            None => "10 minutes",
            Some(HistoryRange::Hour) => "hour",
            Some(HistoryRange::Day) => "day",
            Some(HistoryRange::Month) => "30 days",
        }
    }

    /// The history of the range.
    pub(super) async fn history(self, context: &RequestContext) -> Option<MetricsHistoryView> {
        context.get_optional(&format!("/v1/metrics/history?range={}", self.0?.name())).await
    }
}

/// The last point of a line.
pub(super) fn newest(line: &[Option<f64>]) -> Option<f64> {
    line.iter().rev().find_map(|point| *point)
}

/// Rates of the last minutes.
pub(super) struct RecentMetrics {
    minutes: u64,
    pub(super) accepted: Vec<Option<f64>>,
    pub(super) delivered: Vec<Option<f64>>,
    pub(super) failed: Vec<Option<f64>>,
    pub(super) refused: Vec<Option<f64>>,
    pub(super) waiting: Vec<Option<f64>>,
    pub(super) commit: Vec<Option<f64>>,
    pub(super) round_trip: Vec<Option<f64>>,
}

impl RecentMetrics {
    pub(super) fn of(recent: Option<&RecentMetricsView>) -> Self {
        let samples = recent.map_or(&[][..], |recent| recent.samples.as_slice());
        let most = recent.map_or(300, |recent| recent.capacity);
        let every = recent.map_or(2_000, |recent| recent.interval_ms).max(1);
        // Missing samples come first, so that the line of a recently started appliance is at the right.
        let missing = most.saturating_sub(samples.len());
        let line = |each: &dyn Fn(usize) -> Option<f64>| -> Vec<Option<f64>> {
            std::iter::repeat_n(None, missing).chain((0..samples.len()).map(each)).collect()
        };
        let delta = |at: usize, of: fn(&MetricsSampleView) -> u64| {
            let (before, now) = (samples.get(at.checked_sub(1)?)?, samples.get(at)?);
            Some(of(now).checked_sub(of(before))? as f64)
        };
        // A rate spans several samples, so that a few messages do not make it jump.
        let rate = |of: fn(&MetricsSampleView) -> u64| {
            line(&|at| {
                let first = at.saturating_sub(RATE_SAMPLES);
                let changes =
                    || (first + 1..=at).map(|at| Some((delta(at, of)?, delta(at, |sample| sample.at)?)));
                let (change, ms) = changes()
                    .try_fold((0.0, 0.0), |(change, ms), one| one.map(|(a, b)| (change + a, ms + b)))?;
                (ms > 0.0).then(|| change / ms * 1_000.0)
            })
        };
        Self {
            minutes: (most as u64 * every).div_ceil(60_000),
            accepted: rate(|sample| sample.accepted),
            delivered: rate(|sample| sample.delivered),
            failed: rate(|sample| sample.failed),
            refused: rate(|sample| sample.refused),
            waiting: line(&|at| Some(samples.get(at)?.waiting as f64)),
            commit: line(&|at| {
                let commits = delta(at, |sample| sample.commits)?;
                let spent = delta(at, |sample| sample.commit_us)?;
                (commits > 0.0).then(|| spent / commits / 1_000.0)
            }),
            round_trip: line(&|at| Some(samples.get(at)?.round_trip_us? as f64 / 1_000.0)),
        }
    }
}

impl RecentMetrics {
    /// The intervals of a history; rates are means of an interval.
    fn from_history(history: &MetricsHistoryView) -> Self {
        let interval = history.interval_ms.max(1);
        let slots = (history.until.saturating_sub(history.from) / interval) as usize;
        let line = |each: &dyn Fn(&HistorySampleView) -> Option<f64>| {
            let mut points = vec![None; slots];
            for sample in &history.samples {
                let slot = (sample.at.saturating_sub(history.from) / interval) as usize;
                if let Some(point) = points.get_mut(slot) {
                    *point = each(sample);
                }
            }
            points
        };
        let rate = |of: fn(&HistorySampleView) -> u64| {
            line(&|sample| {
                let seconds = f64::from(sample.observed_ms) / 1_000.0;
                (seconds > 0.0).then(|| of(sample) as f64 / seconds)
            })
        };
        let ms = |of: fn(&HistorySampleView) -> Option<u32>| {
            line(&|sample| of(sample).map(|micros| f64::from(micros) / 1_000.0))
        };
        Self {
            minutes: history.until.saturating_sub(history.from) / 60_000,
            accepted: rate(|sample| sample.accepted),
            delivered: rate(|sample| sample.delivered),
            failed: rate(|sample| sample.failed),
            refused: rate(|sample| sample.refused),
            waiting: line(&|sample| Some(sample.waiting as f64)),
            commit: ms(|sample| sample.commit_us),
            round_trip: ms(|sample| sample.round_trip_us),
        }
    }
}

fn kind_class(kind: HistoryEventKind) -> &'static str {
    match kind {
        HistoryEventKind::Fault => "bad",
        HistoryEventKind::TakeOver | HistoryEventKind::Start => "warn",
        HistoryEventKind::Configuration | HistoryEventKind::Exchange => "plain",
    }
}

fn event_title(event: &HistoryEventView) -> String {
    let subject = match event.kind {
        HistoryEventKind::Start => "The daemon started".to_owned(),
        HistoryEventKind::TakeOver => format!("This node took over, term {}", event.subject),
        HistoryEventKind::Configuration => format!("Configuration {}", event.subject),
        HistoryEventKind::Exchange => format!("Plugin exchange, {}", event.subject),
        HistoryEventKind::Fault => format!("Fault, {}", event.subject),
    };
    if event.text.is_empty() { subject } else { format!("{subject}: {}", event.text) }
}

/// The page about an event.
fn event_path(event: &HistoryEventView) -> Option<String> {
    let subject = encode_segment(&event.subject);
    match event.kind {
        HistoryEventKind::Start => None,
        HistoryEventKind::TakeOver => Some("/cluster".to_owned()),
        HistoryEventKind::Configuration => Some(format!("/configuration/versions/{subject}")),
        HistoryEventKind::Exchange | HistoryEventKind::Fault => Some(format!("/plugins/{subject}")),
    }
}

fn time_axis(range: ChartRange, minutes: u64, history: Option<&MetricsHistoryView>) -> TimeAxis {
    let Some(history) = history else {
        let labels = vec![html! { (minutes) " min ago" }, html! { "now" }];
        return TimeAxis { range: format!("{minutes} minutes"), labels, marks: Vec::new() };
    };
    let span = history.until.saturating_sub(history.from).max(1);
    let label = |part: u64| {
        let at = history.from + span / 4 * part;
        if range.0 == Some(HistoryRange::Month) { day_tag(at) } else { clock_tag(at) }
    };
    let mark = |event: &HistoryEventView| Mark {
        at: event.at.saturating_sub(history.from) as f64 / span as f64,
        class: kind_class(event.kind),
        title: event_title(event),
    };
    TimeAxis {
        range: range.label().to_owned(),
        labels: (0..4).map(label).chain([html! { "now" }]).collect(),
        marks: history.events.iter().map(mark).collect(),
    }
}

/// The control of the range, the charts, and the events in them.
pub(super) fn charts(
    range: ChartRange,
    recent: &RecentMetrics,
    history: Option<&MetricsHistoryView>,
) -> Markup {
    let of_history = history.map(RecentMetrics::from_history);
    let metrics = of_history.as_ref().unwrap_or(recent);
    let axis = time_axis(range, metrics.minutes, history);
    let line = |name, class, points: &Vec<Option<f64>>| Line { name, class, points: points.clone() };
    let events = history.map(|history| history.events.as_slice()).unwrap_or_default();
    html! {
        nav.range aria-label="Range of the charts" {
            @for one in ChartRange::ALL {
                a href=(format!("/?range={}#charts", one.name())) aria-current=[(one == range).then_some("true")] { (one.label()) }
            }
        }
        (chart("Throughput", "/s", &axis, &[line("accepted", "s1", &metrics.accepted), line("delivered", "s2", &metrics.delivered)]))
        (chart("Latency", "ms", &axis, &[line("to disk", "s1", &metrics.commit), line("peers' answers", "s2", &metrics.round_trip)]))
        (chart("Queue depth", "messages", &axis, &[line("waiting", "s1", &metrics.waiting)]))
        (chart("Failures", "/s", &axis, &[line("not delivered", "s3", &metrics.failed), line("refused", "s4", &metrics.refused)]))
        @if history.is_some() { (event_list(events)) }
    }
}

fn event_list(events: &[HistoryEventView]) -> Markup {
    let left_out = events.len().saturating_sub(MAX_EVENTS);
    html! {
        div.events {
            h2 { "Events" }
            @if events.is_empty() { p.muted { "No plugin change, configuration change, fault or start in this range." } }
            ul {
                @for event in events.iter().rev().take(MAX_EVENTS) {
                    li {
                        (time_tag(event.at)) " " span.badge.(kind_class(event.kind)) { (event.kind.name()) } " "
                        @match event_path(event) {
                            Some(path) => a href=(path) { (with_times(&event_title(event))) },
                            None => (with_times(&event_title(event))),
                        }
                    }
                }
            }
            @if left_out > 0 { p.muted { "And " (left_out) " earlier." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_800_000_000_000;

    #[test]
    fn a_history_has_gaps_and_events() {
        let sample = |turn: u64| HistorySampleView {
            at: AT + turn * 10_000,
            observed_ms: 5_000,
            accepted: 50,
            ..HistorySampleView::default()
        };
        let fault = HistoryEventView {
            at: AT + 15_000,
            kind: HistoryEventKind::Fault,
            subject: "router".to_owned(),
            text: "<trap>".to_owned(),
        };
        let history = MetricsHistoryView {
            from: AT,
            until: AT + 60_000,
            interval_ms: 10_000,
            samples: vec![sample(0), sample(5)],
            events: vec![fault],
        };
        let metrics = RecentMetrics::from_history(&history);
        assert_eq!(metrics.accepted, [Some(10.0), None, None, None, None, Some(10.0)]);
        let range = ChartRange::named("hour");
        let text = charts(range, &metrics, Some(&history)).into_string();
        assert!(text.contains("href=\"/plugins/router\"") && text.contains("&lt;trap&gt;"), "{text}");
        assert!(text.contains("x1=\"150.0\"") && text.contains("at most 10 /s in the last hour"), "{text}");
    }

    #[test]
    fn other_names_of_ranges_are_ten_minutes() {
        assert_eq!(ChartRange::named("month").name(), "month");
        assert_eq!(ChartRange::named("<b>").name(), "minutes");
    }

    #[test]
    fn rates_are_changes_over_time_and_a_restart_is_a_gap() {
        let sample =
            |at, accepted| MetricsSampleView { at, accepted, waiting: 3, ..MetricsSampleView::default() };
        let samples = vec![sample(0, 10), sample(2_000, 30), sample(4_000, 0)];
        let recent = RecentMetricsView { interval_ms: 2_000, capacity: 4, samples };
        let recent = RecentMetrics::of(Some(&recent));
        assert_eq!(recent.accepted, [None, None, Some(10.0), None]);
        assert_eq!(recent.waiting, [None, Some(3.0), Some(3.0), Some(3.0)]);
    }
}
