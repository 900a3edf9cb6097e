//! What the empty world of guests in other languages must not give away: the host's memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use hooks::{Binding, FaultKind, Tolerance};
use model::{Hook, Verdict};
use support::{House, NOW, patient, peers};

#[test]
fn things_to_wait_for_are_held_by_the_host_and_so_are_not_without_number() {
    let house = House::new();
    let hoarder = patient(house.binding("test_hoarder", "north"));
    let hoarder = Binding { tolerance: Tolerance { faults: 0, window_ms: 1 }, ..hoarder };
    house.hooks.activate(Hook::Router, NOW, vec![hoarder], None).unwrap();
    for _ in 0..3 {
        let routed = house.route("bad");
        assert!(matches!(routed.verdict, Verdict::Hold(_)), "{routed:?}");
        let note = routed.note.unwrap();
        // At once, and not when its time is over.
        assert!(note.starts_with("fault (trap)") && note.contains("handle"), "{note}");
        // Who lets go may have as many as it likes, one after the other.
        for _ in 0..3 {
            let routed = house.route("good");
            assert_eq!(peers(&routed), [house.peer("north")], "{routed:?}");
            assert_eq!(routed.note.as_deref(), Some("10000 were ready"));
        }
    }
    let counts = &house.hooks.counts(Hook::Router)[0].counts;
    assert_eq!(counts.faults, FaultKind::ALL.map(|kind| if kind == FaultKind::Trap { 3 } else { 0 }));
}
