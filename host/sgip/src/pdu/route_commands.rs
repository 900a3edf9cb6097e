//! Route maintenance between gateways and their directory (SGIP 1.2 §4.2.3.6 to §4.2.3.15). This
//! crate only recognizes these commands, so their layouts are a table.

use super::{RESERVE, SgipCommand};
use crate::ResultCode;
use crate::wire::{EndOfBody, Reader, Write};
use bytes::{Bytes, BytesMut};

/// One field of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteField {
    /// Text of this width in octets.
    Text(usize),
    /// A number of one octet.
    Octet,
    /// A number of four octets.
    Number,
}

/// The value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RouteValue {
    /// The value of a [`RouteField::Text`].
    Text(Bytes),
    /// The value of a [`RouteField::Octet`] or [`RouteField::Number`].
    Number(u32),
}

/// One row of the answer to a route query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteRow {
    /// Type, number, mark, code, gateway, its address, login, password.
    pub fields: Vec<RouteValue>,
    /// Preserved.
    pub reserve: [u8; RESERVE],
}

use RouteField::{Number, Octet, Text};

const ROW: &[RouteField] = &[Octet, Text(21), Text(10), Text(5), Text(6), Number, Text(16), Text(16)];
const ROW_LENGTH: usize = 87;

impl RouteField {
    /// The fields of a command without its Reserve; empty for commands outside this family.
    #[must_use]
    pub fn layout(command: SgipCommand) -> &'static [Self] {
        match command {
            SgipCommand::AddSp => &[Text(6), Text(21), Text(10), Text(5)],
            SgipCommand::ModifySp => &[Text(6), Text(21), Text(10), Text(21), Text(10), Text(5)],
            SgipCommand::DeleteSp => &[Text(6), Text(21), Text(10)],
            SgipCommand::QueryRoute => &[Octet, Text(21), Text(10)],
            SgipCommand::AddTeleSeg => &[Text(6), Text(7), Text(1), Text(4)],
            SgipCommand::ModifyTeleSeg => &[Text(6), Text(7), Text(7), Text(1), Text(4)],
            SgipCommand::DeleteTeleSeg => &[Text(6), Text(7)],
            SgipCommand::AddSmg => &[Text(6), Number, Text(16), Text(16)],
            SgipCommand::ModifySmg => &[Text(6), Text(6), Number, Text(16), Text(16)],
            SgipCommand::DeleteSmg => &[Text(6)],
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

fn decode_fields(layout: &[RouteField], reader: &mut Reader<'_>) -> Result<Vec<RouteValue>, EndOfBody> {
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

pub(super) fn encode(command: SgipCommand, values: &[RouteValue], out: &mut BytesMut) {
    encode_fields(RouteField::layout(command), values, out);
}

pub(super) fn decode(command: SgipCommand, reader: &mut Reader<'_>) -> Result<Vec<RouteValue>, EndOfBody> {
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

/// A PDU with an empty body ends a table that is sent in several answers.
pub(super) fn decode_answer(reader: &mut Reader<'_>) -> Result<(ResultCode, Vec<RouteRow>), EndOfBody> {
    if reader.remaining() == 0 {
        return Ok((ResultCode::OK, Vec::new()));
    }
    let result = ResultCode(reader.u8()?);
    let count = usize::try_from(reader.u32()?).map_err(|_| EndOfBody)?;
    if count > reader.remaining() / ROW_LENGTH {
        return Err(EndOfBody);
    }
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        rows.push(RouteRow { fields: decode_fields(ROW, reader)?, reserve: reader.array()? });
    }
    Ok((result, rows))
}
