//! The archive: its state, and statistics of the last week.

use crate::api_caller::{ApiError, with_query};
use crate::form::Form;
use crate::format::{
    count, duration_text, kebab_or_snake, now, number, plural, state_badge, text, timestamp,
};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{detail_list, table};
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

const DAY: u64 = 86_400_000;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let body = page_body(&context, &Form::of(query)).await;
    page(&context, "Archive", NavItem::Archive, body)
}

/// A duration in serde's form, in milliseconds.
fn millis(value: &Value) -> Option<u64> {
    Some(value["secs"].as_u64()? * 1_000 + value["nanos"].as_u64()? / 1_000_000)
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
    let (archive, statistics, orphans) = tokio::join!(
        context.get::<Value>("/v1/archive"),
        context.get::<Value>(&path),
        context.get_optional::<Value>("/v1/dlrs/orphans")
    );
    let archive = match archive {
        Ok(archive) => archive,
        Err(error) if matches!(error.status, StatusCode::NOT_FOUND | StatusCode::CONFLICT) => {
            return Ok(html! {
                h1 { "Archive" }
                section.card { div.empty { h2 { "There is no archive" } p { (error.detail) } p { "Configure one under " code { "[archive]" } ": SQLite needs only a file." } } }
            });
        }
        Err(error) => return Err(error),
    };
    let statistics = statistics?;
    let rows: Vec<_> =
        statistics.as_array().into_iter().flatten().take(crate::table::MAX_ROWS).map(row).collect();
    Ok(html! {
        div.heading {
            h1 { "Archive" }
            a.button.quiet href="/v1/history/export?format=csv" { "Export as CSV" }
        }
        section.card {
            p { (state_badge(match text(&archive, "state") { "up" => "ready", other => other })) " " (text(&archive, "error")) }
            (detail_list(&[
                ("Backlog", html! { (plural(number(&archive, "backlog"), "message", "messages")) }),
                ("Archived since the start", html! { (count(number(&archive, "archived"))) }),
                ("Last success", html! { (millis(&archive["since_success"]).map_or_else(|| "—".to_owned(), |ms| format!("{} ago", duration_text(ms)))) }),
                ("Duration of the last batch", html! { (millis(&archive["last_batch"]).map_or_else(|| "—".to_owned(), duration_text)) }),
                ("Failures", html! { (count(number(&archive, "failures"))) }),
                ("Removed by retention", html! { (count(number(&archive, "trimmed"))) }),
                ("Orphan DLRs", html! { (orphans.as_ref().map_or_else(|| "—".to_owned(), |orphans| count(number(orphans, "total")))) }),
            ]))
        }
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
                &html! { h3 { "Nothing yet" } p { "Messages are counted when they are archived." } },
            ))
        }
    })
}

/// The date of a time in milliseconds since the epoch.
fn day(start: &Value) -> Markup {
    let Some(start) = start.as_u64().map(timestamp) else { return html! { "—" } };
    let date = start.get(..10).unwrap_or(&start);
    html! { time datetime=(date) { (date) } }
}

fn row(one: &Value) -> Vec<Markup> {
    let mt = &one["mt"];
    vec![
        day(&one["start"]),
        html! { (text(one, "account")) },
        html! { (match text(one, "peer") { "" => "—", peer => peer }) },
        html! { (count(number(mt, "accepted"))) },
        html! { (count(number(mt, "responded"))) },
        html! { (count(number(mt, "delivered"))) },
        html! { (count(kebab_or_snake(&one["mo"], "accepted").as_u64().unwrap_or(0))) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_day_is_shown_as_its_date() {
        let shown = day(&json!(1_795_564_800_000_u64)).into_string();
        assert_eq!(shown, "<time datetime=\"2026-11-25\">2026-11-25</time>");
    }
}
