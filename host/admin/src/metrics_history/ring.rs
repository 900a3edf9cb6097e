//! A ring file: the counts of the last intervals of one length.
//!
//! On disk, a file has one record per slot and nothing else. The interval that begins at `at` is in slot `at / interval
//! % slots`, so a new interval overwrites the oldest one, and no header can be outdated. A record (64 bytes,
//! little-endian):
//! * 8 bytes: start of the interval, milliseconds since the epoch; 0 in an empty slot
//! * 8 bytes each: accepted, refused, delivered, failed messages of the interval
//! * 8 bytes: maximum number of waiting messages
//! * 4 bytes: observed milliseconds
//! * 4 bytes each: mean commit time and mean round trip in microseconds; `u32::MAX` if there is none
//! * 4 bytes: CRC-32C of the first 60 bytes
//!
//! Records are written without fsync: after a power failure, the records of the last seconds may be missing. A damaged
//! record counts as empty.

use api::{HistoryRange, HistorySampleView};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Length of a record, in octets.
const RECORD: usize = 64;

/// The ring of a range.
#[derive(Debug)]
pub(super) struct Ring {
    range: HistoryRange,
    records: Vec<HistorySampleView>,
    /// The file; `None` if the history is in memory only.
    file: Option<File>,
}

impl Ring {
    /// A ring without a file.
    pub(super) fn in_memory(range: HistoryRange) -> Self {
        let slots = (range.length_ms() / range.interval_ms()) as usize + 2;
        Self { range, records: vec![HistorySampleView::default(); slots], file: None }
    }

    /// Opens the ring's file; creates it if it does not exist. A file with a wrong length is cleared.
    pub(super) fn open(range: HistoryRange, folder: &Path) -> io::Result<Self> {
        let mut ring = Self::in_memory(range);
        let path = folder.join(format!("{}.ring", range.name()));
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let length = ring.records.len() * RECORD;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        if content.len() == length {
            for (slot, bytes) in content.chunks_exact(RECORD).enumerate() {
                if let (Some(record), Some(place)) = (decode(bytes), ring.records.get_mut(slot)) {
                    *place = record;
                }
            }
        } else {
            file.set_len(0)?;
            file.set_len(length as u64)?;
        }
        ring.file = Some(file);
        Ok(ring)
    }

    /// The record of the interval that begins at `at`; an empty one if it is new.
    pub(super) fn record(&mut self, at: u64) -> &mut HistorySampleView {
        let begun = at - at % self.range.interval_ms();
        let slot = self.slot(at);
        let record = &mut self.records[slot];
        if record.at != begun {
            *record = HistorySampleView { at: begun, ..HistorySampleView::default() };
        }
        record
    }

    /// Writes the record of the interval that begins at `at`.
    pub(super) fn write(&self, at: u64) -> io::Result<()> {
        let (Some(file), slot) = (&self.file, self.slot(at)) else { return Ok(()) };
        file.write_all_at(&encode(&self.records[slot]), (slot * RECORD) as u64)
    }

    /// The records of a period, oldest first.
    pub(super) fn between(&self, from: u64, until: u64) -> Vec<HistorySampleView> {
        let mut found: Vec<HistorySampleView> = self
            .records
            .iter()
            .filter(|record| record.at >= from.max(1) && record.at < until)
            .copied()
            .collect();
        found.sort_unstable_by_key(|record| record.at);
        found
    }

    fn slot(&self, at: u64) -> usize {
        (at / self.range.interval_ms() % self.records.len() as u64) as usize
    }
}

fn encode(record: &HistorySampleView) -> [u8; RECORD] {
    let mut bytes = Vec::with_capacity(RECORD);
    let counts =
        [record.at, record.accepted, record.refused, record.delivered, record.failed, record.waiting];
    counts.iter().for_each(|count| bytes.extend_from_slice(&count.to_le_bytes()));
    let spans =
        [record.observed_ms, record.commit_us.unwrap_or(u32::MAX), record.round_trip_us.unwrap_or(u32::MAX)];
    spans.iter().for_each(|span| bytes.extend_from_slice(&span.to_le_bytes()));
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    let mut record = [0; RECORD];
    record.copy_from_slice(&bytes);
    record
}

/// The record, unless it is empty or damaged.
fn decode(bytes: &[u8]) -> Option<HistorySampleView> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(content) != u32::from_le_bytes(*sum) {
        return None;
    }
    let long = |index: usize| Some(u64::from_le_bytes(*content.get(index * 8..)?.first_chunk()?));
    let short = |index: usize| Some(u32::from_le_bytes(*content.get(48 + index * 4..)?.first_chunk()?));
    let span = |index: usize| Some(Some(short(index)?).filter(|span| *span != u32::MAX));
    let record = HistorySampleView {
        at: long(0)?,
        accepted: long(1)?,
        refused: long(2)?,
        delivered: long(3)?,
        failed: long(4)?,
        waiting: long(5)?,
        observed_ms: short(0)?,
        commit_us: span(1)?,
        round_trip_us: span(2)?,
    };
    (record.at > 0).then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_800_000_000_000;

    #[test]
    fn records_survive_a_restart_and_damaged_ones_count_as_empty() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(HistoryRange::Hour, folder.path()).unwrap();
        for turn in 0..3 {
            let at = AT + turn * 10_000;
            let record = ring.record(at + 7);
            record.accepted = turn + 1;
            record.commit_us = Some(70);
            ring.write(at).unwrap();
        }
        let kept = ring.between(0, u64::MAX);
        assert_eq!(kept.iter().map(|record| record.accepted).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(kept[0].at, AT);
        drop(ring);
        assert_eq!(Ring::open(HistoryRange::Hour, folder.path()).unwrap().between(0, u64::MAX), kept);

        let path = folder.path().join("hour.ring");
        let mut bytes = std::fs::read(&path).unwrap();
        let place =
            bytes.chunks(RECORD).position(|record| decode(record).as_ref() == Some(&kept[1])).unwrap();
        bytes[place * RECORD + 9] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let ring = Ring::open(HistoryRange::Hour, folder.path()).unwrap();
        assert_eq!(ring.between(0, u64::MAX), [kept[0], kept[2]]);
        bytes.pop();
        std::fs::write(&path, &bytes).unwrap();
        assert!(Ring::open(HistoryRange::Hour, folder.path()).unwrap().between(0, u64::MAX).is_empty());
    }

    #[test]
    fn a_ring_has_the_last_range_only() {
        for range in HistoryRange::ALL {
            let mut ring = Ring::in_memory(range);
            let intervals = range.length_ms() / range.interval_ms();
            for turn in 0..intervals * 2 {
                ring.record(AT + turn * range.interval_ms()).accepted = turn;
            }
            let end = AT + intervals * 2 * range.interval_ms();
            let shown = ring.between(end - range.length_ms(), end);
            let expected: Vec<u64> = (intervals..intervals * 2).collect();
            assert_eq!(shown.iter().map(|record| record.accepted).collect::<Vec<_>>(), expected);
        }
    }
}
