//! Lookups: chains, trials, the attributes that routers see, and DNS queries.

use crate::support::{HooksFixture, NOW, message, options, with_long_deadline};
use capabilities::{Fetch, FetchFailure, FetchRequest, FetchResponse, HttpGrants};
use hooks::{Binding, HooksOptions, OnFault, TrialMode};
use model::{Address, Hook, Lookup, LookupNumber, LookupResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::Duration;

const GOOD: &str = "8613012345678";

fn number() -> LookupNumber {
    LookupNumber::of(&Address::international(GOOD)).unwrap()
}

fn binding(fixture: &HooksFixture, lines: &str) -> Binding {
    with_long_deadline(fixture.binding("test_moody_lookup", &format!("ok\n{lines}")))
}

fn bind(fixture: &HooksFixture, chain: &[&str]) {
    let chain = chain.iter().map(|lines| binding(fixture, lines)).collect();
    fixture.hooks.activate(Hook::Lookup, NOW, chain, None).unwrap();
}

fn asked(fixture: &HooksFixture) -> (Lookup, u64) {
    let (lookup, lifetime) = fixture.hooks.look_up(&number(), NOW).unwrap();
    (lookup, lifetime.as_secs())
}

#[test]
fn the_first_lookup_that_knows_the_number_answers() {
    let fixture = HooksFixture::new();
    assert!(fixture.hooks.look_up(&number(), NOW).is_none(), "no lookup is bound");
    bind(&fixture, &["unknown 60", "mcc 262\nmnc 01", "mcc 310"]);
    let (lookup, lifetime) = asked(&fixture);
    assert_eq!((lookup.result, lifetime), (LookupResult::Found, 3_600));
    assert_eq!((lookup.attribute("mcc"), lookup.attribute("mnc")), (Some("262"), Some("01")));
    bind(&fixture, &["unknown 60", "unknown 20", "unknown 90"]);
    let (lookup, lifetime) = asked(&fixture);
    assert_eq!((lookup.result, lifetime), (LookupResult::Unknown, 20));
    // A lookup that answers "try later" may know the number later: the result is not `Unknown`.
    bind(&fixture, &["try-later", "unknown 60"]);
    assert_eq!(asked(&fixture).0.result, LookupResult::Failed);
    bind(&fixture, &["try-later", "mcc 262"]);
    assert_eq!(asked(&fixture).0.result, LookupResult::Found);
}

#[test]
fn a_fault_that_is_passed_on_leaves_the_number_to_the_next_lookup() {
    let fixture = HooksFixture::new();
    let bad = LookupNumber::of(&Address::international("66612345678")).unwrap();
    let faulty = with_long_deadline(fixture.binding("test_moody_lookup", "trap"));
    let faulty = Binding { on_fault: OnFault::Pass, ..faulty };
    let chain = vec![faulty, binding(&fixture, "mcc 262")];
    fixture.hooks.activate(Hook::Lookup, NOW, chain, None).unwrap();
    let (lookup, _) = fixture.hooks.look_up(&bad, NOW).unwrap();
    assert_eq!((lookup.result, lookup.attribute("mcc")), (LookupResult::Found, Some("262")));
    let (steps, explained) = fixture.hooks.explain_lookup(&bad, NOW);
    assert!(steps[0].outcome.is_err() && steps[1].outcome.is_ok(), "{steps:?}");
    assert_eq!(explained.unwrap().result, LookupResult::Found);
}

#[test]
fn routers_see_the_attributes_of_the_number() {
    let fixture = HooksFixture::new();
    bind(&fixture, &["mnc 07\nported yes"]);
    let document = "note attribute mnc\nnote attribute ported\nforward north";
    let router = with_long_deadline(fixture.binding("test_examiner", document));
    fixture.hooks.activate(Hook::Router, NOW, vec![router], None).unwrap();
    let mut routed = message("good", GOOD);
    assert_eq!(fixture.hooks.route(&routed, NOW).note.as_deref(), Some("none|none"));
    routed.routed.lookup = Some(Arc::new(asked(&fixture).0));
    assert_eq!(fixture.hooks.route(&routed, NOW).note.as_deref(), Some("07|yes"));
}

#[test]
fn a_candidate_is_compared_in_shadow_and_decides_as_a_canary() {
    let fixture = HooksFixture::new();
    bind(&fixture, &["mnc 01"]);
    for (lines, same) in [("mnc 01", true), ("mnc 02", false)] {
        let candidate = vec![binding(&fixture, lines)];
        fixture.hooks.start_trial(Hook::Lookup, NOW, TrialMode::Shadow, candidate, None).unwrap();
        assert_eq!(asked(&fixture).0.attribute("mnc"), Some("01"));
        let comparison = || fixture.hooks.status(Hook::Lookup).candidate.unwrap().comparison.unwrap();
        while comparison().compared == 0 {
            std::thread::yield_now();
        }
        assert_eq!(comparison().same == 1, same);
    }
    let all = TrialMode::Canary { share: 10_000 };
    fixture.hooks.start_trial(Hook::Lookup, NOW, all, vec![binding(&fixture, "mnc 02")], None).unwrap();
    assert_eq!(asked(&fixture).0.attribute("mnc"), Some("02"));
    fixture.hooks.promote(Hook::Lookup, NOW, None).unwrap();
    fixture.hooks.rollback(Hook::Lookup, NOW).unwrap();
    assert_eq!(asked(&fixture).0.attribute("mnc"), Some("01"));
}

#[test]
fn the_domain_name_system_is_asked_within_the_grant() {
    let fixture = HooksFixture::new();
    let ask = |zones: Option<&str>| {
        let mut one = binding(&fixture, "dns 1.e164.arpa");
        // No socket listens there: the system refuses at once.
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        one.grants.dns = zones.map(|zone| api::DnsGrant {
            servers: vec![closed.to_string()],
            zones: vec![zone.to_owned()],
            timeout_ms: 20_000,
        });
        fixture
            .hooks
            .activate(Hook::Lookup, NOW, vec![one], None)
            .map(|_| asked(&fixture).0.note.unwrap_or_default())
    };
    assert!(ask(None).unwrap_err().to_string().contains("does not grant dns"));
    assert!(ask(Some("example.org")).unwrap().contains("in no granted zone"));
    assert!(
        ask(Some("e164.arpa")).unwrap().starts_with("Err(Failure::Failed("),
        "{:?}",
        ask(Some("e164.arpa"))
    );
    let refused = ask(Some("*")).unwrap_err().to_string();
    assert!(refused.contains("zones has \"*\""), "{refused}");
}

#[test]
fn a_number_that_takes_no_time_is_not_cached() {
    let fixture = HooksFixture::new();
    bind(&fixture, &["unknown 0"]);
    let (lookup, lifetime) = fixture.hooks.look_up(&number(), NOW).unwrap();
    assert_eq!((lookup.result, lifetime), (LookupResult::Unknown, Duration::ZERO));
}

/// Responds with its number of requests so far as the status, from 200 on.
#[derive(Default)]
struct CountingFetch(AtomicU16);

impl Fetch for CountingFetch {
    fn fetch(&self, _: &str, _: &HttpGrants, _: FetchRequest) -> Result<FetchResponse, FetchFailure> {
        let status = 200 + self.0.fetch_add(1, Relaxed);
        Ok(FetchResponse { status, headers: Vec::new(), body: vec![0xff; 40] })
    }
}

#[test]
fn the_answers_of_other_systems_are_recorded_and_repeated() {
    let fetch = Arc::new(CountingFetch::default());
    let fixture =
        HooksFixture::with_fetch_and_options(HooksOptions { record: true, ..options() }, fetch.clone());
    let url = "http://peer.example/";
    let candidate = |line: &str| fixture.hooks.dry_run(Hook::Lookup, &[binding(&fixture, line)]).unwrap();
    for (line, missing) in [
        (format!("http {url}"), "an HTTP response"),
        ("dns x.peer.example".to_owned(), "an answer of the domain name system"),
    ] {
        bind(&fixture, &[&line]);
        let (lookup, _) = asked(&fixture);
        let record = lookup.host_calls.clone().unwrap();
        assert!(!String::from_utf8_lossy(&record).contains(url), "a URL may have a secret");
        let requests = fetch.0.load(Relaxed);
        let replayed = candidate(&line).look_up_again(&number(), NOW, &record);
        assert_eq!((replayed.answer.unwrap().note, replayed.missing), (lookup.note, None));
        let other = candidate(&line).look_up_again(&number(), NOW, &[]);
        assert_eq!(other.missing, Some(missing));
        assert!(other.answer.unwrap().note.unwrap().contains("NotNow"));
        assert_eq!(fetch.0.load(Relaxed), requests, "a replay asks nobody");
    }
    // Without records, nothing is kept.
    let fixture = HooksFixture::with_fetch(fetch);
    bind(&fixture, &[&format!("http {url}")]);
    assert_eq!(asked(&fixture).0.host_calls, None);
}
