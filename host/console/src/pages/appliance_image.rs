//! The appliance image: a section of the maintenance page.

use super::maintenance::render;
use crate::api_caller::{ApiError, ApiRequest, ApiResponse, with_query};
use crate::form::Form;
use crate::format::{duration_text, octets, state_badge};
use crate::layout::csrf_field;
use crate::request_context::RequestContext;
use crate::table::detail_list;
use api::{FactoryResetRequest, ImageStatusView, OperateResult, Permission, StateRetention};
use axum::body::{Body, Bytes};
use axum::extract::multipart::Field;
use axum::extract::{Multipart, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use std::io;
use tokio::sync::mpsc;

/// The section about the appliance image.
pub(super) fn card(context: &RequestContext, status: &ImageStatusView) -> Markup {
    let other = status.slots.iter().find(|slot| slot.name != status.slot);
    let back = other.and_then(|slot| slot.healthy.as_deref());
    html! {
        section.card #appliance-image {
            h2 { "The machine" }
            (detail_list(&[
                ("System", html! {
                    (status.version) " from slot " (status.slot)
                    @if status.on_trial { " " (state_badge("uncertain")) " on trial: it is rolled back automatically if it does not become ready" }
                }),
                ("At the next start", html! { @if status.next == status.slot { "the same" } @else { "slot " (status.next) } }),
                ("In the other slot", html! {
                    (back.unwrap_or("no healthy system"))
                }),
                ("Up for", html! { (duration_text(status.up_seconds * 1_000)) }),
                ("Clock", html! {
                    @if status.clock_synchronised { "set by a time server" }
                    @else { (state_badge("uncertain")) " not set by a time server yet" }
                }),
                ("Data", html! { (octets(status.data_used)) " of " (octets(status.data_size)) }),
            ]))
            @if context.has_permission(Permission::ManageAppliance) { (action_forms(context, back)) }
        }
    }
}

fn action_forms(context: &RequestContext, back: Option<&str>) -> Markup {
    html! {
        h3 { "Update" }
        form.fields method="post" action="/maintenance/update" enctype="multipart/form-data" {
            (csrf_field(context))
            p { label for="update" { "Signed update (.raucb)" } input #update name="update" type="file" accept=".raucb" required; }
            p.actions {
                button.primary type="submit" { "Update and restart" }
                button type="submit" formaction="/maintenance/update?later=yes" { "Update at the next start" }
            }
            p.muted { "The update is written to the slot that does not run. Configuration and messages are kept; a system that does not start is rolled back automatically. An older daemon cannot open the data of a newer one, so take a backup first." }
        }
        @if let Some(version) = back {
            h3 { "Rollback" }
            form.fields method="post" action="/maintenance/appliance" {
                (csrf_field(context))
                p.actions { button.danger type="submit" name="do" value="rollback" { "Roll back to " (version) } }
            }
        }
        h3 { "Support" }
        p { a.button href="/v1/appliance/support-bundle" download="switchyard-support.tar.gz" { "Download a support bundle" } }
        p.muted { "It contains the journal, slots and network, but no configuration and no messages." }
        h3 { "Factory reset" }
        form.fields method="post" action="/maintenance/appliance" {
            (csrf_field(context))
            p {
                label for="state" { "Messages, balances, number pools, archive" }
                select #state name="state" required {
                    option value="" { "Choose" }
                    option value="keep" { "keep; delete configuration, users, tokens and keys" }
                    option value="drop" { "delete everything" }
                }
            }
            p { label { input #sure type="checkbox" name="sure" value="yes" required; " I understand that the network configuration and all users are deleted" } }
            p.actions { button.danger type="submit" name="do" value="reset" { "Reset and restart" } }
        }
    }
}

pub(crate) async fn change(context: RequestContext, form: Form) -> Response {
    let result = match form.text("do") {
        "rollback" => context.send(Method::POST, "/v1/appliance/rollback", &form, None).await,
        "reset" if form.text("sure") != "yes" => Err(ApiError::bad_request("Confirm the reset.")),
        "reset" => reset(&context, &form).await,
        _ => Err(ApiError::bad_request("This action does not exist.")),
    };
    show_result(&context, result).await
}

async fn reset(context: &RequestContext, form: &Form) -> Result<ApiResponse, ApiError> {
    let state = match form.text("state") {
        "keep" => StateRetention::Keep,
        "drop" => StateRetention::Drop,
        _ => return Err(ApiError::bad_request("Choose what to keep.")),
    };
    let request = FactoryResetRequest { state };
    context.send_json(Method::POST, "/v1/appliance/factory-reset", form, &request).await
}

async fn show_result(context: &RequestContext, result: Result<ApiResponse, ApiError>) -> Response {
    match result.and_then(|answer| answer.read()) {
        Ok(OperateResult { restarts: true, .. }) => RequestContext::redirect("/maintenance", "restarting"),
        Ok(_) => RequestContext::redirect("/maintenance", "next-start"),
        Err(error) => render(context, Some(&error)).await,
    }
}

/// The query of an update request.
#[derive(Deserialize)]
pub(crate) struct UpdateQuery {
    #[serde(default)]
    later: String,
}

pub(crate) async fn update(
    context: RequestContext,
    Query(UpdateQuery { later }): Query<UpdateQuery>,
    fields: Multipart,
) -> Response {
    let restart = if later == "yes" { "false" } else { "true" };
    let result = forward_upload(&context, fields, restart).await;
    show_result(&context, result).await
}

/// Reads the fields before the file, then streams the file to the API, because it is too large for memory.
async fn forward_upload(
    context: &RequestContext,
    mut fields: Multipart,
    restart: &str,
) -> Result<ApiResponse, ApiError> {
    let mut csrf = String::new();
    while let Some(field) = fields.next_field().await? {
        match field.name() {
            Some("csrf") => csrf = field.text().await?,
            Some("update") => {
                let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(4);
                let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
                    Some((receiver.recv().await?, receiver))
                });
                let path = with_query("/v1/appliance/update", &[("restart", restart)]);
                let sent = ApiRequest {
                    csrf: &csrf,
                    body: Body::from_stream(pieces),
                    media_type: "application/octet-stream",
                    headers: Vec::new(),
                };
                let asking = context.api_caller.call(Method::POST, &path, sent);
                let (answer, ()) = tokio::join!(asking, forward_chunks(field, sender));
                return answer;
            }
            _ => {}
        }
    }
    Err(ApiError::bad_request("Choose an update file."))
}

/// Forwards the chunks of a file until it ends or the receiver is closed.
async fn forward_chunks(mut field: Field<'_>, to: mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let piece = match field.chunk().await {
            Ok(Some(piece)) => Ok(piece),
            Ok(None) => return,
            Err(error) => Err(io::Error::other(error.body_text())),
        };
        let is_end = piece.is_err();
        if to.send(piece).await.is_err() || is_end {
            return;
        }
    }
}
