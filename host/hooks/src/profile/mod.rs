//! The profiler: samples the call stacks of plugins to show where they spend their time. It is for the plugin author's
//! tools. The daemon uses no profiler, and a plugin without one has no overhead.
//!
//! A thread counts *ticks* at a steady interval, and increments the epoch of the engines with each. The next check of the epoch
//! in the plugin, at the start of a function or the head of a loop, samples the stack: see [`sampling`]. Ticks during a host
//! call are attributed to the host function: see [`host_functions`].

mod code_map;
mod host_functions;
mod report;
mod sampling;

pub use report::{Profile, ProfiledFrame, ProfiledStack};

pub(crate) use host_functions::link;
pub(crate) use sampling::NEXT_TICK;

use crate::HookError;
use crate::stack::WasmFrame;
use code_map::CodeMap;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wasmtime::{Engine, EngineWeak};

/// Increments of the epoch with each tick. Two, so that the clock of deadlines, which increments it by one from time to
/// time, causes no samples.
const EPOCH_STEP: u64 = 2;

/// The maximum number of frames of a sample. Interpreters recurse deeply.
pub(crate) const MAX_FRAMES: usize = 250;

/// A stack, innermost frame first, and the host function in which the plugin was.
type SampledStack = (Box<[WasmFrame]>, Option<&'static str>);

/// Samples the call stacks of one component in the hosts that were opened with it ([`crate::HooksOptions::profiler`]). One thread
/// must make all calls.
#[derive(Default)]
pub struct Profiler {
    code: CodeMap,
    ticks: AtomicU64,
    engines: Mutex<Vec<EngineWeak>>,
    samples: Mutex<Samples>,
}

#[derive(Default)]
struct Samples {
    stacks: HashMap<SampledStack, u64>,
    count: u64,
    /// The start of sampling, and the number of ticks before it.
    since: Option<(Instant, u64)>,
}

impl std::fmt::Debug for Profiler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Profiler").field("samples", &self.samples()).finish_non_exhaustive()
    }
}

impl Profiler {
    /// Starts the ticks, which end with the profiler. `interval`: the time between two of them, at least; a busy machine makes
    /// it longer.
    ///
    /// # Errors
    /// The octets are no component, or the system starts no thread.
    pub fn start(component: &[u8], interval: Duration) -> Result<Arc<Self>, HookError> {
        let profiler = Arc::new(Self { code: CodeMap::read(component)?, ..Self::default() });
        profiler.clear();
        let ticked = Arc::downgrade(&profiler);
        std::thread::Builder::new()
            .name("profile-ticks".to_owned())
            .spawn(move || {
                loop {
                    std::thread::park_timeout(interval);
                    let Some(profiler) = ticked.upgrade() else { return };
                    profiler.tick();
                }
            })
            .map_err(|error| HookError::Engine(format!("starting the profiler's thread: {error}")))?;
        Ok(profiler)
    }

    fn tick(&self) {
        self.ticks.fetch_add(1, Relaxed);
        self.engines.lock().retain(|engine| {
            let Some(engine) = engine.upgrade() else { return false };
            (0..EPOCH_STEP).for_each(|_| engine.increment_epoch());
            true
        });
    }

    /// Also ticks this engine.
    pub(crate) fn watch(&self, engine: &Engine) {
        self.engines.lock().push(engine.weak());
    }

    /// Number of samples since the start, or since they were cleared.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.lock().count
    }

    /// Discards all samples.
    pub fn clear(&self) {
        let since = Some((Instant::now(), self.ticks.load(Relaxed)));
        *self.samples.lock() = Samples { since, ..Samples::default() };
    }

    fn add(&self, frames: Box<[WasmFrame]>, host_function: Option<&'static str>, ticks: u64) {
        let mut samples = self.samples.lock();
        samples.count += ticks;
        *samples.stacks.entry((frames, host_function)).or_default() += ticks;
    }

    /// The profile so far. `debug_info`: the component with debug sections, for source lines and inlined functions.
    #[must_use]
    pub fn profile(&self, debug_info: Option<&[u8]>) -> Profile {
        let samples = self.samples.lock();
        let interval = samples.since.map(|(since, before)| {
            let ticks = self.ticks.load(Relaxed).saturating_sub(before).max(1);
            since.elapsed() / u32::try_from(ticks).unwrap_or(u32::MAX)
        });
        Profile {
            stacks: report::describe(&samples.stacks, debug_info),
            samples: samples.count,
            interval: interval.unwrap_or_default(),
        }
    }
}
