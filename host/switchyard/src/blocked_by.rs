//! Descriptions of the reasons why queues and messages do not move.

use engine::{BlockedBy, PacedBy};
use model::{Moment, Now};
use std::time::Duration;

/// Describes why a queue does not move; engine times are converted to wall-clock time.
pub(crate) fn describe_blocked_by(blocked_by: BlockedBy, now: Now) -> String {
    match blocked_by {
        BlockedBy::Idle => "idle".to_owned(),
        BlockedBy::Window => "peer window: the windows of all links are full".to_owned(),
        BlockedBy::NoLink => "no link is up".to_owned(),
        BlockedBy::NoHome => "no connection to the home partition of the peer".to_owned(),
        BlockedBy::Rate { until } => format!("rate limit, until {}", now.wall_of(until).0),
        BlockedBy::Throttled { until, rate } => {
            format!("throttled by the peer: learnt rate {rate:.1}/s{}", describe_next(until, now))
        }
        BlockedBy::SlowStart { until, rate } => {
            format!("throttled by the peer: slow start at {rate:.1}/s{}", describe_next(until, now))
        }
        BlockedBy::PolicyPause { until } => {
            format!("paused by the delivery policy, until {}", now.wall_of(until).0)
        }
        BlockedBy::Loading => "messages are being read from disk".to_owned(),
        BlockedBy::SubscriberLocked => {
            "all queued messages wait for others to the same subscribers".to_owned()
        }
        BlockedBy::NotConfigured => "the peer is not in the configuration".to_owned(),
        BlockedBy::Shutdown => "shutting down".to_owned(),
        BlockedBy::Suspended { queue_action } => format!("suspended by queue action {queue_action}"),
        BlockedBy::Paced => "all queued messages wait for pace buckets or send windows".to_owned(),
        BlockedBy::QueueAction => "all queued messages are suspended by queue actions".to_owned(),
        BlockedBy::RerouteTargetFull => "messages are rerouted to a peer whose queue is full".to_owned(),
    }
}

/// Description of the pace bucket or send window that messages wait for, for the end of a sentence.
pub(crate) fn describe_pace(by: &PacedBy, now: Now) -> String {
    let kind = if by.is_window { "send window" } else { "pace bucket" };
    let until = by.until.map_or(String::new(), |until| format!(", until {}", now.wall_of(until).0));
    format!(" for {kind} {}{until}", by.name)
}

/// Describes when the next message is sent, if that is at least a second away.
fn describe_next(until: Moment, now: Now) -> String {
    if until - now.mono < Duration::from_secs(1) {
        return String::new();
    }
    format!(", next at {}", now.wall_of(until).0)
}
