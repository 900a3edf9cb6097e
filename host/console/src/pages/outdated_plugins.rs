//! Tags with which stored versions were pulled and that now point to another artifact, each with a button to pull it.

use crate::layout::{csrf_field, page};
use crate::nav::NavItem;
use crate::pages::plugin_pull;
use crate::request_context::RequestContext;
use crate::table::table;
use api::OutdatedPluginView;
use axum::response::Response;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// The path of this page.
pub(crate) const PATH: &str = "/plugins/outdated";

pub(crate) async fn show(context: RequestContext) -> Response {
    let outdated = context.get::<Vec<OutdatedPluginView>>("/v1/plugins/outdated").await;
    let body = outdated.map(|outdated| {
        let rows: Vec<_> = outdated.iter().map(|one| row(&context, one)).collect();
        let empty = html! { p { "Each pulled tag still points to a stored version." } };
        html! {
            h1 { "Outdated plugins" }
            p.lead { "These tags now point to another artifact than when their plugins were pulled. Pulling stores the new version without activating it." }
            section.card { (table("Outdated plugins", &["Tag", "Stored", "Leads to", ""], &rows, &empty)) }
        }
    });
    page(&context, "Outdated plugins", NavItem::Plugins, body)
}

fn row(context: &RequestContext, one: &OutdatedPluginView) -> Vec<Markup> {
    let names: BTreeSet<&str> =
        one.stored.iter().map(|stored| stored.split('@').next().unwrap_or_default()).collect();
    vec![
        html! { (one.source) "/" (one.plugin) ":" (one.tag) },
        html! { @for stored in &one.stored { code { (stored) } " " } },
        html! {
            @if let Some(digest) = &one.digest { code title=(digest) { (digest.chars().take(19).collect::<String>()) } }
            @if let Some(problem) = &one.problem { (problem) }
        },
        html! { @if let Some(digest) = &one.digest { @for name in names { (pull_button(context, one, digest, name)) } } },
    ]
}

/// Pulls exactly the artifact that the page shows: if the tag has moved again, the pull is refused.
fn pull_button(context: &RequestContext, one: &OutdatedPluginView, digest: &str, name: &str) -> Markup {
    html! {
        form method="post" action=(plugin_pull::PATH) {
            (csrf_field(context))
            input type="hidden" name="source" value=(one.source);
            input type="hidden" name="plugin" value=(one.plugin);
            input type="hidden" name="tag" value=(one.tag);
            input type="hidden" name="digest" value=(digest);
            input type="hidden" name="name" value=(name);
            button type="submit" { "Pull" @if name != one.plugin { " as " (name) } }
        }
    }
}
