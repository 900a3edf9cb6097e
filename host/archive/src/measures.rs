//! Measures counted per message, by hour, account, peer and direction.

use crate::latency::bucket;
use crate::row::Row;
use model::{Direction, DlrState, FinalRecord, StepKind, Timestamp};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A measure. Together with a code it is a row of table `statistics`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Measure {
    /// Accepted; for MO messages, received.
    Accepted,
    /// Accepted by the peer.
    Responded,
    /// Refused by the peer; the code is from the last error response.
    Refused,
    /// The last DLR reported delivery.
    Delivered,
    /// The last DLR reported a final failure, with this error code.
    Undelivered,
    /// Finished; the code is the octet of the final state.
    Ended,
    /// Time from acceptance to the peer's positive response; the code is the bucket.
    ResponseTime,
    /// Time from acceptance to the last DLR; the code is the bucket.
    DlrTime,
}

/// The measures of one message.
pub(crate) type MeasureCounts = SmallVec<[(Measure, i64); 6]>;

impl Measure {
    pub(crate) const ALL: [Self; 8] = [
        Self::Accepted,
        Self::Responded,
        Self::Refused,
        Self::Delivered,
        Self::Undelivered,
        Self::Ended,
        Self::ResponseTime,
        Self::DlrTime,
    ];

    /// The value in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Responded => "responded",
            Self::Refused => "refused",
            Self::Delivered => "delivered",
            Self::Undelivered => "undelivered",
            Self::Ended => "ended",
            Self::ResponseTime => "response_time",
            Self::DlrTime => "report_time",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// The measures of a finished message.
    pub(crate) fn of(accepted_at: Timestamp, ended: &FinalRecord) -> MeasureCounts {
        let mut tally = MeasureCounts::new();
        tally.push((Self::Accepted, 0));
        tally.push((Self::Ended, i64::from(ended.state as u8)));
        let (mut responded, mut refused, mut reported) = (None, None, None);
        for step in &ended.steps {
            match step.kind {
                StepKind::Responded { .. } => responded = responded.or(Some(step.at)),
                StepKind::Refused { code } => refused = Some(code),
                StepKind::DlrReceived { state, error } => reported = Some((step.at, state, error)),
                _ => {}
            }
        }
        if let Some(at) = responded {
            tally.push((Self::Responded, 0));
            tally.push((Self::ResponseTime, bucket(at.0.saturating_sub(accepted_at.0))));
        } else if let Some(code) = refused {
            tally.push((Self::Refused, i64::from(code)));
        }
        if let Some((at, state, error)) = reported {
            match DlrState::from_octet(state) {
                Some(DlrState::Delivered) => tally.push((Self::Delivered, 0)),
                Some(state) if !state.is_final() => return tally,
                _ => tally.push((Self::Undelivered, i64::from(error))),
            }
            tally.push((Self::DlrTime, bucket(at.0.saturating_sub(accepted_at.0))));
        }
        tally
    }
}

/// The key of a count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StatisticsKey {
    /// The hour of acceptance, in hours since the Unix epoch.
    pub(crate) hour: i64,
    pub(crate) account: Arc<str>,
    pub(crate) peer: Arc<str>,
    pub(crate) direction: Direction,
    pub(crate) measure: Measure,
    pub(crate) code: i64,
}

/// One hour in milliseconds.
pub(crate) const HOUR: i64 = 3_600_000;

/// Increments of the tables `statistics` and `hours` by a batch of rows.
#[derive(Debug, Default)]
pub(crate) struct StatisticsDelta {
    /// Rows of table `statistics`.
    pub(crate) counts: BTreeMap<StatisticsKey, i64>,
    /// Rows of table `hours`: smallest and largest id of the hour.
    pub(crate) hours: BTreeMap<i64, (i64, i64)>,
}

impl StatisticsDelta {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let mut sums = Self::default();
        for row in rows {
            let hour = row.accepted_at / HOUR;
            let ends = sums.hours.entry(hour).or_insert((row.id, row.id));
            *ends = (ends.0.min(row.id), ends.1.max(row.id));
            for (measure, code) in &row.tally {
                let key = StatisticsKey {
                    hour,
                    account: row.account.clone(),
                    peer: row.peer.clone(),
                    direction: row.direction,
                    measure: *measure,
                    code: *code,
                };
                *sums.counts.entry(key).or_default() += 1;
            }
        }
        sums
    }
}
