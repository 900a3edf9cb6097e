//! Enumerations that the API knows only by name.

use model::{FinalState, LookupResult};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Defines enumerations with the names of their values in the API.
macro_rules! names {
    ($($(#[$doc:meta])* $names:ident { $($(#[$value_doc:meta])* $value:ident = $name:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $names {
            $($(#[$value_doc])* #[serde(rename = $name)] $value,)+
        }

        impl $names {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$value,)+];

            /// The value's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $name,)+ }
            }
        }

        impl ToSchema for $names {}

        impl PartialSchema for $names {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some([$($name,)+])).into()
            }
        }
    )+};
}

names! {
    /// The side that opens a link.
    #[derive(Default)]
    LinkRole {
        /// The peer connects to the appliance.
        #[default]
        Server = "server",
        /// The appliance dials.
        Client = "client",
    }
    /// The phase of a link.
    #[derive(Default)]
    LinkPhase {
        /// The next dialling attempt is not due yet.
        BackingOff = "backing-off",
        /// TCP and TLS are being set up.
        #[default]
        Connecting = "connecting",
        /// The bind is sent.
        Binding = "binding",
        /// Bound.
        Bound = "bound",
        /// Requests in progress are finished, then the link unbinds.
        Unbinding = "unbinding",
    }
    /// The bind mode of a link.
    BindMode {
        /// The ESME only receives.
        Receiver = "receiver",
        /// The ESME only submits.
        Transmitter = "transmitter",
        /// The ESME submits and receives.
        Transceiver = "transceiver",
    }
    /// The reason why a link is blocked.
    #[derive(Default)]
    LinkBlocker {
        /// It is not blocked.
        #[default]
        None = "none",
        /// The window is full: the peer has not answered the messages in it.
        PeerWindow = "peer-window",
        /// The peer answered "throttled" or "queue full" within the last second.
        PeerThrottles = "peer-throttles",
        /// The peer does not read from the connection.
        SlowReader = "slow-reader",
        /// The account's window is full: its submissions wait for the engine and the disk.
        OurWindow = "our-window",
        /// The account exceeded its rate within the last second.
        AccountRate = "account-rate",
        /// There is no bound connection.
        NotBound = "not-bound",
    }
    /// Whether the daemon accepts traffic.
    ReadinessStatus {
        /// It accepts traffic.
        Ready = "ready",
        /// It accepts no traffic.
        NotReady = "not-ready",
    }
    /// The outcome of the lookup of a number.
    LookupResultView {
        /// There was no answer, or the plugin failed.
        Failed = "failed",
        /// Nothing is known of the number.
        Unknown = "unknown",
        /// The number has attributes.
        Found = "found",
    }
    /// The state of a message, unfinished or finished.
    MessageStateView {
        /// In the queue of a peer.
        Queued = "queued",
        /// In a queue that a queue action holds.
        Suspended = "suspended",
        /// Waits for a pace bucket or a send window.
        Paced = "paced",
        /// Submitted to the peer, which has not yet answered.
        Submitted = "submitted",
        /// Waits for its next attempt or its schedule.
        Deferred = "deferred",
        /// Held by the routing, which decides again later.
        Held = "held",
        /// In quarantine until an admin releases or purges it.
        Quarantined = "quarantined",
        /// Waits for the lookup of its number.
        AwaitingLookup = "awaiting-lookup",
        /// Waits for the resolution of its number.
        Resolving = "resolving",
        /// Refused by the peer; the delivery policy decides.
        Deciding = "deciding",
        /// Submitted to a peer that never answered.
        Uncertain = "uncertain",
        /// Accepted by the peer; awaits the DLR.
        Responded = "responded",
        /// The final record is being written.
        Ending = "ending",
        /// Delivered.
        Delivered = "delivered",
        /// Accepted by the peer, without a DLR.
        Relayed = "relayed",
        /// Refused permanently, or its DLR reports a failure.
        Failed = "failed",
        /// Its validity period has ended.
        Expired = "expired",
        /// Cancelled by the submitter or an admin.
        Cancelled = "cancelled",
        /// Rejected by the routing or the peer after it was accepted.
        Rejected = "rejected",
        /// Its fate is unknown.
        Unknown = "unknown",
    }
    /// The state of messages to a subscriber.
    SubscriberStateView {
        /// There are no messages.
        Idle = "idle",
        /// Messages wait.
        Waiting = "waiting",
        /// A message is in flight.
        Sending = "sending",
        /// The subscriber is absent.
        Absent = "absent",
        /// The memory of the handset is full.
        Full = "full",
        /// A message failed for another reason and waits for its retry.
        BackOff = "back-off",
    }
    /// The event that showed a handset's presence.
    PresenceSign {
        /// A location update.
        LocationUpdate = "location-update",
        /// It sent a short message.
        Message = "message",
        /// It sent READY-FOR-SM.
        ReadyForSm = "ready-for-sm",
        /// It accepted a short message.
        Delivery = "delivery",
    }
    /// A step of a peer test.
    TestStepKind {
        /// The name is resolved.
        Resolve = "resolve",
        /// The TCP connection is set up.
        Connect = "connect",
        /// The TLS handshake.
        Tls = "tls",
        /// The bind or login.
        Bind = "bind",
        /// The unbind.
        Unbind = "unbind",
    }
    /// The state of a receiver of data: the archive's database, or an event sink.
    PumpState {
        /// It has not been reached yet.
        Starting = "starting",
        /// It works.
        Up = "up",
        /// It is down.
        Down = "down",
    }
    /// The appliance's role in a core network.
    #[derive(Default)]
    CoreNetworkRole {
        /// It is a client of the HLR.
        #[default]
        Client = "client",
        /// It is a proxy between the MSCs and the HLR.
        Proxy = "proxy",
    }
    /// The kind of a core network's fault.
    CoreNetworkFaultKind {
        /// The last connection attempt to the HLR failed.
        HlrDown = "hlr-down",
        /// The HLR's CTRL interface does not answer.
        CtrlDown = "hlr-ctrl-down",
        /// No MSC is connected (proxy).
        NoMsc = "no-msc",
        /// An MSC refuses short messages: `sms-over-gsup` is missing in its configuration.
        MscWithoutSms = "msc-without-sms",
        /// Two MSCs are connected under the same name (proxy).
        DuplicateName = "double-name",
    }
}

impl From<LookupResult> for LookupResultView {
    fn from(result: LookupResult) -> Self {
        match result {
            LookupResult::Failed => Self::Failed,
            LookupResult::Unknown => Self::Unknown,
            LookupResult::Found => Self::Found,
        }
    }
}

impl From<FinalState> for MessageStateView {
    fn from(state: FinalState) -> Self {
        match state {
            FinalState::Delivered => Self::Delivered,
            FinalState::Relayed => Self::Relayed,
            FinalState::Failed => Self::Failed,
            FinalState::Expired => Self::Expired,
            FinalState::Cancelled => Self::Cancelled,
            FinalState::Rejected => Self::Rejected,
            FinalState::Unknown => Self::Unknown,
        }
    }
}
