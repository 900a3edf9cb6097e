//! Profiles: samples of the stacks of plugins and of the host's functions, with deadlines as without a profiler.

use crate::support::{HooksFixture, NOW, guest, message, options};
use hooks::{Binding, FaultKind, HookError, HooksOptions, Profiler};
use model::Hook;
use std::sync::Arc;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_micros(50);

fn profiled(guest_name: &str) -> (HooksFixture, Arc<Profiler>) {
    let profiler = Profiler::start(&guest(guest_name), INTERVAL).unwrap();
    let fixture = HooksFixture::with(HooksOptions { profiler: Some(profiler.clone()), ..options() });
    (fixture, profiler)
}

#[test]
fn a_loop_is_sampled_until_its_deadline() {
    let (fixture, profiler) = profiled("test_moody_router");
    let binding = fixture.binding("test_moody_router", "loop north");
    let binding = Binding { deadline: Duration::from_millis(60), ..binding };
    let dry_run = fixture.hooks.dry_run(Hook::Router, &[binding]).unwrap();
    let good = dry_run.route(&message("acme", "8613"), NOW, None);
    assert!(good.verdict.is_ok(), "{:?}", good.verdict);
    profiler.clear();
    let fault = dry_run.route(&message("bad", "8613"), NOW, None).verdict.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Deadline);
    let profile = profiler.profile(None);
    assert!(profile.samples > 0 && profile.interval >= INTERVAL, "{profile:?}");
    assert_eq!(profile.stacks.iter().map(|stack| stack.samples).sum::<u64>(), profile.samples);
    let outermost = |stack: &hooks::ProfiledStack| stack.frames[0].function.clone();
    assert!(profile.stacks.iter().all(|stack| outermost(stack).ends_with("#route")), "{profile:?}");
}

#[test]
fn a_profile_needs_a_component() {
    let error = Profiler::start(b"no component", INTERVAL).unwrap_err();
    assert!(matches!(error, HookError::Broken(_)), "{error}");
}
