//! The history of the appliance's counters, for charts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A range of the history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryRange {
    /// One hour, in intervals of ten seconds.
    #[default]
    Hour,
    /// One day, in intervals of five minutes.
    Day,
    /// Thirty days, in intervals of two hours.
    Month,
}

impl HistoryRange {
    /// All ranges, the shortest first.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// The name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The length of the range, in milliseconds.
    #[must_use]
    pub fn length_ms(self) -> u64 {
        match self {
            Self::Hour => 3_600_000,
            Self::Day => 24 * 3_600_000,
            Self::Month => 30 * 24 * 3_600_000,
        }
    }

    /// The length of an interval, in milliseconds.
    #[must_use]
    pub fn interval_ms(self) -> u64 {
        match self {
            Self::Hour => 10_000,
            Self::Day => 300_000,
            Self::Month => 7_200_000,
        }
    }
}

/// `GET /v1/metrics/history`: counts by interval, and events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = MetricsHistory)]
pub struct MetricsHistoryView {
    /// Start of the range, milliseconds since the epoch.
    pub from: u64,
    /// End of the range.
    pub until: u64,
    /// The length of an interval, in milliseconds.
    pub interval_ms: u64,
    /// Intervals in which this node ran, oldest first.
    pub samples: Vec<HistorySampleView>,
    /// Events in the range, oldest first.
    pub events: Vec<HistoryEventView>,
}

/// The counts of one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = HistorySample)]
pub struct HistorySampleView {
    /// Start of the interval, milliseconds since the epoch.
    pub at: u64,
    /// The part of the interval that was observed, in milliseconds: less if the daemon did not run all the time.
    pub observed_ms: u32,
    /// Accepted messages.
    pub accepted: u64,
    /// Refused submissions.
    pub refused: u64,
    /// Successful messages: delivered, or relayed without a requested DLR.
    pub delivered: u64,
    /// Unsuccessful messages, without cancelled ones.
    pub failed: u64,
    /// The largest number of unfinished messages in the interval.
    pub waiting: u64,
    /// Mean duration of a commit, in microseconds; null without commits.
    #[schema(required)]
    pub commit_us: Option<u32>,
    /// The last mean of the smoothed round-trip times of all links, in microseconds; null without links.
    #[schema(required)]
    pub round_trip_us: Option<u32>,
}

/// The kind of an event in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryEventKind {
    /// The daemon started.
    Start,
    /// This node of a cluster took over.
    TakeOver,
    /// A version of the configuration came into force.
    Configuration,
    /// An admin changed the live plugins of a hook.
    Exchange,
    /// A plugin failed, or was rolled back automatically.
    Fault,
}

impl HistoryEventKind {
    /// The name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::TakeOver => "take-over",
            Self::Configuration => "configuration",
            Self::Exchange => "exchange",
            Self::Fault => "fault",
        }
    }
}

/// An event in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = HistoryEvent)]
pub struct HistoryEventView {
    /// Time, milliseconds since the epoch.
    pub at: u64,
    /// The kind.
    #[schema(inline)]
    pub kind: HistoryEventKind,
    /// The subject: a hook, a version of the configuration, or a term; empty for a start.
    pub subject: String,
    /// Details.
    pub text: String,
}
