//! Samples of the last minutes, for live charts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A sample of the appliance's counters. Counts are since the start of the daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = MetricsSample)]
pub struct MetricsSampleView {
    /// Time of the sample, milliseconds since the epoch.
    pub at: u64,
    /// Accepted messages.
    pub accepted: u64,
    /// Refused submissions.
    pub refused: u64,
    /// Submit attempts.
    pub submitted: u64,
    /// Successful messages: delivered, or relayed without a requested DLR.
    pub delivered: u64,
    /// Unsuccessful messages, without cancelled ones.
    pub failed: u64,
    /// Unfinished messages.
    pub waiting: u64,
    /// Commits.
    pub commits: u64,
    /// Total time of commits, in microseconds.
    pub commit_us: u64,
    /// Mean of the smoothed round-trip times of all links that are up, in microseconds; null if there is none.
    #[schema(required)]
    pub round_trip_us: Option<u64>,
}

/// Recent samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = RecentMetrics)]
pub struct RecentMetricsView {
    /// Interval of samples, in milliseconds.
    pub interval_ms: u64,
    /// Maximum number of samples.
    pub capacity: usize,
    /// The samples, oldest first.
    pub samples: Vec<MetricsSampleView>,
}
