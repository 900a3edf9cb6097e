//! The archive: whether it keeps up, and what its statistics say of the last days.

use crate::ask::{Refusal, with_query};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, page};
use crate::table::{facts, table};
use crate::visit::Visit;
use crate::words::{clock, count, either, now, number, plural, span, state, text, time_of};
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

const DAY: u64 = 86_400_000;

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    let body = parts(&visit, &Form::of(query)).await;
    page(&visit, "Archive", Room::Archive, body)
}

/// A span as serde writes it, in milliseconds.
fn millis(value: &Value) -> Option<u64> {
    Some(value["secs"].as_u64()? * 1_000 + value["nanos"].as_u64()? / 1_000_000)
}

async fn parts(visit: &Visit, query: &Form) -> Result<Markup, Refusal> {
    let from = clock(now().saturating_sub(7 * DAY) / DAY * DAY).replace(' ', "T") + "Z";
    let asked = [
        ("by", "day"),
        ("from", from.as_str()),
        ("account", query.text("account")),
        ("peer", query.text("peer")),
    ];
    let path = with_query("/v1/statistics", &asked);
    let (archive, statistics, parked) = tokio::join!(
        visit.get::<Value>("/v1/archive"),
        visit.get::<Value>(&path),
        visit.look("/v1/reports/parked")
    );
    let archive = match archive {
        Ok(archive) => archive,
        Err(refusal) if matches!(refusal.status, StatusCode::NOT_FOUND | StatusCode::CONFLICT) => {
            return Ok(html! {
                h1 { "Archive" }
                section.card { div.empty { h2 { "There is no archive" } p { (refusal.detail) } p { "Name one under " code { "[archive]" } " of the configuration: SQLite needs nothing but a file." } } }
            });
        }
        Err(refusal) => return Err(refusal),
    };
    let statistics = statistics?;
    let rows: Vec<_> =
        statistics.as_array().into_iter().flatten().take(crate::table::MOST).map(row).collect();
    Ok(html! {
        div.head {
            h1 { "Archive" }
            a.button.quiet href="/v1/history/export?format=csv" { "Export as CSV" }
        }
        section.card {
            p { (state(match text(&archive, "state") { "up" => "ready", other => other })) " " (text(&archive, "error")) }
            (facts(&[
                ("Waiting for it", html! { (plural(number(&archive, "backlog"), "message", "messages")) }),
                ("Archived since the start", html! { (count(number(&archive, "archived"))) }),
                ("Last success", html! { (millis(&archive["since_success"]).map_or_else(|| "—".to_owned(), |ms| format!("{} ago", span(ms)))) }),
                ("The last batch took", html! { (millis(&archive["last_batch"]).map_or_else(|| "—".to_owned(), span)) }),
                ("Failures", html! { (count(number(&archive, "failures"))) }),
                ("Removed for their age", html! { (count(number(&archive, "trimmed"))) }),
                ("Reports that match nothing yet", html! { (parked.as_ref().map_or_else(|| "—".to_owned(), |parked| count(number(parked, "parked")))) }),
            ]))
        }
        form.card.search method="get" action="/archive" role="search" aria-label="Statistics" {
            p { label for="account" { "Account" } input #account name="account" value=(query.text("account")) autocomplete="off"; }
            p { label for="peer" { "Peer" } input #peer name="peer" value=(query.text("peer")) autocomplete="off"; }
            p.do { button type="submit" { "Show" } }
        }
        section.card {
            h2 { "The last week, by day" }
            (table(
                "Messages by day, account and peer",
                &["Day", "Account", "Peer", "Accepted", "Taken by peers", "Delivered", "From handsets"],
                &rows,
                &html! { h3 { "Nothing yet" } p { "Messages are counted when they are archived." } },
            ))
        }
    })
}

/// The day of a time.
fn day(start: &Value) -> Markup {
    match start.as_str().and_then(|start| start.get(..10)) {
        Some(date) => html! { time datetime=(date) { (date) } },
        None => time_of(start),
    }
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
        html! { (count(either(&one["mo"], "accepted").as_u64().unwrap_or(0))) },
    ]
}
