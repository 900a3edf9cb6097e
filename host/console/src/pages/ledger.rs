//! The ledger: balances of accounts, reservations and operations.

use crate::api_caller::{ApiError, ApiRequest, encode_segment};
use crate::csv_export::{csv_file, export_link};
use crate::form::Form;
use crate::format::{count, decimal, money, now, plural, time_tag};
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Column, Pagination, detail_list, next_page_link, numeric_table};
use api::{BalanceView, BalancesView, LedgerChangeRequest, LedgerOperationView, Permission};
use axum::extract::{Path, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of operations on a page.
const PAGE_SIZE: usize = 50;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let body =
        context.get::<BalancesView>("/v1/ledger").await.map(|found| list(&context, &found, &Form::of(query)));
    page(&context, "Ledger", NavItem::Ledger, body)
}

fn amount(millionths: impl TryInto<i64>) -> Markup {
    html! { (money(millionths.try_into().unwrap_or(i64::MAX))) }
}

/// An account is spent if balance and credit together are zero or less.
fn is_spent(one: &BalanceView) -> bool {
    one.balance.saturating_add_unsigned(one.credit) <= 0
}

/// The ledger accounts that match a filter, spent ones first.
fn chosen<'a>(found: &'a BalancesView, query: &Form) -> Vec<&'a BalanceView> {
    let filter = query.text("q").to_lowercase();
    let only_spent = query.text("only") == "spent";
    let mut chosen: Vec<&BalanceView> = found
        .accounts
        .iter()
        .filter(|one| filter.is_empty() || one.account.to_lowercase().contains(&filter))
        .filter(|one| !only_spent || is_spent(one))
        .collect();
    chosen.sort_by(|a, b| (!is_spent(a), &a.account).cmp(&(!is_spent(b), &b.account)));
    chosen
}

/// The ledger accounts of a filter as CSV; amounts in the operator's currency.
pub(crate) async fn export(context: RequestContext, Query(query): QueryParams) -> Response {
    let found = match context.get::<BalancesView>("/v1/ledger").await {
        Ok(found) => found,
        Err(error) => return page(&context, "Ledger", NavItem::Ledger, Err(error)),
    };
    let rows: Vec<Vec<String>> = chosen(&found, &Form::of(query))
        .into_iter()
        .map(|one| {
            let unsigned = |amount: u64| decimal(i64::try_from(amount).unwrap_or(i64::MAX));
            vec![
                one.account.clone(),
                decimal(one.balance),
                unsigned(one.reserved),
                unsigned(one.captured),
                decimal(one.funded),
                unsigned(one.credit),
            ]
        })
        .collect();
    csv_file("ledger.csv", &["account", "balance", "reserved", "captured", "funded", "credit"], &rows)
}

fn list(context: &RequestContext, found: &BalancesView, query: &Form) -> Markup {
    let only_spent = query.text("only") == "spent";
    let chosen = chosen(found, query);
    let shown = Pagination::new(chosen.len(), query.text("page"));
    let rows: Vec<_> = chosen[shown.from..shown.upto]
        .iter()
        .map(|one| {
            vec![
                html! { a href=(format!("/ledger/{}", encode_segment(&one.account))) { (one.account) } @if is_spent(one) { " " span.badge.bad { "spent" } } },
                amount(one.balance),
                amount(one.reserved),
                amount(one.captured),
                amount(one.funded),
                amount(one.credit),
            ]
        })
        .collect();
    let narrowed = !query.text("q").is_empty() || only_spent;
    let empty = html! {
        @if narrowed {
            h2 { "No matches" }
            p { a href="/ledger" { "Show all" } }
        } @else {
            h2 { "No ledger accounts yet" }
            p { "A ledger account is charged for messages that a biller prices. It is created with a credit." }
        }
    };
    let columns = [
        Column::Text("Account"),
        Column::Number("Balance"),
        Column::Number("Reserved"),
        Column::Number("Captured"),
        Column::Number("Funded"),
        Column::Number("Credit"),
    ];
    let spent = found.accounts.iter().filter(|one| is_spent(one)).count() as u64;
    let balance = chosen.iter().fold(0_i64, |sum, one| sum.saturating_add(one.balance));
    let parameters = [("q", query.text("q")), ("only", query.text("only"))];
    html! {
        h1 { "Ledger" }
        form.card.search method="get" action="/ledger" role="search" aria-label="Ledger accounts" {
            p { label for="q" { "Account" } input #q name="q" type="search" value=(query.text("q")); }
            p { label for="only" { "State" } select #only name="only" { option value="" { "any" } option value="spent" selected[only_spent] { "spent" } } }
            p.actions { button type="submit" { "Filter" } }
        }
        div.tools {
            p.muted {
                (plural(chosen.len() as u64, "account", "accounts"))
                @if narrowed { " of " (count(found.accounts.len() as u64)) }
                @if spent > 0 { ", " (count(spent)) " spent" }
                "; balances together " (money(balance))
            }
            (export_link("/ledger.csv", &parameters))
        }
        section.card {
            (numeric_table("Ledger accounts, spent ones first", &columns, &rows, &empty))
            @if let Some(unsettled) = found.unsettled.filter(|count| *count > 0) { p.muted { (plural(unsettled, "message is", "messages are")) " in flight with a reserved price that is not captured or released yet." } }
        }
        (shown.links("/ledger", &parameters))
        @if context.has_permission(Permission::ManageMoney) { (open_form(context)) }
    }
}

fn open_form(context: &RequestContext) -> Markup {
    html! {
        details.card {
            summary { "Open a ledger account" }
            form.fields method="post" action="/ledger/new" {
                (csrf_field(context))
                (idempotency_key_field())
                p { label for="account" { "Account" } input #account name="account" required maxlength="64" autocomplete="off" spellcheck="false" aria-describedby="account-hint"; small #account-hint { "The name that the biller uses: usually the name of the sending account." } }
                p { label for="amount" { "Credit" } input #amount name="amount" value="0" required inputmode="decimal" autocomplete="off" aria-describedby="amount-hint"; small #amount-hint { "How far below zero the balance may go: 25.50" } }
                p { label for="why" { "Why" } input #why name="why" required maxlength="256" autocomplete="off"; }
                p.actions { button.primary type="submit" name="do" value="credit" { "Open" } }
            }
        }
    }
}

/// The hidden field with the idempotency key, so that a form that is sent twice is applied once.
fn idempotency_key_field() -> Markup {
    static KEYS_ISSUED: AtomicU64 = AtomicU64::new(0);
    let serial = KEYS_ISSUED.fetch_add(1, Ordering::Relaxed);
    html! { input type="hidden" name="idempotency-key" value=(format!("console-{}-{serial}", now())); }
}

pub(crate) async fn one(
    context: RequestContext,
    Path(account): Path<String>,
    Query(query): QueryParams,
) -> Response {
    render(&context, &account, &Form::of(query), None).await
}

async fn render(context: &RequestContext, account: &str, form: &Form, error: Option<&ApiError>) -> Response {
    let body = detail(context, account, form, error).await;
    let mut response = page(context, &format!("Ledger: {account}"), NavItem::Ledger, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

async fn detail(
    context: &RequestContext,
    account: &str,
    form: &Form,
    error: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let path = format!("/v1/ledger/{}", encode_segment(account));
    let limit = PAGE_SIZE.to_string();
    let done = crate::api_caller::with_query(
        &format!("{path}/operations"),
        &[("limit", &limit), ("before", form.text("before"))],
    );
    let (found, done) =
        tokio::join!(context.get::<BalanceView>(&path), context.get::<Vec<LedgerOperationView>>(&done));
    let (found, done) = (found?, done?);
    let rows: Vec<_> = done.iter().map(operation).collect();
    let next = (done.len() == PAGE_SIZE).then(|| done.last().map(|last| last.serial.to_string()));
    Ok(html! {
        h1 { "Ledger: " (account) }
        @if let Some(error) = error { (error_notice(error)) }
        section.card {
            p.price { (amount(found.balance)) }
            (detail_list(&[
                ("Reserved for messages in flight", amount(found.reserved)),
                ("Captured", amount(found.captured)),
                ("Funded", amount(found.funded)),
                ("Credit", amount(found.credit)),
            ]))
        }
        @if context.has_permission(Permission::ManageMoney) { (change_form(context, account, form, error.is_some())) }
        section.card {
            h2 { "Operations" }
            (numeric_table("Operations, newest first", OPERATION_COLUMNS, &rows, &html! { p { "No operations yet." } }))
        }
        @if let Some(Some(next)) = &next { (next_page_link(&format!("/ledger/{}", encode_segment(account)), &[("before", next)])) }
    })
}

const OPERATION_COLUMNS: &[Column<'static>] = &[
    Column::Text("When"),
    Column::Text("What"),
    Column::Number("Balance after"),
    Column::Text("By"),
    Column::Text("Reason"),
];

fn operation(done: &LedgerOperationView) -> Vec<Markup> {
    vec![
        time_tag(done.at),
        html! {
            @match (done.fund, done.credit) {
                (Some(fund), _) if fund < 0 => { "reduced by " (money(fund.saturating_neg())) }
                (Some(fund), _) => { "funded " (money(fund)) }
                (None, Some(credit)) => { "credit set to " (amount(credit)) }
                (None, None) => { "—" }
            }
        },
        amount(done.after.balance),
        html! { (done.actor) },
        html! { (done.reason) },
    ]
}

fn change_form(context: &RequestContext, account: &str, form: &Form, again: bool) -> Markup {
    html! {
        section.card {
            h2 { "Change the balance" }
            form.fields method="post" action=(format!("/ledger/{}", encode_segment(account))) {
                (csrf_field(context))
                (idempotency_key_field())
                p { label for="amount" { "Amount" } input #amount name="amount" value=(if again { form.text("amount") } else { "" }) required inputmode="decimal" autocomplete="off" aria-describedby="amount-hint"; small #amount-hint { "25.50, or with up to six digits after the point" } }
                p { label for="why" { "Why" } input #why name="why" value=(if again { form.text("why") } else { "" }) required maxlength="256" autocomplete="off" aria-describedby="why-hint"; small #why-hint { "Recorded in the audit log." } }
                p.actions {
                    button.primary type="submit" name="do" value="fund" { "Add to the balance" }
                    button type="submit" name="do" value="take" { "Take from the balance" }
                    button type="submit" name="do" value="credit" { "Set as credit" }
                }
            }
        }
    }
}

/// Parses an amount; the result is in millionths.
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

pub(crate) async fn change(context: RequestContext, Path(path_name): Path<String>, form: Form) -> Response {
    let is_new = path_name == "new" && !form.text("account").is_empty();
    let account = if is_new { form.text("account") } else { &path_name };
    match apply_change(&context, account, &form).await {
        Ok(()) => RequestContext::redirect(&format!("/ledger/{}", encode_segment(account)), "funded"),
        Err(error) if is_new => page(&context, "Ledger", NavItem::Ledger, Err(error)),
        Err(error) => render(&context, account, &form, Some(&error)).await,
    }
}

async fn apply_change(context: &RequestContext, account: &str, form: &Form) -> Result<(), ApiError> {
    let amount = millionths(form.text("amount"))
        .ok_or_else(|| ApiError::bad_request("The amount is a number such as 25.50, and not negative."))?;
    let (fund, credit) = match form.text("do") {
        "fund" => (Some(amount), None),
        "take" => (Some(-amount), None),
        "credit" => (None, Some(amount.unsigned_abs())),
        _ => return Err(ApiError::bad_request("This action does not exist.")),
    };
    let (actor, reason) = (Some(context.principal.user.clone()), Some(form.text("why").to_owned()));
    let request = LedgerChangeRequest { fund, credit, actor, reason };
    let mut sent = ApiRequest::json(form.text("csrf"), &request);
    sent.headers.push(("idempotency-key", form.text("idempotency-key").to_owned()));
    context
        .api_caller
        .call(Method::POST, &format!("/v1/ledger/{}", encode_segment(account)), sent)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_parsed_exactly() {
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
