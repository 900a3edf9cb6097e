//! What an admin sees of a core network.

use crate::fault::{GsmFault, Observed};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// MTs written, parts counted singly.
    pub(crate) mt: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) unanswered: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) twice: AtomicU64,
    pub(crate) mo: AtomicU64,
    pub(crate) mo_repeated: AtomicU64,
    pub(crate) status_reports: AtomicU64,
    pub(crate) ready_for_sm: AtomicU64,
    pub(crate) attached: AtomicU64,
    pub(crate) relayed_frames: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) questions: AtomicU64,
    pub(crate) unanswered_questions: AtomicU64,
    pub(crate) asked_about: AtomicU64,
    pub(crate) ctrl_up: AtomicBool,
    /// The CTRL interface has failed, and no connection to it has worked since.
    pub(crate) ctrl_failed: AtomicBool,
    /// Refusals of MTs, by what the network said.
    refused: Mutex<BTreeMap<&'static str, u64>>,
    /// Refusals of MOs, by our cause.
    mo_refused: Mutex<BTreeMap<u8, u64>>,
    last_error: Mutex<Option<String>>,
    pub(crate) observed: Observed,
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

/// One connection of the network's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionState {
    /// The name that the other end gave itself; the HLR's is not told.
    pub name: Option<String>,
    /// The MSC's address (the HLR's, for a client).
    pub remote: SocketAddr,
    /// Messages can go through it.
    pub ready: bool,
}

/// A core network, as an admin sees it. Counts are of the time since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GsmState {
    /// Its name.
    pub name: String,
    /// `client` or `proxy`.
    pub role: &'static str,
    /// Connections: MSCs, or the HLR.
    pub connections: Vec<ConnectionState>,
    /// Whether the CTRL interface answers; `None` where there is none.
    pub ctrl: Option<bool>,
    /// Subscribers that are known without asking.
    pub subscribers: u64,
    /// Subscribers with a message on its way.
    pub in_flight: u64,
    /// Short messages written to MSCs.
    pub mt: u64,
    /// Messages that handsets took.
    pub delivered: u64,
    /// Refused ones, by what the network said.
    pub refused: BTreeMap<&'static str, u64>,
    /// Short messages without an answer in time.
    pub unanswered: u64,
    /// Answers that came after that.
    pub late: u64,
    /// Answers that came twice.
    pub twice: u64,
    /// Short messages from handsets.
    pub mo: u64,
    /// Repetitions among them.
    pub mo_repeated: u64,
    /// Refused ones, by RP cause.
    pub mo_refused: BTreeMap<u8, u64>,
    /// Status reports given to handsets.
    pub status_reports: u64,
    /// Handsets that said that they have memory again, or are there.
    pub ready_for_sm: u64,
    /// Location updates seen.
    pub attached: u64,
    /// Frames passed through (proxy).
    pub relayed_frames: u64,
    /// Questions on the CTRL interface.
    pub questions: u64,
    /// Those without an answer.
    pub unanswered_questions: u64,
    /// Absent subscribers about whose return the HLR is asked (client).
    pub asked_about: u64,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
    /// What somebody has to mend.
    pub faults: Vec<GsmFault>,
}

impl Counts {
    pub(crate) fn show(&self, name: &str, role: &'static str) -> GsmState {
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
            late: self.late.load(Relaxed),
            twice: self.twice.load(Relaxed),
            mo: self.mo.load(Relaxed),
            mo_repeated: self.mo_repeated.load(Relaxed),
            mo_refused: self.mo_refused.lock().clone(),
            status_reports: self.status_reports.load(Relaxed),
            ready_for_sm: self.ready_for_sm.load(Relaxed),
            attached: self.attached.load(Relaxed),
            relayed_frames: self.relayed_frames.load(Relaxed),
            questions: self.questions.load(Relaxed),
            unanswered_questions: self.unanswered_questions.load(Relaxed),
            asked_about: self.asked_about.load(Relaxed),
            last_error: self.last_error.lock().clone(),
            faults: Vec::new(),
        }
    }
}
