use crate::PeerSettings;
use crate::lane::Lane;
use crate::pace::Pace;
use crate::random::Random;
use model::{MessageId, Moment, OrderId, PeerAdvice, PeerId, Priority, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A token bucket in thousandths of a message, so that it works in whole milliseconds.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    at: Moment,
}

impl Bucket {
    pub(crate) fn new(per_second: f64, burst: f64) -> Self {
        // A bucket that holds less than what two milliseconds bring could never reach its own rate.
        let burst = burst.max(1.0).max(per_second / 500.0);
        Self { per_second, burst, tokens: burst, at: Moment(0) }
    }

    /// Takes one token, or tells when there will be one.
    pub(crate) fn take(&mut self, now: Moment) -> Result<(), Moment> {
        self.ready(now)?;
        self.spend();
        Ok(())
    }

    /// Whether there is a token, which stays; otherwise when there will be one.
    pub(crate) fn ready(&mut self, now: Moment) -> Result<(), Moment> {
        let passed = (now - self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + passed * self.per_second).min(self.burst);
        if self.tokens >= 1.0 - 1e-6 {
            return Ok(());
        }
        let wait = ((1.0 - self.tokens) / self.per_second).min(3600.0);
        Err(now + Duration::from_secs_f64(wait).max(Duration::from_millis(1)))
    }

    /// Takes a token that [`Bucket::ready`] has found.
    pub(crate) fn spend(&mut self) {
        self.tokens = (self.tokens - 1.0).max(0.0);
    }

    /// Another rate, and no burst because of it.
    pub(crate) fn set_rate(&mut self, per_second: f64, burst: f64) {
        *self = Self { tokens: self.tokens, at: self.at, ..Self::new(per_second, burst) };
        self.tokens = self.tokens.min(self.burst);
    }

    /// Keeps one token at most.
    pub(crate) fn drain(&mut self) {
        self.tokens = self.tokens.min(1.0);
    }
}

/// The longest that a delivery policy can silence a peer at a time.
const LONGEST_ADVISED_PAUSE: Duration = Duration::from_secs(3600);

/// What stands between a peer's queue and its links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Brake {
    /// Nothing waits.
    Idle,
    /// Messages flow as fast as the peer answers: its windows are full.
    Window,
    /// No link is up.
    NoLink,
    /// Our own rate limit.
    Rate {
        /// When the next message may go.
        until: Moment,
    },
    /// The peer said "too fast": it gets what it seems to allow.
    Throttled {
        /// When the next message may go.
        until: Moment,
        /// Messages a second, as learnt.
        rate: f64,
    },
    /// The peer said "too fast", and nothing is known yet of what it allows: the rate doubles every second.
    SlowStart {
        /// When the next message may go.
        until: Moment,
        /// Messages a second, at the moment.
        rate: f64,
    },
    /// A delivery policy has advised a pause.
    Advised {
        /// Its end.
        until: Moment,
    },
    /// Content is being read back from the store.
    Loading,
    /// All that waits is behind other messages to the same subscribers.
    Subscribers,
    /// The peer is not in the configuration (any more).
    NotConfigured,
    /// The appliance is shutting down.
    Draining,
    /// The peer stands still by this order.
    Suspended {
        /// The order.
        order: OrderId,
    },
    /// What waits is held back by orders, or is being set down with them.
    Held,
    /// Messages go to another peer by an order, which has no room for them now.
    Rebound,
}

/// One peer: its queue by priority, its links, its pace.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) settings: PeerSettings,
    pub(crate) configured: bool,
    pub(crate) lanes: [Lane; Priority::LEVELS],
    /// Messages in `lanes`, ghosts left out.
    pub(crate) queued: u64,
    pub(crate) deferred: u64,
    /// Messages behind others to the same subscriber, and the oldest of each subscriber's with its turn's key.
    pub(crate) aside: u64,
    pub(crate) oldest_aside: BTreeSet<(MessageId, u64)>,
    /// Subscribers whose turn is held by a message that waits after a failure.
    pub(crate) parked: u64,
    /// Messages that wait for their subscriber before they may join its queue.
    pub(crate) resolving: u64,
    /// Messages that orders hold back.
    pub(crate) suspended: u64,
    /// The last time that it went on after it had stood still by an order.
    pub(crate) resumed: Option<Resumed>,
    pub(crate) uncertain: u64,
    pub(crate) awaiting: u64,
    pub(crate) in_flight: u64,
    /// Indices of its links that are up.
    pub(crate) links: Vec<u32>,
    pub(crate) bucket: Option<Bucket>,
    /// What a delivery policy has advised, until it advises otherwise or the peer is configured anew: messages a second,
    /// and unanswered ones over all links.
    advised_rate: Option<f64>,
    pub(crate) advised_window: Option<u32>,
    /// A delivery policy's pause.
    pub(crate) paused_until: Moment,
    /// What it allows, where it has said "too fast".
    pub(crate) pace: Option<Pace>,
    /// Messages given to its links so far: the number of the last one.
    pub(crate) sent: u64,
    recent: Recent,
    /// Standing in the engine's list of peers to dispatch.
    pub(crate) dirty: bool,
    /// A wake-up is set for this moment.
    pub(crate) wake: Option<Moment>,
    /// Messages that were evicted from memory while queued here.
    pub(crate) evicted: u64,
    pub(crate) brake: Brake,
}

impl Peer {
    pub(crate) fn new(peer: PeerId) -> Self {
        Self {
            settings: PeerSettings::new(peer),
            configured: false,
            lanes: Default::default(),
            queued: 0,
            deferred: 0,
            aside: 0,
            oldest_aside: BTreeSet::new(),
            parked: 0,
            resolving: 0,
            suspended: 0,
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
            recent: Recent::default(),
            dirty: false,
            wake: None,
            evicted: 0,
            brake: Brake::NotConfigured,
        }
    }

    /// Messages that wait for it: what its limit is about.
    pub(crate) fn waiting(&self) -> u64 {
        self.queued + self.aside + self.suspended + self.deferred + self.resolving
    }

    pub(crate) fn configure(&mut self, settings: PeerSettings) {
        let advised = self.advised_rate.take().is_some();
        self.advised_window = None;
        let paced_anew = self.settings.rate != settings.rate || self.settings.burst != settings.burst;
        if !self.configured || paced_anew || advised {
            self.bucket = settings.rate.map(|rate| Bucket::new(rate, settings.burst.into()));
        }
        self.settings = settings;
        self.configured = true;
    }

    /// Takes a delivery policy's advice. What makes no sense (a rate of nothing, say) is passed over.
    pub(crate) fn heed(&mut self, now: Moment, advice: PeerAdvice) {
        if let Some(pause) = advice.pause {
            let until = now + pause.min(LONGEST_ADVISED_PAUSE);
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
            self.bucket.get_or_insert_with(|| Bucket::new(rate, burst)).set_rate(rate, burst);
        }
    }

    /// A message was taken.
    pub(crate) fn taken(&mut self, now: Moment) {
        self.recent.count(now);
        if let Some(pace) = &mut self.pace {
            pace.taken(now);
        }
    }

    /// Message `number` was refused as too fast.
    pub(crate) fn throttled(&mut self, now: Moment, number: u64, random: &mut Random) {
        match &mut self.pace {
            Some(pace) => pace.refused(now, number, self.sent, random),
            None => self.pace = Some(Pace::new(now, self.sent, self.recent.last_second(now), random)),
        }
    }
}

/// How many messages a peer has taken, by the second.
#[derive(Debug, Default)]
struct Recent {
    second: u64,
    taken: u32,
    before: u32,
}

impl Recent {
    fn turn(&mut self, now: Moment) {
        let second = now.0 / 1000;
        if second > self.second {
            self.before = if second == self.second + 1 { self.taken } else { 0 };
            (self.second, self.taken) = (second, 0);
        }
    }

    fn count(&mut self, now: Moment) {
        self.turn(now);
        self.taken = self.taken.saturating_add(1);
    }

    /// What was taken in the last full second, or already in this one.
    fn last_second(&mut self, now: Moment) -> u32 {
        self.turn(now);
        self.before.max(self.taken)
    }
}

/// A peer that stood still by an order went on.
#[derive(Debug, Clone)]
pub(crate) struct Resumed {
    pub(crate) order: OrderId,
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
    /// The `handed` row that holds it.
    pub(crate) seq: u64,
    /// When it was given to the link.
    pub(crate) at: model::Timestamp,
    /// Its number among those that were given to the peer's links; 0: long ago.
    pub(crate) number: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_keeps_its_rate_over_a_second() {
        for rate in [0.5, 1.0, 7.0, 100.0, 3000.0] {
            let mut bucket = Bucket::new(rate, 1.0);
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
    fn a_bucket_says_when_to_come_back() {
        let mut bucket = Bucket::new(10.0, 1.0);
        assert!(bucket.take(Moment(0)).is_ok());
        let again = bucket.take(Moment(0)).unwrap_err();
        assert!(bucket.take(again).is_ok());
    }
}
