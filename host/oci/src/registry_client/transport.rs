//! Requests with credentials and redirections, and their errors.

use super::RegistryClient;
use crate::OciError;
use crate::challenge::{self, Challenge};
use crate::error::printable;
use crate::location::RegistryReference;
use serde::Deserialize;
use std::io::Read as _;
use ureq::Body;
use ureq::http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};

/// Maximum size of a token server's response or of an error, in octets.
const MAX_SMALL_ANSWER: u64 = 256 << 10;
/// Maximum number of redirections of one request.
const MAX_REDIRECTIONS: usize = 5;

/// The error document of a registry (OCI distribution spec 1.1, "Error Codes").
#[derive(Deserialize, Default)]
struct ErrorAnswer {
    #[serde(default)]
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// The response of a token server (Distribution specification, "Token Authentication"). Both names of the token are in use.
#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
}

/// A URL without its query, which may contain a secret.
pub(super) fn without_query(url: &str) -> String {
    printable(url.split('?').next().unwrap_or_default())
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().to_owned();
    let (repository, port, tag, digest) = (String::new(), None, None, None);
    RegistryReference { host, port, repository, tag, digest }.is_loopback()
}

impl RegistryClient {
    fn transmit(
        &self,
        method: &Method,
        url: &str,
        headers: &[(&str, &str)],
        authorization: Option<&HeaderValue>,
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, OciError> {
        let unreachable = |why: String| OciError::Unreachable { url: without_query(url), why };
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        let answer = match body {
            Some(octets) => request.body(octets).map_err(ureq::Error::from).and_then(|request| {
                let timed = self.agent.configure_request(request).timeout_global(Some(self.timeout()));
                self.agent.run(timed.build())
            }),
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| {
                let timed = self.agent.configure_request(request).timeout_global(Some(self.timeout()));
                self.agent.run(timed.build())
            }),
        };
        answer.map_err(|error| {
            unreachable(match error {
                // These quote a URL, whose query may contain a secret.
                ureq::Error::RequireHttpsOnly(_) => "it leads to a URL without TLS".to_owned(),
                ureq::Error::BadUri(_) => "it leads to something that is not a URL".to_owned(),
                other => printable(&other.to_string()),
            })
        })
    }

    /// Sends a request for content, and follows redirections, which registries use if an object store has the blobs. A
    /// request gets credentials only if it goes to the registry itself; the HTTP library would compare hosts without their
    /// ports.
    pub(super) fn fetch(
        &self,
        method: &Method,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response<Body>, OciError> {
        let mut answer = self.send(method, url, headers, None)?;
        for _ in 0..MAX_REDIRECTIONS {
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let next = self.next_url(&answer)?;
            answer = self.send(method, &next, headers, None)?;
        }
        if !answer.status().is_redirection() {
            return Ok(answer);
        }
        let why = "it redirects without end".to_owned();
        Err(OciError::Unreachable { url: without_query(url), why })
    }

    /// Sends a request, with the credentials that the registry requires.
    pub(super) fn send(
        &self,
        method: &Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, OciError> {
        if !self.is_registry(url) {
            return self.transmit(method, url, headers, None, body);
        }
        let authorization = self.authorization.borrow().clone();
        let answer = self.transmit(method, url, headers, authorization.as_ref(), body)?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // A token may have expired, or have too few permissions for this request.
        let is_read = [Method::GET, Method::HEAD].contains(method);
        let authorization = self.authenticate(url, !is_read, &answer)?;
        let answer = self.transmit(method, url, headers, Some(&authorization), body)?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            return Err(self.unauthorized(url));
        }
        *self.authorization.borrow_mut() = Some(authorization);
        Ok(answer)
    }

    fn unauthorized(&self, url: &str) -> OciError {
        let why = if self.credentials.is_some() {
            "the registry refuses the credentials, or the user may not do this; check them"
        } else {
            "the registry requires credentials: set SWITCHYARD_REGISTRY_USER and SWITCHYARD_REGISTRY_PASSWORD, or give --auth-file \
             FILE with a file as `skopeo login --authfile FILE` writes it"
        };
        OciError::Unauthorized { url: without_query(url), why }
    }

    /// The value of `Authorization` that answers the challenge.
    fn authenticate(&self, url: &str, write: bool, answer: &Response<Body>) -> Result<HeaderValue, OciError> {
        let challenges = answer.headers().get_all(header::WWW_AUTHENTICATE);
        let value = match challenge::choose(challenges.iter().filter_map(|value| value.to_str().ok())) {
            Some(Challenge::Bearer { realm, service, scope }) => {
                let actions = if write { "pull,push" } else { "pull" };
                let scope =
                    scope.unwrap_or_else(|| format!("repository:{}:{actions}", self.reference.repository));
                format!("Bearer {}", self.token(&realm, service.as_deref(), &scope)?)
            }
            Some(Challenge::Basic) => match &self.credentials {
                Some(credentials) => credentials.basic(),
                None => return Err(self.unauthorized(url)),
            },
            None => {
                let why = "it wants neither the scheme Bearer nor Basic";
                return Err(OciError::malformed(&self.location, "the header WWW-Authenticate", &why));
            }
        };
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| OciError::malformed(&self.location, "the token", &"it is not printable"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// A token from the token server.
    fn token(&self, realm: &str, service: Option<&str>, scope: &str) -> Result<String, OciError> {
        self.check_scheme(realm, "the URL of its token server")?;
        let timed = self.agent.get(realm).config().timeout_global(Some(self.timeout()));
        let mut request = timed.build().query("scope", scope);
        if let Some(service) = service {
            request = request.query("service", service);
        }
        if let Some(credentials) = &self.credentials {
            request = request.header(header::AUTHORIZATION, credentials.basic());
        }
        let unreachable = |why: String| OciError::Unreachable { url: without_query(realm), why };
        let answer = request.call().map_err(|error| match error {
            ureq::Error::RequireHttpsOnly(_) | ureq::Error::BadUri(_) => {
                unreachable("it leads to no URL with TLS".to_owned())
            }
            other => unreachable(printable(&other.to_string())),
        })?;
        if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&answer.status()) {
            return Err(self.unauthorized(realm));
        }
        let answer: TokenAnswer = decode_secret(&self.small_answer(realm, answer)?).ok_or_else(|| {
            OciError::malformed(
                &self.location,
                "the answer of its token server",
                &"it is not JSON with a token",
            )
        })?;
        let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
        token.ok_or_else(|| {
            OciError::malformed(&self.location, "the answer of its token server", &"there is no token in it")
        })
    }

    /// Refuses a URL without TLS from the registry, unless plain HTTP is enabled, or both the registry and the URL are on
    /// this machine.
    fn check_scheme(&self, url: &str, content: &'static str) -> Result<(), OciError> {
        let uri: Uri =
            url.parse().map_err(|_| OciError::malformed(&self.location, content, &"it is not a URL"))?;
        let fits = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => self.plain_http || (is_loopback(&uri) && self.reference.is_loopback()),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(OciError::malformed(
            &self.location,
            content,
            &"it is not a URL with TLS, and plain HTTP is not allowed",
        ))
    }

    /// The body of a small response that must be a success.
    fn small_answer(&self, url: &str, answer: Response<Body>) -> Result<Vec<u8>, OciError> {
        let answer = self.check_success(url, answer)?;
        self.read_body(url, answer, MAX_SMALL_ANSWER, "an answer")
    }

    pub(super) fn read_body(
        &self,
        url: &str,
        answer: Response<Body>,
        limit: u64,
        content: &'static str,
    ) -> Result<Vec<u8>, OciError> {
        let mut octets = Vec::new();
        let body = answer.into_body().into_reader();
        body.take(limit + 1)
            .read_to_end(&mut octets)
            .map_err(|error| OciError::Unreachable { url: without_query(url), why: error.to_string() })?;
        if octets.len() as u64 > limit {
            return Err(OciError::too_large(&self.location, &content, limit));
        }
        Ok(octets)
    }

    /// Returns an error for a response without a success status.
    pub(super) fn check_success(
        &self,
        url: &str,
        answer: Response<Body>,
    ) -> Result<Response<Body>, OciError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = self.read_body(url, answer, MAX_SMALL_ANSWER, "an error").unwrap_or_default();
        let ErrorAnswer { errors } = serde_json::from_slice(&body).unwrap_or_default();
        let errors: Vec<_> = errors
            .iter()
            .map(|entry| format!("{} {}", entry.code, entry.message).trim().to_owned())
            .collect();
        let detail = if errors.is_empty() {
            status.canonical_reason().unwrap_or("no explanation").to_owned()
        } else {
            printable(&errors.join("; "))
        };
        if status == StatusCode::FORBIDDEN && self.credentials.is_none() {
            return Err(self.unauthorized(url));
        }
        Err(OciError::Refused { url: without_query(url), status: status.as_u16(), detail })
    }

    /// The target URL of a redirection.
    pub(super) fn next_url(&self, answer: &Response<Body>) -> Result<String, OciError> {
        let content = "the header Location";
        let location = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| {
            OciError::malformed(&self.location, content, &"there is none, or not one of ASCII")
        })?;
        // `//HOST/PATH` refers to another host.
        if location.starts_with('/') && !location.starts_with("//") {
            return Ok(format!("{}{location}", self.base));
        }
        let uri: Uri = location
            .parse()
            .map_err(|_| OciError::malformed(&self.location, content, &"it is neither a path nor a URL"))?;
        if uri.authority().is_some_and(|authority| *authority == *self.reference.authority()) {
            // A registry behind a proxy may not know that the client uses TLS.
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            return Ok(format!("{}{path}", self.base));
        }
        self.check_scheme(location, content)?;
        Ok(location.to_owned())
    }
}

/// Reads a JSON document with a secret. Drops errors of serde, which may quote the secret.
fn decode_secret(octets: &[u8]) -> Option<TokenAnswer> {
    serde_json::from_slice(octets).ok()
}
