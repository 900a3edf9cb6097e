use crate::Direction;
use crate::archived::PriceState;
use crate::sql::{COLUMNS, Cell, Kind};
use crate::storable::stored;
use model::{FinalState, MessageId, Timestamp};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// One message as it is read from the archive.
///
/// Numbers, names and peers' ids are texts as they came; control characters and octets that are no UTF-8 appear as `\x1f`,
/// a backslash as `\\`. Times are shown by RFC 3339, in UTC.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// The message's id, as decimal digits.
    #[serde(serialize_with = "digits")]
    pub id: MessageId,
    /// When it was accepted.
    #[serde(serialize_with = "rfc3339")]
    pub accepted_at: Timestamp,
    /// When it ended.
    #[serde(serialize_with = "rfc3339")]
    pub ended_at: Timestamp,
    /// Which way it went.
    pub direction: Direction,
    /// The customer of the house: origin of an MT message, addressee of an MO message.
    pub account: String,
    /// The gateway; empty where it never came to one.
    pub peer: String,
    /// The source address's value.
    pub source: String,
    /// Its type of number.
    pub source_ton: u8,
    /// Its numbering plan.
    pub source_npi: u8,
    /// The destination address's value.
    pub destination: String,
    /// Its type of number.
    pub destination_ton: u8,
    /// Its numbering plan.
    pub destination_npi: u8,
    /// How it ended.
    pub state: FinalState,
    /// The last error code that mattered, 0 where there was none.
    pub error: u32,
    /// The peer's id of its first part.
    pub peer_message_id: Option<String>,
    /// How often it was handed over.
    pub attempts: u16,
    /// Urgency, 0 to 3.
    pub priority: u8,
    /// Data coding scheme.
    pub data_coding: u8,
    /// The body begins with a user data header.
    pub udhi: bool,
    /// The body's octets, where they were asked for; shown in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "hexadecimal")]
    pub body: Option<Vec<u8>>,
    /// The plugin that decided on its route.
    pub router: String,
    /// That plugin's version.
    pub router_version: String,
    /// The plugin's note.
    pub note: Option<String>,
    /// How it was submitted and routed, and all its steps, as JSON; where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<RawValue>>,
    /// What it was to cost, where a biller was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<RecordPrice>,
}

/// What a message was to cost, and what became of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordPrice {
    /// Millionths of the house's currency; 0 where it was free.
    pub amount: u64,
    /// The ledger account; `None` where it was free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Paid, given back, or neither.
    #[serde(serialize_with = "state_name")]
    pub state: PriceState,
}

impl Record {
    /// The octets that a text of this record stands for: of `source`, `destination` or `peer_message_id`.
    #[must_use]
    pub fn octets(text: &str) -> Option<Vec<u8>> {
        stored(text)
    }

    /// The id of the submission to several destinations that it was part of, as its trace has it; `None` where it was submitted
    /// alone, or without the trace.
    #[must_use]
    pub fn submission(&self) -> Option<MessageId> {
        #[derive(Deserialize)]
        struct Submission {
            id: Option<String>,
        }
        #[derive(Deserialize)]
        struct Trace {
            submission: Submission,
        }
        let trace: Trace = serde_json::from_str(self.trace.as_ref()?.get()).ok()?;
        trace.submission.id?.parse().ok()
    }
}

/// Columns of a record, without body and trace unless they are wanted.
pub(crate) fn columns(body: bool, trace: bool) -> Vec<(&'static str, Kind)> {
    COLUMNS
        .into_iter()
        .filter(|(name, _)| match *name {
            "body" => body,
            "trace" => trace,
            // For replays only.
            "decision" => false,
            _ => true,
        })
        .collect()
}

/// A record from the cells of [`columns`]; the error says which column is not as we write it.
pub(crate) fn record(columns: &[(&'static str, Kind)], cells: Vec<Cell>) -> Result<Record, (i64, String)> {
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
    Ok(Record {
        id: MessageId(number!("id")),
        accepted_at: Timestamp(number!("accepted_at")),
        ended_at: Timestamp(number!("ended_at")),
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
        body: columns
            .iter()
            .any(|(name, _)| *name == "body")
            .then(|| take("body").into_octets().unwrap_or_default()),
        router: text!("router"),
        router_version: text!("router_version"),
        note: take("note").into_text(),
        trace: match take("trace").into_text() {
            Some(text) => Some(RawValue::from_string(text).map_err(|_| damaged("trace"))?),
            None => None,
        },
        price: match take("price").number() {
            Some(amount) => Some(RecordPrice {
                amount: u64::try_from(amount).map_err(|_| damaged("price"))?,
                account: take("price_account").into_text(),
                state: PriceState::from_name(&text!("price_state")).ok_or_else(|| damaged("price_state"))?,
            }),
            None => None,
        },
    })
}

fn state(name: &str) -> Option<FinalState> {
    FinalState::ALL.into_iter().find(|state| state.name() == name)
}

/// A time as people and machines read it.
pub(crate) fn shown(at: Timestamp) -> String {
    let nanoseconds = i128::from(at.0) * 1_000_000;
    time::OffsetDateTime::from_unix_timestamp_nanos(nanoseconds)
        .ok()
        .and_then(|at| at.format(&time::format_description::well_known::Rfc3339).ok())
        // Beyond the year 9999.
        .unwrap_or_else(|| format!("@{}", at.0))
}

/// Octets in hexadecimal.
pub(crate) fn hex(octets: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(octets.len() * 2);
    for octet in octets {
        // Writing into a string cannot fail.
        let _ = write!(text, "{octet:02x}");
    }
    text
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn state_name<S: Serializer>(state: &PriceState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.name())
}

fn digits<S: Serializer>(id: &MessageId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

fn rfc3339<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown(*at))
}

// The signature is serde's.
#[allow(clippy::ref_option)]
fn hexadecimal<S: Serializer>(body: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(body.as_deref().unwrap_or_default()))
}
