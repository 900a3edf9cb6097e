//! A visitor: who it is, and what may be asked on his behalf.

use crate::ask::{Answer, Asker, Refusal, Sent, with_query};
use crate::documents::Documents;
use crate::form::Form;
use axum::Router;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The cookie that says dark or light.
pub(crate) const THEME_COOKIE: &str = "switchyard-theme";

/// What all visits share.
#[derive(Clone)]
pub(crate) struct Console {
    pub(crate) api: Router,
    pub(crate) documents: Arc<Documents>,
    /// How many live pages there may be.
    pub(crate) streams: Arc<Semaphore>,
}

/// The API's word on who has this session.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Who {
    #[serde(default)]
    pub(crate) user: String,
    #[serde(default)]
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) rights: Vec<String>,
    #[serde(default)]
    pub(crate) bodies: bool,
    #[serde(default)]
    pub(crate) account: Option<String>,
    /// What forms of this session carry, so that they are known as ours.
    #[serde(default)]
    pub(crate) csrf: Option<String>,
}

/// One request of somebody who is logged in.
pub(crate) struct Visit {
    pub(crate) console: Console,
    pub(crate) asker: Asker,
    pub(crate) who: Who,
    pub(crate) theme: &'static str,
    /// Where he is, query included.
    pub(crate) here: String,
    /// What has just been done, where a form led here.
    pub(crate) done: Option<String>,
}

/// A cookie of this name.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Dark, light, or what the visitor's system says.
pub(crate) fn theme(headers: &HeaderMap) -> &'static str {
    match cookie(headers, THEME_COOKIE) {
        Some("dark") => "dark",
        Some("light") => "light",
        _ => "system",
    }
}

/// A place on this console, and nowhere else.
pub(crate) fn own_place(place: &str) -> Option<&str> {
    let good = place.starts_with('/')
        && !place.starts_with("//")
        && place.bytes().all(|c| c.is_ascii_graphic() && c != b'\\');
    good.then_some(place)
}

impl FromRequestParts<Console> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let asker = asker(parts, console);
        let here = parts.uri.path_and_query().map_or("/", |place| place.as_str()).to_owned();
        let who = match asker.ask(Method::GET, "/v1/whoami", Sent::default()).await {
            Ok(answer) => answer.read().map_err(|refusal| crate::shell::alone(&parts.headers, &refusal))?,
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
                let next = if parts.method == Method::GET && here != "/" { here.as_str() } else { "" };
                return Err(Redirect::to(&with_query("/login", &[("next", next)])).into_response());
            }
            Err(refusal) => return Err(crate::shell::alone(&parts.headers, &refusal)),
        };
        let done = parts.uri.query().and_then(|query| {
            query.split('&').find_map(|pair| pair.strip_prefix("done=")).map(str::to_owned)
        });
        Ok(Self { console: console.clone(), asker, who, theme: theme(&parts.headers), here, done })
    }
}

/// Who asks, of a request.
pub(crate) fn asker(parts: &Parts, console: &Console) -> Asker {
    Asker {
        api: console.api.clone(),
        cookies: parts.headers.get_all(header::COOKIE).iter().cloned().collect(),
        address: parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| *address),
        watching: parts.uri.path() == crate::live::PATH,
    }
}

impl Visit {
    /// Whether the visitor has a right, by the API's name for it.
    pub(crate) fn may(&self, right: &str) -> bool {
        self.who.rights.iter().any(|one| one == right)
    }

    /// Whether texts of messages may be asked for.
    pub(crate) fn reads_bodies(&self) -> bool {
        self.who.bodies || self.may("read-bodies")
    }

    /// Reads something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refusal> {
        self.asker.ask(Method::GET, path, Sent::default()).await?.read()
    }

    /// Reads something that may not be there: an appliance without it, or a visitor who may not see it.
    pub(crate) async fn look(&self, path: &str) -> Option<Value> {
        self.get(path).await.ok()
    }

    /// Changes something, with the word of the form that asks for it.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        form: &Form,
        body: Option<&Value>,
    ) -> Result<Answer, Refusal> {
        let csrf = form.text("csrf");
        let sent = match body {
            Some(body) => Sent::json(csrf, body),
            None => Sent { csrf, ..Sent::default() },
        };
        self.asker.ask(method, path, sent).await
    }

    /// Somewhere else, with a word on what was done.
    pub(crate) fn to(place: &str, done: &str) -> Response {
        Redirect::to(&with_query(place, &[("done", done)])).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_login_nobody_is_led_away() {
        assert_eq!(own_place("/peers?page=2"), Some("/peers?page=2"));
        for place in
            ["//evil.example", "https://evil.example", "/\\evil.example", "peers", "", "/a b", "/a\r\nb"]
        {
            assert_eq!(own_place(place), None, "{place:?}");
        }
    }

    #[test]
    fn a_cookie_is_found_among_others_and_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers
            .insert(header::COOKIE, "xswitchyard-theme=light; switchyard-theme=dark; a=b".parse().unwrap());
        assert_eq!(theme(&headers), "dark");
        headers.insert(header::COOKIE, "switchyard-theme=\"><script>".parse().unwrap());
        assert_eq!(theme(&headers), "system");
    }
}
