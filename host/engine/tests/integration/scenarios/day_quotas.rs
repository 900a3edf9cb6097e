//! Day quotas of accounts and tenants.

use crate::scenarios::fixture::{ACCOUNT, EngineFixture, FIRST, REPLY, SECOND, message};
use calendar::Zone;
use engine::{BranchLimits, DayQuotaSettings, EngineAnswer, Event, PaceSettings, Settings};
use model::{Leg, Message, PeerId, Refusal};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
/// The fixture begins at 11:06:40 UTC, which is 23:06:40 in this zone.
const ZONE: &str = "Asia/Kamchatka";
const FULL: Result<(), Refusal> = Err(Refusal::QuotaExceeded);

fn quotas(quotas: &[(&str, u64)]) -> PaceSettings {
    let zone = Zone::find(ZONE).unwrap();
    let quota = |(owner, amount): &(&str, u64)| DayQuotaSettings {
        owner: (*owner).into(),
        amount: *amount,
        zone: zone.clone(),
    };
    PaceSettings { day_quotas: quotas.iter().map(quota).collect(), ..PaceSettings::default() }
}

/// Each submitter with the owners of its quotas.
fn fixture(settings: &[(&str, u64)], submitters: &[(PeerId, &[&str])]) -> EngineFixture {
    let mut fixture = EngineFixture::new(Settings::default());
    fixture.pace = quotas(settings);
    let limits = |owners: &[&str]| BranchLimits {
        day_quotas: owners.iter().map(|owner| (*owner).into()).collect(),
        ..BranchLimits::default()
    };
    fixture.branches = submitters.iter().map(|(submitter, owners)| (*submitter, limits(owners))).collect();
    fixture.crash();
    fixture
}

fn from(submitter: PeerId) -> Message {
    Message { origin: submitter, ..message("8613", vec![Leg::to(FIRST)]) }
}

fn submit(fixture: &mut EngineFixture, submitter: PeerId) -> Result<(), Refusal> {
    fixture.submit(from(submitter)).map(drop)
}

fn accepted(fixture: &EngineFixture) -> Vec<(String, u64, u64)> {
    let quotas = fixture.engine.day_quotas(fixture.now);
    quotas.iter().map(|quota| (quota.owner.to_string(), quota.accepted, quota.limit)).collect()
}

#[test]
fn the_branch_of_a_tenant_shares_its_quota_until_midnight() {
    let mut fixture =
        fixture(&[("one", 2), ("north", 3)], &[(ACCOUNT, &["one", "north"]), (SECOND, &["north"])]);
    assert_eq!(submit(&mut fixture, ACCOUNT), Ok(()));
    assert_eq!(submit(&mut fixture, ACCOUNT), Ok(()));
    assert_eq!(submit(&mut fixture, ACCOUNT), FULL, "the account's own");
    assert_eq!(accepted(&fixture), [("north".into(), 2, 3), ("one".into(), 2, 2)], "a refusal costs nobody");
    assert_eq!(submit(&mut fixture, SECOND), Ok(()));
    assert_eq!(submit(&mut fixture, SECOND), FULL, "the tenant's");
    assert_eq!(submit(&mut fixture, FIRST), Ok(()), "a submitter without a quota");
    let midnight = fixture.engine.day_quotas(fixture.now)[0].day_ends;
    assert_eq!(midnight.0, Zone::find(ZONE).unwrap().day(fixture.now.wall.0).end);

    fixture.crash();
    assert_eq!(submit(&mut fixture, SECOND), FULL, "after a crash");
    fixture.pass(MINUTE * 53);
    assert_eq!(submit(&mut fixture, SECOND), FULL, "before midnight");
    fixture.pass(MINUTE);
    assert_eq!(accepted(&fixture), [("north".into(), 0, 3), ("one".into(), 0, 2)]);
    assert_eq!(submit(&mut fixture, SECOND), Ok(()), "the next day");
    fixture.crash();
    assert_eq!(accepted(&fixture), [("north".into(), 1, 3), ("one".into(), 0, 2)]);
}

#[test]
fn each_message_of_a_submission_counts() {
    let mut fixture = fixture(&[("one", 3)], &[(ACCOUNT, &["one"])]);
    let messages = vec![from(ACCOUNT); 5];
    fixture.run([Event::AcceptMany { messages, shared_id: true, key: None, reply: REPLY }]);
    let Some(EngineAnswer::AcceptedMany(results)) = fixture.answers.pop() else { panic!("no answer") };
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
    assert!(results[3..].iter().all(|result| *result == Err(Refusal::QuotaExceeded)), "{results:?}");
    assert_eq!(fixture.engine.would_accept(fixture.now, &from(ACCOUNT)), FULL, "explained as it is");
}

#[test]
fn a_message_that_is_refused_for_another_reason_does_not_count() {
    let mut fixture = fixture(&[("one", 3)], &[(ACCOUNT, &["one"])]);
    let unrouted = Message { origin: ACCOUNT, ..message("8613", vec![Leg::to(PeerId(77))]) };
    assert!(fixture.submit(unrouted).is_err());
    assert_eq!(accepted(&fixture), [("one".into(), 0, 3)]);
}

#[test]
fn a_changed_quota_keeps_its_count() {
    let mut fixture = fixture(&[("one", 1)], &[(ACCOUNT, &["one"])]);
    assert_eq!(submit(&mut fixture, ACCOUNT), Ok(()));
    assert_eq!(submit(&mut fixture, ACCOUNT), FULL);
    fixture.run([Event::Pace(quotas(&[("one", 2)]))]);
    assert_eq!((submit(&mut fixture, ACCOUNT), submit(&mut fixture, ACCOUNT)), (Ok(()), FULL), "raised");
    fixture.run([Event::Pace(quotas(&[("one", 1)]))]);
    assert_eq!(accepted(&fixture), [("one".into(), 2, 1)], "lowered");
    fixture.run([Event::Pace(PaceSettings::default())]);
    assert_eq!(accepted(&fixture), []);
    assert_eq!(submit(&mut fixture, ACCOUNT), Ok(()), "removed");
    fixture.run([Event::Pace(quotas(&[("one", 4)]))]);
    assert_eq!(accepted(&fixture), [("one".into(), 2, 4)], "the count of the day is kept");
}
