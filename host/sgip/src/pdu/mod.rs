//! Commands and answers, one struct for each layout.

mod bind;
mod check_user;
mod deliver;
mod report;
mod route_commands;
mod sgip_command;
mod submit;
mod trace;

pub use bind::{Bind, LoginType};
pub use check_user::{CheckUser, CheckUserAnswer};
pub use deliver::Deliver;
pub use report::{Report, UserReport};
pub use route_commands::{RouteField, RouteRow, RouteValue};
pub use sgip_command::SgipCommand;
pub use submit::Submit;
pub use trace::{Trace, TraceAnswer, TraceHop};

use crate::wire::{EndOfBody, Reader, Write};
use crate::{DecodeError, HEADER_LENGTH, ResultCode, Sequence};
use bytes::BytesMut;

/// Width of every number field, in octets.
const NUMBER_WIDTH: usize = 21;

/// Octets of every `Reserve` field. Later systems carry the LinkID in it, so it is preserved.
pub(crate) const RESERVE: usize = 8;

/// One command or answer, without its header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pdu {
    /// Bind: the login (SGIP 1.2 §4.2.3.1).
    Bind(Bind),
    /// Unbind (§4.2.3.2).
    Unbind,
    /// The answer to [`Pdu::Unbind`].
    UnbindAnswer,
    /// Submit: a message for subscribers (§4.2.3.3).
    Submit(Submit),
    /// Deliver: a message from a subscriber (§4.2.3.4).
    Deliver(Deliver),
    /// Report: the state of a Submit (§4.2.3.5).
    Report(Report),
    /// UserReport: a subscriber's state has changed (§4.3.3).
    UserReport(UserReport),
    /// Trace: the nodes that a message has passed (§4.4).
    Trace(Trace),
    /// The answer to [`Pdu::Trace`].
    TraceAnswer(TraceAnswer),
    /// CheckUser: whether a subscriber may be charged (§4.3.1).
    CheckUser(CheckUser),
    /// The answer to [`Pdu::CheckUser`].
    CheckUserAnswer(CheckUserAnswer),
    /// Route maintenance between gateways (§4.2.3.6 to §4.2.3.15): the fields in the order of their layout.
    Route {
        /// The command.
        command: SgipCommand,
        /// The fields.
        fields: Vec<RouteValue>,
        /// See [`Pdu::Answer`].
        reserve: [u8; RESERVE],
    },
    /// The answer to a route query (§4.2.3.9).
    RouteAnswer {
        /// The result.
        result: ResultCode,
        /// At most twenty rows; a longer table comes in several answers.
        rows: Vec<RouteRow>,
    },
    /// The answer that all other commands share: a result code (§4.2.3).
    Answer {
        /// The command that is answered.
        to: SgipCommand,
        /// The result.
        result: ResultCode,
        /// Preserved.
        reserve: [u8; RESERVE],
    },
}

impl Pdu {
    /// Makes the shared answer to a command.
    #[must_use]
    pub fn answer(to: SgipCommand, result: ResultCode) -> Self {
        Self::Answer { to, result, reserve: [0; RESERVE] }
    }

    /// The raw command id.
    #[must_use]
    pub fn id(&self) -> u32 {
        match self {
            Self::Bind(_) => SgipCommand::Bind.id(),
            Self::Unbind => SgipCommand::Unbind.id(),
            Self::UnbindAnswer => SgipCommand::Unbind.answer_id(),
            Self::Submit(_) => SgipCommand::Submit.id(),
            Self::Deliver(_) => SgipCommand::Deliver.id(),
            Self::Report(_) => SgipCommand::Report.id(),
            Self::UserReport(_) => SgipCommand::UserReport.id(),
            Self::Trace(_) => SgipCommand::Trace.id(),
            Self::TraceAnswer(_) => SgipCommand::Trace.answer_id(),
            Self::CheckUser(_) => SgipCommand::CheckUser.id(),
            Self::CheckUserAnswer(_) => SgipCommand::CheckUser.answer_id(),
            Self::Route { command, .. } => command.id(),
            Self::RouteAnswer { .. } => SgipCommand::QueryRoute.answer_id(),
            Self::Answer { to, .. } => to.answer_id(),
        }
    }

    /// Appends the encoded PDU.
    pub fn encode(&self, sequence: Sequence, out: &mut BytesMut) {
        let start = out.len();
        out.u32(0);
        out.u32(self.id());
        out.raw(&sequence.octets());
        match self {
            Self::Bind(body) => body.encode(out),
            Self::Unbind | Self::UnbindAnswer => {}
            Self::Submit(body) => body.encode(out),
            Self::Deliver(body) => body.encode(out),
            Self::Report(body) => body.encode(out),
            Self::UserReport(body) => body.encode(out),
            Self::Trace(body) => body.encode(out),
            Self::TraceAnswer(body) => body.encode(out),
            Self::CheckUser(body) => body.encode(out),
            Self::CheckUserAnswer(body) => body.encode(out),
            Self::Route { command, fields, reserve } => {
                route_commands::encode(*command, fields, out);
                out.raw(reserve);
            }
            Self::RouteAnswer { result, rows } => route_commands::encode_answer(*result, rows, out),
            Self::Answer { result, reserve, .. } => {
                out.u8(result.0);
                out.raw(reserve);
            }
        }
        let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// The length of the encoded PDU in octets.
    #[must_use]
    pub fn length(&self) -> usize {
        let mut out = BytesMut::new();
        self.encode(Sequence::default(), &mut out);
        out.len()
    }

    /// Decodes a body.
    ///
    /// # Errors
    /// If the id is unknown, or the length of the body does not match its fields.
    pub fn decode(id: u32, body: &[u8]) -> Result<Self, DecodeError> {
        let (command, is_answer) = SgipCommand::of(id).ok_or(DecodeError::Unknown(id))?;
        let mut reader = Reader::new(body);
        let read = if is_answer {
            Self::decode_answer(command, &mut reader)
        } else {
            Self::decode_command(command, &mut reader)
        };
        let pdu = read.map_err(|EndOfBody| DecodeError::Short { command, field: "its fields" })?;
        // Some servers answer an Unbind with the body of the shared answer.
        if reader.remaining() > 0 && pdu != Self::UnbindAnswer {
            return Err(DecodeError::Long { command, octets: reader.remaining() });
        }
        Ok(pdu)
    }

    fn decode_command(command: SgipCommand, reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(match command {
            SgipCommand::Bind => Self::Bind(Bind::decode(reader)?),
            SgipCommand::Unbind => Self::Unbind,
            SgipCommand::Submit => Self::Submit(Submit::decode(reader)?),
            SgipCommand::Deliver => Self::Deliver(Deliver::decode(reader)?),
            SgipCommand::Report => Self::Report(Report::decode(reader)?),
            SgipCommand::UserReport => Self::UserReport(UserReport::decode(reader)?),
            SgipCommand::Trace => Self::Trace(Trace::decode(reader)?),
            SgipCommand::CheckUser => Self::CheckUser(CheckUser::decode(reader)?),
            _ => {
                let fields = route_commands::decode(command, reader)?;
                Self::Route { command, fields, reserve: reader.array()? }
            }
        })
    }

    fn decode_answer(command: SgipCommand, reader: &mut Reader<'_>) -> Result<Self, EndOfBody> {
        Ok(match command {
            SgipCommand::Unbind => Self::UnbindAnswer,
            SgipCommand::Trace => Self::TraceAnswer(TraceAnswer::decode(reader)?),
            SgipCommand::CheckUser => Self::CheckUserAnswer(CheckUserAnswer::decode(reader)?),
            // An error may come as the shared answer.
            SgipCommand::QueryRoute if reader.remaining() != 1 + RESERVE => {
                let (result, rows) = route_commands::decode_answer(reader)?;
                Self::RouteAnswer { result, rows }
            }
            to => Self::Answer { to, result: ResultCode(reader.u8()?), reserve: reader.array()? },
        })
    }

    /// Validates a well-formed command. Returns the code to answer with if a field has an invalid value.
    #[must_use]
    pub fn validation_error(&self) -> Option<ResultCode> {
        match self {
            Self::Submit(submit) if submit.users.is_empty() || submit.users.len() > Submit::MAX_USERS => {
                Some(ResultCode::PARAMETER)
            }
            Self::Submit(submit) if submit.users.iter().any(bytes::Bytes::is_empty) => {
                Some(ResultCode::NUMBER)
            }
            Self::Deliver(deliver) if deliver.user.is_empty() => Some(ResultCode::NUMBER),
            Self::Report(report) if report.user.is_empty() => Some(ResultCode::NUMBER),
            Self::Report(report) if report.state > 2 => Some(ResultCode::PARAMETER),
            _ => None,
        }
    }
}

impl Pdu {
    /// Encodes the PDU into a buffer of its own.
    #[must_use]
    pub fn to_bytes(&self, sequence: Sequence) -> bytes::Bytes {
        let mut out = BytesMut::with_capacity(HEADER_LENGTH + 64);
        self.encode(sequence, &mut out);
        out.freeze()
    }
}

/// Reads the content after its length. The length is trusted only as far as there are octets.
fn read_content(reader: &mut Reader<'_>) -> Result<bytes::Bytes, EndOfBody> {
    let length = reader.u32()?;
    Ok(bytes::Bytes::copy_from_slice(reader.take(usize::try_from(length).map_err(|_| EndOfBody)?)?))
}
