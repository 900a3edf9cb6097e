//! The API of plugin sources: registries and folders from which the appliance pulls plugins.

use crate::problem::Problem;
use crate::request::{JsonContent, PathParams, RawBody};
use crate::request_audit::{AuditedResult, with_audit_detail};
use crate::service::{Provides, Service, call, call_json};
use api::{OutdatedPluginView, PluginPullRequest, PluginSourceView, PluginTagsView, PluginVersionView};
use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

/// The backend of plugin sources. Its methods may take minutes.
pub trait PluginSources: Send + Sync + 'static {
    /// The configured sources of plugins.
    fn plugin_sources(&self) -> Vec<PluginSourceView>;
    /// The tags of a plugin in a source.
    ///
    /// # Errors
    /// There is no such source or plugin, or the source cannot be reached or refuses the request.
    fn plugin_tags(&self, source: &str, plugin: &str) -> Result<PluginTagsView, Problem>;
    /// Pulls a plugin from a source and stores it as a new version.
    ///
    /// # Errors
    /// As [`PluginSources::plugin_tags`]; or the artifact is damaged or not a plugin; or as [`crate::Plugins::upload`].
    fn pull_plugin(&self, request: &PluginPullRequest) -> Result<PluginVersionView, Problem>;
    /// The tags with which stored versions were pulled and that now point to another artifact or cannot be resolved.
    ///
    /// # Errors
    /// If the stored versions cannot be listed.
    fn outdated_plugins(&self) -> Result<Vec<OutdatedPluginView>, Problem>;
    /// The bill of materials of a stored version, a JSON document.
    ///
    /// # Errors
    /// If there is no such version, or it has none.
    fn plugin_sbom(&self, name: &str, version: &str) -> Result<Vec<u8>, Problem>;
    /// Stores the bill of materials of a stored version; replaces an earlier one.
    ///
    /// # Errors
    /// There is no such version, the document is not a bill of materials, or it describes another component.
    fn add_plugin_sbom(&self, name: &str, version: &str, octets: &[u8])
    -> Result<PluginVersionView, Problem>;
}

/// Maximum size of a bill of materials.
const MAX_SBOM_OCTETS: usize = 16 << 20;

pub(crate) fn routes<S: Provides<dyn PluginSources>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(plugin_sources))
        .routes(routes!(plugin_tags))
        .routes(routes!(pull_plugin))
        .routes(routes!(outdated_plugins))
        .routes(routes!(plugin_sbom, add_plugin_sbom).layer(DefaultBodyLimit::max(MAX_SBOM_OCTETS)))
}

/// Lists the sources from which the appliance can pull plugins.
#[utoipa::path(
    get,
    path = "/v1/plugins/sources",
    responses((status = 200, description = "The sources of the configuration, `[plugins] sources`.", body = Vec<PluginSourceView>)),
)]
async fn plugin_sources(backend: Service<dyn PluginSources>) -> Result<Json<Vec<PluginSourceView>>, Problem> {
    call_json(backend, |backend| Ok(backend.plugin_sources())).await
}

/// Lists the tags of a plugin in a source.
#[utoipa::path(
    get,
    path = "/v1/plugins/sources/{source}/{plugin}/tags",
    params(
        ("source" = String, Path, description = "The name of the source."),
        ("plugin" = String, Path, description = "The plugin: the last part of its repository's name, or the name of its folder."),
    ),
    responses((status = 200, description = "The tags.", body = PluginTagsView)),
)]
async fn plugin_tags(
    backend: Service<dyn PluginSources>,
    PathParams((source, plugin)): PathParams<(String, String)>,
) -> Result<Json<PluginTagsView>, Problem> {
    call_json(backend, move |backend| backend.plugin_tags(&source, &plugin)).await
}

/// Pulls a plugin from a source and stores it as a new version, without activating it. A tag is resolved to a digest
/// once, and everything that is read is verified by its digest. The signature is verified as for an upload.
#[utoipa::path(
    post,
    path = "/v1/plugins/pull",
    request_body = PluginPullRequest,
    responses((status = 200, description = "The version is stored.", body = PluginVersionView)),
)]
async fn pull_plugin(
    backend: Service<dyn PluginSources>,
    JsonContent(request): JsonContent<PluginPullRequest>,
) -> AuditedResult<PluginVersionView> {
    let stored = call_json(backend, move |backend| backend.pull_plugin(&request)).await?;
    with_audit_detail(stored, describe_pulled)
}

/// Describes a pulled version for the audit log.
fn describe_pulled(stored: &PluginVersionView) -> String {
    let signer = match &stored.signed_by {
        Some(key) => format!("signed by {key}"),
        None => "not signed".to_owned(),
    };
    let origin = stored.origin.as_ref().map(|origin| {
        let tag = origin.tag.as_ref().map(|tag| format!(":{tag}")).unwrap_or_default();
        format!(", from {}/{}{tag}, {}", origin.source, origin.plugin, origin.digest)
    });
    format!("{} {}, {signer}{}", stored.plugin, stored.version, origin.unwrap_or_default())
}

/// Lists the tags with which stored versions were pulled and that now point to an artifact that is not stored, or
/// cannot be resolved. Nothing is pulled.
#[utoipa::path(
    get,
    path = "/v1/plugins/outdated",
    responses((status = 200, description = "The tags; empty if each points to a stored version.", body = Vec<OutdatedPluginView>)),
)]
async fn outdated_plugins(
    backend: Service<dyn PluginSources>,
) -> Result<Json<Vec<OutdatedPluginView>>, Problem> {
    call_json(backend, PluginSources::outdated_plugins).await
}

/// Stores the bill of materials (SBOM) of a plugin version: SPDX or CycloneDX, in JSON. A CycloneDX document with the
/// SHA-256 of another component is refused.
#[utoipa::path(
    put,
    path = "/v1/plugins/{name}/{version}/sbom",
    params(
        ("name" = String, Path, description = "The plugin's name."),
        ("version" = String, Path, description = "The version: the SHA-256 of the component in hexadecimal digits, or 6 or more first ones that no other version has."),
    ),
    request_body(content = serde_json::Map<String, serde_json::Value>, description = "The bill of materials, at most 16 MiB."),
    responses((status = 200, description = "The bill of materials is stored.", body = PluginVersionView)),
)]
async fn add_plugin_sbom(
    backend: Service<dyn PluginSources>,
    PathParams((name, version)): PathParams<(String, String)>,
    RawBody(body): RawBody,
) -> AuditedResult<PluginVersionView> {
    let stored = call_json(backend, move |backend| backend.add_plugin_sbom(&name, &version, &body)).await?;
    with_audit_detail(stored, |stored| format!("version {}", stored.version))
}

/// Downloads the bill of materials (SBOM) of a plugin version, as it was stored: SPDX or CycloneDX, in JSON.
#[utoipa::path(
    get,
    path = "/v1/plugins/{name}/{version}/sbom",
    params(
        ("name" = String, Path, description = "The plugin's name."),
        ("version" = String, Path, description = "The version: the SHA-256 of the component in hexadecimal digits, or 6 or more first ones that no other version has."),
    ),
    responses((status = 200, description = "The bill of materials.", body = serde_json::Map<String, serde_json::Value>)),
)]
async fn plugin_sbom(
    backend: Service<dyn PluginSources>,
    PathParams((name, version)): PathParams<(String, String)>,
) -> Result<impl IntoResponse, Problem> {
    let octets = call(backend, move |backend| backend.plugin_sbom(&name, &version)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_log_names_source_and_digest() {
        let stored = |tag: Option<&str>| PluginVersionView {
            plugin: "router".to_owned(),
            version: "96fced7a19c6".to_owned(),
            sha256: String::new(),
            size: 1,
            hook: model::Hook::Router,
            wit: "0.3".to_owned(),
            imports: Vec::new(),
            signed_by: tag.map(|_| "acme".to_owned()),
            policy_schema: false,
            debug_info: false,
            sbom: false,
            origin: Some(api::PluginOrigin {
                source: "carrier".to_owned(),
                plugin: "least-cost".to_owned(),
                tag: tag.map(str::to_owned),
                location: "oci://registry.example/least-cost".to_owned(),
                digest: "sha256:0d".to_owned(),
            }),
        };
        assert_eq!(
            describe_pulled(&stored(Some("1.4"))),
            "router 96fced7a19c6, signed by acme, from carrier/least-cost:1.4, sha256:0d"
        );
        assert_eq!(
            describe_pulled(&stored(None)),
            "router 96fced7a19c6, not signed, from carrier/least-cost, sha256:0d"
        );
    }
}
