//! Route maintenance between gateways and their directory (SGIP 1.2 §4.2.3.6 to §4.2.3.15). An SP platform only needs to
//! know these commands when it sees them, so their layouts are a table.

use super::{Command, RESERVE};
use crate::ResultCode;
use crate::wire::{Ended, Reader, Write};
use bytes::{Bytes, BytesMut};

/// One field of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteField {
    /// Text of this width.
    Text(usize),
    /// A number of one octet.
    Octet,
    /// A number of four octets.
    Number,
}

/// What stands in a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RouteValue {
    /// In a [`RouteField::Text`].
    Text(Bytes),
    /// In a [`RouteField::Octet`] or [`RouteField::Number`].
    Number(u32),
}

/// One row of the answer to a route query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteRow {
    /// Type, number, mark, code, gateway, its address, login, password.
    pub fields: Vec<RouteValue>,
    /// Kept as it came.
    pub reserve: [u8; RESERVE],
}

use RouteField::{Number, Octet, Text};

const ROW: &[RouteField] = &[Octet, Text(21), Text(10), Text(5), Text(6), Number, Text(16), Text(16)];
const ROW_LENGTH: usize = 87;

impl RouteField {
    /// The fields of a command, its Reserve left out; empty for commands that are not of this family.
    #[must_use]
    pub fn layout(command: Command) -> &'static [Self] {
        match command {
            Command::AddSp => &[Text(6), Text(21), Text(10), Text(5)],
            Command::ModifySp => &[Text(6), Text(21), Text(10), Text(21), Text(10), Text(5)],
            Command::DeleteSp => &[Text(6), Text(21), Text(10)],
            Command::QueryRoute => &[Octet, Text(21), Text(10)],
            Command::AddTeleSeg => &[Text(6), Text(7), Text(1), Text(4)],
            Command::ModifyTeleSeg => &[Text(6), Text(7), Text(7), Text(1), Text(4)],
            Command::DeleteTeleSeg => &[Text(6), Text(7)],
            Command::AddSmg => &[Text(6), Number, Text(16), Text(16)],
            Command::ModifySmg => &[Text(6), Text(6), Number, Text(16), Text(16)],
            Command::DeleteSmg => &[Text(6)],
            _ => &[],
        }
    }
}

fn encode_fields(layout: &[RouteField], values: &[RouteValue], out: &mut BytesMut) {
    for (index, field) in layout.iter().enumerate() {
        let value = values.get(index);
        match (field, value) {
            (Text(width), Some(RouteValue::Text(text))) => out.text(text, *width),
            (Text(width), _) => out.text(&[], *width),
            (Octet, Some(RouteValue::Number(number))) => out.u8(u8::try_from(*number).unwrap_or(u8::MAX)),
            (Octet, _) => out.u8(0),
            (Number, Some(RouteValue::Number(number))) => out.u32(*number),
            (Number, _) => out.u32(0),
        }
    }
}

fn decode_fields(layout: &[RouteField], reader: &mut Reader<'_>) -> Result<Vec<RouteValue>, Ended> {
    layout
        .iter()
        .map(|field| {
            Ok(match field {
                Text(width) => RouteValue::Text(reader.text(*width)?),
                Octet => RouteValue::Number(u32::from(reader.u8()?)),
                Number => RouteValue::Number(reader.u32()?),
            })
        })
        .collect()
}

pub(super) fn encode(command: Command, values: &[RouteValue], out: &mut BytesMut) {
    encode_fields(RouteField::layout(command), values, out);
}

pub(super) fn decode(command: Command, reader: &mut Reader<'_>) -> Result<Vec<RouteValue>, Ended> {
    decode_fields(RouteField::layout(command), reader)
}

pub(super) fn encode_answer(result: ResultCode, rows: &[RouteRow], out: &mut BytesMut) {
    out.u8(result.0);
    out.u32(u32::try_from(rows.len()).unwrap_or(u32::MAX));
    for row in rows {
        encode_fields(ROW, &row.fields, out);
        out.raw(&row.reserve);
    }
}

/// A packet with an empty body ends a table that came in several.
pub(super) fn decode_answer(reader: &mut Reader<'_>) -> Result<(ResultCode, Vec<RouteRow>), Ended> {
    if reader.left() == 0 {
        return Ok((ResultCode::OK, Vec::new()));
    }
    let result = ResultCode(reader.u8()?);
    let count = usize::try_from(reader.u32()?).map_err(|_| Ended)?;
    if count > reader.left() / ROW_LENGTH {
        return Err(Ended);
    }
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        rows.push(RouteRow { fields: decode_fields(ROW, reader)?, reserve: reader.array()? });
    }
    Ok((result, rows))
}
