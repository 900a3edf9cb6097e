//! The results of the search in the header.

use crate::form::Form;
use crate::format::count;
use crate::layout::page;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::search::search;
use axum::extract::Query;
use axum::response::Response;
use maud::html;

/// The maximum length of a query, in characters; the rest is ignored.
const MAX_QUERY: usize = 100;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let form = Form::of(query);
    let query: String = form.text("q").chars().take(MAX_QUERY).collect();
    let groups = if query.is_empty() { Vec::new() } else { search(&context, &query).await };
    let body = html! {
        h1 { @if query.is_empty() { "Search" } @else { "Search: " (query) } }
        @if query.is_empty() {
            p.lead { "Enter a message id, a number, or the name of an account, a peer, a hook, a plugin, a pool, a page or a configuration key." }
        } @else if groups.is_empty() {
            section.card { div.empty { h2 { "No results" } p { "Nothing has this name, number or id. The " a href="/messages" { "search for messages" } " finds messages by time and state." } } }
        }
        div #results {
            @for group in &groups {
                section.card {
                    h2 { (group.title) }
                    ul.results {
                        @for result in &group.results {
                            li { a href=(result.path) { (result.label) } " " span.muted { (result.note) } }
                        }
                    }
                    @if group.left_out > 0 { p.muted { "And " (count(group.left_out as u64)) " more: enter more of the name." } }
                }
            }
        }
    };
    page(&context, "Search", NavItem::Search, Ok(body))
}
