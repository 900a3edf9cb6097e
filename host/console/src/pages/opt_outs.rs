//! Subscribers who have told senders to stop.

use crate::ask::Refusal;
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, button, csrf, page, trouble};
use crate::table::{Part, table};
use crate::visit::Visit;
use crate::words::text;
use axum::extract::Query;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

/// So many the API tells of; whoever has more is told so.
const TOLD: usize = 1_000;

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    draw(&visit, &Form::of(query), None).await
}

async fn draw(visit: &Visit, query: &Form, refusal: Option<&Refusal>) -> Response {
    let body = visit.get::<Value>("/v1/opt-outs").await.map(|found| parts(visit, &found, query, refusal));
    let mut response = page(visit, "Opt-outs", Room::OptOuts, body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

fn parts(visit: &Visit, found: &Value, query: &Form, refusal: Option<&Refusal>) -> Markup {
    let all = found["stopped"].as_array().map(Vec::as_slice).unwrap_or_default();
    let wanted = query.text("q");
    let fits = |one: &&Value| {
        wanted.is_empty() || text(one, "sender").contains(wanted) || text(one, "subscriber").contains(wanted)
    };
    let chosen: Vec<&Value> = all.iter().filter(fits).collect();
    let shown = Part::new(chosen.len(), query.text("page"));
    let operates = visit.may("operate");
    let rows: Vec<_> = chosen[shown.from..shown.upto]
        .iter()
        .map(|one| {
            let (sender, subscriber) = (text(one, "sender"), text(one, "subscriber"));
            let mut row = vec![html! { (subscriber) }, html! { (sender) }];
            if operates {
                let fields = [("sender", sender), ("subscriber", subscriber), ("do", "go-on")];
                row.push(button(visit, "/opt-outs", "Let it go on", "", &fields));
            }
            row
        })
        .collect();
    let mut heads = vec!["Subscriber", "Gets nothing from"];
    if operates {
        heads.push("End it");
    }
    let empty = html! {
        @if wanted.is_empty() {
            h2 { "Nobody has opted out" }
            p { "Who answers a sender with one of the words that the configuration names for it is listed here, and gets nothing more from it." }
        } @else { h2 { "None is like that" } p { a href="/opt-outs" { "Show all of them" } } }
    };
    html! {
        h1 { "Opt-outs" }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        form.card.search method="get" action="/opt-outs" role="search" aria-label="Opt-outs" {
            p { label for="q" { "Number" } input #q name="q" type="search" value=(wanted) inputmode="tel" autocomplete="off"; }
            p.do { button type="submit" { "Filter" } }
        }
        section.card {
            (table("Opt-outs", &heads, &rows, &empty))
            @if all.len() >= TOLD { p.muted { "These are the first " (crate::words::count(TOLD as u64)) "; there are more." } }
        }
        (shown.links("/opt-outs", &[("q", wanted)]))
        @if operates { (adding(visit)) }
    }
}

fn adding(visit: &Visit) -> Markup {
    html! {
        details.card {
            summary { "Stop a sender for a subscriber" }
            form.fields method="post" action="/opt-outs" {
                (csrf(visit))
                p { label for="subscriber" { "Subscriber" } input #subscriber name="subscriber" required maxlength="21" inputmode="tel" autocomplete="off"; }
                p { label for="sender" { "Sender" } input #sender name="sender" required maxlength="21" autocomplete="off" spellcheck="false"; }
                p.do { button.primary type="submit" name="do" value="stop" { "Stop it" } }
            }
        }
    }
}

pub(crate) async fn change(visit: Visit, form: Form) -> Response {
    let stop = form.text("do") == "stop";
    let wish = json!({ "sender": form.text("sender"), "subscriber": form.text("subscriber"), "stop": stop });
    match visit.send(Method::POST, "/v1/opt-outs", &form, Some(&wish)).await {
        Ok(_) => Visit::to("/opt-outs", if stop { "stopped" } else { "goes-on" }),
        Err(refusal) => draw(&visit, &Form::default(), Some(&refusal)).await,
    }
}
