//! Samples of a plugin's call stack.
//!
//! wasmtime checks the epoch at the start of each function and at the head of each loop, and calls back when it has passed the
//! store's deadline. So a sample shows the plugin at the first check after the tick, not exactly at the tick. A tick after
//! the last check of a call makes no sample.

use super::{EPOCH_STEP, Profiler};
use crate::deadline::check_deadline;
use crate::host_calls::InstanceState;
use crate::stack::WasmFrame;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wasmtime::{AsContext, Store, StoreContextMut, UpdateDeadline, WasmBacktrace};

/// The epoch's deadline, in increments, for which the next tick makes a sample.
pub(crate) const NEXT_TICK: u64 = EPOCH_STEP;

impl Profiler {
    /// Samples the calls of an instance, and ends those beyond their deadline: `call`, or `configuration` while it is configured.
    pub(crate) fn attach(
        self: &Arc<Self>,
        store: &mut Store<InstanceState>,
        call: Duration,
        configuration: Duration,
    ) {
        let profiler = self.clone();
        let mut next_check: Option<Instant> = None;
        store.epoch_deadline_callback(move |mut context| {
            profiler.sample(&context);
            let state = context.data_mut();
            if state.is_host_time_over() {
                return Ok(UpdateDeadline::Interrupt);
            }
            let deadline = if state.configuring { configuration } else { call };
            let now = Instant::now();
            let is_first = state.last_check.is_none();
            if !is_first && next_check.is_some_and(|at| now < at) {
                return Ok(UpdateDeadline::Continue(NEXT_TICK));
            }
            next_check = Some(now + deadline / 2);
            // Checks begin with the first sample instead of after half the deadline, so the call has the whole of it from then on.
            let checked = check_deadline(&mut state.last_check, deadline * 2, NEXT_TICK);
            Ok(checked.unwrap_or(UpdateDeadline::Interrupt))
        });
        store.set_epoch_deadline(NEXT_TICK);
    }

    fn sample(&self, context: &StoreContextMut<'_, InstanceState>) {
        let frames = self.capture(context);
        match &frames[..] {
            [] => {}
            // The tick was before the call had run anything: the host was preparing it.
            [only] if self.code.is_at_entry(only) => {}
            _ => self.add(frames, None, 1),
        }
    }

    /// Runs a host function. The ticks during the call are attributed to the host function `function`.
    pub(super) fn run_host_function<R>(
        &self,
        mut store: StoreContextMut<'_, InstanceState>,
        function: &'static str,
        run: impl FnOnce(&mut InstanceState) -> R,
    ) -> R {
        let before = self.ticks.load(Relaxed);
        let result = run(store.data_mut());
        let ticks = self.ticks.load(Relaxed).saturating_sub(before);
        if ticks > 0 {
            self.add(self.capture(&store), Some(function), ticks);
            store.set_epoch_deadline(NEXT_TICK);
        }
        result
    }

    fn capture(&self, context: impl AsContext) -> Box<[WasmFrame]> {
        let captured = WasmBacktrace::force_capture(context);
        captured.frames().iter().map(WasmFrame::of).filter(|frame| !self.code.is_shim(frame)).collect()
    }
}
