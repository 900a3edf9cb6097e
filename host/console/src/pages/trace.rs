//! The trace of a message.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{
    ago, duration_text, exact_time, money, plural, state_badge, time_tag, version_tag, with_times,
};
use crate::layout::{action_button, live_page, page};
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::{QueryParams, message_cases};
use crate::request_context::RequestContext;
use crate::table::{Column, detail_list, numeric_table};
use api::{
    AttemptOutcome, MessageStateView, Permission, QuarantineSelection, SettleMessageRequest, TraceView,
    UncertainRemedy,
};
use axum::extract::{Path, Query};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};

async fn read(context: &RequestContext, id: &str, body: bool) -> Result<TraceView, ApiError> {
    let query = if body { "?body=1" } else { "" };
    context.get(&format!("/v1/messages/{}{query}", encode_segment(id))).await
}

pub(crate) async fn regions(context: &RequestContext, id: &str) -> Result<Vec<Region>, ApiError> {
    let trace = read(context, id, false).await?;
    Ok(vec![
        ("status", status_card(context, &trace)),
        ("attempts", attempts(&trace)),
        ("steps", steps(&trace)),
    ])
}

pub(crate) async fn show(
    context: RequestContext,
    Path(id): Path<String>,
    Query(query): QueryParams,
) -> Response {
    let with_body = Form::of(query).text("body") == "1";
    let read = read(&context, &id, with_body).await;
    // Each read of a text is audited, so a page with a text is not live; nor is the page of a finished message.
    let is_live = read.as_ref().is_ok_and(|trace| !with_body && !trace.finished);
    let live = is_live.then(|| format!("/live?of=message&id={}", encode_segment(&id)));
    let cases = match &read {
        Ok(trace) => message_cases::section(&context, trace).await,
        Err(_) => None,
    };
    let body = read.map(|trace| {
        html! {
            div.heading { h1 { "Message " code { (trace.id) } } }
            div #status { (status_card(&context, &trace)) }
            section.card #attempts { (attempts(&trace)) }
            div.columns {
                section.card { h2 { "Steps" } div #steps { (steps(&trace)) } }
                div {
                    section.card { h2 { "Text" } (text_card(&context, &trace, &id)) }
                    (routing(&trace))
                    (price(&trace))
                }
            }
            @if let Some(cases) = &cases { (cases) }
        }
    });
    live_page(&context, &format!("Message {id}"), NavItem::Messages, live.as_deref(), body)
}

fn text_card(context: &RequestContext, trace: &TraceView, id: &str) -> Markup {
    let length = plural(trace.length as u64, "octet", "octets");
    html! {
        @match &trace.body {
            Some(words) => {
                blockquote.message-text { (words) }
                @if let Some(submitted) = trace.screening.as_ref().and_then(|screening| screening.submitted_body.as_ref()) {
                    p { "A screen replaced the text. This was submitted:" }
                    blockquote.message-text { (submitted) }
                }
                p.muted { "This read is recorded in the audit log." }
            }
            None if trace.content_erased_at.is_some() => { p { "The text was erased." } }
            None if context.may_read_bodies() => {
                p { (length) ", not shown. " a.button href=(format!("/messages/{}?body=1", encode_segment(id))) { "Show the text" } }
                p.muted { "Reads of the text are recorded in the audit log." }
            }
            None => { p { (length) ". You have no permission to read texts." } }
        }
    }
}

fn status_card(context: &RequestContext, trace: &TraceView) -> Markup {
    let action = |act: &str| format!("/messages/{}/{act}", encode_segment(&trace.id));
    let is_uncertain = trace.state == MessageStateView::Uncertain;
    let destination = &trace.destination;
    html! {
        section.card {
            p.state {
                (state_badge(trace.state.name()))
                @if let Some(why) = &trace.waiting_for { " " (with_times(why)) }
            }
            (detail_list(&[
                ("From", html! { (trace.source) }),
                ("To", html! { (destination) @if destination.contains('*') { " " span.muted { "(masked)" } } @else if context.has_permission(Permission::Read) { " " (subscriber(destination)) } }),
                ("Submitted by", html! { (trace.origin) }),
                ("Accepted", html! { (exact_time(trace.accepted_at)) " " span.muted { (ago(trace.accepted_at)) } }),
                ("Submission", match &trace.submission {
                    Some(id) => html! { a href=(format!("/messages/{}", encode_segment(id))) { (id) } " " span.muted { "(several destinations)" } },
                    None => html! { "—" },
                }),
                ("Valid until", match trace.expires_at { 0 => html! { "—" }, at => time_tag(at) }),
                ("Screened by", match &trace.screening {
                    Some(screening) => html! { (screening.plugin) " " code { (screening.version) } @for more in [&screening.note, &screening.changes].into_iter().flatten() { "; " (more) } @if screening.text_replaced { "; text replaced" } },
                    None => html! { "—" },
                }),
                ("Number", match &trace.lookup {
                    Some(lookup) => html! {
                        (lookup.result.name()) " by " (lookup.plugin) " " code { (lookup.version) }
                        @if lookup.cached { ", cached" }
                        @for (name, value) in &lookup.attributes { "; " (name) " " code { (value) } }
                        @if let Some(note) = &lookup.note { "; " (note) }
                    },
                    None => html! { "—" },
                }),
                ("Peer's ids", html! {
                    @if trace.peer_ids.is_empty() { "—" }
                    @for id in &trace.peer_ids { code { (id) } " " }
                }),
            ]))
            @if let Some(at) = trace.content_erased_at {
                p { "Content erased at " (exact_time(at)) "." }
            }
            @if trace.finished && trace.content_erased_at.is_none() && context.has_permission(Permission::Erase) {
                div.actions { (action_button(context, &action("erase"), "Erase content", "danger", &[])) }
                p.muted { "The text is erased in store and archive. This cannot be undone." }
            }
            @if !trace.finished && context.has_permission(Permission::Operate) {
                div.actions {
                    @if is_uncertain {
                        (action_button(context, &action("send-again"), "Send again", "primary", &[]))
                        (action_button(context, &action("give-up"), "Give up", "danger", &[]))
                    } @else if trace.state == MessageStateView::Quarantined {
                        (action_button(context, &action("release"), "Release", "primary", &[]))
                        (action_button(context, &action("purge"), "Purge", "danger", &[]))
                    } @else {
                        (action_button(context, &action("retry"), "Retry now", "primary", &[]))
                        (action_button(context, &action("cancel"), "Cancel", "danger", &[]))
                    }
                }
                @if is_uncertain {
                    p.muted { "If the peer received the message, the recipient gets it twice after you send it again." }
                }
            }
        }
    }
}

/// The submit attempts, side by side with their answers and DLRs.
fn attempts(trace: &TraceView) -> Markup {
    let after = |from: u64, at: u64| duration_text(at.saturating_sub(from));
    let rows: Vec<_> = trace
        .attempts
        .iter()
        .take(crate::table::MAX_ROWS)
        .map(|one| {
            vec![
                html! { (one.number) },
                html! { a href=(format!("/peers/{}", encode_segment(&one.peer))) { (one.peer) } },
                exact_time(one.submitted_at),
                html! { @match one.ended_at { Some(at) => { (after(one.submitted_at, at)) } None => { "—" } } },
                html! {
                    @match one.outcome {
                        Some(outcome) => { (outcome_badge(outcome)) }
                        None => { span.muted { "awaited" } }
                    }
                    @if let Some(detail) = &one.detail { " " code { (detail) } }
                },
                html! { @match one.dlr_at { Some(at) => { (after(one.submitted_at, at)) } None => { "—" } } },
                html! { (one.dlr.as_deref().unwrap_or("—")) },
            ]
        })
        .collect();
    let columns = [
        Column::Number("Attempt"),
        Column::Text("Peer"),
        Column::Text("Submitted"),
        Column::Number("Answer after"),
        Column::Text("Answer"),
        Column::Number("DLR after"),
        Column::Text("DLR"),
    ];
    html! {
        div.heading {
            h2 { "Attempts" }
            p.muted { (plural(trace.segments.into(), "segment", "segments")) " for each attempt" }
        }
        (numeric_table("Submit attempts, oldest first", &columns, &rows, &html! { p { "The message was not submitted to a peer yet." } }))
    }
}

fn outcome_badge(outcome: AttemptOutcome) -> Markup {
    let class = match outcome {
        AttemptOutcome::Accepted => "good",
        AttemptOutcome::Refused => "bad",
        AttemptOutcome::Unanswered | AttemptOutcome::NotSent => "warn",
    };
    html! { span.badge.(class) { (outcome.name().replace('-', " ")) } }
}

/// A link to the subscriber, if the address is a number.
fn subscriber(address: &str) -> Markup {
    let digits = address.strip_prefix('+').unwrap_or(address);
    let is_number = (3..=20).contains(&digits.len()) && digits.bytes().all(|octet| octet.is_ascii_digit());
    html! { @if is_number { a.muted href=(format!("/subscribers/msisdn-{digits}")) { "subscriber" } } }
}

/// A step of the ledger, with its amount formatted.
fn with_amount(what: &str) -> String {
    let amount = |rest: &str| rest.parse::<i64>().ok().map(money);
    match what.rsplit_once(' ') {
        Some((verb @ ("charged" | "refunded" | "reserved"), rest)) => {
            amount(rest).map_or_else(|| what.to_owned(), |amount| format!("{verb} {amount}"))
        }
        _ => what.to_owned(),
    }
}

fn steps(trace: &TraceView) -> Markup {
    let mut before = None;
    let mut rows = Vec::new();
    for step in trace.steps.iter().take(crate::table::MAX_ROWS) {
        let after = before.map(|before| step.at.saturating_sub(before));
        before = Some(step.at);
        rows.push((step.at, after, with_times(&with_amount(&step.what))));
    }
    html! {
        ol.timeline {
            @for (at, after, what) in &rows {
                li { (exact_time(*at)) @if let Some(after) = after { " " span.muted { "+" (duration_text(*after)) } } p { (what) } }
            }
        }
    }
}

fn routing(trace: &TraceView) -> Markup {
    let why = &trace.routing;
    html! {
        section.card {
            h2 { "Routing" }
            p { (why.verdict) }
            (detail_list(&[
                ("Decided by", html! { (why.plugin) " " (version_tag(&why.version)) }),
                ("Note", html! { (why.note.as_deref().unwrap_or("—")) }),
                ("Current leg", html! { @match why.leg { Some(leg) => { (leg + 1) } None => { "—" } } }),
            ]))
        }
    }
}

fn price(trace: &TraceView) -> Markup {
    html! {
        section.card {
            h2 { "Price" }
            @if let Some(price) = &trace.price {
                p.price { (money(i64::try_from(price.amount).unwrap_or(i64::MAX))) }
                (detail_list(&[
                    ("Charged to", html! { (price.account.as_deref().unwrap_or("free")) }),
                    ("Priced by", html! { (price.plugin) " " (version_tag(&price.version)) }),
                    ("Note", html! { (price.note.as_deref().unwrap_or("—")) }),
                ]))
            } @else {
                p { "The message was not priced." }
            }
        }
    }
}

pub(crate) async fn act(
    context: RequestContext,
    Path((id, act)): Path<(String, String)>,
    form: Form,
) -> Response {
    match act.as_str() {
        "case" => return message_cases::make(&context, &id, &form).await,
        "ask" => return message_cases::ask(&context, &id, &form).await,
        _ => {}
    }
    let page_path = format!("/messages/{}", encode_segment(&id));
    let path = format!("/v1/messages/{}", encode_segment(&id));
    let result = match act.as_str() {
        "cancel" => {
            context.send(Method::POST, &format!("{path}/cancel"), &form, None).await.map(|_| "cancelled")
        }
        "erase" => context
            .send(Method::DELETE, &format!("{path}/content"), &form, None)
            .await
            .map(|_| "content-erased"),
        "retry" => context.send(Method::POST, &format!("{path}/retry"), &form, None).await.map(|_| "retried"),
        "send-again" | "give-up" => {
            let (remedy, done) = match act.as_str() {
                "give-up" => (UncertainRemedy::GiveUp, "given-up"),
                _ => (UncertainRemedy::SendAgain, "sent-again"),
            };
            let request = SettleMessageRequest { remedy };
            context.send_json(Method::POST, &format!("{path}/settle"), &form, &request).await.map(|_| done)
        }
        "release" | "purge" => {
            let selection = QuarantineSelection { origin: None, ids: Some(vec![id.clone()]) };
            let done = if act == "purge" { "purged" } else { "released" };
            context
                .send_json(Method::POST, &format!("/v1/quarantine/{act}"), &form, &selection)
                .await
                .map(|_| done)
        }
        _ => Err(ApiError::new(StatusCode::NOT_FOUND, "This action does not exist.")),
    };
    match result {
        Ok(done) => RequestContext::redirect(&page_path, done),
        Err(error) => page(&context, &format!("Message {id}"), NavItem::Messages, Err(error)),
    }
}
