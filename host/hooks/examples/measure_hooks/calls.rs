//! Measures the cost of a warm call.

use crate::bench_fixture::{BenchFixture, NOW, forwarded};
use crate::cached_lookups::CachedLookups;
use crate::native::Native;
use crate::{Outcome, Plugin};
use hooks::Binding;
use model::Hook;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Duration;

/// Plugins that are called in turn, so that all run under the same conditions.
#[derive(Deserialize)]
pub(crate) struct Task {
    rounds: usize,
    plugins: Vec<Plugin>,
    /// The policy of the example routers, for a native function that follows it too.
    native: String,
}

/// Processor time for one message in each round, in nanoseconds.
#[derive(Serialize)]
pub(crate) struct Measured {
    name: String,
    nanoseconds: Vec<f64>,
    /// The reason why the measurement stopped.
    failed: Option<String>,
}

impl Measured {
    fn of(name: &str) -> Self {
        Self { name: name.to_owned(), nanoseconds: Vec::new(), failed: None }
    }
}

/// Processor time of each measurement.
const MIN_CPU_TIME: Duration = Duration::from_millis(15);
/// Number of warm-up calls of a guest.
const WARM: usize = 200;

pub(crate) fn measure(fixture: &BenchFixture, task: &Task) -> Outcome<Vec<Measured>> {
    let native = Native::read(fixture, &task.native)?;
    let cache = CachedLookups::fill(fixture);
    let mut measured = vec![Measured::of("native"), Measured::of("cached-lookup")];
    let mut bound = Vec::new();
    for plugin in &task.plugins {
        bound.push((plugin.hook, fixture.upload_once(plugin)?, plugin.batch.unwrap_or(1)));
        measured.push(Measured::of(&plugin.name));
    }
    for _ in 0..task.rounds {
        let count = fixture.messages.len();
        let mut n = 0;
        measured[0].nanoseconds.push(timed(|| {
            n += 1;
            black_box(native.route(black_box(&fixture.messages[n % count])));
        }));
        measured[1].nanoseconds.push(timed(|| {
            n += 1;
            black_box(cache.get(black_box(&fixture.messages[n % count])));
        }));
        for ((hook, binding, batch), measured) in bound.iter().zip(&mut measured[2..]) {
            if measured.failed.is_none() {
                match one(fixture, *hook, binding, *batch) {
                    Ok(nanoseconds) => measured.nanoseconds.push(nanoseconds),
                    Err(error) => measured.failed = Some(error.to_string()),
                }
            }
        }
    }
    Ok(measured)
}

/// One measurement of one plugin.
pub(crate) fn one(fixture: &BenchFixture, hook: Hook, binding: &Binding, batch: usize) -> Outcome<f64> {
    fixture.hooks.activate(hook, NOW, vec![binding.clone()], None)?;
    let mut routed = forwarded(fixture.north);
    let (mut n, mut wrong) = (0, 0_u64);
    let mut together = fixture.messages.clone();
    let mut ask = || {
        if batch > 1 {
            let from = n % together.len();
            let to = (from + batch).min(together.len());
            n += to - from;
            wrong += fixture.ask_many(hook, &mut together[from..to]);
        } else {
            n += 1;
            wrong += u64::from(!fixture.ask(hook, n, &mut together, &mut routed));
        }
    };
    (0..WARM).for_each(|_| ask());
    let cost = timed(ask) / batch as f64;
    if wrong > 0 {
        // A guest that fails too often is rolled back; the event has the reason.
        let event = fixture.hooks.status(hook).events.into_iter().next().map(|event| event.what);
        let why = event.unwrap_or_default();
        return Err(format!("{}: {wrong} of {n} answers are wrong; {why}", binding.plugin).into());
    }
    Ok(cost)
}

/// Processor time of this thread: wall-clock time would include other work on a busy machine.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time of one call, in nanoseconds.
pub(crate) fn timed(mut call: impl FnMut()) -> f64 {
    let (begun, mut calls, mut some) = (processor_time(), 0_u64, 8_u64);
    loop {
        (0..some).for_each(|_| call());
        calls += some;
        let taken = processor_time() - begun;
        if taken >= MIN_CPU_TIME {
            return taken.as_nanos() as f64 / calls as f64;
        }
        some = (some * 2).min(4096);
    }
}
