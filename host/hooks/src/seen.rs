//! What the host answered while a chain of plugins decided: written down, so that a replay sees the same.
//!
//! On record, per answer: 1 kind, 2 length of the key, key, 2 length of the answer, answer; lengths little-endian. A record
//! that would be larger than [`LIMIT`] ends with kind 255: from there on answers are missing. A counter's key begins with the
//! plugin whose it is; what stands still is the same for all plugins of a chain.

/// Octets that the answers to one question may take, those to all plugins of the chain together.
const LIMIT: usize = 4096;

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Asked {
    Clock = 1,
    Peer = 2,
    Counter = 3,
    Table = 4,
    Prefix = 5,
    Random = 6,
    Pool = 7,
}

impl Asked {
    /// Whether the same question has the same answer throughout a call.
    fn stands_still(self) -> bool {
        !matches!(self, Self::Counter | Self::Random)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Clock => "the clock",
            Self::Peer => "a peer's state",
            Self::Counter => "a counter",
            Self::Table | Self::Prefix => "a table of the appliance's",
            Self::Random => "a random number",
            Self::Pool => "a number pool's state",
        }
    }
}

const CUT: u8 = 255;

/// What is done with the host's answers to one question: by all plugins of the chain that is asked it, one after the other.
#[derive(Debug, Default)]
pub(crate) enum Seen {
    /// Nothing.
    #[default]
    Off,
    /// They are given, but nothing is changed: somebody only wants to know.
    Looking,
    /// The plugin is only tried out: whatever it counts is counted nowhere.
    Nowhere,
    /// They are written down.
    Recording {
        record: Vec<u8>,
        /// There was more.
        cut: bool,
    },
    /// They come from a record.
    Replaying(Replay),
}

/// A record, and what is left of it.
#[derive(Debug)]
pub(crate) struct Replay {
    answers: Vec<Given>,
    /// What was asked and is not on record.
    missing: Option<&'static str>,
    /// It is another plugin's record of this very moment: what is not in it is asked, and counted, all the same.
    beside: bool,
}

#[derive(Debug)]
struct Given {
    kind: u8,
    key: Vec<u8>,
    /// `None` once it was given and may not be given again.
    answer: Option<Vec<u8>>,
}

fn joined(key: &[&[u8]]) -> Vec<u8> {
    key.join(&0)
}

fn piece<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<2>()?;
    let (piece, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *rest = after;
    Some(piece)
}

/// Kinds, keys and answers of a record, as far as it is one.
fn entries(record: &[u8]) -> impl Iterator<Item = (u8, &[u8], &[u8])> {
    let mut rest = record;
    std::iter::from_fn(move || {
        let (kind, after) = rest.split_first()?;
        rest = after;
        if *kind == CUT {
            return None;
        }
        Some((*kind, piece(&mut rest)?, piece(&mut rest)?))
    })
}

impl Seen {
    pub(crate) fn recording() -> Self {
        Self::Recording { record: Vec::new(), cut: false }
    }

    /// A replay of a record.
    pub(crate) fn replaying(record: &[u8]) -> Self {
        Self::replay(record, false)
    }

    /// For a candidate that is asked what another was asked just now, of which this is the record: it sees the same time
    /// and the same peers, and counts for itself.
    pub(crate) fn beside(record: &[u8]) -> Self {
        Self::replay(record, true)
    }

    fn replay(record: &[u8], beside: bool) -> Self {
        let given = |(kind, key, answer): (u8, &[u8], &[u8])| Given {
            kind,
            key: key.to_vec(),
            answer: Some(answer.to_vec()),
        };
        Self::Replaying(Replay { answers: entries(record).map(given).collect(), missing: None, beside })
    }

    /// As it was before the first answer, for a question that is put to somebody else. Not for a replay.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Off | Self::Nowhere | Self::Replaying(_) => Self::Off,
            Self::Looking => Self::Looking,
            Self::Recording { .. } => Self::recording(),
        }
    }

    /// The answer on record; `None` when there is no record, or nothing in it.
    pub(crate) fn recall(&mut self, asked: Asked, key: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Self::Off | Self::Looking | Self::Nowhere => None,
            // What stands still does so although the world goes on: otherwise a replay could not tell the answers apart.
            Self::Recording { record, .. } if asked.stands_still() => {
                let wanted = joined(key);
                let found = entries(record).find(|(kind, key, _)| *kind == asked as u8 && *key == wanted);
                found.map(|(_, _, answer)| answer.to_vec())
            }
            Self::Recording { .. } => None,
            Self::Replaying(replay) if replay.beside && !asked.stands_still() => None,
            Self::Replaying(replay) => {
                let wanted = joined(key);
                let fits =
                    |one: &&mut Given| one.kind == asked as u8 && one.key == wanted && one.answer.is_some();
                match replay.answers.iter_mut().find(fits) {
                    Some(one) if asked.stands_still() => one.answer.clone(),
                    Some(one) => one.answer.take(),
                    None => {
                        if !replay.beside {
                            replay.missing.get_or_insert(asked.name());
                        }
                        None
                    }
                }
            }
        }
    }

    /// Whether counters may be added to.
    pub(crate) fn counts(&self) -> Counting {
        match self {
            Self::Off | Self::Recording { .. } | Self::Replaying(Replay { beside: true, .. }) => {
                Counting::Yes
            }
            Self::Looking => Counting::AsIf,
            Self::Nowhere | Self::Replaying(_) => Counting::No,
        }
    }

    /// Whether there is a past to be repeated: what moves and is not on record is not to be had then.
    pub(crate) fn repeats(&self) -> bool {
        matches!(self, Self::Replaying(replay) if !replay.beside)
    }

    /// Writes an answer down, if answers are.
    pub(crate) fn note(&mut self, asked: Asked, key: &[&[u8]], answer: &[u8]) {
        let Self::Recording { record, cut } = self else { return };
        if *cut {
            return;
        }
        let key = joined(key);
        let (Ok(of_key), Ok(of_answer)) = (u16::try_from(key.len()), u16::try_from(answer.len())) else {
            *cut = true;
            return;
        };
        if record.len() + 5 + key.len() + answer.len() > LIMIT {
            *cut = true;
            return;
        }
        record.push(asked as u8);
        for (length, piece) in [(of_key, &key[..]), (of_answer, answer)] {
            record.extend_from_slice(&length.to_le_bytes());
            record.extend_from_slice(piece);
        }
    }

    /// What was written down; nothing when nothing was asked.
    pub(crate) fn record(self) -> Option<Box<[u8]>> {
        let Self::Recording { mut record, cut } = self else { return None };
        if cut {
            record.push(CUT);
        }
        (!record.is_empty()).then(|| record.into_boxed_slice())
    }

    /// What is written down so far.
    pub(crate) fn so_far(&self) -> Option<Box<[u8]>> {
        match self {
            Self::Recording { record, .. } if !record.is_empty() => Some(record.as_slice().into()),
            _ => None,
        }
    }

    /// What was asked that is not on record.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Replaying(replay) => replay.missing,
            _ => None,
        }
    }
}

/// What becomes of what a plugin counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// It is counted.
    Yes,
    /// It is told what would be in the counter.
    AsIf,
    /// There are no counters: today's traffic is not the archive's.
    No,
}

/// A number that was written down.
pub(crate) fn number(octets: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(octets.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(record: Option<Box<[u8]>>) -> Seen {
        Seen::replaying(&record.unwrap_or_default())
    }

    #[test]
    fn what_was_seen_is_seen_again() {
        let mut seen = Seen::recording();
        seen.note(Asked::Clock, &[], &7_u64.to_le_bytes());
        seen.note(Asked::Counter, &[b"velocity", b"acme"], &1_u64.to_le_bytes());
        seen.note(Asked::Counter, &[b"velocity", b"acme"], &2_u64.to_le_bytes());
        seen.note(Asked::Peer, &[b"north"], b"");
        let mut again = replay(seen.record());
        let mut counter = || again.recall(Asked::Counter, &[b"velocity", b"acme"]).and_then(|it| number(&it));
        assert_eq!((counter(), counter(), counter()), (Some(1), Some(2), None));
        assert_eq!(again.missing(), Some("a counter"));
        for _ in 0..2 {
            assert_eq!(again.recall(Asked::Clock, &[]).as_deref().and_then(number), Some(7));
            assert_eq!(again.recall(Asked::Peer, &[b"north"]).as_deref(), Some(&b""[..]));
        }
        assert_eq!(again.recall(Asked::Peer, &[b"south"]), None);
    }

    #[test]
    fn what_is_written_down_stands_still_from_then_on() {
        let mut seen = Seen::recording();
        // The octets of a whole answer inside another one's key are no answer.
        let whole = [&[Asked::Peer as u8, 5, 0][..], b"north", &[1, 0, 9]].concat();
        seen.note(Asked::Counter, &[&whole], b"x");
        assert_eq!(seen.recall(Asked::Peer, &[b"north"]), None);
        seen.note(Asked::Peer, &[b"north"], b"1");
        assert_eq!(seen.recall(Asked::Peer, &[b"north"]).as_deref(), Some(&b"1"[..]));
        assert_eq!(seen.recall(Asked::Counter, &[&whole]), None, "a counter moves");
    }

    #[test]
    fn a_record_has_an_end_and_says_so() {
        let mut seen = Seen::recording();
        for _ in 0..1_000 {
            // Ends in octets that look like the mark of the end.
            seen.note(Asked::Counter, &[b"name", b"key"], &u64::MAX.to_le_bytes());
        }
        // Though there would be room for it: what comes after the cut is not of one piece with what is before.
        seen.note(Asked::Clock, &[], b"");
        let record = seen.record().unwrap();
        assert!(record.len() <= LIMIT + 1, "{}", record.len());
        let mut again = replay(Some(record));
        let mut given = 0;
        while again.recall(Asked::Counter, &[b"name", b"key"]).and_then(|it| number(&it)) == Some(u64::MAX) {
            given += 1;
        }
        assert_eq!(given, LIMIT / (5 + 8 + 8));
        assert!(again.missing().is_some());
        assert_eq!(again.recall(Asked::Clock, &[]), None);
    }

    #[test]
    fn beside_another_time_is_shared_and_counters_are_not() {
        let mut seen = Seen::recording();
        seen.note(Asked::Clock, &[], &7_u64.to_le_bytes());
        seen.note(Asked::Counter, &[b"a"], &1_u64.to_le_bytes());
        let mut beside = Seen::beside(&seen.record().unwrap());
        assert_eq!(beside.recall(Asked::Clock, &[]).as_deref().and_then(number), Some(7));
        assert_eq!(beside.recall(Asked::Counter, &[b"a"]), None);
        assert_eq!(beside.recall(Asked::Peer, &[b"north"]), None);
        assert_eq!((beside.missing(), beside.counts()), (None, Counting::Yes));
    }

    #[test]
    fn nothing_asked_is_nothing_kept_and_rubbish_is_no_record() {
        assert_eq!(Seen::recording().record(), None);
        assert_eq!(Seen::Off.record(), None);
        for rubbish in [&b"\x01"[..], b"\x01\xff\xff", b"\x01\x00\x00\x09\x00x", b"\xff"] {
            let mut seen = Seen::replaying(rubbish);
            assert_eq!(seen.recall(Asked::Clock, &[]), None);
        }
    }
}
