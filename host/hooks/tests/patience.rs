//! A machine with more work than processors is no plugin's fault.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use model::Hook;
use support::{House, NOW, everything_to, peers};

#[test]
fn calls_whose_threads_wait_for_a_processor_are_no_faults() {
    let house = House::new();
    house
        .hooks
        .activate(Hook::Router, NOW, vec![house.binding("prefix_router", &everything_to("north"))], None)
        .unwrap();
    let north = house.peer("north");
    // With so many threads a processor's slice ends in the middle of many a call, and the next comes much later than the
    // call's deadline of 20 ms.
    let threads = 16 * std::thread::available_parallelism().unwrap().get().min(3);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let routed = house.route("good");
                    assert_eq!(peers(&routed), [north], "{routed:?}");
                }
            });
        }
    });
    assert_eq!(house.hooks.counts(Hook::Router)[0].counts.faults, [0; 5]);
}
