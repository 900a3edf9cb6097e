//! The PDUs and their encoding (CMPP 3.0 §8.4).

mod connect;
mod deliver;
mod forward;
mod query;
mod submit;

pub use connect::{Connect, ConnectAnswer};
pub use deliver::{Deliver, ReportContent};
pub use forward::CmppForward;
pub use query::{CmppQuery, CmppQueryAnswer};
pub use submit::{MAX_USERS, Submit};

use crate::CmppMsgId;
use bytes::BytesMut;
use sp_session::{DecodeError, FieldError, Header, PduReader, PduWriter};

/// Set in the command ids of answers.
const ANSWER: u32 = 0x8000_0000;

/// The commands (CMPP 3.0 §8.7.1).
pub(crate) mod command {
    pub(crate) const CONNECT: u32 = 1;
    pub(crate) const TERMINATE: u32 = 2;
    pub(crate) const SUBMIT: u32 = 4;
    pub(crate) const DELIVER: u32 = 5;
    pub(crate) const QUERY: u32 = 6;
    pub(crate) const CANCEL: u32 = 7;
    pub(crate) const ACTIVE_TEST: u32 = 8;
    pub(crate) const FWD: u32 = 9;
}

/// Whether a version has the wider fields of CMPP 3.0.
#[must_use]
pub fn is_wide(version: u8) -> bool {
    version >= 0x30
}

/// Octets of a subscriber's number.
fn number_width(wide: bool) -> usize {
    if wide { 32 } else { 21 }
}

/// Octets of the last field of a message: the LinkID in 3.0, reserved in 2.0.
fn link_width(wide: bool) -> usize {
    if wide { 20 } else { 8 }
}

/// Maximum number of octets after the last field. They are a private extension of the peer and are ignored; more octets
/// are an error.
const MAX_EXTRA: usize = 64;

/// Result 4: the length of the message is wrong.
const RESULT_LENGTH: u32 = 4;
/// Result 1: the structure of the message is wrong.
const RESULT_STRUCTURE: u32 = 1;

/// A PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum CmppPdu {
    Connect(Connect),
    ConnectAnswer(ConnectAnswer),
    Terminate,
    TerminateAnswer,
    Submit(Box<Submit>),
    SubmitAnswer { id: CmppMsgId, result: u32 },
    Deliver(Deliver),
    DeliverAnswer { id: CmppMsgId, result: u32 },
    Query(CmppQuery),
    QueryAnswer(CmppQueryAnswer),
    Cancel { id: CmppMsgId },
    CancelAnswer { result: u32 },
    ActiveTest,
    ActiveTestAnswer,
    Forward(Box<CmppForward>),
    ForwardAnswer { id: CmppMsgId, part: (u8, u8), result: u32 },
}

/// Reads a result: four octets in 3.0, one in 2.0.
fn read_result(reader: &mut PduReader<'_>, wide: bool, field: &'static str) -> Result<u32, DecodeError> {
    if wide { reader.u32(field) } else { Ok(u32::from(reader.u8(field)?)) }
}

fn write_result(writer: &mut PduWriter<'_>, wide: bool, result: u32) {
    if wide {
        writer.u32(result);
    } else {
        writer.u8(u8::try_from(result).unwrap_or(9));
    }
}

impl CmppPdu {
    /// Decodes a body in the layout of a version. A Connect has the same layout in all
    /// versions; the layout of its answer follows from the length.
    ///
    /// # Errors
    /// If the command is unknown, the body too short, or a count in it wrong.
    pub fn decode(version: u8, header: Header, body: &[u8]) -> Result<Self, DecodeError> {
        let (wide, mut reader) = (is_wide(version), PduReader::new(body));
        let reader = &mut reader;
        Ok(match header.command {
            command::CONNECT => Self::Connect(Connect::decode(reader)?),
            id if id == command::CONNECT | ANSWER => Self::ConnectAnswer(ConnectAnswer::decode(reader)?),
            command::TERMINATE => Self::Terminate,
            id if id == command::TERMINATE | ANSWER => Self::TerminateAnswer,
            command::SUBMIT => Self::Submit(Box::new(Submit::decode(reader, wide)?)),
            id if id == command::SUBMIT | ANSWER => Self::SubmitAnswer {
                id: CmppMsgId(reader.u64("Msg_Id")?),
                result: read_result(reader, wide, "Result")?,
            },
            command::DELIVER => Self::Deliver(Deliver::decode(reader, wide)?),
            id if id == command::DELIVER | ANSWER => Self::DeliverAnswer {
                id: CmppMsgId(reader.u64("Msg_Id")?),
                result: read_result(reader, wide, "Result")?,
            },
            command::QUERY => Self::Query(CmppQuery::decode(reader)?),
            id if id == command::QUERY | ANSWER => Self::QueryAnswer(CmppQueryAnswer::decode(reader)?),
            command::CANCEL => Self::Cancel { id: CmppMsgId(reader.u64("Msg_Id")?) },
            id if id == command::CANCEL | ANSWER => {
                Self::CancelAnswer { result: read_result(reader, wide, "Success_Id")? }
            }
            command::ACTIVE_TEST => Self::ActiveTest,
            // Some peers omit its octet "Reserved".
            id if id == command::ACTIVE_TEST | ANSWER => Self::ActiveTestAnswer,
            command::FWD => Self::Forward(Box::new(CmppForward::decode(reader, wide)?)),
            id if id == command::FWD | ANSWER => Self::ForwardAnswer {
                id: CmppMsgId(reader.u64("Msg_Id")?),
                part: (reader.u8("Pk_total")?, reader.u8("Pk_number")?),
                result: read_result(reader, wide, "Result")?,
            },
            unknown => return Err(DecodeError::Unknown(unknown)),
        })
    }

    /// Appends a PDU to `out`, in the layout of a version.
    ///
    /// # Errors
    /// If a field does not fit; `out` is then unchanged.
    pub fn encode(&self, version: u8, sequence: u32, out: &mut BytesMut) -> Result<(), FieldError> {
        let wide = is_wide(version);
        let mut writer = PduWriter::new(out, self.command(), sequence);
        match self {
            Self::Connect(connect) => connect.encode(&mut writer),
            Self::ConnectAnswer(answer) => answer.encode(&mut writer, wide),
            Self::Terminate | Self::TerminateAnswer | Self::ActiveTest => {}
            Self::Submit(submit) => submit.encode(&mut writer, wide),
            Self::SubmitAnswer { id, result } | Self::DeliverAnswer { id, result } => {
                writer.u64(id.0);
                write_result(&mut writer, wide, *result);
            }
            Self::Deliver(deliver) => deliver.encode(&mut writer, wide),
            Self::Query(query) => query.encode(&mut writer),
            Self::QueryAnswer(answer) => answer.encode(&mut writer),
            Self::Cancel { id } => {
                writer.u64(id.0);
            }
            Self::CancelAnswer { result } => write_result(&mut writer, wide, *result),
            Self::ActiveTestAnswer => {
                writer.u8(0);
            }
            Self::Forward(forward) => forward.encode(&mut writer, wide),
            Self::ForwardAnswer { id, part, result } => {
                writer.u64(id.0).octets(&[part.0, part.1]);
                write_result(&mut writer, wide, *result);
            }
        }
        writer.finish()
    }

    fn command(&self) -> u32 {
        match self {
            Self::Connect(_) => command::CONNECT,
            Self::ConnectAnswer(_) => command::CONNECT | ANSWER,
            Self::Terminate => command::TERMINATE,
            Self::TerminateAnswer => command::TERMINATE | ANSWER,
            Self::Submit(_) => command::SUBMIT,
            Self::SubmitAnswer { .. } => command::SUBMIT | ANSWER,
            Self::Deliver(_) => command::DELIVER,
            Self::DeliverAnswer { .. } => command::DELIVER | ANSWER,
            Self::Query(_) => command::QUERY,
            Self::QueryAnswer(_) => command::QUERY | ANSWER,
            Self::Cancel { .. } => command::CANCEL,
            Self::CancelAnswer { .. } => command::CANCEL | ANSWER,
            Self::ActiveTest => command::ACTIVE_TEST,
            Self::ActiveTestAnswer => command::ACTIVE_TEST | ANSWER,
            Self::Forward(_) => command::FWD,
            Self::ForwardAnswer { .. } => command::FWD | ANSWER,
        }
    }
}

/// Reads the octets of a text. A wrong count is an error of the content: the PDU itself is complete.
fn read_content(reader: &mut PduReader<'_>) -> Result<bytes::Bytes, DecodeError> {
    let length = usize::from(reader.u8("Msg_Length")?);
    let octets = reader.take(length, "Msg_Content").map_err(|_| DecodeError::Invalid(RESULT_STRUCTURE))?;
    Ok(bytes::Bytes::copy_from_slice(octets))
}

/// Checks the octets after the last field.
fn end(reader: &PduReader<'_>) -> Result<(), DecodeError> {
    if reader.remaining() > MAX_EXTRA { Err(DecodeError::Invalid(RESULT_LENGTH)) } else { Ok(()) }
}
