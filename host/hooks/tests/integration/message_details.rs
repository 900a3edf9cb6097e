//! Message details of routers: their reads beyond the message record, their changes, and the texts of their faults.

use crate::support::{HooksFixture, NOW, forwarded_peers, message, with_long_deadline};
use bytes::Bytes;
use hooks::{Binding, OnFault};
use model::{DlrRequest, Hook, Message, MessageChanges, Timestamp, Verdict, put_tlv};
use std::collections::{BTreeMap, HashMap};

fn bound(documents: &[&str]) -> HooksFixture {
    let fixture = HooksFixture::recording(true);
    let chain: Vec<Binding> = documents
        .iter()
        .map(|document| with_long_deadline(fixture.binding("test_examiner", document)))
        .collect();
    fixture.hooks.activate(Hook::Router, NOW, chain, None).unwrap();
    fixture
}

fn note(fixture: &HooksFixture, message: &Message) -> String {
    fixture.hooks.route(message, NOW).note.unwrap_or_default().into()
}

#[test]
fn details_are_fetched_when_asked_for() {
    let lines = [
        "note tlv 1401",
        "note tlv 1402",
        "note tlvs",
        "note header",
        "note text",
        "note urls",
        "note esm-class",
        "note protocol-id",
        "note receipts",
        "note scheduled",
        "note valid-until",
        "forward north",
    ];
    let fixture = bound(&[&lines.join("\n")]);
    let mut asked = message("good", "8613012345678");
    let mut tlvs = Vec::new();
    put_tlv(&mut tlvs, 0x1401, b"brand");
    put_tlv(&mut tlvs, 0x0204, b"9");
    asked.tlvs = tlvs.into();
    asked.text.octets = Bytes::from_static(b"\x05\x00\x03\x01\x02\x01see a.example/x, 42");
    asked.text.udhi = true;
    (asked.esm_class, asked.protocol_id) = (0x80, 0x40);
    asked.dlr_request = DlrRequest { on_success: true, on_failure: false, intermediate: true };
    asked.scheduled = Some(Timestamp(1_000));
    asked.expires_at = Timestamp(2_000);
    assert_eq!(
        note(&fixture, &asked),
        "brand|none|1401=brand0204=9|050003010201|\u{5}\0\u{3}\u{1}\u{2}\u{1}see a.example/x, 42|a.example/x|128|64|\
         Receipts { bits: 5 }|Some(1000)|2000"
    );
    // A message without these details: nothing of the previous message is left.
    let bare = note(&fixture, &message("good", "8613012345678"));
    assert!(bare.starts_with("none|none|||") && bare.contains("|0|0|Receipts { bits: 0 }|None|"), "{bare}");
}

#[test]
fn changes_add_up_along_the_chain_and_count_with_a_forward_verdict() {
    let fixture = bound(&[
        "set-tlv 1401 first\nset-tlv 1402 kept\nattribute mcc 262\nattribute brand one\npass",
        "note attribute mcc\nset-tlv 1401 second\nremove-tlv 0204\nattribute brand two\nforward north",
    ]);
    let routed = fixture.hooks.route(&message("good", "8613012345678"), NOW);
    assert_eq!(forwarded_peers(&routed), [fixture.peer("north")]);
    assert_eq!(routed.note.as_deref(), Some("262"));
    let mut expected = MessageChanges::default();
    expected.change_tlv(0x1401, Some(b"second"[..].into()));
    expected.change_tlv(0x1402, Some(b"kept"[..].into()));
    expected.change_tlv(0x0204, None);
    expected.set_attribute("mcc".into(), "262".into());
    expected.set_attribute("brand".into(), "two".into());
    assert_eq!(routed.changes.as_deref(), Some(&expected));

    let fixture = bound(&["attribute mcc 262\npass"]);
    let refused = fixture.hooks.route(&message("good", "8613012345678"), NOW);
    assert!(matches!(refused.verdict, Verdict::Reject(_)) && refused.changes.is_none());
}

#[test]
fn an_attribute_of_the_account_is_recorded_for_a_replay() {
    let fixture = bound(&["note attribute brand\nforward north"]);
    let asked = message("good", "8613012345678");
    let publish = |value: &str| {
        let attributes = BTreeMap::from([("brand".to_owned(), value.to_owned())]);
        fixture.account_attributes.publish(HashMap::from([(asked.origin, attributes)]));
    };
    assert_eq!(note(&fixture, &asked), "none");
    publish("B-1");
    let routed = fixture.hooks.route(&asked, NOW);
    assert_eq!(routed.note.as_deref(), Some("B-1"));
    publish("B-2");
    let chain = [with_long_deadline(fixture.binding("test_examiner", "note attribute brand\nforward north"))];
    let dry_run = fixture.hooks.dry_run(Hook::Router, &chain).unwrap();
    let again = dry_run.route(&asked, NOW, routed.host_calls.as_deref());
    assert_eq!((again.note.as_deref(), again.missing), (Some("B-1"), None));
    let without = dry_run.route(&asked, NOW, Some(&[]));
    assert_eq!((without.note.as_deref(), without.missing), (Some("B-2"), Some("an account's attribute")));
}

#[test]
fn a_change_that_cannot_be_is_a_fault() {
    let long = format!("attribute brand {}", "x".repeat(256));
    let many: Vec<String> = (0..33).map(|number| format!("set-tlv {:x} v", 0x1400 + number)).collect();
    for (document, expected) in [
        ("set-tlv 0424 text", "TLV 0x0424 set"),
        ("attribute Brand x", "attribute \"Brand\""),
        (&*long, "256 octets"),
        (&*many.join("\n"), "more than 32 changes"),
    ] {
        let fixture = HooksFixture::new();
        let document = format!("{document}\nforward north");
        let binding = with_long_deadline(fixture.binding("test_examiner", &document));
        fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
        let found = note(&fixture, &message("good", "8613012345678"));
        assert!(found.starts_with("fault (verdict)") && found.contains(expected), "{found}");
    }
}

#[test]
fn a_fault_shows_the_words_of_the_panic_and_the_stack() {
    let fixture = HooksFixture::new();
    let binding = with_long_deadline(fixture.binding("test_examiner", "panic no such route"));
    let binding = Binding { on_fault: OnFault::Reject, ..binding };
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    let found = note(&fixture, &message("good", "8613012345678"));
    assert!(found.starts_with("fault (trap): panicked at") && found.contains("lib.rs:"), "{found}");
    let faults = fixture.hooks.faults(Hook::Router);
    let example = &faults[0].examples[0];
    let report = example.report.as_deref().unwrap();
    assert!(report.contains("lib.rs:") && report.ends_with("\nno such route"), "{report}");
    let names: Vec<&str> = example.stack.iter().map(|frame| frame.function.as_str()).collect();
    assert!(names[0].ends_with("test_examiner::fail"), "{names:?}");
    assert!(names.iter().any(|name| name.contains("#route")), "{names:?}");
    assert!(example.stack.iter().all(|frame| frame.source.is_none()));
}
