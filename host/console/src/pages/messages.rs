//! The search for messages.

use crate::api_caller::{encode_segment, with_query};
use crate::form::Form;
use crate::format::{state_badge, time_tag, with_readable_times};
use crate::layout::{error_notice, page};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{next_page_link, table};
use api::{MessagePageView, MessageRowView, MessageStateView, Permission};
use axum::extract::Query;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

/// The number of messages on a page.
const PAGE_SIZE: usize = 50;
/// The search timeout, in milliseconds. Searches by account, peer or state scan row by row: the page appears after this
/// time, and the script continues the search; without the script, a link does.
const SEARCH_TIMEOUT_MS: &str = "50";

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let id = query.text("id");
    if !id.is_empty() {
        return Redirect::to(&format!("/messages/{}", encode_segment(id))).into_response();
    }
    // Browsers send `2026-11-22T14:38`; the API requires seconds and time zone.
    let api_time = |name: &str| match query.text(name) {
        "" => String::new(),
        at if at.len() == 16 => format!("{at}:00Z"),
        at if at.len() == 19 => format!("{at}Z"),
        at => at.to_owned(),
    };
    let (from, until) = (api_time("from"), api_time("until"));
    let parameters = [
        ("number", query.text("number")),
        ("imsi", query.text("imsi")),
        ("account", query.text("account")),
        ("peer", query.text("peer")),
        ("state", query.text("state")),
        ("from", &from),
        ("until", &until),
        ("limit", &PAGE_SIZE.to_string()),
        ("timeout_ms", SEARCH_TIMEOUT_MS),
        ("cursor", query.text("cursor")),
    ];
    let found = context.get::<MessagePageView>(&with_query("/v1/messages", &parameters)).await;
    let (status, body) = match found {
        Ok(found) => {
            (axum::http::StatusCode::OK, html! { (form(&context, &query)) (list(&context, &found, &query)) })
        }
        Err(error) => (error.status, html! { (error_notice(&error)) (form(&context, &query)) }),
    };
    let body = html! {
        div.heading {
            h1 { "Messages" }
            @if context.has_permission(Permission::Operate) { a.button.primary href="/messages/new" { "Send a test message" } }
        }
        (body)
    };
    let mut response = page(&context, "Messages", NavItem::Messages, Ok(body));
    *response.status_mut() = status;
    response
}

fn form(context: &RequestContext, query: &Form) -> Markup {
    let field = |name: &str, label: &str, kind: &str, hint: &str| {
        html! {
            p {
                label for=(name) { (label) }
                input id=(name) name=(name) type=(kind) value=(query.text(name)) placeholder=[(!hint.is_empty()).then_some(hint)] autocomplete="off";
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
            }
            p {
                label for="state" { "State" }
                select #state name="state" {
                    option value="" { "any" }
                    @for name in MessageStateView::ALL.iter().map(|state| state.name()) { option value=(name) selected[query.text("state") == name] { (name) } }
                }
            }
            (field("from", "From", "datetime-local", ""))
            (field("until", "Until", "datetime-local", ""))
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

/// The headings of [`rows`].
const HEADS: &[&str] = &["Message", "Accepted", "State", "From", "To", "Account", "Peer", "Octets"];

fn list(context: &RequestContext, found: &MessagePageView, query: &Form) -> Markup {
    let narrowed = ["number", "imsi", "account", "peer", "state", "from", "until"]
        .iter()
        .any(|name| !query.text(name).is_empty());
    let searching = found.next.is_some() && found.messages.len() < PAGE_SIZE;
    let empty = html! {
        @if searching {
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
    html! {
        @if let Some(incomplete) = &found.incomplete { p.muted { (with_readable_times(incomplete)) } }
        section.card #found { (table("Messages, newest first", HEADS, &rows(&found.messages), &empty)) }
        @if let Some(next) = &found.next {
            @let names = ["number", "imsi", "account", "peer", "state", "from", "until"];
            @let mut parameters: Vec<(&str, &str)> = names.iter().map(|name| (*name, query.text(name))).collect();
            @let () = parameters.push(("cursor", next));
            @if searching {
                p.more data-search-on role="status" {
                    "Searched down to message " code { (next) } ". "
                    a.button href=(with_query("/messages", &parameters)) { "Continue the search" }
                }
            } @else {
                (next_page_link("/messages", &parameters))
            }
        }
    }
}
