use api::{BusinessPushView, BusinessRequestsView, BusinessView};
use model::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of an account's calls and pushes.
#[derive(Debug, Default)]
pub(crate) struct CallCounts {
    /// Calls by method and result.
    requests: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
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

    /// The state of an account with this name and push URL.
    pub(crate) fn view(&self, account: &str, url: Option<&str>) -> BusinessView {
        let last = self.push.lock();
        let requests = self.requests.lock();
        BusinessView {
            account: account.to_owned(),
            requests: requests
                .iter()
                .map(|((method, result), count)| BusinessRequestsView {
                    method: (*method).to_owned(),
                    result: (*result).to_owned(),
                    count: *count,
                })
                .collect(),
            accepted: self.accepted.load(Relaxed),
            fetched: self.fetched.load(Relaxed),
            leased: self.leased.load(Relaxed),
            push: url.map(|url| BusinessPushView {
                url: url.to_owned(),
                pushed: self.pushed.load(Relaxed),
                failures: self.push_failures.load(Relaxed),
                in_flight: self.pushing.load(Relaxed),
                last_success: last.success.map(|at| at.0),
                last_error: last.error.clone(),
            }),
        }
    }
}
