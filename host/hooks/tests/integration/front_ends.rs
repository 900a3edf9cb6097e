//! Front ends: several bindings of one chain by the plugin's name, each fault, canary, shadow, and exchange during a call.

use crate::support::{HooksFixture, NOW, wait_until, with_long_deadline};
use hooks::{
    Binding, FaultKind, FrontEndOutcome, FrontEndReading, FrontEndRefusal, FrontEndRequest, FrontEndResult,
    RefusalReason, Tolerance, TrialMode,
};
use model::Hook;

const GUEST: &str = "test_moody_front_end";

fn front_end(fixture: &HooksFixture, document: &str) -> Binding {
    let binding = with_long_deadline(fixture.binding(GUEST, document));
    // The giant answer of 16 MiB fits into this, so that the host has to refuse it.
    Binding { memory: 48 << 20, tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding }
}

fn request(plugin: &str, query: &str) -> FrontEndRequest {
    FrontEndRequest {
        plugin: plugin.into(),
        method: "GET".to_owned(),
        path: "/send".to_owned(),
        query: query.to_owned(),
        ..FrontEndRequest::default()
    }
}

fn accepted() -> FrontEndOutcome {
    FrontEndOutcome::Results(vec![FrontEndResult::Accepted { id: "7".to_owned(), segments: 1 }])
}

#[test]
fn a_request_is_read_and_answered() {
    let fixture = HooksFixture::new();
    let asked = request(GUEST, "login=shop&password=se%26t&to=1+2&text=hi&key=k");
    assert!(fixture.hooks.read_request(&asked, NOW).is_err(), "nothing is bound");
    fixture.hooks.activate(Hook::FrontEnd, NOW, vec![front_end(&fixture, "ok")], None).unwrap();
    let (reading, call) = fixture.hooks.read_request(&asked, NOW).unwrap();
    let FrontEndReading::Submit(submit) = reading else { panic!("{reading:?}") };
    assert_eq!((&*submit.account, &*submit.password), ("shop", "se&t"));
    let numbers: Vec<&str> = submit.submissions.iter().map(|one| one.destination.as_str()).collect();
    assert_eq!((numbers, submit.idempotency_key.as_deref()), (vec!["1", "2"], Some("k")));
    assert_eq!(submit.submissions[0].receipts.as_deref(), Some("final"));
    // The Debug output has no password.
    assert!(!format!("{submit:?}").contains("se&t"), "{submit:?}");
    let response = fixture.hooks.reply(&call, &asked, &accepted(), NOW).unwrap();
    assert_eq!((response.status, &*response.body), (200, &b"7"[..]));
    let refusal =
        FrontEndRefusal { reason: RefusalReason::Throttled, detail: "slow".to_owned(), field: None };
    let response = fixture.hooks.reply(&call, &asked, &FrontEndOutcome::Refused(refusal), NOW).unwrap();
    assert_eq!(&*response.body, b"RefusalReason::Throttled: slow");
}

#[test]
fn the_path_chooses_the_binding_by_its_plugin() {
    let fixture = HooksFixture::new();
    let first = front_end(&fixture, "ok");
    let second = Binding { plugin: "second".to_owned(), policy: "trap".to_owned(), ..first.clone() };
    let octets = crate::support::guest(GUEST);
    fixture.hooks.upload("second", &octets, None).unwrap();
    fixture.hooks.activate(Hook::FrontEnd, NOW, vec![first, second], None).unwrap();
    assert!(fixture.hooks.read_request(&request(GUEST, "bad=read"), NOW).is_ok());
    assert!(fixture.hooks.read_request(&request("second", "bad=read"), NOW).is_err());
    assert!(fixture.hooks.read_request(&request("third", ""), NOW).is_err());
    let counts = fixture.hooks.counts(Hook::FrontEnd);
    assert_eq!(counts.iter().map(|one| one.counts.calls).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_fault_costs_one_call_and_shows_no_secret() {
    let fixture = HooksFixture::new();
    for (mood, kind) in [
        ("trap", FaultKind::Trap),
        ("hog", FaultKind::Memory),
        ("giant", FaultKind::Trap),
        ("bad-utf8", FaultKind::Trap),
        ("absurd", FaultKind::Verdict),
    ] {
        fixture.hooks.activate(Hook::FrontEnd, NOW, vec![front_end(&fixture, mood)], None).unwrap();
        let why = fixture.hooks.read_request(&request(GUEST, "bad=read&password=hidden"), NOW).err();
        let why = why.unwrap_or_else(|| panic!("{mood}: no fault"));
        assert!(why.starts_with(&format!("fault ({})", kind.name())), "{mood}: {why}");
        let asked = request(GUEST, "bad=reply&password=hidden");
        let (_, call) = fixture.hooks.read_request(&asked, NOW).unwrap();
        assert!(fixture.hooks.reply(&call, &asked, &accepted(), NOW).is_err(), "{mood}");
        let good = request(GUEST, "to=1");
        let (_, call) = fixture.hooks.read_request(&good, NOW).unwrap();
        assert!(fixture.hooks.reply(&call, &good, &accepted(), NOW).is_ok(), "{mood}");
    }
    let faults = fixture.hooks.faults(Hook::FrontEnd);
    assert!(!faults.is_empty() && !format!("{faults:?}").contains("hidden"), "{faults:?}");
    let details = fixture.hooks.fault(Hook::FrontEnd, faults[0].examples[0].id).unwrap();
    assert!(!format!("{details:?}").contains("hidden"), "{details:?}");
}

#[test]
fn the_version_that_read_a_request_answers_it() {
    let fixture = HooksFixture::new();
    fixture.hooks.activate(Hook::FrontEnd, NOW, vec![front_end(&fixture, "ok")], None).unwrap();
    let asked = request(GUEST, "bad=reply");
    let (_, call) = fixture.hooks.read_request(&asked, NOW).unwrap();
    fixture.hooks.activate(Hook::FrontEnd, NOW, vec![front_end(&fixture, "trap")], None).unwrap();
    assert!(fixture.hooks.reply(&call, &asked, &accepted(), NOW).is_ok());
    fixture.hooks.rollback(Hook::FrontEnd, NOW).unwrap();
    let (_, call) = fixture.hooks.read_request(&asked, NOW).unwrap();
    assert!(fixture.hooks.reply(&call, &asked, &accepted(), NOW).is_ok());
}

#[test]
fn a_canary_takes_its_share_and_the_live_chain_covers_its_faults() {
    let fixture = HooksFixture::new();
    fixture.hooks.activate(Hook::FrontEnd, NOW, vec![front_end(&fixture, "ok")], None).unwrap();
    let mode = TrialMode::Canary { share: 10_000 };
    fixture.hooks.start_trial(Hook::FrontEnd, NOW, mode, vec![front_end(&fixture, "trap")], None).unwrap();
    assert!(fixture.hooks.read_request(&request(GUEST, "bad=read"), NOW).is_ok());
    let candidate = fixture.hooks.status(Hook::FrontEnd).candidate.unwrap();
    assert_eq!((candidate.asked, candidate.failed), (1, 1));
}

#[test]
fn a_shadow_compares_readings_and_responses() {
    let fixture = HooksFixture::new();
    fixture.hooks.activate(Hook::FrontEnd, NOW, vec![front_end(&fixture, "ok")], None).unwrap();
    let shadow = vec![front_end(&fixture, "many-legs")];
    fixture.hooks.start_trial(Hook::FrontEnd, NOW, TrialMode::Shadow, shadow, None).unwrap();
    let ask = |query: &str| {
        let asked = request(GUEST, query);
        let (_, call) = fixture.hooks.read_request(&asked, NOW).unwrap();
        fixture.hooks.reply(&call, &asked, &accepted(), NOW).unwrap();
    };
    ask("to=1");
    ask("bad=reply&password=hidden");
    let comparison = || fixture.hooks.status(Hook::FrontEnd).candidate.unwrap().comparison.unwrap();
    wait_until("the shadow compares", || comparison().compared == 4);
    assert_eq!(comparison().same, 3);
    let shown = format!("{:?}", comparison());
    assert!(shown.contains("reply to GET /send") && !shown.contains("hidden"), "{shown}");
}

#[test]
fn a_rollback_of_one_front_end_keeps_the_others() {
    let fixture = HooksFixture::new();
    fixture.hooks.upload("second", &crate::support::guest(GUEST), None).unwrap();
    let good = front_end(&fixture, "ok");
    let second = Binding { plugin: "second".to_owned(), ..good.clone() };
    let faulty = Binding {
        policy: "trap".to_owned(),
        tolerance: Tolerance { faults: 2, window_ms: 60_000 },
        ..good.clone()
    };
    for chain in [vec![good.clone()], vec![faulty.clone()], vec![faulty, second.clone()]] {
        fixture.hooks.activate(Hook::FrontEnd, NOW, chain, None).unwrap();
    }
    for _ in 0..3 {
        assert!(fixture.hooks.read_request(&request(GUEST, "bad=read"), NOW).is_err());
    }
    let live = || fixture.hooks.status(Hook::FrontEnd).live.chain;
    wait_until("the faulty one is rolled back", || live()[0].policy == "ok");
    let plugins: Vec<String> = live().into_iter().map(|binding| binding.plugin).collect();
    assert_eq!(plugins, [GUEST, "second"]);
    assert!(fixture.hooks.read_request(&request("second", ""), NOW).is_ok());
}
