//! Pace buckets and send windows that decisions name.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, SECOND, message};
use bytes::Bytes;
use calendar::Zone;
use engine::{Event, PaceBucketSettings, PaceNames, PacePeriod, PaceSettings, Settings};
use model::{
    DefinedPeriod, Leg, MessageChanges, MessageId, Outcome, PaceBucketDefinition, PaceBucketUse, PaceUnit,
    PeerId, Refusal, RoutingDecision, SendHours, SendWindowDefinition, SendWindowUse, Text, Verdict,
};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
/// The fixture begins at 11:06:40 UTC, which is 23:06:40 in this zone.
const ZONE: &str = "Asia/Kamchatka";

fn per_day(name: &str, amount: u64, counts: PaceUnit) -> PaceBucketUse {
    let per = DefinedPeriod::Day(ZONE.into());
    PaceBucketUse { name: name.into(), defined: Some(PaceBucketDefinition { amount, per, counts }) }
}

fn per_time(name: &str, amount: u64, time: Duration) -> PaceBucketUse {
    let (per, counts) = (DefinedPeriod::Time(time), PaceUnit::Messages);
    PaceBucketUse { name: name.into(), defined: Some(PaceBucketDefinition { amount, per, counts }) }
}

/// Open every day between two minutes of the day, in UTC.
fn window(name: &str, opens: u16, closes: u16) -> SendWindowUse {
    let hours = vec![SendHours { days: [true; 7], opens, closes }];
    SendWindowUse { name: name.into(), defined: Some(SendWindowDefinition { zone: "UTC".into(), hours }) }
}

fn fixtures() -> [EngineFixture; 2] {
    [64 << 20, 0].map(|body_cache| {
        let mut fixture = EngineFixture::new(Settings { body_cache, ..Settings::default() });
        restart(&mut fixture);
        fixture
    })
}

fn restart(fixture: &mut EngineFixture) {
    fixture.crash();
    for peer in [FIRST, SECOND] {
        fixture.link_up(peer, 100);
    }
}

fn submit(
    fixture: &mut EngineFixture,
    peer: PeerId,
    segments: usize,
    buckets: &[PaceBucketUse],
    windows: &[SendWindowUse],
) -> MessageId {
    let mut message = message("8613", vec![Leg::to(peer)]);
    message.expires_at = fixture.now.wall + DAY * 5;
    let octets = Bytes::from(vec![b'a'; if segments == 1 { 10 } else { segments * 153 }]);
    message.text = Text { octets, ..Text::default() };
    assert_eq!(usize::from(message.text.segment_count()), segments);
    let mut changes = MessageChanges::default();
    buckets.iter().for_each(|bucket| changes.use_pace_bucket(bucket.clone()));
    windows.iter().for_each(|window| changes.use_send_window(window.clone()));
    message.routed.changes = Some(Box::new(changes));
    fixture.submit(message).unwrap()
}

fn accept_all(fixture: &mut EngineFixture) -> Vec<MessageId> {
    fixture.outcome_of_all(&Outcome::Accepted { ids: Vec::new() })
}

#[test]
fn a_bucket_of_a_plugin_is_shared_and_survives_a_crash() {
    for mut fixture in fixtures() {
        let campaign = [per_day("c1", 3, PaceUnit::Messages)];
        let ids: Vec<_> =
            [FIRST, SECOND, FIRST, SECOND].map(|peer| submit(&mut fixture, peer, 1, &campaign, &[])).into();
        let other = submit(&mut fixture, SECOND, 1, &[per_day("c2", 1, PaceUnit::Messages)], &[]);
        let mut sent = accept_all(&mut fixture);
        sent.sort_unstable();
        assert_eq!(sent, [ids[0], ids[1], ids[2], other]);
        let waiting = fixture.engine.message(ids[3]).unwrap().paced_by.unwrap();
        assert_eq!((&*waiting.name, waiting.is_window), ("c1", false));
        restart(&mut fixture);
        assert_eq!(accept_all(&mut fixture), []);
        // All messages of c2 have left: its count and its definition are on disk.
        let listed = fixture.engine.pace_buckets(fixture.now);
        let listed: Vec<_> = listed
            .iter()
            .map(|bucket| (&*bucket.name, bucket.by_plugin, bucket.amount, bucket.tokens, bucket.waiting))
            .collect();
        assert_eq!(listed, [("c1", true, 3, 0, 1), ("c2", true, 1, 0, 0)]);
        fixture.pass(MINUTE * 54);
        assert_eq!(accept_all(&mut fixture), ids[3..], "after midnight in the zone of the bucket");
        fixture.pass(DAY * 3);
        assert_eq!(fixture.engine.pace_buckets(fixture.now), [], "nobody needs them any more");
        assert_eq!(fixture.pace_days.len(), 0);
    }
}

#[test]
fn the_configuration_takes_precedence() {
    let bucket = |amount| PaceBucketSettings {
        name: "c1".into(),
        amount,
        per: PacePeriod::Day(Zone::find(ZONE).unwrap()),
        counts: PaceUnit::Messages,
    };
    for mut fixture in fixtures() {
        fixture.pace = PaceSettings { buckets: vec![bucket(1)], ..PaceSettings::default() };
        let campaign = [per_day("c1", 4, PaceUnit::Messages)];
        restart(&mut fixture);
        let ids: Vec<_> = (0..6).map(|_| submit(&mut fixture, FIRST, 1, &campaign, &[])).collect();
        assert_eq!(accept_all(&mut fixture), ids[..1]);
        // The bucket leaves the configuration: the plugin's definition remains, with the same count.
        fixture.pace = PaceSettings::default();
        let settings = fixture.pace.clone();
        fixture.run([Event::Pace(settings)]);
        fixture.pass(Duration::from_secs(1));
        assert_eq!(accept_all(&mut fixture), ids[1..4]);
        let listed = &fixture.engine.pace_buckets(fixture.now)[0];
        assert_eq!((listed.by_plugin, listed.amount, listed.waiting), (true, 4, 2));
        // The last definition counts.
        submit(&mut fixture, FIRST, 1, &[per_day("c1", 5, PaceUnit::Messages)], &[]);
        fixture.pass(Duration::from_secs(1));
        assert_eq!(accept_all(&mut fixture), ids[4..5]);
    }
}

#[test]
fn all_windows_of_a_decision_must_be_open() {
    for mut fixture in fixtures() {
        // 11:06:40: the first is open, the second opens at 11:30, and both are from 12:00 to 12:10.
        let windows = [window("morning", 660, 730), window("late", 720, 800)];
        let both = submit(&mut fixture, FIRST, 1, &[], &windows);
        let one = submit(&mut fixture, FIRST, 1, &[], &windows[..1]);
        assert_eq!(accept_all(&mut fixture), [one]);
        let by = fixture.engine.message(both).unwrap().paced_by.unwrap();
        assert_eq!((&*by.name, by.is_window), ("late", true));
        restart(&mut fixture);
        assert_eq!(accept_all(&mut fixture), []);
        fixture.pass(MINUTE * 54);
        assert_eq!(accept_all(&mut fixture), [both]);
    }
}

#[test]
fn limits_of_decisions_and_of_accounts_apply_together() {
    let bucket = PaceBucketSettings {
        name: "brand".into(),
        amount: 2,
        per: PacePeriod::Day(Zone::find(ZONE).unwrap()),
        counts: PaceUnit::Messages,
    };
    for mut fixture in fixtures() {
        fixture.pace = PaceSettings { buckets: vec![bucket.clone()], ..PaceSettings::default() };
        let brand = PaceNames { buckets: vec!["brand".into()], windows: Vec::new() };
        fixture.submit_pace = [(ACCOUNT, brand)].into_iter().collect();
        restart(&mut fixture);
        // The decision names the bucket of the account, too: one token each.
        let named =
            [PaceBucketUse { name: "brand".into(), defined: None }, per_day("c1", 1, PaceUnit::Messages)];
        let ids: Vec<_> = (0..3).map(|_| submit(&mut fixture, FIRST, 1, &named, &[])).collect();
        let plain = submit(&mut fixture, FIRST, 1, &[], &[]);
        assert_eq!(accept_all(&mut fixture), [ids[0], plain]);
        let by = |id| fixture.engine.message(id).unwrap().paced_by.unwrap().name.to_string();
        assert_eq!((by(ids[1]), by(ids[2])), ("c1".to_owned(), "c1".to_owned()));
    }
}

#[test]
fn a_bucket_may_count_segments() {
    for mut fixture in fixtures() {
        let bucket = [per_day("c1", 7, PaceUnit::Segments)];
        let ids: Vec<_> =
            [3, 3, 3, 1].map(|segments| submit(&mut fixture, FIRST, segments, &bucket, &[])).into();
        assert_eq!(accept_all(&mut fixture), ids[..2]);
        let listed = &fixture.engine.pace_buckets(fixture.now)[0];
        assert_eq!((listed.counts, listed.tokens, listed.waiting), (PaceUnit::Segments, 1, 2), "in order");
        restart(&mut fixture);
        fixture.pass(MINUTE * 10);
        assert_eq!(accept_all(&mut fixture), []);
        // A message that costs more than the amount takes the whole amount.
        let long = submit(&mut fixture, FIRST, 9, &bucket, &[]);
        fixture.pass(MINUTE * 44);
        assert_eq!(accept_all(&mut fixture), ids[2..]);
        fixture.pass(DAY);
        assert_eq!(accept_all(&mut fixture), [long]);
    }
}

#[test]
fn a_bucket_per_time_waits_for_the_tokens_of_all_segments() {
    for mut fixture in fixtures() {
        let mut rate = per_time("rate", 6, MINUTE);
        rate.defined.as_mut().unwrap().counts = PaceUnit::Segments;
        let first = submit(&mut fixture, FIRST, 3, &[rate.clone()], &[]);
        let second = submit(&mut fixture, FIRST, 1, &[rate.clone()], &[]);
        fixture.pass(Duration::from_secs(29));
        assert_eq!(accept_all(&mut fixture), []);
        fixture.pass(Duration::from_secs(1));
        assert_eq!(accept_all(&mut fixture), [first]);
        // Another amount keeps the tokens.
        fixture.pass(Duration::from_secs(9));
        let faster = per_time("rate", 60, MINUTE);
        let third = submit(&mut fixture, FIRST, 1, &[faster], &[]);
        assert_eq!(accept_all(&mut fixture), []);
        fixture.pass(Duration::from_secs(2));
        assert_eq!(accept_all(&mut fixture), [second, third]);
        fixture.pass(MINUTE * 61);
        assert_eq!(fixture.engine.pace_buckets(fixture.now), [], "it is full, and nobody names it");
        // It is as full as if it had never been forgotten.
        let fourth = submit(&mut fixture, FIRST, 1, &[rate], &[]);
        assert_eq!(accept_all(&mut fixture), [fourth]);
    }
}

#[test]
fn ten_thousand_campaigns_come_and_go() {
    const AMOUNT: usize = 10_000;
    let mut fixture = EngineFixture::new(Settings::default());
    restart(&mut fixture);
    for round in 0..2 {
        let mut ids = Vec::new();
        for campaign in 0..AMOUNT {
            let name = format!("round-{round}-{campaign}");
            ids.push(submit(&mut fixture, FIRST, 1, &[per_day(&name, 1, PaceUnit::Messages)], &[]));
            if campaign % 100 == 99 {
                accept_all(&mut fixture);
            }
        }
        accept_all(&mut fixture);
        assert_eq!(fixture.pace_days.len(), AMOUNT);
        assert_eq!(fixture.engine.pace_buckets(fixture.now).len(), 1000, "the list is bounded");
        fixture.pass(DAY * 3);
        assert_eq!((fixture.pace_days.len(), fixture.engine.live()), (0, 0));
    }
    assert_eq!(fixture.engine.pace_buckets(fixture.now), []);
}

#[test]
fn another_decision_replaces_the_limits() {
    for mut fixture in fixtures() {
        // Held, then routed: the changes come with the second decision.
        let mut held = message("8613", vec![Leg::to(FIRST)]);
        held.routed.verdict = Verdict::Hold(fixture.now.wall + MINUTE);
        held.expires_at = fixture.now.wall + DAY * 5;
        let held = fixture.submit(held).unwrap();
        let used = submit(&mut fixture, FIRST, 1, &[per_day("c1", 1, PaceUnit::Messages)], &[]);
        assert_eq!(accept_all(&mut fixture), [used]);
        fixture.pass(MINUTE * 2);
        let asked = fixture.routes.pop().unwrap();
        assert_eq!(asked.id, held);
        let mut changes = MessageChanges::default();
        changes.use_pace_bucket(per_day("c1", 1, PaceUnit::Messages));
        let by = asked.routed.by.clone();
        let routed = RoutingDecision {
            changes: Some(Box::new(changes)),
            ..RoutingDecision::new(Verdict::Forward(vec![Leg::to(FIRST)]), by)
        };
        fixture.run([Event::Rerouted { id: held, routed, text: None }]);
        assert_eq!(accept_all(&mut fixture), []);
        assert_eq!(&*fixture.engine.message(held).unwrap().paced_by.unwrap().name, "c1");
        restart(&mut fixture);
        assert_eq!(accept_all(&mut fixture), []);
        fixture.pass(DAY);
        assert_eq!(accept_all(&mut fixture), [held]);
    }
}

#[test]
fn there_is_a_maximum_number_of_limits() {
    let mut fixture = EngineFixture::new(Settings { pace_limits: 2, ..Settings::default() });
    restart(&mut fixture);
    submit(&mut fixture, FIRST, 1, &[per_day("c1", 1, PaceUnit::Messages)], &[window("day", 0, 1440)]);
    submit(&mut fixture, FIRST, 1, &[per_day("c1", 1, PaceUnit::Messages)], &[window("day", 0, 1440)]);
    let mut another = message("8613", vec![Leg::to(FIRST)]);
    let mut changes = MessageChanges::default();
    changes.use_pace_bucket(per_day("c2", 1, PaceUnit::Messages));
    another.routed.changes = Some(Box::new(changes));
    assert_eq!(fixture.submit(another), Err(Refusal::QueueFull));
    assert!(fixture.submit(message("8613", vec![Leg::to(FIRST)])).is_ok());
}
