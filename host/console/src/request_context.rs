//! The context of a request: the user, their permissions, and calls of the API on their behalf.

use crate::api_caller::{ApiCaller, ApiError, ApiRequest, ApiResponse, with_query};
use crate::configuration_cache::ConfigurationCache;
use crate::form::Form;
use crate::partition::Partitions;
use api::{Permission, WhoamiView};
use axum::Router;
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The cookie with the theme.
pub(crate) const THEME_COOKIE: &str = "switchyard-theme";

/// The state that all requests share.
#[derive(Clone)]
pub(crate) struct ConsoleState {
    pub(crate) api: Router,
    pub(crate) configuration: Arc<ConfigurationCache>,
    /// Limits the number of live pages.
    pub(crate) streams: Arc<Semaphore>,
}

/// The context of a request with a session.
pub(crate) struct RequestContext {
    pub(crate) console: ConsoleState,
    pub(crate) api_caller: ApiCaller,
    pub(crate) principal: WhoamiView,
    pub(crate) partitions: Partitions,
    pub(crate) theme: &'static str,
    /// The path of the page, with the query.
    pub(crate) path: String,
    /// The action before a redirect to this page.
    pub(crate) done: Option<String>,
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The theme: `dark`, `light` or `system`.
pub(crate) fn theme(headers: &HeaderMap) -> &'static str {
    match cookie(headers, THEME_COOKIE) {
        Some("dark") => "dark",
        Some("light") => "light",
        _ => "system",
    }
}

/// The path, if it is a local path of this console.
pub(crate) fn local_path(path: &str) -> Option<&str> {
    let good = path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|c| c.is_ascii_graphic() && c != b'\\');
    good.then_some(path)
}

impl RequestContext {
    /// Whether the user has a permission.
    pub(crate) fn has_permission(&self, permission: Permission) -> bool {
        self.principal.permissions.contains(&permission)
    }

    /// Whether the user may read texts of messages.
    pub(crate) fn may_read_bodies(&self) -> bool {
        self.principal.bodies || self.has_permission(Permission::ReadBodies)
    }

    /// Sends a GET request to the API.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        self.api_caller.call(Method::GET, path, ApiRequest::default()).await?.read()
    }

    /// Sends a GET request; `None` if the appliance does not support it, or the user may not read it.
    pub(crate) async fn get_optional<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        self.get(path).await.ok()
    }

    /// Sends a request that changes something, with the CSRF token of the form.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        form: &Form,
        body: Option<&Value>,
    ) -> Result<ApiResponse, ApiError> {
        let csrf = form.text("csrf");
        let sent = match body {
            Some(body) => ApiRequest::json(csrf, body),
            None => ApiRequest { csrf, ..ApiRequest::default() },
        };
        self.api_caller.call(method, path, sent).await
    }

    /// Sends a request with a JSON body that changes something, with the CSRF token of the form.
    pub(crate) async fn send_json(
        &self,
        method: Method,
        path: &str,
        form: &Form,
        body: &(impl Serialize + Sync),
    ) -> Result<ApiResponse, ApiError> {
        self.api_caller.call(method, path, ApiRequest::json(form.text("csrf"), body)).await
    }

    /// A redirect with the name of the action, for the notice.
    pub(crate) fn redirect(path: &str, done: &str) -> Response {
        Redirect::to(&with_query(path, &[("done", done)])).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_paths_are_redirect_targets() {
        assert_eq!(local_path("/peers?page=2"), Some("/peers?page=2"));
        for path in
            ["//evil.example", "https://evil.example", "/\\evil.example", "peers", "", "/a b", "/a\r\nb"]
        {
            assert_eq!(local_path(path), None, "{path:?}");
        }
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers
            .insert(header::COOKIE, "xswitchyard-theme=light; switchyard-theme=dark; a=b".parse().unwrap());
        assert_eq!(theme(&headers), "dark");
        headers.insert(header::COOKIE, "switchyard-theme=\"><script>".parse().unwrap());
        assert_eq!(theme(&headers), "system");
    }
}
