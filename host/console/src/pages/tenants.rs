//! Tenants and their accounts: rates, messages of the day, prices and balances.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{count, money, time_tag};
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Column, Pagination, numeric_table};
use api::{AccountInfo, BalanceView, BalancesView, DayQuotaView, TenantView};
use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};

const PATH: &str = "/tenants";

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    page(&context, "Tenants", NavItem::Tenants, page_body(&context, &Form::of(query)).await)
}

/// The body of the page. `query` has the page number, which applies to both lists.
async fn page_body(context: &RequestContext, query: &Form) -> Result<Markup, ApiError> {
    let (tenants, accounts, balances) = tokio::join!(
        context.get::<Vec<TenantView>>("/v1/tenants"),
        context.get::<Vec<AccountInfo>>("/v1/accounts"),
        context.get::<BalancesView>("/v1/ledger"),
    );
    let (tenants, accounts, balances) = (tenants?, accounts?, balances?.accounts);
    let balance = |name: &str| balances.iter().find(|one| one.account == name);
    let shown_tenants = Pagination::new(tenants.len(), query.text("page"));
    let shown_accounts = Pagination::new(accounts.len(), query.text("page"));
    let tenant_rows: Vec<_> = tenants[shown_tenants.from..shown_tenants.upto]
        .iter()
        .map(|tenant| tenant_row(tenant, balance(&tenant.name)))
        .collect();
    let account_rows: Vec<_> = accounts[shown_accounts.from..shown_accounts.upto]
        .iter()
        .map(|account| account_row(account, balance(&account.name)))
        .collect();
    let tenant_columns = [
        Column::Text("Tenant"),
        Column::Text("Parent"),
        Column::Number("Accounts"),
        Column::Number("Messages a second"),
        Column::Number("Messages today"),
        Column::Text("Day ends"),
        Column::Number("Highest price"),
        Column::Number("Available"),
    ];
    let account_columns = [
        Column::Text("Account"),
        Column::Text("Tenant"),
        Column::Number("Messages today"),
        Column::Text("Day ends"),
        Column::Number("Available"),
    ];
    let no_tenants = html! {
        h2 { "None yet" }
        p { "A tenant is a customer with accounts and users of its own, and perhaps tenants below it. " code { "[[tenant]]" } " in the configuration defines one." }
    };
    Ok(html! {
        h1 { "Tenants" }
        section.card { (numeric_table("Tenants", &tenant_columns, &tenant_rows, &no_tenants)) }
        (shown_tenants.links(PATH, &[]))
        section.card {
            h2 { "Accounts" }
            (numeric_table("Accounts", &account_columns, &account_rows, &html! { p { "There are no accounts." } }))
        }
        (shown_accounts.links(PATH, &[]))
    })
}

fn tenant_row(tenant: &TenantView, balance: Option<&BalanceView>) -> Vec<Markup> {
    vec![
        html! { (tenant.name) },
        html! { (tenant.parent.as_deref().unwrap_or("—")) },
        html! { (count(tenant.accounts.len() as u64)) },
        html! { @match tenant.rate { Some(rate) => { (rate) } None => { "—" } } },
        today(tenant.messages_per_day),
        day_ends(tenant.messages_per_day),
        html! { @match tenant.max_price { Some(price) => { (money(i64::try_from(price).unwrap_or(i64::MAX))) } None => { "—" } } },
        // A tenant that is charged without a ledger account can pay nothing.
        html! { @if tenant.charged && balance.is_none() { span.badge.bad { "no ledger account" } } @else { (available(balance)) } },
    ]
}

fn account_row(account: &AccountInfo, balance: Option<&BalanceView>) -> Vec<Markup> {
    let messages = format!("/messages?account={}", encode_segment(&account.name));
    vec![
        html! { a href=(messages) { (account.name) } },
        html! { (account.tenant.as_deref().unwrap_or("—")) },
        today(account.messages_per_day),
        day_ends(account.messages_per_day),
        available(balance),
    ]
}

/// The number of messages of the day, and the day quota.
fn today(quota: Option<DayQuotaView>) -> Markup {
    html! {
        @match quota {
            Some(quota) => { (count(quota.accepted)) " of " (count(quota.limit)) @if quota.accepted >= quota.limit { " " span.badge.bad { "used up" } } }
            None => { "—" }
        }
    }
}

fn day_ends(quota: Option<DayQuotaView>) -> Markup {
    html! { @match quota { Some(quota) => { (time_tag(quota.day_ends)) } None => { "—" } } }
}

/// The amount that a ledger account can still pay: balance plus credit limit.
fn available(balance: Option<&BalanceView>) -> Markup {
    html! {
        @match balance {
            Some(one) => { a href=(format!("/ledger/{}", encode_segment(&one.account))) { (money(one.balance.saturating_add_unsigned(one.credit))) } }
            None => { "—" }
        }
    }
}
