//! Conversion of limits to the types of the contract.

use crate::{Bucket, PaceRule, PacedSender, Period, Window, WindowHours};
use switchyard_sdk::{Decision, Message, RejectReason, Verdict, pace, reject, tables};

impl From<&Bucket> for pace::PaceBucket {
    fn from(bucket: &Bucket) -> Self {
        let Some(limit) = &bucket.limit else { return pace::configured(&bucket.name) };
        let defined = match &limit.period {
            Period::Time(time) => pace::per_time(&bucket.name, limit.amount, *time),
            Period::Day(zone) => pace::per_day(&bucket.name, limit.amount, zone),
        };
        if limit.segments { defined.counting_segments() } else { defined }
    }
}

impl From<&Window> for pace::SendWindow {
    fn from(window: &Window) -> Self {
        const DAYS: [pace::Weekday; 7] = [
            pace::Weekday::Mon,
            pace::Weekday::Tue,
            pace::Weekday::Wed,
            pace::Weekday::Thu,
            pace::Weekday::Fri,
            pace::Weekday::Sat,
            pace::Weekday::Sun,
        ];
        let Some(WindowHours { zone, days, opens, closes }) = &window.hours else {
            return pace::configured_window(&window.name);
        };
        let days: Vec<pace::Weekday> =
            days.iter().filter_map(|day| DAYS.get(usize::from(*day)).copied()).collect();
        pace::window(&window.name, zone, vec![pace::hours(*opens, *closes).on(&days)])
    }
}

/// Adds limits to a router's decision to send a message. If the limits cannot be read, the message is refused temporarily.
/// `opened`: the tables of the document, in the order of their indexes.
#[must_use]
pub fn use_limits(
    mut decision: Decision,
    limits: &[PaceRule],
    message: &Message,
    opened: &[u32],
) -> Decision {
    if !matches!(decision.verdict, Verdict::Forward(_) | Verdict::Home) {
        return decision;
    }
    let sender = PacedSender { account: &message.origin, source: &message.source.value };
    let (mut buckets, mut windows) = (Vec::new(), Vec::new());
    for limit in limits {
        let look_up = |table: usize, key: &str| tables::get(*opened.get(table)?, key);
        if let Err(what) = limit.add(sender, look_up, (&mut buckets, &mut windows)) {
            return reject(RejectReason::TryLater).because(what);
        }
    }
    for bucket in &buckets {
        decision = decision.use_pace_bucket(bucket.into());
    }
    for window in &windows {
        decision = decision.use_send_window(window.into());
    }
    decision
}
