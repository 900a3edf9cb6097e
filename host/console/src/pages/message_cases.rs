//! Plugin calls about one message: repeat them, try them in the playground, or make cases of them for plugin authors.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::form::Form;
use crate::format::{money, time_tag, version_tag};
use crate::layout::{csrf_field, page};
use crate::nav::NavItem;
use crate::pages::{fault_case, playground};
use crate::request_context::RequestContext;
use crate::table::{detail_list, table};
use api::{
    ActivationRequest, BindingRequest, HookStateView, MessageCase, Permission, PolicyTryRequest,
    PolicyTryView, TraceView, TriedHostCallView,
};
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
    /// The buttons and links.
    actions: Markup,
}

/// The repeatable plugin calls about a message, each with the buttons that the user may press. `None` for users who
/// may neither try policies nor read texts: a case has the text.
pub(crate) async fn section(context: &RequestContext, trace: &TraceView) -> Option<Markup> {
    if !context.may_read_bodies() && !context.has_permission(Permission::Operate) {
        return None;
    }
    let hooks = context.get::<Vec<HookStateView>>("/v1/hooks").await.ok()?;
    let rows: Vec<_> = calls(context, trace, &hooks)
        .into_iter()
        .map(|PluginCall { hook, by, what, actions }| {
            vec![html! { a href=(format!("/plugins/{}", hook.name())) { (hook.name()) } }, by, what, actions]
        })
        .collect();
    let empty = html! { p { "No call of a plugin was recorded with this message." } };
    Some(html! {
        section.card #cases {
            h2 { "Calls of plugins" }
            (table("Calls of plugins", &["Hook", "Plugin", "Call", "Again"], &rows, &empty))
            @if !trace.finished { p.muted { "A decision can be asked for again once the message is finished and archived." } }
        }
    })
}

fn calls(context: &RequestContext, trace: &TraceView, hooks: &[HookStateView]) -> Vec<PluginCall> {
    let button = |hook: Hook, act: &str, label: &str| {
        html! {
            form.inline method="post" action=(format!("/messages/{}/{act}", encode_segment(&trace.id))) {
                (csrf_field(context))
                input type="hidden" name="hook" value=(hook.name());
                button.quiet type="submit" { (label) }
            }
        }
    };
    let actions = |hook: Hook| {
        let tries = context.has_permission(Permission::Operate) && playground::is_for(hook.name());
        let has_case = context.may_read_bodies() && hook != Hook::Biller;
        let policy = with_query(&format!("/policies/{}", hook.name()), &[("try-id", &trace.id)]);
        html! {
            div.inline {
                @if tries {
                    (button(hook, "ask", "Ask the live plugins again"))
                    a.button.quiet href=(format!("{policy}#playground")) { "In the playground" }
                }
                @if has_case { (button(hook, "case", "Make it a case")) }
            }
        }
    };
    let is_bound = |hook: Hook| hooks.iter().any(|one| one.hook == hook && !one.live.chain.is_empty());
    let mut calls = Vec::new();
    let mut decided = |hook: Hook, by: Markup, what: Markup| {
        if trace.finished && is_bound(hook) {
            calls.push(PluginCall { hook, by, what, actions: actions(hook) });
        }
    };
    if let Some(screening) = &trace.screening {
        let by = html! { (screening.plugin) " " (version_tag(&screening.version)) };
        decided(Hook::Screen, by, html! { "may the message pass?" });
    }
    let routing = &trace.routing;
    let by = html! { (routing.plugin) " " (version_tag(&routing.version)) };
    decided(Hook::Router, by, html! { (routing.verdict) });
    if let Some(price) = &trace.price {
        let by = html! { (price.plugin) " " (version_tag(&price.version)) };
        decided(Hook::Biller, by, html! { "what does the message cost?" });
    }
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
                actions: html! {
                    @if context.may_read_bodies() { a.button.quiet href=(fault_case::path(hook.hook.name(), fault.id)) { "Make it a case" } }
                },
            }));
        }
    }
    calls
}

/// Makes cases of a message, with the decisions of a hook's live plugins.
pub(crate) async fn make(context: &RequestContext, id: &str, form: &Form) -> Response {
    let hook = form.text("hook");
    let body = request(context, id, hook, form).await.map(|made| page_body(id, hook, &made));
    page(context, "Case of a message", NavItem::Messages, body)
}

/// Repeats the decision of a hook's live plugins about a message, without effects.
pub(crate) async fn ask(context: &RequestContext, id: &str, form: &Form) -> Response {
    let hook = form.text("hook");
    let body = decide_again(context, id, hook, form).await;
    page(context, "Decision of the live plugins", NavItem::Messages, body)
}

async fn decide_again(
    context: &RequestContext,
    id: &str,
    hook: &str,
    form: &Form,
) -> Result<Markup, ApiError> {
    let path = format!("/v1/messages/{}", encode_segment(id));
    let (request, trace) = tokio::join!(live_request(context, id, hook), context.get::<TraceView>(&path));
    let (request, trace) = (request?, trace?);
    let path = format!("/v1/hooks/{}/try", encode_segment(hook));
    let tried: PolicyTryView = context.send_json(Method::POST, &path, form, &request).await?.read()?;
    let then = match hook {
        "screen" => {
            html! { (trace.screening.as_ref().and_then(|one| one.note.as_deref()).unwrap_or("passed")) }
        }
        "biller" => {
            html! { @match &trace.price { Some(price) => { (money(i64::try_from(price.amount).unwrap_or(i64::MAX))) } None => { "not priced" } } }
        }
        _ => html! { (trace.routing.verdict) },
    };
    let message = format!("/messages/{}", encode_segment(id));
    Ok(html! {
        h1 { "Message " code { (id) } ", decided again" }
        p.lead {
            "The live plugins of the hook " a href=(format!("/plugins/{}", encode_segment(hook))) { (hook) } " decide the archived message with the answers of the host that were recorded with it. Nothing is counted, stored or sent."
        }
        @for one in &tried.messages {
            section.card {
                h2 { "Decision" }
                (detail_list(&[
                    ("At the time", then.clone()),
                    ("Now", playground::decision(&one.live)),
                    ("Time of the calls", html! { (one.live.cpu_ns.div_ceil(1_000)) " µs" }),
                ]))
                @if let Some(inexact) = &one.inexact {
                    p { span.badge.warn { "inexact" } " The decision may differ because " (inexact) " was not recorded." }
                }
            }
            section.card { h2 { "Answers of the host" } (answers(&one.live.host_calls)) }
        }
        @if tried.messages.is_empty() { section.card { p { "The archive does not have the message." } } }
        p { a href=(message) { "Back to the message" } }
    })
}

/// The host's answers to the calls of a plugin.
fn answers(calls: &[TriedHostCallView]) -> Markup {
    let rows: Vec<_> = calls
        .iter()
        .map(|one| {
            vec![
                html! { (one.call) },
                html! { (one.name) },
                html! { @match &one.key { Some(key) => { code { (key) } } None => { "—" } } },
                html! { (one.answer) },
            ]
        })
        .collect();
    let empty = html! { p { "The plugins called no functions of the host." } };
    table("Answers of the host", &["Call", "Name", "Key", "Answer"], &rows, &empty)
}

async fn request(
    context: &RequestContext,
    id: &str,
    hook: &str,
    form: &Form,
) -> Result<Vec<MessageCase>, ApiError> {
    let request = live_request(context, id, hook).await?;
    let path = format!("/v1/hooks/{}/cases", encode_segment(hook));
    context.send(Method::POST, &path, form, Some(&json!(request))).await?.read()
}

/// The request for a decision of a hook's live plugins about a message.
async fn live_request(context: &RequestContext, id: &str, hook: &str) -> Result<PolicyTryRequest, ApiError> {
    let found: HookStateView = context.get(&format!("/v1/hooks/{}", encode_segment(hook))).await?;
    // Missing fields of a binding are taken from the live binding of the plugin.
    let binding = |live: &api::Binding| BindingRequest {
        plugin: live.plugin.clone(),
        tenant: live.tenant.clone(),
        ..BindingRequest::default()
    };
    let chain = found.live.chain.iter().map(binding).collect();
    Ok(PolicyTryRequest {
        message: Some(id.to_owned()),
        activation: ActivationRequest { chain: Some(chain), ..ActivationRequest::default() },
        ..PolicyTryRequest::default()
    })
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
                    p { span.badge.warn { "inexact" } " The recorded decision may have been different: " (inexact) "." }
                }
                pre tabindex="0" aria-label="The case" { (one.case.trim()) }
            }
        }
        p { "The case contains unmasked numbers and the text of the message. Its creation is recorded in the audit log. " a href=(message) { "Back to the message" } }
    }
}
