//! Number pools: how their numbers stand, and what happened to them.

use crate::ask::{Refusal, part, with_query};
use crate::chart::bar;
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, page};
use crate::table::{facts, more, table};
use crate::visit::Visit;
use crate::words::{ago, count, number, plural, span, state, text, time_of};
use axum::extract::{Path, Query};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

const STATES: &[&str] = &["idle+up", "busy+up", "idle+down", "busy+down"];

pub(crate) async fn show(visit: Visit) -> Response {
    let body = visit.get::<Value>("/v1/pools").await.map(|found| list(&found));
    page(&visit, "Number pools", Room::Pools, body)
}

fn standing(pool: &Value) -> Markup {
    let numbers = &pool["numbers"];
    let parts = [
        ("good", number(numbers, "idle+up")),
        ("busy", number(numbers, "busy+up")),
        ("warn", number(numbers, "idle+down") + number(numbers, "busy+down")),
    ];
    bar("Share of numbers that are free, in use and down", &parts)
}

fn list(found: &Value) -> Markup {
    let pools = found["pools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = pools
        .iter()
        .map(|pool| {
            let (name, numbers) = (text(pool, "name"), &pool["numbers"]);
            vec![
                html! { a href=(format!("/pools/{}", part(name))) { (name) } },
                html! { (count(number(numbers, "total"))) },
                html! { (count(number(pool, "ready"))) },
                html! { (count(number(numbers, "busy+up") + number(numbers, "busy+down"))) },
                html! { (count(number(numbers, "idle+down") + number(numbers, "busy+down"))) },
                html! { (text(&pool["settings"], "strategy")) },
                standing(pool),
            ]
        })
        .collect();
    let empty = html! { h2 { "No number pools yet" } p { "A pool holds numbers that many share, each held by one at a time. " code { "switchyard pool add NAME NUMBER…" } " makes one." } };
    html! {
        h1 { "Number pools" }
        section.card { (table("Pools", &["Pool", "Numbers", "Ready", "In use", "Down", "Given by", "Standing"], &rows, &empty)) }
    }
}

pub(crate) async fn one(visit: Visit, Path(pool): Path<String>, Query(query): Asked) -> Response {
    let body = detail(&visit, &pool, &Form::of(query)).await;
    page(&visit, &format!("Pool {pool}"), Room::Pools, body)
}

async fn detail(visit: &Visit, name: &str, query: &Form) -> Result<Markup, Refusal> {
    let path = format!("/v1/pools/{}", part(name));
    let (wanted, prefix) = (query.text("state"), query.text("prefix"));
    let asked = [("state", wanted), ("prefix", prefix), ("limit", "100"), ("cursor", query.text("cursor"))];
    let (numbers, journal) =
        (with_query(&format!("{path}/numbers"), &asked), format!("{path}/history?limit=20"));
    let (pool, numbers, journal) =
        tokio::join!(visit.get::<Value>(&path), visit.get::<Value>(&numbers), visit.get::<Value>(&journal));
    let (pool, numbers, journal) = (pool?, numbers?, journal?);
    let rows: Vec<_> = numbers["numbers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            vec![
                html! { (text(one, "number")) },
                state(text(one, "state")),
                html! { @match one["holder"].as_str() { Some(holder) => { (holder) } None => { "—" } } @if let Some(id) = one["message"].as_str() { " " a href=(format!("/messages/{}", part(id))) { code { (id) } } } },
                html! { (ago(number(one, "since"))) },
                html! { (count(number(one, "calls"))) },
                html! { (one["reason"].as_str().unwrap_or("—")) },
            ]
        })
        .collect();
    let events: Vec<_> = journal["entries"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            vec![
                time_of(&entry["at"]),
                html! { (text(entry, "event")) },
                html! { (text(entry, "number")) },
                state(text(entry, "state")),
                html! { (entry["by"].as_str().unwrap_or("time")) },
            ]
        })
        .collect();
    let next = numbers["next"].as_u64().map(|next| next.to_string());
    Ok(html! {
        h1 { "Pool " (name) }
        section.card {
            (standing(&pool))
            (facts(&[
                ("Numbers", html! { (count(number(&pool["numbers"], "total"))) }),
                ("Ready", html! { (count(number(&pool, "ready"))) }),
                ("Given by", html! { (text(&pool["settings"], "strategy")) }),
                ("Rest after a call", html! { (span(number(&pool["settings"], "quarantine-ms"))) }),
                ("Given", html! { (plural(number(&pool, "given"), "time", "times")) }),
                ("None was free", html! { (plural(number(&pool, "none"), "time", "times")) }),
                ("Leases that ended by themselves", html! { (count(number(&pool, "lapsed"))) }),
            ]))
        }
        form.card.search method="get" action=(format!("/pools/{}", part(name))) role="search" aria-label="Numbers" {
            p { label for="state" { "State" } select #state name="state" { option value="" { "any" } @for one in STATES { option value=(one) selected[wanted == *one] { (one) } } } }
            p { label for="prefix" { "Begins with" } input #prefix name="prefix" value=(prefix) inputmode="tel" autocomplete="off"; }
            p.do { button type="submit" { "Filter" } }
        }
        section.card {
            h2 { "Numbers" }
            (table("Numbers", &["Number", "State", "Held by", "Since", "Calls", "Why down"], &rows, &html! { p { "No number is like that." } }))
        }
        @if let Some(next) = &next { (more(&format!("/pools/{}", part(name)), &[("state", wanted), ("prefix", prefix), ("cursor", next)])) }
        section.card {
            h2 { "What happened last" }
            (table("Events, newest first", &["When", "What", "Number", "State then", "By"], &events, &html! { p { "Nothing yet." } }))
        }
    })
}
