use model::{LinkId, PeerId, Timestamp};
use parking_lot::Mutex;
use smpp::{BindMode, CommandId, Request, Status};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// On which side of a link we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkRole {
    /// An ESME of an account has bound to us.
    Server,
    /// We have bound, or try to, to a peer.
    Client,
}

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting until the peer may be dialled again.
    BackingOff,
    /// TCP and TLS are being set up.
    Connecting,
    /// The bind is on its way.
    Binding,
    /// Bound.
    Bound,
    /// Taking leave.
    Leaving,
}

impl Phase {
    /// The word used in JSON and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BackingOff => "backing-off",
            Self::Connecting => "connecting",
            Self::Binding => "binding",
            Self::Bound => "bound",
            Self::Leaving => "leaving",
        }
    }
}

/// What keeps a link from going faster, as the link itself sees it. Rate limits towards a peer are the engine's, and
/// shown there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkBrake {
    /// Nothing: it does what there is to do.
    None = 0,
    /// The peer has not yet answered as many messages as its window allows.
    PeerWindow = 1,
    /// The peer answered "throttled" or "queue full" within the last second.
    PeerThrottles = 2,
    /// The peer does not read what we write.
    SlowReader = 3,
    /// Server: as many submissions wait for the engine and the disk as the account's window allows.
    OurWindow = 4,
    /// Server: the account ran into its own rate within the last second.
    AccountRate = 5,
    /// There is no bound connection.
    NotBound = 6,
}

impl LinkBrake {
    fn from_octet(octet: u8) -> Self {
        [
            Self::None,
            Self::PeerWindow,
            Self::PeerThrottles,
            Self::SlowReader,
            Self::OurWindow,
            Self::AccountRate,
            Self::NotBound,
        ]
        .into_iter()
        .find(|brake| *brake as u8 == octet)
        .unwrap_or(Self::None)
    }

    /// The word used in JSON and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PeerWindow => "peer-window",
            Self::PeerThrottles => "peer-throttles",
            Self::SlowReader => "slow-reader",
            Self::OurWindow => "our-window",
            Self::AccountRate => "account-rate",
            Self::NotBound => "not-bound",
        }
    }
}

/// The kinds of PDU that are counted one by one; enquire_link and unbind are the session's own affair.
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

fn kind(command: CommandId) -> usize {
    match command.request() {
        CommandId::SUBMIT_SM => 0,
        CommandId::DELIVER_SM => 1,
        CommandId::DATA_SM => 2,
        CommandId::SUBMIT_MULTI => 3,
        CommandId::QUERY_SM => 4,
        CommandId::CANCEL_SM => 5,
        CommandId::REPLACE_SM => 6,
        _ => 7,
    }
}

/// Counts of one direction.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: [AtomicU64; KINDS.len()],
    answers: AtomicU64,
    errors: Mutex<BTreeMap<u32, u64>>,
}

impl Counts {
    pub(crate) fn request(&self, request: &Request) {
        self.command(request.command());
    }

    pub(crate) fn command(&self, command: CommandId) {
        if let Some(count) = self.requests.get(kind(command)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Counts a request of another protocol by its name.
    pub(crate) fn named(&self, name: &str) {
        let kind = KINDS.iter().position(|kind| *kind == name).unwrap_or(7);
        if let Some(count) = self.requests.get(kind) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn answer(&self, status: Status) {
        self.answered(status.0);
    }

    /// Counts an answer by its code; 0 is a yes in every protocol.
    pub(crate) fn answered(&self, code: u32) {
        self.answers.fetch_add(1, Relaxed);
        if code != 0 {
            let mut errors = self.errors.lock();
            // A peer that makes statuses up must not make us keep them all.
            let key = if errors.len() >= 64 && !errors.contains_key(&code) { u32::MAX } else { code };
            *errors.entry(key).or_default() += 1;
        }
    }

    fn show(&self) -> Traffic {
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

/// What went one way over a link.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Requests by kind of PDU; kinds that never came are left out.
    pub requests: BTreeMap<&'static str, u64>,
    /// Answers in all.
    pub answers: u64,
    /// Answers that were refusals, by status; `u32::MAX` stands for all beyond the first 64 statuses.
    pub errors: BTreeMap<u32, u64>,
}

#[derive(Debug)]
struct Changing {
    link: Option<LinkId>,
    phase: Phase,
    remote: Option<SocketAddr>,
    bind: Option<BindMode>,
    version: Option<u8>,
    window: u32,
    since: Timestamp,
    /// When it was last bound; its beginning, if it never was.
    down_since: Timestamp,
    last_error: Option<String>,
    back_off_until: Option<Timestamp>,
}

/// The record of one link that the admin looks at. A client's outlives its connections.
#[derive(Debug)]
pub(crate) struct LinkRecord {
    pub(crate) role: LinkRole,
    pub(crate) peer: PeerId,
    pub(crate) name: String,
    pub(crate) number: usize,
    pub(crate) tls: bool,
    pub(crate) inbound: Counts,
    pub(crate) outbound: Counts,
    pub(crate) in_flight: AtomicU32,
    pub(crate) unanswered_in: AtomicU32,
    brake: AtomicU8,
    /// Microseconds, smoothed; 0 while there is none.
    round_trip: AtomicU64,
    /// Microseconds from `born` to the last octets that came.
    heard: AtomicU64,
    born: Instant,
    /// Ends the wait before the next dial.
    pub(crate) dial_now: Notify,
    changing: Mutex<Changing>,
}

impl LinkRecord {
    pub(crate) fn new(role: LinkRole, peer: PeerId, name: &str, number: usize, tls: bool) -> Arc<Self> {
        Arc::new(Self {
            role,
            peer,
            name: name.to_owned(),
            number,
            tls,
            inbound: Counts::default(),
            outbound: Counts::default(),
            in_flight: AtomicU32::new(0),
            unanswered_in: AtomicU32::new(0),
            brake: AtomicU8::new(LinkBrake::NotBound as u8),
            round_trip: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            born: Instant::now(),
            dial_now: Notify::new(),
            changing: Mutex::new(Changing {
                link: None,
                phase: Phase::Connecting,
                remote: None,
                bind: None,
                version: None,
                window: 0,
                since: crate::clock::wall(),
                down_since: crate::clock::wall(),
                last_error: None,
                back_off_until: None,
            }),
        })
    }

    pub(crate) fn phase(&self, phase: Phase) {
        let mut changing = self.changing.lock();
        if changing.phase != phase {
            let now = crate::clock::wall();
            if changing.phase == Phase::Bound {
                changing.down_since = now;
            }
            changing.phase = phase;
            changing.since = now;
        }
        if phase != Phase::BackingOff {
            changing.back_off_until = None;
        }
        if !matches!(phase, Phase::Bound | Phase::Leaving) {
            changing.link = None;
            changing.bind = None;
            changing.version = None;
            changing.window = 0;
            self.in_flight.store(0, Relaxed);
            self.unanswered_in.store(0, Relaxed);
            self.brake(LinkBrake::NotBound);
        }
    }

    pub(crate) fn back_off(&self, wait: Duration) {
        self.phase(Phase::BackingOff);
        self.changing.lock().back_off_until = Some(crate::clock::wall() + wait);
    }

    /// Ends the wait before the next dial, if there is one.
    fn end_wait(&self) {
        if self.changing.lock().phase == Phase::BackingOff {
            self.dial_now.notify_one();
        }
    }

    pub(crate) fn remote(&self, remote: SocketAddr) {
        self.changing.lock().remote = Some(remote);
    }

    pub(crate) fn bound(&self, link: LinkId, mode: BindMode, version: u8, window: usize) {
        self.phase(Phase::Bound);
        let mut changing = self.changing.lock();
        changing.link = Some(link);
        changing.bind = Some(mode);
        changing.version = Some(version);
        changing.window = u32::try_from(window).unwrap_or(u32::MAX);
        self.brake(LinkBrake::None);
    }

    pub(crate) fn error(&self, error: impl Into<String>) {
        self.changing.lock().last_error = Some(error.into());
    }

    pub(crate) fn brake(&self, brake: LinkBrake) {
        self.brake.store(brake as u8, Relaxed);
    }

    pub(crate) fn round_trip(&self, taken: Duration) {
        let new = u64::try_from(taken.as_micros()).unwrap_or(u64::MAX).max(1);
        let old = self.round_trip.load(Relaxed);
        // The usual smoothing (RFC 6298 §2): an eighth of the new.
        self.round_trip.store(if old == 0 { new } else { old - old / 8 + new / 8 }, Relaxed);
    }

    pub(crate) fn heard(&self, now: Instant) {
        let micros = now.saturating_duration_since(self.born).as_micros();
        self.heard.store(u64::try_from(micros).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn silent_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.born)
            .saturating_sub(Duration::from_micros(self.heard.load(Relaxed)))
    }

    pub(crate) fn show(&self) -> LinkState {
        let changing = self.changing.lock();
        let round_trip = self.round_trip.load(Relaxed);
        LinkState {
            link: changing.link,
            role: self.role,
            peer: self.peer,
            name: self.name.clone(),
            number: self.number,
            tls: self.tls,
            phase: changing.phase,
            remote: changing.remote,
            bind: changing.bind,
            version: changing.version,
            window: changing.window,
            in_flight: self.in_flight.load(Relaxed),
            unanswered_in: self.unanswered_in.load(Relaxed),
            round_trip: (round_trip > 0).then(|| Duration::from_micros(round_trip)),
            silent_for: self.silent_for(Instant::now()),
            brake: LinkBrake::from_octet(self.brake.load(Relaxed)),
            inbound: self.inbound.show(),
            outbound: self.outbound.show(),
            since: changing.since,
            down_since: (changing.phase != Phase::Bound).then_some(changing.down_since),
            last_error: changing.last_error.clone(),
            back_off_until: changing.back_off_until,
        }
    }
}

/// What the admin sees of one link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkState {
    /// Its id, while it is bound.
    pub link: Option<LinkId>,
    /// Which side we are.
    pub role: LinkRole,
    /// The account's or the peer's number.
    pub peer: PeerId,
    /// The account's or the peer's name.
    pub name: String,
    /// Which of the peer's links, from 0; 0 for accounts.
    pub number: usize,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Where it stands.
    pub phase: Phase,
    /// The other end's address.
    pub remote: Option<SocketAddr>,
    /// What it is bound as.
    pub bind: Option<BindMode>,
    /// The interface version that the other end showed.
    pub version: Option<u8>,
    /// How many messages of ours may be unanswered.
    pub window: u32,
    /// How many are.
    pub in_flight: u32,
    /// How many requests of the other end's wait for our answer.
    pub unanswered_in: u32,
    /// How long the other end takes to answer, smoothed.
    pub round_trip: Option<Duration>,
    /// Since when nothing was heard.
    pub silent_for: Duration,
    /// What limits it.
    pub brake: LinkBrake,
    /// What came in.
    pub inbound: Traffic,
    /// What went out.
    pub outbound: Traffic,
    /// Since when it is in its phase.
    pub since: Timestamp,
    /// Where it is not bound: since when, however often it was dialled since.
    pub down_since: Option<Timestamp>,
    /// The last thing that went wrong.
    pub last_error: Option<String>,
    /// When it will be dialled again.
    pub back_off_until: Option<Timestamp>,
}

/// All records that somebody may want to see.
#[derive(Debug, Default)]
pub(crate) struct Records {
    all: Mutex<Vec<Arc<LinkRecord>>>,
}

impl Records {
    pub(crate) fn add(&self, record: Arc<LinkRecord>) {
        self.all.lock().push(record);
    }

    pub(crate) fn remove(&self, record: &Arc<LinkRecord>) {
        self.all.lock().retain(|other| !Arc::ptr_eq(other, record));
    }

    /// Has the links that we dial to this peer dialled at once; says whether there are any.
    pub(crate) fn dial_now(&self, name: &str) -> bool {
        let all = self.all.lock();
        let dialled = all.iter().filter(|record| record.role == LinkRole::Client && record.name == name);
        dialled.map(|record| record.end_wait()).count() > 0
    }

    pub(crate) fn show(&self) -> Vec<LinkState> {
        let all = self.all.lock().clone();
        all.iter().map(|record| record.show()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_down_since_it_was_up_however_often_it_is_dialled() {
        let record = LinkRecord::new(LinkRole::Client, PeerId(1), "north", 0, false);
        let born = record.show().down_since;
        record.phase(Phase::Binding);
        assert_eq!(record.show().down_since, born);
        record.phase(Phase::Bound);
        assert_eq!(record.show().down_since, None);
        record.phase(Phase::BackingOff);
        let down = record.show().down_since;
        assert!(down.is_some() && down >= born);
        let mark = Timestamp(7);
        record.changing.lock().down_since = mark;
        for phase in [Phase::Connecting, Phase::BackingOff, Phase::Connecting, Phase::Binding] {
            record.phase(phase);
            assert_eq!(record.show().down_since, Some(mark), "{phase:?}");
        }
    }
}
