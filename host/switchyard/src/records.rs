//! What the API shows of finished messages and of what is remembered beside messages: history, statistics, parked DLRs,
//! opt-outs, business systems.

use crate::appliance::{Switchyard, gone};
use crate::archiving::History;
use crate::core_loop::{self, wall};
use admin::metrics::{self, Page};
use admin::{Export, Kind, Problem, view};
use archive::{ArchiveError, Cursor, Direction, Filter, Format, Period, Side, Span, Wanted};
use engine::Event;
use model::{AddressBytes, FinalState, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;
/// How long before the end statistics begin where nothing is said, in milliseconds: by the hour, and by the day.
const HOURLY_STATISTICS: u64 = 7 * DAY;
const DAILY_STATISTICS: u64 = 2 * 366 * DAY;

/// The query of a request, of which everything must be known.
pub(crate) struct Query<'a> {
    given: &'a HashMap<String, String>,
    known: Vec<&'static str>,
}

impl<'a> Query<'a> {
    pub(crate) fn new(given: &'a HashMap<String, String>) -> Self {
        Self { given, known: Vec::new() }
    }

    fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        self.given.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    fn read<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = || Problem::new(Kind::BadRequest, format!("{name}: is {text:?}, and must be {what}"));
        read(text).map(Some).ok_or_else(wrong)
    }

    pub(crate) fn time(&mut self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        self.read(name, "a time such as 2026-11-20T20:32:25Z, or milliseconds since the epoch", |text| {
            time(text)
        })
    }

    fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        let flag = self.read(name, "1 or 0", |text| match text {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        });
        Ok(flag?.unwrap_or(false))
    }

    fn filter(&mut self) -> Result<Filter, Problem> {
        let states: Vec<&str> = FinalState::ALL.iter().map(|state| state.name()).collect();
        let state = self.read("state", &format!("one of {}", states.join(", ")), |text| {
            FinalState::ALL.into_iter().find(|state| state.name() == text)
        })?;
        let direction = self.read("direction", "mt or mo", |text| {
            [Direction::Mt, Direction::Mo].into_iter().find(|direction| direction.name() == text)
        })?;
        Ok(Filter {
            number: self.text("number").map(str::to_owned),
            side: Side::Either,
            account: self.text("account").map(str::to_owned),
            peer: self.text("peer").map(str::to_owned),
            state,
            direction,
            from: self.time("from")?,
            until: self.time("until")?,
            first: None,
        })
    }

    fn finish(self) -> Result<(), Problem> {
        match self.given.keys().find(|name| !self.known.contains(&name.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let detail = format!("{unknown}: is unknown; there are {}", self.known.join(", "));
                Err(Problem::new(Kind::BadRequest, detail))
            }
        }
    }
}

pub(crate) fn told(error: &ArchiveError) -> Problem {
    match error {
        ArchiveError::Cursor(_) => Problem::new(Kind::BadRequest, error.to_string()),
        _ => Problem::new(Kind::Unavailable, error.to_string()),
    }
}

fn shown(value: &impl serde::Serialize) -> Result<Value, Problem> {
    serde_json::to_value(value).map_err(|error| Problem::new(Kind::Internal, error.to_string()))
}

/// A time such as 2026-11-20T20:32:25Z, or milliseconds since the epoch. Nothing has happened here before the epoch.
pub(crate) fn time(text: &str) -> Option<Timestamp> {
    if let Ok(ms) = text.parse() {
        return Some(Timestamp(ms));
    }
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    u64::try_from((at.unix_timestamp_nanos() / 1_000_000).max(0)).ok().map(Timestamp)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OptOut {
    sender: String,
    subscriber: String,
    stop: bool,
}

/// The period that `GET /v1/statistics` asks for. Without `from` it begins a week (by the hour) or two years (by the day)
/// before its end, since the counts of all years would be read into memory.
fn statistics_period(given: &HashMap<String, String>, now: Timestamp) -> Result<Period, Problem> {
    let mut query = Query::new(given);
    let east = query.read("east", "whole hours from -12 to 14", |text| {
        text.parse::<i8>().ok().filter(|hours| (-12..=14).contains(hours))
    })?;
    let span = query.read("by", "hour or day", |text| match text {
        "hour" => Some(Span::Hour),
        "day" => Some(Span::Day { east: east.unwrap_or(0) }),
        _ => None,
    })?;
    let (from, until) = (query.time("from")?, query.time("until")?);
    let span = span.unwrap_or_default();
    let usual = match span {
        Span::Hour => HOURLY_STATISTICS,
        Span::Day { .. } => DAILY_STATISTICS,
    };
    let end = until.unwrap_or(now);
    let period = Period {
        from: from.or(Some(Timestamp(end.0.saturating_sub(usual)))),
        until,
        account: query.text("account").map(str::to_owned),
        peer: query.text("peer").map(str::to_owned),
        span,
    };
    query.finish()?;
    Ok(period)
}

/// The most that lists of the engine's show.
const MOST: usize = 1000;

impl Switchyard {
    pub(crate) fn archived(&self) -> Result<&History, Problem> {
        self.history.as_ref().ok_or_else(|| {
            let detail =
                "there is no archive ([archive] url = \"none\"); finished messages are found by id only";
            Problem::new(Kind::Conflict, detail)
        })
    }

    pub(crate) fn show_history(&self, given: &HashMap<String, String>) -> Result<Value, Problem> {
        let history = self.archived()?;
        let mut query = Query::new(given);
        let filter = query.filter()?;
        let limit = query.read("limit", "a number from 1 to 1000", |text| {
            text.parse::<usize>().ok().filter(|limit| (1..=1000).contains(limit))
        })?;
        let cursor =
            query.text("cursor").map(str::parse::<Cursor>).transpose().map_err(|error| told(&error))?;
        let wanted = Wanted { body: query.flag("body")?, trace: query.flag("trace")? };
        query.finish()?;
        if wanted.body {
            tracing::info!("message texts of the archive read by an admin");
        }
        let page =
            history.runtime.block_on(history.archive.page(&filter, cursor, limit.unwrap_or(100), wanted));
        let page = page.map_err(|error| told(&error))?;
        let next = page.next.map(|cursor| cursor.to_string());
        Ok(json!({ "messages": shown(&page.records)?, "next": next }))
    }

    pub(crate) fn export_history(&self, given: &HashMap<String, String>) -> Result<Export, Problem> {
        let history = self.archived()?;
        let mut query = Query::new(given);
        let filter = query.filter()?;
        let format = query.read("format", "csv or jsonl", |text| match text {
            "csv" => Some(Format::Csv),
            "jsonl" => Some(Format::JsonLines),
            _ => None,
        })?;
        let format = format.unwrap_or(Format::Csv);
        let wanted = Wanted { body: query.flag("body")?, trace: query.flag("trace")? };
        query.finish()?;
        tracing::info!(body = wanted.body, "history exported by an admin");
        let mut export = history.archive.export(filter, format, wanted);
        let (sender, chunks) = tokio::sync::mpsc::channel(4);
        history.runtime.spawn(async move {
            loop {
                let chunk = match export.next().await {
                    Ok(Some(chunk)) => Ok(chunk),
                    Ok(None) => return,
                    Err(error) => Err(error.to_string()),
                };
                let failed = chunk.is_err();
                // The reader may have gone.
                if sender.send(chunk).await.is_err() || failed {
                    return;
                }
            }
        });
        Ok(Export { media_type: format.media_type(), chunks })
    }

    pub(crate) fn show_statistics(&self, given: &HashMap<String, String>) -> Result<Value, Problem> {
        let history = self.archived()?;
        let period = statistics_period(given, wall())?;
        let statistics = history.runtime.block_on(history.archive.statistics(&period));
        shown(&statistics.map_err(|error| told(&error))?)
    }

    pub(crate) fn show_archive(&self) -> Result<Value, Problem> {
        self.archived()?;
        match self.pump.lock().as_ref() {
            Some(pump) => shown(&pump.status()),
            None => Err(gone()),
        }
    }

    pub(crate) fn show_parked(&self) -> Result<Value, Problem> {
        let parked = self.core.look(|engine, _| (engine.receipt_counts().0, engine.parked(MOST)));
        let (count, parked) = parked.ok_or_else(gone)?;
        let reports = parked.into_iter().map(|record| {
            let id = record.receipt.id.0.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
            json!({
                "number": record.number,
                "peer": self.name_of(record.peer),
                "at": record.at.0,
                "peer_message_id": id,
                "state": record.receipt.state,
                "error": record.receipt.error,
            })
        });
        Ok(json!({ "parked": count, "reports": reports.collect::<Vec<_>>() }))
    }

    pub(crate) fn show_opt_outs(&self) -> Result<Value, Problem> {
        let stopped = self.core.look(|engine, _| engine.stopped(MOST)).ok_or_else(gone)?;
        let shown = stopped.into_iter().map(|consent| {
            json!({
                "sender": String::from_utf8_lossy(&consent.sender),
                "subscriber": String::from_utf8_lossy(&consent.subscriber),
            })
        });
        Ok(json!({ "stopped": shown.collect::<Vec<_>>() }))
    }

    pub(crate) fn change_opt_out(&self, request: Value) -> Result<(), Problem> {
        let asked: OptOut = serde_json::from_value(request).map_err(|error| {
            Problem::new(Kind::BadRequest, format!("the body is not as expected: {error}"))
        })?;
        let octets = |text: &str| AddressBytes::from_slice(text.as_bytes());
        let (sender, subscriber) = (octets(&asked.sender), octets(&asked.subscriber));
        let event = |reply| Event::Consent { sender, subscriber, stop: asked.stop, reply: Some(reply) };
        match core_loop::ask(&self.core, &self.links.hub(), event) {
            Some(_) => Ok(()),
            None => Err(gone()),
        }
    }

    pub(crate) fn show_business(&self) -> Value {
        let accounts = self.business.states().into_iter().map(|state| {
            let requests = state.requests.into_iter().map(
                |((method, result), count)| json!({ "method": method, "result": result, "count": count }),
            );
            let push = state.push.map(|push| {
                json!({
                    "url": push.url,
                    "pushed": push.pushed,
                    "failures": push.failures,
                    "in_flight": push.in_flight,
                    "last_success": push.last_success.map(|at| at.0),
                    "last_error": push.last_error,
                })
            });
            json!({
                "account": state.name,
                "requests": requests.collect::<Vec<_>>(),
                "accepted": state.accepted,
                "fetched": state.fetched,
                "leased": state.leased,
                "push": push,
            })
        });
        Value::Array(accounts.collect())
    }

    pub(crate) fn show_refusals(&self, given: &HashMap<String, String>) -> Result<view::Refusals, Problem> {
        let mut query = Query::new(given);
        let account = match query.text("account") {
            None => None,
            Some(name) => Some(self.directory.load().id(name).ok_or_else(|| {
                Problem::new(Kind::NotFound, format!("{name:?} is no account and no peer"))
            })?),
        };
        let code = query.text("code");
        let since = query.time("since")?.unwrap_or_default();
        let limit = query.read("limit", "a number from 1 to 1000", |text| {
            text.parse::<usize>().ok().filter(|limit| (1..=1000).contains(limit))
        })?;
        query.finish()?;
        let fits = |found: &str| code.is_none_or(|code| code == found);
        let hub = self.links.hub();
        let counts = hub.refusals().counts().into_iter();
        let counts =
            counts.filter(|(id, _, code, _)| account.is_none_or(|account| account == *id) && fits(code));
        let last = hub.refusals().last(account).into_iter();
        let last = last.filter(|(_, refused)| fits(refused.code) && refused.at >= since);
        Ok(view::Refusals {
            counts: counts
                .map(|(id, protocol, code, count)| view::RefusalCount {
                    account: self.name_of(id),
                    protocol: protocol.name().to_owned(),
                    code: code.to_owned(),
                    count,
                })
                .collect(),
            refusals: last
                .take(limit.unwrap_or(100))
                .map(|(id, refused)| view::RefusedSubmission {
                    at: refused.at.0,
                    account: self.name_of(id),
                    protocol: refused.protocol.name().to_owned(),
                    source: refused.source.text().into_owned(),
                    destination: refused.destination.masked(),
                    code: refused.code.to_owned(),
                    reason: refused.reason.into_owned(),
                })
                .collect(),
        })
    }

    pub(crate) fn write_record_metrics(&self, page: &mut Page) {
        for (id, protocol, code, count) in self.links.hub().refusals().counts() {
            let labels = [&*self.name_of(id), protocol.name(), code];
            page.put(&metrics::SUBMISSIONS_REFUSED, &labels, count as f64);
        }
        if let Some((totals, parked, keys)) =
            self.core.look(|engine, _| (engine.totals().clone(), engine.receipt_counts().0, engine.keys()))
        {
            page.put(&metrics::RECEIPTS_DROPPED, &[], totals.receipts_dropped as f64);
            page.put(&metrics::RECEIPTS_PARKED, &[], parked as f64);
            page.put(&metrics::REPEATED, &[], totals.repeated as f64);
            page.put(&metrics::KEYS, &[], keys as f64);
            page.put(&metrics::OPTED_OUT, &[], totals.opted_out as f64);
        }
        if let Some(pump) = self.pump.lock().as_ref() {
            let status = pump.status();
            page.put(&metrics::ARCHIVE_BACKLOG, &[], status.backlog as f64);
            page.put(&metrics::ARCHIVED, &[], status.archived as f64);
            page.put(&metrics::ARCHIVE_FAILURES, &[], status.failures as f64);
            page.put(&metrics::ARCHIVE_REFUSED, &[], status.refused as f64);
            let up = matches!(status.state, archive::State::Up);
            page.put(&metrics::ARCHIVE_UP, &[], f64::from(u8::from(up)));
        }
        if let Some(shell) = self.shell.get() {
            let state = shell.state();
            page.put(&metrics::SHELL_CONNECTIONS, &[], state.connections as f64);
            page.put(&metrics::SHELL_TURNED_AWAY, &[], state.turned_away as f64);
            for ((request, result), count) in state.requests {
                page.put(&metrics::SHELL_REQUESTS, &[request, result], count as f64);
            }
        }
        let states = self.business.states();
        for state in &states {
            for ((method, result), count) in &state.requests {
                page.put(&metrics::BUSINESS_REQUESTS, &[&state.name, method, result], *count as f64);
            }
        }
        for (metric, value) in [
            (
                &metrics::BUSINESS_ACCEPTED,
                (|state| Some(state.accepted)) as fn(&business::AccountState) -> Option<u64>,
            ),
            (&metrics::BUSINESS_FETCHED, |state| Some(state.fetched)),
            (&metrics::PUSHED, |state| state.push.as_ref().map(|push| push.pushed)),
            (&metrics::PUSH_FAILURES, |state| state.push.as_ref().map(|push| push.failures)),
        ] {
            for state in &states {
                if let Some(value) = value(state) {
                    page.put(metric, &[&state.name], value as f64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_764_000_000_000);

    fn period(given: &[(&str, &str)]) -> Result<Period, Problem> {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        statistics_period(&given, NOW)
    }

    #[test]
    fn statistics_without_a_beginning_go_back_a_week_by_the_hour_and_two_years_by_the_day() {
        let begins =
            |given: &[(&str, &str)]| period(given).expect("a period").from.map(|from| NOW.0 - from.0);
        assert_eq!(begins(&[]), Some(7 * DAY));
        assert_eq!(begins(&[("by", "hour")]), Some(7 * DAY));
        assert_eq!(begins(&[("by", "day")]), Some(732 * DAY));
        let until = (NOW.0 - 10 * DAY).to_string();
        assert_eq!(begins(&[("until", &until)]), Some(17 * DAY));
    }

    #[test]
    fn statistics_with_a_beginning_go_back_as_far_as_asked() {
        let period = period(&[("from", "0"), ("until", "5")]).expect("a period");
        assert_eq!((period.from, period.until), (Some(Timestamp(0)), Some(Timestamp(5))));
    }

    #[test]
    fn an_unknown_parameter_of_statistics_is_refused() {
        assert!(period(&[("since", "0")]).is_err());
    }
}
