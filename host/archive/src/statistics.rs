use crate::backend::Backend;
use crate::error::Fault;
use crate::latency::Latency;
use crate::measure::{HOUR, Measure};
use crate::row::Direction;
use crate::sql::{Dialect, Kind, Statement};
use model::{FinalState, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

/// How counts are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Span {
    /// By hour.
    #[default]
    Hour,
    /// By day.
    Day {
        /// The zone whose days are meant: whole hours east of Greenwich, -12 to 14.
        east: i8,
    },
}

/// Which counts are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Period {
    /// Messages accepted in this hour or later.
    pub from: Option<Timestamp>,
    /// Messages accepted before this time (before the end of the hour it lies in).
    pub until: Option<Timestamp>,
    /// Only this account.
    pub account: Option<String>,
    /// Only this gateway.
    pub peer: Option<String>,
    /// By hour or by day.
    pub span: Span,
}

/// Counts of one hour or day, account and gateway. A message belongs to the hour in which it was accepted, with
/// everything that became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// Beginning of the hour or day.
    pub start: Timestamp,
    /// The account.
    pub account: String,
    /// The gateway; empty for messages that never came to one.
    pub peer: String,
    /// From the account to the network.
    pub mt: Counts,
    /// From the network to the account: its `accepted` are the replies.
    pub mo: Counts,
}

/// What became of some messages; each is counted once in every group.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Accepted from the submitter.
    pub accepted: u64,
    /// Taken by the other side.
    pub responded: u64,
    /// Never taken by the other side, by the code of the last refusal.
    pub refused: BTreeMap<u32, u64>,
    /// Delivered, by the last receipt.
    pub delivered: u64,
    /// Not delivered, by the error code of the last receipt.
    pub undelivered: BTreeMap<u32, u64>,
    /// By final state.
    pub ended: BTreeMap<&'static str, u64>,
    /// From acceptance to the other side's answer.
    pub response: Latency,
    /// From acceptance to the last receipt.
    pub report: Latency,
}

/// Histograms while they are put together.
#[derive(Default)]
struct Gathered {
    counts: Counts,
    response: BTreeMap<i64, u64>,
    report: BTreeMap<i64, u64>,
}

impl Gathered {
    fn add(&mut self, measure: Measure, code: i64, amount: u64) {
        let by_code = u32::try_from(code).unwrap_or(u32::MAX);
        let counts = &mut self.counts;
        match measure {
            Measure::Accepted => counts.accepted += amount,
            Measure::Responded => counts.responded += amount,
            Measure::Refused => *counts.refused.entry(by_code).or_default() += amount,
            Measure::Delivered => counts.delivered += amount,
            Measure::Undelivered => *counts.undelivered.entry(by_code).or_default() += amount,
            Measure::Ended => {
                let state = u8::try_from(code).ok().and_then(FinalState::from_octet);
                *counts.ended.entry(state.map_or("?", FinalState::name)).or_default() += amount;
            }
            Measure::ResponseTime => *self.response.entry(code).or_default() += amount,
            Measure::ReportTime => *self.report.entry(code).or_default() += amount,
        }
    }

    fn counts(self) -> Counts {
        Counts {
            response: Latency::from_buckets(&self.response),
            report: Latency::from_buckets(&self.report),
            ..self.counts
        }
    }
}

pub(crate) async fn query(backend: &dyn Backend, period: &Period) -> Result<Vec<Statistics>, Fault> {
    let (shift, length) = match period.span {
        Span::Hour => (0, 1),
        Span::Day { east } => (i64::from(east.clamp(-12, 14)), 24),
    };
    // Numbers of our own; a placeholder in both SELECT and GROUP BY would be two different ones to PostgreSQL.
    let bucket = match (backend.dialect(), length) {
        (_, 1) => "hour".to_owned(),
        (Dialect::MySql, _) => format!("((hour + {shift}) DIV {length})"),
        _ => format!("((hour + {shift}) / {length})"),
    };
    let sum = match backend.dialect() {
        Dialect::Sqlite => "sum(amount)",
        Dialect::MySql => "CAST(sum(amount) AS SIGNED)",
        Dialect::Postgres => "CAST(sum(amount) AS BIGINT)",
    };
    let mut statement = Statement::new(
        backend.dialect(),
        &format!(
            "SELECT {bucket}, account, peer, direction, measure, code, {sum} FROM statistics WHERE hour >= "
        ),
    );
    let hour = |at: Timestamp| i64::try_from(at.0).unwrap_or(i64::MAX) / HOUR;
    statement.number(period.from.map_or(0, hour)).push(" AND hour <= ");
    statement.number(period.until.map_or(i64::MAX, |until| hour(Timestamp(until.0.saturating_sub(1)))));
    if let Some(account) = &period.account {
        statement.push(" AND account = ").text(account);
    }
    if let Some(peer) = &period.peer {
        statement.push(" AND peer = ").text(peer);
    }
    statement.push(&format!(" GROUP BY {bucket}, account, peer, direction, measure, code"));
    let kinds = [Kind::Big, Kind::Text, Kind::Text, Kind::Text, Kind::Text, Kind::Big, Kind::Big];
    let mut gathered: BTreeMap<(i64, String, String), [Gathered; 2]> = BTreeMap::new();
    for row in backend.select(&statement, &kinds).await? {
        let mut cells = row.into_iter();
        let mut number = || cells.next().and_then(|cell| cell.number());
        let Some(start) = number() else { continue };
        let mut text = || cells.next().and_then(crate::sql::Cell::into_text);
        let (Some(account), Some(peer), Some(direction), Some(measure)) = (text(), text(), text(), text())
        else {
            continue;
        };
        let mut number = || cells.next().and_then(|cell| cell.number());
        let (Some(code), Some(amount)) = (number(), number()) else { continue };
        // A newer daemon may count what we do not know.
        let (Some(direction), Some(measure)) =
            (Direction::from_name(&direction), Measure::from_name(&measure))
        else {
            continue;
        };
        let both = gathered.entry((start, account, peer)).or_default();
        both[usize::from(direction == Direction::Mo)].add(measure, code, u64::try_from(amount).unwrap_or(0));
    }
    Ok(gathered
        .into_iter()
        .map(|((start, account, peer), [mt, mo])| {
            let hours = start * length - shift;
            Statistics {
                start: Timestamp(u64::try_from(hours.saturating_mul(HOUR)).unwrap_or(0)),
                account,
                peer,
                mt: mt.counts(),
                mo: mo.counts(),
            }
        })
        .collect())
}
