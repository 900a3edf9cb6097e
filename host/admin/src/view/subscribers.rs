use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// `GET /v1/subscribers/{subscriber}`. Times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Subscriber {
    /// The IMSI, masked for those who may not read texts.
    pub imsi: String,
    /// The number without a plus, masked likewise; nothing where the network does not tell it.
    #[schema(required)]
    pub msisdn: Option<String>,
    /// The core network, which is a peer.
    pub network: String,
    /// The MSC that serves the subscriber, or did last; nothing where nobody has said.
    #[schema(required)]
    pub msc: Option<String>,
    /// Whether messages can go there now: that MSC is connected, or the HLR, where the appliance is a client of it.
    pub connected: bool,
    /// When the handset has last shown that it is there, since the daemon's start; nothing where it has not.
    #[schema(required)]
    pub present_at: Option<u64>,
    /// How it has: `location-update`, `message` (it sent one), `ready-for-sm`, `delivery` (it took one).
    #[schema(required)]
    pub present_by: Option<&'static str>,
    /// What holds for messages to it: `idle` (there are none), `waiting`, `sending`, `absent`, `full`, or `parked` after
    /// another failure. In the last three nothing is sent until `next_try`, or until the handset shows that it is there.
    pub state: &'static str,
    /// The failure, in words.
    #[schema(required)]
    pub reason: Option<String>,
    /// When the message that has failed is tried again, at the latest.
    #[schema(required)]
    pub next_try: Option<u64>,
    /// The message that is on its way, or has failed and is tried again first.
    #[schema(required)]
    pub message: Option<String>,
    /// What waits.
    pub waiting: SubscriberQueue,
}

/// Messages to a subscriber that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubscriberQueue {
    /// How many.
    pub count: u64,
    /// When the oldest was accepted.
    #[schema(required)]
    pub oldest_at: Option<u64>,
    /// Its id.
    #[schema(required)]
    pub oldest: Option<String>,
    /// How many do what: `queued`, `submitted`, `deferred`, `resolving` and so on, as in `GET /v1/messages`.
    pub states: BTreeMap<&'static str, u64>,
}

/// The answer to `POST /v1/subscribers/{subscriber}/wake`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Woken {
    /// Messages that had failed and are tried now; those behind them follow.
    pub messages: u64,
}
