use crate::backend::Backend;
use crate::error::Fault;
use crate::history::within_accounts;
use crate::latency::quantiles;
use crate::measures::{HOUR, Measure};
use crate::sql::{ColumnType, Dialect, Statement};
use api::{StatisticsCountsView, StatisticsView};
use model::{Direction, FinalState, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The aggregation of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Span {
    /// By hour.
    #[default]
    Hour,
    /// By day.
    Day {
        /// The time zone of the days: whole hours east of UTC, -12 to 14.
        east: i8,
    },
}

/// Criteria of statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Period {
    /// Messages accepted in this hour or later.
    pub from: Option<Timestamp>,
    /// Messages accepted before the end of the hour that contains this time.
    pub until: Option<Timestamp>,
    /// This account only.
    pub account: Option<String>,
    /// Only these accounts; `None`: all.
    pub within: Option<Arc<[Arc<str>]>>,
    /// This peer only.
    pub peer: Option<String>,
    /// By hour or by day.
    pub span: Span,
}

/// Histograms being built.
#[derive(Default)]
struct StatisticsSums {
    counts: StatisticsCountsView,
    response: BTreeMap<i64, u64>,
    report: BTreeMap<i64, u64>,
}

impl StatisticsSums {
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
                let name = state.map_or("?", FinalState::name);
                *counts.ended.entry(name.to_owned()).or_default() += amount;
            }
            Measure::ResponseTime => *self.response.entry(code).or_default() += amount,
            Measure::DlrTime => *self.report.entry(code).or_default() += amount,
        }
    }

    fn counts(self) -> StatisticsCountsView {
        StatisticsCountsView {
            response: quantiles(&self.response),
            dlr: quantiles(&self.report),
            ..self.counts
        }
    }
}

/// Statistics of each hour or day, account and peer. A message counts for the hour of its acceptance, including all its
/// later events.
pub(crate) async fn query(backend: &dyn Backend, period: &Period) -> Result<Vec<StatisticsView>, Fault> {
    let (shift, length) = match period.span {
        Span::Hour => (0, 1),
        Span::Day { east } => (i64::from(east.clamp(-12, 14)), 24),
    };
    // Constants, because PostgreSQL treats placeholders in SELECT and GROUP BY as different expressions.
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
    within_accounts(&mut statement, period.within.as_deref());
    if let Some(peer) = &period.peer {
        statement.push(" AND peer = ").text(peer);
    }
    statement.push(&format!(" GROUP BY {bucket}, account, peer, direction, measure, code"));
    let kinds = [
        ColumnType::Big,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Big,
        ColumnType::Big,
    ];
    let mut sums: BTreeMap<(i64, String, String), [StatisticsSums; 2]> = BTreeMap::new();
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
        // A newer daemon may have other measures.
        let (Some(direction), Some(measure)) =
            (Direction::from_name(&direction), Measure::from_name(&measure))
        else {
            continue;
        };
        let both = sums.entry((start, account, peer)).or_default();
        both[usize::from(direction == Direction::Mo)].add(measure, code, u64::try_from(amount).unwrap_or(0));
    }
    Ok(sums
        .into_iter()
        .map(|((start, account, peer), [mt, mo])| {
            let hours = start * length - shift;
            StatisticsView {
                start: u64::try_from(hours.saturating_mul(HOUR)).unwrap_or(0),
                account,
                peer,
                mt: mt.counts(),
                mo: mo.counts(),
            }
        })
        .collect())
}
