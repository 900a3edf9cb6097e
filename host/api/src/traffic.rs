//! The traffic of the last minute: submitters, flows from submitters to peers, hooks.

use crate::attention::AttentionSeverity;
use crate::name_schemas::{DirectionSchema, HookSchema};
use model::{Direction, Hook};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `GET /v1/traffic`: the traffic of the last minute, on this node since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Traffic)]
pub struct TrafficView {
    /// The time that the counts of submitters and flows cover, in milliseconds.
    pub window_ms: u64,
    /// Accounts and peers that submitted messages, the busiest first.
    pub submitters: Vec<SubmitterTrafficView>,
    /// Flows from submitters to peers or accounts, the busiest first; at most the `limit` of the request.
    pub flows: Vec<TrafficFlowView>,
    /// Flows that the limit leaves out.
    pub flows_left_out: u64,
    /// The time that the counts of hooks cover, in milliseconds; 0 shortly after the start.
    pub hooks_window_ms: u64,
    /// The hooks with live plugins.
    pub hooks: Vec<HookTrafficView>,
}

/// Messages accepted from a submitter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SubmitterTraffic)]
pub struct SubmitterTrafficView {
    /// The account or peer.
    pub name: String,
    /// Messages accepted from it.
    pub accepted: u64,
}

/// Submit attempts from one submitter to one destination, and DLRs of such messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TrafficFlow)]
pub struct TrafficFlowView {
    /// The account or peer that submitted the messages.
    pub from: String,
    /// The peer or account that they were submitted to.
    pub to: String,
    /// `mt`: from an account; `mo`: from the network.
    #[schema(value_type = DirectionSchema, inline)]
    pub direction: Direction,
    /// The counts.
    #[serde(flatten)]
    pub counts: TrafficCounts,
}

/// Submit attempts by outcome, and DLRs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrafficCounts {
    /// Submit attempts that the destination accepted.
    pub accepted: u64,
    /// Submit attempts that it refused, without throttled ones.
    pub refused: u64,
    /// Submit attempts that it throttled.
    pub throttled: u64,
    /// Submit attempts that it did not answer.
    pub unanswered: u64,
    /// Messages that were delivered, according to their DLRs.
    pub delivered: u64,
    /// Messages that were not delivered, according to their DLRs, or whose DLR did not come in time.
    pub failed: u64,
}

impl TrafficCounts {
    /// All submit attempts.
    #[must_use]
    pub fn attempts(&self) -> u64 {
        self.accepted + self.refused + self.throttled + self.unanswered
    }

    /// By the share of submit attempts that the destination refused or did not answer: a warning from 5 %, an error from 50 %.
    #[must_use]
    pub fn severity(&self) -> Option<AttentionSeverity> {
        let (bad, all) = (u128::from(self.refused + self.unanswered) * 100, u128::from(self.attempts()));
        match bad {
            0 => None,
            bad if bad >= all * 50 => Some(AttentionSeverity::Error),
            bad if bad >= all * 5 => Some(AttentionSeverity::Warning),
            _ => None,
        }
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.throttled += other.throttled;
        self.unanswered += other.unanswered;
        self.delivered += other.delivered;
        self.failed += other.failed;
    }
}

/// Calls of the live plugins of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = HookTraffic)]
pub struct HookTrafficView {
    /// The hook.
    #[schema(value_type = HookSchema, inline)]
    pub hook: Hook,
    /// Calls of plugins.
    pub calls: u64,
    /// Calls that failed.
    pub faults: u64,
    /// Total duration of the calls, in nanoseconds.
    pub nanoseconds: u64,
    /// Messages that wait at the hook now: in quarantine, or for the answer of a plugin.
    pub waiting: u64,
}
