//! Commands and answers, one struct a layout.

mod command;
mod message;
mod route;
mod service;

pub use command::Command;
pub use message::{Deliver, Report, Submit, UserReport};
pub use route::{RouteField, RouteRow, RouteValue};
pub use service::{Bind, CheckUser, CheckUserAnswer, LoginType, Trace, TraceAnswer, TraceHop};

use crate::wire::{Ended, Reader, Write};
use crate::{DecodeError, HEADER_LENGTH, ResultCode, Sequence};
use bytes::BytesMut;

/// Octets of every `Reserve` field. Later systems carry the LinkID in it, so it is kept as it came.
pub(crate) const RESERVE: usize = 8;

/// One command or answer, without its header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pdu {
    /// Log in (SGIP 1.2 §4.2.3.1).
    Bind(Bind),
    /// Take leave (§4.2.3.2).
    Unbind,
    /// The answer to [`Pdu::Unbind`].
    UnbindAnswer,
    /// A message for subscribers (§4.2.3.3).
    Submit(Submit),
    /// A message from a subscriber (§4.2.3.4).
    Deliver(Deliver),
    /// What became of a Submit (§4.2.3.5).
    Report(Report),
    /// A subscriber's state has changed (§4.3.3).
    UserReport(UserReport),
    /// Where is a message? (§4.4)
    Trace(Trace),
    /// The answer to [`Pdu::Trace`].
    TraceAnswer(TraceAnswer),
    /// May a subscriber be charged? (§4.3.1)
    CheckUser(CheckUser),
    /// The answer to [`Pdu::CheckUser`].
    CheckUserAnswer(CheckUserAnswer),
    /// Route maintenance between gateways (§4.2.3.6 to §4.2.3.15): the fields in the order of their layout.
    Route {
        /// Which.
        command: Command,
        /// Its fields.
        fields: Vec<RouteValue>,
        /// See [`Pdu::Answer`].
        reserve: [u8; RESERVE],
    },
    /// The answer to a route query (§4.2.3.9).
    RouteAnswer {
        /// How it went.
        result: ResultCode,
        /// At most twenty rows; a longer table comes in several answers.
        rows: Vec<RouteRow>,
    },
    /// The answer that all other commands share: a code (§4.2.3).
    Answer {
        /// The command that is answered.
        to: Command,
        /// How it went.
        result: ResultCode,
        /// Kept as it came.
        reserve: [u8; RESERVE],
    },
}

impl Pdu {
    /// The shared answer to a command.
    #[must_use]
    pub fn answer(to: Command, result: ResultCode) -> Self {
        Self::Answer { to, result, reserve: [0; RESERVE] }
    }

    /// The raw command id.
    #[must_use]
    pub fn id(&self) -> u32 {
        match self {
            Self::Bind(_) => Command::Bind.id(),
            Self::Unbind => Command::Unbind.id(),
            Self::UnbindAnswer => Command::Unbind.answer_id(),
            Self::Submit(_) => Command::Submit.id(),
            Self::Deliver(_) => Command::Deliver.id(),
            Self::Report(_) => Command::Report.id(),
            Self::UserReport(_) => Command::UserReport.id(),
            Self::Trace(_) => Command::Trace.id(),
            Self::TraceAnswer(_) => Command::Trace.answer_id(),
            Self::CheckUser(_) => Command::CheckUser.id(),
            Self::CheckUserAnswer(_) => Command::CheckUser.answer_id(),
            Self::Route { command, .. } => command.id(),
            Self::RouteAnswer { .. } => Command::QueryRoute.answer_id(),
            Self::Answer { to, .. } => to.answer_id(),
        }
    }

    /// Appends the whole PDU.
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
                route::encode(*command, fields, out);
                out.raw(reserve);
            }
            Self::RouteAnswer { result, rows } => route::encode_answer(*result, rows, out),
            Self::Answer { result, reserve, .. } => {
                out.u8(result.0);
                out.raw(reserve);
            }
        }
        let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Octets of the whole PDU.
    #[must_use]
    pub fn length(&self) -> usize {
        let mut out = BytesMut::new();
        self.encode(Sequence::default(), &mut out);
        out.len()
    }

    /// Reads a body.
    ///
    /// # Errors
    /// When the id is unknown, or the body has not the length that its fields make.
    pub fn decode(id: u32, body: &[u8]) -> Result<Self, DecodeError> {
        let (command, is_answer) = Command::of(id).ok_or(DecodeError::Unknown(id))?;
        let mut reader = Reader::new(body);
        let read = if is_answer {
            Self::decode_answer(command, &mut reader)
        } else {
            Self::decode_command(command, &mut reader)
        };
        let pdu = read.map_err(|Ended| DecodeError::Short { command, field: "its fields" })?;
        // Some servers answer an Unbind with the body that all other answers have.
        if reader.left() > 0 && pdu != Self::UnbindAnswer {
            return Err(DecodeError::Long { command, octets: reader.left() });
        }
        Ok(pdu)
    }

    fn decode_command(command: Command, reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(match command {
            Command::Bind => Self::Bind(Bind::decode(reader)?),
            Command::Unbind => Self::Unbind,
            Command::Submit => Self::Submit(Submit::decode(reader)?),
            Command::Deliver => Self::Deliver(Deliver::decode(reader)?),
            Command::Report => Self::Report(Report::decode(reader)?),
            Command::UserReport => Self::UserReport(UserReport::decode(reader)?),
            Command::Trace => Self::Trace(Trace::decode(reader)?),
            Command::CheckUser => Self::CheckUser(CheckUser::decode(reader)?),
            _ => {
                let fields = route::decode(command, reader)?;
                Self::Route { command, fields, reserve: reader.array()? }
            }
        })
    }

    fn decode_answer(command: Command, reader: &mut Reader<'_>) -> Result<Self, Ended> {
        Ok(match command {
            Command::Unbind => Self::UnbindAnswer,
            Command::Trace => Self::TraceAnswer(TraceAnswer::decode(reader)?),
            Command::CheckUser => Self::CheckUserAnswer(CheckUserAnswer::decode(reader)?),
            // An error alone comes as the answer that all commands share.
            Command::QueryRoute if reader.left() != 1 + RESERVE => {
                let (result, rows) = route::decode_answer(reader)?;
                Self::RouteAnswer { result, rows }
            }
            to => Self::Answer { to, result: ResultCode(reader.u8()?), reserve: reader.array()? },
        })
    }

    /// What is wrong with a command that can be read, in the protocol's terms: the code that it is to be answered with.
    #[must_use]
    pub fn fault(&self) -> Option<ResultCode> {
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

/// The whole PDU as its own octets, for tests and captures.
impl Pdu {
    /// Encodes into a new buffer.
    #[must_use]
    pub fn to_bytes(&self, sequence: Sequence) -> bytes::Bytes {
        let mut out = BytesMut::with_capacity(HEADER_LENGTH + 64);
        self.encode(sequence, &mut out);
        out.freeze()
    }
}
