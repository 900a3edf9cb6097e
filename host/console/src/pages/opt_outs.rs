//! Opt-outs of subscribers.

use crate::api_caller::ApiError;
use crate::form::Form;
use crate::layout::{action_button, csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{Pagination, table};
use api::{OptOutChange, OptOutView, OptOutsView, Permission};
use axum::extract::Query;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

/// The maximum number of opt-outs that the API returns.
const API_LIMIT: usize = 1_000;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    render(&context, &Form::of(query), None).await
}

async fn render(context: &RequestContext, query: &Form, error: Option<&ApiError>) -> Response {
    let body = context
        .get::<OptOutsView>("/v1/opt-outs")
        .await
        .map(|found| page_body(context, &found, query, error));
    let mut response = page(context, "Opt-outs", NavItem::OptOuts, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

fn page_body(
    context: &RequestContext,
    found: &OptOutsView,
    query: &Form,
    error: Option<&ApiError>,
) -> Markup {
    let all = &found.stopped;
    let filter = query.text("q");
    let fits = |one: &&OptOutView| one.sender.contains(filter) || one.subscriber.contains(filter);
    let chosen: Vec<&OptOutView> = all.iter().filter(fits).collect();
    let shown = Pagination::new(chosen.len(), query.text("page"));
    let operates = context.has_permission(Permission::Operate);
    let rows: Vec<_> = chosen[shown.from..shown.upto]
        .iter()
        .map(|OptOutView { sender, subscriber }| {
            let mut row = vec![html! { (subscriber) }, html! { (sender) }];
            if operates {
                let fields =
                    [("sender", sender.as_str()), ("subscriber", subscriber.as_str()), ("do", "go-on")];
                row.push(action_button(context, "/opt-outs", "Remove", "", &fields));
            }
            row
        })
        .collect();
    let mut heads = vec!["Subscriber", "Sender"];
    if operates {
        heads.push("Remove");
    }
    let empty = html! {
        @if filter.is_empty() {
            h2 { "There are no opt-outs" }
            p { "A subscriber who answers a sender with one of its configured stop words is listed here, and receives nothing more from it." }
        } @else { h2 { "No matches" } p { a href="/opt-outs" { "Show all" } } }
    };
    html! {
        h1 { "Opt-outs" }
        @if let Some(error) = error { (error_notice(error)) }
        form.card.search method="get" action="/opt-outs" role="search" aria-label="Opt-outs" {
            p { label for="q" { "Number" } input #q name="q" type="search" value=(filter) inputmode="tel" autocomplete="off"; }
            p.actions { button type="submit" { "Filter" } }
        }
        section.card {
            (table("Opt-outs", &heads, &rows, &empty))
            @if all.len() >= API_LIMIT { p.muted { "These are the first " (crate::format::count(API_LIMIT as u64)) "; there are more." } }
        }
        (shown.links("/opt-outs", &[("q", filter)]))
        @if operates { (add_form(context)) }
    }
}

fn add_form(context: &RequestContext) -> Markup {
    html! {
        details.card {
            summary { "Add an opt-out" }
            form.fields method="post" action="/opt-outs" {
                (csrf_field(context))
                p { label for="subscriber" { "Subscriber" } input #subscriber name="subscriber" required maxlength="21" inputmode="tel" autocomplete="off"; }
                p { label for="sender" { "Sender" } input #sender name="sender" required maxlength="21" autocomplete="off" spellcheck="false"; }
                p.actions { button.primary type="submit" name="do" value="stop" { "Add" } }
            }
        }
    }
}

pub(crate) async fn change(context: RequestContext, form: Form) -> Response {
    let stop = form.text("do") == "stop";
    let request = OptOutChange {
        sender: form.text("sender").to_owned(),
        subscriber: form.text("subscriber").to_owned(),
        stop,
    };
    match context.send_json(Method::POST, "/v1/opt-outs", &form, &request).await {
        Ok(_) => RequestContext::redirect("/opt-outs", if stop { "stopped" } else { "goes-on" }),
        Err(error) => render(&context, &Form::default(), Some(&error)).await,
    }
}
