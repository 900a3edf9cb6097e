//! The interface of a protocol between SPs and gateways.

use crate::{ClientAuthenticator, DecodeError, Delivery, FieldError, Header, SpStatusReport, Submission};
use bytes::{Bytes, BytesMut};
use model::{ErrorClass, Refusal};
use std::fmt::Debug;
use std::ops::RangeInclusive;

/// Role of a PDU in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PduRole {
    /// The SP logs in.
    Login,
    /// The gateway answers a login, with this status.
    LoginAnswer(u32),
    /// Either side sends a link test.
    LinkTest,
    /// The answer to a link test.
    LinkTestAnswer,
    /// Either side ends the session.
    Logout,
    /// The answer to a logout.
    LogoutAnswer,
    /// A request that the owner answers.
    Request,
    /// The answer to a request, with this status.
    Answer(u32),
}

/// A login of an SP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfferedLogin {
    /// The name of the SP.
    pub name: Bytes,
    /// The proof of its secret.
    pub authenticator: [u8; 16],
    /// The time that the proof contains, `MMDDHHMMSS`.
    pub timestamp: u32,
    /// The offered version: major in the high four bits, minor in the low ones.
    pub version: u8,
    /// Whether the SP submits messages.
    pub submits: bool,
    /// Whether the SP receives Delivers.
    pub receives: bool,
}

/// The contents of our own login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnLogin<'a> {
    /// Our name at the gateway.
    pub name: &'a [u8],
    /// The password.
    pub secret: &'a [u8],
    /// The time in China, `MMDDHHMMSS`; see [`crate::china_time`].
    pub timestamp: u32,
    /// The version that we offer.
    pub version: u8,
    /// Whether the proof is computed with the unpadded name; see [`ClientAuthenticator::unpadded`].
    pub unpadded: bool,
}

/// Meaning of a PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// An SP logs in.
    Login(OfferedLogin),
    /// An SP submits a message.
    Submit(Submission),
    /// A gateway delivers a message.
    Deliver(Delivery),
    /// A gateway delivers a status report.
    Report(SpStatusReport),
    /// A Submit is answered; the id is `None` if the gateway sends none.
    SubmitAnswer {
        /// The message's id at the gateway, in hexadecimal.
        id: Option<Bytes>,
        /// The status.
        status: u32,
    },
    /// A Deliver is answered, with this status.
    DeliverAnswer {
        /// The status.
        status: u32,
    },
    /// Anything else.
    Other,
}

/// The values of the statuses that both protocols have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statuses {
    /// The structure of the request is wrong.
    pub structure: u32,
    /// This side does not serve the command.
    pub command: u32,
    /// The sequence id belongs to another request.
    pub sequence: u32,
    /// Too many requests at a time.
    pub throttled: u32,
    /// The text is too long.
    pub length: u32,
    /// The source address is not the SP's.
    pub source: u32,
    /// A destination is not a number.
    pub destination: u32,
    /// A time cannot be read.
    pub time: u32,
    /// The login name is unknown.
    pub login_name: u32,
    /// The proof of the password is wrong.
    pub login_secret: u32,
    /// The login offers an unsupported version.
    pub login_version: u32,
    /// The login cannot be served now.
    pub login_busy: u32,
    /// A repeated login on one connection.
    pub login_repeated: u32,
    /// Anything else.
    pub other: u32,
}

/// A protocol between SPs and a gateway.
pub trait SpProtocol: Debug + Send + Sized + 'static {
    /// A PDU, in either direction.
    type Pdu: Clone + Debug + PartialEq + Send;

    /// The form of the password proof.
    const AUTHENTICATOR: ClientAuthenticator;
    /// The statuses.
    const STATUS: Statuses;
    /// Maximum length of a PDU that is accepted by default, in octets.
    const MAX_LENGTH: u32;
    /// Length of a message id on the wire, in octets.
    const ID_LENGTH: usize;
    /// Vendor-specific statuses, whose meaning is unknown.
    const VENDOR_STATUSES: RangeInclusive<u32>;

    /// Decodes the body of a PDU, in the layout of a version.
    ///
    /// # Errors
    /// If it cannot be decoded.
    fn decode(version: u8, header: Header, body: &[u8]) -> Result<Self::Pdu, DecodeError>;
    /// Appends a PDU to `out`, in the layout of a version.
    ///
    /// # Errors
    /// If a field does not fit; `out` is then unchanged.
    fn encode(pdu: &Self::Pdu, version: u8, sequence: u32, out: &mut BytesMut) -> Result<(), FieldError>;
    /// The role of a PDU in a session.
    fn role(pdu: &Self::Pdu) -> PduRole;
    /// The meaning of a PDU.
    fn meaning(pdu: &Self::Pdu) -> Meaning;
    /// The version of the session after a login that offered `offered` was answered with `answer`.
    fn accepted_version(answer: &Self::Pdu, offered: u8) -> u8;
    /// Whether the answer to our login proves that the gateway knows the password.
    fn proves_secret(answer: &Self::Pdu, login: &Self::Pdu, secret: &[u8]) -> bool;

    /// A link test, or its answer.
    fn link_test(is_answer: bool) -> Self::Pdu;
    /// A logout, or its answer.
    fn logout(is_answer: bool) -> Self::Pdu;
    /// An answer without content to the request with this command id; `None` if the command has no status.
    fn refusal(command: u32, status: u32) -> Option<Self::Pdu>;

    /// Our login at a gateway.
    fn login(request: &OwnLogin<'_>) -> Self::Pdu;
    /// Our answer to an SP's login. If it accepts the login, it contains the proof of `secret`.
    fn login_answer(status: u32, login: &OfferedLogin, version: u8, secret: &[u8]) -> Self::Pdu;
    /// The Submit of a message.
    fn submit(submission: &Submission) -> Self::Pdu;
    /// Our answer to a Submit: the id of its first message, empty if it is refused.
    fn submit_answer(id: &[u8], status: u32) -> Self::Pdu;
    /// The Deliver of a message.
    fn deliver(delivery: &Delivery) -> Self::Pdu;
    /// The Deliver of a status report.
    fn report(report: &SpStatusReport, version: u8) -> Self::Pdu;
    /// Our answer to a Deliver with this id.
    fn deliver_answer(id: &[u8], status: u32) -> Self::Pdu;
    /// A new message id: the second and a counter that is unique in it. `at` is the second since 1970.
    fn message_id(second: u64, counter: u32, gateway: u32) -> Bytes;
    /// The id of message `index` of one Submit, whose first message has the id `first`.
    fn following_id(first: &[u8], index: u32) -> Bytes;

    /// The class of a status of a Submit's answer.
    fn class(status: u32) -> ErrorClass;
    /// The meaning of a status, for people.
    fn status_text(status: u32) -> &'static str;
    /// The status for a message that is not accepted.
    fn status_of(refusal: Refusal, version: u8) -> u32;
    /// The status of a login that offers a version; 0 if it is served.
    fn version_status(version: u8) -> u32;
}
