//! Pace: the rate that a peer allows, learnt from acceptances and throttling refusals.
//!
//! A pure state machine; the time is an argument. Before the first refusal no [`Pace`] exists, and messages are sent
//! as fast as the peer answers. From then on:
//!
//! * **Slow start.** The rate begins with the number of messages that the peer accepted in the previous second, at least
//!   [`FIRST_RATE`], and doubles every second.
//! * **Decrease.** A refusal lowers the rate once, to a share of the refused rate. A refusal of a message sent before
//!   the decrease is ignored. At most one decrease happens per second, because many peers count by the second.
//! * **Increase.** The rate follows a curve that is steep at first, flat near the last refused rate, and steep again
//!   beyond it (RFC 9438 §4.2, with the rate in place of the window). So the rate stays near the limit, and finds a
//!   new limit soon. At twice the refused rate slow start begins again. The rate rises only while it limits the peer.
//! * **Pause.** Each refusal also pauses the peer. The pause doubles while each probe is refused, and each success
//!   halves it. Probes are timed, so a probe without answer does not stop the next one.

use crate::token_bucket::TokenBucket;
use model::{Moment, Random};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The share of the refused rate at which the increase begins.
const DECREASE: f64 = 0.9;
/// The share of the rate that counts as refused at the end of slow start: the rate has doubled within a second, so
/// the limit lies between half of it and all of it.
const SLOW_START_OVERSHOOT: f64 = 0.75;
/// The greatest ratio of the refused rate to the accepted rate: a peer that allows a few messages per second refuses late.
const MAX_REFUSED_RATIO: f64 = 1.08;
/// The lowest rate of slow start, in messages per second.
const FIRST_RATE: f64 = 1.0;
/// The increase per success in slow start, in messages per second: it doubles the rate within a second.
const SLOW_START_STEP: f64 = 0.7;
/// The multiple of the refused rate at which slow start begins again.
const SLOW_START_RATIO: f64 = 2.0;
/// The rates that can be learnt, in messages per second.
const RATES: RangeInclusive<f64> = 0.1..=1_000_000.0;
/// The shortest time between two decreases.
const MIN_DECREASE_INTERVAL: Duration = Duration::from_secs(1);
/// The increase reaches the refused rate after this many messages, within [`RECOVERY_SECONDS`].
const RECOVERY_MESSAGES: f64 = 30.0;
const RECOVERY_SECONDS: RangeInclusive<f64> = 5.0..=20.0;
/// The burst: the messages of this many seconds may be sent at once.
const BURST_SECONDS: f64 = 0.01;
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// A pause of this length or more ends with probes: one message per pause, until one is accepted.
const PROBE_FROM: Duration = Duration::from_millis(80);

/// The learnt rate of a peer; see the module.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Messages per second.
    rate: f64,
    /// The last refused rate; `None` in slow start.
    refused_rate: Option<f64>,
    bucket: TokenBucket,
    /// Nothing is sent before this time.
    until: Moment,
    /// The last pause, reduced by successes.
    pause: Duration,
    probing: bool,
    /// Messages up to this number were sent before the last refusal that was not ignored.
    barrier: u64,
    decreased_at: Moment,
    /// Messages accepted since the last decrease while the rate limited the peer, and the seconds during which it
    /// did.
    accepted: u32,
    limited_for: f64,
    /// The last time the rate delayed a message.
    limited_at: Moment,
    /// The last time a message was accepted.
    accepted_at: Moment,
}

impl Pace {
    /// The state after the first refusal. `sent` is the number of the last message sent, `per_second` the number of
    /// messages accepted in a second.
    pub(crate) fn new(now: Moment, sent: u64, per_second: u32, random: &mut Random) -> Self {
        // The accepted messages may have been a burst, or all waiting messages: this is only a starting value.
        let rate = (f64::from(per_second) * DECREASE).max(FIRST_RATE);
        let mut pace = Self {
            rate,
            refused_rate: None,
            bucket: TokenBucket::new(rate, rate * BURST_SECONDS),
            until: now,
            pause: Duration::ZERO,
            probing: false,
            barrier: sent,
            decreased_at: now,
            accepted: 0,
            limited_for: 0.0,
            limited_at: now,
            accepted_at: now,
        };
        pace.rest(now, random);
        pace
    }

    /// Messages per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether it is in slow start: the rate doubles every second.
    pub(crate) fn is_slow_start(&self) -> bool {
        self.refused_rate.is_none()
    }

    /// Whether a message may be sent now; otherwise the time of the next one.
    pub(crate) fn ready(&mut self, now: Moment) -> Result<(), Moment> {
        let ready = if now < self.until { Err(self.until) } else { self.bucket.ready(now) };
        if ready.is_err() {
            self.limited_at = now;
        }
        ready
    }

    /// A message was sent.
    pub(crate) fn sent(&mut self, now: Moment) {
        self.bucket.spend();
        if self.probing {
            self.until = now + self.pause;
        }
    }

    /// The peer accepted a message.
    pub(crate) fn accepted(&mut self, now: Moment) {
        if self.probing {
            self.probing = false;
            self.until = self.until.min(now);
        }
        self.pause /= 2;
        let interval = 2.0 / self.rate;
        let passed = (now - self.accepted_at).as_secs_f64().min(interval.max(1.0));
        self.accepted_at = self.accepted_at.max(now);
        if (now - self.limited_at).as_secs_f64() > interval.max(0.1) {
            return;
        }
        self.accepted = self.accepted.saturating_add(1);
        self.limited_for += passed;
        let rate = match self.refused_rate {
            None => self.rate + SLOW_START_STEP * self.rate.min(1.0),
            Some(refused) => {
                let back =
                    (RECOVERY_MESSAGES / refused).clamp(*RECOVERY_SECONDS.start(), *RECOVERY_SECONDS.end());
                let curve = (1.0 - DECREASE) * (self.limited_for / back - 1.0).powi(3);
                self.rate.max(refused * (1.0 + curve))
            }
        };
        if self.refused_rate.is_some_and(|refused| rate > refused * SLOW_START_RATIO) {
            self.refused_rate = None;
        }
        self.set_rate(rate);
    }

    /// The peer throttled message `number`; `sent` is the number of the last message sent.
    pub(crate) fn refused(&mut self, now: Moment, number: u64, sent: u64, random: &mut Random) {
        if number <= self.barrier {
            return;
        }
        self.barrier = sent;
        // Refusals without a success in between mean that the peer accepts nothing; they say nothing about its rate.
        if self.accepted > 0 && now - self.decreased_at >= MIN_DECREASE_INTERVAL {
            let refused = match self.refused_rate {
                None => self.rate * SLOW_START_OVERSHOOT,
                Some(_) if self.limited_for < 1.0 => self.rate,
                Some(_) => self.rate.min(f64::from(self.accepted) / self.limited_for * MAX_REFUSED_RATIO),
            };
            self.refused_rate = Some(refused);
            self.decreased_at = now;
            self.accepted_at = now;
            (self.accepted, self.limited_for) = (0, 0.0);
            self.set_rate(refused * DECREASE);
        }
        self.rest(now, random);
    }

    fn rest(&mut self, now: Moment, random: &mut Random) {
        self.pause = (self.pause * 2).clamp(MIN_PAUSE, MAX_PAUSE);
        self.probing = self.pause >= PROBE_FROM;
        self.until = now + random.jitter(self.pause);
        self.bucket.drain();
        self.limited_at = now;
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(*RATES.start(), *RATES.end());
        self.bucket.set_rate(self.rate, self.rate * BURST_SECONDS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// The limit of a simulated peer.
    #[derive(Clone, Debug)]
    enum Limit {
        /// A token bucket.
        TokenBucket { rate: f64, burst: f64, tokens: f64, at: u64 },
        /// A number of messages in each second of the peer's clock, which is some milliseconds ahead of the local clock.
        Seconds { most: u64, ahead: u64, second: u64, used: u64 },
    }

    impl Limit {
        fn bucket(rate: u64, burst: f64) -> Self {
            let burst = burst.max(1.0);
            Self::TokenBucket { rate: rate as f64, burst, tokens: burst, at: 0 }
        }

        fn seconds(most: u64, ahead: u64) -> Self {
            Self::Seconds { most, ahead, second: 0, used: 0 }
        }

        fn accepts(&mut self, ms: u64) -> bool {
            match self {
                Self::TokenBucket { rate, burst, tokens, at } => {
                    *tokens = (*tokens + (ms - *at) as f64 / 1000.0 * *rate).min(*burst);
                    *at = ms;
                    let accepts = *tokens >= 1.0 - 1e-9;
                    *tokens -= f64::from(u8::from(accepts));
                    accepts
                }
                Self::Seconds { most, ahead, second, used } => {
                    if (ms + *ahead) / 1000 != *second {
                        (*second, *used) = ((ms + *ahead) / 1000, 0);
                    }
                    *used += 1;
                    *used <= *most
                }
            }
        }
    }

    /// A queue that is never empty, before a peer that answers after `round_trip` milliseconds.
    struct Run {
        limit: Limit,
        round_trip: u64,
        ms: u64,
        sent: u64,
        in_flight: VecDeque<(u64, u64, bool)>,
        pace: Option<Pace>,
        took: (u32, u32),
        random: Random,
        refused: u64,
    }

    impl Run {
        const WINDOW: usize = 10_000;

        fn new(limit: Limit, round_trip: u64) -> Self {
            let in_flight = VecDeque::new();
            let random = Random::new(7);
            Self {
                limit,
                round_trip,
                ms: 0,
                sent: 0,
                in_flight,
                pace: None,
                took: (0, 0),
                random,
                refused: 0,
            }
        }

        /// The number of messages accepted in the given time.
        fn pass(&mut self, seconds: u64) -> u64 {
            let mut accepted = 0;
            let end = self.ms + seconds * 1000;
            while self.ms < end {
                let now = Moment(self.ms);
                while let Some((_, number, accepts)) = self.in_flight.pop_front_if(|(at, ..)| *at <= now.0) {
                    if accepts {
                        accepted += 1;
                        self.took.1 += 1;
                        if let Some(pace) = &mut self.pace {
                            pace.accepted(now);
                        }
                        continue;
                    }
                    self.refused += 1;
                    match &mut self.pace {
                        Some(pace) => pace.refused(now, number, self.sent, &mut self.random),
                        None => {
                            let took = self.took.0.max(self.took.1);
                            self.pace = Some(Pace::new(now, self.sent, took, &mut self.random));
                        }
                    }
                }
                while self.in_flight.len() < Self::WINDOW
                    && self.pace.as_mut().is_none_or(|pace| pace.ready(now).is_ok())
                {
                    if let Some(pace) = &mut self.pace {
                        pace.sent(now);
                    }
                    self.sent += 1;
                    let accepts = self.limit.accepts(self.ms + self.round_trip / 2);
                    self.in_flight.push_back((self.ms + self.round_trip, self.sent, accepts));
                }
                self.ms += 1;
                if self.ms.is_multiple_of(1000) {
                    self.took = (self.took.1, 0);
                }
            }
            accepted
        }

        fn rate(&self) -> f64 {
            self.pace.as_ref().map_or(f64::INFINITY, Pace::rate)
        }
    }

    #[test]
    fn a_peer_gets_nine_tenths_of_what_it_allows_within_a_minute_from_1_to_5000_a_second() {
        for allowed in [1, 2, 3, 5, 10, 30, 100, 300, 1000, 5000] {
            for round_trip in [2, 60, 400] {
                let limits = [
                    Limit::bucket(allowed, allowed as f64 / 100.0),
                    Limit::bucket(allowed, allowed as f64),
                    Limit::seconds(allowed, 0),
                    Limit::seconds(allowed, 600),
                ];
                for limit in limits {
                    let mut run = Run::new(limit.clone(), round_trip);
                    run.pass(60);
                    let refused = run.refused;
                    let accepted = run.pass(60) as f64 / 60.0 / allowed as f64;
                    assert!(accepted >= 0.9, "{limit:?}, {round_trip} ms: {accepted:.3}");
                    // A few of the sent messages, not a multiple of them.
                    let refused = (run.refused - refused) as f64 / 60.0 / allowed as f64;
                    assert!(refused <= 0.12, "{limit:?}, {round_trip} ms: {refused:.3} refused");
                }
            }
        }
    }

    #[test]
    fn another_limit_is_found_within_a_minute_and_a_half() {
        for (before, after) in [(10, 1000), (1, 300), (5000, 10), (300, 1)] {
            let mut run = Run::new(Limit::bucket(before, before as f64 / 10.0), 60);
            run.pass(60);
            run.limit = Limit::seconds(after, 300);
            run.pass(90);
            let accepted = run.pass(60);
            assert!(accepted as f64 >= 0.9 * 60.0 * after as f64, "from {before} to {after}: {accepted}");
        }
    }

    #[test]
    fn a_peer_that_accepts_nothing_is_probed_seldom_and_keeps_its_rate() {
        let mut run = Run::new(Limit::bucket(100, 10.0), 60);
        run.pass(60);
        let (rate, sent) = (run.rate(), run.sent);
        run.limit = Limit::seconds(0, 0);
        run.pass(600);
        assert!(run.sent - sent < 100, "{} probes in ten minutes", run.sent - sent);
        assert!((run.rate() / rate - 1.0).abs() < 0.2, "{} and {rate}", run.rate());
        run.limit = Limit::bucket(100, 10.0);
        run.pass(75);
        assert!(run.pass(30) >= 30 * 90, "one success ends the probing");
    }

    #[test]
    fn a_probe_that_is_never_answered_does_not_stop_the_next_one() {
        let mut random = Random::new(1);
        let mut pace = Pace::new(Moment(0), 1, 0, &mut random);
        let mut now = Moment(0);
        for number in 2..8 {
            while pace.ready(now).is_err() {
                now = Moment(now.0 + 1);
            }
            pace.sent(now);
            pace.refused(now, number, number, &mut random);
        }
        assert!(pace.probing && pace.pause == Duration::from_millis(640), "{pace:?}");
        for _ in 0..3 {
            let asked = now;
            while pace.ready(now).is_err() {
                now = Moment(now.0 + 1);
            }
            assert!(now - asked <= Duration::from_millis(1000), "after {:?}", now - asked);
            pace.sent(now);
        }
    }

    #[test]
    fn a_refusal_of_an_earlier_message_does_not_lower_the_rate_again() {
        let mut random = Random::new(1);
        let mut pace = Pace::new(Moment(5_000), 100, 50, &mut random);
        let (rate, until) = (pace.rate(), pace.until);
        while pace.ready(Moment(6_450)).is_ok() {
            pace.sent(Moment(6_450));
        }
        pace.accepted(Moment(6_500));
        for number in 1..=100 {
            pace.refused(Moment(6_500), number, 100, &mut random);
        }
        assert!(pace.rate() >= rate && pace.until == until && pace.pause < MIN_PAUSE);
        pace.refused(Moment(6_500), 101, 101, &mut random);
        assert!(pace.rate() < rate && pace.until > until);
    }

    #[test]
    fn a_rate_that_limits_nothing_does_not_rise() {
        let mut random = Random::new(1);
        let mut pace = Pace::new(Moment(5_000), 100, 50, &mut random);
        for second in 10..1000 {
            let now = Moment(second * 1000);
            assert!(pace.ready(now).is_ok());
            pace.sent(now);
            pace.accepted(now);
        }
        assert_eq!(pace.rate(), 45.0);
    }
}
