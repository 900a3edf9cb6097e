//! The report of a peer or an account from the archive: answers by code, DLRs and latencies, today and by day.

use crate::api_caller::{encode_segment, with_query};
use crate::chart::bar;
use crate::format::{count, day_tag, figure};
use crate::request_context::RequestContext;
use crate::table::{Column, numeric_table};
use api::{LatencyView, StatisticsCountsView, StatisticsView};
use maud::{Markup, html};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The length of a day, in milliseconds.
const DAY: u64 = 24 * 3_600_000;
/// The number of days, today included.
const DAYS: u64 = 14;
/// The number of codes, and of accounts or peers, that are shown.
const MAX_ROWS: usize = 12;

/// Latencies of several rows. Percentiles cannot be added: this is their mean, weighted by the number of measurements.
#[derive(Debug, Default, Clone, PartialEq)]
struct MeanLatency {
    count: u64,
    p50: f64,
    p95: f64,
}

impl MeanLatency {
    fn add(&mut self, other: &LatencyView) {
        let all = self.count + other.count;
        if all > 0 {
            let part = other.count as f64 / all as f64;
            self.p50 += (other.p50 - self.p50) * part;
            self.p95 += (other.p95 - self.p95) * part;
            self.count = all;
        }
    }

    fn cell(&self) -> Markup {
        let seconds = |ms: f64| {
            if ms < 1_000.0 { format!("{} ms", figure(ms)) } else { format!("{:.1} s", ms / 1_000.0) }
        };
        html! { @if self.count == 0 { "—" } @else { (seconds(self.p50)) " / " (seconds(self.p95)) } }
    }
}

/// The sum of statistics rows.
#[derive(Debug, Default, Clone, PartialEq)]
struct ReportSum {
    messages: u64,
    accepted: u64,
    refused: BTreeMap<u32, u64>,
    delivered: u64,
    undelivered: BTreeMap<u32, u64>,
    replies: u64,
    answer: MeanLatency,
    dlr: MeanLatency,
}

impl ReportSum {
    fn of<'a>(rows: impl Iterator<Item = &'a StatisticsView>) -> Self {
        let mut sum = Self::default();
        rows.for_each(|row| sum.add(&row.mt, row.mo.accepted));
        sum
    }

    fn add(&mut self, mt: &StatisticsCountsView, replies: u64) {
        self.messages += mt.accepted;
        self.accepted += mt.responded;
        self.delivered += mt.delivered;
        self.replies += replies;
        for (sums, counts) in [(&mut self.refused, &mt.refused), (&mut self.undelivered, &mt.undelivered)] {
            counts.iter().for_each(|(code, count)| *sums.entry(*code).or_default() += count);
        }
        self.answer.add(&mt.response);
        self.dlr.add(&mt.dlr);
    }

    fn refused_count(&self) -> u64 {
        self.refused.values().sum()
    }

    fn undelivered_count(&self) -> u64 {
        self.undelivered.values().sum()
    }

    /// The cells of a row after its name.
    fn cells(&self) -> [Markup; 8] {
        let refused = self.refused_count();
        let ended = self.delivered + self.undelivered_count();
        [
            html! { (count(self.messages)) },
            html! { (share(self.accepted, self.accepted + refused)) },
            html! { (count(refused)) },
            html! { (share(self.delivered, ended)) },
            html! { (count(self.undelivered_count())) },
            self.answer.cell(),
            self.dlr.cell(),
            html! { (count(self.replies)) },
        ]
    }
}

/// A share in per cent; no digit is rounded to 100 %.
fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "—".to_owned();
    }
    let share = part as f64 * 100.0 / whole as f64;
    if part < whole && share > 99.94 { "99.9 %".to_owned() } else { format!("{share:.1} %") }
}

/// The columns after the name.
const COLUMNS: [Column<'static>; 8] = [
    Column::Number("Messages"),
    Column::Number("Accepted"),
    Column::Number("Refused"),
    Column::Number("DLR rate"),
    Column::Number("Not delivered"),
    Column::Number("Answer p50 / p95"),
    Column::Number("DLR p50 / p95"),
    Column::Number("Replies"),
];

fn columns(first: &'static str) -> Vec<Column<'static>> {
    std::iter::once(Column::Text(first)).chain(COLUMNS).collect()
}

/// The report of a peer or an account: `field` is the parameter of its name, `peer` or `account`. Nothing without an archive.
pub(super) async fn report(context: &RequestContext, field: &str, name: &str) -> Option<Markup> {
    let now = crate::format::now();
    let today = now - now % DAY;
    let from = (today - (DAYS - 1) * DAY).to_string();
    let parameters = [("by", "day"), ("from", &*from), (field, name)];
    let rows: Vec<StatisticsView> = context.get_optional(&with_query("/v1/statistics", &parameters)).await?;
    Some(report_of(&rows, today, field == "peer"))
}

fn report_of(rows: &[StatisticsView], today: u64, of_peer: bool) -> Markup {
    let mut days: BTreeMap<Reverse<u64>, Vec<&StatisticsView>> = BTreeMap::new();
    for row in rows {
        days.entry(Reverse(row.start)).or_default().push(row);
    }
    let of_today = days.get(&Reverse(today)).cloned().unwrap_or_default();
    let sum = ReportSum::of(of_today.iter().copied());
    let by_day: Vec<Vec<Markup>> = days
        .iter()
        .map(|(day, rows)| {
            let cells = ReportSum::of(rows.iter().copied()).cells();
            std::iter::once(day_tag(day.0)).chain(cells).collect()
        })
        .collect();
    let empty = html! { p { "No message has ended in the last " (DAYS) " days." } };
    let attempted = sum.accepted + sum.refused_count();
    let mut answers = vec![("good", sum.accepted)];
    answers.push(("bad", sum.refused_count()));
    html! {
        h2 { "Today" }
        p.muted { "Finished messages in the archive, since midnight UTC. A message counts once, by its last answer." }
        @if sum == ReportSum::default() {
            p { "No message has ended today." }
        } @else {
            (bar("Share of accepted and refused messages", &answers))
            div.columns {
                div {
                    h3 { "Answers by code" }
                    (code_table("Answers by code", &sum.refused, attempted, Some(sum.accepted)))
                }
                div {
                    h3 { "DLRs that report no delivery, by code" }
                    (code_table("DLRs by code", &sum.undelivered, sum.delivered + sum.undelivered_count(), None))
                }
            }
            (by_party(&of_today, of_peer))
        }
        h2 { "By day" }
        (numeric_table("By day, newest first", &columns("Day"), &by_day, &empty))
    }
}

/// Counts by code with their shares; `accepted` is the count of the code 0.
fn code_table(caption: &str, codes: &BTreeMap<u32, u64>, whole: u64, accepted: Option<u64>) -> Markup {
    let mut all: Vec<(u32, u64)> = codes.iter().map(|(code, count)| (*code, *count)).collect();
    all.sort_by_key(|(code, count)| (Reverse(*count), *code));
    let left_out = all.len().saturating_sub(MAX_ROWS);
    let failed = all.iter().take(MAX_ROWS).map(|(code, number)| {
        let name = html! { (code) " " span.muted { (format!("0x{code:02X}")) } };
        vec![name, html! { (count(*number)) }, html! { (share(*number, whole)) }]
    });
    let first = accepted.map(|number| {
        vec![html! { "accepted" }, html! { (count(number)) }, html! { (share(number, whole)) }]
    });
    let rows: Vec<Vec<Markup>> = first.into_iter().chain(failed).collect();
    let columns = [Column::Text("Code"), Column::Number("Messages"), Column::Number("Share")];
    html! {
        (numeric_table(caption, &columns, &rows, &html! { p { "None." } }))
        @if left_out > 0 { p.muted { "And " (left_out) " other codes." } }
    }
}

/// Today's traffic of a peer by account, or of an account by peer.
fn by_party(rows: &[&StatisticsView], of_peer: bool) -> Markup {
    let mut parties: BTreeMap<&str, Vec<&StatisticsView>> = BTreeMap::new();
    for row in rows {
        parties.entry(if of_peer { &row.account } else { &row.peer }).or_default().push(row);
    }
    let mut sums: Vec<(&str, ReportSum)> =
        parties.into_iter().map(|(name, rows)| (name, ReportSum::of(rows.into_iter()))).collect();
    sums.sort_by_key(|(_, sum)| Reverse(sum.messages));
    let root = if of_peer { "/accounts/" } else { "/peers/" };
    let shown: Vec<Vec<Markup>> = sums
        .iter()
        .take(MAX_ROWS)
        .map(|(name, sum)| {
            let name = html! {
                @if name.is_empty() { span.muted { "none" } }
                @else { a href=(format!("{root}{}", encode_segment(name))) { (name) } }
            };
            std::iter::once(name).chain(sum.cells()).collect()
        })
        .collect();
    let (title, first) = if of_peer { ("By account", "Account") } else { ("By peer", "Peer") };
    let left_out = sums.len().saturating_sub(MAX_ROWS);
    html! {
        h3 { (title) }
        (numeric_table(title, &columns(first), &shown, &html! {}))
        @if left_out > 0 { p.muted { "And " (left_out) " more." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: u64 = 1_800_057_600_000;

    fn row(start: u64, account: &str, p50: f64) -> StatisticsView {
        let mt = StatisticsCountsView {
            accepted: 110,
            responded: 100,
            refused: [(88, 7), (11, 3)].into(),
            delivered: 90,
            undelivered: [(5, 10)].into(),
            response: LatencyView { count: 100, p50, p95: p50 * 2.0, p99: p50 * 3.0 },
            ..StatisticsCountsView::default()
        };
        let mo = StatisticsCountsView { accepted: 4, ..StatisticsCountsView::default() };
        StatisticsView { start, account: account.to_owned(), peer: "north".to_owned(), mt, mo }
    }

    #[test]
    fn a_report_adds_the_rows_of_a_day() {
        let rows = [row(TODAY, "acme", 10.0), row(TODAY, "<b>", 30.0), row(TODAY - DAY, "acme", 50.0)];
        let sum = ReportSum::of(rows.iter().take(2));
        assert_eq!((sum.messages, sum.refused_count(), sum.replies), (220, 20, 8));
        assert_eq!((sum.answer.count, sum.answer.p50, sum.answer.p95), (200, 20.0, 40.0));
        let text = report_of(&rows, TODAY, true).into_string();
        for part in [
            "88 <span class=\"muted\">0x58</span>",
            ">14<",
            ">6.4 %<",
            "90.9 %",
            "90.0 %",
            "/accounts/%3Cb%3E",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("data-part=\"day\"").count(), 2);
    }

    #[test]
    fn a_report_without_messages_says_so() {
        let text = report_of(&[], TODAY, false).into_string();
        assert!(text.contains("No message has ended today") && text.contains("last 14 days"), "{text}");
        assert_eq!(
            (share(9_999, 10_000), share(1, 0), share(1, 1)),
            ("99.9 %".into(), "—".into(), "100.0 %".into())
        );
    }
}
