use model::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Calls by method and result.
pub type RequestCounts = BTreeMap<(&'static str, &'static str), u64>;

/// What an account's calls and pushes have come to.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: Mutex<RequestCounts>,
    pub(crate) accepted: AtomicU64,
    pub(crate) fetched: AtomicU64,
    pub(crate) leased: AtomicU64,
    pub(crate) pushed: AtomicU64,
    pub(crate) push_failures: AtomicU64,
    pub(crate) pushing: AtomicU64,
    push: Mutex<LastPush>,
}

#[derive(Debug, Default)]
struct LastPush {
    success: Option<Timestamp>,
    error: Option<String>,
}

impl Counts {
    pub(crate) fn request(&self, method: &'static str, result: &'static str) {
        *self.requests.lock().entry((method, result)).or_default() += 1;
    }

    pub(crate) fn pushed(&self, at: Timestamp) {
        self.pushed.fetch_add(1, Relaxed);
        let mut last = self.push.lock();
        last.success = Some(at);
        last.error = None;
    }

    /// Says whether pushes went well before.
    pub(crate) fn push_failed(&self, error: String) -> bool {
        self.push_failures.fetch_add(1, Relaxed);
        self.push.lock().error.replace(error).is_none()
    }

    pub(crate) fn show(&self, name: &str, url: Option<&str>) -> AccountState {
        let last = self.push.lock();
        AccountState {
            name: name.to_owned(),
            requests: self.requests.lock().clone(),
            accepted: self.accepted.load(Relaxed),
            fetched: self.fetched.load(Relaxed),
            leased: self.leased.load(Relaxed),
            push: url.map(|url| PushState {
                url: url.to_owned(),
                pushed: self.pushed.load(Relaxed),
                failures: self.push_failures.load(Relaxed),
                in_flight: self.pushing.load(Relaxed),
                last_success: last.success,
                last_error: last.error.clone(),
            }),
        }
    }
}

/// What the admin sees of one account.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountState {
    /// Its name.
    pub name: String,
    /// Its calls.
    pub requests: RequestCounts,
    /// Messages accepted.
    pub accepted: u64,
    /// Items fetched and acknowledged.
    pub fetched: u64,
    /// Items fetched and not acknowledged yet.
    pub leased: u64,
    /// Its pushes, where it has a URL.
    pub push: Option<PushState>,
}

/// What the admin sees of an account's pushes.
#[derive(Clone, Debug, PartialEq)]
pub struct PushState {
    /// Where to.
    pub url: String,
    /// Items taken.
    pub pushed: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Items on their way.
    pub in_flight: u64,
    /// When one was last taken.
    pub last_success: Option<Timestamp>,
    /// Why the last one was not, if that is the newest news.
    pub last_error: Option<String>,
}
