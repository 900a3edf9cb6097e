//! Orders: what admins have said about messages that wait, and what they hold.

use crate::ask::{Refusal, part};
use crate::form::Form;
use crate::pages::queues;
use crate::shell::{button, csrf, problems, trouble};
use crate::table::table;
use crate::visit::Visit;
use crate::words::{ago, count, either, number, plural, state, text, time_of};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

/// What can be ordered, with what it means.
const KINDS: &[(&str, &str)] = &[
    ("suspend", "Suspend: nothing is sent until it is resumed"),
    ("drain", "Drain: nothing new is taken, what waits goes out"),
    ("rebind", "Move to another peer"),
    ("cancel", "Cancel: they end, and their submitters are told"),
    ("purge", "Purge: they end, and nobody is told"),
];

/// What the page says beside what there is.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) form: Form,
    pub(crate) refusal: Option<Refusal>,
    /// What an order would hold.
    pub(crate) preview: Option<Value>,
}

/// The orders that stand, and the ways to end them.
pub(crate) async fn standing(visit: &Visit) -> Markup {
    let orders = match visit.get::<Vec<Value>>("/v1/orders").await {
        Ok(orders) => orders,
        Err(refusal) => return trouble(&refusal),
    };
    let rows: Vec<_> = orders.iter().take(crate::table::MOST).map(|order| row(visit, order)).collect();
    let empty = html! { p { "No order stands: messages go their way." } };
    table(
        "Orders, newest first",
        &["Order", "About", "Touched", "By", "Why", "State", "When", "End it"],
        &rows,
        &empty,
    )
}

/// The messages that an order is about, in words.
fn about(order: &Value) -> String {
    let place = &order["where"];
    let mut words: Vec<String> = Vec::new();
    for (key, name) in [
        ("peer", "peer"),
        ("account", "account"),
        ("prefix", "numbers that begin with"),
        ("older-than", "older than"),
    ] {
        match either(place, key) {
            Value::Null => {}
            Value::String(what) => words.push(format!("{name} {what}")),
            other => words.push(format!("{name} {other}")),
        }
    }
    let to = order["to"].as_str().map(|to| format!(", to {to}")).unwrap_or_default();
    if words.is_empty() { format!("all messages{to}") } else { format!("{}{to}", words.join(", ")) }
}

fn row(visit: &Visit, order: &Value) -> Vec<Markup> {
    let id = order["id"].as_str().map_or_else(|| order["id"].to_string(), str::to_owned);
    let word = text(order, "state");
    let end = match (text(order, "what"), word) {
        (_, "undo-window") => Some("Undo"),
        ("suspend", "standing") => Some("Resume"),
        (_, "standing") => Some("Withdraw"),
        _ => None,
    };
    vec![
        html! { strong { (text(order, "what")) } },
        html! { (about(order)) },
        html! { (count(number(order, "touched"))) @if number(order, "held") > 0 { ", holds " (count(number(order, "held"))) } },
        html! { (text(order, "by")) },
        html! { (text(order, "why")) },
        html! { (state(word)) @if let Some(at) = either(order, "undo-until").as_u64() && word == "undo-window" { " " span.muted { "ends " (ago(at)) } } },
        time_of(&order["at"]),
        html! {
            @if let Some(end) = end && visit.may("operate") { (button(visit, "/queues/undo", end, "", &[("id", &id)])) } @else { "—" }
        },
    ]
}

/// A form for a new order, with a preview before it stands.
pub(crate) fn form(visit: &Visit, said: &Said) -> Markup {
    let given = &said.form;
    let field = |name: &str, label: &str, hint: &str| {
        html! { p { label for=(name) { (label) } input id=(name) name=(name) value=(given.text(name)) autocomplete="off" spellcheck="false" aria-describedby=(format!("{name}-hint")); small id=(format!("{name}-hint")) { (hint) } } }
    };
    let chosen = given.text("what");
    html! {
        @if let Some(refusal) = &said.refusal { (trouble(refusal)) (problems(refusal)) }
        details.card #order open[said.refusal.is_some() || said.preview.is_some() || !chosen.is_empty()] {
            summary { "Give an order" }
            form.fields method="post" action="/queues" {
                (csrf(visit))
                p.wide {
                    label for="what" { "What" }
                    select #what name="what" { @for (value, name) in KINDS { option value=(value) selected[chosen == *value] { (name) } } }
                }
                (field("peer", "For peer", "Or any"))
                (field("account", "From account", "Or any"))
                (field("prefix", "Numbers that begin with", "+4917; or any"))
                (field("older-than", "Older than", "10m, 2h, 1d; or any age"))
                (field("to", "To peer", "Only where they are moved"))
                p {
                    label for="undo-within" { "Can be undone for" }
                    select #undo-within name="undo-within" { @for (value, name) in [("1m", "one minute"), ("10m", "ten minutes"), ("1h", "an hour")] { option value=(value) selected[given.text("undo-within") == value] { (name) } } }
                }
                p.wide { label for="why" { "Why" } input #why name="why" value=(given.text("why")) maxlength="256" autocomplete="off"; }
                @if let Some(preview) = &said.preview { (previewed(preview)) }
                p.do {
                    button type="submit" name="do" value="preview" { "Show what it would touch" }
                    @if said.preview.is_some() { button.danger type="submit" name="do" value="order" { "Give the order" } }
                }
            }
        }
    }
}

fn previewed(preview: &Value) -> Markup {
    let sample = preview["sample"].as_array().map(Vec::as_slice).unwrap_or_default();
    let states = either(preview, "by-state").as_object();
    let rows: Vec<_> = sample
        .iter()
        .take(20)
        .map(|one| {
            let id = text(one, "id");
            vec![
                html! { a href=(format!("/messages/{}", part(id))) { code { (id) } } },
                html! { (text(one, "from")) },
                html! { (text(one, "to")) },
                state(text(one, "state")),
            ]
        })
        .collect();
    html! {
        div.wide.notice.warn role="status" {
            strong { "It would touch " @if preview["complete"].as_bool() == Some(false) { "at least " } (plural(number(preview, "messages"), "message", "messages")) " now, and those that come later." }
            p { @for (word, many) in states.into_iter().flatten() { (state(word)) " " (count(many.as_u64().unwrap_or(0))) " " } }
            @if !rows.is_empty() { (table("Some of them", &["Message", "From", "To", "State"], &rows, &html! {})) }
        }
    }
}

fn wish(form: &Form) -> Result<Value, Refusal> {
    let mut place = Map::new();
    for name in ["peer", "account", "prefix", "older-than"] {
        if !form.text(name).is_empty() {
            place.insert(name.to_owned(), form.text(name).into());
        }
    }
    if place.is_empty() {
        return Err(Refusal::bad("Say which messages: by peer, account, number or age."));
    }
    let what = form.text("what");
    let mut order = json!({ "what": what, "where": place });
    if what == "rebind" {
        order["to"] = form.text("to").into();
    }
    Ok(order)
}

pub(crate) async fn order(visit: Visit, form: Form) -> Response {
    let asked = async {
        let mut wish = wish(&form)?;
        if form.text("do") != "order" {
            return visit
                .send(Method::POST, "/v1/orders/preview", &form, Some(&wish))
                .await?
                .read()
                .map(Some);
        }
        if !form.text("why").is_empty() {
            wish["why"] = form.text("why").into();
        }
        if matches!(form.text("what"), "cancel" | "purge") && !form.text("undo-within").is_empty() {
            wish["undo-within"] = form.text("undo-within").into();
        }
        visit.send(Method::POST, "/v1/orders", &form, Some(&wish)).await?;
        Ok::<Option<Value>, Refusal>(None)
    };
    match asked.await {
        Ok(None) => Visit::to("/queues", "ordered"),
        Ok(preview) => queues::draw(&visit, &Said { form, preview, refusal: None }).await,
        Err(refusal) => queues::draw(&visit, &Said { form, preview: None, refusal: Some(refusal) }).await,
    }
}

pub(crate) async fn undo(visit: Visit, form: Form) -> Response {
    let path = format!("/v1/orders/{}", part(form.text("id")));
    match visit.send(Method::DELETE, &path, &form, None).await {
        Ok(_) => Visit::to("/queues", "undone"),
        Err(refusal) => queues::draw(&visit, &Said { refusal: Some(refusal), ..Said::default() }).await,
    }
}
