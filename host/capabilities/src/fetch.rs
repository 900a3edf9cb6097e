//! HTTP requests of plugins to other systems.

mod fetch_metrics;
mod fetcher;
mod headers;
mod http_grant;

pub use fetch_metrics::FetchMetrics;
pub use fetcher::{Fetcher, FetcherOptions};
pub use http_grant::HttpGrant;

use reqwest::Url;
use std::time::Duration;

/// An HTTP client for plugins.
pub trait Fetch: Send + Sync {
    /// Sends a request and waits for the complete response.
    ///
    /// # Errors
    /// The grants do not allow the request, or there is no response within their limits.
    fn fetch(
        &self,
        plugin: &str,
        grants: &HttpGrants,
        request: FetchRequest,
    ) -> Result<FetchResponse, FetchFailure>;
}

/// A request from a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchRequest {
    /// GET, POST, PUT, DELETE …
    pub method: String,
    /// http or https.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Empty: no body.
    pub body: Vec<u8>,
}

impl FetchRequest {
    /// Total size, in octets.
    fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.method.len() + self.url.len() + headers + self.body.len()
    }
}

/// A response. Redirects are not followed: the plugin may follow them itself, within its grants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchResponse {
    /// 200, 404 …
    pub status: u16,
    /// Names in lower case, and values; octets that are not UTF-8 become replacement characters.
    pub headers: Vec<(String, String)>,
    /// As received: a compressed body is not expanded.
    pub body: Vec<u8>,
}

/// The reason for a missing response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchFailure {
    /// The binding does not grant the URL, or the request is malformed.
    #[error("not allowed: {0}")]
    NotAllowed(String),
    /// The response did not arrive in time.
    #[error("no answer in time")]
    TimedOut,
    /// The response exceeds the limit of the binding.
    #[error("the answer is too large")]
    TooLarge,
    /// There is no connection, or the plugin has too many requests in flight: the request was not sent.
    #[error("unreachable: {0}")]
    NotConnected(String),
    /// The connection was lost. The request may have arrived.
    #[error("unreachable: {0}")]
    Unreachable(String),
}

/// Limits of a plugin's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// The time from the request to the end of the response, including the connection setup.
    pub timeout: Duration,
    /// Maximum size of a response with headers, in octets.
    pub response: usize,
    /// Maximum size of a request with headers, in octets.
    pub request: usize,
    /// Maximum number of concurrent requests of the plugin; one more fails at once.
    pub max_in_flight: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(2), response: 256 * 1024, request: 256 * 1024, max_in_flight: 64 }
    }
}

/// The HTTP grants of a binding, and their limits.
#[derive(Debug, Clone, Default)]
pub struct HttpGrants {
    /// The granted URL prefixes.
    pub prefixes: Vec<HttpGrant>,
    /// The limits for all granted URLs.
    pub limits: FetchLimits,
}

impl HttpGrants {
    /// Whether the plugin may send this request. A test harness with its own responses can use this check too, so that
    /// it allows exactly what the appliance allows.
    ///
    /// # Errors
    /// [`FetchFailure::NotAllowed`], with the reason.
    pub fn check(&self, request: &FetchRequest) -> Result<(), FetchFailure> {
        self.check_request(request).map(|_| ())
    }

    /// Checks a request and converts it to the form in which it is sent.
    fn check_request(&self, request: &FetchRequest) -> Result<CheckedRequest, FetchFailure> {
        let refuse = |why: String| Err(FetchFailure::NotAllowed(why));
        if request.size() > self.limits.request {
            return refuse(format!(
                "a request of {} octets exceeds the {} that the binding allows",
                request.size(),
                self.limits.request
            ));
        }
        let method = match headers::method(&request.method) {
            Ok(method) => method,
            Err(why) => return refuse(why),
        };
        let url = match http_grant::url(&request.url) {
            Ok(url) => url,
            Err(why) => return refuse(why.to_owned()),
        };
        if !self.prefixes.iter().any(|prefix| prefix.allows(&url)) {
            let origin = url.origin().ascii_serialization();
            return refuse(format!("the binding does not grant {origin}{}", url.path()));
        }
        match headers::headers(&request.headers) {
            Ok(headers) => Ok(CheckedRequest { method, url, headers }),
            Err(why) => refuse(why),
        }
    }
}

/// A checked request, without its body.
#[derive(Debug)]
struct CheckedRequest {
    method: reqwest::Method,
    url: Url,
    headers: reqwest::header::HeaderMap,
}
