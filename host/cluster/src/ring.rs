//! Keys of the cluster in etcd, and the values of the ring's slots.
//!
//! | key | value |
//! |---|---|
//! | `PREFIX/id` | the cluster's number and the number of slots, JSON |
//! | `PREFIX/head` | term, seq (8 octets each) and checksum (4 octets) of the last record, little-endian |
//! | `PREFIX/leader` | the latest claim of the log, JSON |
//! | `PREFIX/node/NAME` | the record of a node, JSON |
//! | `PREFIX/shared/…`, `PREFIX/changed` | the shared state, see `shared_state` |
//! | `PREFIX/position/NAME` | the stored position of a reader of the journal, for example an event sink |
//! | `PREFIX/ring/0000` … | the record whose number modulo the number of slots is this |
//! | `PREFIX/ring/0000/01` … | the rest of a long record, in pieces |
//! | `PREFIX/partition/001/…` | the same keys for another partition than 0, except its nodes |
//! | `PREFIX/partition-node/001/NAME` | the record of a node of another partition, JSON |
//!
//! The state that all partitions share is stored as the state of partition 0.
//!
//! The value of a slot: 1 octet encoding (0 uncompressed, 1 LZ4), 4 octets length of the encoded record, first piece of
//! the record. Keys of the log are overwritten and never removed, so that etcd's file does not grow.

use crate::SharedScope;
use crate::proto::KeyValue;
use journal::record::{MAX_PAYLOAD, RECORD_HEADER};
use journal::{Head, Seq, Term};

/// Maximum octets of a record in one request: etcd accepts 1.5 MiB, including the keys.
const PIECE: usize = 1 << 20;
const SLOT_HEADER: usize = 5;
const PLAIN: u8 = 0;
const LZ4: u8 = 1;

/// The keys of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct ClusterKeys {
    /// The prefix of the cluster, and of partition 0.
    base: String,
    /// The prefix of this partition.
    prefix: String,
    partition: u8,
}

impl ClusterKeys {
    pub(crate) fn new(base: &str, partition: u8) -> Self {
        let prefix = match partition {
            0 => base.to_owned(),
            other => format!("{base}/partition/{other:03}"),
        };
        Self { base: base.to_owned(), prefix, partition }
    }

    pub(crate) fn identity(&self) -> String {
        format!("{}/id", self.prefix)
    }

    pub(crate) fn head(&self) -> String {
        format!("{}/head", self.prefix)
    }

    pub(crate) fn leader(&self) -> String {
        format!("{}/leader", self.prefix)
    }

    /// The prefix of the nodes of partition 0.
    pub(crate) fn base_nodes(&self) -> String {
        format!("{}/node/", self.base)
    }

    /// The prefix of the nodes of all other partitions.
    pub(crate) fn other_nodes(&self) -> String {
        format!("{}/partition-node/", self.base)
    }

    /// A node of this partition.
    pub(crate) fn node(&self, name: &str) -> String {
        match self.partition {
            0 => format!("{}{name}", self.base_nodes()),
            other => format!("{}{other:03}/{name}", self.other_nodes()),
        }
    }

    /// The partition and name in a key that [`Self::node`] has made.
    pub(crate) fn node_of(&self, key: &str) -> Option<(u8, String)> {
        if let Some(name) = key.strip_prefix(&self.base_nodes()) {
            return Some((0, name.to_owned()));
        }
        let (partition, name) = key.strip_prefix(&self.other_nodes())?.split_once('/')?;
        Some((partition.parse().ok().filter(|partition| *partition > 0)?, name.to_owned()))
    }

    const fn prefix_of(&self, scope: SharedScope) -> &String {
        match scope {
            SharedScope::Partition => &self.prefix,
            SharedScope::Cluster => &self.base,
        }
    }

    /// The key that is written with each change of the shared state.
    pub(crate) fn changed(&self, scope: SharedScope) -> String {
        format!("{}/changed", self.prefix_of(scope))
    }

    /// Prefix of the shared state.
    pub(crate) fn shared(&self, scope: SharedScope) -> String {
        format!("{}/shared/", self.prefix_of(scope))
    }

    /// Prefix of the positions of the journal's readers.
    pub(crate) fn positions(&self) -> String {
        format!("{}/position/", self.prefix)
    }

    pub(crate) fn slot(&self, slot: u64) -> String {
        format!("{}/ring/{slot:04}", self.prefix)
    }

    fn piece(&self, slot: u64, number: usize) -> String {
        format!("{}/ring/{slot:04}/{number:02}", self.prefix)
    }

    /// The slot of a key; `None` for other keys.
    pub(crate) fn slot_of(&self, key: &[u8]) -> Option<u64> {
        let name = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?.strip_prefix("/ring/")?;
        name.split('/').next()?.parse().ok()
    }

    /// The first key after the keys of a slot.
    pub(crate) fn after_slot(&self, slot: u64) -> String {
        format!("{}/ring/{slot:04}0", self.prefix)
    }
}

pub(crate) fn encode_head(head: &Head) -> Vec<u8> {
    let mut octets = Vec::with_capacity(20);
    octets.extend_from_slice(&head.term.0.to_le_bytes());
    octets.extend_from_slice(&head.seq.0.to_le_bytes());
    octets.extend_from_slice(&head.crc.to_le_bytes());
    octets
}

pub(crate) fn decode_head(octets: &[u8]) -> Option<Head> {
    let (term, rest) = octets.split_first_chunk()?;
    let (seq, rest) = rest.split_first_chunk()?;
    let crc = rest.try_into().ok()?;
    Some(Head {
        term: Term(u64::from_le_bytes(*term)),
        seq: Seq(u64::from_le_bytes(*seq)),
        crc: u32::from_le_bytes(crc),
    })
}

/// A record, encoded for its slot.
pub(crate) struct EncodedSlot {
    /// The key and value of the slot itself.
    pub(crate) slot: (String, Vec<u8>),
    /// Keys and values of the other pieces; they must be written first.
    pub(crate) pieces: Vec<(String, Vec<u8>)>,
}

pub(crate) fn encode_slot(keys: &ClusterKeys, slot: u64, record: &[u8], compress: bool) -> EncodedSlot {
    let packed = compress.then(|| lz4_flex::compress_prepend_size(record));
    let (encoding, octets) = match &packed {
        Some(packed) if packed.len() < record.len() => (LZ4, packed.as_slice()),
        _ => (PLAIN, record),
    };
    let mut pieces = octets.chunks(PIECE);
    let first = pieces.next().unwrap_or_default();
    let mut value = Vec::with_capacity(SLOT_HEADER + first.len());
    value.push(encoding);
    // A record is shorter than 4 GiB.
    value.extend_from_slice(&u32::try_from(octets.len()).unwrap_or(u32::MAX).to_le_bytes());
    value.extend_from_slice(first);
    let pieces = (1..).zip(pieces).map(|(number, piece)| (keys.piece(slot, number), piece.to_vec()));
    EncodedSlot { slot: (keys.slot(slot), value), pieces: pieces.collect() }
}

/// Contents of a slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodedSlot {
    /// The octets of a record, and the number of keys that they came from.
    Record(Vec<u8>, usize),
    /// Pieces are missing.
    Incomplete,
    /// An encoding that only a newer version knows.
    UnknownEncoding(u8),
    /// No record.
    Invalid,
}

/// Decodes a slot. Its key and pieces must be the first ones in `found`, in the order of keys.
pub(crate) fn decode_slot(keys: &ClusterKeys, slot: u64, found: &[KeyValue]) -> DecodedSlot {
    let Some((first, rest)) = found.split_first() else { return DecodedSlot::Incomplete };
    if first.key != keys.slot(slot).as_bytes() {
        return DecodedSlot::Invalid;
    }
    let Some((header, piece)) = first.value.split_first_chunk::<SLOT_HEADER>() else {
        return DecodedSlot::Invalid;
    };
    let [encoding, length @ ..] = *header;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    // LZ4 makes incompressible octets longer, and those are stored uncompressed.
    if length > RECORD_HEADER + MAX_PAYLOAD {
        return DecodedSlot::Invalid;
    }
    let mut octets = Vec::with_capacity(length);
    octets.extend_from_slice(piece);
    let mut used = 1;
    for (number, more) in (1..).zip(rest) {
        if octets.len() >= length {
            break;
        }
        if more.key != keys.piece(slot, number).as_bytes() {
            return DecodedSlot::Invalid;
        }
        octets.extend_from_slice(&more.value);
        used += 1;
    }
    if octets.len() < length {
        return DecodedSlot::Incomplete;
    }
    // Pieces of an older, longer record may follow.
    let prefix = format!("{}/", keys.slot(slot));
    used += rest.iter().skip(used - 1).take_while(|more| more.key.starts_with(prefix.as_bytes())).count();
    if octets.len() > length {
        return DecodedSlot::Invalid;
    }
    match encoding {
        PLAIN => DecodedSlot::Record(octets, used),
        LZ4 => {
            let size = octets.first_chunk().map_or(u32::MAX, |size| u32::from_le_bytes(*size));
            if usize::try_from(size).unwrap_or(usize::MAX) > RECORD_HEADER + MAX_PAYLOAD {
                return DecodedSlot::Invalid;
            }
            match lz4_flex::decompress_size_prepended(&octets) {
                Ok(record) => DecodedSlot::Record(record, used),
                Err(_) => DecodedSlot::Invalid,
            }
        }
        other => DecodedSlot::UnknownEncoding(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn keys() -> ClusterKeys {
        ClusterKeys::new("/test", 0)
    }

    fn stored(slot: EncodedSlot) -> Vec<KeyValue> {
        std::iter::once(slot.slot)
            .chain(slot.pieces)
            .map(|(key, value)| KeyValue { key: key.into_bytes(), value, mod_revision: 0 })
            .collect()
    }

    #[test]
    fn a_long_record_takes_several_keys() {
        let record: Vec<u8> =
            (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut found = stored(encode_slot(&keys(), 7, &record, false));
        assert_eq!(found.len(), 3);
        assert!(found.is_sorted_by(|a, b| a.key < b.key));
        assert!(found.iter().all(|one| one.key < keys().after_slot(7).into_bytes()));
        assert!(keys().after_slot(7) < keys().slot(8));
        assert!(found.iter().all(|one| keys().slot_of(&one.key) == Some(7)));
        assert_eq!(keys().slot_of(keys().head().as_bytes()), None);
        for missing in 0..3 {
            assert_eq!(decode_slot(&keys(), 7, &found[..missing]), DecodedSlot::Incomplete);
        }
        assert_eq!(decode_slot(&keys(), 7, &found), DecodedSlot::Record(record, 3));
        // A short record does not remove the pieces of a longer one.
        let short = stored(encode_slot(&keys(), 7, b"short", false));
        found.splice(..1, short);
        assert_eq!(decode_slot(&keys(), 7, &found), DecodedSlot::Record(b"short".to_vec(), 3));
    }

    #[test]
    fn a_newer_encoding_is_distinguished_from_damage() {
        let mut found = stored(encode_slot(&keys(), 7, b"short", false));
        found[0].value[0] = 9;
        assert_eq!(decode_slot(&keys(), 7, &found), DecodedSlot::UnknownEncoding(9));
        found[0].value.push(0);
        assert_eq!(decode_slot(&keys(), 7, &found), DecodedSlot::Invalid);
    }

    proptest! {
        #[test]
        fn a_slot_decodes_to_its_record(record in vec(any::<u8>(), 0..2000), compress: bool, slot in 0_u64..1024) {
            let found = stored(encode_slot(&keys(), slot, &record, compress));
            prop_assert_eq!(decode_slot(&keys(), slot, &found), DecodedSlot::Record(record, 1));
        }

        #[test]
        fn any_keys_are_a_record_or_refused(
            pieces in vec((0_usize..4, vec(any::<u8>(), 0..40)), 0..6),
            length in 0_u32..120,
        ) {
            let found: Vec<_> = pieces
                .into_iter()
                .enumerate()
                .map(|(at, (number, mut value))| {
                    if at == 0 {
                        value.splice(..0, [&[PLAIN][..], &length.to_le_bytes()].concat());
                    }
                    let key = if number == 0 { keys().slot(3) } else { keys().piece(3, number) };
                    KeyValue { key: key.into_bytes(), value, mod_revision: 0 }
                })
                .collect();
            if let DecodedSlot::Record(record, used) = decode_slot(&keys(), 3, &found) {
                prop_assert!(used <= found.len() && record.len() == length as usize);
                let octets: Vec<_> = found.iter().flat_map(|one| one.value.iter().copied()).collect();
                prop_assert_eq!(&octets[SLOT_HEADER..][..record.len()], &record[..]);
            }
        }

        #[test]
        fn any_octets_are_a_record_or_refused(value in vec(any::<u8>(), 0..200)) {
            let found = [KeyValue { key: keys().slot(0).into_bytes(), value, mod_revision: 0 }];
            let _ = decode_slot(&keys(), 0, &found);
        }

        #[test]
        fn a_head_has_20_octets(term: u64, seq: u64, crc: u32) {
            let head = Head { term: Term(term), seq: Seq(seq), crc };
            prop_assert_eq!(decode_head(&encode_head(&head)), Some(head));
        }
    }
}
