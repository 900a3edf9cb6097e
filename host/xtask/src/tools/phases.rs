//! Traffic while something is done to the appliance, and traffic while nothing is: what it feels like for who sends.

use super::aims;
use anyhow::{Result, bail};
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtask::load::{Source, SourceOptions, SourceReport, Stop, Tally};

/// How much later a message may be answered while something is done than while nothing is.
pub(crate) const ALLOWED: Duration = Duration::from_millis(50);

/// What one phase saw.
pub(crate) struct Phase {
    pub(crate) source: SourceReport,
    /// The longest time in which nothing arrived at the peer.
    pub(crate) gap: Duration,
    arrived: u64,
    pub(crate) time: Duration,
}

impl Phase {
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

    /// How much longer the longest answer was than in the other phase; an error where that is more than [`ALLOWED`].
    pub(crate) fn delay_against(&self, other: &Self) -> Result<Duration> {
        let delay = self.source.answers.max().saturating_sub(other.source.answers.max());
        aims::check(delay <= ALLOWED, || {
            format!(
                "the longest answer was {delay:?} longer than while nothing was done (allowed {ALLOWED:?})"
            )
        })?;
        Ok(delay)
    }
}

/// Has traffic flow while `work` works.
pub(crate) fn flow<T>(
    options: &SourceOptions,
    tally: &Arc<Tally>,
    work: impl FnOnce() -> Result<T>,
) -> Result<(Phase, T)> {
    let (source, watch) = (Source::start(options, tally)?, Arc::new(Stop::default()));
    let (watched, over) = (Arc::clone(tally), Arc::clone(&watch));
    let from = (tally.arrived_so_far(), Instant::now());
    let watcher =
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || longest_gap(&watched, &over))?;
    // Traffic must be there before the first exchange, and after the last.
    let pause = Stop::default();
    pause.pause(Duration::from_millis(500));
    let outcome = work();
    pause.pause(Duration::from_millis(500));
    watch.set();
    let (arrived, time) = (tally.arrived_so_far() - from.0, from.1.elapsed());
    let Ok(gap) = watcher.join() else { bail!("the watcher panicked") };
    source.stop();
    let source = source.join()?;
    Ok((Phase { source, gap, arrived, time }, outcome?))
}

fn longest_gap(tally: &Tally, over: &Stop) -> Duration {
    let (mut seen, mut since, mut longest) = (tally.arrived_so_far(), None, Duration::ZERO);
    while !over.pause(Duration::from_millis(1)) {
        let (now, arrived) = (Instant::now(), tally.arrived_so_far());
        if arrived != seen {
            if let Some(since) = since {
                longest = longest.max(now - since);
            }
            (seen, since) = (arrived, Some(now));
        }
    }
    longest
}
