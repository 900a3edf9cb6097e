//! `switchyard journal`: shows the journal of a data directory, for support and for tests.

use crate::restore::{STORE, format_time};
use anyhow::Result;
use clap::{Args, Subcommand};
use journal::{Entry, JournalReader, Seq};
use model::{Batch, Message};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Show and verify the journal of a data directory, also while a daemon uses it.
#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// List the files of the journal, with the range of their records.
    List(DataDirectory),
    /// Show records with their changes and messages.
    ///
    /// Numbers are masked and texts are omitted, unless `--unmasked` is given.
    Show(ShowCommand),
    /// Read every record, and check that it follows the previous one and can be decoded.
    Verify(DataDirectory),
}

/// The data directory.
#[derive(Debug, Args)]
pub(crate) struct DataDirectory {
    /// The data directory (`data` in `[appliance]`).
    #[arg(long)]
    data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ShowCommand {
    #[command(flatten)]
    directory: DataDirectory,
    /// The first record to show; by default, the last records are shown.
    #[arg(long)]
    from: Option<u64>,
    /// The number of records to show.
    #[arg(long, default_value_t = 20)]
    count: u64,
    /// Show full numbers and texts.
    #[arg(long)]
    unmasked: bool,
}

impl DataDirectory {
    fn open(&self) -> Result<JournalReader> {
        let path = store::journal_path(&self.data.join(STORE));
        Ok(JournalReader::open(&path)?)
    }
}

impl JournalCommand {
    /// Runs the command and returns its output.
    pub(crate) fn run(&self) -> Result<String> {
        match self {
            Self::List(directory) => Ok(list(&directory.open()?)),
            Self::Show(command) => command.run(),
            Self::Verify(directory) => verify(&mut directory.open()?),
        }
    }
}

fn list(reader: &JournalReader) -> String {
    let mut text = format!("{:<24} {:>12} {:>12} {:>12}  begun\n", "file", "first", "last", "octets");
    for segment in reader.segments() {
        let name = segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let begun = format_time(segment.begun);
        let (first, last, octets) = (segment.first, segment.last, segment.octets);
        let _ = writeln!(text, "{name:<24} {first:>12} {last:>12} {octets:>12}  {begun}");
    }
    text
}

fn verify(reader: &mut JournalReader) -> Result<String> {
    let (mut records, mut octets, mut messages) = (0_u64, 0, 0);
    let oldest = reader.oldest();
    for record in reader.records(oldest) {
        let record = record?;
        if let Some(batch) = store::decode_record(&record)? {
            messages += batch.accepted.len();
        }
        records += 1;
        octets += record.payload().map_or(0, <[u8]>::len);
    }
    Ok(format!(
        "{records} records from {oldest} on are intact: {octets} octets, {messages} accepted messages"
    ))
}

impl ShowCommand {
    fn run(&self) -> Result<String> {
        let mut reader = self.directory.open()?;
        let newest = reader.head().seq.0.saturating_sub(self.count.saturating_sub(1));
        let from = Seq(self.from.unwrap_or(newest)).max(reader.oldest());
        let mut text = String::new();
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        for record in reader.records(from).take(count) {
            let record = record?;
            let _ = write!(text, "{} term {} {}", record.seq, record.term, format_time(record.at));
            match (&record.entry, store::decode_record(&record)?) {
                (Entry::Claim { node }, _) => {
                    let _ = writeln!(text, " claim of node {}", node.0);
                }
                (_, Some(batch)) => self.describe(&mut text, &batch),
                (Entry::Payload(_), None) => {}
            }
        }
        Ok(text)
    }

    fn describe(&self, text: &mut String, batch: &Batch) {
        for (name, count) in sections(batch) {
            if count > 0 {
                let _ = write!(text, ", {count} {name}");
            }
        }
        text.push('\n');
        for message in &batch.accepted {
            let _ = writeln!(text, "  accepted {}", self.message(message));
        }
        for message in &batch.replaced {
            let _ = writeln!(text, "  replaced {}", self.message(message));
        }
        for attempt in &batch.submit_attempts {
            let _ = writeln!(text, "  submitted {} attempt {}", attempt.id, attempt.attempt);
        }
        for (id, ended) in &batch.finished {
            let _ = writeln!(text, "  finished {id} {:?}", ended.state);
        }
    }

    fn message(&self, message: &Message) -> String {
        let Message { id, source, destination, text, .. } = message;
        let length = text.octets.len();
        if self.unmasked {
            let (text, _) = ports::text::display(text);
            format!("{id} from {} to {}, {length} octets: {text:?}", source.text(), destination.text())
        } else {
            format!("{id} from {} to {}, {length} octets", source.masked(), destination.masked())
        }
    }
}

/// The sections of a batch, with the number of changes in each.
fn sections(batch: &Batch) -> [(&'static str, usize); 23] {
    [
        ("names", batch.names.len()),
        ("groups", batch.group_names.len() + batch.groups.len()),
        ("accepted", batch.accepted.len()),
        ("replaced", batch.replaced.len()),
        ("submit attempts", batch.submit_attempts.len()),
        ("attempts done", batch.submit_rows_done.len()),
        ("progress", batch.progress.len()),
        ("finished", batch.finished.len()),
        ("dropped", batch.dropped.len()),
        ("idempotency keys", batch.idempotency_keys.len()),
        ("orphan DLRs", batch.orphan_dlrs.len()),
        ("orphan DLRs done", batch.orphan_dlrs_done.len()),
        ("opt-outs", batch.opt_outs.len()),
        ("balances", batch.balances.len()),
        ("ledger operations", batch.operations.len()),
        ("settlements", batch.settlements.len()),
        ("pace days", batch.pace_days.len()),
        ("notices", batch.notices.len()),
        ("queue actions", batch.queue_actions.len()),
        ("queue actions done", batch.queue_actions_done.len()),
        ("archived", batch.archived.len()),
        ("pool entries", batch.pools.journal.iter().map(|part| part.entries.len()).sum()),
        ("pool numbers", batch.pools.numbers.len()),
    ]
}
