//! Plugin versions that are kept, hooks that they serve, and the way for new ones.

use crate::ask::{Refusal, Sent, part};
use crate::shell::{Room, csrf, page, trouble};
use crate::table::table;
use crate::visit::Visit;
use crate::words::{count, either, number, octets, state, text, version};
use axum::body::Bytes;
use axum::extract::Multipart;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

pub(crate) async fn show(visit: Visit) -> Response {
    draw(&visit, None).await
}

async fn draw(visit: &Visit, refusal: Option<&Refusal>) -> Response {
    let body = parts(visit, refusal).await;
    let mut response = page(visit, "Plugins", Room::Plugins, body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

async fn parts(visit: &Visit, refusal: Option<&Refusal>) -> Result<Markup, Refusal> {
    let (kept, hooks) =
        tokio::join!(visit.get::<Vec<Value>>("/v1/plugins"), visit.get::<Vec<Value>>("/v1/hooks"));
    let (kept, hooks) = (kept?, hooks?);
    let is_live = |plugin: &str, version: &str| {
        let chains = hooks.iter().filter_map(|hook| hook["live"]["chain"].as_array()).flatten();
        chains.into_iter().any(|one| text(one, "plugin") == plugin && text(one, "version") == version)
    };
    let versions: Vec<_> = kept
        .iter()
        .rev()
        .map(|one| {
            let (name, sum) = (text(one, "plugin"), text(one, "version"));
            let imports = one["imports"].as_array().map(Vec::as_slice).unwrap_or_default();
            vec![
                html! { strong { (name) } },
                version(sum),
                html! { a href=(format!("/plugins/{}", text(one, "hook"))) { (text(one, "hook")) } },
                html! { @if is_live(name, sum) { (state("live")) } @else { "kept" } },
                html! { (octets(number(one, "size"))) },
                html! { @match either(one, "signed-by").as_str() { Some(who) => { (who) } None => { span.muted { "nobody" } } } },
                html! { @if imports.is_empty() { "—" } @for import in imports { code { (import.as_str().unwrap_or_default()) } " " } },
            ]
        })
        .collect();
    let served: Vec<_> = hooks
        .iter()
        .map(|hook| {
            let name = text(hook, "hook");
            let chain = hook["live"]["chain"].as_array().map(Vec::as_slice).unwrap_or_default();
            let calls: u64 = hook["counts"].as_array().into_iter().flatten().map(|one| number(one, "calls")).sum();
            vec![
                html! { a href=(format!("/plugins/{name}")) { (name) } },
                html! {
                    @if chain.is_empty() { span.muted { "nothing" } }
                    @for one in chain { span.plugin { (text(one, "plugin")) " " (version(text(one, "version"))) } }
                },
                html! { @match hook["candidate"]["mode"].as_str() { Some(mode) => { (state(mode)) } None => { span.muted { "nothing" } } } },
                html! { (count(calls)) },
            ]
        })
        .collect();
    let empty = html! {
        h2 { "No plugin is kept yet" }
        p { "A plugin is a WebAssembly component. " code { "switchyard plugin new" } " begins one, in four languages." }
    };
    Ok(html! {
        h1 { "Plugins" }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        section.card { h2 { "Hooks" } (table("Hooks", &["Hook", "Live", "On trial", "Calls"], &served, &html! { p { "There are no hooks." } })) }
        @if visit.may("manage-plugins") { (uploading(visit)) }
        section.card {
            h2 { "Versions that are kept" }
            (table("Versions", &["Plugin", "Version", "Hook", "State", "Size", "Signed by", "Uses"], &versions, &empty))
        }
    })
}

fn uploading(visit: &Visit) -> Markup {
    html! {
        section.card {
            h2 { "Upload a version" }
            form.fields method="post" action="/plugins/upload" enctype="multipart/form-data" {
                // First of all fields, so that it is known before the component comes.
                (csrf(visit))
                p { label for="name" { "Plugin" } input #name name="name" required maxlength="64" autocomplete="off" spellcheck="false" aria-describedby="name-hint"; small #name-hint { "The name under which its versions are kept: router" } }
                p { label for="signature" { "Signature" } input #signature name="signature" autocomplete="off" spellcheck="false" aria-describedby="signature-hint"; small #signature-hint { "Base64 of its ed25519 signature; may be needed here." } }
                p { label for="component" { "Component" } input #component name="component" type="file" accept=".wasm,application/wasm" required; }
                p.do { button.primary type="submit" { "Upload" } }
                p.muted { "A version that is kept decides nothing until it is activated or tried out." }
            }
        }
    }
}

/// What an upload has brought.
#[derive(Default)]
struct Upload {
    csrf: String,
    name: String,
    signature: String,
    component: Bytes,
}

async fn read(mut fields: Multipart) -> Result<Upload, Refusal> {
    let mut upload = Upload::default();
    while let Some(field) = fields.next_field().await? {
        let name = field.name().unwrap_or_default().to_owned();
        match name.as_str() {
            "csrf" => upload.csrf = field.text().await?,
            "name" => upload.name = field.text().await?.trim().to_owned(),
            "signature" => upload.signature = field.text().await?.trim().to_owned(),
            "component" => upload.component = field.bytes().await?,
            _ => {}
        }
    }
    if upload.name.is_empty() {
        return Err(Refusal::bad("Say which plugin this is a version of."));
    }
    if upload.component.is_empty() {
        return Err(Refusal::bad("Choose the file of the component."));
    }
    Ok(upload)
}

pub(crate) async fn upload(visit: Visit, fields: Multipart) -> Response {
    let asked = match read(fields).await {
        Ok(upload) => {
            let mut sent = Sent {
                csrf: &upload.csrf,
                body: upload.component.clone().into(),
                media_type: "application/wasm",
                headers: Vec::new(),
            };
            if !upload.signature.is_empty() {
                sent.headers.push(("switchyard-signature", upload.signature.clone()));
            }
            let path = format!("/v1/plugins/{}", part(&upload.name));
            visit.asker.ask(Method::PUT, &path, sent).await.and_then(|answer| answer.read::<Value>())
        }
        Err(refusal) => Err(refusal),
    };
    match asked {
        Ok(info) => {
            let place =
                format!("/plugins/{}?version={}", part(text(&info, "hook")), part(text(&info, "version")));
            Visit::to(&place, "uploaded")
        }
        Err(refusal) => draw(&visit, Some(&refusal)).await,
    }
}
