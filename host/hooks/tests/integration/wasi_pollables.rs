//! Guests in other languages cannot use the empty WASI world to exhaust the host's memory.

use crate::support::{HooksFixture, NOW, forwarded_peers, with_long_deadline};
use hooks::{Binding, FaultKind, Tolerance};
use model::{Hook, Verdict};

#[test]
fn pollables_are_limited_by_the_host() {
    let fixture = HooksFixture::new();
    let hoarder = with_long_deadline(fixture.binding("test_hoarder", "north"));
    let hoarder = Binding { tolerance: Tolerance { faults: 0, window_ms: 1 }, ..hoarder };
    fixture.hooks.activate(Hook::Router, NOW, vec![hoarder], None).unwrap();
    for _ in 0..3 {
        let routed = fixture.route("bad");
        assert!(matches!(routed.verdict, Verdict::Hold(_)), "{routed:?}");
        let note = routed.note.unwrap();
        // At once, and not at the deadline.
        assert!(note.starts_with("fault (trap)") && note.contains("handle"), "{note}");
        // A guest that drops its pollables may create any number of them, one after the other.
        for _ in 0..3 {
            let routed = fixture.route("good");
            assert_eq!(forwarded_peers(&routed), [fixture.peer("north")], "{routed:?}");
            assert_eq!(routed.note.as_deref(), Some("10000 were ready"));
        }
    }
    let counts = &fixture.hooks.counts(Hook::Router)[0].counts;
    assert_eq!(counts.faults, FaultKind::ALL.map(|kind| if kind == FaultKind::Trap { 3 } else { 0 }));
}
