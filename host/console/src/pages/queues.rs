//! Queues, and the orders that stand about them.

use crate::ask::{Refusal, part};
use crate::form::Form;
use crate::live::Region;
use crate::pages::Asked;
use crate::pages::orders::{self, Said};
use crate::pages::standing::{Queue, queues};
use crate::shell::{Room, live_page};
use crate::table::table;
use crate::visit::Visit;
use crate::words::{ago, count, plural, sentence};
use axum::extract::Query;
use axum::response::Response;
use maud::html;

/// Queues that are shown: those that most waits in.
const SHOWN: usize = 50;

pub(crate) async fn regions(visit: &Visit) -> Result<Vec<Region>, Refusal> {
    let mut all = queues(visit).await?;
    let empty = all.iter().filter(|queue| queue.waiting() == 0).count();
    all.retain(|queue| queue.waiting() > 0);
    all.sort_by_key(|queue| std::cmp::Reverse(queue.waiting()));
    let busy = all.len();
    let rows: Vec<_> = all.iter().take(SHOWN).map(row).collect();
    let heads =
        &["Queue", "Queued", "Deferred", "On their way", "Uncertain", "Receipts", "Oldest", "What limits it"];
    Ok(vec![(
        "queues",
        html! {
            h2 { "Queues in which messages wait" }
            (table("Queues, the fullest first", heads, &rows, &html! { h3 { "Nothing waits" } p { "All queues are empty." } }))
            p.muted {
                @if busy > SHOWN { "And " (count((busy - SHOWN) as u64)) " more. " }
                @if empty > 0 && busy > 0 { (plural(empty as u64, "other is empty.", "others are empty.")) }
            }
        },
    )])
}

fn row(queue: &Queue) -> Vec<maud::Markup> {
    vec![
        html! {
            a href=(format!("/messages?peer={}", part(&queue.peer))) { (queue.peer) }
            @if !queue.configured { " " span.badge.warn { "not configured" } }
            @else if queue.links == 0 { " " span.badge.bad { "no link" } }
        },
        html! { (count(queue.queued + queue.aside + queue.resolving)) },
        html! { (count(queue.deferred)) },
        html! { (count(queue.in_flight)) },
        html! { (count(queue.uncertain)) },
        html! { (count(queue.awaiting_receipt)) },
        html! { (queue.oldest.map_or_else(|| "—".to_owned(), ago)) },
        html! { (sentence(&queue.brake)) },
    ]
}

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    draw(&visit, &Said { form: Form::of(query), ..Said::default() }).await
}

pub(crate) async fn draw(visit: &Visit, said: &Said) -> Response {
    let body = match tokio::join!(regions(visit), orders::standing(visit)) {
        (Ok(regions), orders) => Ok(html! {
            div.head { h1 { "Queues" } a.button.quiet href="/uncertain" { "Uncertain messages" } }
            @if visit.may("operate") { (orders::form(visit, said)) }
            section.card #orders { h2 { "Orders that stand" } (orders) }
            @for (id, part) in regions { section.card id=(id) { (part) } }
        }),
        (Err(refusal), _) => Err(refusal),
    };
    let mut response = live_page(visit, "Queues", Room::Queues, Some("/live?of=queues"), body);
    if let Some(refusal) = &said.refusal {
        *response.status_mut() = refusal.status;
    }
    response
}
