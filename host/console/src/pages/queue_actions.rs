//! Queue actions: the list of active actions, and the form that starts one.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{ago, count, plural, state_badge, time_tag};
use crate::layout::{action_button, csrf_field, error_notice, problem_list};
use crate::pages::queues;
use crate::request_context::RequestContext;
use crate::table::table;
use api::{
    Permission, QueueActionKindView as Kind, QueueActionPreview, QueueActionRequest, QueueActionSample,
    QueueActionScopeView, QueueActionStateView as State, QueueActionView,
};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

/// The actions, each with its description.
const KINDS: &[(Kind, &str)] = &[
    (Kind::Suspend, "Suspend: hold messages until you resume them"),
    (Kind::Drain, "Drain: accept no new messages, send the waiting ones"),
    (Kind::Reroute, "Reroute to another peer"),
    (Kind::Cancel, "Cancel: finish messages; submitters get DLRs"),
    (Kind::Purge, "Purge: finish messages, without DLRs"),
];

/// The content of the form: input, error and preview.
#[derive(Default)]
pub(crate) struct QueuesPageState {
    pub(crate) form: Form,
    pub(crate) error: Option<ApiError>,
    /// The preview of the action.
    pub(crate) preview: Option<QueueActionPreview>,
}

/// The active actions, each with a button that ends it.
pub(crate) async fn active_table(context: &RequestContext) -> Markup {
    let actions = match context.get::<Vec<QueueActionView>>("/v1/queue-actions").await {
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
fn scope_text(action: &QueueActionView) -> String {
    let QueueActionScopeView { peer, account, prefix, older_than } = &action.scope;
    let words: Vec<String> = [
        ("peer", peer),
        ("account", account),
        ("prefix", prefix),
        ("older than", older_than),
        ("to", &action.to),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)))
    .collect();
    words.join(", ")
}

fn row(context: &RequestContext, action: &QueueActionView) -> Vec<Markup> {
    let id = action.id.to_string();
    let end = match (action.action, action.state) {
        (_, State::UndoWindow) => Some("Undo"),
        (Kind::Suspend, State::Active) => Some("Resume"),
        (_, State::Active) => Some("End"),
        _ => None,
    };
    let undo_until = action.undo_until.filter(|_| action.state == State::UndoWindow);
    vec![
        html! { strong { (action.action.name()) } },
        html! { (scope_text(action)) },
        html! { (count(action.affected)) @if action.held > 0 { ", held " (count(action.held)) } },
        html! { (action.by) },
        html! { (action.why) },
        html! { (state_badge(action.state.name())) @if let Some(at) = undo_until { " " span.muted { "ends " (ago(at)) } } },
        time_tag(action.at),
        html! {
            @if let Some(end) = end && context.has_permission(Permission::Operate) { (action_button(context, "/queues/undo", end, "", &[("id", &id)])) } @else { "—" }
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
                    select #action name="action" { @for (kind, name) in KINDS { option value=(kind.name()) selected[chosen == kind.name()] { (name) } } }
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
                    @if page_state.preview.is_some() { button.danger type="submit" name="do" value="start" { "Apply" } }
                }
            }
        }
    }
}

fn preview_notice(preview: &QueueActionPreview) -> Markup {
    let row = |one: &QueueActionSample| {
        vec![
            html! { a href=(format!("/messages/{}", encode_segment(&one.id))) { code { (one.id) } } },
            html! { (one.from) },
            html! { (one.to) },
            state_badge(one.state.name()),
        ]
    };
    let rows: Vec<_> = preview.sample.iter().take(20).map(row).collect();
    html! {
        div.wide.notice.warn role="status" {
            strong { "It affects " @if !preview.complete { "at least " } (plural(preview.messages, "message", "messages")) " now, and those that come later." }
            p { @for (state, number) in &preview.by_state { (state_badge(state)) " " (count(*number)) " " } }
            @if !rows.is_empty() { (table("Some of them", &["Message", "From", "To", "State"], &rows, &html! {})) }
        }
    }
}

fn request_body(form: &Form) -> Result<QueueActionRequest, ApiError> {
    let given = |name: &str| Some(form.text(name).to_owned()).filter(|text| !text.is_empty());
    let scope = QueueActionScopeView {
        peer: given("peer"),
        account: given("account"),
        prefix: given("prefix"),
        older_than: given("older-than"),
    };
    if scope == QueueActionScopeView::default() {
        return Err(ApiError::bad_request("Give a scope: peer, account, prefix or age."));
    }
    let kind = KINDS.iter().find(|(kind, _)| kind.name() == form.text("action"));
    let (action, _) = *kind.ok_or_else(|| ApiError::bad_request("Choose an action."))?;
    let to = (action == Kind::Reroute).then(|| form.text("to").to_owned());
    let undo_within = given("undo-within").filter(|_| matches!(action, Kind::Cancel | Kind::Purge));
    Ok(QueueActionRequest { action, scope, to, why: given("why"), undo_within })
}

pub(crate) async fn start(context: RequestContext, form: Form) -> Response {
    let outcome = async {
        let request = request_body(&form)?;
        if form.text("do") != "start" {
            let preview = context.send_json(Method::POST, "/v1/queue-actions/preview", &form, &request);
            return preview.await?.read().map(Some);
        }
        context.send_json(Method::POST, "/v1/queue-actions", &form, &request).await?;
        Ok::<Option<QueueActionPreview>, ApiError>(None)
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
