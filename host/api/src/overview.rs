//! The appliance as a whole, its queues and its links.

use crate::names::{BindMode, LinkBlocker, LinkPhase, LinkRole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `GET /v1/status`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Status)]
pub struct StatusView {
    /// The appliance's name.
    pub name: String,
    /// The daemon's version.
    pub version: String,
    /// Seconds since the start of the daemon.
    pub uptime_seconds: u64,
    /// Unfinished messages, including DLRs to submitters.
    pub waiting: u64,
    /// Finished messages still in the store.
    pub finished_kept: u64,
    /// Free octets on the disk of the data directory.
    pub disk_free: u64,
    /// Whether free disk space is below the watermark: submissions are refused, delivery continues.
    pub disk_low: bool,
    /// Whether the file with the keys of encrypted texts cannot be written: the daemon stops when the next key is needed.
    #[serde(default)]
    pub text_keys_failing: bool,
    /// Messages recovered at the start.
    pub recovered: u64,
    /// Duration of the recovery, in milliseconds.
    pub recovery_ms: u64,
    /// Counters since the start of the daemon.
    pub totals: StatusTotals,
}

/// Counters since the start of the daemon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusTotals {
    /// Messages accepted, without DLRs to submitters.
    pub accepted: u64,
    /// Submissions refused.
    pub refused: u64,
    /// Submit attempts.
    pub submitted: u64,
    /// Submit attempts that the peer refused because of its limits.
    pub throttled: u64,
    /// Submit attempts that the peer never answered.
    pub uncertain: u64,
    /// Uncertain messages submitted again.
    pub sent_again: u64,
    /// DLRs of peers that matched a message.
    pub dlrs_matched: u64,
    /// DLRs of peers that expired without a match.
    pub dlrs_unmatched: u64,
    /// DLRs created for submitters.
    pub dlrs_made: u64,
    /// DLRs that submitters have accepted.
    pub dlrs_delivered: u64,
    /// Commits of the store.
    pub commits: u64,
    /// Total time of commits, in microseconds.
    pub commit_us: u64,
    /// Rows written by commits.
    pub commit_rows: u64,
    /// Finished messages that were delivered.
    pub delivered: u64,
    /// Finished messages that were accepted by the peer, and for which no DLR was requested.
    pub relayed: u64,
    /// Finished messages that failed.
    pub failed: u64,
    /// Finished messages whose validity period has ended.
    pub expired: u64,
    /// Finished messages that were cancelled.
    pub cancelled: u64,
    /// Finished messages that were rejected by routing.
    pub rejected: u64,
    /// Finished messages whose fate is unknown.
    pub unknown: u64,
}

/// The cause of a blocked queue, as the attention rules distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockCause {
    /// Not blocked, or by a cause that ends without an admin.
    #[default]
    Other,
    /// A queue action holds the whole queue.
    QueueAction,
    /// The peer throttles.
    Throttle,
}

/// A queue of a peer or account in `GET /v1/queues`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Queue)]
pub struct QueueView {
    /// The peer's or account's name.
    pub peer: String,
    /// Whether the peer or account is in the configuration.
    pub configured: bool,
    /// Queued messages.
    pub queued: u64,
    /// Of these, messages that wait behind another message to the same subscriber.
    pub subscriber_locked: u64,
    /// Messages held by a queue action.
    pub suspended: u64,
    /// Messages that wait for a pace bucket or a send window.
    pub paced: u64,
    /// Subscribers that get no messages until a failed message has been retried.
    pub blocked_subscribers: u64,
    /// Messages that wait for a retry or a scheduled time.
    pub deferred: u64,
    /// Messages that wait for the resolution of their subscriber.
    pub resolving: u64,
    /// Messages submitted on a link and not yet answered.
    pub in_flight: u64,
    /// Messages submitted and never answered.
    pub uncertain: u64,
    /// Messages accepted by the peer that await a DLR.
    pub awaiting_dlr: u64,
    /// Acceptance time of the oldest queued message, milliseconds since the epoch.
    #[schema(required)]
    pub oldest: Option<u64>,
    /// Links that can carry messages.
    pub links: usize,
    /// The reason why the queue is blocked, and the end of it, for people.
    pub blocked_by: String,
    /// Rate limit in messages a second, as learnt from the peer's throttling errors; null if the peer has never throttled.
    #[schema(required)]
    pub learnt_rate: Option<f64>,
    /// The reason of `blocked_by`, for the attention rules.
    #[serde(skip)]
    pub block_cause: BlockCause,
    /// Whether this is the queue of an account.
    pub is_account: bool,
}

impl QueueView {
    /// All unfinished messages of the queue.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.queued
            + self.suspended
            + self.paced
            + self.deferred
            + self.resolving
            + self.in_flight
            + self.uncertain
            + self.awaiting_dlr
    }
}

/// A link in `GET /v1/links`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Link)]
pub struct LinkView {
    /// The link's number; null if it is not bound.
    #[schema(required)]
    pub id: Option<u64>,
    /// The peer or account.
    pub peer: String,
    /// `server`: the peer connects to the appliance; `client`: the appliance dials.
    #[schema(inline)]
    pub role: LinkRole,
    /// The phase of the connection.
    #[schema(inline)]
    pub phase: LinkPhase,
    /// Address of the remote side.
    #[schema(required)]
    pub remote: Option<String>,
    /// The bind mode.
    #[schema(required, inline)]
    pub bind: Option<BindMode>,
    /// Whether the link uses TLS.
    pub tls: bool,
    /// Window: the maximum of unanswered messages that the appliance has sent.
    pub window: u32,
    /// Unanswered messages that the appliance has sent.
    pub in_flight: u32,
    /// Requests of the remote side that the appliance has not yet answered.
    pub unanswered_in: u32,
    /// Smoothed round-trip time, in microseconds.
    #[schema(required)]
    pub round_trip_us: Option<u64>,
    /// The reason why the link is blocked; `none` if it is not.
    #[schema(inline)]
    pub blocked_by: LinkBlocker,
    /// Received requests, by kind.
    pub received: BTreeMap<String, u64>,
    /// Sent requests, by kind.
    pub sent: BTreeMap<String, u64>,
    /// Errors that the appliance has answered, by status.
    pub refused_by_us: BTreeMap<String, u64>,
    /// Errors that the peer has answered, by status.
    pub refused_by_peer: BTreeMap<String, u64>,
    /// Start of the phase, milliseconds since the epoch.
    pub since: u64,
    /// Time at which the link went down, milliseconds since the epoch, across dialling attempts; null if it is up.
    #[schema(required)]
    pub down_since: Option<u64>,
    /// The last error.
    #[schema(required)]
    pub last_error: Option<String>,
    /// Time of the next dialling attempt.
    #[schema(required)]
    pub back_off_until: Option<u64>,
}

impl LinkView {
    /// Whether the link is bound.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.phase == LinkPhase::Bound
    }

    /// Time at which the link went up or, across dialling attempts, down; milliseconds since the epoch. `since` does not
    /// give this time, because the phase changes with each attempt.
    #[must_use]
    pub fn up_or_down_since(&self) -> u64 {
        self.down_since.unwrap_or(self.since)
    }

    /// Smoothed round-trip time, in milliseconds.
    #[must_use]
    pub fn round_trip_ms(&self) -> Option<f64> {
        self.round_trip_us.map(|micros| micros as f64 / 1_000.0)
    }
}

/// `GET /v1/links/summary`: counts of links, and some links, sorted by need of attention.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = LinksSummary)]
pub struct LinksSummaryView {
    /// Links that are bound.
    pub up: u64,
    /// Links that connect or bind.
    pub connecting: u64,
    /// All other links.
    pub down: u64,
    /// Some links: unbound links first, then the links with most messages in flight.
    pub links: Vec<LinkView>,
}

impl LinksSummaryView {
    /// The summary of these links; it lists at most `limit` of them.
    #[must_use]
    pub fn of(mut links: Vec<LinkView>, limit: usize) -> Self {
        let count =
            |phases: &[LinkPhase]| links.iter().filter(|link| phases.contains(&link.phase)).count() as u64;
        let (up, connecting) =
            (count(&[LinkPhase::Bound]), count(&[LinkPhase::Connecting, LinkPhase::Binding]));
        let down = links.len() as u64 - up - connecting;
        links.sort_by_key(|link| (link.is_up(), std::cmp::Reverse(link.in_flight)));
        links.truncate(limit);
        Self { up, connecting, down, links }
    }

    /// The number of all links.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.up + self.connecting + self.down
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_all_links_and_shows_those_that_are_down_first() {
        let link = |peer: &str, phase, in_flight| LinkView {
            peer: peer.to_owned(),
            phase,
            in_flight,
            ..LinkView::default()
        };
        let links = vec![
            link("idle", LinkPhase::Bound, 0),
            link("busy", LinkPhase::Bound, 9),
            link("dialling", LinkPhase::Connecting, 0),
            link("off", LinkPhase::BackingOff, 0),
        ];
        let summary = LinksSummaryView::of(links, 3);
        assert_eq!((summary.up, summary.connecting, summary.down, summary.total()), (2, 1, 1, 4));
        let shown: Vec<&str> = summary.links.iter().map(|link| link.peer.as_str()).collect();
        assert_eq!(shown, ["dialling", "off", "busy"]);
    }

    #[test]
    fn a_link_is_down_since_it_was_up_and_not_since_the_last_attempt() {
        let dialling = LinkView { since: 9_000, down_since: Some(1_000), ..LinkView::default() };
        assert_eq!(dialling.up_or_down_since(), 1_000);
        let bound = LinkView { since: 9_000, down_since: None, ..LinkView::default() };
        assert_eq!(bound.up_or_down_since(), 9_000);
    }
}
