//! The ledger: what accounts have, what is reserved, and what was done to their balances.

use crate::ask::{Refusal, Sent, part};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, csrf, page, trouble};
use crate::table::{Part, facts, more, table};
use crate::visit::Visit;
use crate::words::{money, now, number, plural, text, time_of};
use axum::extract::{Path, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations on a page.
const PAGE: usize = 50;

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    let body = visit.get::<Value>("/v1/ledger").await.map(|found| list(&visit, &found, &Form::of(query)));
    page(&visit, "Ledger", Room::Ledger, body)
}

fn amount(value: &Value, name: &str) -> Markup {
    html! { (money(value[name].as_i64().unwrap_or(0))) }
}

fn list(visit: &Visit, found: &Value, query: &Form) -> Markup {
    let all = found["accounts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let wanted = query.text("q").to_lowercase();
    let spent = query.text("only") == "spent";
    // What is left, the credit with it, is nothing or less.
    let is_spent = |one: &Value| {
        one["balance"].as_i64().unwrap_or(0).saturating_add(one["credit"].as_i64().unwrap_or(0)) <= 0
    };
    let chosen: Vec<&Value> = all
        .iter()
        .filter(|one| wanted.is_empty() || text(one, "account").to_lowercase().contains(&wanted))
        .filter(|one| !spent || is_spent(one))
        .collect();
    let shown = Part::new(chosen.len(), query.text("page"));
    let rows: Vec<_> = chosen[shown.from..shown.upto]
        .iter()
        .map(|one| {
            vec![
                html! { a href=(format!("/ledger/{}", part(text(one, "account")))) { (text(one, "account")) } },
                html! { (amount(one, "balance")) @if is_spent(one) { " " span.badge.bad { "spent" } } },
                amount(one, "reserved"),
                amount(one, "captured"),
                amount(one, "funded"),
                amount(one, "credit"),
            ]
        })
        .collect();
    let narrowed = !wanted.is_empty() || spent;
    let empty = html! {
        @if narrowed {
            h2 { "None is like that" }
            p { a href="/ledger" { "Show all of them" } }
        } @else {
            h2 { "No ledger accounts yet" }
            p { "A ledger account pays for messages, where a biller prices them. It begins with its credit." }
        }
    };
    html! {
        h1 { "Ledger" }
        form.card.search method="get" action="/ledger" role="search" aria-label="Ledger accounts" {
            p { label for="q" { "Account" } input #q name="q" type="search" value=(query.text("q")); }
            p { label for="only" { "Standing" } select #only name="only" { option value="" { "any" } option value="spent" selected[spent] { "nothing left" } } }
            p.do { button type="submit" { "Filter" } }
        }
        section.card {
            (table("Ledger accounts", &["Account", "Balance", "Reserved", "Paid so far", "Put in so far", "Credit"], &rows, &empty))
            @let unsettled = number(found, "unsettled");
            @if unsettled > 0 { p.muted { (plural(unsettled, "message is", "messages are")) " on the way with a price that is reserved, and neither paid nor given back yet." } }
        }
        (shown.links("/ledger", &[("q", query.text("q")), ("only", query.text("only"))]))
        @if visit.may("manage-money") { (opening(visit)) }
    }
}

fn opening(visit: &Visit) -> Markup {
    html! {
        details.card {
            summary { "Open an account" }
            form.fields method="post" action="/ledger/new" {
                (csrf(visit))
                (key())
                p { label for="account" { "Account" } input #account name="account" required maxlength="64" autocomplete="off" spellcheck="false" aria-describedby="account-hint"; small #account-hint { "As the biller names it: mostly the name of the account that sends." } }
                p { label for="amount" { "Credit" } input #amount name="amount" value="0" required inputmode="decimal" autocomplete="off" aria-describedby="amount-hint"; small #amount-hint { "How far below zero it may go: 25.50" } }
                p { label for="why" { "Why" } input #why name="why" required maxlength="256" autocomplete="off"; }
                p.do { button.primary type="submit" name="do" value="credit" { "Open it" } }
            }
        }
    }
}

/// A word by which the API knows a form that is sent twice.
fn key() -> Markup {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let drawn = DRAWN.fetch_add(1, Ordering::Relaxed);
    html! { input type="hidden" name="key" value=(format!("console-{}-{drawn}", now())); }
}

pub(crate) async fn one(visit: Visit, Path(account): Path<String>, Query(query): Asked) -> Response {
    draw(&visit, &account, &Form::of(query), None).await
}

async fn draw(visit: &Visit, account: &str, form: &Form, refusal: Option<&Refusal>) -> Response {
    let body = detail(visit, account, form, refusal).await;
    let mut response = page(visit, &format!("Ledger: {account}"), Room::Ledger, body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

async fn detail(
    visit: &Visit,
    account: &str,
    form: &Form,
    refusal: Option<&Refusal>,
) -> Result<Markup, Refusal> {
    let path = format!("/v1/ledger/{}", part(account));
    let limit = PAGE.to_string();
    let done = crate::ask::with_query(
        &format!("{path}/operations"),
        &[("limit", &limit), ("before", form.text("before"))],
    );
    let (found, done) = tokio::join!(visit.get::<Value>(&path), visit.get::<Vec<Value>>(&done));
    let (found, done) = (found?, done?);
    let rows: Vec<_> = done.iter().map(operation).collect();
    let next = (done.len() == PAGE).then(|| done.last().map(|last| number(last, "serial").to_string()));
    Ok(html! {
        h1 { "Ledger: " (account) }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        section.card {
            p.price { (amount(&found, "balance")) }
            (facts(&[
                ("Reserved for messages on their way", amount(&found, "reserved")),
                ("Paid so far", amount(&found, "captured")),
                ("Put in so far", amount(&found, "funded")),
                ("May go below zero by", amount(&found, "credit")),
            ]))
        }
        @if visit.may("manage-money") { (changing(visit, account, form, refusal.is_some())) }
        section.card {
            h2 { "What was done to it" }
            (table("Operations, newest first", &["When", "What", "Balance then", "By", "Why"], &rows, &html! { p { "Nothing yet." } }))
        }
        @if let Some(Some(next)) = &next { (more(&format!("/ledger/{}", part(account)), &[("before", next)])) }
    })
}

fn operation(one: &Value) -> Vec<Markup> {
    vec![
        time_of(&one["at"]),
        html! {
            @match (one["fund"].as_i64(), one["credit"].as_i64()) {
                (Some(fund), _) if fund < 0 => { "taken back " (money(fund.saturating_neg())) }
                (Some(fund), _) => { "put in " (money(fund)) }
                (None, Some(credit)) => { "credit set to " (money(credit)) }
                (None, None) => { "—" }
            }
        },
        amount(&one["after"], "balance"),
        html! { (text(one, "actor")) },
        html! { (text(one, "reason")) },
    ]
}

fn changing(visit: &Visit, account: &str, form: &Form, again: bool) -> Markup {
    html! {
        section.card {
            h2 { "Change it" }
            form.fields method="post" action=(format!("/ledger/{}", part(account))) {
                (csrf(visit))
                (key())
                p { label for="amount" { "Amount" } input #amount name="amount" value=(if again { form.text("amount") } else { "" }) required inputmode="decimal" autocomplete="off" aria-describedby="amount-hint"; small #amount-hint { "25.50, or with up to six digits after the point" } }
                p { label for="why" { "Why" } input #why name="why" value=(if again { form.text("why") } else { "" }) required maxlength="256" autocomplete="off" aria-describedby="why-hint"; small #why-hint { "Kept for the audit." } }
                p.do {
                    button.primary type="submit" name="do" value="fund" { "Put it in" }
                    button type="submit" name="do" value="take" { "Take it back" }
                    button type="submit" name="do" value="credit" { "Set the credit to it" }
                }
            }
        }
    }
}

/// An amount as people write it, in millionths.
fn millionths(text: &str) -> Option<i64> {
    let text = text.trim().replace(',', ".");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = |text: &str| text.bytes().all(|octet| octet.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    let fraction = format!("{fraction:0<6}").parse::<i64>().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(fraction)
}

pub(crate) async fn change(visit: Visit, Path(place): Path<String>, form: Form) -> Response {
    let is_new = place == "new" && !form.text("account").is_empty();
    let account = if is_new { form.text("account") } else { &place };
    match changed(&visit, account, &form).await {
        Ok(()) => Visit::to(&format!("/ledger/{}", part(account)), "funded"),
        Err(refusal) if is_new => page(&visit, "Ledger", Room::Ledger, Err(refusal)),
        Err(refusal) => draw(&visit, account, &form, Some(&refusal)).await,
    }
}

async fn changed(visit: &Visit, account: &str, form: &Form) -> Result<(), Refusal> {
    let amount = millionths(form.text("amount"))
        .ok_or_else(|| Refusal::bad("The amount is a number such as 25.50, and not negative."))?;
    let change = match form.text("do") {
        "fund" => ("fund", amount),
        "take" => ("fund", -amount),
        "credit" => ("credit", amount),
        _ => return Err(Refusal::bad("That cannot be done to a balance.")),
    };
    let mut wish = json!({ "actor": visit.who.user, "reason": form.text("why") });
    wish[change.0] = change.1.into();
    let mut sent = Sent::json(form.text("csrf"), &wish);
    sent.headers.push(("idempotency-key", form.text("key").to_owned()));
    visit.asker.ask(Method::POST, &format!("/v1/ledger/{}", part(account)), sent).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_to_the_millionth_and_nothing_is_guessed() {
        for (text, want) in [
            ("25.50", Some(25_500_000)),
            (" 1 ", Some(1_000_000)),
            ("0,000001", Some(1)),
            (".5", Some(500_000)),
            ("-1", None),
            ("1e3", None),
            ("0.0000001", None),
            ("", None),
            (".", None),
            ("1.2.3", None),
            ("99999999999999", None),
        ] {
            assert_eq!(millionths(text), want, "{text:?}");
        }
    }
}
