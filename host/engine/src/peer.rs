use crate::counts::PeerCounts;
use crate::lane::Lane;
use crate::pace::Pace;
use crate::pace_limits::LimitIndex;
use crate::settings::PeerSettings;
use crate::token_bucket::TokenBucket;
use model::{MessageId, Moment, PeerAdvice, PeerId, Priority, QueueActionId, Random, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The longest pause that a delivery policy can advise at a time.
const MAX_ADVISED_PAUSE: Duration = Duration::from_secs(3600);

/// The reason why a peer's queue does not move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BlockedBy {
    /// Nothing waits.
    Idle,
    /// The windows are full: messages flow as fast as the peer answers.
    Window,
    /// No link is up.
    NoLink,
    /// The partition that has the links to the peer is not reached.
    NoHome,
    /// The configured rate limit.
    Rate {
        /// The time of the next message.
        until: Moment,
    },
    /// The peer throttled: the learnt rate applies.
    Throttled {
        /// The time of the next message.
        until: Moment,
        /// The learnt rate, in messages per second.
        rate: f64,
    },
    /// The peer throttled, and its rate is still unknown: the rate doubles every second.
    SlowStart {
        /// The time of the next message.
        until: Moment,
        /// The current rate, in messages per second.
        rate: f64,
    },
    /// A pause advised by the delivery policy.
    PolicyPause {
        /// Its end.
        until: Moment,
    },
    /// Content is being loaded from the store.
    Loading,
    /// All waiting messages are behind subscriber locks.
    SubscriberLocked,
    /// The peer is not in the configuration.
    NotConfigured,
    /// The appliance is shutting down.
    Shutdown,
    /// A queue action suspends the peer.
    Suspended {
        /// The queue action.
        queue_action: QueueActionId,
    },
    /// All waiting messages wait for pace buckets or send windows: see [`crate::PeerStatus::paced_by`].
    Paced,
    /// Queue actions hold all waiting messages.
    QueueAction,
    /// A queue action reroutes the messages, and the target is full.
    RerouteTargetFull,
}

/// One peer: its queue by priority, its links, its limits.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) settings: PeerSettings,
    pub(crate) configured: bool,
    pub(crate) lanes: [Lane; Priority::LEVELS],
    /// Messages in `lanes`, without tombstones.
    pub(crate) queued: u64,
    pub(crate) deferred: u64,
    /// Messages behind a subscriber lock, and the oldest per lock with its key.
    pub(crate) subscriber_locked: u64,
    pub(crate) oldest_waiting: BTreeSet<(MessageId, u64)>,
    /// Subscribers whose lock holder is in back-off.
    pub(crate) blocked_subscribers: u64,
    /// Messages whose subscriber is being looked up.
    pub(crate) resolving: u64,
    /// Messages held by queue actions.
    pub(crate) suspended: u64,
    /// Messages that wait for a pace bucket or a send window.
    pub(crate) paced: u64,
    /// Limits of the messages sent to it, and of those that it submits.
    pub(crate) send_limits: Vec<LimitIndex>,
    pub(crate) submit_limits: Vec<LimitIndex>,
    /// The last time that it resumed after a suspension.
    pub(crate) resumed: Option<PeerResumed>,
    pub(crate) uncertain: u64,
    pub(crate) awaiting: u64,
    pub(crate) in_flight: u64,
    /// Indices of its links that are up.
    pub(crate) links: Vec<u32>,
    pub(crate) bucket: Option<TokenBucket>,
    /// Advice of the delivery policy, until the next advice or reconfiguration: messages per second, and unanswered
    /// ones over all links.
    advised_rate: Option<f64>,
    pub(crate) advised_window: Option<u32>,
    /// The end of a pause advised by the delivery policy.
    pub(crate) paused_until: Moment,
    /// The learnt rate, if the peer has throttled.
    pub(crate) pace: Option<Pace>,
    /// Messages sent on its links so far; the number of the last one.
    pub(crate) sent: u64,
    recent: AcceptedRate,
    /// Counters of the messages sent to it, and of those that it submitted.
    pub(crate) counts: PeerCounts,
    pub(crate) submitter_counts: PeerCounts,
    /// It is in the engine's list of peers to dispatch.
    pub(crate) dirty: bool,
    /// The time of its next wake-up.
    pub(crate) wake: Option<Moment>,
    /// Queued messages whose content is not cached.
    pub(crate) evicted: u64,
    pub(crate) blocked_by: BlockedBy,
}

impl Peer {
    pub(crate) fn new(peer: PeerId) -> Self {
        Self {
            settings: PeerSettings::new(peer),
            configured: false,
            lanes: Default::default(),
            queued: 0,
            deferred: 0,
            subscriber_locked: 0,
            oldest_waiting: BTreeSet::new(),
            blocked_subscribers: 0,
            resolving: 0,
            suspended: 0,
            paced: 0,
            send_limits: Vec::new(),
            submit_limits: Vec::new(),
            resumed: None,
            uncertain: 0,
            awaiting: 0,
            in_flight: 0,
            links: Vec::new(),
            bucket: None,
            advised_rate: None,
            advised_window: None,
            paused_until: Moment(0),
            pace: None,
            sent: 0,
            recent: AcceptedRate::default(),
            counts: PeerCounts::default(),
            submitter_counts: PeerCounts::default(),
            dirty: false,
            wake: None,
            evicted: 0,
            blocked_by: BlockedBy::NotConfigured,
        }
    }

    /// Waiting messages: the queue limit applies to them.
    pub(crate) fn waiting(&self) -> u64 {
        self.queued + self.subscriber_locked + self.suspended + self.paced + self.deferred + self.resolving
    }

    pub(crate) fn configure(&mut self, settings: PeerSettings) {
        let advised = self.advised_rate.take().is_some();
        self.advised_window = None;
        let paced_anew = self.settings.rate != settings.rate || self.settings.burst != settings.burst;
        if !self.configured || paced_anew || advised {
            self.bucket = settings.rate.map(|rate| TokenBucket::new(rate, settings.burst.into()));
        }
        self.settings = settings;
        self.configured = true;
    }

    /// Applies a delivery policy's advice; invalid values, such as a rate of zero, are ignored.
    pub(crate) fn apply_advice(&mut self, now: Moment, advice: PeerAdvice) {
        if let Some(pause) = advice.pause {
            let until = now + pause.min(MAX_ADVISED_PAUSE);
            self.paused_until = self.paused_until.max(until);
        }
        if let Some(window) = advice.window {
            self.advised_window = Some(window.max(1));
        }
        let Some(rate) = advice.rate.filter(|rate| rate.is_finite() && *rate > 0.0) else { return };
        self.advised_rate = Some(rate);
        let rate = self.settings.rate.map_or(rate, |configured| configured.min(rate));
        if self.bucket.as_ref().is_none_or(|bucket| bucket.per_second != rate) {
            let burst = f64::from(self.settings.burst);
            self.bucket.get_or_insert_with(|| TokenBucket::new(rate, burst)).set_rate(rate, burst);
        }
    }

    /// Counts an accepted message.
    pub(crate) fn accepted(&mut self, now: Moment) {
        self.recent.count(now);
        if let Some(pace) = &mut self.pace {
            pace.accepted(now);
        }
    }

    /// The peer refused message `number` as throttled.
    pub(crate) fn throttled(&mut self, now: Moment, number: u64, random: &mut Random) {
        match &mut self.pace {
            Some(pace) => pace.refused(now, number, self.sent, random),
            None => self.pace = Some(Pace::new(now, self.sent, self.recent.last_second(now), random)),
        }
    }
}

/// Accepted messages by second.
#[derive(Debug, Default)]
struct AcceptedRate {
    second: u64,
    accepted: u32,
    previous: u32,
}

impl AcceptedRate {
    fn advance(&mut self, now: Moment) {
        let second = now.0 / 1000;
        if second > self.second {
            self.previous = if second == self.second + 1 { self.accepted } else { 0 };
            (self.second, self.accepted) = (second, 0);
        }
    }

    fn count(&mut self, now: Moment) {
        self.advance(now);
        self.accepted = self.accepted.saturating_add(1);
    }

    /// Messages accepted in the last full second, or in this one if there are more.
    fn last_second(&mut self, now: Moment) -> u32 {
        self.advance(now);
        self.previous.max(self.accepted)
    }
}

/// A peer resumed after a suspension.
#[derive(Debug, Clone)]
pub(crate) struct PeerResumed {
    pub(crate) queue_action: QueueActionId,
    pub(crate) by: Arc<str>,
    pub(crate) at: Timestamp,
}

/// One link that takes messages.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) id: model::LinkId,
    pub(crate) peer: PeerId,
    pub(crate) window: u32,
    pub(crate) paused: bool,
    pub(crate) in_flight: Vec<InFlight>,
}

/// A message on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub(crate) slot: crate::slab::Slot,
    /// Its row of table `handed`.
    pub(crate) seq: u64,
    /// The time of the attempt.
    pub(crate) at: model::Timestamp,
    /// Its number among the messages sent to the peer; 0 if it is from an earlier attempt.
    pub(crate) number: u64,
    /// The time of the attempt, by the monotonic clock; `None` if it is from an earlier attempt.
    pub(crate) since: Option<Moment>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bucket_keeps_its_rate() {
        for rate in [0.5, 1.0, 7.0, 100.0, 3000.0] {
            let mut bucket = TokenBucket::new(rate, 1.0);
            let mut taken = 0;
            for ms in 0..10_000 {
                while bucket.take(Moment(ms)).is_ok() {
                    taken += 1;
                }
            }
            let most = rate * 10.0 + (rate / 500.0).max(1.0) + 1.0;
            assert!(f64::from(taken) <= most && f64::from(taken) >= rate * 10.0 - 1.0, "{rate}: {taken}");
        }
    }

    #[test]
    fn token_bucket_returns_the_time_of_the_next_token() {
        let mut bucket = TokenBucket::new(10.0, 1.0);
        assert!(bucket.take(Moment(0)).is_ok());
        let again = bucket.take(Moment(0)).unwrap_err();
        assert!(bucket.take(again).is_ok());
    }
}
