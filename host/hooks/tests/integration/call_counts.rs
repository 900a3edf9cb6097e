//! The counts of a plugin: calls, host calls and memory.

use crate::support::{HooksFixture, NOW, message, with_long_deadline};
use hooks::{CallCounts, HostInterface};
use model::{Hook, Message};

fn counts(fixture: &HooksFixture) -> CallCounts {
    fixture.hooks.counts(Hook::Router)[0].counts.clone()
}

fn host_calls(fixture: &HooksFixture) -> Vec<(&'static str, u64)> {
    let named = HostInterface::ALL.iter().zip(counts(fixture).host_calls);
    named.filter(|(_, count)| *count > 0).map(|(interface, count)| (interface.name(), count)).collect()
}

#[test]
fn host_calls_are_counted_by_interface() {
    let fixture = HooksFixture::new();
    let binding = with_long_deadline(fixture.binding("test_asker", "to north 3"));
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    assert_eq!(host_calls(&fixture), [], "the self-check is no traffic");
    let _ = fixture.route("good");
    assert_eq!(host_calls(&fixture), [("clock", 1), ("counters", 3), ("peers", 1)]);
    let _ = fixture.hooks.explain(&message("good", "8613012345678"), NOW);
    assert_eq!(
        host_calls(&fixture),
        [("clock", 1), ("counters", 3), ("peers", 1)],
        "a preview counts nothing"
    );
    let batch: Vec<Message> = (0..9).map(|_| message("good", "8613012345678")).collect();
    let _ = fixture.hooks.route_many(&batch.iter().collect::<Vec<_>>(), NOW);
    assert_eq!(host_calls(&fixture), [("clock", 10), ("counters", 30), ("peers", 10)]);
}

#[test]
fn the_memory_of_instances_is_measured() {
    let fixture = HooksFixture::new();
    let binding = with_long_deadline(fixture.moody("hog", "north"));
    let limit = binding.memory as u64;
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    let _ = fixture.route("good");
    let before = counts(&fixture).memory;
    assert!((65_536..limit).contains(&before), "{before}");
    let _ = fixture.route("bad");
    let after = counts(&fixture).memory;
    assert!((before + 1..=limit).contains(&after), "{after} of {limit}");
}
