//! A GSM subscriber: location, presence, waiting messages and actions.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::{ago, plural, state_badge, time_tag, with_times};
use crate::layout::{action_button, live_page, page};
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::detail_list;
use api::{AcceptedMessage, Permission, PresenceSign, SubscriberStateView as State, SubscriberView};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::{Markup, html};

/// The search form for subscribers.
pub(crate) fn search() -> Markup {
    html! {
        form.card.search method="get" action="/subscribers" role="search" aria-label="Subscribers" {
            p { label for="number" { "Number of a subscriber" } input #number name="number" type="search" placeholder="+4917…" inputmode="tel" maxlength="21" autocomplete="off"; }
            p { label for="imsi" { "Or its IMSI" } input #imsi name="imsi" type="search" inputmode="numeric" maxlength="15" autocomplete="off"; }
            p.actions { button.primary type="submit" { "Show" } }
        }
    }
}

/// Redirects from the search to the page of the subscriber.
pub(crate) async fn find(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let (digits, imsi) = (query.text("number").trim_start_matches('+'), query.text("imsi"));
    let name = match (digits, imsi) {
        ("", "") => {
            let body = html! { h1 { "Subscribers" } (search()) };
            return page(&context, "Subscribers", NavItem::Networks, Ok(body));
        }
        ("", imsi) => format!("imsi-{imsi}"),
        (digits, _) => format!("msisdn-{digits}"),
    };
    Redirect::to(&format!("/subscribers/{}", encode_segment(&name))).into_response()
}

async fn read(context: &RequestContext, name: &str) -> Result<SubscriberView, ApiError> {
    context.get(&format!("/v1/subscribers/{}", encode_segment(name))).await
}

pub(crate) async fn regions(context: &RequestContext, name: &str) -> Result<Vec<Region>, ApiError> {
    let found = read(context, name).await?;
    Ok(vec![("status", status_card(context, &found, name))])
}

pub(crate) async fn show(context: RequestContext, Path(name): Path<String>) -> Response {
    let body = match read(&context, &name).await {
        // Every number links here, so the subscriber may be unknown.
        Err(error) if error.status == StatusCode::NOT_FOUND => {
            let body = html! {
                div.heading {
                    h1 { "Subscriber" }
                    a.button.quiet href=(messages(&name)) { "Messages" }
                }
                section.card { p { "No core network knows this subscriber." } }
                (search())
            };
            return page(&context, "Subscriber", NavItem::Networks, Ok(body));
        }
        body => body,
    };
    let body = body.map(|found| {
        html! {
            div.heading {
                h1 { "Subscriber " (found.msisdn.as_ref().unwrap_or(&found.imsi)) }
                a.button.quiet href=(messages(&name)) { "Messages" }
            }
            div #status { (status_card(&context, &found, &name)) }
            (search())
        }
    });
    let live = format!("/live?of=subscriber&id={}", encode_segment(&name));
    live_page(&context, "Subscriber", NavItem::Networks, Some(&live), body)
}

/// The path of the list of the subscriber's messages.
fn messages(name: &str) -> String {
    match name.split_once('-') {
        Some(("imsi", imsi)) => with_query("/messages", &[("imsi", imsi)]),
        Some((_, digits)) => with_query("/messages", &[("number", digits)]),
        None => "/messages".to_owned(),
    }
}

fn present_by(found: &SubscriberView) -> &'static str {
    match found.present_by {
        Some(PresenceSign::LocationUpdate) => "location update",
        Some(PresenceSign::Message) => "sent a message",
        Some(PresenceSign::ReadyForSm) => "ready for short messages",
        Some(PresenceSign::Delivery) => "accepted a message",
        None => "",
    }
}

/// A message, as a link to its page.
fn message(id: &str) -> Markup {
    html! { a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } }
}

fn status_card(context: &RequestContext, found: &SubscriberView, name: &str) -> Markup {
    let action = |act: &str| format!("/subscribers/{}/{act}", encode_segment(name));
    let waiting = &found.waiting;
    let has_failed = matches!(found.state, State::Absent | State::Full | State::BackOff);
    html! {
        section.card {
            p.state {
                (state_badge(found.state.name()))
                @if let Some(reason) = &found.reason { " " (with_times(reason)) }
            }
            (detail_list(&[
                ("Number", html! { (found.msisdn.as_deref().unwrap_or("not known")) }),
                ("IMSI", html! { (found.imsi) }),
                ("Core network", html! { a href="/networks" { (found.network) } }),
                ("MSC", html! {
                    @match &found.msc {
                        Some(msc) => { (msc) @if !found.connected { " " span.muted { "(not connected)" } } }
                        None => { "not known" }
                    }
                }),
                ("Last present", match found.present_at {
                    Some(at) => html! { (time_tag(at)) " " span.muted { (ago(at)) ", " (present_by(found)) } },
                    None => html! { "not since the daemon's start" },
                }),
                ("Next attempt", match found.next_try {
                    Some(at) => html! { (time_tag(at)) " " span.muted { "or when the handset becomes present" } },
                    None => html! { "—" },
                }),
                ("Message in flight or failed", match &found.message {
                    Some(id) => message(id),
                    None => html! { "—" },
                }),
                ("Waiting", html! {
                    (plural(waiting.count, "message", "messages"))
                    @if let (Some(oldest), Some(at)) = (&waiting.oldest, waiting.oldest_at) { ", the oldest " (message(oldest)) " " span.muted { (ago(at)) } }
                }),
            ]))
            @if context.has_permission(Permission::Operate) {
                div.actions {
                    @if has_failed { (action_button(context, &action("wake"), "Retry messages now", "primary", &[])) }
                    (action_button(context, &action("ping"), "Send a silent short message", "", &[]))
                }
                p.muted { "The handset acknowledges a silent short message, and does not show it. It waits behind failed messages, as other messages do." }
            }
        }
    }
}

pub(crate) async fn act(
    context: RequestContext,
    Path((name, act)): Path<(String, String)>,
    form: Form,
) -> Response {
    let path = format!("/v1/subscribers/{}", encode_segment(&name));
    let result = match act.as_str() {
        "wake" => context
            .send(Method::POST, &format!("{path}/wake"), &form, None)
            .await
            .map(|_| RequestContext::redirect(&format!("/subscribers/{}", encode_segment(&name)), "woken")),
        "ping" => context
            .send(Method::POST, &format!("{path}/silent-sms"), &form, None)
            .await
            .and_then(|answer| answer.read::<AcceptedMessage>())
            .map(|sent| {
                RequestContext::redirect(&format!("/messages/{}", encode_segment(&sent.id)), "pinged")
            }),
        _ => Err(ApiError::new(StatusCode::NOT_FOUND, "This action does not exist.")),
    };
    match result {
        Ok(done) => done,
        Err(error) => page(&context, "Subscriber", NavItem::Networks, Err(error)),
    }
}
