//! Measures the time of activations, and the latency of concurrent calls.

use crate::bench_fixture::{BenchFixture, NOW};
use crate::{Outcome, Plugin};
use model::Hook;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Versions of a router that are activated one after the other during calls.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Task {
    versions: Vec<Plugin>,
    /// Number of calling threads.
    threads: u32,
    /// Calls per second of each thread.
    rate: u32,
}

/// The results; times in milliseconds.
#[derive(Serialize)]
pub(crate) struct Measured {
    /// The upload of each version, which compiles it.
    uploads: Vec<f64>,
    /// The activation of each version: instantiate, configure, self-check, replace.
    activations: Vec<f64>,
    /// Calls during uploads and activations.
    during: Calls,
    /// Calls over the same time without uploads and activations.
    without: Calls,
}

#[derive(Serialize, Default)]
struct Calls {
    seconds: f64,
    calls: usize,
    median: f64,
    /// The 99.9th percentile.
    p999: f64,
    longest: f64,
    /// The longest calls, in descending order.
    tail: Vec<f64>,
    /// Calls of more than 5 ms.
    late: usize,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn measure(fixture: &BenchFixture, task: &Task) -> Outcome<Measured> {
    let (first, versions) = task.versions.split_first().ok_or("no versions")?;
    let binding = fixture.upload_once(first)?;
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None)?;
    let (mut uploads, mut activations) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    let (during, exchanged) = calling(fixture, task, || -> Outcome<()> {
        for version in versions {
            let begun = Instant::now();
            let binding = fixture.upload_once(version)?;
            uploads.push(ms(begun.elapsed()));
            let begun = Instant::now();
            fixture.hooks.activate(Hook::Router, NOW, vec![binding], None)?;
            activations.push(ms(begun.elapsed()));
        }
        Ok(())
    });
    exchanged?;
    let time = begun.elapsed();
    let (without, ()) = calling(fixture, task, || {
        let begun = Instant::now();
        // A park may end early: an earlier wait may have left its token.
        while let Some(left) = time.checked_sub(begun.elapsed()) {
            std::thread::park_timeout(left);
        }
    });
    Ok(Measured { uploads, activations, during, without })
}

/// Threads call the router while `work` runs.
fn calling<T>(fixture: &BenchFixture, task: &Task, work: impl FnOnce() -> T) -> (Calls, T) {
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..task.threads).map(|_| scope.spawn(|| caller(fixture, task, &over))).collect();
        let done = work();
        over.store(true, Relaxed);
        let mut times: Vec<Duration> =
            callers.into_iter().filter_map(|caller| caller.join().ok()).flatten().collect();
        times.sort_unstable();
        let at =
            |share: f64| times.get(((times.len() as f64 - 1.0) * share) as usize).copied().map_or(0.0, ms);
        let calls = Calls {
            seconds: begun.elapsed().as_secs_f64(),
            calls: times.len(),
            median: at(0.5),
            p999: at(0.999),
            longest: at(1.0),
            tail: times.iter().rev().take(5).copied().map(ms).collect(),
            late: times.iter().rev().take_while(|time| **time > Duration::from_millis(5)).count(),
        };
        (calls, done)
    })
}

/// Calls at a steady rate; returns the time of each call.
fn caller(fixture: &BenchFixture, task: &Task, over: &AtomicBool) -> Vec<Duration> {
    let every = Duration::from_secs(1) / task.rate.max(1);
    let (begun, mut times) = (Instant::now(), Vec::new());
    while !over.load(Relaxed) {
        let due = every * u32::try_from(times.len()).unwrap_or(u32::MAX);
        if let Some(early) = due.checked_sub(begun.elapsed()) {
            std::thread::park_timeout(early);
            continue;
        }
        let message = &fixture.messages[times.len() % fixture.messages.len()];
        let call = Instant::now();
        black_box(fixture.hooks.route(black_box(message), NOW));
        times.push(call.elapsed());
    }
    times
}
