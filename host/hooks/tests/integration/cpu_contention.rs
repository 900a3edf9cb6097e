//! On an overloaded machine, waiting for a processor is not the plugin's fault.

use crate::support::{HooksFixture, NOW, forwarded_peers, route_all_to};
use model::Hook;

#[test]
fn time_without_a_processor_is_not_a_deadline_fault() {
    let fixture = HooksFixture::new();
    fixture
        .hooks
        .activate(Hook::Router, NOW, vec![fixture.binding("prefix_router", &route_all_to("north"))], None)
        .unwrap();
    let north = fixture.peer("north");
    // With this number of threads, a time slice ends during many calls, and the next one comes long after the call's
    // deadline of 20 ms.
    let threads = 16 * std::thread::available_parallelism().unwrap().get().min(3);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let routed = fixture.route("good");
                    assert_eq!(forwarded_peers(&routed), [north], "{routed:?}");
                }
            });
        }
    });
    assert_eq!(fixture.hooks.counts(Hook::Router)[0].counts.faults, [0; 5]);
}
