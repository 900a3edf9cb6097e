//! Cases of the calls of plugins about one message, for their authors.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{time_tag, version_tag};
use crate::layout::{csrf_field, page};
use crate::nav::NavItem;
use crate::pages::fault_case;
use crate::request_context::RequestContext;
use crate::table::table;
use api::{ActivationRequest, BindingRequest, HookStateView, MessageCase, PolicyTryRequest, TraceView};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use model::Hook;
use serde_json::json;

/// A call of a plugin about the message.
struct PluginCall {
    hook: Hook,
    by: Markup,
    what: Markup,
    /// The form or link that makes a case of it.
    case: Markup,
}

/// The calls of plugins about a message whose questions are kept, each with a button that makes a case of it. `None` for users who may
/// not read texts: a case has the text.
pub(crate) async fn section(context: &RequestContext, trace: &TraceView) -> Option<Markup> {
    if !context.may_read_bodies() {
        return None;
    }
    let hooks = context.get::<Vec<HookStateView>>("/v1/hooks").await.ok()?;
    let rows: Vec<_> = calls(context, trace, &hooks)
        .into_iter()
        .map(|PluginCall { hook, by, what, case }| {
            vec![html! { a href=(format!("/plugins/{}", hook.name())) { (hook.name()) } }, by, what, case]
        })
        .collect();
    let empty = html! { p { "No question of a plugin about this message is kept." } };
    Some(html! {
        section.card #cases {
            h2 { "Calls of plugins" }
            (table("Calls of plugins", &["Hook", "Plugin", "Call", "Case"], &rows, &empty))
            @if !trace.finished { p.muted { "Decisions can be made cases once the message is finished and archived." } }
        }
    })
}

fn calls(context: &RequestContext, trace: &TraceView, hooks: &[HookStateView]) -> Vec<PluginCall> {
    let button = |hook: Hook| {
        html! {
            form.inline method="post" action=(format!("/messages/{}/case", encode_segment(&trace.id))) {
                (csrf_field(context))
                input type="hidden" name="hook" value=(hook.name());
                button.quiet type="submit" { "Make it a case" }
            }
        }
    };
    let is_bound = |hook: Hook| hooks.iter().any(|one| one.hook == hook && !one.live.chain.is_empty());
    let mut calls = Vec::new();
    let mut decided = |hook: Hook, by: Markup, what: Markup| {
        if trace.finished && is_bound(hook) {
            calls.push(PluginCall { hook, by, what, case: button(hook) });
        }
    };
    if let Some(screening) = &trace.screening {
        let by = html! { (screening.plugin) " " (version_tag(&screening.version)) };
        decided(Hook::Screen, by, html! { "may the message pass?" });
    }
    let routing = &trace.routing;
    let by = html! { (routing.plugin) " " (version_tag(&routing.version)) };
    decided(Hook::Router, by, html! { (routing.verdict) });
    let live_policies = hooks.iter().find(|one| one.hook == Hook::Receipt).map(|one| &one.live.chain);
    let names = live_policies.into_iter().flatten().map(|binding| binding.plugin.as_str());
    let by = html! { (names.collect::<Vec<_>>().join(", ")) };
    decided(Hook::Receipt, by, html! { "recorded calls about the peer's answer, DLRs and timeouts" });
    for hook in hooks {
        for faulty in &hook.faults {
            let examples = faulty.examples.iter().filter(|one| one.message.as_deref() == Some(&*trace.id));
            calls.extend(examples.map(|fault| PluginCall {
                hook: hook.hook,
                by: html! { (faulty.plugin) " " (version_tag(&faulty.version)) },
                what: html! { (time_tag(fault.at.0)) " fault (" (fault.kind) "): " (fault.what) },
                case: html! { a href=(fault_case::path(hook.hook.name(), fault.id)) { "Make it a case" } },
            }));
        }
    }
    calls
}

/// Makes cases of a message, as the live plugins of a hook decide it.
pub(crate) async fn make(context: &RequestContext, id: &str, form: &Form) -> Response {
    let hook = form.text("hook");
    let body = request(context, id, hook, form).await.map(|made| page_body(id, hook, &made));
    page(context, "Case of a message", NavItem::Messages, body)
}

async fn request(
    context: &RequestContext,
    id: &str,
    hook: &str,
    form: &Form,
) -> Result<Vec<MessageCase>, ApiError> {
    let path = format!("/v1/hooks/{}", encode_segment(hook));
    let found: HookStateView = context.get(&path).await?;
    // What a binding does not say is taken from the live one of the plugin.
    let binding = |plugin: &str| BindingRequest { plugin: plugin.to_owned(), ..BindingRequest::default() };
    let chain = found.live.chain.iter().map(|live| binding(&live.plugin)).collect();
    let request = PolicyTryRequest {
        message: Some(id.to_owned()),
        activation: ActivationRequest { chain: Some(chain), ..ActivationRequest::default() },
        ..PolicyTryRequest::default()
    };
    context.send(Method::POST, &format!("{path}/cases"), form, Some(&json!(request))).await?.read()
}

fn page_body(id: &str, hook: &str, made: &[MessageCase]) -> Markup {
    let message = format!("/messages/{}", encode_segment(id));
    html! {
        h1 { "Case of message " code { (id) } }
        p.lead {
            "What the hook " a href=(format!("/plugins/{}", encode_segment(hook))) { (hook) } " was asked about the message, with the live policy document, the time and the host's recorded answers, and the decision of the live plugins. Append it to " code { "cases.toml" } " of the plugin, and run " code { "switchyard plugin test" } "."
        }
        @if made.is_empty() { section.card { p { "No call of this hook was recorded with the message." } } }
        @for one in made {
            section.card {
                p { "Decided by " (one.plugin) " " (version_tag(&one.version)) "." }
                @if let Some(inexact) = &one.inexact {
                    p { span.badge.warn { "inexact" } " The decision of the time may have been another, because of " (inexact) "." }
                }
                pre tabindex="0" aria-label="The case" { (one.case.trim()) }
            }
        }
        p { "It has whole numbers and the text of the message. Making it is recorded in the audit log. " a href=(message) { "Back to the message" } }
    }
}
