//! The playground on a policy's page: the decisions of the document in the form, next to the live decisions.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{money, plural, version_tag};
use crate::request_context::RequestContext;
use crate::table::table;
use api::{
    ActivationRequest, ExplainRequest, MessageCase, PolicyTryRequest, PolicyTryView, TriedDecisionView,
    TriedHostCallView, TriedMessageView,
};
use axum::http::Method;
use maud::{Markup, html};
use serde_json::json;

/// Number of archived messages per try.
const LAST: u64 = 100;

/// Whether policies of this hook can be tried with messages.
pub(crate) fn is_for(hook: &str) -> bool {
    matches!(hook, "screen" | "router" | "biller")
}

/// Whether cases can be made of decisions of this hook.
pub(crate) fn makes_cases(hook: &str) -> bool {
    matches!(hook, "screen" | "router")
}

/// The fields of a typed message, and the buttons. They are part of the form with the document. With `cases`, a message can be kept as
/// a case.
pub(crate) fn fields(form: &Form, cases: bool) -> Markup {
    html! {
        fieldset.wide #playground {
            legend { "Playground" }
            p.muted { "See what the document above decides. Nothing is counted, stored or sent." }
            p { label for="try-account" { "Account or peer" } input #try-account name="try-account" value=(form.text("try-account")) autocomplete="off"; }
            p { label for="try-from" { "From" } input #try-from name="try-from" value=(form.text("try-from")) maxlength="20" autocomplete="off"; }
            p { label for="try-to" { "To" } input #try-to name="try-to" value=(form.text("try-to")) maxlength="20" inputmode="tel" autocomplete="off"; }
            p { label for="try-id" { "Or an archived message's id" } input #try-id name="try-id" value=(form.text("try-id")) inputmode="numeric" autocomplete="off"; }
            p { label for="try-text" { "Text" } input #try-text name="try-text" value=(form.text("try-text")) autocomplete="off"; }
            p.actions {
                button type="submit" name="do" value="try-message" { "Try this message" }
                @if cases { button.quiet type="submit" name="do" value="make-case" { "Make it a case" } }
                button type="submit" name="do" value="try-last" { "Try the last " (LAST) " messages" }
            }
        }
    }
}

/// Tries the document with the message of the form, or with the last messages.
pub(crate) async fn run(
    context: &RequestContext,
    form: &Form,
    hook: &str,
    activation: ActivationRequest,
) -> Result<PolicyTryView, ApiError> {
    let request = match (form.text("do"), form.text("try-id")) {
        ("try-message", "") => PolicyTryRequest {
            messages: Some(vec![typed_message(form)?]),
            activation,
            ..PolicyTryRequest::default()
        },
        ("try-message", id) => {
            PolicyTryRequest { message: Some(id.to_owned()), activation, ..PolicyTryRequest::default() }
        }
        _ => PolicyTryRequest { last: Some(LAST), activation, ..PolicyTryRequest::default() },
    };
    let path = format!("/v1/hooks/{}/try", encode_segment(hook));
    context.send(Method::POST, &path, form, Some(&json!(request))).await?.read()
}

/// Makes a case of the message of the form, with the decision of the document.
pub(crate) async fn make_case(
    context: &RequestContext,
    form: &Form,
    hook: &str,
    activation: ActivationRequest,
) -> Result<Option<MessageCase>, ApiError> {
    let messages = Some(vec![typed_message(form)?]);
    let request = PolicyTryRequest { messages, activation, ..PolicyTryRequest::default() };
    let path = format!("/v1/hooks/{}/cases", encode_segment(hook));
    let answer = context.send(Method::POST, &path, form, Some(&json!(request))).await?;
    Ok(answer.read::<Vec<MessageCase>>()?.pop())
}

/// The message of the form.
fn typed_message(form: &Form) -> Result<ExplainRequest, ApiError> {
    if form.text("try-account").is_empty() || form.text("try-to").is_empty() {
        return Err(ApiError::bad_request(
            "To try a message, fill in the account and the number that it goes to, or the id of an archived message.",
        ));
    }
    Ok(ExplainRequest {
        origin: form.text("try-account").to_owned(),
        source: form.text("try-from").to_owned(),
        destination: form.text("try-to").to_owned(),
        text: form.text("try-text").to_owned(),
    })
}

/// The case of a message.
pub(crate) fn case(made: &MessageCase) -> Markup {
    html! {
        section.card #case role="status" {
            h2 { "Case" }
            p { "The message, the document, the time and the host's answers, with the decision of " (made.plugin) " " (version_tag(&made.version)) ". Append it to " code { "cases.toml" } " of the plugin." }
            pre tabindex="0" aria-label="The case" { (made.case.trim()) }
        }
    }
}

/// The decisions.
pub(crate) fn results(tried: &PolicyTryView) -> Markup {
    let rows: Vec<_> = tried.messages.iter().map(row).collect();
    let heads = ["Message", "Document", "Live", "Host calls"];
    html! {
        section.card #tried role="status" {
            h2 { "Playground" }
            @if !tried.messages.is_empty() {
                p {
                    "Of " (plural(tried.messages.len() as u64, "message", "messages")) ", "
                    (plural(tried.different, "has", "have")) " a different decision."
                }
            }
            @for unknown in &tried.unknown {
                p { span.badge.warn { "unknown" } " The policy names the " (unknown.kind.name()) " " code { (unknown.name) } ", which does not exist." }
            }
            @if !tried.complete { p { span.badge.warn { "incomplete" } " The time limit was reached before all messages were tried." } }
            (table("Decisions", &heads, &rows, &html! { p { "The archive has no messages yet." } }))
        }
    }
}

fn row(tried: &TriedMessageView) -> Vec<Markup> {
    let source = if tried.source.is_empty() { "–" } else { &tried.source };
    vec![
        html! {
            (tried.origin) ": " (source) " to " (tried.destination)
            @if let Some(id) = &tried.id { " " a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } }
            @if tried.different { " " span.badge.warn { "different" } }
            @if let Some(inexact) = &tried.inexact { small.muted { "inexact: " (inexact) " was not recorded" } }
        },
        decision(&tried.tried),
        decision(&tried.live),
        host_calls(&tried.tried.host_calls),
    ]
}

/// A decision, with its reason and its cost.
pub(crate) fn decision(decision: &TriedDecisionView) -> Markup {
    let cost = decision.legs.iter().min_by_key(|leg| leg.rank).map(|leg| money(leg.cost.into()));
    html! {
        (decision.decision)
        @if let Some(fault) = &decision.fault { " " span.badge.bad { (fault) } }
        @if let Some(note) = &decision.note { small { (note) } }
        small.muted {
            @if let Some(by) = &decision.by { (by) ", " }
            @if let Some(cost) = cost { "cost " (cost) ", " }
            @if let Some(price) = &decision.price {
                @match &price.account {
                    Some(account) => { "price " (money(i64::try_from(price.amount).unwrap_or(i64::MAX))) " from " (account) ", " },
                    None => { "free, " },
                }
            }
            (decision.cpu_ns.div_ceil(1_000)) " µs"
        }
    }
}

fn host_calls(calls: &[TriedHostCallView]) -> Markup {
    if calls.is_empty() {
        return html! { span.muted { "none" } };
    }
    html! {
        details {
            summary { (plural(calls.len() as u64, "call", "calls")) }
            ul {
                @for call in calls {
                    li { (call.call) " " (call.name) @if let Some(key) = &call.key { " " code { (key) } } ": " (call.answer) }
                }
            }
        }
    }
}
