use crate::sealed_row::SealedRow;
use crate::shown_trace::redact_trace;
use crate::sql::{COLUMNS, Cell, ColumnType};
use crate::trace::{DecodedTrace, decode_trace};
use api::{FinishedMessageView, FinishedPriceView};
use codec::ContentCipher;
use model::{
    AccountScope, Direction, FinalState, MessageId, NumberDisplay, PriceState, Timestamp, hex, unescape,
};
use serde_json::value::RawValue;

/// A message as read from the archive.
///
/// Numbers, names and peer message ids are the original text; control characters and invalid UTF-8 appear as `\x1f`, a
/// backslash as `\\`.
#[derive(Debug, Clone)]
pub struct Record {
    /// The message id.
    pub id: MessageId,
    /// The time of acceptance.
    pub accepted_at: Timestamp,
    /// The time of the final state.
    pub ended_at: Timestamp,
    /// The direction.
    pub direction: Direction,
    /// The account: the origin of an MT message, the destination of an MO message.
    pub account: String,
    /// The peer; empty if the message was never submitted to one.
    pub peer: String,
    /// The source address.
    pub source: String,
    /// The source's type of number.
    pub source_ton: u8,
    /// The source's numbering plan.
    pub source_npi: u8,
    /// The destination address.
    pub destination: String,
    /// The destination's type of number.
    pub destination_ton: u8,
    /// The destination's numbering plan.
    pub destination_npi: u8,
    /// The final state.
    pub state: FinalState,
    /// The last relevant error code, 0 for none.
    pub error: u32,
    /// The peer's message id of the first segment.
    pub peer_message_id: Option<String>,
    /// The number of submit attempts.
    pub attempts: u16,
    /// The priority, 0 to 3.
    pub priority: u8,
    /// The data coding scheme.
    pub data_coding: u8,
    /// Whether the text begins with a user data header.
    pub udhi: bool,
    /// The text, if requested.
    pub body: Option<Vec<u8>>,
    /// The plugin that routed the message.
    pub router: String,
    /// The plugin's version.
    pub router_version: String,
    /// The plugin's note.
    pub note: Option<String>,
    /// Submission, route and steps as JSON, if requested.
    pub trace: Option<Box<RawValue>>,
    /// The price; `None` if no biller was called.
    pub price: Option<FinishedPriceView>,
    /// The time at which the content was erased; `None` if it was not erased.
    pub content_erased_at: Option<Timestamp>,
}

impl Record {
    /// Decodes the octets of `source`, `destination` or `peer_message_id`.
    #[must_use]
    pub fn octets(text: &str) -> Option<Vec<u8>> {
        unescape(text)
    }

    /// The id of its submission, from its trace, if the submission had several destinations; otherwise, or without the
    /// trace, `None`.
    #[must_use]
    pub fn submission(&self) -> Option<MessageId> {
        self.decoded_trace()?.submission
    }

    /// The record as a scope may see it; `None` if the message belongs to an account outside the scope. For a branch, data
    /// that may name others is removed: the trace, the note of the router, and peers that are accounts of others.
    #[must_use]
    pub fn within(self, scope: &AccountScope) -> Option<Self> {
        if *scope == AccountScope::Everything {
            return Some(self);
        }
        scope.has_account(&self.account).then(|| Self {
            peer: scope.shown_peer(&self.peer).to_owned(),
            note: None,
            trace: None,
            price: self.price.map(|price| FinishedPriceView {
                account: price.account.filter(|name| scope.has_ledger_account(name)),
                ..price
            }),
            ..self
        })
    }

    /// The record for display: with numbers in this form, and without texts in the trace unless `body` is set.
    #[must_use]
    pub fn redacted(mut self, numbers: NumberDisplay, body: bool) -> Self {
        if numbers == NumberDisplay::Masked {
            self.source = numbers.text(self.source);
            self.destination = numbers.text(self.destination);
        }
        self.trace = self.trace.and_then(|trace| redact_trace(&trace, numbers, body));
        self
    }

    /// The decoded trace; `None` if it was not requested or cannot be decoded.
    #[must_use]
    pub fn decoded_trace(&self) -> Option<DecodedTrace> {
        decode_trace(self.trace.as_ref()?.get())
    }
}

impl From<Record> for FinishedMessageView {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            accepted_at: format_time(record.accepted_at),
            ended_at: format_time(record.ended_at),
            direction: record.direction,
            account: record.account,
            peer: record.peer,
            source: record.source,
            source_ton: record.source_ton,
            source_npi: record.source_npi,
            destination: record.destination,
            destination_ton: record.destination_ton,
            destination_npi: record.destination_npi,
            state: record.state,
            error: record.error,
            peer_message_id: record.peer_message_id,
            attempts: record.attempts,
            priority: record.priority,
            data_coding: record.data_coding,
            udhi: record.udhi,
            body: record.body.as_deref().map(hex),
            router: record.router,
            router_version: record.router_version,
            note: record.note,
            trace: record.trace,
            price: record.price,
            content_erased_at: record.content_erased_at.map(format_time),
        }
    }
}

/// The columns of a record, with body and trace only if requested.
pub(crate) fn columns(body: bool, trace: bool) -> Vec<(&'static str, ColumnType)> {
    COLUMNS
        .into_iter()
        .filter(|(name, _)| match *name {
            "body" => body,
            "trace" => trace,
            // Read by replays only.
            "decision" => false,
            _ => true,
        })
        .collect()
}

/// Builds a record from the cells of [`columns`], and decrypts its content. Without the key, the content counts as erased.
/// The error names the malformed column.
pub(crate) fn record(
    columns: &[(&'static str, ColumnType)],
    cells: Vec<Cell>,
    cipher: Option<&dyn ContentCipher>,
) -> Result<Record, (i64, String)> {
    let mut cells: Vec<_> = columns.iter().map(|(name, _)| *name).zip(cells).collect();
    let id = cells.first().and_then(|(_, cell)| cell.number()).unwrap_or(0);
    let damaged = |what: &str| (id, what.to_owned());
    let mut take = |name: &'static str| {
        let cell = cells.iter_mut().find(|(column, _)| *column == name);
        cell.map_or(Cell::Null, |(_, cell)| std::mem::replace(cell, Cell::Null))
    };
    macro_rules! number {
        ($name:literal) => {
            take($name).number().and_then(|number| number.try_into().ok()).ok_or_else(|| damaged($name))?
        };
    }
    macro_rules! text {
        ($name:literal) => {
            take($name).into_text().ok_or_else(|| damaged($name))?
        };
    }
    let id = MessageId(number!("id"));
    let ended_at = Timestamp(number!("ended_at"));
    let mut content_erased_at = match take("content_erased_at").number() {
        Some(at) => Some(Timestamp(u64::try_from(at).map_err(|_| damaged("content_erased_at"))?)),
        None => None,
    };
    let has_body = columns.iter().any(|(name, _)| *name == "body");
    let (mut body, mut trace) =
        (has_body.then(|| take("body").into_octets().unwrap_or_default()), take("trace").into_text());
    if let Some(key) = take("text_key").number()
        && content_erased_at.is_none()
    {
        let mut content = SealedRow { id, key: key.cast_unsigned(), body, trace };
        if let Err(missing) = content.open(cipher) {
            let at = missing.destroyed_at.unwrap_or(ended_at);
            content.erase(at);
            content_erased_at = Some(at);
        }
        (body, trace) = (content.body, content.trace);
    }
    Ok(Record {
        id,
        accepted_at: Timestamp(number!("accepted_at")),
        ended_at,
        direction: Direction::from_name(&text!("direction")).ok_or_else(|| damaged("direction"))?,
        account: text!("account"),
        peer: text!("peer"),
        source: text!("source"),
        source_ton: number!("source_ton"),
        source_npi: number!("source_npi"),
        destination: text!("destination"),
        destination_ton: number!("destination_ton"),
        destination_npi: number!("destination_npi"),
        state: state(&text!("state")).ok_or_else(|| damaged("state"))?,
        error: number!("error"),
        peer_message_id: take("peer_message_id").into_text(),
        attempts: number!("attempts"),
        priority: number!("priority"),
        data_coding: number!("data_coding"),
        udhi: take("udhi").number() == Some(1),
        body,
        router: text!("router"),
        router_version: text!("router_version"),
        note: take("note").into_text(),
        trace: match trace {
            Some(text) => Some(RawValue::from_string(text).map_err(|_| damaged("trace"))?),
            None => None,
        },
        price: match take("price").number() {
            Some(amount) => Some(FinishedPriceView {
                amount: u64::try_from(amount).map_err(|_| damaged("price"))?,
                account: take("price_account").into_text(),
                state: PriceState::from_name(&text!("price_state")).ok_or_else(|| damaged("price_state"))?,
            }),
            None => None,
        },
        content_erased_at,
    })
}

fn state(name: &str) -> Option<FinalState> {
    FinalState::ALL.into_iter().find(|state| state.name() == name)
}

/// A time in RFC 3339.
pub(crate) fn format_time(at: Timestamp) -> String {
    let nanoseconds = i128::from(at.0) * 1_000_000;
    time::OffsetDateTime::from_unix_timestamp_nanos(nanoseconds)
        .ok()
        .and_then(|at| at.format(&time::format_description::well_known::Rfc3339).ok())
        // Beyond the year 9999.
        .unwrap_or_else(|| format!("@{}", at.0))
}
