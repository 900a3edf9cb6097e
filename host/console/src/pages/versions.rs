//! The versions of the configuration, and rollback.

use crate::api_caller::{ApiError, ApiRequest, encode_segment, with_query};
use crate::form::Form;
use crate::format::{count, time_tag};
use crate::layout::{csrf_field, error_notice, page, problem_list};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use crate::table::{detail_list, next_page_link, table};
use api::{
    ConfigDifferenceView, ConfigRollbackRequest, ConfigVersionPageView, ConfigVersionSummaryView,
    ConfigVersionView, ConfigurationDiff, Permission,
};
use axum::extract::{Path, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let path =
        with_query("/v1/configuration/versions", &[("limit", "100"), ("before", query.text("before"))]);
    let body = context.get(&path).await.map(|found| list(&found));
    page(&context, "Versions of the configuration", NavItem::Configuration, body)
}

fn list(found: &ConfigVersionPageView) -> Markup {
    let row = |ConfigVersionSummaryView { version, at, by, why, changes }: &ConfigVersionSummaryView| {
        vec![
            html! { a href=(format!("/configuration/versions/{version}")) { "Version " (version) } },
            time_tag(*at),
            html! { (by) },
            html! { (match why.as_str() { "" => "—", why => why }) },
            html! { (count(*changes as u64)) },
        ]
    };
    let rows: Vec<_> = found.versions.iter().map(row).collect();
    let next = found.next.map(|next| next.to_string());
    html! {
        h1 { "Versions of the configuration" }
        section.card { (table("Versions, newest first", &["Version", "When", "By", "Why", "Changes"], &rows, &html! { p { "There are no versions yet." } })) }
        @if let Some(next) = &next { (next_page_link("/configuration/versions", &[("before", next)])) }
    }
}

pub(crate) async fn show_version(context: RequestContext, Path(version): Path<String>) -> Response {
    render(&context, &version, None).await
}

async fn render(context: &RequestContext, version: &str, error: Option<&ApiError>) -> Response {
    let body = page_body(context, version, error).await;
    let mut response = page(context, &format!("Version {version}"), NavItem::Configuration, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

/// The changes between two versions as a table.
fn changes(changes: &[ConfigDifferenceView], before: &str, after: &str) -> Markup {
    let shown = |value: &Option<Value>| match value {
        None => html! { span.muted { "—" } },
        Some(Value::String(text)) => html! { code { (text) } },
        Some(other) => {
            let text = other.to_string();
            let short: String = text.chars().take(200).collect();
            html! { code { (short) @if short.len() < text.len() { "…" } } }
        }
    };
    let rows: Vec<_> = changes
        .iter()
        .map(|one| vec![html! { code { (one.pointer) } }, shown(&one.before), shown(&one.after)])
        .collect();
    table("Changes", &["Where", before, after], &rows, &html! { p { "There are no differences." } })
}

async fn page_body(
    context: &RequestContext,
    version: &str,
    error: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let chosen: u64 = version.parse().map_err(|_| ApiError::bad_request("A version is a number."))?;
    let path = format!("/v1/configuration/versions/{chosen}");
    let (found, newest) = tokio::join!(
        context.get::<ConfigVersionView>(&path),
        context.get::<ConfigVersionPageView>("/v1/configuration/versions?limit=1")
    );
    let (ConfigVersionView { summary: found, .. }, newest) = (found?, newest?);
    let current = newest.versions.first().map_or(0, |newest| newest.version);
    let diff = |from: u64, to: u64| {
        let path =
            with_query("/v1/configuration/diff", &[("from", &from.to_string()), ("to", &to.to_string())]);
        async move { context.get::<ConfigurationDiff>(&path).await }
    };
    let own_changes = if chosen > 1 { diff(chosen - 1, chosen).await.ok() } else { None };
    let rollback_changes = if chosen == current { None } else { Some(diff(current, chosen).await?) };
    Ok(html! {
        h1 { "Version " (chosen) }
        @if let Some(error) = error { (error_notice(error)) (problem_list(error)) }
        section.card {
            (detail_list(&[
                ("When", time_tag(found.at)),
                ("By", html! { (found.by) }),
                ("Why", html! { (match found.why.as_str() { "" => "—", why => why }) }),
                ("Active", html! { (if chosen == current { "yes" } else { "no" }) }),
            ]))
        }
        @if let Some(own_changes) = &own_changes { section.card { h2 { "Changes of this version" } (changes(&own_changes.changes, "Before", "After")) } }
        @if let Some(rollback_changes) = &rollback_changes {
            section.card {
                h2 { "Changes of a rollback to this version" }
                (changes(&rollback_changes.changes, "Now", "Then"))
                @if context.has_permission(Permission::Configure) {
                    form.fields method="post" action=(format!("/configuration/versions/{chosen}")) {
                        (csrf_field(context))
                        input type="hidden" name="tag" value=(format!("\"{current}\""));
                        p.wide { label for="why" { "Why" } input #why name="why" maxlength="256" autocomplete="off"; }
                        p.actions { button.danger type="submit" { "Roll back to version " (chosen) } }
                        p.muted { "The rollback creates a new version; no version is lost." }
                    }
                }
            }
        }
        p { a href="/configuration/versions" { "All versions" } }
    })
}

async fn send_rollback(context: &RequestContext, version: &str, form: &Form) -> Result<(), ApiError> {
    let to = version.parse().map_err(|_| ApiError::bad_request("A version is a number."))?;
    let request = ConfigRollbackRequest { to, why: Some(form.text("why").to_owned()), confirm_within: None };
    let sent = ApiRequest {
        headers: vec![("if-match", form.text("tag").to_owned())],
        ..ApiRequest::json(form.text("csrf"), &request)
    };
    context.api_caller.call(Method::POST, "/v1/configuration/rollback", sent).await.map(drop)
}

pub(crate) async fn roll_back(context: RequestContext, Path(version): Path<String>, form: Form) -> Response {
    match send_rollback(&context, &version, &form).await {
        Ok(()) => RequestContext::redirect("/configuration", "reverted"),
        Err(error) => render(&context, &encode_segment(&version), Some(&error)).await,
    }
}
