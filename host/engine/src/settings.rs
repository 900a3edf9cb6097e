use crate::PoolLimits;
use calendar::{WeeklyWindow, Zone};
use model::{PaceUnit, PeerId};
use std::sync::Arc;
use std::time::Duration;

/// The settlement of uncertain messages: messages sent to a peer that never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UncertainPolicy {
    /// Send again, and risk a duplicate.
    SendAgain,
    /// Query the peer (query_sm) if its id is known; otherwise as [`UncertainPolicy::AwaitDlr`].
    Query,
    /// Wait for a DLR or an admin; after [`PeerSettings::uncertain_limit`] the message ends as unknown.
    #[default]
    AwaitDlr,
}

/// Settings of one peer.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerSettings {
    /// The peer.
    pub peer: PeerId,
    /// Peers of one group share their DLRs: a DLR may arrive on a bind of any of them.
    pub group: u32,
    /// Rate limit in messages per second, over all links of the peer; `None`: no limit.
    pub rate: Option<f64>,
    /// Messages that may burst above the rate.
    pub burst: u32,
    /// Maximum number of messages that wait for the peer; more are refused with "queue full".
    pub queue_limit: u64,
    /// The policy for uncertain messages.
    pub uncertainty: UncertainPolicy,
    /// How long an uncertain message waits for a DLR or an admin.
    pub uncertain_limit: Duration,
    /// Whether the peer sends DLRs. If not, a message is finished once the peer accepts it.
    pub sends_dlrs: bool,
    /// Whether acceptance by the peer is delivery: true for accounts, whose ESMEs are the addressee.
    pub addressee: bool,
    /// Serial delivery: one message at a time per subscriber, over all links and windows. The subscriber is
    /// identified by the IMSI of the leg, otherwise by the number. Such a peer serves the addressees themselves: see
    /// [`PeerSettings::is_addressee`].
    pub serial: bool,
    /// How long a message waits for its DLR before it ends as unknown.
    pub dlr_timeout: Duration,
    /// The retry schedule: delays after temporary failures; the last one repeats until the validity ends.
    pub retry: Vec<Duration>,
    /// Maximum number of attempts per leg; 0: no limit within the validity.
    pub max_attempts: u16,
    /// For an account: one DLR per segment of a concatenated message, as each arrives, instead of one for the whole.
    pub segment_dlrs: bool,
    /// For a submitter: octets of memory for its idempotency keys. When it is full, submissions with a required new
    /// key are refused; no key is removed before [`Settings::idempotency_key_retention`].
    pub idempotency_key_memory: usize,
    /// For an account: submissions to subscribers who opted out of the sender are refused.
    pub opt_out: bool,
    /// Pace buckets and send windows for messages to the peer.
    pub send_pace: PaceNames,
    /// Pace buckets and send windows for messages that the peer submits.
    pub submit_pace: PaceNames,
    /// Another partition has the links to this peer and settles what is uncertain there: an attempt whose link is lost is
    /// repeated under its ticket, and one that the other partition reports as unanswered waits for what follows from there.
    pub remote: bool,
    /// For an account: it is another partition, and its messages are its submit attempts. Each is tried once, and the outcome
    /// goes to that partition.
    pub partition_account: bool,
    /// For an account of another partition: the core network whose alerts that partition receives, because its messages to
    /// this network wait for them.
    pub alerts_of: Option<PeerId>,
    /// For an account: the limits of the account, of its tenant, and of the tenants above.
    pub branch: BranchLimits,
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
            uncertainty: UncertainPolicy::default(),
            uncertain_limit: Duration::from_secs(3600),
            sends_dlrs: true,
            addressee: false,
            serial: false,
            dlr_timeout: Duration::from_secs(3 * 86_400),
            retry: [10, 30, 60, 300, 900, 3600].map(Duration::from_secs).to_vec(),
            max_attempts: 0,
            segment_dlrs: false,
            idempotency_key_memory: 256 << 20,
            opt_out: false,
            send_pace: PaceNames::default(),
            submit_pace: PaceNames::default(),
            remote: false,
            partition_account: false,
            alerts_of: None,
            branch: BranchLimits::default(),
        }
    }
}

impl PeerSettings {
    /// Whether acceptance by the peer means delivery. DLRs for submitters go to such peers only.
    #[must_use]
    pub fn is_addressee(&self) -> bool {
        self.addressee || self.serial
    }
}

/// Limits of an account, and of the tenants that it belongs to. By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BranchLimits {
    /// The owners of the day quotas for which each accepted message counts: the account, and its tenants. All quotas must
    /// have room.
    pub day_quotas: Vec<Arc<str>>,
    /// The ledger accounts of tenants that are charged the price of a message, in addition to the account that the biller
    /// names.
    pub charged: Vec<Arc<str>>,
    /// The highest price of a message, in millionths of the currency unit; `None`: no limit.
    pub max_price: Option<u64>,
}

/// The names of pace buckets and send windows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PaceNames {
    /// Each of these buckets must have a token.
    pub buckets: Vec<Arc<str>>,
    /// One of these windows must be open.
    pub windows: Vec<Arc<str>>,
}

/// The period of a pace bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacePeriod {
    /// The bucket fills evenly, in this time, and is empty after a start.
    Time(Duration),
    /// The bucket is full at the beginning of each calendar day. The taken tokens survive a restart.
    Day(Zone),
}

/// A pace bucket: a limit that accounts and peers share. Each submit attempt takes one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaceBucketSettings {
    /// Its name.
    pub name: Arc<str>,
    /// Messages or segments in its period, and its capacity; at least 1.
    pub amount: u64,
    /// Its period.
    pub per: PacePeriod,
    /// Its unit.
    pub counts: PaceUnit,
}

/// A send window, which accounts and peers share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendWindowSettings {
    /// Its name.
    pub name: Arc<str>,
    /// Its hours.
    pub window: WeeklyWindow,
}

/// A day quota: a limit on the messages of an account, or of all accounts of a tenant's branch, that are accepted on a
/// calendar day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayQuotaSettings {
    /// The account or tenant; names are unique among both.
    pub owner: Arc<str>,
    /// Messages a day; at least 1.
    pub amount: u64,
    /// The time zone of the days.
    pub zone: Zone,
}

/// All pace buckets, send windows and day quotas.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PaceSettings {
    /// The buckets.
    pub buckets: Vec<PaceBucketSettings>,
    /// The windows.
    pub windows: Vec<SendWindowSettings>,
    /// The day quotas.
    pub day_quotas: Vec<DayQuotaSettings>,
}

/// Settings of the engine as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Maximum octets of cached message content; beyond it, waiting messages are loaded shortly before their turn.
    pub body_cache: usize,
    /// How long an orphan DLR is stored while it waits for a matching submit response.
    pub orphan_dlr_retention: Duration,
    /// How long an orphan DLR waits before it is stored and answered. Most orphans precede the submit response by
    /// milliseconds and never need storing.
    pub orphan_dlr_answer_delay: Duration,
    /// Maximum number of orphan DLRs that wait for their submit response without an answer; from then on, the oldest is
    /// stored and answered at once. A link does not read, and so gets no submit responses, while its window of unanswered
    /// requests is full: the number must be below the windows.
    pub orphan_dlrs_unanswered: usize,
    /// Maximum number of orphan DLRs.
    pub orphan_dlr_limit: usize,
    /// The latest schedule, from now.
    pub longest_schedule: Duration,
    /// The longest validity; a later end is reduced to it.
    pub longest_validity: Duration,
    /// Maximum number of waiting messages in all; more are refused with "queue full".
    pub waiting_limit: u64,
    /// Maximum number of pace limits. A submission whose decision defines one more is refused with "queue full".
    pub pace_limits: usize,
    /// How long a message is held after a routing fault before it is routed again.
    pub reroute_after: Duration,
    /// How long a DLR waits for its submitter to bind.
    pub own_dlr_validity: Duration,
    /// How long idempotency keys are kept.
    pub idempotency_key_retention: Duration,
    /// How long a message waits for the lookup of its number before it is routed without an answer.
    pub lookup_timeout: Duration,
    /// The delay before a failed lookup is repeated.
    pub lookup_retry_after: Duration,
    /// Maximum number of lookups at a time.
    pub lookups_in_flight: usize,
    /// Whether a resolver is bound; changed by [`crate::Event::HooksChanged`]. At a start it must be set even if the
    /// plugin is not loaded yet: without a resolver, waiting messages fail.
    pub resolver: bool,
    /// Whether a delivery policy is bound. See `resolver`.
    pub delivery_policy: bool,
    /// Whether a receipt policy is bound. See `resolver`.
    pub receipt: bool,
    /// Whether a biller is bound. See `resolver`.
    pub biller: bool,
    /// Default cache time of an answer with a subscriber.
    pub resolve_found_for: Duration,
    /// Default cache time of an answer without a subscriber.
    pub resolve_unknown_for: Duration,
    /// Maximum number of cached answers; beyond it, the answers that expire first are removed.
    pub resolve_cache_limit: usize,
    /// Default delay before a deferred query is repeated.
    pub resolve_retry_after: Duration,
    /// Maximum number of pending queries to the resolver; further numbers wait in order.
    pub resolve_in_flight: usize,
    /// The home country code, as digits: numbers with and without it are the same subscriber.
    pub country: String,
    /// Limits of number pools.
    pub pools: PoolLimits,
    /// How long after a take-over a message may still reach a peer from the node that led before. Until then
    /// recovered uncertain messages are not sent again. Zero without a cluster: the old process has ended.
    pub previous_leader_sends: Duration,
    /// The partition of the cluster, which the ids of new messages carry; at most [`model::MessageId::LAST_PARTITION`].
    pub partition: u8,
    /// Seed of the random choices (weights, jitter).
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_cache: 64 << 20,
            orphan_dlr_retention: Duration::from_secs(3600),
            orphan_dlr_answer_delay: Duration::from_secs(2),
            orphan_dlrs_unanswered: 50,
            orphan_dlr_limit: 100_000,
            longest_schedule: Duration::from_secs(366 * 86_400),
            longest_validity: Duration::from_secs(14 * 86_400),
            waiting_limit: 100_000_000,
            pace_limits: 100_000,
            lookup_timeout: Duration::from_secs(2),
            lookup_retry_after: Duration::from_millis(250),
            lookups_in_flight: 1000,
            reroute_after: Duration::from_secs(30),
            own_dlr_validity: Duration::from_secs(3 * 86_400),
            idempotency_key_retention: Duration::from_secs(86_400),
            resolver: false,
            delivery_policy: false,
            receipt: false,
            biller: false,
            resolve_found_for: Duration::from_secs(3600),
            resolve_unknown_for: Duration::from_secs(60),
            resolve_cache_limit: 1_000_000,
            resolve_retry_after: Duration::from_secs(5),
            resolve_in_flight: 1000,
            country: String::new(),
            pools: PoolLimits::default(),
            previous_leader_sends: Duration::ZERO,
            partition: 0,
            seed: 0,
        }
    }
}
