//! Writer of the files of one `[[cdr]]`.

use super::fields::{CdrRecord, header, trailer};
use super::format::LineFormat;
use super::options::CdrOptions;
use super::state::{AbandonedFile, CdrState, FileTotals};
use crate::EventsError;
use crate::position_store::StoredPosition;
use journal::Seq;
use model::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Extension of a file that is not complete.
const PART: &str = "part";

/// Writes the files of one `[[cdr]]`.
#[derive(Debug)]
pub(crate) struct CdrWriter {
    options: CdrOptions,
    folder: PathBuf,
    appliance: String,
    /// The name of this node; empty without a cluster.
    node: String,
    format: LineFormat,
    state_file: StoredPosition<CdrState>,
    /// The stored state.
    stored: CdrState,
    /// The state to be stored once `lines` are written.
    next: CdrState,
    /// Lines beyond the stored length of the open file.
    lines: Vec<u8>,
    file: Option<File>,
}

impl CdrWriter {
    pub(crate) fn new(
        options: CdrOptions,
        folder: PathBuf,
        (appliance, node): (&str, &str),
        state_file: StoredPosition<CdrState>,
        stored: CdrState,
    ) -> Self {
        let format = LineFormat::new(&options);
        Self {
            options,
            folder,
            appliance: appliance.to_owned(),
            node: node.to_owned(),
            format,
            state_file,
            next: stored.clone(),
            stored,
            lines: Vec::new(),
            file: None,
        }
    }

    /// The last journal record whose final records are durable in the files.
    pub(crate) fn position(&self) -> Seq {
        self.stored.seq()
    }

    /// The number of records that are not stored yet.
    pub(crate) fn pending(&self) -> u64 {
        if self.next.file == self.stored.file {
            self.next.totals.records - self.stored.totals.records
        } else {
            0
        }
    }

    /// Discards everything that is not stored, renames a complete file, and cuts the open file to its stored length.
    pub(crate) fn resume(&mut self) -> Result<(), EventsError> {
        // After a failure, the stored state is unknown.
        if let Some(stored) = self.state_file.load()? {
            if stored.node != self.node {
                return Err(EventsError::OtherNode { node: stored.node });
            }
            self.stored = stored;
        }
        (self.next, self.file) = (self.stored.clone(), None);
        self.lines.clear();
        std::fs::create_dir_all(&self.folder).map_err(self.failed(&self.folder))?;
        self.finish_left_files()?;
        self.next.left.retain(|left| left.node != self.node);
        if self.stored.renaming {
            self.finish(self.stored.file.saturating_sub(1))?;
            (self.stored.renaming, self.next.renaming) = (false, false);
        }
        let path = self.part(self.stored.file);
        if self.stored.octets == 0 {
            return self.remove_unstored(&path);
        }
        let file = OpenOptions::new().write(true).open(&path).map_err(self.failed(&path))?;
        let length = file.metadata().map_err(self.failed(&path))?.len();
        if length < self.stored.octets {
            return Err(EventsError::CdrShort { path, octets: length, expected: self.stored.octets });
        }
        file.set_len(self.stored.octets).map_err(self.failed(&path))?;
        self.file = Some(file);
        Ok(())
    }

    /// Adds the CDR of a message. `at` is the time of the journal record in which it ended.
    pub(crate) fn add(&mut self, record: &CdrRecord, at: Timestamp) {
        let before = self.lines.len();
        let totals = &mut self.next.totals;
        if self.next.octets == 0 {
            totals.opened_at = at;
            let fields = header(&self.options.name, &self.appliance, self.next.file, totals);
            self.format.header(&mut self.lines, &fields);
        }
        totals.records += 1;
        totals.segments += record.segments;
        totals.captured = totals.captured.saturating_add(record.captured);
        totals.refunded = totals.refunded.saturating_add(record.refunded);
        self.format.record(&mut self.lines, &record.fields);
        self.next.octets += (self.lines.len() - before) as u64;
    }

    /// Counts journal records that were removed before they were read.
    pub(crate) fn add_lost(&mut self, records: u64) {
        self.next.totals.lost_records += records;
    }

    /// Whether the open file has reached its maximum size or age.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let CdrState { octets, totals, .. } = &self.next;
        *octets >= self.options.max_size || (*octets > 0 && now - totals.opened_at >= self.options.max_age)
    }

    /// Makes everything up to journal record `seq` durable, and closes the file if it is due.
    pub(crate) fn commit(&mut self, seq: Seq, now: Timestamp) -> Result<(), EventsError> {
        let is_due = self.is_due(now);
        if is_due {
            let fields = trailer(&self.options.name, self.next.file, &self.next.totals, now);
            self.format.trailer(&mut self.lines, &fields);
        }
        if !self.lines.is_empty() {
            self.write()?;
        }
        self.next.seq = seq.0;
        if is_due {
            (self.next.file, self.next.octets, self.next.renaming) = (self.next.file + 1, 0, true);
            self.next.totals = FileTotals::default();
            self.file = None;
        }
        if self.next == self.stored {
            return Ok(());
        }
        self.state_file.save(&self.next)?;
        self.stored = self.next.clone();
        if is_due {
            self.finish(self.stored.file.saturating_sub(1))?;
            // Stored with the next change. Until then, a start finds that the file already has its final name.
            self.next.renaming = false;
        }
        Ok(())
    }

    /// Writes and syncs the lines beyond the stored length.
    fn write(&mut self) -> Result<(), EventsError> {
        let path = self.part(self.next.file);
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true).mode(0o640);
                let file = options.open(&path).map_err(self.failed(&path))?;
                sync_folder(&self.folder).map_err(self.failed(&self.folder))?;
                file
            }
        };
        let written = file
            .seek(SeekFrom::Start(self.stored.octets))
            .and_then(|_| file.write_all(&self.lines))
            .and_then(|()| file.sync_data());
        written.map_err(self.failed(&path))?;
        self.lines.clear();
        self.file = Some(file);
        Ok(())
    }

    /// Renames a complete file to its final name, unless that is done already.
    fn finish(&self, number: u64) -> Result<(), EventsError> {
        let (part, path) = (self.part(number), self.folder.join(self.name(number)));
        match std::fs::rename(&part, &path) {
            // The previous process was killed after the renaming, and the file may have been collected since.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failed(&part)(error)),
            Ok(()) => sync_folder(&self.folder).map_err(self.failed(&self.folder)),
        }
    }

    /// Completes the files that this node left behind when another node became leader.
    pub(crate) fn finish_left_files(&self) -> Result<(), EventsError> {
        let mut own = self.stored.left.iter().filter(|left| left.node == self.node);
        own.try_for_each(|left| self.finish_left_file(left))
    }

    fn finish_left_file(&self, left: &AbandonedFile) -> Result<(), EventsError> {
        let path = self.part(left.file);
        if !left.is_closed && left.octets == 0 {
            return self.remove_unstored(&path);
        }
        if !left.is_closed {
            let mut file = match OpenOptions::new().write(true).open(&path) {
                // It already has its final name.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                opened => opened.map_err(self.failed(&path))?,
            };
            let octets = file.metadata().map_err(self.failed(&path))?.len();
            if octets < left.octets {
                return Err(EventsError::CdrShort { path, octets, expected: left.octets });
            }
            let mut line = Vec::new();
            let fields = trailer(&self.options.name, left.file, &left.totals, Timestamp::now());
            self.format.trailer(&mut line, &fields);
            let written = file
                .set_len(left.octets)
                .and_then(|()| file.seek(SeekFrom::End(0)))
                .and_then(|_| file.write_all(&line))
                .and_then(|()| file.sync_data());
            written.map_err(self.failed(&path))?;
        }
        self.finish(left.file)
    }

    /// Removes a file that no stored state names, if it exists.
    fn remove_unstored(&self, path: &Path) -> Result<(), EventsError> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(path)(error)),
            _ => Ok(()),
        }
    }

    fn name(&self, number: u64) -> String {
        format!("{}-{number:08}.{}", self.options.name, self.options.extension())
    }

    fn part(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}.{PART}", self.name(number)))
    }

    fn failed(&self, path: &Path) -> impl FnOnce(std::io::Error) -> EventsError + use<> {
        let path = path.to_owned();
        move |source| EventsError::CdrFile { path, source }
    }
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Number of the first file of a `[[cdr]]` without a state: one above the highest number in the folder.
pub(crate) fn first_number(folder: &Path, name: &str) -> u64 {
    let numbers = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
        let file = entry.file_name().into_string().ok()?;
        let rest = file.strip_prefix(name)?.strip_prefix('-')?;
        rest.split('.').next()?.parse::<u64>().ok()
    });
    numbers.max().unwrap_or(0).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::super::fields::{FieldValue, Fields};
    use super::*;
    use crate::position_store::PositionFiles;
    use configuration::Keys;
    use std::sync::Arc;
    use std::time::Duration;

    fn writer(folder: &Path) -> CdrWriter {
        node_writer(folder, "", "cdr")
    }

    /// The writer of a cluster node with a folder of its own, at the start of its lead.
    fn node_writer(folder: &Path, node: &str, files: &str) -> CdrWriter {
        let mut writer = unstarted_writer(folder, node, files);
        let stored = writer.stored.clone().continued_by(node);
        writer.state_file.save(&stored).unwrap();
        writer.resume().unwrap();
        writer
    }

    fn unstarted_writer(folder: &Path, node: &str, files: &str) -> CdrWriter {
        let options = CdrOptions {
            name: "b".to_owned(),
            columns: vec!["message".to_owned()],
            max_size: 200,
            max_age: Duration::from_secs(60),
            ..CdrOptions::defaults()
        };
        let store = Arc::new(PositionFiles::new(folder.join("events")));
        let mut file = StoredPosition::<CdrState>::new(store, "b.cdr".to_owned());
        let stored = file.load().unwrap().unwrap_or(CdrState {
            journal: 1,
            seq: 0,
            file: first_number(&folder.join(files), "b"),
            octets: 0,
            totals: FileTotals::default(),
            renaming: false,
            node: node.to_owned(),
            left: Vec::new(),
        });
        CdrWriter::new(options, folder.join(files), ("A", node), file, stored)
    }

    fn record(message: u64) -> CdrRecord {
        let fields = Fields(vec![("message", FieldValue::Text(message.to_string().into()))]);
        CdrRecord { fields, segments: 1, captured: 5, refunded: 0 }
    }

    /// The messages in all files, and the names of the files.
    fn content(folder: &Path) -> (Vec<u64>, Vec<String>) {
        content_of(&folder.join("cdr"))
    }

    fn content_of(folder: &Path) -> (Vec<u64>, Vec<String>) {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let texts = names.iter().map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
        let messages = texts
            .flat_map(|text| {
                let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines
            })
            .filter_map(|line| line.strip_prefix("R,").and_then(|rest| rest.trim().parse().ok()))
            .collect();
        (messages, names)
    }

    #[test]
    fn unstored_octets_are_cut_off_after_a_crash_at_any_point() {
        // Each message ends in a record of its own. The process dies after the given number of writes, with octets
        // beyond the stored length, and continues from the stored position.
        for death in 1..25 {
            let folder = tempfile::tempdir().unwrap();
            let mut current = writer(folder.path());
            for turn in 1..=40_u64 {
                let seq = current.position().0 + 1;
                if seq > 30 {
                    break;
                }
                current.add(&record(seq), Timestamp(1_000));
                if turn == death {
                    // Written and synced, but not stored.
                    current.write().unwrap();
                    current = writer(folder.path());
                } else {
                    current.commit(Seq(seq), Timestamp(1_001)).unwrap();
                }
            }
            let (messages, names) = content(folder.path());
            assert_eq!(messages, (1..=30).collect::<Vec<_>>(), "{death}");
            for (number, name) in (1..).zip(&names) {
                assert!(name.starts_with(&format!("b-{number:08}.csv")), "{names:?}");
            }
        }
    }

    #[test]
    fn a_complete_file_gets_its_name_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = writer(folder.path());
        first.add(&record(1), Timestamp(1_000));
        // The file has reached its maximum age.
        first.commit(Seq(1), Timestamp(61_000)).unwrap();
        assert_eq!(content(folder.path()).1, ["b-00000001.csv"]);
        // The state after the process dies before the renaming.
        let path = folder.path().join("cdr/b-00000001.csv");
        std::fs::rename(&path, path.with_extension("csv.part")).unwrap();
        let mut second = writer(folder.path());
        assert_eq!(content(folder.path()).1, ["b-00000001.csv"]);
        second.add(&record(2), Timestamp(62_000));
        second.commit(Seq(2), Timestamp(62_000)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.ends_with("T,b,1,1,1,5,0,0,1970-01-01T00:00:01.000Z,1970-01-01T00:01:01.000Z\r\n"),
            "{text}"
        );
        assert_eq!(
            content(folder.path()),
            (vec![1, 2], vec!["b-00000001.csv".into(), "b-00000002.csv.part".into()])
        );
        // Without a state, the numbering continues.
        std::fs::remove_file(folder.path().join("events/b.cdr")).unwrap();
        assert_eq!(first_number(&folder.path().join("cdr"), "b"), 3);
    }

    #[test]
    fn a_file_that_lost_octets_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = writer(folder.path());
        first.add(&record(1), Timestamp(1_000));
        first.commit(Seq(1), Timestamp(1_000)).unwrap();
        std::fs::write(folder.path().join("cdr/b-00000001.csv.part"), "H").unwrap();
        let error = first.resume().unwrap_err().to_string();
        assert!(error.contains("has 1 octets"), "{error}");
    }

    #[test]
    fn nodes_write_each_record_once_in_files_with_consecutive_numbers() {
        // For some values, a leader dies when it has begun a file that no stored state names.
        for commits in 1..40 {
            let folder = tempfile::tempdir().unwrap();
            let nodes = [("a", "on-a"), ("b", "on-b")];
            let mut next = 1;
            // The nodes lead in turn; each dies with octets that are not stored.
            for (node, files) in nodes.into_iter().cycle().take(6) {
                let mut leader = node_writer(folder.path(), node, files);
                assert_eq!(leader.position(), Seq(next - 1));
                for _ in 0..commits {
                    leader.add(&record(next), Timestamp(1_000));
                    leader.commit(Seq(next), Timestamp(1_001)).unwrap();
                    next += 1;
                }
                leader.add(&record(next), Timestamp(1_000));
                leader.write().unwrap();
            }
            // A returning node follows, and completes the files that it left behind.
            let (mut messages, mut names) = (Vec::new(), Vec::new());
            for (node, files) in nodes {
                let follower = unstarted_writer(folder.path(), node, files);
                assert_eq!(follower.stored.node, "b");
                follower.finish_left_files().unwrap();
                follower.finish_left_files().unwrap();
                let (found, mut found_names) = content_of(&folder.path().join(files));
                messages.extend(found);
                names.append(&mut found_names);
            }
            messages.sort_unstable();
            names.sort();
            // The last leader has written a record that is not stored.
            assert_eq!(messages, (1..=next).collect::<Vec<_>>(), "{commits}");
            let last = names.pop().unwrap();
            assert!(last.ends_with(".csv.part"), "{last}");
            for (number, name) in (1..).zip(&names) {
                assert_eq!(*name, format!("b-{number:08}.csv"));
            }
        }
    }

    #[test]
    fn a_node_that_was_replaced_writes_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = node_writer(folder.path(), "a", "on-a");
        first.add(&record(1), Timestamp(1_000));
        first.commit(Seq(1), Timestamp(1_001)).unwrap();
        let _second = node_writer(folder.path(), "b", "on-b");
        let error = first.resume().unwrap_err().to_string();
        assert!(error.contains("node \"b\""), "{error}");
    }
}
