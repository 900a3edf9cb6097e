//! Pace buckets and send windows in the simulation.

use crate::simulation::Random;
use calendar::{WeeklyWindow, Zone};
use engine::{
    BranchLimits, DayQuotaSettings, PaceBucketSettings, PaceNames, PacePeriod, PaceSettings,
    SendWindowSettings,
};
use model::{
    Batch, DefinedPeriod, Message, MessageChanges, MessageId, MessageKind, PaceBucketDefinition,
    PaceBucketUse, PaceDay, PaceUnit, PeerId, SendHours, SendWindowDefinition, SendWindowUse, SubmitAttempt,
    Timestamp, Verdict,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Messages a day of each bucket that counts by days.
const AMOUNT: u64 = 15;
/// Day quotas of the account, and of the tenant that all submitters belong to.
const QUOTAS: [(&str, u64); 2] = [("account", 40), ("tenant", 50)];
const ZONE: &str = "Asia/Kamchatka";
/// The minutes of the windows, in UTC: of the account, and of some decisions.
const HOURS: (u16, u16) = (0, 1400);
const MORNING: (u16, u16) = (0, 1000);
const CAMPAIGNS: [&str; 3] = ["c1", "c2", "c3"];
const ACCOUNT: PeerId = PeerId(0);
/// The peer with a bucket.
const BRANDED: PeerId = PeerId(1);
/// Marks the messages of plans with pace limits.
const PROTOCOL_ID: u8 = 63;

fn zone(name: &str) -> Zone {
    Zone::find(name).expect("a known zone")
}

fn window(hours: (u16, u16)) -> WeeklyWindow {
    WeeklyWindow::new(zone("UTC"), [true; 7], hours.0, hours.1).expect("a window")
}

/// The configuration: a bucket of a peer, another one that decisions name, and the window of the account.
pub(crate) fn settings() -> PaceSettings {
    let bucket = |name: &str| PaceBucketSettings {
        name: name.into(),
        amount: AMOUNT,
        per: PacePeriod::Day(zone(ZONE)),
        counts: PaceUnit::Messages,
    };
    let hours = SendWindowSettings { name: "hours".into(), window: window(HOURS) };
    let day_quotas =
        QUOTAS.map(|(owner, amount)| DayQuotaSettings { owner: owner.into(), amount, zone: zone(ZONE) });
    PaceSettings {
        buckets: vec![bucket("brand"), bucket("shared")],
        windows: vec![hours],
        day_quotas: day_quotas.into(),
    }
}

/// The quotas that messages of a submitter count for: the tenant's quota, and for the account also the account's.
fn quotas_of(submitter: PeerId) -> &'static [(&'static str, u64)] {
    if submitter == ACCOUNT { &QUOTAS } else { &QUOTAS[1..] }
}

/// The limits of a submitter's branch.
pub(crate) fn branch_of(submitter: PeerId) -> BranchLimits {
    BranchLimits {
        day_quotas: quotas_of(submitter).iter().map(|(owner, _)| Arc::from(*owner)).collect(),
        ..BranchLimits::default()
    }
}

/// The limits of messages sent to a peer.
pub(crate) fn of_peer(peer: PeerId) -> PaceNames {
    let buckets = if peer == BRANDED { vec!["brand".into()] } else { Vec::new() };
    PaceNames { buckets, windows: Vec::new() }
}

/// The limits of the account.
pub(crate) fn of_account() -> PaceNames {
    PaceNames { buckets: Vec::new(), windows: vec!["hours".into()] }
}

/// Gives a new message the limits of its decision, and time for them.
pub(crate) fn limit(random: &mut Random, message: &mut Message) {
    message.protocol_id = PROTOCOL_ID;
    message.expires_at = message.expires_at + Duration::from_secs(random.below(3 * 86_400) as u64);
    if matches!(message.routed.verdict, Verdict::Forward(_)) {
        message.routed.changes = changes(random);
    }
}

/// The limits that a decision names.
pub(crate) fn changes(random: &mut Random) -> Option<Box<MessageChanges>> {
    let mut changes = MessageChanges::default();
    let per_day = |name: &str, amount| PaceBucketUse {
        name: name.into(),
        defined: Some(PaceBucketDefinition {
            amount,
            per: DefinedPeriod::Day(ZONE.into()),
            counts: PaceUnit::Messages,
        }),
    };
    if random.chance(70) {
        changes.use_pace_bucket(per_day(CAMPAIGNS[random.below(CAMPAIGNS.len())], AMOUNT));
    }
    if random.chance(15) {
        // The configuration's definition takes precedence.
        changes.use_pace_bucket(if random.chance(50) {
            per_day("shared", 1_000)
        } else {
            PaceBucketUse { name: "shared".into(), defined: None }
        });
    }
    if random.chance(20) {
        let per = DefinedPeriod::Time(Duration::from_secs(60));
        let definition = PaceBucketDefinition { amount: 30, per, counts: PaceUnit::Messages };
        changes.use_pace_bucket(PaceBucketUse { name: "rate".into(), defined: Some(definition) });
    }
    if random.chance(20) {
        let hours = vec![SendHours { days: [true; 7], opens: MORNING.0, closes: MORNING.1 }];
        let defined = Some(SendWindowDefinition { zone: "UTC".into(), hours });
        changes.use_send_window(SendWindowUse { name: "morning".into(), defined });
    }
    (!changes.is_empty()).then(|| Box::new(changes))
}

/// The tokens taken per day, computed from the committed attempts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Witness {
    messages: HashMap<MessageId, Arc<Message>>,
    days: BTreeMap<Arc<str>, (Timestamp, u64)>,
    /// Tokens by bucket and day.
    taken: BTreeMap<(Arc<str>, Timestamp), u64>,
}

impl Witness {
    /// Checks a durable batch.
    pub(crate) fn committed(&mut self, batch: &Batch) {
        let changed = batch.accepted.iter().chain(&batch.replaced);
        for message in changed.filter(|message| message.protocol_id == PROTOCOL_ID) {
            self.messages.insert(message.id, message.clone());
        }
        let mut spent: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        for bucket in batch.submit_attempts.iter().flat_map(|attempt| self.buckets_of(attempt)) {
            *spent.entry(bucket).or_default() += 1;
        }
        let submitted = batch.accepted.iter().filter(|message| message.protocol_id == PROTOCOL_ID);
        for message in submitted.filter(|message| matches!(message.kind, MessageKind::Text)) {
            for (owner, _) in quotas_of(message.origin) {
                *spent.entry(format!("{}{owner}", PaceDay::QUOTA).into()).or_default() += 1;
            }
        }
        for day in &batch.pace_days {
            if day.used == 0 {
                self.days.remove(&day.bucket);
                continue;
            }
            let more = spent.remove(&day.bucket).unwrap_or_default();
            let (start, before) = self.days.get(&day.bucket).copied().unwrap_or_default();
            assert!(start <= day.start, "an earlier day of {}", day.bucket);
            let new = if start == day.start {
                assert_eq!(day.used, before + more, "tokens of {}", day.bucket);
                more
            } else {
                // Attempts of the previous day may be in the same batch.
                assert!(day.used <= more, "a new day of {} begins with {}", day.bucket, day.used);
                day.used
            };
            let all = self.taken.entry((day.bucket.clone(), day.start)).or_default();
            *all += new;
            assert!(*all <= amount_of(day), "{all} tokens of {} in a day", day.bucket);
            self.days.insert(day.bucket.clone(), (day.start, day.used));
        }
        assert!(spent.is_empty(), "attempts or messages without their tokens: {spent:?}");
    }

    /// The buckets that an attempt takes tokens from; its windows must be open.
    fn buckets_of(&self, attempt: &SubmitAttempt) -> Vec<Arc<str>> {
        let Some(message) = self.messages.get(&attempt.id) else { return Vec::new() };
        let (MessageKind::Text, Verdict::Forward(legs)) = (&message.kind, &message.routed.verdict) else {
            return Vec::new();
        };
        let changes = message.routed.changes.as_deref();
        let is_open = |hours| window(hours).is_open(attempt.at.0);
        let in_morning = changes.is_none_or(|changes| changes.send_windows.is_empty()) || is_open(MORNING);
        let in_hours = message.origin != ACCOUNT || is_open(HOURS);
        assert!(in_morning && in_hours, "{:?} left at {}", attempt.id, attempt.at.0);
        let named = changes.map_or(&[][..], |changes| &changes.pace_buckets);
        let per_day = named.iter().filter(|bucket| *bucket.name != *"rate");
        let own = legs.get(usize::from(attempt.leg)).filter(|leg| leg.peer == BRANDED);
        per_day.map(|bucket| Arc::from(&*bucket.name)).chain(own.map(|_| "brand".into())).collect()
    }

    /// The numbers of days on which a bucket, and a day quota, was exhausted.
    pub(crate) fn exhausted(&self) -> (usize, usize) {
        let all = |owner: Option<u64>| {
            let amount = owner.unwrap_or(AMOUNT);
            let is_kind = |bucket: &str| bucket.starts_with(PaceDay::QUOTA) == owner.is_some();
            self.taken.iter().filter(|((bucket, _), taken)| is_kind(bucket) && **taken == amount).count()
        };
        (all(None), QUOTAS.iter().map(|(_, amount)| all(Some(*amount))).sum())
    }
}

/// The most that may be taken in a day.
fn amount_of(day: &PaceDay) -> u64 {
    let quota = day.quota_owner().map(|owner| QUOTAS.iter().find(|(known, _)| *known == owner));
    quota.map_or(AMOUNT, |known| known.map_or(0, |(_, amount)| *amount))
}
