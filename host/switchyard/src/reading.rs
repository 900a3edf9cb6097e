//! What subscribers on the command line read: the engine and the archive, as the shell's door asks for them.

use crate::archiving::{History, hexadecimal};
use crate::causes::Causes;
use crate::core_loop::CoreHandle;
use archive::{Cursor, Filter, Record, Side, Wanted};
use engine::Doing;
use model::{Address, Final, MessageId, Segment, Text};
use serde_json::Value;
use shell::{Asked, Ended, Kept, Older, Records};

/// The engine, and the archive where there is one.
pub(crate) struct Reading {
    pub(crate) core: CoreHandle,
    pub(crate) history: Option<History>,
    pub(crate) causes: Causes,
}

/// What a message does, as far as it means anything to its sender or its addressee.
fn word(doing: Doing) -> &'static str {
    match doing {
        Doing::Suspended => "held",
        Doing::Submitted => "submitted",
        Doing::Deferred => "deferred",
        Doing::Held => "held",
        Doing::Uncertain => "uncertain",
        Doing::AwaitingReceipt => "responded",
        Doing::Ending => "ending",
        _ => "queued",
    }
}

impl Reading {
    fn kept(&self, record: &Record) -> Kept {
        let address = |ton, npi, text: &str| {
            Address::new(ton, npi, &Record::octets(text).unwrap_or_else(|| text.as_bytes().to_vec()))
        };
        let trace: Value = record
            .trace
            .as_ref()
            .and_then(|trace| serde_json::from_str(trace.get()).ok())
            .unwrap_or_default();
        let text = Text {
            octets: record.body.clone().unwrap_or_default().into(),
            data_coding: record.data_coding,
            udhi: record.udhi,
            payload: false,
        };
        let tlvs = trace["submission"]["tlvs"].as_str().and_then(hexadecimal).unwrap_or_default();
        Kept {
            id: record.id,
            source: address(record.source_ton, record.source_npi, &record.source),
            destination: address(record.destination_ton, record.destination_npi, &record.destination),
            segment: Segment::of(&text, &tlvs),
            text,
            accepted_at: record.accepted_at,
            ended: Some(Ended {
                state: record.state,
                at: record.ended_at,
                error: record.error,
                cause: self.causes.of_archived(record.error, &trace),
            }),
        }
    }
}

impl Records for Reading {
    fn doing(&self, ids: Vec<MessageId>) -> Vec<Option<&'static str>> {
        let count = ids.len();
        let look = move |engine: &engine::Engine, _| -> Vec<_> {
            ids.iter().map(|id| engine.message(*id).map(|status| word(status.doing))).collect()
        };
        self.core.look(look).unwrap_or_else(|| vec![None; count])
    }

    fn cause(&self, ended: &Final) -> Option<String> {
        self.causes.of(ended)
    }

    fn archived(&self, asked: Asked) -> Result<Older, String> {
        let Some(history) = &self.history else { return Ok(Older::default()) };
        let filter = Filter {
            number: asked.number.map(|number| number.to_string()),
            side: if asked.inbox { Side::Destination } else { Side::Either },
            from: asked.accepted.as_ref().map(|accepted| accepted.start),
            until: asked.accepted.as_ref().map(|accepted| accepted.end),
            ..Filter::default()
        };
        // SAR TLVs and the causes of failures stand in the trace.
        let wanted = Wanted { body: true, trace: true };
        let page = history.archive.page(&filter, Some(Cursor::before(asked.before)), asked.most, wanted);
        let page = history.runtime.block_on(page).map_err(|error| error.to_string())?;
        Ok(Older {
            messages: page.records.iter().map(|record| self.kept(record)).collect(),
            next: page.next.map(Cursor::id),
        })
    }
}
