//! Creates the context of a request: asks the API for the session, and redirects requests without one to the login.

use crate::api_caller::{ApiCaller, ApiRequest, with_query};
use crate::layout::error_page;
use crate::live;
use crate::partition::{Partitions, chosen};
use crate::request_context::{ConsoleState, RequestContext, theme};
use api::{Permission, WhoamiView};
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use std::net::SocketAddr;

impl FromRequestParts<ConsoleState> for RequestContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &ConsoleState) -> Result<Self, Response> {
        let mut api_caller = api_caller(parts, console);
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let principal = match api_caller.call(Method::GET, "/v1/whoami", ApiRequest::default()).await {
            Ok(answer) => answer.read::<WhoamiView>().map_err(|error| error_page(&parts.headers, &error))?,
            Err(error) if error.status == StatusCode::UNAUTHORIZED => {
                let next = if parts.method == Method::GET && path != "/" { path.as_str() } else { "" };
                return Err(Redirect::to(&with_query("/login", &[("next", next)])).into_response());
            }
            Err(error) => return Err(error_page(&parts.headers, &error)),
        };
        let done = parts.uri.query().and_then(|query| {
            query.split('&').find_map(|pair| pair.strip_prefix("done=")).map(str::to_owned)
        });
        // A request that the user may not send would be in the audit log.
        let may_read = principal.permissions.contains(&Permission::Read);
        let partitions = match may_read {
            true => Partitions::of(&api_caller).await,
            false => Partitions::default(),
        };
        // The cookie may be from another cluster, or from a user who may choose.
        api_caller.partition = partitions.shown();
        let (console, theme) = (console.clone(), theme(&parts.headers));
        Ok(Self { console, api_caller, principal, partitions, theme, path, done })
    }
}

/// The caller of the API on behalf of a request.
pub(crate) fn api_caller(parts: &Parts, console: &ConsoleState) -> ApiCaller {
    ApiCaller {
        api: console.api.clone(),
        cookies: parts.headers.get_all(header::COOKIE).iter().cloned().collect(),
        address: parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| *address),
        is_live_update: parts.uri.path() == live::PATH,
        partition: chosen(&parts.headers),
    }
}
