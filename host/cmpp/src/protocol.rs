//! CMPP as a protocol of sessions: the role and the meaning of each PDU.

use crate::pdu::command;
use crate::{
    CmppMsgId, CmppPdu, Connect, ConnectAnswer, Deliver, ReportContent, Submit, class, is_wide, result_text,
};
use bytes::{Bytes, BytesMut};
use model::{ErrorClass, Refusal, RejectReason};
use sp_session::{
    ClientAuthenticator, Content, DecodeError, Delivery, FieldError, Header, Meaning, OfferedLogin, OwnLogin,
    PduRole, SegmentNumber, SpFields, SpProtocol, SpStatusReport, Statuses, Submission, server_authenticator,
};
use std::ops::RangeInclusive;

/// CMPP, for [`sp_session::Session`].
#[derive(Debug, PartialEq)]
pub struct Cmpp;

/// A CMPP connection.
pub type Session = sp_session::Session<Cmpp>;

/// The highest version that we speak.
const MAX_VERSION: u8 = 0x30;

impl SpProtocol for Cmpp {
    type Pdu = CmppPdu;

    const AUTHENTICATOR: ClientAuthenticator = ClientAuthenticator { name_width: 6 };
    const STATUS: Statuses = Statuses {
        structure: 1,
        command: 2,
        sequence: 3,
        throttled: 8,
        length: 6,
        source: 10,
        destination: 13,
        time: 1,
        login_name: 2,
        login_secret: 3,
        login_version: 4,
        login_busy: 5,
        login_repeated: 5,
        other: 9,
    };
    const MAX_LENGTH: u32 = 4096;
    const VENDOR_STATUSES: RangeInclusive<u32> = 100..=199;
    const ID_LENGTH: usize = 8;

    fn decode(version: u8, header: Header, body: &[u8]) -> Result<CmppPdu, DecodeError> {
        CmppPdu::decode(version, header, body)
    }

    fn encode(pdu: &CmppPdu, version: u8, sequence: u32, out: &mut BytesMut) -> Result<(), FieldError> {
        pdu.encode(version, sequence, out)
    }

    fn role(pdu: &CmppPdu) -> PduRole {
        match pdu {
            CmppPdu::Connect(_) => PduRole::Login,
            CmppPdu::ConnectAnswer(answer) => PduRole::LoginAnswer(answer.status),
            CmppPdu::Terminate => PduRole::Logout,
            CmppPdu::TerminateAnswer => PduRole::LogoutAnswer,
            CmppPdu::ActiveTest => PduRole::LinkTest,
            CmppPdu::ActiveTestAnswer => PduRole::LinkTestAnswer,
            CmppPdu::Submit(_)
            | CmppPdu::Deliver(_)
            | CmppPdu::Query(_)
            | CmppPdu::Cancel { .. }
            | CmppPdu::Forward(_) => PduRole::Request,
            CmppPdu::SubmitAnswer { result, .. }
            | CmppPdu::DeliverAnswer { result, .. }
            | CmppPdu::CancelAnswer { result }
            | CmppPdu::ForwardAnswer { result, .. } => PduRole::Answer(*result),
            CmppPdu::QueryAnswer(_) => PduRole::Answer(0),
        }
    }

    fn meaning(pdu: &CmppPdu) -> Meaning {
        match pdu {
            CmppPdu::Connect(connect) => Meaning::Login(OfferedLogin {
                name: connect.source.clone(),
                authenticator: connect.authenticator,
                timestamp: connect.timestamp,
                version: connect.version,
                submits: true,
                receives: true,
            }),
            CmppPdu::Submit(submit) => Meaning::Submit(submission(submit)),
            CmppPdu::Deliver(deliver) => {
                match (deliver.registered_delivery, ReportContent::read(&deliver.content)) {
                    (1, Some(report)) => Meaning::Report(status_report(deliver, report)),
                    _ => Meaning::Deliver(delivery(deliver)),
                }
            }
            CmppPdu::SubmitAnswer { id, result } => Meaning::SubmitAnswer {
                // Some gateways give no id.
                id: (*result == 0 && id.0 != 0).then(|| id.text()),
                status: *result,
            },
            CmppPdu::DeliverAnswer { result, .. } => Meaning::DeliverAnswer { status: *result },
            _ => Meaning::Other,
        }
    }

    /// A gateway that answers with a higher version than offered announces its own highest version.
    fn accepted_version(answer: &CmppPdu, offered: u8) -> u8 {
        match answer {
            CmppPdu::ConnectAnswer(answer) if answer.version != 0 => answer.version.min(offered),
            _ => offered,
        }
    }

    /// Gateways hash the status in either width, regardless of the version.
    fn proves_secret(answer: &CmppPdu, login: &CmppPdu, secret: &[u8]) -> bool {
        let (CmppPdu::ConnectAnswer(answer), CmppPdu::Connect(connect)) = (answer, login) else {
            return false;
        };
        [&[0_u8; 4][..], &[0_u8]]
            .iter()
            .any(|status| server_authenticator(status, connect.authenticator, secret) == answer.authenticator)
    }

    fn link_test(is_answer: bool) -> CmppPdu {
        if is_answer { CmppPdu::ActiveTestAnswer } else { CmppPdu::ActiveTest }
    }

    fn logout(is_answer: bool) -> CmppPdu {
        if is_answer { CmppPdu::TerminateAnswer } else { CmppPdu::Terminate }
    }

    fn refusal(request: u32, status: u32) -> Option<CmppPdu> {
        Some(match request {
            command::CONNECT => {
                CmppPdu::ConnectAnswer(ConnectAnswer { status, authenticator: [0; 16], version: MAX_VERSION })
            }
            command::SUBMIT => CmppPdu::SubmitAnswer { id: CmppMsgId(0), result: status },
            command::DELIVER => CmppPdu::DeliverAnswer { id: CmppMsgId(0), result: status },
            command::CANCEL => CmppPdu::CancelAnswer { result: 1 },
            command::FWD => CmppPdu::ForwardAnswer { id: CmppMsgId(0), part: (1, 1), result: 9 },
            command::QUERY => CmppPdu::QueryAnswer(crate::CmppQueryAnswer::default()),
            _ => return None,
        })
    }

    fn login(request: &OwnLogin<'_>) -> CmppPdu {
        let hash = if request.unpadded { ClientAuthenticator::unpadded } else { ClientAuthenticator::padded };
        CmppPdu::Connect(Connect {
            source: Bytes::copy_from_slice(request.name),
            authenticator: hash(Self::AUTHENTICATOR, request.name, request.secret, request.timestamp),
            version: request.version,
            timestamp: request.timestamp,
        })
    }

    fn login_answer(status: u32, login: &OfferedLogin, version: u8, secret: &[u8]) -> CmppPdu {
        let octets: &[u8] = if is_wide(version) { &[0; 4] } else { &[0] };
        let authenticator = match status {
            0 => server_authenticator(octets, login.authenticator, secret),
            _ => [0; 16],
        };
        CmppPdu::ConnectAnswer(ConnectAnswer { status, authenticator, version: version.min(MAX_VERSION) })
    }

    fn submit(submission: &Submission) -> CmppPdu {
        let (fields, content) = (&submission.fields, &submission.content);
        CmppPdu::Submit(Box::new(Submit {
            id: CmppMsgId(0),
            part: content.part.map_or((1, 1), |part| (part.total, part.number)),
            registered_delivery: submission.wants_report.map_or(2, u8::from),
            level: submission.priority.min(3) * 3,
            service: fields.service.clone(),
            payer_type: fields.payer_type.first().copied().unwrap_or(2),
            payer: fields.payer.clone(),
            payer_number_type: 0,
            tp_pid: submission.protocol_id,
            tp_udhi: u8::from(content.udhi),
            format: content.format,
            sp: fields.sp_code.clone(),
            fee_type: fields.fee_type.clone(),
            fee_code: fields.fee_code.clone(),
            valid_until: submission.valid_until.clone(),
            deliver_at: submission.deliver_at.clone(),
            source: submission.source.clone(),
            destinations: submission.destinations.clone(),
            destination_type: 0,
            content: content.octets.clone(),
            link_id: fields.link_id.clone(),
        }))
    }

    fn submit_answer(id: &[u8], status: u32) -> CmppPdu {
        CmppPdu::SubmitAnswer { id: CmppMsgId::of(id), result: status }
    }

    fn deliver(delivery: &Delivery) -> CmppPdu {
        CmppPdu::Deliver(Deliver {
            id: CmppMsgId::of(&delivery.id),
            destination: delivery.destination.clone(),
            service: delivery.fields.service.clone(),
            tp_pid: delivery.protocol_id,
            tp_udhi: u8::from(delivery.content.udhi),
            format: delivery.content.format,
            source: delivery.source.clone(),
            source_type: 0,
            registered_delivery: 0,
            content: delivery.content.octets.clone(),
            link_id: delivery.fields.link_id.clone(),
        })
    }

    fn report(report: &SpStatusReport, version: u8) -> CmppPdu {
        let content = ReportContent {
            id: CmppMsgId::of(&report.submission),
            word: report.word.clone(),
            submitted: report.submitted.clone(),
            done: report.done.clone(),
            destination: report.subscriber.clone(),
            sequence: 0,
        };
        CmppPdu::Deliver(Deliver {
            id: CmppMsgId::of(&report.id),
            destination: report.source.clone(),
            service: report.service.clone(),
            source: report.subscriber.clone(),
            registered_delivery: 1,
            content: content.write(is_wide(version)),
            ..Deliver::default()
        })
    }

    fn deliver_answer(id: &[u8], status: u32) -> CmppPdu {
        CmppPdu::DeliverAnswer { id: CmppMsgId::of(id), result: status }
    }

    fn message_id(second: u64, counter: u32, gateway: u32) -> Bytes {
        CmppMsgId::new(second, gateway, counter).octets()
    }

    fn following_id(first: &[u8], index: u32) -> Bytes {
        CmppMsgId::of(first).following(index).octets()
    }

    fn class(status: u32) -> ErrorClass {
        class(status)
    }

    fn status_text(status: u32) -> &'static str {
        result_text(status)
    }

    /// 2.0 has one common result for all other errors.
    fn status_of(refusal: Refusal, version: u8) -> u32 {
        let (status, status_2_0) = match refusal {
            Refusal::QueueFull
            | Refusal::Throttled
            | Refusal::QuotaExceeded
            | Refusal::Internal
            | Refusal::ShuttingDown
            | Refusal::KeysFull { .. }
            | Refusal::Rejected(RejectReason::TryLater | RejectReason::Fault) => (8, 8),
            Refusal::Rejected(RejectReason::InvalidSource) => (10, 9),
            Refusal::Rejected(RejectReason::InvalidDestination | RejectReason::NoRoute) => (13, 9),
            Refusal::KeyReused => (3, 3),
            _ => (9, 9),
        };
        if is_wide(version) { status } else { status_2_0 }
    }

    fn version_status(version: u8) -> u32 {
        match version {
            0x20..=0x3F => 0,
            // Too high.
            0x40.. => 4,
            _ => 5,
        }
    }
}

fn content(format: u8, tp_udhi: u8, octets: &Bytes, part: (u8, u8)) -> Content {
    let is_part = part.0 > 1 && (1..=part.0).contains(&part.1);
    Content {
        format,
        octets: octets.clone(),
        udhi: tp_udhi & 0x41 != 0,
        part: is_part.then_some(SegmentNumber { total: part.0, number: part.1 }),
    }
}

fn submission(submit: &Submit) -> Submission {
    Submission {
        source: submit.source.clone(),
        destinations: submit.destinations.clone(),
        content: content(submit.format, submit.tp_udhi, &submit.content, submit.part),
        wants_report: match submit.registered_delivery {
            0 => Some(false),
            2 => None,
            _ => Some(true),
        },
        priority: submit.level.min(9).div_ceil(3),
        protocol_id: submit.tp_pid,
        valid_until: submit.valid_until.clone(),
        deliver_at: submit.deliver_at.clone(),
        fields: SpFields {
            service: submit.service.clone(),
            payer_type: Bytes::copy_from_slice(&[submit.payer_type]),
            payer: submit.payer.clone(),
            fee_type: submit.fee_type.clone(),
            fee_code: submit.fee_code.clone(),
            sp_code: submit.sp.clone(),
            link_id: submit.link_id.clone(),
            ..SpFields::default()
        },
    }
}

fn delivery(deliver: &Deliver) -> Delivery {
    Delivery {
        id: deliver.id.octets(),
        source: deliver.source.clone(),
        destination: deliver.destination.clone(),
        content: content(deliver.format, deliver.tp_udhi, &deliver.content, (1, 1)),
        protocol_id: deliver.tp_pid,
        fields: SpFields {
            service: deliver.service.clone(),
            link_id: deliver.link_id.clone(),
            ..SpFields::default()
        },
        received: Bytes::new(),
    }
}

fn status_report(deliver: &Deliver, report: ReportContent) -> SpStatusReport {
    SpStatusReport {
        id: deliver.id.octets(),
        submission: report.id.text(),
        subscriber: if report.destination.is_empty() { deliver.source.clone() } else { report.destination },
        source: deliver.destination.clone(),
        service: deliver.service.clone(),
        word: report.word,
        error: 0,
        submitted: report.submitted,
        done: report.done,
    }
}
