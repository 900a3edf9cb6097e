use super::metrics::Counts;
use super::{Checked, Fetch, FetchFailure, FetchLimits, FetchMetrics, Grants, Request, Response};
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

/// What a fetcher trusts.
#[derive(Debug, Clone, Default)]
pub struct FetcherOptions {
    /// Certificates, in PEM and one or more each, of authorities that are trusted beside those of the machine.
    pub authorities: Vec<Vec<u8>>,
}

/// Asks over the network.
///
/// A call blocks its thread until there is an answer, or the time is over, while the work is done on the runtime given at
/// construction. So it must not be made on one of that runtime's own threads: with a runtime of one thread nothing would be
/// left to do the work, and the call would time out.
#[derive(Debug)]
pub struct Fetcher {
    client: Client,
    runtime: Handle,
    plugins: ArcSwap<HashMap<String, Arc<Counts>>>,
}

/// The thread waits so much longer than the work may take, for a runtime that is busy.
const GRACE: Duration = Duration::from_secs(1);

impl Fetcher {
    /// Asks on this runtime.
    ///
    /// # Errors
    /// A certificate that is none, or TLS that cannot be set up on this machine.
    pub fn new(runtime: Handle, options: &FetcherOptions) -> Result<Self, Error> {
        let failed = |error: reqwest::Error| Error::Client(told(&error));
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
            .use_rustls_tls();
        for authority in &options.authorities {
            let certificates = Certificate::from_pem_bundle(authority).map_err(failed)?;
            if certificates.is_empty() {
                return Err(Error::Client("there is no certificate in what was given as one".to_owned()));
            }
            for certificate in certificates {
                client = client.add_root_certificate(certificate);
            }
        }
        Ok(Self { client: client.build().map_err(failed)?, runtime, plugins: ArcSwap::default() })
    }

    /// What became of each plugin's requests, by its name.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, FetchMetrics)> {
        self.plugins.load().iter().map(|(plugin, counts)| (plugin.clone(), counts.snapshot())).collect()
    }

    fn counts(&self, plugin: &str) -> Arc<Counts> {
        if let Some(known) = self.plugins.load().get(plugin) {
            return Arc::clone(known);
        }
        let new = Arc::new(Counts::default());
        let before = self.plugins.rcu(|plugins| {
            let mut plugins = HashMap::clone(plugins);
            plugins.entry(plugin.to_owned()).or_insert_with(|| Arc::clone(&new));
            plugins
        });
        before.get(plugin).map_or(new, Arc::clone)
    }

    fn ask(
        &self,
        place: Place,
        checked: Checked,
        body: Vec<u8>,
        limits: FetchLimits,
    ) -> Result<Response, FetchFailure> {
        let Checked { method, url, headers } = checked;
        let mut request = self.client.request(method, url).headers(headers);
        if !body.is_empty() {
            request = request.body(body);
        }
        let (answer, answered) = mpsc::sync_channel(1);
        // A channel, and not `block_on`, which panics where a runtime is on the thread already.
        let work = self.runtime.spawn(async move {
            let result = tokio::time::timeout(limits.time_out, whole(request, limits.answer)).await;
            // Held until the work ends, also when nobody waits for it any more; free when the caller goes on.
            drop(place);
            // There is room for one, and there is one.
            let _ = answer.try_send(result.unwrap_or(Err(FetchFailure::TimedOut)));
        });
        match answered.recv_timeout(limits.time_out.saturating_add(GRACE)) {
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
    fn fetch(&self, plugin: &str, grants: &Grants, request: Request) -> Result<Response, FetchFailure> {
        let counts = self.counts(plugin);
        let result = match grants.checked(&request) {
            Ok(checked) => {
                let Some(place) = Place::take(&counts, grants.limits.at_a_time) else {
                    counts.count_busy();
                    return Err(FetchFailure::Unreachable("busy".to_owned()));
                };
                self.ask(place, checked, request.body, grants.limits)
            }
            Err(refused) => Err(refused),
        };
        counts.count(&result);
        result
    }
}

/// One of the requests of a plugin that may be under way.
struct Place(Arc<Counts>);

impl Place {
    fn take(counts: &Arc<Counts>, most: usize) -> Option<Self> {
        let one_more = |taken: usize| (taken < most).then_some(taken + 1);
        counts.under_way.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Self(Arc::clone(counts)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The whole answer, or as much of it as shows that it is too large.
async fn whole(request: reqwest::RequestBuilder, most: usize) -> Result<Response, FetchFailure> {
    let unreachable = |error: reqwest::Error| FetchFailure::Unreachable(told(&error.without_url()));
    let mut response = request.send().await.map_err(unreachable)?;
    let headers = readable(response.headers());
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
    Ok(Response { status: response.status().as_u16(), headers, body })
}

fn readable(headers: &HeaderMap) -> Vec<(String, String)> {
    let value = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|(name, text)| (name.as_str().to_owned(), value(text.as_bytes()))).collect()
}

/// An error with its causes: the client's own says no more than "error sending request".
fn told(error: &reqwest::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(told, ": {error}");
        cause = error.source();
    }
    told
}
