use model::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Calls by method and result.
pub type RequestCounts = BTreeMap<(&'static str, &'static str), u64>;

/// Counters of an account's calls and pushes.
#[derive(Debug, Default)]
pub(crate) struct CallCounts {
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

impl CallCounts {
    pub(crate) fn request(&self, method: &'static str, result: &'static str) {
        *self.requests.lock().entry((method, result)).or_default() += 1;
    }

    pub(crate) fn pushed(&self, at: Timestamp) {
        self.pushed.fetch_add(1, Relaxed);
        let mut last = self.push.lock();
        last.success = Some(at);
        last.error = None;
    }

    /// Records a failed push. Returns whether the previous push succeeded.
    pub(crate) fn push_failed(&self, error: String) -> bool {
        self.push_failures.fetch_add(1, Relaxed);
        self.push.lock().error.replace(error).is_none()
    }

    pub(crate) fn to_item(&self, name: &str, url: Option<&str>) -> BusinessAccountState {
        let last = self.push.lock();
        BusinessAccountState {
            name: name.to_owned(),
            requests: self.requests.lock().clone(),
            accepted: self.accepted.load(Relaxed),
            fetched: self.fetched.load(Relaxed),
            leased: self.leased.load(Relaxed),
            push: url.map(|url| PushStatus {
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

/// The state of an account, for the admin API.
#[derive(Clone, Debug, PartialEq)]
pub struct BusinessAccountState {
    /// The account's name.
    pub name: String,
    /// The account's calls.
    pub requests: RequestCounts,
    /// Messages accepted.
    pub accepted: u64,
    /// Items fetched and acknowledged.
    pub fetched: u64,
    /// Items fetched and not acknowledged yet.
    pub leased: u64,
    /// The account's pushes, if it has a push URL.
    pub push: Option<PushStatus>,
}

/// The state of an account's pushes, for the admin API.
#[derive(Clone, Debug, PartialEq)]
pub struct PushStatus {
    /// The push URL.
    pub url: String,
    /// Items pushed successfully.
    pub pushed: u64,
    /// Failed attempts.
    pub failures: u64,
    /// Items in flight.
    pub in_flight: u64,
    /// The time of the last success.
    pub last_success: Option<Timestamp>,
    /// The error of the last push; `None` if it succeeded.
    pub last_error: Option<String>,
}
