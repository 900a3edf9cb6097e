use super::fetch_metrics::FetchCounts;
use super::{
    CheckedRequest, Fetch, FetchFailure, FetchLimits, FetchMetrics, FetchRequest, FetchResponse, HttpGrants,
};
use crate::Error;
use arc_swap::ArcSwap;
use reqwest::header::HeaderMap;
use reqwest::{Certificate, Client};
use std::collections::HashMap;
use std::error::Error as _;
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Handle;

/// Options of a fetcher.
#[derive(Debug, Clone, Default)]
pub struct FetcherOptions {
    /// PEM files with one or more trusted certificate authorities each, in addition to the machine's.
    pub authorities: Vec<Vec<u8>>,
}

/// Sends requests over the network.
///
/// A call blocks its thread until the response arrives or the timeout expires; the work runs on the runtime given to
/// [`Fetcher::new`]. So do not call it on a thread of that runtime: with one worker thread nothing would be left to do
/// the work, and the call would time out.
#[derive(Debug)]
pub struct Fetcher {
    client: Client,
    runtime: Handle,
    plugins: ArcSwap<HashMap<String, Arc<FetchCounts>>>,
}

/// Maximum time to connect. After this timeout the request was certainly not sent; the timeout of the request itself does
/// not show that.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The calling thread waits this much longer than the timeout, in case the runtime is busy.
const GRACE: Duration = Duration::from_secs(1);

impl Fetcher {
    /// Creates a fetcher on this runtime.
    ///
    /// # Errors
    /// A certificate is invalid, or TLS cannot be set up on this machine.
    pub fn new(runtime: Handle, options: &FetcherOptions) -> Result<Self, Error> {
        let failed = |error: reqwest::Error| Error::Client(error_chain(&error));
        let mut client = Client::builder()
            .user_agent(concat!("switchyard/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .http1_only()
            .referer(false)
            .pool_max_idle_per_host(16)
            .pool_idle_timeout(Duration::from_secs(30))
            .tcp_nodelay(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .use_rustls_tls();
        for authority in &options.authorities {
            let certificates = Certificate::from_pem_bundle(authority).map_err(failed)?;
            if certificates.is_empty() {
                return Err(Error::Client("a certificate file has no certificate".to_owned()));
            }
            for certificate in certificates {
                client = client.add_root_certificate(certificate);
            }
        }
        Ok(Self { client: client.build().map_err(failed)?, runtime, plugins: ArcSwap::default() })
    }

    /// Metrics of each plugin's requests, by the plugin's name.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, FetchMetrics)> {
        self.plugins.load().iter().map(|(plugin, counts)| (plugin.clone(), counts.snapshot())).collect()
    }

    fn counts(&self, plugin: &str) -> Arc<FetchCounts> {
        if let Some(known) = self.plugins.load().get(plugin) {
            return Arc::clone(known);
        }
        let new = Arc::new(FetchCounts::default());
        let before = self.plugins.rcu(|plugins| {
            let mut plugins = HashMap::clone(plugins);
            plugins.entry(plugin.to_owned()).or_insert_with(|| Arc::clone(&new));
            plugins
        });
        before.get(plugin).map_or(new, Arc::clone)
    }

    fn send(
        &self,
        permit: RequestPermit,
        checked: CheckedRequest,
        body: Vec<u8>,
        limits: FetchLimits,
    ) -> Result<FetchResponse, FetchFailure> {
        let CheckedRequest { method, url, headers } = checked;
        let mut request = self.client.request(method, url).headers(headers);
        if !body.is_empty() {
            request = request.body(body);
        }
        let (response, responses) = mpsc::sync_channel(1);
        // A channel and not `block_on`, which panics on a thread that is inside a runtime.
        let work = self.runtime.spawn(async move {
            let result = tokio::time::timeout(limits.timeout, read_response(request, limits.response)).await;
            // Held until the work ends, even if the caller gave up; released before the caller continues.
            drop(permit);
            // The channel has room for one response, and only one is sent.
            let _ = response.try_send(result.unwrap_or(Err(FetchFailure::TimedOut)));
        });
        match responses.recv_timeout(limits.timeout.saturating_add(GRACE)) {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                work.abort();
                Err(FetchFailure::TimedOut)
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(FetchFailure::Unreachable("the appliance is shutting down".to_owned()))
            }
        }
    }
}

impl Fetch for Fetcher {
    fn fetch(
        &self,
        plugin: &str,
        grants: &HttpGrants,
        request: FetchRequest,
    ) -> Result<FetchResponse, FetchFailure> {
        let counts = self.counts(plugin);
        let result = match grants.check_request(&request) {
            Ok(checked) => {
                let Some(permit) = RequestPermit::take(&counts, grants.limits.max_in_flight) else {
                    counts.count_busy();
                    return Err(FetchFailure::NotConnected("busy".to_owned()));
                };
                self.send(permit, checked, request.body, grants.limits)
            }
            Err(refused) => Err(refused),
        };
        counts.count(&result);
        result
    }
}

/// A permit for one concurrent request of a plugin.
struct RequestPermit(Arc<FetchCounts>);

impl RequestPermit {
    fn take(counts: &Arc<FetchCounts>, most: usize) -> Option<Self> {
        let increment = |taken: usize| (taken < most).then_some(taken + 1);
        counts.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increment).ok()?;
        Some(Self(Arc::clone(counts)))
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads the whole response, or enough of it to see that it is too large.
async fn read_response(request: reqwest::RequestBuilder, most: usize) -> Result<FetchResponse, FetchFailure> {
    let unreachable = |error: reqwest::Error| {
        let (is_unsent, why) = (error.is_connect(), error_chain(&error.without_url()));
        if is_unsent { FetchFailure::NotConnected(why) } else { FetchFailure::Unreachable(why) }
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let headers = header_strings(response.headers());
    let mut left = most;
    let mut take = |octets: usize| {
        left = left.checked_sub(octets).ok_or(FetchFailure::TooLarge)?;
        Ok(())
    };
    for (name, value) in &headers {
        take(name.len() + value.len())?;
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(unreachable)? {
        take(piece.len())?;
        body.extend_from_slice(&piece);
    }
    Ok(FetchResponse { status: response.status().as_u16(), headers, body })
}

fn header_strings(headers: &HeaderMap) -> Vec<(String, String)> {
    let value = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, text)| (name.as_str().to_owned(), value(text.as_bytes()))).collect()
}

/// An error with its causes: the client's own text is only "error sending request".
fn error_chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
