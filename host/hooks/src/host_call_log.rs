//! The log of host calls: records the host's answers during the evaluation of a chain, so that a replay sees the same
//! answers.
//!
//! Record format, per answer: kind (1 octet), key length (2), key, answer length (2), answer; lengths are
//! little-endian. A record that would exceed [`MAX_RECORD_OCTETS`] ends with kind 255: later answers are missing. The
//! key of a counter starts with the name of its plugin; stable answers are the same for all plugins of a chain.

use capabilities::FetchRequest;

/// Maximum size of the record of one question, over all plugins of the chain.
const MAX_RECORD_OCTETS: usize = 4096;

/// The kind of a host call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum HostCallKind {
    Clock = 1,
    Peer = 2,
    Counter = 3,
    Table = 4,
    Prefix = 5,
    Random = 6,
    Pool = 7,
    Attribute = 8,
    Detail = 9,
    Quality = 10,
    Http = 11,
    Dns = 12,
    /// Never recorded: identities of subscribers.
    Hlr = 13,
    /// Never recorded: values are the plugin's own, and may be long.
    Value = 14,
}

impl HostCallKind {
    const ALL: [Self; 14] = [
        Self::Clock,
        Self::Peer,
        Self::Counter,
        Self::Table,
        Self::Prefix,
        Self::Random,
        Self::Pool,
        Self::Attribute,
        Self::Detail,
        Self::Quality,
        Self::Http,
        Self::Dns,
        Self::Hlr,
        Self::Value,
    ];

    /// The kind of an entry.
    fn named(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }

    /// Whether the same call has the same answer throughout one question.
    fn is_stable(self) -> bool {
        !matches!(self, Self::Counter | Self::Random | Self::Http | Self::Dns | Self::Hlr | Self::Value)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Clock => "the clock",
            Self::Peer => "a peer's state",
            Self::Counter => "a counter",
            Self::Table | Self::Prefix => "an appliance table",
            Self::Random => "a random number",
            Self::Pool => "a number pool's state",
            Self::Attribute => "an account's attribute",
            Self::Detail => "a detail of the message",
            Self::Quality => "figures of a peer",
            Self::Http => "an HTTP response",
            Self::Dns => "an answer of the domain name system",
            Self::Hlr => "an answer of a home location register",
            Self::Value => "a value of the plugin",
        }
    }
}

const TRUNCATED: u8 = 255;

/// The treatment of the host's answers to one question. The plugins of the chain share the log, one after the other.
#[derive(Debug, Default)]
pub(crate) enum HostCallLog {
    /// The answers are not recorded.
    #[default]
    Off,
    /// The host answers, but changes nothing, as in `explain`.
    Preview,
    /// The plugin is on trial: its counters are discarded.
    Discard,
    /// The answers are recorded.
    Recording {
        record: Vec<u8>,
        /// The record reached its maximum size.
        truncated: bool,
    },
    /// The answers come from a record.
    Replaying(ReplayLog),
}

/// A record during its replay.
#[derive(Debug)]
pub(crate) struct ReplayLog {
    answers: Vec<LoggedAnswer>,
    /// The first kind of call that the record does not answer.
    missing: Option<&'static str>,
    /// The record is from another plugin, at the same moment. Calls that it does not answer go to the host, and count.
    for_shadow: bool,
    /// The answers given so far, in the format of a record, if the replay is traced.
    given: Option<Vec<u8>>,
    /// The HTTP requests that the plugin of a peer made; none of them was sent.
    requests: Vec<FetchRequest>,
}

#[derive(Debug)]
struct LoggedAnswer {
    kind: u8,
    key: Vec<u8>,
    /// `None` once it was used and cannot be used again.
    answer: Option<Vec<u8>>,
}

/// Appends an entry to a record. False if key or answer are too long for one.
fn push_entry(record: &mut Vec<u8>, kind: HostCallKind, key: &[u8], answer: &[u8]) -> bool {
    let (Ok(key_length), Ok(answer_length)) = (u16::try_from(key.len()), u16::try_from(answer.len())) else {
        return false;
    };
    record.push(kind as u8);
    for (length, chunk) in [(key_length, key), (answer_length, answer)] {
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(chunk);
    }
    true
}

fn join_key(key: &[&[u8]]) -> Vec<u8> {
    key.join(&0)
}

fn read_chunk<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<2>()?;
    let (chunk, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *rest = after;
    Some(chunk)
}

/// The kinds, keys and answers of a record, up to the first malformed entry.
fn entries(record: &[u8]) -> impl Iterator<Item = (u8, &[u8], &[u8])> {
    let mut rest = record;
    std::iter::from_fn(move || {
        let (kind, after) = rest.split_first()?;
        rest = after;
        if *kind == TRUNCATED {
            return None;
        }
        Some((*kind, read_chunk(&mut rest)?, read_chunk(&mut rest)?))
    })
}

impl HostCallLog {
    pub(crate) fn recording() -> Self {
        Self::Recording { record: Vec::new(), truncated: false }
    }

    /// Replays a record.
    pub(crate) fn replaying(record: &[u8]) -> Self {
        Self::from_record(record, false)
    }

    /// Replays a record, and keeps the given answers.
    pub(crate) fn replaying_traced(record: &[u8]) -> Self {
        match Self::from_record(record, false) {
            Self::Replaying(replay) => Self::Replaying(ReplayLog { given: Some(Vec::new()), ..replay }),
            other => other,
        }
    }

    /// The log for a shadow candidate that gets the same question as the live chain, whose record this is: the candidate
    /// sees the same time and the same peers, but has its own counters.
    pub(crate) fn for_shadow(record: &[u8]) -> Self {
        Self::from_record(record, true)
    }

    fn from_record(record: &[u8], for_shadow: bool) -> Self {
        let recorded = |(kind, key, answer): (u8, &[u8], &[u8])| LoggedAnswer {
            kind,
            key: key.to_vec(),
            answer: Some(answer.to_vec()),
        };
        Self::Replaying(ReplayLog {
            answers: entries(record).map(recorded).collect(),
            missing: None,
            for_shadow,
            given: None,
            requests: Vec::new(),
        })
    }

    /// The log in its state before the first answer, to ask another plugin the same question. Not for a replay.
    pub(crate) fn restarted(&self) -> Self {
        match self {
            Self::Off | Self::Discard | Self::Replaying(_) => Self::Off,
            Self::Preview => Self::Preview,
            Self::Recording { .. } => Self::recording(),
        }
    }

    /// The recorded answer, if any.
    pub(crate) fn recall(&mut self, kind: HostCallKind, key: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Self::Off | Self::Preview | Self::Discard => None,
            // Stable answers stay the same for one question even if the host's data changes: otherwise a replay could not
            // distinguish them.
            Self::Recording { record, .. } if kind.is_stable() => {
                let wanted_key = join_key(key);
                let found =
                    entries(record).find(|(recorded, key, _)| *recorded == kind as u8 && *key == wanted_key);
                found.map(|(_, _, answer)| answer.to_vec())
            }
            Self::Recording { .. } => None,
            Self::Replaying(replay) if replay.for_shadow && !kind.is_stable() => None,
            Self::Replaying(replay) => {
                let wanted_key = join_key(key);
                let matches_call = |one: &&mut LoggedAnswer| {
                    one.kind == kind as u8 && one.key == wanted_key && one.answer.is_some()
                };
                let found = match replay.answers.iter_mut().find(matches_call) {
                    Some(one) if kind.is_stable() => one.answer.clone(),
                    Some(one) => one.answer.take(),
                    None => {
                        if !replay.for_shadow {
                            replay.missing.get_or_insert(kind.name());
                        }
                        None
                    }
                };
                if let (Some(given), Some(answer)) = (&mut replay.given, &found)
                    && given.len() < MAX_RECORD_OCTETS
                {
                    push_entry(given, kind, &wanted_key, answer);
                }
                found
            }
        }
    }

    /// Whether counters may be changed.
    pub(crate) fn counting(&self) -> Counting {
        match self {
            Self::Off | Self::Recording { .. } | Self::Replaying(ReplayLog { for_shadow: true, .. }) => {
                Counting::Yes
            }
            Self::Preview => Counting::Preview,
            Self::Discard | Self::Replaying(_) => Counting::No,
        }
    }

    /// Whether this is a replay of past traffic. Changing data that is not in the record is then unavailable.
    pub(crate) fn is_replay(&self) -> bool {
        matches!(self, Self::Replaying(replay) if !replay.for_shadow)
    }

    /// Appends an answer if the log is recording.
    pub(crate) fn append(&mut self, kind: HostCallKind, key: &[&[u8]], answer: &[u8]) {
        let Self::Recording { record, truncated } = self else { return };
        if *truncated {
            return;
        }
        let key = join_key(key);
        let fits = record.len() + 5 + key.len() + answer.len() <= MAX_RECORD_OCTETS;
        if !fits || !push_entry(record, kind, &key, answer) {
            *truncated = true;
        }
    }

    /// Whether answers are recorded.
    pub(crate) fn is_recording(&self) -> bool {
        matches!(self, Self::Recording { .. })
    }

    /// Ends a recording: the call has seen data that must not be stored.
    pub(crate) fn stop_recording(&mut self) {
        if self.is_recording() {
            *self = Self::Off;
        }
    }

    /// Keeps a request of a replay, so that it can be compared.
    pub(crate) fn add_request(&mut self, request: &FetchRequest) {
        if let Self::Replaying(replay) = self {
            replay.requests.push(request.clone());
        }
    }

    /// The requests of a replay.
    pub(crate) fn take_requests(&mut self) -> Vec<FetchRequest> {
        match self {
            Self::Replaying(replay) => std::mem::take(&mut replay.requests),
            _ => Vec::new(),
        }
    }

    /// The record; `None` if no host call was made.
    pub(crate) fn into_record(self) -> Option<Box<[u8]>> {
        let Self::Recording { mut record, truncated } = self else { return None };
        if truncated {
            record.push(TRUNCATED);
        }
        (!record.is_empty()).then(|| record.into_boxed_slice())
    }

    /// The record so far.
    pub(crate) fn partial_record(&self) -> Option<Box<[u8]>> {
        match self {
            Self::Recording { record, .. } if !record.is_empty() => Some(record.as_slice().into()),
            _ => None,
        }
    }

    /// The calls so far, if the log is recording or a traced replay: kinds, keys and answers.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (HostCallKind, &[u8], &[u8])> {
        let record = match self {
            Self::Recording { record, .. } => record.as_slice(),
            Self::Replaying(replay) => replay.given.as_deref().unwrap_or_default(),
            _ => &[],
        };
        entries(record).filter_map(|(kind, key, answer)| Some((HostCallKind::named(kind)?, key, answer)))
    }

    /// The first kind of call that the record did not answer.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Replaying(replay) => replay.missing,
            _ => None,
        }
    }
}

/// The treatment of counter increments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// The increment is counted.
    Yes,
    /// The plugin sees the sum that the counter would have.
    Preview,
    /// There are no counters: the counts of current traffic do not fit archived messages.
    No,
}

/// Decodes a recorded number.
pub(crate) fn decode_u64(octets: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(octets.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_record(record: Option<Box<[u8]>>) -> HostCallLog {
        HostCallLog::replaying(&record.unwrap_or_default())
    }

    #[test]
    fn recorded_answers_are_replayed() {
        let mut log = HostCallLog::recording();
        log.append(HostCallKind::Clock, &[], &7_u64.to_le_bytes());
        log.append(HostCallKind::Counter, &[b"velocity", b"acme"], &1_u64.to_le_bytes());
        log.append(HostCallKind::Counter, &[b"velocity", b"acme"], &2_u64.to_le_bytes());
        log.append(HostCallKind::Peer, &[b"north"], b"");
        let mut again = from_record(log.into_record());
        let mut counter =
            || again.recall(HostCallKind::Counter, &[b"velocity", b"acme"]).and_then(|it| decode_u64(&it));
        assert_eq!((counter(), counter(), counter()), (Some(1), Some(2), None));
        assert_eq!(again.missing(), Some("a counter"));
        for _ in 0..2 {
            assert_eq!(again.recall(HostCallKind::Clock, &[]).as_deref().and_then(decode_u64), Some(7));
            assert_eq!(again.recall(HostCallKind::Peer, &[b"north"]).as_deref(), Some(&b""[..]));
        }
        assert_eq!(again.recall(HostCallKind::Peer, &[b"south"]), None);
    }

    #[test]
    fn a_traced_replay_knows_which_answers_it_gave() {
        let mut log = HostCallLog::recording();
        log.append(HostCallKind::Peer, &[b"north"], b"1");
        log.append(HostCallKind::Peer, &[b"south"], b"2");
        let mut traced = HostCallLog::replaying_traced(&log.into_record().unwrap());
        assert_eq!(traced.recall(HostCallKind::Peer, &[b"south"]).as_deref(), Some(&b"2"[..]));
        assert_eq!(traced.recall(HostCallKind::Peer, &[b"west"]), None);
        let given: Vec<_> = traced.calls().collect();
        assert_eq!(given, [(HostCallKind::Peer, &b"south"[..], &b"2"[..])]);
        assert_eq!(traced.missing(), Some("a peer's state"));
    }

    #[test]
    fn a_recorded_stable_answer_is_reused() {
        let mut log = HostCallLog::recording();
        // An answer inside another entry's key is not an answer.
        let whole = [&[HostCallKind::Peer as u8, 5, 0][..], b"north", &[1, 0, 9]].concat();
        log.append(HostCallKind::Counter, &[&whole], b"x");
        assert_eq!(log.recall(HostCallKind::Peer, &[b"north"]), None);
        log.append(HostCallKind::Peer, &[b"north"], b"1");
        assert_eq!(log.recall(HostCallKind::Peer, &[b"north"]).as_deref(), Some(&b"1"[..]));
        assert_eq!(log.recall(HostCallKind::Counter, &[&whole]), None, "a counter moves");
    }

    #[test]
    fn a_full_record_is_marked_as_truncated() {
        let mut log = HostCallLog::recording();
        for _ in 0..1_000 {
            // The answer ends in octets that look like the end mark.
            log.append(HostCallKind::Counter, &[b"name", b"key"], &u64::MAX.to_le_bytes());
        }
        // It would fit, but nothing may follow a truncated record.
        log.append(HostCallKind::Clock, &[], b"");
        let record = log.into_record().unwrap();
        assert!(record.len() <= MAX_RECORD_OCTETS + 1, "{}", record.len());
        let mut again = from_record(Some(record));
        let mut recorded = 0;
        while again.recall(HostCallKind::Counter, &[b"name", b"key"]).and_then(|it| decode_u64(&it))
            == Some(u64::MAX)
        {
            recorded += 1;
        }
        assert_eq!(recorded, MAX_RECORD_OCTETS / (5 + 8 + 8));
        assert!(again.missing().is_some());
        assert_eq!(again.recall(HostCallKind::Clock, &[]), None);
    }

    #[test]
    fn a_shadow_shares_the_time_and_not_the_counters() {
        let mut log = HostCallLog::recording();
        log.append(HostCallKind::Clock, &[], &7_u64.to_le_bytes());
        log.append(HostCallKind::Counter, &[b"a"], &1_u64.to_le_bytes());
        let mut for_shadow = HostCallLog::for_shadow(&log.into_record().unwrap());
        assert_eq!(for_shadow.recall(HostCallKind::Clock, &[]).as_deref().and_then(decode_u64), Some(7));
        assert_eq!(for_shadow.recall(HostCallKind::Counter, &[b"a"]), None);
        assert_eq!(for_shadow.recall(HostCallKind::Peer, &[b"north"]), None);
        assert_eq!((for_shadow.missing(), for_shadow.counting()), (None, Counting::Yes));
    }

    #[test]
    fn a_malformed_record_has_no_entries() {
        assert_eq!(HostCallLog::recording().into_record(), None);
        assert_eq!(HostCallLog::Off.into_record(), None);
        for rubbish in [&b"\x01"[..], b"\x01\xff\xff", b"\x01\x00\x00\x09\x00x", b"\xff"] {
            let mut log = HostCallLog::replaying(rubbish);
            assert_eq!(log.recall(HostCallKind::Clock, &[]), None);
        }
    }
}
