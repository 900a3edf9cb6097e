//! The host's answers to a question, for people and for cases.

use crate::host_call_log::{HostCallKind, HostCallLog, decode_u64};
use crate::host_calls::numbers::PoolState;
use crate::host_calls::peers::PeerState;
use crate::host_calls::quality;
use capabilities::{PeerFigures, QualityDimension};

/// A recorded answer of the host to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAnswer {
    /// The state of a peer; `None` if the name is unknown.
    Peer(String, Option<PeerState>),
    /// The state of a number pool; `None` if the name is unknown.
    Pool(String, Option<PoolState>),
    /// A counter.
    Counter {
        /// Its name.
        name: String,
        /// The key that was counted.
        key: String,
        /// The count before the call.
        before: u64,
        /// The window that the plugin named, in milliseconds; a durable counter does not use it.
        window: u64,
    },
    /// The value that an appliance table has for a key: table, key, value.
    Table(String, String, Option<String>),
    /// Observations of a peer.
    Quality {
        /// The peer.
        peer: String,
        /// The dimension of the figures.
        dimension: QualityDimension,
        /// The value of the dimension; empty for the whole peer.
        value: String,
        /// The window, in milliseconds.
        window: u64,
        /// The figures.
        figures: PeerFigures,
    },
    /// An attribute of the account: name and value.
    Attribute(String, Option<String>),
}

impl HostAnswer {
    /// The answers in a log that is recording, for people and for cases.
    pub(crate) fn all(log: &HostCallLog) -> Vec<Self> {
        log.calls().filter_map(|(kind, key, answer)| Self::read(kind, key, answer)).collect()
    }

    /// Reads an entry; `None` for the clock, random numbers, the message itself, and answers of other systems.
    fn read(kind: HostCallKind, key: &[u8], answer: &[u8]) -> Option<Self> {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        // Only the last part of a key may contain NUL octets.
        let mut parts = key.splitn(2, |octet| *octet == 0);
        let mut part = || parts.next().map(text);
        let value = answer.split_first().map(|(_, value)| text(value));
        match kind {
            HostCallKind::Clock
            | HostCallKind::Random
            | HostCallKind::Detail
            | HostCallKind::Http
            | HostCallKind::Dns
            | HostCallKind::Hlr
            | HostCallKind::Value => None,
            HostCallKind::Peer => Some(Self::Peer(text(key), PeerState::read(answer))),
            HostCallKind::Pool => Some(Self::Pool(text(key), PoolState::read(answer))),
            HostCallKind::Quality => {
                let (peer, window, dimension, value) = quality::decode_key(key)?;
                let (peer, value) = (text(peer), text(value));
                Some(Self::Quality { peer, dimension, value, window, figures: quality::decode(answer)? })
            }
            HostCallKind::Attribute => Some(Self::Attribute(text(key), value)),
            HostCallKind::Table => Some(Self::Table(part()?, part()?, value)),
            HostCallKind::Prefix => {
                let (table, key) = (part()?, part()?);
                // The row's key is the matched prefix.
                let length = answer.first().map_or(key.len(), |length| usize::from(*length));
                Some(Self::Table(table, key.chars().take(length).collect(), value))
            }
            HostCallKind::Counter => {
                // See `InstanceState::count`: plugin, name, key, window (8 octets), amount (4 octets).
                let (rest, amount) = key.split_last_chunk::<4>()?;
                let (rest, window) = rest.strip_suffix(&[0])?.split_last_chunk::<8>()?;
                let mut parts = rest.strip_suffix(&[0])?.splitn(3, |octet| *octet == 0).skip(1).map(text);
                let (name, key) = (parts.next()?, parts.next()?);
                let amount = u64::from(u32::from_le_bytes(*amount));
                let before = decode_u64(answer)?.saturating_sub(amount);
                Some(Self::Counter { name, key, before, window: u64::from_le_bytes(*window) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_answers_are_described() {
        let mut log = HostCallLog::recording();
        log.append(HostCallKind::Clock, &[], &7_u64.to_le_bytes());
        let counted = [&b"plugin"[..], b"daily", b"a\0b", &60_000_u64.to_le_bytes(), &1_u32.to_le_bytes()];
        log.append(HostCallKind::Counter, &counted, &3_u64.to_le_bytes());
        log.append(
            HostCallKind::Peer,
            &[b"north"],
            &[&1_u32.to_le_bytes()[..], &9_u64.to_le_bytes()].concat(),
        );
        log.append(HostCallKind::Table, &[b"blocked", b"4915"], b"");
        log.append(HostCallKind::Prefix, &[b"ported", b"49151234"], b"\x041-D1");
        log.append(HostCallKind::Attribute, &[b"brand"], b"\x01B-1");
        let text = str::to_owned;
        assert_eq!(
            HostAnswer::all(&log),
            [
                HostAnswer::Counter { name: text("daily"), key: text("a\0b"), before: 2, window: 60_000 },
                HostAnswer::Peer(text("north"), Some(PeerState { links: 1, queued: 9 })),
                HostAnswer::Table(text("blocked"), text("4915"), None),
                HostAnswer::Table(text("ported"), text("4915"), Some(text("1-D1"))),
                HostAnswer::Attribute(text("brand"), Some(text("B-1"))),
            ]
        );
        assert!(HostAnswer::all(&HostCallLog::Off).is_empty());
    }
}
