//! Requests of plugins to other systems.

mod fetcher;
mod grant;
mod headers;
mod metrics;

pub use fetcher::{Fetcher, FetcherOptions};
pub use grant::Grant;
pub use metrics::FetchMetrics;

use reqwest::Url;
use std::time::Duration;

/// Asks other systems for a plugin.
pub trait Fetch: Send + Sync {
    /// Sends a request and waits for the whole answer.
    ///
    /// # Errors
    /// The grants do not allow it, or there is no answer within their limits.
    fn fetch(&self, plugin: &str, grants: &Grants, request: Request) -> Result<Response, FetchFailure>;
}

/// A request, as a plugin made it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// GET, POST, PUT, DELETE …
    pub method: String,
    /// http or https.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// Empty: none.
    pub body: Vec<u8>,
}

impl Request {
    /// Octets of all its parts.
    fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.method.len() + self.url.len() + headers + self.body.len()
    }
}

/// An answer. Redirections are answers like any other: a plugin may follow them as far as its grants go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// 200, 404 …
    pub status: u16,
    /// Names, in lower case, and values; octets outside UTF-8 as replacement characters.
    pub headers: Vec<(String, String)>,
    /// As it was sent: compressed ones are not expanded.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchFailure {
    /// The binding does not grant this place, or the request makes no sense.
    #[error("not allowed: {0}")]
    NotAllowed(String),
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The answer is larger than the binding allows.
    #[error("the answer is too large")]
    TooLarge,
    /// No connection, or it broke, or the plugin has too many requests on their way.
    #[error("unreachable: {0}")]
    Unreachable(String),
}

/// How long, how large and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// From the question to the end of the answer, the connection included.
    pub time_out: Duration,
    /// Octets of an answer, headers included.
    pub answer: usize,
    /// Octets of a request, headers included.
    pub request: usize,
    /// Requests of the plugin that may be on their way at a time; one more fails at once.
    pub at_a_time: usize,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self { time_out: Duration::from_secs(2), answer: 256 * 1024, request: 256 * 1024, at_a_time: 64 }
    }
}

/// What a binding grants: places and limits.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Any of these.
    pub places: Vec<Grant>,
    /// For all of them.
    pub limits: FetchLimits,
}

impl Grants {
    /// Whether the plugin may ask this. For a harness too, that answers itself: what it lets pass is what the appliance
    /// lets pass.
    ///
    /// # Errors
    /// [`FetchFailure::NotAllowed`], with the reason.
    pub fn check(&self, request: &Request) -> Result<(), FetchFailure> {
        self.checked(request).map(|_| ())
    }

    /// The request in the form in which it is sent: what was checked is what is sent.
    fn checked(&self, request: &Request) -> Result<Checked, FetchFailure> {
        let refuse = |why: String| Err(FetchFailure::NotAllowed(why));
        if request.size() > self.limits.request {
            return refuse(format!(
                "a request of {} octets is larger than the {} that the binding allows",
                request.size(),
                self.limits.request
            ));
        }
        let method = match headers::method(&request.method) {
            Ok(method) => method,
            Err(why) => return refuse(why),
        };
        let url = match grant::url(&request.url) {
            Ok(url) => url,
            Err(why) => return refuse(why.to_owned()),
        };
        if !self.places.iter().any(|place| place.allows(&url)) {
            let origin = url.origin().ascii_serialization();
            return refuse(format!("the binding does not grant {origin}{}", url.path()));
        }
        match headers::headers(&request.headers) {
            Ok(headers) => Ok(Checked { method, url, headers }),
            Err(why) => refuse(why),
        }
    }
}

/// A request that may be sent, without its body.
#[derive(Debug)]
struct Checked {
    method: reqwest::Method,
    url: Url,
    headers: reqwest::header::HeaderMap,
}
