//! Paths of the console, and what holds for all of them.

use crate::ask::Refusal;
use crate::documents::Documents;
use crate::live::STREAMS;
use crate::visit::Console;
use crate::{assets, live, pages};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

/// The largest form that is taken, uploads of plugins apart: a configuration as text.
const FORM_LIMIT: usize = 16 << 20;
/// The largest upload: what the API takes, and what a form puts around it.
const UPLOAD_LIMIT: usize = (64 << 20) + (64 << 10);
/// The same for an update of the machine, which is handed on as it comes.
const UPDATE_LIMIT: usize = (1 << 30) + (64 << 10);

/// The console and, below it, the API that it asks. All but the console's own paths go to the API as they came.
pub fn router(api: Router) -> Router {
    let console = Console {
        api: api.clone(),
        documents: Arc::new(Documents::default()),
        streams: Arc::new(Semaphore::new(STREAMS)),
    };
    let beyond = move |request: Request| {
        let api = api.clone();
        async move {
            let path = request.uri().path();
            let is_apis = path == "/metrics" || path == "/v1" || path.starts_with("/v1/");
            if is_apis {
                return api.oneshot(request).await.unwrap_or_else(|never| match never {});
            }
            let refusal = Refusal::new(StatusCode::NOT_FOUND, "There is no page at this address.");
            guarded(crate::shell::alone(request.headers(), &refusal))
        }
    };
    pages()
        .layer(DefaultBodyLimit::max(FORM_LIMIT))
        .layer(middleware::from_fn(guard))
        .with_state(console)
        .fallback(beyond)
}

fn pages() -> Router<Console> {
    Router::new()
        .route("/assets/console.css", get(assets::style))
        .route("/assets/console.js", get(assets::script))
        .route("/assets/sign.svg", get(assets::sign))
        .route(live::PATH, get(live::stream))
        .route("/", get(pages::overview::show))
        .route("/login", get(pages::login::show).post(pages::login::enter))
        .route("/logout", post(pages::login::leave))
        .route("/theme", post(pages::login::theme))
        .route("/own", get(pages::own::show).post(pages::own::password))
        .route("/messages", get(pages::messages::show))
        .route("/messages/new", get(pages::compose::show).post(pages::compose::send))
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
        .route("/plugins", get(pages::plugins::show))
        .route("/plugins/upload", post(pages::plugins::upload).layer(DefaultBodyLimit::max(UPLOAD_LIMIT)))
        .route("/plugins/{hook}", get(pages::hook::show).post(pages::hook::act))
        .route("/policies", get(pages::policies::show))
        .route("/policies/{hook}", get(pages::policies::edit).post(pages::policies::change))
        .route("/queues", get(pages::queues::show).post(pages::orders::order))
        .route("/queues/undo", post(pages::orders::undo))
        .route("/uncertain", get(pages::uncertain::show).post(pages::uncertain::settle))
        .route("/pools", get(pages::pools::show))
        .route("/pools/{pool}", get(pages::pools::one))
        .route("/tables", get(pages::tables::show).post(pages::tables::remove))
        .route("/tables/fill", post(pages::tables::fill).layer(DefaultBodyLimit::max(UPLOAD_LIMIT)))
        .route("/ledger", get(pages::ledger::show))
        .route("/ledger/{account}", get(pages::ledger::one).post(pages::ledger::change))
        .route("/opt-outs", get(pages::opt_outs::show).post(pages::opt_outs::change))
        .route("/archive", get(pages::archive::show))
        .route("/configuration", get(pages::configuration::show).post(pages::configuration::change))
        .route("/configuration/pending", post(pages::configuration::settle))
        .route("/configuration/versions", get(pages::versions::show))
        .route("/configuration/versions/{version}", get(pages::versions::one).post(pages::versions::back))
        .route("/people", get(pages::people::show).post(pages::people::change))
        .route("/audit", get(pages::audit::show))
        .route("/maintenance", get(pages::maintenance::show).post(pages::maintenance::change))
        .route("/maintenance/machine", post(pages::machine::change))
        .route("/maintenance/update", post(pages::machine::update).layer(DefaultBodyLimit::max(UPDATE_LIMIT)))
}

/// Nothing is loaded from elsewhere, nothing runs that stands in a page, nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

fn guarded(mut response: Response) -> Response {
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

/// Browsers say where a request comes from. A form on another site is not heard, before anything else is looked at.
async fn guard(request: Request, next: Next) -> Response {
    // `none`: somebody has typed the address, or opened it from a list of his own. What is not said at all is no browser's
    // of these years, and a form of a session has its CSRF word anyway.
    let from = request.headers().get("sec-fetch-site");
    let is_foreign = from.is_some_and(|from| from != "same-origin" && from != "none");
    if is_foreign && request.method() != Method::GET && request.method() != Method::HEAD {
        let detail = "This form is not one of ours. Open the page here and try again.";
        return guarded(crate::shell::alone(request.headers(), &Refusal::new(StatusCode::FORBIDDEN, detail)));
    }
    guarded(next.run(request).await)
}
