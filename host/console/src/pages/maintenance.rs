//! Maintenance: drain, backup, appliance image and log level.

use super::appliance_image;
use crate::api_caller::ApiError;
use crate::form::Form;
use crate::format::{count, duration_text, octets, plural, state_badge, time_tag};
use crate::layout::{action_button, csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::detail_list;
use api::{DrainStateView, ImageStatusView, LogLevelRequest, LogLevelView, Permission, StatusView};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

pub(crate) async fn show(context: RequestContext) -> Response {
    render(&context, None).await
}

pub(super) async fn render(context: &RequestContext, error: Option<&ApiError>) -> Response {
    let body = page_body(context, error).await;
    let mut response = page(context, "Maintenance", NavItem::Maintenance, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

async fn page_body(context: &RequestContext, error: Option<&ApiError>) -> Result<Markup, ApiError> {
    let (status, drain, log, machine) = tokio::join!(
        context.get::<StatusView>("/v1/status"),
        context.get_optional::<DrainStateView>("/v1/drain"),
        context.get_optional::<LogLevelView>("/v1/log"),
        context.get_optional::<ImageStatusView>("/v1/appliance"),
    );
    let status = status?;
    Ok(html! {
        h1 { "Maintenance" }
        @if let Some(error) = error { (error_notice(error)) }
        section.card {
            h2 { "The appliance" }
            (detail_list(&[
                ("Name", html! { (status.name) }),
                ("Version", html! { (status.version) }),
                ("Up for", html! { (duration_text(status.uptime_seconds * 1_000)) }),
                ("Free disk", html! { (octets(status.disk_free)) " " @if status.disk_low { (state_badge("down")) " submissions are refused" } }),
                ("Recovered at the start", html! { (plural(status.recovered, "message", "messages")) " in " (duration_text(status.recovery_ms)) }),
            ]))
        }
        section.card { h2 { "Drain" } (drain_details(context, drain.as_ref())) }
        @if context.has_permission(Permission::ManageBackups) {
            section.card {
                h2 { "Backup" }
                p { "One file with everything: queues, configuration, users, plugins, texts and secrets. You can take it while traffic flows." }
                p { a.button href="/v1/backup" download="switchyard-backup.tar" { "Download a backup" } }
                p.muted { "To restore it: " code { "switchyard restore FILE --data DIR" } }
            }
        }
        @if let Some(machine) = &machine { (appliance_image::card(context, machine)) }
        section.card { h2 { "Log" } (log_level_form(context, log.as_ref())) }
    })
}

fn drain_details(context: &RequestContext, drain: Option<&DrainStateView>) -> Markup {
    let Some(drain) = drain else {
        return html! { p { "This appliance does not support draining." } };
    };
    html! {
        @if drain.draining {
            p { (state_badge("uncertain")) " Drained by " (drain.by.as_deref().unwrap_or("—")) " since " @match drain.since { Some(at) => { (time_tag(at)) } None => { "—" } } ": no new messages are accepted, waiting messages are sent." }
            (detail_list(&[("Waiting", html! { (count(drain.remaining.waiting)) }), ("In flight", html! { (count(drain.remaining.in_flight)) })]))
        } @else {
            p { "Submissions are accepted. A drain refuses new submissions, sends the waiting messages, and reports the appliance as not ready to load balancers." }
        }
        @if context.has_permission(Permission::Configure) {
            div.actions {
                @if drain.draining { (action_button(context, "/maintenance", "End the drain", "primary", &[("do", "resume")])) }
                @else { (action_button(context, "/maintenance", "Start the drain", "danger", &[("do", "drain")])) }
            }
        }
    }
}

fn log_level_form(context: &RequestContext, log: Option<&LogLevelView>) -> Markup {
    let level = log.map(|log| log.level.as_str()).unwrap_or_default();
    html! {
        @if context.has_permission(Permission::Configure) {
            form.fields method="post" action="/maintenance" {
                (csrf_field(context))
                p.wide { label for="level" { "Level" } input #level name="level" value=(level) required autocomplete="off" spellcheck="false" aria-describedby="level-hint"; small #level-hint { "info, or with exceptions: info,links=debug. Until the next start." } }
                p.actions { button type="submit" name="do" value="level" { "Set" } }
            }
        } @else { p { "Level: " code { (level) } } }
    }
}

pub(crate) async fn change(context: RequestContext, form: Form) -> Response {
    let result = match form.text("do") {
        "drain" => context.send(Method::POST, "/v1/drain", &form, None).await.map(|_| "draining"),
        "resume" => context.send(Method::DELETE, "/v1/drain", &form, None).await.map(|_| "resumed"),
        "level" => {
            let request = LogLevelRequest { level: form.text("level").to_owned() };
            context.send_json(Method::PUT, "/v1/log", &form, &request).await.map(|_| "level")
        }
        _ => Err(ApiError::bad_request("This action does not exist.")),
    };
    match result {
        Ok(done) => RequestContext::redirect("/maintenance", done),
        Err(error) => render(&context, Some(&error)).await,
    }
}
