use api::{LinkBlocker, LinkPhase, LinkRole};
use model::{LinkId, PeerId, Timestamp};
use parking_lot::Mutex;
use smpp::BindMode;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The kinds of PDU that are counted one by one. Link tests and logouts are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// SMPP submit_sm.
    SubmitSm,
    /// SMPP deliver_sm.
    DeliverSm,
    /// SMPP data_sm.
    DataSm,
    /// SMPP submit_multi.
    SubmitMulti,
    /// SMPP query_sm.
    QuerySm,
    /// SMPP cancel_sm.
    CancelSm,
    /// SMPP replace_sm.
    ReplaceSm,
    /// Any other request.
    Other,
    /// Submit of a protocol of China.
    Submit,
    /// Deliver of a protocol of China.
    Deliver,
    /// SGIP Report.
    Report,
    /// SGIP UserRpt.
    UserReport,
}

/// The names of [`PduKind`] in the API and in metrics, in its order.
const KINDS: [&str; 12] = [
    "submit_sm",
    "deliver_sm",
    "data_sm",
    "submit_multi",
    "query_sm",
    "cancel_sm",
    "replace_sm",
    "other",
    "submit",
    "deliver",
    "report",
    "userrpt",
];

/// Counters of one direction.
#[derive(Debug, Default)]
pub struct PduCounts {
    requests: [AtomicU64; KINDS.len()],
    answers: AtomicU64,
    errors: Mutex<BTreeMap<u32, u64>>,
}

impl PduCounts {
    /// Counts a request.
    pub fn count(&self, kind: PduKind) {
        if let Some(count) = self.requests.get(kind as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Counts an answer by its code; 0 means success in every protocol.
    pub fn count_answer(&self, code: u32) {
        self.answers.fetch_add(1, Relaxed);
        if code != 0 {
            let mut errors = self.errors.lock();
            // Bounds the memory for a peer that invents statuses.
            let key = if errors.len() >= 64 && !errors.contains_key(&code) { u32::MAX } else { code };
            *errors.entry(key).or_default() += 1;
        }
    }

    fn snapshot(&self) -> Traffic {
        Traffic {
            requests: KINDS
                .iter()
                .zip(&self.requests)
                .map(|(name, count)| (*name, count.load(Relaxed)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            answers: self.answers.load(Relaxed),
            errors: self.errors.lock().clone(),
        }
    }
}

/// The traffic of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Requests by kind of PDU; kinds without requests are left out.
    pub requests: BTreeMap<&'static str, u64>,
    /// All answers.
    pub answers: u64,
    /// Answers that were refusals, by status; `u32::MAX` stands for all beyond the first 64 statuses.
    pub errors: BTreeMap<u32, u64>,
}

#[derive(Debug)]
struct LinkRecordState {
    link: Option<LinkId>,
    phase: LinkPhase,
    remote: Option<SocketAddr>,
    bind: Option<BindMode>,
    version: Option<u8>,
    window: u32,
    since: Timestamp,
    /// The end of the last bound phase; if the link was never bound, its creation.
    down_since: Timestamp,
    last_error: Option<String>,
    back_off_until: Option<Timestamp>,
}

/// The record of one link, for the API. A client's record survives its connections.
#[derive(Debug)]
pub struct LinkRecord {
    pub(crate) role: LinkRole,
    pub(crate) peer: PeerId,
    /// The name of the account or peer.
    pub name: String,
    pub(crate) number: usize,
    pub(crate) tls: bool,
    /// Traffic received.
    pub inbound: PduCounts,
    /// Traffic sent.
    pub outbound: PduCounts,
    pub(crate) in_flight: AtomicU32,
    pub(crate) unanswered_in: AtomicU32,
    blocked_by: AtomicU8,
    /// Microseconds, smoothed; 0 if unknown.
    round_trip: AtomicU64,
    /// Microseconds from `created_at` to the last octets received.
    heard: AtomicU64,
    created_at: Instant,
    /// Ends the wait before the next dial.
    pub(crate) dial_now: Notify,
    state: Mutex<LinkRecordState>,
}

impl LinkRecord {
    /// Creates the record of one link; `number` is its number among the links of the peer, from 0.
    #[must_use]
    pub fn new(role: LinkRole, peer: PeerId, name: &str, number: usize, tls: bool) -> Arc<Self> {
        Arc::new(Self {
            role,
            peer,
            name: name.to_owned(),
            number,
            tls,
            inbound: PduCounts::default(),
            outbound: PduCounts::default(),
            in_flight: AtomicU32::new(0),
            unanswered_in: AtomicU32::new(0),
            blocked_by: AtomicU8::new(LinkBlocker::NotBound as u8),
            round_trip: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            created_at: Instant::now(),
            dial_now: Notify::new(),
            state: Mutex::new(LinkRecordState {
                link: None,
                phase: LinkPhase::Connecting,
                remote: None,
                bind: None,
                version: None,
                window: 0,
                since: Timestamp::now(),
                down_since: Timestamp::now(),
                last_error: None,
                back_off_until: None,
            }),
        })
    }

    pub(crate) fn set_phase(&self, phase: LinkPhase) {
        let mut state = self.state.lock();
        if state.phase != phase {
            let now = Timestamp::now();
            if state.phase == LinkPhase::Bound {
                state.down_since = now;
            }
            state.phase = phase;
            state.since = now;
        }
        if phase != LinkPhase::BackingOff {
            state.back_off_until = None;
        }
        if !matches!(phase, LinkPhase::Bound | LinkPhase::Unbinding) {
            state.link = None;
            state.bind = None;
            state.version = None;
            state.window = 0;
            self.in_flight.store(0, Relaxed);
            self.unanswered_in.store(0, Relaxed);
            self.set_blocked_by(LinkBlocker::NotBound);
        }
    }

    pub(crate) fn set_back_off(&self, wait: Duration) {
        self.set_phase(LinkPhase::BackingOff);
        self.state.lock().back_off_until = Some(Timestamp::now() + wait);
    }

    /// Ends the wait before the next dial, if there is one.
    fn end_wait(&self) {
        if self.state.lock().phase == LinkPhase::BackingOff {
            self.dial_now.notify_one();
        }
    }

    pub(crate) fn set_remote(&self, remote: SocketAddr) {
        self.state.lock().remote = Some(remote);
    }

    pub(crate) fn set_bound(&self, link: LinkId, mode: BindMode, version: u8, window: usize) {
        self.set_phase(LinkPhase::Bound);
        let mut state = self.state.lock();
        state.link = Some(link);
        state.bind = Some(mode);
        state.version = Some(version);
        state.window = u32::try_from(window).unwrap_or(u32::MAX);
        self.set_blocked_by(LinkBlocker::None);
    }

    /// Notes the last error.
    pub fn set_error(&self, error: impl Into<String>) {
        self.state.lock().last_error = Some(error.into());
    }

    pub(crate) fn set_blocked_by(&self, blocked_by: LinkBlocker) {
        self.blocked_by.store(blocked_by as u8, Relaxed);
    }

    fn blocked_by(&self) -> LinkBlocker {
        let index = usize::from(self.blocked_by.load(Relaxed));
        LinkBlocker::ALL.get(index).copied().unwrap_or_default()
    }

    /// Notes the time that an answer of the peer took.
    pub fn record_round_trip(&self, taken: Duration) {
        let new = u64::try_from(taken.as_micros()).unwrap_or(u64::MAX).max(1);
        let old = self.round_trip.load(Relaxed);
        // The usual smoothing (RFC 6298 §2): an eighth of the new value.
        self.round_trip.store(if old == 0 { new } else { old - old / 8 + new / 8 }, Relaxed);
    }

    pub(crate) fn record_received(&self, now: Instant) {
        let micros = now.saturating_duration_since(self.created_at).as_micros();
        self.heard.store(u64::try_from(micros).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn silent_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.created_at)
            .saturating_sub(Duration::from_micros(self.heard.load(Relaxed)))
    }

    pub(crate) fn snapshot(&self) -> LinkState {
        let state = self.state.lock();
        let round_trip = self.round_trip.load(Relaxed);
        LinkState {
            link: state.link,
            role: self.role,
            peer: self.peer,
            name: self.name.clone(),
            number: self.number,
            tls: self.tls,
            phase: state.phase,
            remote: state.remote,
            bind: state.bind,
            version: state.version,
            window: state.window,
            in_flight: self.in_flight.load(Relaxed),
            unanswered_in: self.unanswered_in.load(Relaxed),
            round_trip: (round_trip > 0).then(|| Duration::from_micros(round_trip)),
            silent_for: self.silent_for(Instant::now()),
            blocked_by: self.blocked_by(),
            inbound: self.inbound.snapshot(),
            outbound: self.outbound.snapshot(),
            since: state.since,
            down_since: (state.phase != LinkPhase::Bound).then_some(state.down_since),
            last_error: state.last_error.clone(),
            back_off_until: state.back_off_until,
        }
    }
}

/// A snapshot of one link, for the API.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkState {
    /// The link's id, while it is bound.
    pub link: Option<LinkId>,
    /// Our role.
    pub role: LinkRole,
    /// The id of the account or peer.
    pub peer: PeerId,
    /// The name of the account or peer.
    pub name: String,
    /// The number of the link among the peer's links, from 0; 0 for accounts.
    pub number: usize,
    /// Whether the link uses TLS.
    pub tls: bool,
    /// The phase.
    pub phase: LinkPhase,
    /// The address of the remote end.
    pub remote: Option<SocketAddr>,
    /// The bind mode.
    pub bind: Option<BindMode>,
    /// The interface version of the remote end.
    pub version: Option<u8>,
    /// The window: requests of ours that may be unanswered.
    pub window: u32,
    /// Requests of ours that are unanswered.
    pub in_flight: u32,
    /// Requests of the remote end that wait for our answer.
    pub unanswered_in: u32,
    /// The response time of the remote end, smoothed.
    pub round_trip: Option<Duration>,
    /// The time since the last octets received.
    pub silent_for: Duration,
    /// The limit of the throughput.
    pub blocked_by: LinkBlocker,
    /// Traffic received.
    pub inbound: Traffic,
    /// Traffic sent.
    pub outbound: Traffic,
    /// The start of the phase.
    pub since: Timestamp,
    /// If the link is not bound: the end of the last bound phase, however often it was dialed since.
    pub down_since: Option<Timestamp>,
    /// The last error.
    pub last_error: Option<String>,
    /// The time of the next dial.
    pub back_off_until: Option<Timestamp>,
}

/// The records of all links.
#[derive(Debug, Default)]
pub(crate) struct LinkRecords {
    all: Mutex<Vec<Arc<LinkRecord>>>,
}

/// A record while it is among [`LinkRecords`]: until it is dropped.
#[derive(Debug)]
pub(crate) struct ListedRecord {
    records: Arc<LinkRecords>,
    record: Arc<LinkRecord>,
}

impl Drop for ListedRecord {
    fn drop(&mut self) {
        self.records.all.lock().retain(|other| !Arc::ptr_eq(other, &self.record));
    }
}

impl LinkRecords {
    pub(crate) fn list(self: &Arc<Self>, record: Arc<LinkRecord>) -> ListedRecord {
        self.all.lock().push(record.clone());
        ListedRecord { records: self.clone(), record }
    }

    /// Ends the wait of all links that are dialed to this peer. Returns whether there are any.
    pub(crate) fn dial_now(&self, name: &str) -> bool {
        let all = self.all.lock();
        let dialed = all.iter().filter(|record| record.role == LinkRole::Client && record.name == name);
        dialed.map(|record| record.end_wait()).count() > 0
    }

    pub(crate) fn snapshot(&self) -> Vec<LinkState> {
        let all = self.all.lock().clone();
        all.iter().map(|record| record.snapshot()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_since_is_the_end_of_the_last_bound_phase() {
        let record = LinkRecord::new(LinkRole::Client, PeerId(1), "north", 0, false);
        let created_at = record.snapshot().down_since;
        record.set_phase(LinkPhase::Binding);
        assert_eq!(record.snapshot().down_since, created_at);
        record.set_phase(LinkPhase::Bound);
        assert_eq!(record.snapshot().down_since, None);
        record.set_phase(LinkPhase::BackingOff);
        let down = record.snapshot().down_since;
        assert!(down.is_some() && down >= created_at);
        let mark = Timestamp(7);
        record.state.lock().down_since = mark;
        for phase in [LinkPhase::Connecting, LinkPhase::BackingOff, LinkPhase::Connecting, LinkPhase::Binding]
        {
            record.set_phase(phase);
            assert_eq!(record.snapshot().down_since, Some(mark), "{phase:?}");
        }
    }
}
