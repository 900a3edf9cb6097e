//! The configuration as one document: edit, validate, preview, apply, confirm.

use crate::api_caller::{ApiError, ApiRequest, with_query};
use crate::configuration_cache::{ConfigurationDocument, merge_patch};
use crate::form::Form;
use crate::format::{ago, count, now, state_badge, time_tag};
use crate::layout::{action_button, csrf_field, error_notice, page, problem_list};
use crate::nav::NavItem;
use crate::pages::peer::reason_fields;
use crate::pages::policies::difference;
use crate::problem_lines::{excerpt, line_in_message};
use crate::request_context::RequestContext;
use crate::table::{detail_list, table};
use crate::toml_text::highlighted;
use api::{
    ConfigChangeKindView, ConfigConfirmRequest, ConfigurationChangeResult, ConfigurationCheck, ManagedBy,
    Permission, UnconfirmedVersionView,
};
use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use configuration::SourceLines;
use maud::{Markup, html};
use serde_json::{Value, json};

/// The media type of a merge patch (RFC 7396).
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Longer lists are left out of the text; they have pages of their own.
const MAX_LIST: usize = 40;
/// The maximum length of the text, in octets.
const MAX_TEXT: usize = 1 << 20;

/// The input, errors and results that the page shows.
#[derive(Default)]
struct ConfigurationPageState {
    text: Option<String>,
    why: String,
    error: Option<ApiError>,
    /// The result of a validation.
    checked: Option<ConfigurationCheck>,
    /// The changes that need a restart.
    restart: Vec<String>,
}

pub(crate) async fn show(context: RequestContext) -> Response {
    render(&context, &ConfigurationPageState::default()).await
}

async fn render(context: &RequestContext, page_state: &ConfigurationPageState) -> Response {
    let body = context
        .console
        .configuration
        .read(context)
        .await
        .map(|document| page_body(context, &document, page_state));
    let mut response = page(context, "Configuration", NavItem::Configuration, body);
    if let Some(error) = &page_state.error {
        *response.status_mut() = error.status;
    }
    response
}

/// The part of a document that is edited as text, and the lists that are left out with their lengths.
fn editable(content: &Value) -> (Value, Vec<(String, usize)>) {
    let mut shown = content.clone();
    let mut left_out = Vec::new();
    if let Some(shown) = shown.as_object_mut() {
        shown.retain(|key, value| match value.as_array() {
            Some(list) if list.len() > MAX_LIST => {
                left_out.push((key.clone(), list.len()));
                false
            }
            _ => true,
        });
    }
    (shown, left_out)
}

fn page_body(
    context: &RequestContext,
    document: &ConfigurationDocument,
    page_state: &ConfigurationPageState,
) -> Markup {
    let is_files = document.mode == ManagedBy::File;
    let edits = context.has_permission(Permission::Configure) && !is_files;
    let (shown, left_out) = editable(&document.document);
    let live = configuration::to_toml(&shown).unwrap_or_default();
    let shown = page_state.text.clone().unwrap_or_else(|| live.clone());
    html! {
        div.heading {
            h1 { "Configuration" }
            a.button.quiet href="/configuration/versions" { "Versions" }
            a.button.quiet href="/v1/configuration/file" { "Download as TOML" }
        }
        (pending(context, document))
        @if !document.restart.is_empty() && page_state.restart.is_empty() {
            div.notice.warn role="status" {
                strong { "Stored; active after the next start" }
                p { @for pointer in &document.restart { code { (pointer) } " " } }
            }
        }
        @if let Some(error) = &page_state.error { (error_notice(error)) (problems_in_text(error, &shown)) }
        @if !page_state.restart.is_empty() {
            div.notice.warn role="status" {
                strong { "Applied; these settings take effect at the next start" }
                p { @for pointer in &page_state.restart { code { (pointer) } " " } }
            }
        }
        @if let Some(checked) = &page_state.checked { (validation_result(checked, &shown)) }
        @if page_state.text.is_some() && shown != live {
            section.card #difference { h2 { "Differences" } (difference(&live, &shown)) }
        }
        section.card {
            (detail_list(&[
                ("Version", html! { (document.version) }),
                ("Since", time_tag(document.at)),
                ("By", html! { (document.by) }),
                ("Why", html! { (match document.why.as_str() { "" => "—", why => why }) }),
            ]))
            @if is_files { p.notice.warn { "The configuration is managed by file: edit the file, and send SIGHUP to the daemon. This page is read-only." } }
        }
        section.card {
            h2 { "The document" }
            (highlighted(&live, "The document that is active"))
            @for (list, length) in &left_out {
                p.muted {
                    (count(*length as u64)) " of " code { (list) } " are not in this text, and stay unchanged"
                    @if list == "peer" { ": " a href="/peers" { "Peers" } } @else if list == "account" { ": " a href="/accounts" { "Accounts" } }
                    "."
                }
            }
        }
        @if edits {
            details.card #edit open[page_state.text.is_some()] {
                summary { "Edit the document" }
                form.fields method="post" action="/configuration" {
                    (csrf_field(context))
                    input type="hidden" name="tag" value=(document.tag());
                    p.wide {
                        label for="document" { "The document, as TOML" }
                        textarea.code #document name="document" rows="28" spellcheck="false" data-schema="/v1/configuration/schema" data-form-check="/configuration/check" aria-describedby="document-hint" aria-invalid=[page_state.error.as_ref().map(|_| "true")] { "\n" (shown) }
                        small #document-hint { "Keys, values and names are suggested while you type, and by Ctrl+Space. Secrets are not shown; the value " code { "(unchanged)" } " keeps a secret." }
                    }
                    (reason_fields(&page_state.why))
                    p.actions {
                        button.primary type="submit" name="do" value="validate" { "Validate" }
                        button.danger type="submit" name="do" value="apply" { "Apply" }
                        a.button.quiet href="/configuration" { "Discard changes" }
                    }
                    p.muted { "Validate lists all problems, all differences and their effects, and changes nothing." }
                }
                script src="/assets/document-editor.js" defer {}
            }
        }
    }
}

/// The notice about a version that waits for confirmation.
fn pending(context: &RequestContext, document: &ConfigurationDocument) -> Markup {
    let Some(UnconfirmedVersionView { version, reverts_at }) = document.pending else { return html! {} };
    let version = version.to_string();
    html! {
        div.notice.warn #pending role="status" {
            strong { "Version " (version) " waits for confirmation" }
            p { "It is reverted automatically " span data-until=(reverts_at) { (ago(reverts_at)) } ", and also if the appliance stops before." }
            progress max=(reverts_at.saturating_sub(document.at)) value=(reverts_at.saturating_sub(now())) data-until=(reverts_at) aria-label="Time left for the confirmation" {}
            @if context.has_permission(Permission::Configure) {
                div.actions {
                    (action_button(context, "/configuration/pending", "Confirm", "primary", &[("do", "confirm"), ("version", &version)]))
                    (action_button(context, "/configuration/pending", "Revert now", "danger", &[("do", "revert")]))
                }
            }
        }
    }
}

/// The line of a key in a text, from 1. For a missing key, the line of the innermost table that exists.
fn line_of(lines: &SourceLines, pointer: &str) -> Option<usize> {
    let mut above = std::iter::successors(Some(pointer), |at| at.rsplit_once('/').map(|(above, _)| above));
    above.find_map(|at| lines.key(at))
}

/// The problems, each at its line in the text.
fn problems_in_text(error: &ApiError, shown: &str) -> Markup {
    let lines = configuration::from_toml(shown).map(|(_, lines)| lines).unwrap_or_default();
    let mut problems_by_line: Vec<(usize, String)> = error
        .problems
        .iter()
        .filter_map(|problem| {
            let allowed = problem.allowed.as_ref().map(|allowed| format!(" (allowed: {allowed})"));
            let allowed = allowed.unwrap_or_default();
            let what = format!("{}: {}{allowed}", problem.pointer, problem.what);
            Some((line_of(&lines, &problem.pointer)?, what))
        })
        .collect();
    // A syntax error has no pointer, but a line.
    if error.problems.is_empty() {
        problems_by_line.extend(line_in_message(&error.detail).map(|line| (line, error.detail.clone())));
    }
    html! {
        (problem_list(error))
        @if !problems_by_line.is_empty() { section.card #problems { h2 { "Problems" } (excerpt(shown, &problems_by_line)) } }
    }
}

fn change_kind(kind: ConfigChangeKindView) -> &'static str {
    match kind {
        ConfigChangeKindView::Added => "added",
        ConfigChangeKindView::Changed => "changed",
        ConfigChangeKindView::Removed => "removed",
    }
}

fn validation_result(checked: &ConfigurationCheck, shown: &str) -> Markup {
    let ConfigurationCheck { valid, problems, changes, restart } = checked;
    let rows: Vec<_> = changes
        .iter()
        .map(|one| {
            vec![html! { code { (one.pointer) } }, state_badge(change_kind(one.what)), html! { (one.effect) }]
        })
        .collect();
    html! {
        @if *valid {
            div.notice.good role="status" { strong { "The configuration is valid." } p { "It is not active yet." } }
        } @else {
            div.notice.bad role="alert" { strong { "The configuration is not valid" } }
            (problems_in_text(&ApiError { problems: problems.clone(), ..ApiError::bad_request("") }, shown))
        }
        @if *valid {
            section.card #changes {
                h2 { "Changes" }
                (table("Changes", &["Where", "What", "Effect"], &rows, &html! { p { "There are no changes." } }))
                @if !restart.is_empty() {
                    p.notice.warn { "Only after a restart: " @for pointer in restart { code { (pointer) } " " } }
                }
            }
        }
    }
}

pub(crate) async fn change(context: RequestContext, form: Form) -> Response {
    let text = form.multiline("document");
    let mut page_state = ConfigurationPageState {
        text: Some(text.clone()),
        why: form.text("why").to_owned(),
        ..ConfigurationPageState::default()
    };
    match send_change(&context, &form, &text).await {
        Ok(ChangeAnswer::Applied(ConfigurationChangeResult { restart, .. })) => {
            if restart.is_empty() {
                return RequestContext::redirect("/configuration", "changed");
            }
            page_state = ConfigurationPageState { restart, ..ConfigurationPageState::default() };
        }
        Ok(ChangeAnswer::Checked(checked)) => page_state.checked = Some(checked),
        Err(error) => page_state.error = Some(error),
    }
    render(&context, &page_state).await
}

enum ChangeAnswer {
    Applied(ConfigurationChangeResult),
    Checked(ConfigurationCheck),
}

/// Checks the document of the form while it is written, for the script: the first problem, with its line.
pub(crate) async fn check(context: RequestContext, form: Form) -> Response {
    let text = form.multiline("document");
    let checked = match patch_of(&context, &text).await {
        Ok(patch) => validate(&context, &form, &patch).await,
        Err(error) => Err(error),
    };
    let problem = match checked {
        Ok(checked) => {
            let lines = configuration::from_toml(&text).map(|(_, lines)| lines).unwrap_or_default();
            checked.problems.first().map(|problem| {
                let words = format!("{}: {}", problem.pointer, problem.what);
                match line_of(&lines, &problem.pointer) {
                    Some(line) => format!("line {line}\n{words}"),
                    None => words,
                }
            })
        }
        Err(error) if error.status.is_client_error() => Some(error.detail),
        Err(error) => return (error.status, Json(json!({ "detail": error.detail }))).into_response(),
    };
    match problem {
        None => Json(json!({ "unknown": [] })).into_response(),
        Some(detail) => (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": detail }))).into_response(),
    }
}

async fn send_change(context: &RequestContext, form: &Form, text: &str) -> Result<ChangeAnswer, ApiError> {
    let patch = patch_of(context, text).await?;
    if form.text("do") == "apply" {
        return send_patch(context, form, &patch).await.map(ChangeAnswer::Applied);
    }
    validate(context, form, &patch).await.map(ChangeAnswer::Checked)
}

async fn validate(
    context: &RequestContext,
    form: &Form,
    patch: &Value,
) -> Result<ConfigurationCheck, ApiError> {
    let sent = ApiRequest { media_type: MERGE_PATCH, ..ApiRequest::json(form.text("csrf"), patch) };
    context.api_caller.call(Method::POST, "/v1/configuration/validate", sent).await?.read()
}

/// The merge patch that turns the active configuration into this text.
async fn patch_of(context: &RequestContext, text: &str) -> Result<Value, ApiError> {
    if text.len() > MAX_TEXT {
        return Err(ApiError::bad_request("This text is too long. Use `switchyard config apply`."));
    }
    let (after, _) = configuration::from_toml(text).map_err(|problems| {
        // The detail contains the line, which is shown like that of other problems.
        let problem = problems.first().map(ToString::to_string).unwrap_or_default();
        ApiError::bad_request(format!("This is not a configuration in TOML: {problem}. Nothing was changed."))
    })?;
    let document = context.console.configuration.read(context).await?;
    let (before, _) = editable(&document.document);
    Ok(merge_patch(&before, &after))
}

/// Sends a merge patch of the configuration, with the version, the reason and the confirmation time of the form.
pub(crate) async fn send_patch(
    context: &RequestContext,
    form: &Form,
    patch: &Value,
) -> Result<ConfigurationChangeResult, ApiError> {
    let path = with_query(
        "/v1/configuration",
        &[("why", form.text("why")), ("confirm-within", form.text("within"))],
    );
    let sent = ApiRequest {
        media_type: MERGE_PATCH,
        headers: vec![("if-match", form.text("tag").to_owned())],
        ..ApiRequest::json(form.text("csrf"), patch)
    };
    context.api_caller.call(Method::PATCH, &path, sent).await?.read()
}

async fn settle_pending(context: &RequestContext, form: &Form) -> Result<&'static str, ApiError> {
    if form.text("do") == "confirm" {
        let version =
            form.text("version").parse().map_err(|_| ApiError::bad_request("A version is a number."))?;
        let request = ConfigConfirmRequest { version };
        context.send_json(Method::POST, "/v1/configuration/confirm", form, &request).await?;
        return Ok("confirmed");
    }
    context.send(Method::POST, "/v1/configuration/revert", form, None).await?;
    Ok("reverted")
}

/// Confirms or reverts the pending version.
pub(crate) async fn settle(context: RequestContext, form: Form) -> Response {
    match settle_pending(&context, &form).await {
        Ok(done) => RequestContext::redirect("/configuration", done),
        Err(error) => {
            render(
                &context,
                &ConfigurationPageState { error: Some(error), ..ConfigurationPageState::default() },
            )
            .await
        }
    }
}
