//! Enumerations of which the API knows the names only.

use model::FinalState;
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
    /// The state of a message, unfinished or finished.
    MessageStateView {
        /// In the queue of a peer.
        Queued = "queued",
        /// In a queue that a queue action holds.
        Suspended = "suspended",
        /// Submitted to the peer, which has not yet answered.
        Submitted = "submitted",
        /// Waits for its next attempt or its schedule.
        Deferred = "deferred",
        /// Held by the routing, which decides again later.
        Held = "held",
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
