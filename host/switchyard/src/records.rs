//! Admin API for the archive, statistics, orphan DLRs, opt-outs and refusals.

use crate::archiving::ArchiveReader;
use crate::arguments::Query;
use crate::conversion_log::ConversionLog;
use crate::core_handle::{self, CoreHandle};
use crate::messages::is_foreign;
use crate::peer_observer::PeerObserver;
use crate::problems::{archive_problem, shutting_down_problem};
use admin::metrics::{self, MetricsPage};
use admin::{Export, Problem, ProblemKind};
use arc_swap::ArcSwap;
use archive::{ExportFormat, Period, RecordFields, RunningPump, Span};
use capabilities::PeerQuality;
use engine::Event;
use links::Links;
use model::{AccountScope, AddressBytes, Directory, MessageId, NumberDisplay, PeerId, Timestamp};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use store::Store;

/// One day in milliseconds.
const DAY: u64 = 86_400_000;
/// Default length of statistics in milliseconds, by hour and by day.
const HOURLY_STATISTICS: u64 = 7 * DAY;
const DAILY_STATISTICS: u64 = 2 * 366 * DAY;

/// The period of `GET /v1/statistics`. The default for `from` is a week (by hour) or two years (by day) back, because
/// all counts are read into memory.
fn statistics_period(
    parameters: &HashMap<String, String>,
    now: Timestamp,
    scope: &AccountScope,
) -> Result<Period, Problem> {
    let mut query = Query::new(parameters);
    let east = query.read("utc_offset", "whole hours from -12 to 14", |text| {
        text.parse::<i8>().ok().filter(|hours| (-12..=14).contains(hours))
    })?;
    let span = query.read("by", "hour or day", |text| match text {
        "hour" => Some(Span::Hour),
        "day" => Some(Span::Day { east: east.unwrap_or(0) }),
        _ => None,
    })?;
    let (from, until) = (query.time("from")?, query.time("until")?);
    let span = span.unwrap_or_default();
    let default_span = match span {
        Span::Hour => HOURLY_STATISTICS,
        Span::Day { .. } => DAILY_STATISTICS,
    };
    let end = until.unwrap_or(now);
    let (account, peer) = (query.text("account"), query.text("peer"));
    let within = if is_foreign(scope, account, peer) { Some(Vec::new()) } else { scope.accounts() };
    let period = Period {
        within: within.map(Into::into),
        from: from.or(Some(Timestamp(end.0.saturating_sub(default_span)))),
        until,
        account: account.map(str::to_owned),
        peer: peer.map(str::to_owned),
        span,
    };
    query.finish()?;
    Ok(period)
}

/// Maximum length of lists read from the engine.
const MAX_LISTED: usize = 1000;

/// Finished messages, statistics, orphan DLRs, opt-outs, refusals, quality figures of peers, conversions.
pub(crate) struct RecordService {
    pub(crate) core: CoreHandle,
    pub(crate) store: Arc<Store>,
    /// The archive; `None` if there is none.
    pub(crate) history: Option<ArchiveReader>,
    /// The running pump; `None` without an archive, or while the daemon is shutting down.
    pub(crate) pump: Mutex<Option<RunningPump>>,
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    pub(crate) links: Arc<Links>,
    pub(crate) quality: Arc<PeerQuality>,
    pub(crate) peer_observer: PeerObserver,
    pub(crate) conversions: ConversionLog,
}

impl RecordService {
    pub(crate) fn name_of(&self, peer: PeerId) -> String {
        self.directory.load().name(peer).to_string()
    }

    fn archived(&self) -> Result<&ArchiveReader, Problem> {
        self.history.as_ref().ok_or_else(|| {
            let detail =
                "there is no archive ([archive] url = \"none\"); finished messages can be found by id only";
            Problem::new(ProblemKind::Conflict, detail)
        })
    }

    pub(crate) fn write_record_metrics(&self, page: &mut MetricsPage) {
        for (id, protocol, code, count) in self.links.registry().refusals().counts() {
            let labels = [&*self.name_of(id), protocol.name(), code];
            page.put(&metrics::SUBMISSIONS_REFUSED, &labels, count as f64);
        }
        if let Some((totals, orphans, keys)) = self.core.query(|engine, _| {
            (engine.totals().clone(), engine.dlr_counts().0, engine.idempotency_key_count())
        }) {
            page.put(&metrics::DLRS_DROPPED, &[], totals.dlrs_dropped as f64);
            page.put(&metrics::DLRS_ORPHANED, &[], orphans as f64);
            page.put(&metrics::REPEATED, &[], totals.repeated as f64);
            page.put(&metrics::IDEMPOTENCY_KEYS, &[], keys as f64);
            page.put(&metrics::OPTED_OUT, &[], totals.opted_out as f64);
        }
        if let Some(pump) = self.pump.lock().as_ref() {
            let status = pump.status();
            page.put(&metrics::ARCHIVE_BACKLOG, &[], status.backlog as f64);
            page.put(&metrics::ARCHIVED, &[], status.archived as f64);
            page.put(&metrics::ARCHIVE_FAILURES, &[], status.failures as f64);
            page.put(&metrics::ARCHIVE_REFUSED, &[], status.refused as f64);
            let up = status.state == api::PumpState::Up;
            page.put(&metrics::ARCHIVE_UP, &[], f64::from(u8::from(up)));
        }
    }
}

impl admin::MessageRecords for RecordService {
    fn history(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<api::HistoryPageView, Problem> {
        let history = self.archived()?;
        let mut query = Query::new(query);
        let mut filter = query.filter()?;
        filter.within = scope.accounts().map(Into::into);
        let limit = query.read("limit", "a number from 1 to 1000", |text| {
            text.parse::<usize>().ok().filter(|limit| (1..=1000).contains(limit))
        })?;
        let cursor = query
            .text("cursor")
            .map(|text| {
                let problem = || format!("cursor: {text:?} is not the `next` of a page");
                text.parse::<MessageId>().map_err(|_| Problem::new(ProblemKind::BadRequest, problem()))
            })
            .transpose()?;
        let fields = RecordFields { body: query.flag("body")?, trace: query.flag("trace")? };
        query.finish()?;
        if is_foreign(scope, filter.account.as_deref(), filter.peer.as_deref()) {
            return Ok(api::HistoryPageView { messages: Vec::new(), next: None });
        }
        if fields.body {
            tracing::info!("archived message texts read by admin");
        }
        let page =
            history.runtime.block_on(history.archive.page(&filter, cursor, limit.unwrap_or(100), fields));
        let page = page.map_err(|error| archive_problem(&error))?;
        let records = page.records.into_iter().filter_map(|record| record.within(scope));
        let messages = records.map(|record| record.redacted(numbers, fields.body).into()).collect();
        Ok(api::HistoryPageView { messages, next: page.next.map(|cursor| cursor.to_string()) })
    }

    fn export(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<Export, Problem> {
        let history = self.archived()?;
        let mut query = Query::new(query);
        let filter = query.filter()?;
        let format = query.read("format", "csv or jsonl", |text| match text {
            "csv" => Some(ExportFormat::Csv),
            "jsonl" => Some(ExportFormat::JsonLines),
            _ => None,
        })?;
        let format = format.unwrap_or(ExportFormat::Csv);
        let fields = RecordFields { body: query.flag("body")?, trace: query.flag("trace")? };
        query.finish()?;
        tracing::info!(body = fields.body, "history exported by admin");
        // As with an unknown name.
        let is_empty = is_foreign(scope, filter.account.as_deref(), filter.peer.as_deref());
        let scope = if is_empty { AccountScope::Branch(Arc::default()) } else { scope.clone() };
        let export = history.archive.export(filter, format, fields).with_numbers(numbers);
        let mut export = export.within(scope);
        let (sender, chunks) = tokio::sync::mpsc::channel(4);
        history.runtime.spawn(async move {
            loop {
                let chunk = match export.next().await {
                    Ok(Some(chunk)) => Ok(chunk),
                    Ok(None) => return,
                    Err(error) => Err(error.to_string()),
                };
                let failed = chunk.is_err();
                // The client may have disconnected.
                if sender.send(chunk).await.is_err() || failed {
                    return;
                }
            }
        });
        Ok(Export { media_type: format.media_type(), chunks })
    }

    fn statistics(
        &self,
        query: &HashMap<String, String>,
        scope: &AccountScope,
    ) -> Result<Vec<api::StatisticsView>, Problem> {
        let history = self.archived()?;
        let period = statistics_period(query, Timestamp::now(), scope)?;
        let statistics = history.runtime.block_on(history.archive.statistics(&period));
        let mut rows = statistics.map_err(|error| archive_problem(&error))?;
        rows.retain(|row| scope.has_account(&row.account));
        for row in &mut rows {
            row.peer = scope.shown_peer(&row.peer).to_owned();
        }
        Ok(rows)
    }

    fn archive(&self) -> Result<api::ArchivePumpView, Problem> {
        self.archived()?;
        self.pump.lock().as_ref().map(RunningPump::status).ok_or_else(shutting_down_problem)
    }

    fn orphan_dlrs(&self) -> Result<api::OrphanDlrsView, Problem> {
        let orphans = self.core.query(|engine, _| (engine.dlr_counts().0, engine.orphan_dlrs(MAX_LISTED)));
        let (count, orphans) = orphans.ok_or_else(shutting_down_problem)?;
        let dlrs = orphans.into_iter().map(|record| api::OrphanDlrView {
            number: record.number,
            peer: self.name_of(record.peer),
            at: record.at.0,
            peer_message_id: model::hex(&record.dlr.id.0),
            state: record.dlr.state,
            error: record.dlr.error,
        });
        Ok(api::OrphanDlrsView { total: count as u64, dlrs: dlrs.collect() })
    }

    fn opt_outs(&self, numbers: NumberDisplay) -> Result<api::OptOutsView, Problem> {
        let stopped =
            self.core.query(|engine, _| engine.opt_outs(MAX_LISTED)).ok_or_else(shutting_down_problem)?;
        let shown = stopped.into_iter().map(|opt_out| api::OptOutView {
            sender: numbers.text(String::from_utf8_lossy(&opt_out.sender)),
            subscriber: numbers.text(String::from_utf8_lossy(&opt_out.subscriber)),
        });
        Ok(api::OptOutsView { stopped: shown.collect() })
    }

    fn set_opt_out(&self, change: &api::OptOutChange) -> Result<(), Problem> {
        let octets = |text: &str| AddressBytes::from_slice(text.as_bytes());
        let (sender, subscriber) = (octets(&change.sender), octets(&change.subscriber));
        let event = |reply| Event::OptOut { sender, subscriber, stop: change.stop, reply: Some(reply) };
        match core_handle::request(&self.core, &self.links.registry(), event) {
            Some(_) => Ok(()),
            None => Err(shutting_down_problem()),
        }
    }

    fn refusals(
        &self,
        query: &HashMap<String, String>,
        numbers: NumberDisplay,
    ) -> Result<api::RefusalsView, Problem> {
        let mut query = Query::new(query);
        let account = match query.text("account") {
            None => None,
            Some(name) => Some(self.directory.load().id(name).ok_or_else(|| {
                Problem::new(ProblemKind::NotFound, format!("{name:?} is not an account or peer"))
            })?),
        };
        let code = query.text("code");
        let since = query.time("since")?.unwrap_or_default();
        let limit = query.read("limit", "a number from 1 to 1000", |text| {
            text.parse::<usize>().ok().filter(|limit| (1..=1000).contains(limit))
        })?;
        query.finish()?;
        let fits = |found: &str| code.is_none_or(|code| code == found);
        let registry = self.links.registry();
        let counts = registry.refusals().counts().into_iter();
        let counts =
            counts.filter(|(id, _, code, _)| account.is_none_or(|account| account == *id) && fits(code));
        let last = registry.refusals().last(account).into_iter();
        let last = last.filter(|(_, refused)| fits(refused.code) && refused.at >= since);
        Ok(api::RefusalsView {
            counts: counts
                .map(|(id, protocol, code, count)| api::RefusalCountView {
                    account: self.name_of(id),
                    protocol: protocol.name().to_owned(),
                    code: code.to_owned(),
                    count,
                })
                .collect(),
            refusals: last
                .take(limit.unwrap_or(100))
                .map(|(id, refused)| api::RefusedSubmissionView {
                    at: refused.at.0,
                    account: self.name_of(id),
                    protocol: refused.protocol.name().to_owned(),
                    source: numbers.address(&refused.source),
                    destination: numbers.address(&refused.destination),
                    code: refused.code.to_owned(),
                    reason: refused.reason.into_owned(),
                })
                .collect(),
        })
    }

    fn resend_dlrs(&self, request: api::ResendDlrsRequest) -> Result<api::ResendDlrsResult, Problem> {
        self.resend_dlrs_in_range(request)
    }

    fn peer_figures(&self, name: &str) -> Result<api::PeerFiguresView, Problem> {
        self.figures_of_peer(name)
    }

    fn report_conversions(
        &self,
        ids: &[String],
        account: Option<Arc<str>>,
        scope: &AccountScope,
    ) -> Result<api::ConversionsResult, Problem> {
        self.record_conversions(ids, account.as_deref(), scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_764_000_000_000);

    fn period(parameters: &[(&str, &str)]) -> Result<Period, Problem> {
        let parameters =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        statistics_period(&parameters, NOW, &AccountScope::Everything)
    }

    #[test]
    fn statistics_default_to_a_week_by_hour_and_two_years_by_day() {
        let begins = |parameters: &[(&str, &str)]| {
            period(parameters).expect("a period").from.map(|from| NOW.0 - from.0)
        };
        assert_eq!(begins(&[]), Some(7 * DAY));
        assert_eq!(begins(&[("by", "hour")]), Some(7 * DAY));
        assert_eq!(begins(&[("by", "day")]), Some(732 * DAY));
        let until = (NOW.0 - 10 * DAY).to_string();
        assert_eq!(begins(&[("until", &until)]), Some(17 * DAY));
    }

    #[test]
    fn statistics_begin_at_the_given_time() {
        let period = period(&[("from", "0"), ("until", "5")]).expect("a period");
        assert_eq!((period.from, period.until), (Some(Timestamp(0)), Some(Timestamp(5))));
    }

    #[test]
    fn unknown_statistics_parameters_are_rejected() {
        assert!(period(&[("since", "0")]).is_err());
    }
}
