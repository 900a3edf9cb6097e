//! The routes of the console, and the middleware for all of them.

use crate::api_caller::ApiError;
use crate::configuration_cache::ConfigurationCache;
use crate::live::MAX_STREAMS;
use crate::request_context::ConsoleState;
use crate::{assets, live, pages, partition};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

/// The maximum size of a form, except plugin uploads: a configuration as text.
const FORM_LIMIT: usize = 16 << 20;
/// The maximum size of an upload: the limit of the API plus the form data.
const UPLOAD_LIMIT: usize = (64 << 20) + (16 << 20) + (64 << 10);
/// The maximum size of a system update, which is streamed to the API.
const UPDATE_LIMIT: usize = (1 << 30) + (64 << 10);

/// The console and the API that it calls. Requests to paths of the API are passed on unchanged.
pub fn router(api: Router) -> Router {
    let console = ConsoleState {
        api: api.clone(),
        configuration: Arc::new(ConfigurationCache::default()),
        streams: Arc::new(Semaphore::new(MAX_STREAMS)),
    };
    let api_or_not_found = move |request: Request| {
        let api = api.clone();
        async move {
            let path = request.uri().path();
            let is_api_path = path == "/metrics" || path == "/v1" || path.starts_with("/v1/");
            if is_api_path {
                return api.oneshot(request).await.unwrap_or_else(|never| match never {});
            }
            let error = ApiError::new(StatusCode::NOT_FOUND, "There is no page at this address.");
            with_security_headers(crate::layout::error_page(request.headers(), &error))
        }
    };
    page_routes()
        .layer(DefaultBodyLimit::max(FORM_LIMIT))
        .layer(middleware::from_fn(reject_cross_site))
        .with_state(console)
        .fallback(api_or_not_found)
}

fn page_routes() -> Router<ConsoleState> {
    let exports = pages::peers::EXPORTS;
    let router = Router::new();
    let router =
        exports.into_iter().fold(router, |router, path| router.route(path, get(pages::peers::export)));
    router
        .route("/assets/console.css", get(assets::style))
        .route("/assets/console.js", get(assets::script))
        .route("/assets/document-editor.js", get(assets::document_editor))
        .route("/assets/logo.svg", get(assets::logo))
        .route("/assets/inter.woff2", get(assets::font))
        .route("/assets/inter-LICENSE.txt", get(assets::font_license))
        .route(live::PATH, get(live::stream))
        .route("/", get(pages::overview::show))
        .route("/login", get(pages::login::show).post(pages::login::log_in))
        .route("/logout", post(pages::login::log_out))
        .route("/theme", post(pages::login::theme))
        .route("/partition", post(partition::choose))
        .route("/profile", get(pages::profile::show).post(pages::profile::password))
        .route("/search", get(pages::search::show))
        .route("/messages", get(pages::messages::show))
        .route("/messages.csv", get(pages::messages::export))
        .route("/messages/new", get(pages::test_message::show).post(pages::test_message::send))
        .route("/messages/{id}", get(pages::trace::show))
        .route("/messages/{id}/{act}", post(pages::trace::act))
        .route("/peers", get(pages::peers::peers))
        .route("/peers/{name}", get(pages::peer::show_peer).post(pages::peer::change_peer))
        .route("/peers/{name}/test", post(pages::peer::test_peer))
        .route("/peers/{name}/dial", post(pages::peer::dial_peer))
        .route("/gateways", get(pages::peers::gateways))
        .route("/gateways/{name}", get(pages::peer::show_gateway).post(pages::peer::change_gateway))
        .route("/gateways/{name}/test", post(pages::peer::test_gateway))
        .route("/gateways/{name}/dial", post(pages::peer::dial_gateway))
        .route("/networks", get(pages::networks::show))
        .route("/subscribers", get(pages::subscribers::find))
        .route("/subscribers/{name}", get(pages::subscribers::show))
        .route("/subscribers/{name}/{act}", post(pages::subscribers::act))
        .route("/accounts", get(pages::peers::accounts))
        .route("/accounts/{name}", get(pages::peer::show_account).post(pages::peer::change_account))
        .route("/tenants", get(pages::tenants::show))
        .route("/plugins", get(pages::plugins::show))
        .route("/plugins/upload", post(pages::plugins::upload).layer(DefaultBodyLimit::max(UPLOAD_LIMIT)))
        .route("/plugins/pull", get(pages::plugin_pull::show).post(pages::plugin_pull::pull))
        .route(pages::outdated_plugins::PATH, get(pages::outdated_plugins::show))
        .route("/plugins/{hook}", get(pages::hook::show).post(pages::hook::act))
        .route("/plugins/{hook}/set-up", get(pages::plugin_setup::show).post(pages::plugin_setup::act))
        .route("/plugins/{hook}/set-up/check", post(pages::plugin_setup::check))
        .route("/plugins/{hook}/faults/{id}/case", get(pages::fault_case::show))
        .route("/plugins/{hook}/faults/{id}/case.toml", get(pages::fault_case::download))
        .route("/policies", get(pages::policies::show))
        .route("/policies/{hook}", get(pages::policies::edit).post(pages::policies::change))
        .route("/queues", get(pages::queues::show).post(pages::queue_actions::start))
        .route("/queues/undo", post(pages::queue_actions::undo))
        .route("/quarantine", get(pages::quarantine::show).post(pages::quarantine::decide))
        .route("/uncertain", get(pages::uncertain::show).post(pages::uncertain::settle))
        .route("/pools", get(pages::pools::show))
        .route("/pools.csv", get(pages::pools::export))
        .route("/pools/{pool}/numbers.csv", get(pages::pools::export_numbers))
        .route("/queues.csv", get(pages::queues::export))
        .route("/pools/{pool}", get(pages::pools::one))
        .route("/tables", get(pages::tables::show).post(pages::tables::remove))
        .route("/tables/fill", post(pages::tables::fill).layer(DefaultBodyLimit::max(UPLOAD_LIMIT)))
        .route("/ledger", get(pages::ledger::show))
        .route("/ledger.csv", get(pages::ledger::export))
        .route("/ledger/{account}", get(pages::ledger::one).post(pages::ledger::change))
        .route("/opt-outs", get(pages::opt_outs::show).post(pages::opt_outs::change))
        .route("/archive", get(pages::archive::show))
        .route("/configuration", get(pages::configuration::show).post(pages::configuration::change))
        .route("/configuration/check", post(pages::configuration::check))
        .route("/configuration/pending", post(pages::configuration::settle))
        .route("/configuration/versions", get(pages::versions::show))
        .route(
            "/configuration/versions/{version}",
            get(pages::versions::show_version).post(pages::versions::roll_back),
        )
        .route("/users", get(pages::users::show).post(pages::users::change))
        .route("/audit", get(pages::audit::show))
        .route("/help", get(pages::help::contents))
        .route("/help/{*page}", get(pages::help::show))
        .route("/cluster", get(pages::cluster::show).post(pages::cluster::change))
        .route("/maintenance", get(pages::maintenance::show).post(pages::maintenance::change))
        .route("/maintenance/appliance", post(pages::appliance_image::change))
        .route(
            "/maintenance/update",
            post(pages::appliance_image::update).layer(DefaultBodyLimit::max(UPDATE_LIMIT)),
        )
}

/// The content security policy: no foreign resources, no inline scripts, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

fn with_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Rejects forms on other sites, before any other check. Browsers send the site of a request in `Sec-Fetch-Site`.
async fn reject_cross_site(request: Request, next: Next) -> Response {
    // `none`: the user typed the address or opened a bookmark. A request without the header is not from a current browser;
    // forms of a session carry a CSRF token in any case.
    let from = request.headers().get("sec-fetch-site");
    let is_foreign = from.is_some_and(|from| from != "same-origin" && from != "none");
    if is_foreign && request.method() != Method::GET && request.method() != Method::HEAD {
        let detail = "This form was sent from another site. Open the page here and try again.";
        return with_security_headers(crate::layout::error_page(
            request.headers(),
            &ApiError::new(StatusCode::FORBIDDEN, detail),
        ));
    }
    with_security_headers(next.run(request).await)
}
