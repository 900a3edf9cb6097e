//! Queue actions: the list of active actions, and the form that starts one.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{ago, count, kebab_or_snake, number, plural, state_badge, text, time_value};
use crate::layout::{action_button, csrf_field, error_notice, problem_list};
use crate::pages::queues;
use crate::request_context::RequestContext;
use crate::table::table;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

/// The actions, each with its description.
const KINDS: &[(&str, &str)] = &[
    ("suspend", "Suspend: hold messages until you resume them"),
    ("drain", "Drain: accept no new messages, send the waiting ones"),
    ("reroute", "Reroute to another peer"),
    ("cancel", "Cancel: finish messages; submitters get DLRs"),
    ("purge", "Purge: finish messages, without DLRs"),
];

/// The content of the form: input, error and preview.
#[derive(Default)]
pub(crate) struct QueuesPageState {
    pub(crate) form: Form,
    pub(crate) error: Option<ApiError>,
    /// The preview of the action.
    pub(crate) preview: Option<Value>,
}

/// The active actions, each with a button that ends it.
pub(crate) async fn active_table(context: &RequestContext) -> Markup {
    let actions = match context.get::<Vec<Value>>("/v1/queue-actions").await {
        Ok(actions) => actions,
        Err(error) => return error_notice(&error),
    };
    let rows: Vec<_> =
        actions.iter().take(crate::table::MAX_ROWS).map(|action| row(context, action)).collect();
    let empty = html! { p { "No queue action is active." } };
    table(
        "Queue actions, newest first",
        &["Action", "Scope", "Affected", "By", "Why", "State", "When", "End it"],
        &rows,
        &empty,
    )
}

/// The scope of an action, in words.
fn scope_text(action: &Value) -> String {
    let scope = &action["scope"];
    let mut words: Vec<String> = Vec::new();
    for (key, name) in
        [("peer", "peer"), ("account", "account"), ("prefix", "prefix"), ("older-than", "older than")]
    {
        match kebab_or_snake(scope, key) {
            Value::Null => {}
            Value::String(what) => words.push(format!("{name} {what}")),
            other => words.push(format!("{name} {other}")),
        }
    }
    let to = action["to"].as_str().map(|to| format!(", to {to}")).unwrap_or_default();
    if words.is_empty() { format!("all messages{to}") } else { format!("{}{to}", words.join(", ")) }
}

fn row(context: &RequestContext, action: &Value) -> Vec<Markup> {
    let id = action["id"].as_str().map_or_else(|| action["id"].to_string(), str::to_owned);
    let word = text(action, "state");
    let end = match (text(action, "action"), word) {
        (_, "undo-window") => Some("Undo"),
        ("suspend", "active") => Some("Resume"),
        (_, "active") => Some("End"),
        _ => None,
    };
    vec![
        html! { strong { (text(action, "action")) } },
        html! { (scope_text(action)) },
        html! { (count(number(action, "affected"))) @if number(action, "held") > 0 { ", held " (count(number(action, "held"))) } },
        html! { (text(action, "by")) },
        html! { (text(action, "why")) },
        html! { (state_badge(word)) @if let Some(at) = kebab_or_snake(action, "undo-until").as_u64() && word == "undo-window" { " " span.muted { "ends " (ago(at)) } } },
        time_value(&action["at"]),
        html! {
            @if let Some(end) = end && context.has_permission("operate") { (action_button(context, "/queues/undo", end, "", &[("id", &id)])) } @else { "—" }
        },
    ]
}

/// The form for a new action, with a preview before it starts.
pub(crate) fn start_form(context: &RequestContext, page_state: &QueuesPageState) -> Markup {
    let form_values = &page_state.form;
    let field = |name: &str, label: &str, hint: &str| {
        html! { p { label for=(name) { (label) } input id=(name) name=(name) value=(form_values.text(name)) autocomplete="off" spellcheck="false" aria-describedby=(format!("{name}-hint")); small id=(format!("{name}-hint")) { (hint) } } }
    };
    let chosen = form_values.text("action");
    html! {
        @if let Some(error) = &page_state.error { (error_notice(error)) (problem_list(error)) }
        details.card #queue-action open[page_state.error.is_some() || page_state.preview.is_some() || !chosen.is_empty()] {
            summary { "Start a queue action" }
            form.fields method="post" action="/queues" {
                (csrf_field(context))
                p.wide {
                    label for="action" { "Action" }
                    select #action name="action" { @for (value, name) in KINDS { option value=(value) selected[chosen == *value] { (name) } } }
                }
                (field("peer", "For peer", "Or any"))
                (field("account", "From account", "Or any"))
                (field("prefix", "Prefix of the destination", "+4917; or any"))
                (field("older-than", "Older than", "10m, 2h, 1d; or any age"))
                (field("to", "To peer", "Only for reroute"))
                p {
                    label for="undo-within" { "Undo within" }
                    select #undo-within name="undo-within" { @for (value, name) in [("1m", "one minute"), ("10m", "ten minutes"), ("1h", "an hour")] { option value=(value) selected[form_values.text("undo-within") == value] { (name) } } }
                }
                p.wide { label for="why" { "Why" } input #why name="why" value=(form_values.text("why")) maxlength="256" autocomplete="off"; }
                @if let Some(preview) = &page_state.preview { (preview_notice(preview)) }
                p.actions {
                    button type="submit" name="do" value="preview" { "Preview" }
                    @if page_state.preview.is_some() { button.danger type="submit" name="do" value="start" { "Start it" } }
                }
            }
        }
    }
}

fn preview_notice(preview: &Value) -> Markup {
    let sample = preview["sample"].as_array().map(Vec::as_slice).unwrap_or_default();
    let states = kebab_or_snake(preview, "by-state").as_object();
    let rows: Vec<_> = sample
        .iter()
        .take(20)
        .map(|one| {
            let id = text(one, "id");
            vec![
                html! { a href=(format!("/messages/{}", encode_segment(id))) { code { (id) } } },
                html! { (text(one, "from")) },
                html! { (text(one, "to")) },
                state_badge(text(one, "state")),
            ]
        })
        .collect();
    html! {
        div.wide.notice.warn role="status" {
            strong { "It affects " @if preview["complete"].as_bool() == Some(false) { "at least " } (plural(number(preview, "messages"), "message", "messages")) " now, and those that come later." }
            p { @for (word, many) in states.into_iter().flatten() { (state_badge(word)) " " (count(many.as_u64().unwrap_or(0))) " " } }
            @if !rows.is_empty() { (table("Some of them", &["Message", "From", "To", "State"], &rows, &html! {})) }
        }
    }
}

fn request_body(form: &Form) -> Result<Value, ApiError> {
    let mut scope = Map::new();
    for name in ["peer", "account", "prefix", "older-than"] {
        if !form.text(name).is_empty() {
            scope.insert(name.to_owned(), form.text(name).into());
        }
    }
    if scope.is_empty() {
        return Err(ApiError::bad_request("Give a scope: peer, account, prefix or age."));
    }
    let what = form.text("action");
    let mut action = json!({ "action": what, "scope": scope });
    if what == "reroute" {
        action["to"] = form.text("to").into();
    }
    Ok(action)
}

pub(crate) async fn start(context: RequestContext, form: Form) -> Response {
    let outcome = async {
        let mut request = request_body(&form)?;
        if form.text("do") != "start" {
            return context
                .send(Method::POST, "/v1/queue-actions/preview", &form, Some(&request))
                .await?
                .read()
                .map(Some);
        }
        if !form.text("why").is_empty() {
            request["why"] = form.text("why").into();
        }
        if matches!(form.text("action"), "cancel" | "purge") && !form.text("undo-within").is_empty() {
            request["undo-within"] = form.text("undo-within").into();
        }
        context.send(Method::POST, "/v1/queue-actions", &form, Some(&request)).await?;
        Ok::<Option<Value>, ApiError>(None)
    };
    match outcome.await {
        Ok(None) => RequestContext::redirect("/queues", "started"),
        Ok(preview) => queues::render(&context, &QueuesPageState { form, preview, error: None }).await,
        Err(error) => {
            queues::render(&context, &QueuesPageState { form, preview: None, error: Some(error) }).await
        }
    }
}

pub(crate) async fn undo(context: RequestContext, form: Form) -> Response {
    let path = format!("/v1/queue-actions/{}", encode_segment(form.text("id")));
    match context.send(Method::DELETE, &path, &form, None).await {
        Ok(_) => RequestContext::redirect("/queues", "undone"),
        Err(error) => {
            queues::render(&context, &QueuesPageState { error: Some(error), ..QueuesPageState::default() })
                .await
        }
    }
}
