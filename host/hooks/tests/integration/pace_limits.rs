//! Pace buckets and send windows that routers name.

use crate::support::{HooksFixture, NOW, message, with_long_deadline};
use hooks::Binding;
use model::{
    DefinedPeriod, Hook, MessageChanges, PaceBucketDefinition, PaceBucketUse, PaceUnit, SendHours,
    SendWindowDefinition, SendWindowUse, Verdict,
};

fn bound(documents: &[&str]) -> HooksFixture {
    let fixture = HooksFixture::recording(true);
    let chain: Vec<Binding> = documents
        .iter()
        .map(|document| with_long_deadline(fixture.binding("test_examiner", document)))
        .collect();
    fixture.hooks.activate(Hook::Router, NOW, chain, None).unwrap();
    fixture
}

fn per_day(name: &str, amount: u64, zone: &str, counts: PaceUnit) -> PaceBucketUse {
    let per = DefinedPeriod::Day(zone.into());
    PaceBucketUse { name: name.into(), defined: Some(PaceBucketDefinition { amount, per, counts }) }
}

#[test]
fn limits_add_up_along_the_chain_and_the_later_definition_counts() {
    let documents = [
        "bucket brand\nbucket c1 5 UTC\nwindow day\npass",
        "segments c1 7 europe/berlin\nwindow night UTC 1320 360\nforward north",
    ];
    let fixture = bound(&documents);
    let asked = message("good", "8613012345678");
    let routed = fixture.hooks.route(&asked, NOW);
    let mut expected = MessageChanges::default();
    expected.use_pace_bucket(PaceBucketUse { name: "brand".into(), defined: None });
    expected.use_pace_bucket(per_day("c1", 7, "Europe/Berlin", PaceUnit::Segments));
    expected.use_send_window(SendWindowUse { name: "day".into(), defined: None });
    let hours = vec![SendHours { days: [true; 7], opens: 1320, closes: 360 }];
    let defined = Some(SendWindowDefinition { zone: "UTC".into(), hours });
    expected.use_send_window(SendWindowUse { name: "night".into(), defined });
    assert_eq!(routed.changes.as_deref(), Some(&expected));

    let chain = documents.map(|document| with_long_deadline(fixture.binding("test_examiner", document)));
    let dry_run = fixture.hooks.dry_run(Hook::Router, &chain).unwrap();
    let again = dry_run.route(&asked, NOW, routed.host_calls.as_deref());
    assert_eq!(again.changes.as_deref(), Some(&expected), "a replay names the same");
}

#[test]
fn a_wrong_limit_is_a_fault() {
    for (document, what) in [
        ("bucket C1 5 UTC", "a name has 1 to 64"),
        ("bucket c1 0 UTC", "the amount is 1 to"),
        ("bucket c1 5 Europe/Bonn", "the time zone \"Europe/Bonn\" is unknown"),
        ("window day UTC 480 480", "`closes` is also `opens`"),
        ("window day UTC 1440 10", "`opens` is below 1440"),
    ] {
        let fixture = bound(&[&format!("{document}\nforward north")]);
        let routed = fixture.hooks.route(&message("good", "8613012345678"), NOW);
        assert!(matches!(routed.verdict, Verdict::Hold(_)), "{document}: {:?}", routed.verdict);
        let note = routed.note.unwrap_or_default();
        assert!(note.contains(what), "{document}: {note}");
    }
}
