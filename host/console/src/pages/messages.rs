//! The search for messages.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::csv_export::{ExportPart, csv_stream, export_link};
use crate::form::Form;
use crate::format::{state_badge, time_tag, timestamp, with_times};
use crate::layout::{error_notice, live_page, page};
use crate::list_filter;
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Column, next_page_link, numeric_table};
use api::{MessagePageView, MessageRowView, MessageStateView, Permission};
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of messages on a page.
const PAGE_SIZE: usize = 50;
/// The search timeout, in milliseconds. Searches by account, peer or state scan row by row: the page appears after this
/// time, and the script continues the search; without the script, a link does.
const SEARCH_TIMEOUT_MS: &str = "50";

/// The maximum number of messages of an export.
const MAX_EXPORT: usize = 100_000;
/// The number of messages that an export reads at a time.
const EXPORT_PAGE_SIZE: usize = 1_000;
/// The search timeout of an export's page, in milliseconds.
const EXPORT_TIMEOUT_MS: &str = "1000";

/// The parameters of a search that the page has fields for.
const SEARCH_FIELDS: [&str; 7] = ["number", "imsi", "account", "peer", "state", "from", "until"];

/// The parameters of a search, without empty ones.
fn search_parameters(query: &Form) -> Vec<(&'static str, &str)> {
    let given = SEARCH_FIELDS.iter().map(|name| (*name, query.text(name)));
    given.filter(|(_, value)| !value.is_empty()).collect()
}

/// The path of the API for a search, from the position `cursor` on.
fn api_path(query: &Form, cursor: &str, limit: usize, timeout_ms: &str) -> String {
    // Browsers send `2026-11-22T14:38`; the API requires seconds and time zone.
    let api_value = |name: &str, value: &str| match (name, value.len()) {
        ("from" | "until", 16) => format!("{value}:00Z"),
        ("from" | "until", 19) => format!("{value}Z"),
        _ => value.to_owned(),
    };
    let limit = limit.to_string();
    let values: Vec<(&str, String)> = search_parameters(query)
        .into_iter()
        .map(|(name, value)| (name, api_value(name, value)))
        .chain([("limit", limit), ("timeout_ms", timeout_ms.to_owned()), ("cursor", cursor.to_owned())])
        .collect();
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    with_query("/v1/messages", &values)
}

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let id = query.text("id");
    if !id.is_empty() {
        return Redirect::to(&format!("/messages/{}", encode_segment(id))).into_response();
    }
    let path = api_path(&query, query.text("cursor"), PAGE_SIZE, SEARCH_TIMEOUT_MS);
    let found = context.get::<MessagePageView>(&path).await;
    let names = suggestions(&context).await;
    let is_live = query.text("live") == "1";
    let (status, body) = match found {
        Ok(found) => {
            let list = html! { section.card #found { (found_table(&context, &found, &query)) } };
            let body = html! {
                (form(&context, &query, &names))
                (tools(&query, is_live))
                @if let Some(incomplete) = &found.incomplete { p.muted { (with_times(incomplete)) } }
                (list)
                @if !is_live { (next_page(&found, &query)) }
            };
            (StatusCode::OK, body)
        }
        Err(error) => (error.status, html! { (error_notice(&error)) (form(&context, &query, &names)) }),
    };
    let body = html! {
        div.heading {
            h1 { "Messages" }
            @if context.has_permission(Permission::Operate) { a.button.primary href="/messages/new" { "Send a test message" } }
        }
        (body)
    };
    let live =
        with_query("/live", &[("of", "messages"), ("id", &with_query("", &search_parameters(&query)))]);
    let live = (is_live && status == StatusCode::OK).then_some(&*live);
    let mut response = live_page(&context, "Messages", NavItem::Messages, live, Ok(body));
    *response.status_mut() = status;
    response
}

/// The live region: the newest messages of a search. `parameters` is its query.
pub(crate) async fn regions(context: &RequestContext, parameters: &str) -> Result<Vec<Region>, ApiError> {
    let query = Form::from_query(parameters);
    let found = context.get::<MessagePageView>(&api_path(&query, "", PAGE_SIZE, SEARCH_TIMEOUT_MS)).await?;
    Ok(vec![("found", found_table(context, &found, &query))])
}

/// The live view, the saved searches and the export of a search. The script fills in the saved ones.
fn tools(query: &Form, is_live: bool) -> Markup {
    let mut parameters = search_parameters(query);
    let export = export_link("/messages.csv", &parameters);
    if !is_live {
        parameters.push(("live", "1"));
    }
    html! {
        div.tools {
            span #saved-searches {}
            a.button.quiet href=(with_query("/messages", &parameters)) {
                @if is_live { "Stop the live view" } @else { "Live view" }
            }
            (export)
        }
    }
}

/// All messages of a search as CSV, newest first, at most [`MAX_EXPORT`].
pub(crate) async fn export(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let first = match export_part(&context, &query, "", 0).await {
        Ok(first) => first,
        Err(error) => return page(&context, "Messages", NavItem::Messages, Err(error)),
    };
    let sent = AtomicUsize::new(first.rows.len());
    let shared = Arc::new((context, query, sent));
    csv_stream("messages.csv", EXPORT_COLUMNS, first, move |cursor| {
        let shared = shared.clone();
        async move {
            let (context, query, sent) = &*shared;
            let part = export_part(context, query, &cursor, sent.load(Ordering::Relaxed)).await?;
            sent.fetch_add(part.rows.len(), Ordering::Relaxed);
            Ok(part)
        }
    })
}

/// The columns of an export.
const EXPORT_COLUMNS: &[&str] = &["id", "accepted", "state", "from", "to", "account", "peer", "octets"];

/// The part of an export at a position, after `sent` messages.
async fn export_part(
    context: &RequestContext,
    query: &Form,
    cursor: &str,
    sent: usize,
) -> Result<ExportPart, ApiError> {
    let path = api_path(query, cursor, EXPORT_PAGE_SIZE, EXPORT_TIMEOUT_MS);
    let found = context.get::<MessagePageView>(&path).await?;
    let is_full = sent + found.messages.len() >= MAX_EXPORT;
    Ok(ExportPart {
        rows: found.messages.iter().map(csv_row).collect(),
        next: found.next.filter(|_| !is_full),
    })
}

fn csv_row(message: &MessageRowView) -> Vec<String> {
    let accepted = format!("{}Z", timestamp(message.at).replace(' ', "T"));
    let length = message.length.to_string();
    let row = [
        message.id.as_str(),
        &accepted,
        message.state.name(),
        &message.source,
        &message.destination,
        &message.account,
        &message.peer,
        &length,
    ];
    row.map(str::to_owned).to_vec()
}

/// Suggestions for the fields: the first names of the configuration.
async fn suggestions(context: &RequestContext) -> Markup {
    if !context.has_permission(Permission::Read) {
        return html! {};
    }
    let Ok(document) = context.console.configuration.cached(context).await else { return html! {} };
    let names = |list| document.named(list).map(|(name, _)| name);
    html! {
        (list_filter::suggestions("account-names", names("account")))
        (list_filter::suggestions("peer-names", ["peer", "gateway", "gsm"].into_iter().flat_map(names)))
    }
}

fn form(context: &RequestContext, query: &Form, names: &Markup) -> Markup {
    let field = |name: &str, label: &str, kind: &str, hint: &str| {
        html! {
            p {
                label for=(name) { (label) }
                input id=(name) name=(name) type=(kind) value=(query.text(name)) list=[matches!(name, "account" | "peer").then(|| format!("{name}-names"))] placeholder=[(!hint.is_empty()).then_some(hint)] autocomplete="off";
            }
        }
    };
    html! {
        form.card.search method="get" action="/messages" role="search" aria-label="Messages" {
            (field("number", "Number of sender or recipient", "search", "+4917…"))
            @if context.has_permission(Permission::Read) {
                (field("imsi", "Or the subscriber's IMSI", "search", ""))
                (field("account", "Account", "text", ""))
                (field("peer", "Peer", "text", ""))
                (names)
            }
            p {
                label for="state" { "State" }
                select #state name="state" {
                    option value="" { "any" }
                    @for name in MessageStateView::ALL.iter().map(|state| state.name()) { option value=(name) selected[query.text("state") == name] { (name) } }
                }
            }
            (field("from", "From (UTC)", "datetime-local", ""))
            (field("until", "Until (UTC)", "datetime-local", ""))
            (field("id", "Or the message's id", "text", ""))
            p.actions { button.primary type="submit" { "Search" } a.button.quiet href="/messages" { "Clear" } }
        }
    }
}

/// Messages as rows of a table.
fn rows(messages: &[MessageRowView]) -> Vec<Vec<Markup>> {
    let row = |message: &MessageRowView| {
        vec![
            html! { a href=(format!("/messages/{}", encode_segment(&message.id))) { code { (message.id) } } },
            time_tag(message.at),
            state_badge(message.state.name()),
            html! { (message.source) },
            html! { (message.destination) },
            html! { (message.account) },
            html! { (message.peer) },
            html! { (message.length) },
        ]
    };
    messages.iter().map(row).collect()
}

/// The columns of [`rows`].
const COLUMNS: &[Column<'static>] = &[
    Column::Text("Message"),
    Column::Text("Accepted"),
    Column::Text("State"),
    Column::Text("From"),
    Column::Text("To"),
    Column::Text("Account"),
    Column::Text("Peer"),
    Column::Number("Octets"),
];

/// The table of a search's page.
fn found_table(context: &RequestContext, found: &MessagePageView, query: &Form) -> Markup {
    let narrowed = !search_parameters(query).is_empty();
    let empty = html! {
        @if is_searching(found) {
            h2 { "No results so far" }
            p { "A search by account, peer or state scans from the newest message on." }
        } @else if narrowed {
            h2 { "No message matches" }
            p { "Numbers are compared as they were submitted, with or without the plus. " a href="/messages" { "Show the newest ones" } "." }
        } @else {
            h2 { "No messages yet" }
            p { "Messages are listed as soon as they are accepted. " @if context.has_permission(Permission::Operate) { a href="/messages/new" { "Send a test message" } " to see one." } }
        }
    };
    numeric_table("Messages, newest first", COLUMNS, &rows(&found.messages), &empty)
}

/// Whether the search stopped before its page was full.
fn is_searching(found: &MessagePageView) -> bool {
    found.next.is_some() && found.messages.len() < PAGE_SIZE
}

/// The link to the next page, or the continuation of an unfinished search.
fn next_page(found: &MessagePageView, query: &Form) -> Markup {
    let Some(next) = &found.next else { return html! {} };
    let mut parameters = search_parameters(query);
    parameters.push(("cursor", next));
    html! {
        @if is_searching(found) {
            p.more data-search-on role="status" {
                "Searched down to message " code { (next) } ". "
                a.button href=(with_query("/messages", &parameters)) { "Continue the search" }
            }
        } @else {
            (next_page_link("/messages", &parameters))
        }
    }
}
