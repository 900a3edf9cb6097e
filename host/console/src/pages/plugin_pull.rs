//! The form that lets the appliance pull a plugin from a source: first source and plugin, then one of its tags.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::pages::{QueryParams, plugin_setup};
use crate::request_context::RequestContext;
use api::{PluginOrigin, PluginPullRequest, PluginSourceView, PluginTagsView, PluginVersionView};
use axum::extract::Query;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// The path of this page.
pub(crate) const PATH: &str = "/plugins/pull";

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    render(&context, &Form::of(query), None).await
}

pub(crate) async fn pull(context: RequestContext, form: Form) -> Response {
    let filled = |name: &str| Some(form.text(name).to_owned()).filter(|text| !text.is_empty());
    let request = PluginPullRequest {
        source: form.text("source").to_owned(),
        plugin: form.text("plugin").to_owned(),
        tag: filled("tag"),
        digest: filled("digest"),
        name: filled("name"),
    };
    let answer = context.send_json(Method::POST, "/v1/plugins/pull", &form, &request).await;
    match answer.and_then(|answer| answer.read::<PluginVersionView>()) {
        Ok(info) => {
            let path = plugin_setup::path(info.hook.name(), &info.plugin, &info.version);
            RequestContext::redirect(&path, "pulled")
        }
        Err(error) => render(&context, &form, Some(&error)).await,
    }
}

async fn render(context: &RequestContext, form: &Form, error: Option<&ApiError>) -> Response {
    let (source, plugin) = (form.text("source"), form.text("plugin"));
    let path = format!("/v1/plugins/sources/{}/{}/tags", encode_segment(source), encode_segment(plugin));
    let tags = async {
        if source.is_empty() || plugin.is_empty() {
            return None;
        }
        Some(context.get::<PluginTagsView>(&path).await)
    };
    let (sources, stored, tags) = tokio::join!(
        context.get::<Vec<PluginSourceView>>("/v1/plugins/sources"),
        context.get::<Vec<PluginVersionView>>("/v1/plugins"),
        tags
    );
    // A digest can be pulled from a registry that lists no tags.
    let (tags, unlisted) = match tags {
        Some(Ok(tags)) => (Some(tags), None),
        Some(Err(error)) => (Some(PluginTagsView { tags: Vec::new(), complete: true }), Some(error)),
        None => (None, None),
    };
    let error = error.or(unlisted.as_ref());
    let body = sources.and_then(|sources| Ok((sources, stored?))).map(|(sources, stored)| {
        let plugins: BTreeSet<_> = stored.iter().map(|version| &*version.plugin).collect();
        html! {
            h1 { "Pull a plugin" }
            p.lead { "The appliance reads the plugin from one of its sources, and stores it without activating it." }
            @if let Some(error) = error { (error_notice(error)) }
            (plugin_form(&sources, &plugins, source, plugin))
            @if let Some(tags) = tags { (tag_form(context, form, &tags)) }
        }
    });
    let mut response = page(context, "Pull a plugin", NavItem::Plugins, body);
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

fn plugin_form(sources: &[PluginSourceView], plugins: &BTreeSet<&str>, source: &str, plugin: &str) -> Markup {
    if sources.is_empty() {
        return html! { section.card { p { "The configuration names no sources: see " code { "[plugins] sources" } "." } } };
    }
    html! {
        section.card {
            h2 { "Plugin" }
            form.fields method="get" action=(PATH) {
                p {
                    label for="source" { "Source" }
                    select #source name="source" {
                        @for one in sources { option value=(one.name) selected[one.name == source] { (one.name) ": " (one.url) } }
                    }
                }
                p {
                    label for="plugin" { "Plugin" }
                    input #plugin name="plugin" value=(plugin) required maxlength="64" list="plugins" autocomplete="off" spellcheck="false" aria-describedby="plugin-hint";
                    datalist #plugins { @for name in plugins { option value=(name) {} } }
                    small #plugin-hint { "The last part of its repository's name, or the name of its folder: least-cost" }
                }
                p.actions { button type="submit" { "List its tags" } }
            }
        }
    }
}

fn tag_form(context: &RequestContext, form: &Form, tags: &PluginTagsView) -> Markup {
    let (source, plugin) = (form.text("source"), form.text("plugin"));
    let tag = form.text("tag");
    html! {
        section.card {
            h2 { (source) "/" (plugin) }
            form.fields method="post" action=(PATH) {
                (csrf_field(context))
                input type="hidden" name="source" value=(source);
                input type="hidden" name="plugin" value=(plugin);
                p {
                    label for="tag" { "Tag" }
                    select #tag name="tag" aria-describedby="tag-hint" {
                        option value="" { "none: by its digest" }
                        @for one in tags.tags.iter().rev() { option value=(one) selected[one == tag] { (one) } }
                    }
                    small #tag-hint {
                        "The tag is resolved once; the version keeps its digest."
                        @if !tags.complete { " There are more tags; to pull one of them, use the command line." }
                    }
                }
                p {
                    label for="digest" { "Digest" }
                    input #digest name="digest" value=(form.text("digest")) maxlength="71" autocomplete="off" spellcheck="false" aria-describedby="digest-hint";
                    small #digest-hint { "sha256: and 64 hexadecimal digits. If you also give a tag, it must point to this digest." }
                }
                p {
                    label for="name" { "Name" }
                    input #name name="name" value=(form.text("name")) maxlength="64" autocomplete="off" spellcheck="false" aria-describedby="name-hint";
                    small #name-hint { "The name on the appliance; if empty, the name in the source." }
                }
                p.actions { button.primary type="submit" { "Pull" } }
            }
        }
    }
}

/// The origin of a version, with a link to its bill of materials, for tables.
pub(crate) fn origin_cell(version: &PluginVersionView) -> Markup {
    html! {
        @match &version.origin {
            Some(PluginOrigin { source, plugin, tag, location, digest }) => {
                span title=(location) { (source) "/" (plugin) @if let Some(tag) = tag { ":" (tag) } } " "
                code title=(digest) { (digest.chars().take(19).collect::<String>()) }
            }
            None => { span.muted { "uploaded" } }
        }
        @if version.sbom {
            @let (name, number) = (encode_segment(&version.plugin), encode_segment(&version.version));
            " " a href=(format!("/v1/plugins/{name}/{number}/sbom")) download=(format!("{}.sbom.json", version.plugin)) { "Bill of materials" }
        }
    }
}
