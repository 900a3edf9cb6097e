//! The PDUs and their encoding (SMGP 3.0.3 §5.2, §6.2).

mod deliver;
mod forward;
mod login;
mod query;
mod submit;

pub use deliver::Deliver;
pub use forward::SmgpForward;
pub use login::{Login, LoginAnswer};
pub use query::{SmgpQuery, SmgpQueryAnswer};
pub use submit::{MAX_USERS, Submit};

use crate::{SmgpMsgId, SmgpTlvs};
use bytes::{Bytes, BytesMut};
use sp_session::{DecodeError, FieldError, Header, PduReader, PduWriter};

/// Set in the command ids of answers.
const ANSWER: u32 = 0x8000_0000;

/// The commands (SMGP 3.0.3 §6.1.2).
pub(crate) mod command {
    pub(crate) const LOGIN: u32 = 1;
    pub(crate) const SUBMIT: u32 = 2;
    pub(crate) const DELIVER: u32 = 3;
    pub(crate) const ACTIVE_TEST: u32 = 4;
    pub(crate) const FORWARD: u32 = 5;
    pub(crate) const EXIT: u32 = 6;
    pub(crate) const QUERY: u32 = 7;
}

/// Status 10: the structure of the message is wrong.
const STATUS_STRUCTURE: u32 = 10;

/// The version 1.3, whose Submit has no `FixedFee`.
const WITHOUT_FIXED_FEE: u8 = 0x13;

/// A PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum SmgpPdu {
    Login(Login),
    LoginAnswer(LoginAnswer),
    Submit(Box<Submit>),
    SubmitAnswer { id: SmgpMsgId, status: u32 },
    Deliver(Box<Deliver>),
    DeliverAnswer { id: SmgpMsgId, status: u32 },
    ActiveTest,
    ActiveTestAnswer,
    Forward(Box<SmgpForward>),
    ForwardAnswer { id: SmgpMsgId, status: u32, tlvs: SmgpTlvs },
    Exit,
    ExitAnswer,
    Query(SmgpQuery),
    QueryAnswer(SmgpQueryAnswer),
}

fn answer_fields(reader: &mut PduReader<'_>) -> Result<(SmgpMsgId, u32), DecodeError> {
    Ok((SmgpMsgId(reader.array("MsgID")?), reader.u32("Status")?))
}

impl SmgpPdu {
    /// Decodes a body in the layout of a version.
    ///
    /// # Errors
    /// If the command is unknown, the body too short, or a count in it wrong.
    pub fn decode(version: u8, header: Header, body: &[u8]) -> Result<Self, DecodeError> {
        let reader = &mut PduReader::new(body);
        Ok(match header.command {
            command::LOGIN => Self::Login(Login::decode(reader)?),
            id if id == command::LOGIN | ANSWER => Self::LoginAnswer(LoginAnswer::decode(reader)?),
            command::SUBMIT => Self::Submit(Box::new(Submit::decode(reader, version)?)),
            id if id == command::SUBMIT | ANSWER => {
                let (id, status) = answer_fields(reader)?;
                Self::SubmitAnswer { id, status }
            }
            command::DELIVER => Self::Deliver(Box::new(Deliver::decode(reader)?)),
            id if id == command::DELIVER | ANSWER => {
                let (id, status) = answer_fields(reader)?;
                Self::DeliverAnswer { id, status }
            }
            command::ACTIVE_TEST => Self::ActiveTest,
            id if id == command::ACTIVE_TEST | ANSWER => Self::ActiveTestAnswer,
            command::FORWARD => Self::Forward(Box::new(SmgpForward::decode(reader)?)),
            id if id == command::FORWARD | ANSWER => {
                let (id, status) = answer_fields(reader)?;
                Self::ForwardAnswer { id, status, tlvs: SmgpTlvs::decode(reader)? }
            }
            command::EXIT => Self::Exit,
            id if id == command::EXIT | ANSWER => Self::ExitAnswer,
            command::QUERY => Self::Query(SmgpQuery::decode(reader)?),
            id if id == command::QUERY | ANSWER => Self::QueryAnswer(SmgpQueryAnswer::decode(reader)?),
            unknown => return Err(DecodeError::Unknown(unknown)),
        })
    }

    /// Appends a PDU to `out`, in the layout of a version.
    ///
    /// # Errors
    /// If a field does not fit; `out` is then unchanged.
    pub fn encode(&self, version: u8, sequence: u32, out: &mut BytesMut) -> Result<(), FieldError> {
        let mut writer = PduWriter::new(out, self.command(), sequence);
        match self {
            Self::Login(login) => login.encode(&mut writer),
            Self::LoginAnswer(answer) => answer.encode(&mut writer),
            Self::Submit(submit) => submit.encode(&mut writer, version),
            Self::SubmitAnswer { id, status } | Self::DeliverAnswer { id, status } => {
                writer.octets(&id.0).u32(*status);
            }
            Self::Deliver(deliver) => deliver.encode(&mut writer),
            Self::ActiveTest | Self::ActiveTestAnswer | Self::Exit | Self::ExitAnswer => {}
            Self::Forward(forward) => forward.encode(&mut writer),
            Self::ForwardAnswer { id, status, tlvs } => {
                writer.octets(&id.0).u32(*status).octets(&tlvs.to_bytes());
            }
            Self::Query(query) => query.encode(&mut writer),
            Self::QueryAnswer(answer) => answer.encode(&mut writer),
        }
        writer.finish()
    }

    fn command(&self) -> u32 {
        match self {
            Self::Login(_) => command::LOGIN,
            Self::LoginAnswer(_) => command::LOGIN | ANSWER,
            Self::Submit(_) => command::SUBMIT,
            Self::SubmitAnswer { .. } => command::SUBMIT | ANSWER,
            Self::Deliver(_) => command::DELIVER,
            Self::DeliverAnswer { .. } => command::DELIVER | ANSWER,
            Self::ActiveTest => command::ACTIVE_TEST,
            Self::ActiveTestAnswer => command::ACTIVE_TEST | ANSWER,
            Self::Forward(_) => command::FORWARD,
            Self::ForwardAnswer { .. } => command::FORWARD | ANSWER,
            Self::Exit => command::EXIT,
            Self::ExitAnswer => command::EXIT | ANSWER,
            Self::Query(_) => command::QUERY,
            Self::QueryAnswer(_) => command::QUERY | ANSWER,
        }
    }
}

/// Reads the octets of a text. A wrong count is an error of the content: the PDU itself is complete.
fn read_content(reader: &mut PduReader<'_>) -> Result<Bytes, DecodeError> {
    let length = usize::from(reader.u8("MsgLength")?);
    let octets = reader.take(length, "MsgContent").map_err(|_| DecodeError::Invalid(STATUS_STRUCTURE))?;
    Ok(Bytes::copy_from_slice(octets))
}
