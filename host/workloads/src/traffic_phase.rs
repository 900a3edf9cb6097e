//! Traffic with and without a concurrent operation on the appliance, to measure how the operation affects senders.

use super::aims;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::{Source, SourceOptions, SourceReport, StopFlag, Tally};

/// Maximum additional time to an answer during the operation.
pub(crate) const MAX_EXTRA_DELAY: Duration = Duration::from_millis(50);

/// Results of one phase.
pub(crate) struct TrafficPhase {
    pub(crate) source: SourceReport,
    /// The longest time without an arrival at the peer.
    pub(crate) gap: Duration,
    arrived: u64,
    pub(crate) time: Duration,
}

impl TrafficPhase {
    pub(crate) fn print(&self, name: &str) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "  {name:<15}{:>8.0} a second; answers p50 {:>5.1} ms, p99 {:>5.1} ms, longest {:>6.1} ms; longest silence at the peer {:>5.1} ms",
            self.arrived as f64 / self.time.as_secs_f64(),
            ms(self.source.answers.quantile(0.5)),
            ms(self.source.answers.quantile(0.99)),
            ms(self.source.answers.max()),
            ms(self.gap),
        );
    }

    /// The difference between the longest times to an answer in the two phases; an error if it exceeds
    /// [`MAX_EXTRA_DELAY`].
    pub(crate) fn delay_against(&self, other: &Self) -> Result<Duration> {
        let delay = self.source.answers.max().saturating_sub(other.source.answers.max());
        aims::check(delay <= MAX_EXTRA_DELAY, || {
            format!(
                "the longest answer was {delay:?} longer than without the operation (allowed {MAX_EXTRA_DELAY:?})"
            )
        })?;
        Ok(delay)
    }
}

/// Runs traffic while `work` runs.
pub(crate) fn run_under_load<T>(
    options: &SourceOptions,
    tally: &Arc<Tally>,
    work: impl FnOnce() -> Result<T>,
) -> Result<(TrafficPhase, T)> {
    let (source, watch) = (Source::start(options, tally)?, Arc::new(StopFlag::default()));
    let (watched, over) = (Arc::clone(tally), Arc::clone(&watch));
    let from = (tally.arrived_count(), Instant::now());
    let watcher =
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || longest_gap(&watched, &over))?;
    // Traffic must flow before the first operation and after the last one.
    let pause = StopFlag::default();
    pause.pause(Duration::from_millis(500));
    let outcome = work();
    pause.pause(Duration::from_millis(500));
    watch.set();
    let (arrived, time) = (tally.arrived_count() - from.0, from.1.elapsed());
    let Ok(gap) = watcher.join() else { bail!("the watcher panicked") };
    source.stop();
    let source = source.join()?;
    Ok((TrafficPhase { source, gap, arrived, time }, outcome?))
}

fn longest_gap(tally: &Tally, over: &StopFlag) -> Duration {
    let (mut seen, mut since, mut longest) = (tally.arrived_count(), None, Duration::ZERO);
    while !over.pause(Duration::from_millis(1)) {
        let (now, arrived) = (Instant::now(), tally.arrived_count());
        if arrived != seen {
            if let Some(since) = since {
                longest = longest.max(now - since);
            }
            (seen, since) = (arrived, Some(now));
        }
    }
    longest
}
