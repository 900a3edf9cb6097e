//! What is counted of each message, by hour, account, peer and direction.

use crate::latency::bucket;
use crate::row::{Direction, Row};
use model::{Final, ReceiptState, StepKind, Timestamp};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kind of count; together with a code it is a row of table `statistics`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Measure {
    /// Accepted; of MO messages these are the replies.
    Accepted,
    /// The peer took it.
    Responded,
    /// The peer never took it, and refused it last with this code.
    Refused,
    /// A receipt said delivered.
    Delivered,
    /// A receipt said that it never will be, with this error.
    Undelivered,
    /// It ended; the code is the octet of the final state.
    Ended,
    /// Time from acceptance to the peer's positive answer; the code is the bucket.
    ResponseTime,
    /// Time from acceptance to the last receipt; the code is the bucket.
    ReportTime,
}

/// What one message adds.
pub(crate) type Tally = SmallVec<[(Measure, i64); 6]>;

impl Measure {
    pub(crate) const ALL: [Self; 8] = [
        Self::Accepted,
        Self::Responded,
        Self::Refused,
        Self::Delivered,
        Self::Undelivered,
        Self::Ended,
        Self::ResponseTime,
        Self::ReportTime,
    ];

    /// The word in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Responded => "responded",
            Self::Refused => "refused",
            Self::Delivered => "delivered",
            Self::Undelivered => "undelivered",
            Self::Ended => "ended",
            Self::ResponseTime => "response_time",
            Self::ReportTime => "report_time",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// What a message that ended so adds.
    pub(crate) fn of(accepted_at: Timestamp, ended: &Final) -> Tally {
        let mut tally = Tally::new();
        tally.push((Self::Accepted, 0));
        tally.push((Self::Ended, i64::from(ended.state as u8)));
        let (mut responded, mut refused, mut reported) = (None, None, None);
        for step in &ended.steps {
            match step.kind {
                StepKind::Responded { .. } => responded = responded.or(Some(step.at)),
                StepKind::Refused { code } => refused = Some(code),
                StepKind::Reported { state, error } => reported = Some((step.at, state, error)),
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
            match ReceiptState::from_octet(state) {
                Some(ReceiptState::Delivered) => tally.push((Self::Delivered, 0)),
                Some(state) if !state.is_final() => return tally,
                _ => tally.push((Self::Undelivered, i64::from(error))),
            }
            tally.push((Self::ReportTime, bucket(at.0.saturating_sub(accepted_at.0))));
        }
        tally
    }
}

/// Under what is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key {
    /// Hours since the Unix epoch, of the acceptance.
    pub(crate) hour: i64,
    pub(crate) account: Arc<str>,
    pub(crate) peer: Arc<str>,
    pub(crate) direction: Direction,
    pub(crate) measure: Measure,
    pub(crate) code: i64,
}

/// Milliseconds of an hour.
pub(crate) const HOUR: i64 = 3_600_000;

/// What a batch of rows adds to the tables beside `messages`.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Table `statistics`.
    pub(crate) counts: BTreeMap<Key, i64>,
    /// Table `hours`: smallest and largest id of the hour.
    pub(crate) hours: BTreeMap<i64, (i64, i64)>,
}

impl Sums {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let mut sums = Self::default();
        for row in rows {
            let hour = row.accepted_at / HOUR;
            let ends = sums.hours.entry(hour).or_insert((row.id, row.id));
            *ends = (ends.0.min(row.id), ends.1.max(row.id));
            for (measure, code) in &row.tally {
                let key = Key {
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
