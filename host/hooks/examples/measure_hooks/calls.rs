//! What a warm call costs.

use crate::house::{House, NOW, forwarded};
use crate::native::Native;
use crate::{Outcome, Plugin};
use hooks::Binding;
use model::Hook;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::Duration;

/// Plugins that are asked in turn, so that all of them see the same machine.
#[derive(Deserialize)]
pub(crate) struct Task {
    rounds: usize,
    plugins: Vec<Plugin>,
    /// The policy of the example routers, for a native function that follows it too.
    native: String,
}

/// Nanoseconds of processor time that one call took, in each round.
#[derive(Serialize)]
pub(crate) struct Measured {
    name: String,
    nanoseconds: Vec<f64>,
    /// Why it was not measured any further.
    failed: Option<String>,
}

impl Measured {
    fn of(name: &str) -> Self {
        Self { name: name.to_owned(), nanoseconds: Vec::new(), failed: None }
    }
}

/// Processor time of each measurement.
const ENOUGH: Duration = Duration::from_millis(15);
/// Calls by which a guest gets warm.
const WARM: usize = 200;

pub(crate) fn measure(house: &House, task: &Task) -> Outcome<Vec<Measured>> {
    let native = Native::read(house, &task.native)?;
    let mut measured = vec![Measured::of("native")];
    let mut bound = Vec::new();
    for plugin in &task.plugins {
        bound.push((plugin.hook, house.keep(plugin)?));
        measured.push(Measured::of(&plugin.name));
    }
    for _ in 0..task.rounds {
        let count = house.messages.len();
        let mut n = 0;
        measured[0].nanoseconds.push(timed(|| {
            n += 1;
            black_box(native.route(black_box(&house.messages[n % count])));
        }));
        for ((hook, binding), measured) in bound.iter().zip(&mut measured[1..]) {
            if measured.failed.is_none() {
                match one(house, *hook, binding) {
                    Ok(nanoseconds) => measured.nanoseconds.push(nanoseconds),
                    Err(error) => measured.failed = Some(error.to_string()),
                }
            }
        }
    }
    Ok(measured)
}

/// One plugin, for one measurement.
fn one(house: &House, hook: Hook, binding: &Binding) -> Outcome<f64> {
    house.hooks.activate(hook, NOW, vec![binding.clone()], None)?;
    let mut routed = forwarded(house.north);
    let (mut n, mut wrong) = (0, 0_u64);
    let mut ask = || {
        n += 1;
        wrong += u64::from(!house.ask(hook, n, &mut routed));
    };
    (0..WARM).for_each(|_| ask());
    let cost = timed(ask);
    if wrong > 0 {
        // A guest that fails too often is taken back by itself, and the book says why.
        let event = house.hooks.state(hook).events.into_iter().next().map(|event| event.what);
        let why = event.unwrap_or_default();
        return Err(format!("{}: {wrong} of {n} answers are wrong; {why}", binding.plugin).into());
    }
    Ok(cost)
}

/// Processor time of this thread: the wall's would count what others do on a crowded machine.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Nanoseconds of one call.
fn timed(mut call: impl FnMut()) -> f64 {
    let (begun, mut calls, mut some) = (processor_time(), 0_u64, 8_u64);
    loop {
        (0..some).for_each(|_| call());
        calls += some;
        let taken = processor_time() - begun;
        if taken >= ENOUGH {
            return taken.as_nanos() as f64 / calls as f64;
        }
        some = (some * 2).min(4096);
    }
}
