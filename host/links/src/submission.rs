//! From a PDU to a message: what ESMEs submit and what SMSCs deliver.

use crate::AccountOptions;
use bytes::Bytes;
use model::{
    Address, DecidedBy, Kind, Message, MessageId, PeerId, Priority, ReceiptRequest, RejectReason, Routed,
    Text, Timestamp, Verdict,
};
use smpp::concat::{self, ESM_UDHI};
use smpp::{DataSm, Sm, Status, Tlvs, Version, tag, time};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// What stands in a message until it has been routed.
static UNROUTED: LazyLock<Arc<DecidedBy>> =
    LazyLock::new(|| Arc::new(DecidedBy { plugin: String::new(), version: String::new() }));

pub(crate) fn unrouted() -> Routed {
    Routed::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone())
}

/// The bits of esm_class that go with the message: its type (5-2) and reply path (7). The mode (1-0) is about this hop,
/// and the header indicator (6) is part of the text.
const ESM_KEPT: u8 = 0xBC;

/// TLVs that speak of this hop, or that we understand and carry in another shape; all others are passed on as they
/// came, those unknown to us included. user_message_reference is the ESME's own and goes along. Those of the private
/// range are for our own doors to write: they say what a gateway charges, and to whom.
fn is_ours(tag: u16) -> bool {
    if sgip::PRIVATE_TAGS.contains(&tag) {
        return true;
    }
    matches!(
        tag,
        tag::MESSAGE_PAYLOAD
            | tag::MORE_MESSAGES_TO_SEND
            | tag::QOS_TIME_TO_LIVE
            | tag::SC_INTERFACE_VERSION
            | tag::CONGESTION_STATE
    )
}

fn is_sar(tag: u16) -> bool {
    matches!(tag, tag::SAR_MSG_REF_NUM | tag::SAR_TOTAL_SEGMENTS | tag::SAR_SEGMENT_SEQNUM)
}

/// Octets of their own: a slice of the socket's buffer would keep all of that buffer in memory for as long as the
/// message waits.
fn own(octets: &Bytes) -> Bytes {
    if octets.is_empty() { Bytes::new() } else { Bytes::copy_from_slice(octets) }
}

/// The TLVs that go on with the message.
fn passed_on(tlvs: &Tlvs, udhi: bool, text: &[u8]) -> Result<Bytes, Status> {
    if tlvs.is_empty() {
        return Ok(Bytes::new());
    }
    tlvs.check_lengths().map_err(|error| error.status)?;
    // A header in the text wins over the SAR TLVs, and an incomplete set of these means nothing (34 §5.3.2.22).
    let keep_sar = !udhi && concat::part_of(false, text, tlvs).is_some();
    let kept = tlvs.without(|tag| is_ours(tag) || (is_sar(tag) && !keep_sar));
    Ok(own(kept.raw()))
}

/// Receipts wanted, as registered_delivery says (34 §5.2.17). The value 3 is reserved in 3.4 and counts as 1 there; in
/// 5.0 it asks for receipts of success only.
pub(crate) fn receipts(registered_delivery: u8, version: Version) -> ReceiptRequest {
    let (on_success, on_failure) = match registered_delivery & 3 {
        0 => (false, false),
        2 => (false, true),
        3 if version.is_v5() => (true, false),
        _ => (true, true),
    };
    ReceiptRequest { on_success, on_failure, intermediate: registered_delivery & 0x10 != 0 }
}

/// Parts that a text takes on the air; what rates count.
pub(crate) fn parts(text: &[u8], data_coding: u8) -> u32 {
    let octets = text.len();
    if octets <= concat::room_in_single(data_coding).max(smpp::MAX_SHORT_MESSAGE) {
        return 1;
    }
    u32::try_from(octets.div_ceil(concat::room_in_part(data_coding))).unwrap_or(u32::MAX)
}

/// What a submission is judged by.
pub(crate) struct Submitter<'a> {
    pub(crate) options: &'a AccountOptions,
    pub(crate) version: Version,
    pub(crate) wall: Timestamp,
}

impl Submitter<'_> {
    /// The source to use, if the account may use it.
    pub(crate) fn source(&self, source: Address) -> Result<Address, Status> {
        let source = self.or_default(source);
        if self.options.source.allows(&source.value) { Ok(source) } else { Err(Status::RINVSRCADR) }
    }

    /// The account's default where there is no source.
    pub(crate) fn or_default(&self, source: Address) -> Address {
        match &self.options.source.default {
            Some(default) if source.is_empty() => default.clone(),
            _ => source,
        }
    }

    pub(crate) fn scheduled(&self, field: &[u8]) -> Result<Option<Timestamp>, Status> {
        time::parse(field, self.wall).map_err(|_| Status::RINVSCHED)
    }

    /// The end of validity. The engine refuses what has already ended.
    pub(crate) fn expires(&self, field: &[u8]) -> Result<Option<Timestamp>, Status> {
        time::parse(field, self.wall).map_err(|_| Status::RINVEXPIRY)
    }

    /// submit_sm, and submit_multi but for its destinations.
    pub(crate) fn submit(&self, sm: Sm) -> Result<Message, Status> {
        if sm.sm_default_msg_id != 0 {
            return Err(Status::RINVDFTMSGID);
        }
        let expires_at = self.expires(&sm.validity_period)?;
        let scheduled = self.scheduled(&sm.schedule_delivery_time)?;
        let udhi = sm.esm_class & ESM_UDHI != 0;
        let text = sm.text();
        Ok(Message {
            id: MessageId::default(),
            kind: Kind::Text,
            origin: self.options.peer,
            service_type: own(&sm.service_type),
            protocol_id: sm.protocol_id,
            esm_class: sm.esm_class & ESM_KEPT,
            priority: Priority::new(sm.priority_flag),
            receipts: receipts(sm.registered_delivery, self.version),
            replace_if_present: sm.replace_if_present != 0,
            submission: None,
            tlvs: passed_on(&sm.tlvs, udhi, &text)?,
            text: Text {
                payload: sm.short_message.is_empty() && !text.is_empty(),
                octets: own(&text),
                data_coding: sm.data_coding,
                udhi,
            },
            source: self.source(sm.source)?,
            destination: sm.destination,
            accepted_at: Timestamp::default(),
            scheduled,
            expires_at: expires_at.unwrap_or(self.wall + self.options.validity),
            routed: unrouted(),
        })
    }

    /// data_sm from an ESME.
    pub(crate) fn data(&self, data: DataSm) -> Result<Message, Status> {
        let lifetime = data
            .tlvs
            .get(tag::QOS_TIME_TO_LIVE)
            .and_then(|value| <[u8; 4]>::try_from(value.as_ref()).ok())
            .map_or(self.options.validity, |octets| Duration::from_secs(u32::from_be_bytes(octets).into()));
        let (receipts, wall) = (receipts(data.registered_delivery, self.version), self.wall);
        let mut message = of_data(data, self.options.peer, receipts, wall + lifetime)?;
        message.source = self.source(message.source)?;
        Ok(message)
    }
}

fn of_data(
    data: DataSm,
    origin: PeerId,
    receipts: ReceiptRequest,
    expires_at: Timestamp,
) -> Result<Message, Status> {
    let text = data.tlvs.get(tag::MESSAGE_PAYLOAD).ok_or(Status::RMISSINGTLV)?;
    let udhi = data.esm_class & ESM_UDHI != 0;
    Ok(Message {
        id: MessageId::default(),
        kind: Kind::Text,
        origin,
        service_type: own(&data.service_type),
        protocol_id: 0,
        esm_class: data.esm_class & ESM_KEPT,
        priority: Priority::default(),
        receipts,
        replace_if_present: false,
        submission: None,
        tlvs: passed_on(&data.tlvs, udhi, &text)?,
        text: Text { octets: own(&text), data_coding: data.data_coding, udhi, payload: true },
        source: data.source,
        destination: data.destination,
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at,
        routed: unrouted(),
    })
}

/// An MO that an SMSC delivers. Whatever it says about schedules and receipts does not concern us.
pub(crate) fn delivered(sm: Sm, origin: PeerId, expires_at: Timestamp) -> Result<Message, Status> {
    let udhi = sm.esm_class & ESM_UDHI != 0;
    let text = sm.text();
    Ok(Message {
        id: MessageId::default(),
        kind: Kind::Text,
        origin,
        service_type: own(&sm.service_type),
        protocol_id: sm.protocol_id,
        esm_class: sm.esm_class & ESM_KEPT,
        priority: Priority::new(sm.priority_flag),
        receipts: ReceiptRequest::NONE,
        replace_if_present: false,
        submission: None,
        tlvs: passed_on(&sm.tlvs, udhi, &text).unwrap_or_default(),
        text: Text {
            payload: sm.short_message.is_empty() && !text.is_empty(),
            octets: own(&text),
            data_coding: sm.data_coding,
            udhi,
        },
        source: sm.source,
        destination: sm.destination,
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at,
        routed: unrouted(),
    })
}

/// An MO that an SMSC sends as data_sm.
pub(crate) fn delivered_data(data: DataSm, origin: PeerId, expires_at: Timestamp) -> Result<Message, Status> {
    of_data(data, origin, ReceiptRequest::NONE, expires_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn account() -> AccountOptions {
        AccountOptions::new("acme", PeerId(7), "")
    }

    fn submitter(options: &AccountOptions) -> Submitter<'_> {
        Submitter { options, version: Version::V34, wall: WALL }
    }

    fn sm() -> Sm {
        Sm {
            source: Address::new(0, 0, b"10655"),
            destination: Address::international("8613012345678"),
            short_message: Bytes::from_static(b"Hello"),
            ..Sm::default()
        }
    }

    #[test]
    fn check_064_and_source_rules() {
        let mut options = account();
        options.source.allow = vec!["1065*".into()];
        options.source.default = Some(Address::new(0, 0, b"10650"));
        let empty = Sm { source: Address::default(), ..sm() };
        assert_eq!(submitter(&options).submit(empty).unwrap().source.value.as_slice(), b"10650");
        let other = Sm { source: Address::new(5, 0, b"BANK"), ..sm() };
        assert_eq!(submitter(&options).submit(other), Err(Status::RINVSRCADR));
    }

    #[test]
    fn check_065_octets_outside_ascii_stay() {
        let options = account();
        let odd = Sm { source: Address::new(5, 0, &[0xE9, 0x41]), ..sm() };
        let message = submitter(&options).submit(odd).unwrap();
        assert_eq!((message.source.ton, message.source.value.as_slice()), (5, &[0xE9, 0x41][..]));
    }

    #[test]
    fn check_071_072_073_075_tlvs() {
        let options = account();
        let with = |tlvs: Tlvs, esm_class| submitter(&options).submit(Sm { tlvs, esm_class, ..sm() });
        let vendor = Tlvs::default().with(0x1401, &[0xDE, 0xAD]).with(tag::USER_MESSAGE_REFERENCE, &[0, 42]);
        assert_eq!(with(vendor.clone(), 0).unwrap().tlvs, *vendor.raw());
        let fee = sgip::Fields { fee_value: Some("9999".into()), ..sgip::Fields::default() };
        let mut forged = bytes::BytesMut::from(&vendor.raw()[..]);
        fee.append_to(&mut forged);
        let forged = with(Tlvs::from_raw(forged.freeze()), 0).unwrap();
        assert_eq!(forged.tlvs, *vendor.raw(), "an ESME does not say what a gateway charges");
        assert_eq!(with(Tlvs::default().with(tag::SAR_TOTAL_SEGMENTS, &[0, 2]), 0), Err(Status::RINVPARLEN));
        let two = Tlvs::default().with(tag::SAR_MSG_REF_NUM, &[0, 1]).with(tag::SAR_TOTAL_SEGMENTS, &[2]);
        assert!(with(two.clone(), 0).unwrap().tlvs.is_empty());
        let three = two.with(tag::SAR_SEGMENT_SEQNUM, &[1]);
        assert_eq!(with(three.clone(), 0).unwrap().tlvs, *three.raw());
        assert!(with(three, ESM_UDHI).unwrap().tlvs.is_empty(), "a header wins");
    }

    #[test]
    fn check_081_082_086_times_and_default_messages() {
        let options = account();
        let submit = |sm| submitter(&options).submit(sm);
        let validity = |text: &'static [u8]| submit(Sm { validity_period: Bytes::from_static(text), ..sm() });
        assert_eq!(validity(b"000000010000000R").unwrap().expires_at, Timestamp(WALL.0 + 3_600_000));
        assert!(validity(b"261231235959032+").is_ok());
        assert_eq!(validity(b"abc"), Err(Status::RINVEXPIRY));
        assert_eq!(validity(b"").unwrap().expires_at, WALL + options.validity);
        let schedule = Sm { schedule_delivery_time: Bytes::from_static(b"tomorrow"), ..sm() };
        assert_eq!(submit(schedule), Err(Status::RINVSCHED));
        assert_eq!(submit(Sm { sm_default_msg_id: 7, ..sm() }), Err(Status::RINVDFTMSGID));
    }

    #[test]
    fn check_083_registered_delivery() {
        let want = |success, failure, intermediate| ReceiptRequest {
            on_success: success,
            on_failure: failure,
            intermediate,
        };
        for (octet, v34, v5) in [
            (0x00, want(false, false, false), want(false, false, false)),
            (0x01, want(true, true, false), want(true, true, false)),
            (0x02, want(false, true, false), want(false, true, false)),
            (0x03, want(true, true, false), want(true, false, false)),
            (0x10, want(false, false, true), want(false, false, true)),
            (0x11, want(true, true, true), want(true, true, true)),
        ] {
            assert_eq!(receipts(octet, Version::V34), v34, "{octet:#x}");
            assert_eq!(receipts(octet, Version(0x50)), v5, "{octet:#x} in 5.0");
        }
    }

    #[test]
    fn check_069_084_payload_and_priority() {
        let options = account();
        let long = Sm {
            short_message: Bytes::new(),
            tlvs: Tlvs::default().with(tag::MESSAGE_PAYLOAD, &[b'A'; 300]),
            priority_flag: 200,
            ..sm()
        };
        let message = submitter(&options).submit(long).unwrap();
        assert!(message.text.payload && message.tlvs.is_empty());
        assert_eq!((message.text.octets.len(), message.priority.level()), (300, 3));
        assert_eq!(parts(&message.text.octets, 0), 2);
        assert_eq!(parts(&[0; 254], 0), 1);
    }

    #[test]
    fn check_094_data_sm_without_payload() {
        let options = account();
        let data = DataSm { destination: Address::international("861301"), ..DataSm::default() };
        assert_eq!(submitter(&options).data(data.clone()), Err(Status::RMISSINGTLV));
        let tlvs =
            Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"Hi").with(tag::QOS_TIME_TO_LIVE, &[0, 0, 0, 60]);
        let message = submitter(&options).data(DataSm { tlvs, ..data }).unwrap();
        assert_eq!(message.expires_at, Timestamp(WALL.0 + 60_000));
        assert!(message.tlvs.is_empty());
    }
}
