//! State of a core network, for the API and metrics.

use crate::fault::ObservedFaults;
use crate::mt::ConnId;
use crate::subscribers::Subscribers;
use api::{CoreConnectionView, CoreNetworkMo, CoreNetworkMt, CoreNetworkRole, CoreNetworkView, HlrQuestions};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// State shared between the network's tasks and its observers.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) counts: Arc<GsmCounters>,
    pub(crate) connections: Mutex<BTreeMap<ConnId, CoreConnectionView>>,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct GsmCounters {
    /// MTs written, one per segment.
    pub(crate) mt: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) unanswered: AtomicU64,
    pub(crate) late_answers: AtomicU64,
    pub(crate) duplicate_answers: AtomicU64,
    pub(crate) mo: AtomicU64,
    pub(crate) mo_repeated: AtomicU64,
    pub(crate) status_reports: AtomicU64,
    pub(crate) ready_for_sm: AtomicU64,
    pub(crate) attached: AtomicU64,
    pub(crate) relayed_frames: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) questions: AtomicU64,
    pub(crate) unanswered_questions: AtomicU64,
    pub(crate) ctrl_up: AtomicBool,
    /// The CTRL interface has failed, and no connection has succeeded since.
    pub(crate) ctrl_failed: AtomicBool,
    /// MT refusals by description.
    refused: Mutex<BTreeMap<&'static str, u64>>,
    /// MO refusals by RP cause.
    mo_refused: Mutex<BTreeMap<u8, u64>>,
    last_error: Mutex<Option<String>>,
    pub(crate) observed_faults: ObservedFaults,
}

impl GsmCounters {
    pub(crate) fn refused(&self, what: &'static str) {
        let mut refused = self.refused.lock();
        match refused.get_mut(what) {
            Some(count) => *count += 1,
            None => {
                refused.insert(what, 1);
            }
        }
    }

    pub(crate) fn mo_refused(&self, cause: u8) {
        *self.mo_refused.lock().entry(cause).or_default() += 1;
    }

    pub(crate) fn error(&self, error: impl Into<String>) {
        *self.last_error.lock() = Some(error.into());
    }
}

impl GsmCounters {
    /// The state of a network without connections, subscribers and faults.
    pub(crate) fn snapshot(&self, name: &str, role: CoreNetworkRole) -> CoreNetworkView {
        let refused = self.refused.lock();
        CoreNetworkView {
            name: name.to_owned(),
            role,
            in_flight: self.in_flight.load(Relaxed),
            mt: CoreNetworkMt {
                sent: self.mt.load(Relaxed),
                delivered: self.delivered.load(Relaxed),
                refused: refused.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect(),
                unanswered: self.unanswered.load(Relaxed),
                answered_late: self.late_answers.load(Relaxed),
                answered_twice: self.duplicate_answers.load(Relaxed),
                status_reports: self.status_reports.load(Relaxed),
            },
            mo: CoreNetworkMo {
                received: self.mo.load(Relaxed),
                repeated: self.mo_repeated.load(Relaxed),
                refused: self.mo_refused.lock().clone(),
            },
            ready_for_sm: self.ready_for_sm.load(Relaxed),
            attached: self.attached.load(Relaxed),
            relayed_frames: self.relayed_frames.load(Relaxed),
            hlr_questions: HlrQuestions {
                asked: self.questions.load(Relaxed),
                unanswered: self.unanswered_questions.load(Relaxed),
            },
            last_error: self.last_error.lock().clone(),
            ..CoreNetworkView::default()
        }
    }
}
