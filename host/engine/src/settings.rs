use crate::PoolLimits;
use model::PeerId;
use std::time::Duration;

/// What to do with a message that was written to a peer and never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uncertainty {
    /// Send it again, and risk a double.
    SendAgain,
    /// Ask the peer (query_sm) where its id is known; otherwise as [`Uncertainty::AwaitReceipt`].
    Ask,
    /// Wait for its receipt, or for an admin; after [`PeerSettings::uncertain_limit`] it ends as unknown.
    #[default]
    AwaitReceipt,
}

/// How messages for one peer are handled.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerSettings {
    /// The peer.
    pub peer: PeerId,
    /// Peers of one group share their receipts: a receipt may come on a bind of any of them.
    pub group: u32,
    /// Messages a second, over all links of the peer; `None`: no limit of ours.
    pub rate: Option<f64>,
    /// How many messages may burst above the rate.
    pub burst: u32,
    /// How many messages may wait for it; more are refused with "queue full".
    pub queue_limit: u64,
    /// The remedy for uncertain messages.
    pub uncertainty: Uncertainty,
    /// How long an uncertain message waits for its receipt or an admin.
    pub uncertain_limit: Duration,
    /// Whether the peer sends receipts at all. If not, its taking a message over is the end of it.
    pub receipts: bool,
    /// Whether its taking a message over is delivery: true for accounts, whose ESMEs are the addressee.
    pub addressee: bool,
    /// One message at a time for a subscriber, whatever windows and links there are. A subscriber is known by the IMSI of
    /// the leg, or where it has none by the number. Such a peer serves the addressees themselves: see
    /// [`PeerSettings::is_addressee`].
    pub serial: bool,
    /// How long to wait for a receipt before the message ends as unknown.
    pub receipt_limit: Duration,
    /// Waits between attempts after a temporary failure; the last one repeats until the validity ends.
    pub retry: Vec<Duration>,
    /// Attempts in all before a message fails for good on this leg; 0: as many as its validity allows.
    pub max_attempts: u16,
    /// Of an account: a receipt for each part of a long message as it comes, instead of one for the whole.
    pub part_receipts: bool,
    /// Of whoever submits: octets of memory for its submission keys. With more, new keys that are required are refused, and
    /// none is forgotten before [`Settings::key_retention`].
    pub key_memory: usize,
    /// Of an account: what it sends to subscribers who told the sender to stop is refused.
    pub opt_out: bool,
}

impl PeerSettings {
    /// The defaults for `peer`, in a group of its own.
    #[must_use]
    pub fn new(peer: PeerId) -> Self {
        Self {
            peer,
            group: peer.0,
            rate: None,
            burst: 1,
            queue_limit: 20_000_000,
            uncertainty: Uncertainty::default(),
            uncertain_limit: Duration::from_secs(3600),
            receipts: true,
            addressee: false,
            serial: false,
            receipt_limit: Duration::from_secs(3 * 86_400),
            retry: [10, 30, 60, 300, 900, 3600].map(Duration::from_secs).to_vec(),
            max_attempts: 0,
            part_receipts: false,
            key_memory: 256 << 20,
            opt_out: false,
        }
    }
}

impl PeerSettings {
    /// Whether what the peer takes has reached its addressee; receipts of ours go to such peers only.
    #[must_use]
    pub fn is_addressee(&self) -> bool {
        self.addressee || self.serial
    }
}

/// Limits of the engine as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Octets of message content held in memory; beyond it, waiting messages are read back as they near their turn.
    pub body_cache: usize,
    /// How long a receipt that matches nothing is parked, durably, waiting for an answer that it has overtaken.
    pub receipt_parking: Duration,
    /// How long a parked receipt goes unanswered before it is written down and answered: most overtake by
    /// milliseconds, and are then never written.
    pub receipt_patience: Duration,
    /// How many receipts may be parked.
    pub receipt_parking_limit: usize,
    /// The farthest ahead that a delivery may be scheduled.
    pub longest_schedule: Duration,
    /// The longest validity; a later end is brought forward to it.
    pub longest_validity: Duration,
    /// Messages in all that may wait; more are refused with "queue full".
    pub waiting_limit: u64,
    /// How long a message whose routing failed is held before it is routed again.
    pub reroute_after: Duration,
    /// How long a receipt of ours waits for its submitter to be bound.
    pub own_receipt_validity: Duration,
    /// How long submission keys are remembered.
    pub key_retention: Duration,
    /// Whether a resolver is bound, a delivery policy, a biller; changed by [`crate::Event::Hooks`]. At a start these must
    /// say what is bound though it may not be loaded yet: without a resolver, what waits for one fails.
    pub resolver: bool,
    /// See `resolver`.
    pub delivery_policy: bool,
    /// See `resolver`.
    pub biller: bool,
    /// How long the answer for a known subscriber holds, where the answer itself does not say.
    pub resolve_found_for: Duration,
    /// How long the answer for a number without subscriber holds, where the answer itself does not say.
    pub resolve_unknown_for: Duration,
    /// How many answers are remembered; beyond it those that would end first go.
    pub resolve_cache_limit: usize,
    /// When a resolver that could not tell is asked again, where it does not say.
    pub resolve_retry_after: Duration,
    /// How many questions to the resolver may be unanswered; further numbers wait in order.
    pub resolve_in_flight: usize,
    /// The country code of home, as digits: numbers with and without it are the same subscriber.
    pub country: String,
    /// How much number pools may hold and keep.
    pub pools: PoolLimits,
    /// Seed of the engine's random choices (weights, jitter).
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_cache: 64 << 20,
            receipt_parking: Duration::from_secs(3600),
            receipt_patience: Duration::from_secs(2),
            receipt_parking_limit: 100_000,
            longest_schedule: Duration::from_secs(366 * 86_400),
            longest_validity: Duration::from_secs(14 * 86_400),
            waiting_limit: 100_000_000,
            reroute_after: Duration::from_secs(30),
            own_receipt_validity: Duration::from_secs(3 * 86_400),
            key_retention: Duration::from_secs(86_400),
            resolver: false,
            delivery_policy: false,
            biller: false,
            resolve_found_for: Duration::from_secs(3600),
            resolve_unknown_for: Duration::from_secs(60),
            resolve_cache_limit: 1_000_000,
            resolve_retry_after: Duration::from_secs(5),
            resolve_in_flight: 1000,
            country: String::new(),
            pools: PoolLimits::default(),
            seed: 0,
        }
    }
}
