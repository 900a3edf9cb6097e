//! The record format, on a local disk and in a cluster. Numbers are little-endian.
//!
//! | octets | contents |
//! |---|---|
//! | 0–3 | `SWL1` |
//! | 4–7 | CRC32C of octets 8 to the end of the payload |
//! | 8–11 | length of the payload in octets, at most 16 MiB |
//! | 12–15 | octets 4–7 of the record before; 0 in the first record |
//! | 16–23 | term |
//! | 24–31 | seq |
//! | 32–39 | time of the append, milliseconds since the Unix epoch; it may go back |
//! | 40 | kind of the payload |
//! | 41–47 | 0 |
//! | 48– | payload |
//!
//! Kinds:
//!
//! * 1, a claim: the payload is the node, 8 octets.
//! * 2, an append: the payload is the caller's.
//!
//! The checksum covers term, seq and the previous checksum, so a record is valid at one place of one sequence only. If
//! the checksum is right, another kind, non-zero octets 41–47 or a claim of another length are a newer format: they are
//! refused, never skipped.

use crate::{Head, NodeId, Seq, Term};

/// Octets before the payload.
pub const RECORD_HEADER: usize = 48;

/// The longest payload of a record in octets. A header with another length is damaged.
pub const MAX_PAYLOAD: usize = 16 * 1024 * 1024;

const MAGIC: [u8; 4] = *b"SWL1";
const CLAIM: u8 = 1;
const PAYLOAD: u8 = 2;

/// A record of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRecord {
    /// The writer's term.
    pub term: Term,
    /// Its number in the journal.
    pub seq: Seq,
    /// The checksum of the record before; 0 in the first record.
    pub predecessor: u32,
    /// The checksum of this record.
    pub crc: u32,
    /// Time of the append by the writer's wall clock, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Its contents.
    pub entry: Entry,
}

/// Contents of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A node claimed the journal: the first record of a term.
    Claim {
        /// The node.
        node: NodeId,
    },
    /// The payload of an append.
    Payload(Vec<u8>),
}

/// Contents to encode; see [`Entry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRef<'a> {
    /// A node claims the journal.
    Claim(NodeId),
    /// The payload of an append.
    Payload(&'a [u8]),
}

impl EntryRef<'_> {
    /// The length of the payload in octets.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self {
            Self::Claim(_) => 8,
            Self::Payload(octets) => octets.len(),
        }
    }
}

/// The payload is longer than [`MAX_PAYLOAD`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a payload of {0} octets is too long for a record")]
pub struct PayloadTooLong(pub usize);

/// Reasons why octets are not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There is no record, it is incomplete, or its octets have changed.
    #[error("the checksum is wrong")]
    Invalid,
    /// The checksum is right, but the record has a newer format.
    #[error("a record of the unknown kind {0}")]
    UnknownKind(u8),
    /// The checksum is right, but reserved octets are not 0.
    #[error("a record with an unknown section")]
    UnknownSection,
}

impl JournalRecord {
    /// The payload; `None` for a claim.
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        match &self.entry {
            Entry::Payload(payload) => Some(payload),
            Entry::Claim { .. } => None,
        }
    }

    /// The end of a journal that has this record as its last one.
    #[must_use]
    pub const fn head(&self) -> Head {
        Head { term: self.term, seq: self.seq, crc: self.crc }
    }

    /// Whether this record may follow `head`: it has the next number, the right checksum, and no older term.
    #[must_use]
    pub fn continues(&self, head: &Head) -> bool {
        self.seq == head.seq.next() && self.predecessor == head.crc && self.term >= head.term
    }

    /// The length of the encoded record in octets.
    #[must_use]
    pub const fn encoded_length(&self) -> usize {
        RECORD_HEADER
            + match &self.entry {
                Entry::Claim { .. } => 8,
                Entry::Payload(octets) => octets.len(),
            }
    }
}

/// Appends the record after `head` to `out`, in `term`, and returns its checksum.
///
/// # Errors
/// [`PayloadTooLong`]; nothing is appended.
pub fn encode_record(
    out: &mut Vec<u8>,
    head: &Head,
    term: Term,
    at: u64,
    entry: EntryRef<'_>,
) -> Result<u32, PayloadTooLong> {
    let length = u32::try_from(entry.length())
        .ok()
        .filter(|_| entry.length() <= MAX_PAYLOAD)
        .ok_or(PayloadTooLong(entry.length()))?;
    let start = out.len();
    out.reserve(RECORD_HEADER + entry.length());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&head.crc.to_le_bytes());
    out.extend_from_slice(&term.0.to_le_bytes());
    out.extend_from_slice(&head.seq.next().0.to_le_bytes());
    out.extend_from_slice(&at.to_le_bytes());
    let kind = match entry {
        EntryRef::Claim(_) => CLAIM,
        EntryRef::Payload(_) => PAYLOAD,
    };
    out.extend_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
    match entry {
        EntryRef::Claim(node) => out.extend_from_slice(&node.0.to_le_bytes()),
        EntryRef::Payload(octets) => out.extend_from_slice(octets),
    }
    let crc = crc32c::crc32c(&out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
    Ok(crc)
}

/// The length of the record that begins with `octets`, from its header; `None` without a valid header.
#[must_use]
pub fn encoded_length(octets: &[u8]) -> Option<usize> {
    let header = octets.get(..RECORD_HEADER)?;
    let payload = usize::try_from(u32_at(header, 8)).ok().filter(|length| *length <= MAX_PAYLOAD)?;
    (header[..4] == MAGIC).then_some(RECORD_HEADER + payload)
}

/// The number of the record that begins with `octets`, from its header; `None` without a header.
pub(crate) fn encoded_seq(octets: &[u8]) -> Option<Seq> {
    octets.get(..RECORD_HEADER).map(|header| Seq(u64_at(header, 24)))
}

/// Decodes the record at the beginning of `octets`; its length is [`JournalRecord::encoded_length`].
///
/// # Errors
/// [`DecodeError`].
pub fn decode_record(octets: &[u8]) -> Result<JournalRecord, DecodeError> {
    let length = encoded_length(octets).ok_or(DecodeError::Invalid)?;
    let octets = octets.get(..length).ok_or(DecodeError::Invalid)?;
    let (header, payload) = octets.split_at(RECORD_HEADER);
    let crc = u32_at(header, 4);
    if crc32c::crc32c(&octets[8..]) != crc {
        return Err(DecodeError::Invalid);
    }
    if header[41..48] != [0; 7] {
        return Err(DecodeError::UnknownSection);
    }
    let entry = match header[40] {
        CLAIM if payload.len() == 8 => Entry::Claim { node: NodeId(u64_at(payload, 0)) },
        CLAIM => return Err(DecodeError::UnknownSection),
        PAYLOAD => Entry::Payload(payload.to_vec()),
        other => return Err(DecodeError::UnknownKind(other)),
    };
    Ok(JournalRecord {
        term: Term(u64_at(header, 16)),
        seq: Seq(u64_at(header, 24)),
        predecessor: u32_at(header, 12),
        crc,
        at: u64_at(header, 32),
        entry,
    })
}

pub(crate) fn u32_at(octets: &[u8], at: usize) -> u32 {
    octets.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |octets| u32::from_le_bytes(*octets))
}

pub(crate) fn u64_at(octets: &[u8], at: usize) -> u64 {
    octets.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |octets| u64::from_le_bytes(*octets))
}
