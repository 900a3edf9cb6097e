//! The files of a local journal. Numbers are little-endian.
//!
//! # `journal.id`
//!
//! Written once, when the journal is created; 64 octets:
//!
//! | octets | contents |
//! |---|---|
//! | 0–7 | `SWJOURNL` |
//! | 8–11 | format (1) |
//! | 12–15 | 0 |
//! | 16–23 | key: a random number of this journal |
//! | 24–31 | length of each segment file in octets, from 121 on |
//! | 32–39 | seq before the first record |
//! | 40–47 | time of creation, milliseconds since the Unix epoch |
//! | 48–59 | 0 |
//! | 60–63 | CRC32C of octets 0–59 |
//!
//! # `NUMBER.segment`
//!
//! The *generation* of a segment file is its number: 20 decimal digits from 1 on, without gaps. A file is used for
//! a later generation again, with a new name. All segment files have the same length from their creation on. A header
//! of 64 octets:
//!
//! | octets | contents |
//! |---|---|
//! | 0–7 | `SWSEGMNT` |
//! | 8–11 | format (1) |
//! | 12–15 | CRC of the record before the first one; 0 if there is none |
//! | 16–23 | generation |
//! | 24–31 | mark of the generation |
//! | 32–39 | seq of the first record |
//! | 40–47 | term of the record before the first one; 0 if there is none |
//! | 48–55 | time when the segment was begun, milliseconds since the Unix epoch |
//! | 56–59 | 0 |
//! | 60–63 | CRC32C of octets 0–59 |
//!
//! Then *frames* without gaps; a frame is a mark of 8 octets and a [record](crate::record). The octets after the last
//! frame have no meaning: zeros, or records of an earlier generation.
//!
//! The header and the first frame are one write. Before it, the header is 64 zeros, and the file is a prepared segment.
//! Only the last file can be a prepared segment: a segment is prepared after the previous one has a durable record.
//!
//! # Marks
//!
//! The mark is a number computed from key and generation. It is never published, so no payload can contain it: octets
//! of a message are never taken for a record. If a mark with a valid record follows a bad record, records were written
//! after the bad one.
//!
//! # The end of the journal
//!
//! A record is durable before the next one is written, so only the last one can be torn. The first invalid record ends
//! the journal if neither a valid record of its generation nor a segment follows. Otherwise the journal is damaged and
//! is not opened. It is also damaged if a valid record does not continue the previous one, or if an incomplete record
//! precedes a segment whose header was begun.
//!
//! A record is valid if it has the mark of its segment, the right checksum, and at least the expected number. Records
//! with lower numbers belong to earlier generations: a write that is torn after the mark leaves its mark in front of
//! the old record.
//!
//! When a journal is opened, its last record is written again with 56 zeros after it, and 120 zeros are written at the
//! beginning of the prepared segment. So a discarded record cannot become valid.
//!
//! # Later formats
//!
//! Octets 0–11 and 60–63 of both headers never change, so that a later format is recognised and not taken for damage. A
//! later record format begins with a new segment.

use crate::record::{MAX_PAYLOAD, RECORD_HEADER, u32_at, u64_at};
use crate::{Head, Seq, Term};

/// The format of the files that this crate writes.
pub const FORMAT: u32 = 1;
/// The length of a segment's header and of the identity.
pub const HEADER: usize = 64;
/// The length of a frame without its payload.
pub const FRAME: usize = MARK + RECORD_HEADER;
/// The length of a mark.
pub(crate) const MARK: usize = 8;

/// Name of the file with the identity.
pub const IDENTITY: &str = "journal.id";
/// Name of the identity file while it is written.
pub(crate) const NEW_IDENTITY: &str = "journal.id.new";
/// Name of a segment file while it is prepared.
pub(crate) const NEW_SEGMENT: &str = "segment.new";

/// The name of a segment file.
#[must_use]
pub fn segment_name(generation: u64) -> String {
    format!("{generation:020}.segment")
}

/// The generation in a file name; `None` if it is not the name of a segment file.
#[must_use]
pub fn parse_segment_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".segment")?;
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
        .filter(|generation| *generation > 0)
}

/// Reasons why octets are not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// All octets are 0.
    Blank,
    /// The checksum is wrong.
    Invalid,
    /// The checksum is right, but the format is unknown.
    UnknownFormat(u32),
    /// The checksum is right, but reserved octets are not 0.
    UnknownSection,
}

/// The contents of `journal.id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalIdentity {
    /// Random number from which the marks are computed.
    pub key: u64,
    /// The length of each segment file.
    pub segment_octets: u64,
    /// The seq before the first record.
    pub after: Seq,
    /// When the journal was created, milliseconds since the Unix epoch.
    pub created: u64,
}

const IDENTITY_MAGIC: [u8; 8] = *b"SWJOURNL";
const SEGMENT_MAGIC: [u8; 8] = *b"SWSEGMNT";

impl JournalIdentity {
    /// The octets of the file.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[16..24].copy_from_slice(&self.key.to_le_bytes());
        octets[24..32].copy_from_slice(&self.segment_octets.to_le_bytes());
        octets[32..40].copy_from_slice(&self.after.0.to_le_bytes());
        octets[40..48].copy_from_slice(&self.created.to_le_bytes());
        seal(octets, IDENTITY_MAGIC)
    }

    /// Decodes the file.
    ///
    /// # Errors
    /// [`HeaderError`].
    pub fn decode(octets: &[u8]) -> Result<Self, HeaderError> {
        check_seal(octets, IDENTITY_MAGIC)?;
        let segment_octets = u64_at(octets, 24);
        let capacity = segment_octets.saturating_sub((HEADER + FRAME) as u64);
        if octets[12..16] != [0; 4] || octets[48..60] != [0; 12] || capacity == 0 {
            return Err(HeaderError::UnknownSection);
        }
        Ok(Self {
            key: u64_at(octets, 16),
            segment_octets,
            after: Seq(u64_at(octets, 32)),
            created: u64_at(octets, 40),
        })
    }

    /// The mark of the frames of a generation.
    #[must_use]
    pub fn mark(&self, generation: u64) -> u64 {
        mix(self.key ^ mix(generation))
    }

    /// The longest payload of a record.
    #[must_use]
    pub fn longest_payload(&self) -> usize {
        let room = usize::try_from(self.segment_octets).unwrap_or(usize::MAX);
        room.saturating_sub(HEADER + FRAME).min(MAX_PAYLOAD)
    }
}

/// SplitMix64's output function: each bit of the input changes half of the output.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The generation.
    pub generation: u64,
    /// The mark of the generation.
    pub mark: u64,
    /// The head of the journal before the first record of the segment.
    pub before: Head,
    /// When the segment was begun, milliseconds since the Unix epoch.
    pub begun: u64,
}

impl SegmentHeader {
    /// The seq of the first record.
    #[must_use]
    pub const fn first(&self) -> Seq {
        self.before.seq.next()
    }

    /// The octets of the header.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        octets[12..16].copy_from_slice(&self.before.crc.to_le_bytes());
        octets[16..24].copy_from_slice(&self.generation.to_le_bytes());
        octets[24..32].copy_from_slice(&self.mark.to_le_bytes());
        octets[32..40].copy_from_slice(&self.first().0.to_le_bytes());
        octets[40..48].copy_from_slice(&self.before.term.0.to_le_bytes());
        octets[48..56].copy_from_slice(&self.begun.to_le_bytes());
        seal(octets, SEGMENT_MAGIC)
    }

    /// Decodes the header of a segment.
    ///
    /// # Errors
    /// [`HeaderError`].
    pub fn decode(octets: &[u8]) -> Result<Self, HeaderError> {
        check_seal(octets, SEGMENT_MAGIC)?;
        let first = u64_at(octets, 32);
        if octets[56..60] != [0; 4] || first == 0 {
            return Err(HeaderError::UnknownSection);
        }
        Ok(Self {
            generation: u64_at(octets, 16),
            mark: u64_at(octets, 24),
            before: Head { term: Term(u64_at(octets, 40)), seq: Seq(first - 1), crc: u32_at(octets, 12) },
            begun: u64_at(octets, 48),
        })
    }
}

fn seal(mut octets: [u8; HEADER], magic: [u8; 8]) -> [u8; HEADER] {
    octets[..8].copy_from_slice(&magic);
    octets[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    let crc = crc32c::crc32c(&octets[..60]);
    octets[60..].copy_from_slice(&crc.to_le_bytes());
    octets
}

fn check_seal(octets: &[u8], magic: [u8; 8]) -> Result<(), HeaderError> {
    if octets.len() != HEADER {
        return Err(HeaderError::Invalid);
    }
    if octets.iter().all(|octet| *octet == 0) {
        return Err(HeaderError::Blank);
    }
    if octets[..8] != magic || u32_at(octets, 60) != crc32c::crc32c(&octets[..60]) {
        return Err(HeaderError::Invalid);
    }
    match u32_at(octets, 8) {
        FORMAT => Ok(()),
        other => Err(HeaderError::UnknownFormat(other)),
    }
}
