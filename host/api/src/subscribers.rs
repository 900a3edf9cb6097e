use super::{PresenceSign, SubscriberStateView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `GET /v1/subscribers/{subscriber}`. Times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Subscriber)]
pub struct SubscriberView {
    /// The IMSI, masked unless the caller may read message texts.
    pub imsi: String,
    /// The number without a plus, masked likewise; null if the network does not know it.
    #[schema(required)]
    pub msisdn: Option<String>,
    /// The core network, which is also a peer.
    pub network: String,
    /// The current or last serving MSC; null if unknown.
    #[schema(required)]
    pub msc: Option<String>,
    /// Whether messages can be sent to the subscriber now: the MSC is connected, or the HLR if the appliance is its client.
    pub connected: bool,
    /// Last sign of the handset since the start of the daemon; null if there was none.
    #[schema(required)]
    pub present_at: Option<u64>,
    /// The kind of that sign: `location-update`, `message` (it sent one), `ready-for-sm`, `delivery` (it accepted one).
    #[schema(required, inline)]
    pub present_by: Option<PresenceSign>,
    /// State of messages to the subscriber: `idle` (there are none), `waiting`, `sending`, `absent`, `full`, or `back-off`
    /// after another failure. In the last three, nothing is sent until `next_try` or a sign of the handset.
    #[schema(inline)]
    pub state: SubscriberStateView,
    /// The failure, for people.
    #[schema(required)]
    pub reason: Option<String>,
    /// Time of the next retry, at the latest.
    #[schema(required)]
    pub next_try: Option<u64>,
    /// The message that is in flight, or is retried first.
    #[schema(required)]
    pub message: Option<String>,
    /// Waiting messages.
    pub waiting: SubscriberQueueView,
}

/// Unfinished messages to a subscriber.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubscriberQueue)]
pub struct SubscriberQueueView {
    /// Number of messages.
    pub count: u64,
    /// Acceptance time of the oldest message.
    #[schema(required)]
    pub oldest_at: Option<u64>,
    /// The id of the oldest message.
    #[schema(required)]
    pub oldest: Option<String>,
    /// Number of messages by state: `queued`, `submitted`, `deferred`, `resolving` and so on, as in `GET /v1/messages`.
    pub states: BTreeMap<String, u64>,
}

/// The result of `POST /v1/subscribers/{subscriber}/wake`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubscriberWakeResult {
    /// Number of retried messages. Messages that wait for them follow.
    pub messages: u64,
}
