//! SMGP as a protocol of sessions: the role and the meaning of each PDU.

use crate::pdu::command;
use crate::{
    Deliver, LoginAnswer, ReportText, SmgpMsgId, SmgpPdu, SmgpTlvs, Submit, class, status_text, tag,
};
use bytes::{Bytes, BytesMut};
use model::{ErrorClass, Refusal, RejectReason};
use sp_session::{
    ClientAuthenticator, Content, DecodeError, Delivery, FieldError, Header, Meaning, OfferedLogin, OwnLogin,
    PduRole, SegmentNumber, SpFields, SpProtocol, SpStatusReport, Statuses, Submission, server_authenticator,
};
use std::ops::RangeInclusive;

/// SMGP, for [`sp_session::Session`].
#[derive(Debug, PartialEq)]
pub struct Smgp;

/// An SMGP connection.
pub type Session = sp_session::Session<Smgp>;

/// The highest version that we speak.
const MAX_VERSION: u8 = 0x31;

impl SpProtocol for Smgp {
    type Pdu = SmgpPdu;

    const AUTHENTICATOR: ClientAuthenticator = ClientAuthenticator { name_width: 8 };
    const STATUS: Statuses = Statuses {
        structure: 10,
        command: 11,
        sequence: 12,
        throttled: 1,
        length: 36,
        source: 46,
        destination: 47,
        time: 44,
        login_name: 21,
        login_secret: 21,
        login_version: 22,
        login_busy: 2,
        login_repeated: 11,
        other: 10,
    };
    const MAX_LENGTH: u32 = 8192;
    const VENDOR_STATUSES: RangeInclusive<u32> = 128..=255;
    const ID_LENGTH: usize = 10;

    fn decode(version: u8, header: Header, body: &[u8]) -> Result<SmgpPdu, DecodeError> {
        SmgpPdu::decode(version, header, body)
    }

    fn encode(pdu: &SmgpPdu, version: u8, sequence: u32, out: &mut BytesMut) -> Result<(), FieldError> {
        pdu.encode(version, sequence, out)
    }

    fn role(pdu: &SmgpPdu) -> PduRole {
        match pdu {
            SmgpPdu::Login(_) => PduRole::Login,
            SmgpPdu::LoginAnswer(answer) => PduRole::LoginAnswer(answer.status),
            SmgpPdu::Exit => PduRole::Logout,
            SmgpPdu::ExitAnswer => PduRole::LogoutAnswer,
            SmgpPdu::ActiveTest => PduRole::LinkTest,
            SmgpPdu::ActiveTestAnswer => PduRole::LinkTestAnswer,
            SmgpPdu::Submit(_) | SmgpPdu::Deliver(_) | SmgpPdu::Query(_) | SmgpPdu::Forward(_) => {
                PduRole::Request
            }
            SmgpPdu::SubmitAnswer { status, .. }
            | SmgpPdu::DeliverAnswer { status, .. }
            | SmgpPdu::ForwardAnswer { status, .. } => PduRole::Answer(*status),
            SmgpPdu::QueryAnswer(_) => PduRole::Answer(0),
        }
    }

    fn meaning(pdu: &SmgpPdu) -> Meaning {
        match pdu {
            SmgpPdu::Login(login) => Meaning::Login(OfferedLogin {
                name: login.client.clone(),
                authenticator: login.authenticator,
                timestamp: login.timestamp,
                version: login.version,
                submits: login.mode != 1,
                receives: login.mode != 0,
            }),
            SmgpPdu::Submit(submit) => Meaning::Submit(submission(submit)),
            SmgpPdu::Deliver(deliver) if deliver.is_report == 1 => match ReportText::read(&deliver.content) {
                Some(report) => Meaning::Report(status_report(deliver, report)),
                None => Meaning::Other,
            },
            SmgpPdu::Deliver(deliver) => Meaning::Deliver(delivery(deliver)),
            SmgpPdu::SubmitAnswer { id, status } => Meaning::SubmitAnswer {
                id: (*status == 0 && *id != SmgpMsgId::default()).then(|| id.text()),
                status: *status,
            },
            SmgpPdu::DeliverAnswer { status, .. } => Meaning::DeliverAnswer { status: *status },
            _ => Meaning::Other,
        }
    }

    /// Only 1.3 has another layout; a gateway that uses it announces that version.
    fn accepted_version(answer: &SmgpPdu, offered: u8) -> u8 {
        match answer {
            SmgpPdu::LoginAnswer(answer) if answer.version != 0 => answer.version.min(offered),
            _ => offered,
        }
    }

    fn proves_secret(answer: &SmgpPdu, login: &SmgpPdu, secret: &[u8]) -> bool {
        let (SmgpPdu::LoginAnswer(answer), SmgpPdu::Login(login)) = (answer, login) else { return false };
        [&[0_u8; 4][..], &[0_u8]]
            .iter()
            .any(|status| server_authenticator(status, login.authenticator, secret) == answer.authenticator)
    }

    fn link_test(is_answer: bool) -> SmgpPdu {
        if is_answer { SmgpPdu::ActiveTestAnswer } else { SmgpPdu::ActiveTest }
    }

    fn logout(is_answer: bool) -> SmgpPdu {
        if is_answer { SmgpPdu::ExitAnswer } else { SmgpPdu::Exit }
    }

    fn refusal(request: u32, status: u32) -> Option<SmgpPdu> {
        let id = SmgpMsgId::default();
        Some(match request {
            command::LOGIN => {
                SmgpPdu::LoginAnswer(LoginAnswer { status, authenticator: [0; 16], version: MAX_VERSION })
            }
            command::SUBMIT => SmgpPdu::SubmitAnswer { id, status },
            command::DELIVER => SmgpPdu::DeliverAnswer { id, status },
            command::FORWARD => SmgpPdu::ForwardAnswer { id, status, tlvs: SmgpTlvs::default() },
            command::QUERY => SmgpPdu::QueryAnswer(crate::SmgpQueryAnswer::default()),
            _ => return None,
        })
    }

    fn login(request: &OwnLogin<'_>) -> SmgpPdu {
        let hash = if request.unpadded { ClientAuthenticator::unpadded } else { ClientAuthenticator::padded };
        SmgpPdu::Login(crate::Login {
            client: Bytes::copy_from_slice(request.name),
            authenticator: hash(Self::AUTHENTICATOR, request.name, request.secret, request.timestamp),
            mode: 2,
            timestamp: request.timestamp,
            version: request.version,
        })
    }

    fn login_answer(status: u32, login: &OfferedLogin, version: u8, secret: &[u8]) -> SmgpPdu {
        let authenticator = match status {
            0 => server_authenticator(&[0; 4], login.authenticator, secret),
            _ => [0; 16],
        };
        SmgpPdu::LoginAnswer(LoginAnswer { status, authenticator, version: version.min(MAX_VERSION) })
    }

    fn submit(submission: &Submission) -> SmgpPdu {
        let (fields, content) = (&submission.fields, &submission.content);
        let mut tlvs = SmgpTlvs(crate::tlv::read_all(&fields.more));
        if submission.protocol_id != 0 {
            tlvs.put_octet(tag::TP_PID, submission.protocol_id);
        }
        if content.udhi {
            tlvs.put_octet(tag::TP_UDHI, 1);
        }
        tlvs.put_text(tag::LINK_ID, &fields.link_id, 20);
        if let Some(payer_type) = fields.payer_type.first() {
            tlvs.put_octet(tag::CHARGE_USER_TYPE, *payer_type);
        }
        tlvs.put_text(tag::MSG_SRC, &fields.sp_code, 8);
        if let Some(part) = content.part {
            tlvs.put_octet(tag::PK_TOTAL, part.total);
            tlvs.put_octet(tag::PK_NUMBER, part.number);
        }
        tlvs.put_text(tag::M_SERVICE_ID, &fields.product, 21);
        SmgpPdu::Submit(Box::new(Submit {
            kind: 6,
            need_report: u8::from(submission.wants_report == Some(true)),
            priority: submission.priority,
            service: fields.service.clone(),
            fee_type: translate(&fields.fee_type, |(cmpp, smgp)| (cmpp, smgp)),
            fee_code: fields.fee_code.clone(),
            fixed_fee: fields.fixed_fee.clone(),
            format: content.format,
            valid_until: submission.valid_until.clone(),
            deliver_at: submission.deliver_at.clone(),
            source: submission.source.clone(),
            payer: fields.payer.clone(),
            destinations: submission.destinations.clone(),
            content: content.octets.clone(),
            reserve: Bytes::new(),
            tlvs,
        }))
    }

    fn submit_answer(id: &[u8], status: u32) -> SmgpPdu {
        SmgpPdu::SubmitAnswer { id: SmgpMsgId::of(id), status }
    }

    fn deliver(delivery: &Delivery) -> SmgpPdu {
        let mut tlvs = SmgpTlvs::default();
        if delivery.protocol_id != 0 {
            tlvs.put_octet(tag::TP_PID, delivery.protocol_id);
        }
        if delivery.content.udhi {
            tlvs.put_octet(tag::TP_UDHI, 1);
        }
        tlvs.put_text(tag::LINK_ID, &delivery.fields.link_id, 20);
        SmgpPdu::Deliver(Box::new(Deliver {
            id: SmgpMsgId::of(&delivery.id),
            is_report: 0,
            format: delivery.content.format,
            received: delivery.received.clone(),
            source: delivery.source.clone(),
            destination: delivery.destination.clone(),
            content: delivery.content.octets.clone(),
            reserve: Bytes::new(),
            tlvs,
        }))
    }

    fn report(report: &SpStatusReport, _: u8) -> SmgpPdu {
        let text = ReportText {
            id: SmgpMsgId::of(&report.submission),
            submitted: report.submitted.clone(),
            done: report.done.clone(),
            word: report.word.clone(),
            error: format!("{:03}", report.error.min(999)).into(),
            text: Bytes::new(),
        };
        SmgpPdu::Deliver(Box::new(Deliver {
            id: SmgpMsgId::of(&report.id),
            is_report: 1,
            received: [b"20", &report.done[..], b"00"].concat().into(),
            source: report.subscriber.clone(),
            destination: report.source.clone(),
            content: text.write(),
            ..Deliver::default()
        }))
    }

    fn deliver_answer(id: &[u8], status: u32) -> SmgpPdu {
        SmgpPdu::DeliverAnswer { id: SmgpMsgId::of(id), status }
    }

    fn message_id(second: u64, counter: u32, gateway: u32) -> Bytes {
        Bytes::copy_from_slice(&SmgpMsgId::new(second, gateway, counter).0)
    }

    fn following_id(first: &[u8], index: u32) -> Bytes {
        Bytes::copy_from_slice(&SmgpMsgId::of(first).following(index).0)
    }

    fn class(status: u32) -> ErrorClass {
        class(status)
    }

    fn status_text(status: u32) -> &'static str {
        status_text(status)
    }

    fn status_of(refusal: Refusal, _: u8) -> u32 {
        match refusal {
            Refusal::QueueFull
            | Refusal::Throttled
            | Refusal::QuotaExceeded
            | Refusal::Internal
            | Refusal::ShuttingDown
            | Refusal::KeysFull { .. }
            | Refusal::Rejected(RejectReason::TryLater | RejectReason::Fault) => 1,
            Refusal::Rejected(RejectReason::InvalidSource) => 46,
            Refusal::Rejected(RejectReason::InvalidDestination | RejectReason::NoRoute) => 47,
            Refusal::BadSchedule => 45,
            Refusal::Expired => 44,
            Refusal::KeyReused => 12,
            _ => 10,
        }
    }

    fn version_status(version: u8) -> u32 {
        match version {
            0x13 | 0x20..=0x3F => 0,
            _ => 22,
        }
    }
}

/// The kinds of charges of CMPP, which [`SpFields`] has, and ours: free, per message, monthly, capped.
const FEE_TYPES: [(&str, &str); 4] = [("01", "00"), ("02", "01"), ("03", "02"), ("04", "03")];

/// Translates a kind of charge; a kind without a translation is unchanged.
fn translate(
    fee_type: &Bytes,
    direction: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Bytes {
    let found = FEE_TYPES.into_iter().map(direction).find(|(from, _)| from.as_bytes() == &fee_type[..]);
    found.map_or_else(|| fee_type.clone(), |(_, to)| Bytes::from_static(to.as_bytes()))
}

fn content(format: u8, octets: &Bytes, tlvs: &SmgpTlvs) -> Content {
    let total = tlvs.octet(tag::PK_TOTAL).unwrap_or(0);
    let number = tlvs.octet(tag::PK_NUMBER).unwrap_or(0);
    let is_part = total > 1 && (1..=total).contains(&number);
    Content {
        format,
        octets: octets.clone(),
        udhi: tlvs.octet(tag::TP_UDHI).is_some_and(|udhi| udhi & 0x41 != 0),
        part: is_part.then_some(SegmentNumber { total, number }),
    }
}

/// The optional fields without a field of their own in [`SpFields`].
fn more(tlvs: &SmgpTlvs) -> Bytes {
    const OWN: [u16; 8] = [
        tag::TP_PID,
        tag::TP_UDHI,
        tag::LINK_ID,
        tag::CHARGE_USER_TYPE,
        tag::PK_TOTAL,
        tag::PK_NUMBER,
        tag::MSG_SRC,
        tag::M_SERVICE_ID,
    ];
    SmgpTlvs(tlvs.0.iter().filter(|(tag, _)| !OWN.contains(tag)).cloned().collect()).to_bytes()
}

fn submission(submit: &Submit) -> Submission {
    let tlvs = &submit.tlvs;
    Submission {
        source: submit.source.clone(),
        destinations: submit.destinations.clone(),
        content: content(submit.format, &submit.content, tlvs),
        wants_report: Some(submit.need_report != 0),
        priority: submit.priority.min(3),
        protocol_id: tlvs.octet(tag::TP_PID).unwrap_or(0),
        valid_until: submit.valid_until.clone(),
        deliver_at: submit.deliver_at.clone(),
        fields: SpFields {
            service: submit.service.clone(),
            payer_type: tlvs.get(tag::CHARGE_USER_TYPE).cloned().unwrap_or_default(),
            payer: submit.payer.clone(),
            fee_type: translate(&submit.fee_type, |(cmpp, smgp)| (smgp, cmpp)),
            fee_code: submit.fee_code.clone(),
            fixed_fee: submit.fixed_fee.clone(),
            sp_code: tlvs.text(tag::MSG_SRC),
            link_id: tlvs.text(tag::LINK_ID),
            product: tlvs.text(tag::M_SERVICE_ID),
            more: more(tlvs),
            ..SpFields::default()
        },
    }
}

fn delivery(deliver: &Deliver) -> Delivery {
    Delivery {
        id: Bytes::copy_from_slice(&deliver.id.0),
        source: deliver.source.clone(),
        destination: deliver.destination.clone(),
        content: content(deliver.format, &deliver.content, &deliver.tlvs),
        protocol_id: deliver.tlvs.octet(tag::TP_PID).unwrap_or(0),
        fields: SpFields { link_id: deliver.tlvs.text(tag::LINK_ID), ..SpFields::default() },
        received: deliver.received.clone(),
    }
}

fn status_report(deliver: &Deliver, report: ReportText) -> SpStatusReport {
    SpStatusReport {
        id: Bytes::copy_from_slice(&deliver.id.0),
        submission: report.id.text(),
        subscriber: deliver.source.clone(),
        source: deliver.destination.clone(),
        service: Bytes::new(),
        word: report.word,
        error: std::str::from_utf8(&report.error).ok().and_then(|text| text.parse().ok()).unwrap_or(0),
        submitted: report.submitted,
        done: report.done,
    }
}
