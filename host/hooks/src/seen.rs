//! What the host answered while a plugin decided: written down, so that a replay sees the same.
//!
//! On record, per answer: 1 kind, 2 length of the key, key, 2 length of the answer, answer; lengths little-endian. A record
//! that would be larger than [`LIMIT`] ends with kind 255: from there on answers are missing.

/// Octets that the answers to one question may take.
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
}

impl Asked {
    /// Whether the same question has the same answer throughout a call.
    fn stands_still(self) -> bool {
        !matches!(self, Self::Counter | Self::Random)
    }

    fn name(octet: u8) -> &'static str {
        match octet {
            1 => "the clock",
            2 => "a peer's state",
            3 => "a counter",
            4 | 5 => "a table of the appliance's",
            6 => "a random number",
            _ => "more than was kept",
        }
    }
}

const CUT: u8 = 255;

/// What is done with the host's answers in one call.
#[derive(Debug, Default)]
pub(crate) enum Seen {
    /// Nothing.
    #[default]
    Off,
    /// They are written down.
    Recording(Vec<u8>),
    /// They come from a record.
    Replaying {
        /// Kind, key and answer; `None` once it was given and may not be given again.
        answers: Vec<(u8, Vec<u8>, Option<Vec<u8>>)>,
        /// What was asked and is not on record.
        missing: Option<&'static str>,
    },
}

fn joined(key: &[&[u8]]) -> Vec<u8> {
    key.join(&0)
}

impl Seen {
    pub(crate) fn replaying(record: &[u8]) -> Self {
        let mut answers = Vec::new();
        let mut rest = record;
        let piece = |rest: &mut &[u8]| -> Option<Vec<u8>> {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let (piece, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            *rest = after;
            Some(piece.to_vec())
        };
        while let Some((kind, after)) = rest.split_first() {
            rest = after;
            if *kind == CUT {
                break;
            }
            let (Some(key), Some(answer)) = (piece(&mut rest), piece(&mut rest)) else { break };
            answers.push((*kind, key, Some(answer)));
        }
        Self::Replaying { answers, missing: None }
    }

    /// The answer on record; `None` when there is no record, or nothing in it.
    pub(crate) fn recall(&mut self, asked: Asked, key: &[&[u8]]) -> Option<Vec<u8>> {
        let Self::Replaying { answers, missing } = self else { return None };
        let wanted = joined(key);
        let found = answers
            .iter_mut()
            .find(|(kind, key, answer)| *kind == asked as u8 && *key == wanted && answer.is_some());
        match found {
            Some((_, _, answer)) if asked.stands_still() => answer.clone(),
            Some((_, _, answer)) => answer.take(),
            None => {
                missing.get_or_insert(Asked::name(asked as u8));
                None
            }
        }
    }

    /// Writes an answer down, if answers are.
    pub(crate) fn note(&mut self, asked: Asked, key: &[&[u8]], answer: &[u8]) {
        let Self::Recording(record) = self else { return };
        if record.last() == Some(&CUT) && record.len() > LIMIT {
            return;
        }
        let key = joined(key);
        let start = record.len();
        record.push(asked as u8);
        for piece in [&key[..], answer] {
            let length = u16::try_from(piece.len()).unwrap_or(u16::MAX);
            record.extend_from_slice(&length.to_le_bytes());
            record.extend_from_slice(piece.get(..usize::from(length)).unwrap_or(piece));
        }
        let (before, own) = record.split_at(start);
        if asked.stands_still() && before.windows(own.len()).any(|other| other == own) {
            record.truncate(start);
        } else if record.len() > LIMIT {
            record.truncate(start);
            record.resize(LIMIT + 1, CUT);
        }
    }

    /// What was written down; nothing when nothing was asked.
    pub(crate) fn take(&mut self) -> Option<Box<[u8]>> {
        match std::mem::take(self) {
            Self::Recording(record) if !record.is_empty() => {
                let end = if record.len() > LIMIT {
                    record.iter().rposition(|octet| *octet != CUT).map_or(0, |last| last + 1) + 1
                } else {
                    record.len()
                };
                Some(record[..end.min(record.len())].into())
            }
            _ => None,
        }
    }

    /// What the call asked that is not on record.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Replaying { missing, .. } => *missing,
            _ => None,
        }
    }
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
        let mut seen = Seen::Recording(Vec::new());
        seen.note(Asked::Clock, &[], &7_u64.to_le_bytes());
        seen.note(Asked::Clock, &[], &7_u64.to_le_bytes());
        seen.note(Asked::Counter, &[b"velocity", b"acme"], &1_u64.to_le_bytes());
        seen.note(Asked::Counter, &[b"velocity", b"acme"], &2_u64.to_le_bytes());
        seen.note(Asked::Peer, &[b"north"], b"");
        let mut again = replay(seen.take());
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
    fn a_record_has_an_end_and_says_so() {
        let mut seen = Seen::Recording(Vec::new());
        for number in 0..1_000_u64 {
            seen.note(Asked::Counter, &[b"name", b"key"], &number.to_le_bytes());
        }
        let record = seen.take().unwrap();
        assert!(record.len() <= LIMIT + 1, "{}", record.len());
        let mut again = replay(Some(record));
        let mut given = 0;
        while again.recall(Asked::Counter, &[b"name", b"key"]).and_then(|it| number(&it)) == Some(given) {
            given += 1;
        }
        assert!((100..1_000).contains(&given), "{given}");
        assert!(again.missing().is_some());
    }

    #[test]
    fn nothing_asked_is_nothing_kept_and_rubbish_is_no_record() {
        assert_eq!(Seen::Recording(Vec::new()).take(), None);
        assert_eq!(Seen::Off.take(), None);
        for rubbish in [&b"\x01"[..], b"\x01\xff\xff", b"\x01\x00\x00\x09\x00x", b"\xff"] {
            let mut seen = Seen::replaying(rubbish);
            assert_eq!(seen.recall(Asked::Clock, &[]), None);
        }
    }
}
