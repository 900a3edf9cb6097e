//! Plugins: stored versions, hooks and uploads.

use crate::api_caller::{ApiError, ApiRequest, encode_segment};
use crate::format::{count, octets, state_badge, version_tag};
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::hook::chain_tags;
use crate::pages::plugin_pull::{self, origin_cell};
use crate::pages::{outdated_plugins, plugin_setup};
use crate::request_context::RequestContext;
use crate::table::table;
use api::{HookStateView, Permission, PluginVersionView};
use axum::body::Bytes;
use axum::extract::Multipart;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

pub(crate) async fn show(context: RequestContext) -> Response {
    render(&context, None).await
}

async fn render(context: &RequestContext, error: Option<&ApiError>) -> Response {
    let body = page_body(context, error).await;
    let mut response = page(context, "Plugins", NavItem::Plugins, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

async fn page_body(context: &RequestContext, error: Option<&ApiError>) -> Result<Markup, ApiError> {
    let (stored, hooks) = tokio::join!(
        context.get::<Vec<PluginVersionView>>("/v1/plugins"),
        context.get::<Vec<HookStateView>>("/v1/hooks")
    );
    let (stored, hooks) = (stored?, hooks?);
    let is_live = |stored: &PluginVersionView| {
        let mut bindings = hooks.iter().flat_map(|hook| &hook.live.chain);
        bindings.any(|one| one.plugin == stored.plugin && one.version == stored.version)
    };
    let manages = context.has_permission(Permission::ManagePlugins);
    let versions: Vec<_> = stored
        .iter()
        .rev()
        .map(|one| {
            let hook = one.hook.name();
            vec![
                html! { strong { (one.plugin) } },
                html! {
                    @if manages { a href=(plugin_setup::path(hook, &one.plugin, &one.version)) { (version_tag(&one.version)) } }
                    @else { (version_tag(&one.version)) }
                },
                html! { a href=(format!("/plugins/{hook}")) { (hook) } },
                html! { @if is_live(one) { (state_badge("live")) } @else { "stored" } },
                html! { (octets(one.size)) },
                html! { @match &one.signed_by { Some(who) => { (who) } None => { span.muted { "not signed" } } } },
                origin_cell(one),
                html! { @if one.imports.is_empty() { "—" } @for import in &one.imports { code { (import) } " " } },
            ]
        })
        .collect();
    let served: Vec<_> = hooks
        .iter()
        .map(|hook| {
            let (name, chain) = (hook.hook.name(), &hook.live.chain);
            let calls: u64 = hook.counts.iter().map(|one| one.calls).sum();
            vec![
                html! { a href=(format!("/plugins/{name}")) { (name) } },
                html! {
                    @if chain.is_empty() { span.muted { "nothing" } } @else { (chain_tags(chain)) }
                },
                html! { @match &hook.candidate { Some(candidate) => { (state_badge(candidate.record.mode.name())) } None => { span.muted { "nothing" } } } },
                html! { (count(calls)) },
            ]
        })
        .collect();
    let empty = html! {
        h2 { "No plugin versions are stored yet" }
        p { "A plugin is a WebAssembly component. " code { "switchyard plugin new" } " creates a project, in four languages." }
    };
    Ok(html! {
        div.heading {
            h1 { "Plugins" }
            @if manages {
                @if stored.iter().any(|one| one.origin.is_some()) {
                    a.button.quiet href=(outdated_plugins::PATH) { "Find outdated versions" }
                }
                a.button.quiet href=(plugin_pull::PATH) { "Pull from a source" }
            }
        }
        @if let Some(error) = error { (error_notice(error)) }
        section.card { h2 { "Hooks" } (table("Hooks", &["Hook", "Live", "Candidate", "Calls"], &served, &html! { p { "There are no hooks." } })) }
        @if manages { (upload_form(context)) }
        section.card {
            h2 { "Stored versions" }
            (table("Versions", &["Plugin", "Version", "Hook", "State", "Size", "Signed by", "From", "Uses"], &versions, &empty))
        }
    })
}

fn upload_form(context: &RequestContext) -> Markup {
    html! {
        section.card {
            h2 { "Upload a version" }
            form.fields method="post" action="/plugins/upload" enctype="multipart/form-data" {
                // The CSRF token is the first field, so that it arrives before the component.
                (csrf_field(context))
                p { label for="name" { "Plugin" } input #name name="name" required maxlength="64" autocomplete="off" spellcheck="false" aria-describedby="name-hint"; small #name-hint { "The name of the plugin: router" } }
                p { label for="signature" { "Signature" } input #signature name="signature" autocomplete="off" spellcheck="false" aria-describedby="signature-hint"; small #signature-hint { "The ed25519 signature in Base64; required if the appliance demands signatures." } }
                p { label for="component" { "Component" } input #component name="component" type="file" accept=".wasm,application/wasm" required; }
                p { label for="sbom" { "Bill of materials" } input #sbom name="sbom" type="file" accept=".json,application/json" aria-describedby="sbom-hint"; small #sbom-hint { "Optional: SPDX or CycloneDX, in JSON." } }
                p.actions { button.primary type="submit" { "Upload" } }
                p.muted { "A stored version is not used until you activate it or put it on trial." }
            }
        }
    }
}

/// The fields of the upload form.
#[derive(Default)]
struct Upload {
    csrf: String,
    name: String,
    signature: String,
    component: Bytes,
    /// Empty: none.
    sbom: Bytes,
}

async fn read(mut fields: Multipart) -> Result<Upload, ApiError> {
    let mut upload = Upload::default();
    while let Some(field) = fields.next_field().await? {
        let name = field.name().unwrap_or_default().to_owned();
        match name.as_str() {
            "csrf" => upload.csrf = field.text().await?,
            "name" => upload.name = field.text().await?.trim().to_owned(),
            "signature" => upload.signature = field.text().await?.trim().to_owned(),
            "component" => upload.component = field.bytes().await?,
            "sbom" => upload.sbom = field.bytes().await?,
            _ => {}
        }
    }
    if upload.name.is_empty() {
        return Err(ApiError::bad_request("Give the name of the plugin."));
    }
    if upload.component.is_empty() {
        return Err(ApiError::bad_request("Choose a component file."));
    }
    Ok(upload)
}

/// Stores a component, and its bill of materials.
async fn send(context: &RequestContext, upload: Upload) -> Result<PluginVersionView, ApiError> {
    let Upload { csrf, name, signature, component, sbom } = upload;
    let request = |body: Bytes, media_type| ApiRequest {
        csrf: &csrf,
        body: body.into(),
        media_type,
        headers: Vec::new(),
    };
    let mut sent = request(component, "application/wasm");
    if !signature.is_empty() {
        sent.headers.push(("switchyard-signature", signature));
    }
    let path = format!("/v1/plugins/{}", encode_segment(&name));
    let stored: PluginVersionView = context.api_caller.call(Method::PUT, &path, sent).await?.read()?;
    if sbom.is_empty() {
        return Ok(stored);
    }
    let path = format!("{path}/{}/sbom", encode_segment(&stored.version));
    context.api_caller.call(Method::PUT, &path, request(sbom, "application/json")).await?.read()
}

pub(crate) async fn upload(context: RequestContext, fields: Multipart) -> Response {
    let result = match read(fields).await {
        Ok(upload) => send(&context, upload).await,
        Err(error) => Err(error),
    };
    match result {
        Ok(info) => {
            let path = plugin_setup::path(info.hook.name(), &info.plugin, &info.version);
            RequestContext::redirect(&path, "uploaded")
        }
        Err(error) => render(&context, Some(&error)).await,
    }
}
