//! Messages for users of the local socket, from engine and archive.

use crate::archiving::ArchiveReader;
use crate::core_handle::CoreHandle;
use crate::error_causes::ErrorCauses;
use archive::{ArchiveFilter, Record, RecordFields, Side};
use engine::MessageState;
use model::{Address, FinalRecord, MessageId, Segment, Text};
use shell::{ShellArchivePage, ShellArchiveQuery, ShellRecord, ShellRecordEnd, ShellRecordSource};

/// Access to the engine, and to the archive if there is one.
pub(crate) struct EngineShellRecords {
    pub(crate) core: CoreHandle,
    pub(crate) archive_reader: Option<ArchiveReader>,
    pub(crate) causes: ErrorCauses,
}

/// The state of a message, as shown to its sender and receiver.
fn state_name(state: MessageState) -> &'static str {
    match state {
        MessageState::Suspended => "held",
        MessageState::Submitted => "submitted",
        MessageState::Deferred => "deferred",
        MessageState::Held => "held",
        MessageState::Uncertain => "uncertain",
        MessageState::AwaitingDlr => "responded",
        MessageState::Ending => "ending",
        _ => "queued",
    }
}

impl EngineShellRecords {
    fn shell_record(&self, record: &Record) -> ShellRecord {
        let address = |ton, npi, text: &str| {
            Address::new(ton, npi, &Record::octets(text).unwrap_or_else(|| text.as_bytes().to_vec()))
        };
        let trace = record.decoded_trace().unwrap_or_default();
        let text = Text {
            octets: record.body.clone().unwrap_or_default().into(),
            data_coding: record.data_coding,
            udhi: record.udhi,
            payload: false,
        };
        ShellRecord {
            id: record.id,
            source: address(record.source_ton, record.source_npi, &record.source),
            destination: address(record.destination_ton, record.destination_npi, &record.destination),
            segment: Segment::of(&text, &trace.tlvs),
            text,
            accepted_at: record.accepted_at,
            end: Some(ShellRecordEnd {
                state: record.state,
                at: record.ended_at,
                error: record.error,
                cause: self.causes.of_steps(record.error, &trace.steps),
            }),
        }
    }
}

impl ShellRecordSource for EngineShellRecords {
    fn current_states(&self, ids: Vec<MessageId>) -> Vec<Option<&'static str>> {
        let count = ids.len();
        let query = move |engine: &engine::Engine, _| -> Vec<_> {
            ids.iter().map(|id| engine.message(*id).map(|status| state_name(status.state))).collect()
        };
        self.core.query(query).unwrap_or_else(|| vec![None; count])
    }

    fn describe_error(&self, ended: &FinalRecord) -> Option<String> {
        self.causes.of_final(ended)
    }

    fn search_archive(&self, query: ShellArchiveQuery) -> Result<ShellArchivePage, String> {
        let Some(archive_reader) = &self.archive_reader else { return Ok(ShellArchivePage::default()) };
        let filter = ArchiveFilter {
            number: query.number.map(|number| number.to_string()),
            side: if query.inbox { Side::Destination } else { Side::Either },
            from: query.accepted.as_ref().map(|accepted| accepted.start),
            until: query.accepted.as_ref().map(|accepted| accepted.end),
            ..ArchiveFilter::default()
        };
        // SAR TLVs and error causes are in the trace.
        let fields = RecordFields { body: true, trace: true };
        let page = archive_reader.archive.page(&filter, Some(query.before), query.limit, fields);
        let page = archive_reader.runtime.block_on(page).map_err(|error| error.to_string())?;
        Ok(ShellArchivePage {
            messages: page.records.iter().map(|record| self.shell_record(record)).collect(),
            next: page.next,
        })
    }
}
