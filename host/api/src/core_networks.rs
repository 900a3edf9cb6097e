//! GSM core networks.

use crate::attention::AttentionSeverity;
use crate::names::{CoreNetworkFaultKind, CoreNetworkRole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A core network in `GET /v1/gsm`. Counters begin at the start of the daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = CoreNetwork)]
pub struct CoreNetworkView {
    /// Its name.
    pub name: String,
    /// The appliance's role in it.
    #[schema(inline)]
    pub role: CoreNetworkRole,
    /// Connections of the network.
    pub connections: Vec<CoreConnectionView>,
    /// Whether the HLR's control interface answers; null if none is configured.
    #[schema(required)]
    pub hlr_answers: Option<bool>,
    /// Known subscribers.
    pub subscribers_known: u64,
    /// Unanswered MT messages.
    pub in_flight: u64,
    /// Counts of MT messages.
    pub mt: CoreNetworkMt,
    /// Counts of MO messages.
    pub mo: CoreNetworkMo,
    /// READY-FOR-SM notifications: handsets with free memory again.
    pub ready_for_sm: u64,
    /// Subscribers that became reachable again.
    pub attached: u64,
    /// Frames relayed between MSCs and HLR.
    pub relayed_frames: u64,
    /// HLR requests, by result.
    pub hlr_questions: HlrQuestions,
    /// The last error.
    #[schema(required)]
    pub last_error: Option<String>,
    /// Active faults.
    pub faults: Vec<CoreNetworkFaultView>,
}

/// Counts of MT messages in a core network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct CoreNetworkMt {
    /// Written to MSCs.
    pub sent: u64,
    /// Acknowledged by handsets.
    pub delivered: u64,
    /// Refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Not answered in time.
    pub unanswered: u64,
    /// Answered after the timeout.
    pub answered_late: u64,
    /// Answered more than once.
    pub answered_twice: u64,
    /// Status reports sent to handsets.
    pub status_reports: u64,
}

/// Counts of MO messages in a core network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct CoreNetworkMo {
    /// Received from handsets.
    pub received: u64,
    /// Of these, repeated ones.
    pub repeated: u64,
    /// Refused, by RP cause.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub refused: BTreeMap<u8, u64>,
}

/// HLR requests, by result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct HlrQuestions {
    /// All requests.
    pub asked: u64,
    /// Of these, not answered.
    pub unanswered: u64,
}

/// A fault of a core network that needs action outside the appliance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = CoreNetworkFault)]
pub struct CoreNetworkFaultView {
    /// The kind of the fault.
    #[schema(inline)]
    pub kind: CoreNetworkFaultKind,
    /// `error` if the fault stops messages, else `warning`.
    #[schema(inline)]
    pub level: AttentionSeverity,
    /// The fault, without the network's name.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

/// A connection of a core network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = CoreConnection)]
pub struct CoreConnectionView {
    /// The name of the MSC; null for the HLR.
    #[schema(required)]
    pub name: Option<String>,
    /// Address of the remote side.
    pub remote: String,
    /// Whether the connection is ready for traffic.
    pub ready: bool,
}
