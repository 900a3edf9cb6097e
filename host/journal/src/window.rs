//! A section of a segment file in memory, and its frames.

use crate::directory::{JournalFile, read_full};
use crate::record::{DecodeError, decode_record, encoded_length, encoded_seq};
use crate::segment::{FRAME, MARK};
use crate::{JournalRecord, Seq};
use memchr::memmem;
use std::io;
use std::sync::Arc;

/// Octets per read.
const STEP: usize = 256 * 1024;

/// Sequential reader of a segment file.
pub(crate) struct Window {
    file: Arc<dyn JournalFile>,
    length: u64,
    mark: [u8; MARK],
    start: u64,
    buffer: Vec<u8>,
}

impl Window {
    /// A window on a segment of `length` octets whose frames have `mark`.
    pub(crate) fn new(file: Arc<dyn JournalFile>, length: u64, mark: u64) -> Self {
        Self { file, length, mark: mark.to_le_bytes(), start: 0, buffer: Vec::new() }
    }

    /// Drops the octets in memory, so that the file is read again.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    /// `count` octets at `offset`, or fewer at the end of the segment.
    pub(crate) fn octets(&mut self, offset: u64, count: usize) -> io::Result<&[u8]> {
        let within = offset.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let held = within.is_some_and(|skip| skip.saturating_add(count) <= self.buffer.len());
        if !held {
            let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.start = offset;
            self.buffer.resize(count.max(STEP).min(left), 0);
            let read = read_full(&*self.file, offset, &mut self.buffer);
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let rest = self.buffer.get(skip..).unwrap_or_default();
        Ok(rest.get(..count).unwrap_or(rest))
    }

    /// The record of the frame at `offset`, if its number is `from` or higher.
    ///
    /// A write that is torn after the mark can leave its mark in front of a record of an earlier generation. That record
    /// has a lower number.
    pub(crate) fn record(
        &mut self,
        offset: u64,
        from: Seq,
    ) -> io::Result<Result<JournalRecord, DecodeError>> {
        let mark = self.mark;
        let header = self.octets(offset, FRAME)?;
        let header = header.strip_prefix(&mark).filter(|header| encoded_seq(header) >= Some(from));
        let length = header.and_then(encoded_length);
        let Some(length) = length.filter(|length| *length as u64 <= self.length.saturating_sub(offset))
        else {
            return Ok(Err(DecodeError::Invalid));
        };
        Ok(decode_record(self.octets(offset, MARK + length)?.get(MARK..).unwrap_or_default()))
    }

    /// Whether a frame begins at `offset`, complete or not.
    pub(crate) fn has_mark(&mut self, offset: u64) -> io::Result<bool> {
        let mark = self.mark;
        Ok(self.octets(offset, MARK)? == mark)
    }

    /// Whether a frame at `offset` or later has a valid record of this generation, with a number of at least `from`.
    pub(crate) fn has_record_from(&mut self, mut offset: u64, from: Seq) -> io::Result<bool> {
        let mark = self.mark;
        loop {
            let octets = self.octets(offset, STEP)?;
            if octets.len() < FRAME {
                return Ok(false);
            }
            match memmem::find(octets, &mark) {
                Some(at) => {
                    let frame = offset + at as u64;
                    // A record of an unknown kind counts: its checksum is right.
                    if !matches!(self.record(frame, from)?, Err(DecodeError::Invalid)) {
                        return Ok(true);
                    }
                    offset = frame + 1;
                }
                None => offset += (octets.len() - (MARK - 1)) as u64,
            }
        }
    }
}
