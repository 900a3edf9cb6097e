//! State of a core network, for the API and metrics.

use crate::fault::{GsmFault, ObservedFaults};
use crate::mt::ConnId;
use crate::subscribers::Subscribers;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// State shared between the network's tasks and its observers.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) connections: Mutex<BTreeMap<ConnId, ConnectionState>>,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
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
    pub(crate) absent_watched: AtomicU64,
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

impl Counts {
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

/// State of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionState {
    /// Name of the MSC; `None` for the HLR.
    pub name: Option<String>,
    /// Address of the MSC; of the HLR for a client.
    pub remote: SocketAddr,
    /// Whether the connection is ready for messages.
    pub ready: bool,
}

/// State of a core network. Counters begin at the start of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GsmState {
    /// Its name.
    pub name: String,
    /// Role: `client` or `proxy`.
    pub role: &'static str,
    /// Connections: MSCs, or the HLR.
    pub connections: Vec<ConnectionState>,
    /// Whether the CTRL interface answers; `None` if none is configured.
    pub ctrl: Option<bool>,
    /// Number of known subscribers.
    pub subscribers: u64,
    /// Number of subscribers with a message in flight.
    pub in_flight: u64,
    /// Short messages written to MSCs.
    pub mt: u64,
    /// Messages acknowledged by handsets.
    pub delivered: u64,
    /// MT refusals by description.
    pub refused: BTreeMap<&'static str, u64>,
    /// MTs without an answer within the timeout.
    pub unanswered: u64,
    /// Answers after the timeout.
    pub late_answers: u64,
    /// Duplicate answers.
    pub duplicate_answers: u64,
    /// MO requests.
    pub mo: u64,
    /// Repeated MO requests.
    pub mo_repeated: u64,
    /// MO refusals by RP cause.
    pub mo_refused: BTreeMap<u8, u64>,
    /// Status reports sent to handsets.
    pub status_reports: u64,
    /// Alerts (READY-FOR-SM) from handsets.
    pub ready_for_sm: u64,
    /// Location updates.
    pub attached: u64,
    /// Relayed frames (proxy).
    pub relayed_frames: u64,
    /// Queries on the CTRL interface.
    pub questions: u64,
    /// Unanswered queries.
    pub unanswered_questions: u64,
    /// Absent subscribers that are monitored by HLR queries (client).
    pub absent_watched: u64,
    /// The most recent error.
    pub last_error: Option<String>,
    /// Current faults.
    pub faults: Vec<GsmFault>,
}

impl Counts {
    pub(crate) fn snapshot(&self, name: &str, role: &'static str) -> GsmState {
        GsmState {
            name: name.to_owned(),
            role,
            connections: Vec::new(),
            ctrl: None,
            subscribers: 0,
            in_flight: self.in_flight.load(Relaxed),
            mt: self.mt.load(Relaxed),
            delivered: self.delivered.load(Relaxed),
            refused: self.refused.lock().clone(),
            unanswered: self.unanswered.load(Relaxed),
            late_answers: self.late_answers.load(Relaxed),
            duplicate_answers: self.duplicate_answers.load(Relaxed),
            mo: self.mo.load(Relaxed),
            mo_repeated: self.mo_repeated.load(Relaxed),
            mo_refused: self.mo_refused.lock().clone(),
            status_reports: self.status_reports.load(Relaxed),
            ready_for_sm: self.ready_for_sm.load(Relaxed),
            attached: self.attached.load(Relaxed),
            relayed_frames: self.relayed_frames.load(Relaxed),
            questions: self.questions.load(Relaxed),
            unanswered_questions: self.unanswered_questions.load(Relaxed),
            absent_watched: self.absent_watched.load(Relaxed),
            last_error: self.last_error.lock().clone(),
            faults: Vec::new(),
        }
    }
}
