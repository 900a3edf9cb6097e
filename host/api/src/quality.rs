//! Observations of peers, and conversions that integrators report.

use crate::name_schemas::IdText;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Observations of a peer in the last five minutes, on this node since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PeerFigures)]
pub struct PeerFiguresView {
    /// The time that the figures cover, in milliseconds.
    pub window_ms: u64,
    /// Submit attempts that the peer accepted.
    pub accepted: u32,
    /// Submit attempts that it refused, by class.
    pub refused: RefusedAttempts,
    /// Submit attempts that it did not answer.
    pub unanswered: u32,
    /// Messages that were delivered, according to their DLRs.
    pub delivered: u32,
    /// Messages that were not delivered, according to their DLRs, or whose DLR did not come in time.
    pub failed: u32,
    /// Messages that led to a conversion.
    pub conversions: u32,
    /// Median of the time from submit attempt to DLR, in milliseconds; null without DLRs.
    #[schema(required)]
    pub median_ms: Option<u64>,
    /// The 95th percentile of the same time.
    #[schema(required)]
    pub percentile95_ms: Option<u64>,
}

/// Refused submit attempts by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedAttempts {
    /// Errors that a retry may overcome.
    pub temporary: u32,
    /// Errors that no retry overcomes.
    pub permanent: u32,
    /// The subscriber is not reachable.
    pub absent: u32,
    /// The handset's memory is full.
    pub memory_full: u32,
    /// The peer throttles, or its queue is full.
    pub throttled: u32,
}

impl RefusedAttempts {
    /// All refused attempts.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { temporary, permanent, absent, memory_full, throttled } = *self;
        [temporary, permanent, absent, memory_full, throttled].into_iter().map(u64::from).sum()
    }
}

/// Messages that led to a conversion, such as a one-time password that was used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversionsRequest {
    /// The ids of the messages, as their submitter knows them.
    #[schema(value_type = Vec<IdText>, min_items = 1, max_items = 1000)]
    pub messages: Vec<String>,
}

/// The result of a report of conversions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConversionsResult {
    /// Messages that now count as converted.
    pub recorded: u64,
    /// Messages that were reported before, in the last 24 hours. They count once.
    pub repeated: u64,
    /// Ids without a message, and messages that no peer has accepted.
    pub unknown: Vec<String>,
}
