//! What subscribers on the command line read: the engine and the archive, as the shell's door asks for them.

use crate::archiving::History;
use crate::core_loop::CoreHandle;
use archive::{Cursor, Filter, Record, Side, Wanted};
use engine::Doing;
use model::{Address, MessageId, Text};
use shell::{Asked, Ended, Kept, Older, Records};

/// The engine, and the archive where there is one.
pub(crate) struct Reading {
    pub(crate) core: CoreHandle,
    pub(crate) history: Option<History>,
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

fn kept(record: &Record) -> Kept {
    let address = |ton, npi, text: &str| {
        Address::new(ton, npi, &Record::octets(text).unwrap_or_else(|| text.as_bytes().to_vec()))
    };
    Kept {
        id: record.id,
        source: address(record.source_ton, record.source_npi, &record.source),
        destination: address(record.destination_ton, record.destination_npi, &record.destination),
        text: Text {
            octets: record.body.clone().unwrap_or_default().into(),
            data_coding: record.data_coding,
            udhi: record.udhi,
            payload: false,
        },
        accepted_at: record.accepted_at,
        ended: Some(Ended { state: record.state, at: record.ended_at, error: record.error }),
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

    fn archived(&self, asked: Asked) -> Result<Older, String> {
        let Some(history) = &self.history else { return Ok(Older::default()) };
        let filter = Filter {
            number: asked.number.map(|number| number.to_string()),
            side: if asked.inbox { Side::Destination } else { Side::Either },
            ..Filter::default()
        };
        let wanted = Wanted { body: true, trace: false };
        let page = history.archive.page(&filter, Some(Cursor::before(asked.before)), asked.most, wanted);
        let page = history.runtime.block_on(page).map_err(|error| error.to_string())?;
        Ok(Older { messages: page.records.iter().map(kept).collect(), next: page.next.map(Cursor::id) })
    }
}
