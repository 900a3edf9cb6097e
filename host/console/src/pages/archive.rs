//! The archive: its state, and statistics of the last week.

use crate::api_caller::{ApiError, with_query};
use crate::form::Form;
use crate::format::{count, duration_text, now, plural, state_badge, timestamp};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{detail_list, table};
use api::{ArchivePumpView, EventSinkView, OrphanDlrsView, PumpState, StatisticsView};
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

const DAY: u64 = 86_400_000;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let body = page_body(&context, &Form::of(query)).await;
    page(&context, "Archive", NavItem::Archive, body)
}

async fn page_body(context: &RequestContext, query: &Form) -> Result<Markup, ApiError> {
    let from = timestamp(now().saturating_sub(7 * DAY) / DAY * DAY).replace(' ', "T") + "Z";
    let parameters = [
        ("by", "day"),
        ("from", from.as_str()),
        ("account", query.text("account")),
        ("peer", query.text("peer")),
    ];
    let path = with_query("/v1/statistics", &parameters);
    let (archive, statistics, orphans, sinks) = tokio::join!(
        context.get::<ArchivePumpView>("/v1/archive"),
        context.get::<Vec<StatisticsView>>(&path),
        context.get_optional::<OrphanDlrsView>("/v1/dlrs/orphans"),
        context.get_optional::<Vec<EventSinkView>>("/v1/event-sinks")
    );
    let sinks = event_sinks(&sinks.unwrap_or_default());
    let archive = match archive {
        Ok(archive) => archive,
        Err(error) if matches!(error.status, StatusCode::NOT_FOUND | StatusCode::CONFLICT) => {
            return Ok(html! {
                h1 { "Archive" }
                section.card { div.empty { h2 { "There is no archive" } p { (error.detail) } p { "Configure one under " code { "[archive]" } ": SQLite needs only a file." } } }
                (sinks)
            });
        }
        Err(error) => return Err(error),
    };
    let statistics = statistics?;
    let rows: Vec<_> = statistics.iter().take(crate::table::MAX_ROWS).map(row).collect();
    let state = if archive.state == PumpState::Up { "ready" } else { archive.state.name() };
    Ok(html! {
        div.heading {
            h1 { "Archive" }
            a.button.quiet href="/v1/history/export?format=csv" { "Export as CSV" }
        }
        section.card {
            p { (state_badge(state)) " " (archive.error.as_deref().unwrap_or_default()) }
            (detail_list(&[
                ("Backlog", html! { (plural(archive.backlog, "message", "messages")) }),
                ("Archived since the start", html! { (count(archive.archived)) }),
                ("Last success", html! { (archive.since_success.map_or_else(|| "—".to_owned(), |span| format!("{} ago", duration_text(span.millis())))) }),
                ("Duration of the last batch", html! { (duration_text(archive.last_batch.millis())) }),
                ("Failures", html! { (count(archive.failures)) }),
                ("Removed by retention", html! { (count(archive.trimmed)) }),
                ("Contents erased by text retention", html! { (count(archive.contents_erased)) }),
                ("Orphan DLRs", html! { (orphans.as_ref().map_or_else(|| "—".to_owned(), |orphans| count(orphans.total))) }),
            ]))
        }
        (sinks)
        form.card.search method="get" action="/archive" role="search" aria-label="Statistics" {
            p { label for="account" { "Account" } input #account name="account" value=(query.text("account")) autocomplete="off"; }
            p { label for="peer" { "Peer" } input #peer name="peer" value=(query.text("peer")) autocomplete="off"; }
            p.actions { button type="submit" { "Show" } }
        }
        section.card {
            h2 { "The last week, by day" }
            (table(
                "Messages by day, account and peer",
                &["Day", "Account", "Peer", "Accepted", "Accepted by peers", "Delivered", "From handsets"],
                &rows,
                &html! { h3 { "No messages yet" } p { "Messages are counted when they are archived." } },
            ))
        }
    })
}

/// The event sinks; nothing if there are none.
fn event_sinks(sinks: &[EventSinkView]) -> Markup {
    let row = |sink: &EventSinkView| {
        let state = if sink.state == PumpState::Up { "ready" } else { sink.state.name() };
        vec![
            html! { (sink.name) },
            html! { (state_badge(state)) " " (sink.error.as_deref().unwrap_or_default()) },
            html! { (count(sink.sent)) },
            html! { (duration_text(sink.lag.millis())) },
            html! { (count(sink.lag_records)) },
            html! { (count(sink.lost_records)) },
        ]
    };
    let rows: Vec<_> = sinks.iter().map(row).collect();
    html! {
        @if !rows.is_empty() {
            section.card #events {
                h2 { "Event sinks" }
                (table(
                    "Event sinks",
                    &["Sink", "State", "Sent", "Behind", "Records behind", "Records lost"],
                    &rows,
                    &html! {},
                ))
            }
        }
    }
}

/// The date of a time in milliseconds since the epoch.
fn day(start: u64) -> Markup {
    let start = timestamp(start);
    let date = start.get(..10).unwrap_or(&start);
    html! { time datetime=(date) { (date) } }
}

fn row(one: &StatisticsView) -> Vec<Markup> {
    vec![
        day(one.start),
        html! { (one.account) },
        html! { (match one.peer.as_str() { "" => "—", peer => peer }) },
        html! { (count(one.mt.accepted)) },
        html! { (count(one.mt.responded)) },
        html! { (count(one.mt.delivered)) },
        html! { (count(one.mo.accepted)) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_shown_as_its_date() {
        let shown = day(1_795_564_800_000).into_string();
        assert_eq!(shown, "<time datetime=\"2026-11-25\">2026-11-25</time>");
    }
}
