//! Conversion of PDUs to messages: submissions of ESMEs, and MO messages of SMSCs.

use crate::LinkAccountOptions;
use bytes::Bytes;
use model::{
    Address, DlrRequest, Message, MessageId, MessageKind, PeerId, PluginVersion, Priority, RejectReason,
    RoutingDecision, Text, Timestamp, Verdict,
};
use smpp::segmentation::{self, ESM_UDHI};
use smpp::{CommandStatus, DataSm, InterfaceVersion, Sm, Tlvs, tag, time};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The author of the verdict of a message that is not routed yet.
static UNROUTED: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: String::new(), version: String::new() }));

pub(crate) fn unrouted() -> RoutingDecision {
    RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone())
}

/// The bits of esm_class that are kept with the message: its type (5-2) and reply path (7). The mode (1-0) applies to
/// this hop only, and the UDH indicator (6) is stored with the text.
const ESM_KEPT: u8 = 0xBC;

/// Whether a TLV applies to this hop only, or is stored in another form. All others are passed on unchanged, including
/// unknown ones. user_message_reference belongs to the ESME and is passed on.
fn is_hop_tlv(tag: u16) -> bool {
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

/// Copies octets: a slice of the socket's buffer would keep the whole buffer in memory while the message waits.
fn copy_octets(octets: &Bytes) -> Bytes {
    if octets.is_empty() { Bytes::new() } else { Bytes::copy_from_slice(octets) }
}

/// The TLVs that are passed on with the message.
fn forwarded_tlvs(tlvs: &Tlvs, udhi: bool, text: &[u8]) -> Result<Bytes, CommandStatus> {
    if tlvs.is_empty() {
        return Ok(Bytes::new());
    }
    tlvs.check_lengths().map_err(|error| error.status)?;
    // A UDH takes precedence over SAR TLVs. An incomplete set of SAR TLVs is ignored (34 §5.3.2.22).
    let keep_sar = !udhi && segmentation::segment_info(false, text, tlvs).is_some();
    let kept = tlvs.without(|tag| is_hop_tlv(tag) || (is_sar(tag) && !keep_sar));
    Ok(copy_octets(kept.raw()))
}

/// The requested DLRs in registered_delivery (34 §5.2.17). The value 3 is reserved in 3.4 and counts as 1; in 5.0, it
/// requests DLRs of success only.
pub(crate) fn requested_dlrs(registered_delivery: u8, version: InterfaceVersion) -> DlrRequest {
    let (on_success, on_failure) = match registered_delivery & 3 {
        0 => (false, false),
        2 => (false, true),
        3 if version.is_v5() => (true, false),
        _ => (true, true),
    };
    DlrRequest { on_success, on_failure, intermediate: registered_delivery & 0x10 != 0 }
}

/// Number of segments of a text; rates count segments.
pub(crate) fn segment_count(text: &[u8], data_coding: u8) -> u32 {
    let octets = text.len();
    if octets <= segmentation::octets_in_single(data_coding).max(smpp::MAX_SHORT_MESSAGE) {
        return 1;
    }
    u32::try_from(octets.div_ceil(segmentation::octets_per_segment(data_coding))).unwrap_or(u32::MAX)
}

/// The rules that a submission must meet.
pub(crate) struct SubmissionContext<'a> {
    pub(crate) options: &'a LinkAccountOptions,
    pub(crate) version: InterfaceVersion,
    pub(crate) wall: Timestamp,
}

impl SubmissionContext<'_> {
    /// Returns the source to use, if the account may use it.
    pub(crate) fn allowed_source(&self, source: Address) -> Result<Address, CommandStatus> {
        let source = self.source_or_default(source);
        if self.options.source.allows(&source.value) { Ok(source) } else { Err(CommandStatus::RINVSRCADR) }
    }

    /// Returns the source, or the account's default if there is none.
    pub(crate) fn source_or_default(&self, source: Address) -> Address {
        match &self.options.source.default {
            Some(default) if source.is_empty() => default.clone(),
            _ => source,
        }
    }

    /// The TLVs with the account's default TLVs.
    fn with_rules(&self, tlvs: Bytes) -> Result<Bytes, CommandStatus> {
        self.options.tlv_rules.apply(tlvs).map_err(|_| CommandStatus::RMISSINGTLV)
    }

    pub(crate) fn scheduled(&self, field: &[u8]) -> Result<Option<Timestamp>, CommandStatus> {
        time::parse(field, self.wall).map_err(|_| CommandStatus::RINVSCHED)
    }

    /// Parses the end of the validity. The engine refuses a message whose validity has ended.
    pub(crate) fn expires(&self, field: &[u8]) -> Result<Option<Timestamp>, CommandStatus> {
        time::parse(field, self.wall).map_err(|_| CommandStatus::RINVEXPIRY)
    }

    /// Reads a submit_sm, or a submit_multi without its destinations.
    pub(crate) fn message_from_submit(&self, sm: Sm) -> Result<Message, CommandStatus> {
        if sm.sm_default_msg_id != 0 {
            return Err(CommandStatus::RINVDFTMSGID);
        }
        let expires_at = self.expires(&sm.validity_period)?;
        let scheduled = self.scheduled(&sm.schedule_delivery_time)?;
        let udhi = sm.esm_class & ESM_UDHI != 0;
        let text = sm.text();
        Ok(Message {
            id: MessageId::default(),
            kind: MessageKind::Text,
            origin: self.options.peer,
            service_type: copy_octets(&sm.service_type),
            protocol_id: sm.protocol_id,
            esm_class: sm.esm_class & ESM_KEPT,
            priority: Priority::new(sm.priority_flag),
            dlr_request: requested_dlrs(sm.registered_delivery, self.version),
            replace_if_present: sm.replace_if_present != 0,
            submission: None,
            tlvs: self.with_rules(forwarded_tlvs(&sm.tlvs, udhi, &text)?)?,
            protocol_fields: Bytes::new(),
            sealed: None,
            text: Text {
                payload: sm.short_message.is_empty() && !text.is_empty(),
                octets: copy_octets(&text),
                data_coding: sm.data_coding,
                udhi,
            },
            source: self.allowed_source(sm.source)?,
            destination: sm.destination,
            accepted_at: Timestamp::default(),
            scheduled,
            expires_at: expires_at.unwrap_or(self.wall + self.options.validity),
            routed: unrouted(),
        })
    }

    /// Reads a data_sm of an ESME.
    pub(crate) fn message_from_data(&self, data: DataSm) -> Result<Message, CommandStatus> {
        let lifetime = data
            .tlvs
            .get(tag::QOS_TIME_TO_LIVE)
            .and_then(|value| <[u8; 4]>::try_from(value.as_ref()).ok())
            .map_or(self.options.validity, |octets| Duration::from_secs(u32::from_be_bytes(octets).into()));
        let (dlr_request, wall) = (requested_dlrs(data.registered_delivery, self.version), self.wall);
        let mut message = message_from_data_sm(data, self.options.peer, dlr_request, wall + lifetime)?;
        message.source = self.allowed_source(message.source)?;
        message.tlvs = self.with_rules(message.tlvs)?;
        Ok(message)
    }
}

fn message_from_data_sm(
    data: DataSm,
    origin: PeerId,
    dlr_request: DlrRequest,
    expires_at: Timestamp,
) -> Result<Message, CommandStatus> {
    let text = data.tlvs.get(tag::MESSAGE_PAYLOAD).ok_or(CommandStatus::RMISSINGTLV)?;
    let udhi = data.esm_class & ESM_UDHI != 0;
    Ok(Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin,
        service_type: copy_octets(&data.service_type),
        protocol_id: 0,
        esm_class: data.esm_class & ESM_KEPT,
        priority: Priority::default(),
        dlr_request,
        replace_if_present: false,
        submission: None,
        tlvs: forwarded_tlvs(&data.tlvs, udhi, &text)?,
        protocol_fields: Bytes::new(),
        sealed: None,
        text: Text { octets: copy_octets(&text), data_coding: data.data_coding, udhi, payload: true },
        source: data.source,
        destination: data.destination,
        accepted_at: Timestamp::default(),
        scheduled: None,
        expires_at,
        routed: unrouted(),
    })
}

/// Converts an MO message in a deliver_sm of an SMSC. Its schedule and its DLR request are ignored.
pub(crate) fn mo_from_deliver_sm(
    sm: Sm,
    origin: PeerId,
    expires_at: Timestamp,
) -> Result<Message, CommandStatus> {
    let udhi = sm.esm_class & ESM_UDHI != 0;
    let text = sm.text();
    Ok(Message {
        id: MessageId::default(),
        kind: MessageKind::Text,
        origin,
        service_type: copy_octets(&sm.service_type),
        protocol_id: sm.protocol_id,
        esm_class: sm.esm_class & ESM_KEPT,
        priority: Priority::new(sm.priority_flag),
        dlr_request: DlrRequest::NONE,
        replace_if_present: false,
        submission: None,
        tlvs: forwarded_tlvs(&sm.tlvs, udhi, &text).unwrap_or_default(),
        protocol_fields: Bytes::new(),
        sealed: None,
        text: Text {
            payload: sm.short_message.is_empty() && !text.is_empty(),
            octets: copy_octets(&text),
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

/// Converts an MO message in a data_sm of an SMSC.
pub(crate) fn mo_from_data_sm(
    data: DataSm,
    origin: PeerId,
    expires_at: Timestamp,
) -> Result<Message, CommandStatus> {
    message_from_data_sm(data, origin, DlrRequest::NONE, expires_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Timestamp = Timestamp(1_795_000_000_000);

    fn account() -> LinkAccountOptions {
        LinkAccountOptions::new("acme", PeerId(7), "")
    }

    fn submission(options: &LinkAccountOptions) -> SubmissionContext<'_> {
        SubmissionContext { options, version: InterfaceVersion::V34, wall: WALL }
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
        assert_eq!(
            submission(&options).message_from_submit(empty).unwrap().source.value.as_slice(),
            b"10650"
        );
        let other = Sm { source: Address::new(5, 0, b"BANK"), ..sm() };
        assert_eq!(submission(&options).message_from_submit(other), Err(CommandStatus::RINVSRCADR));
    }

    #[test]
    fn check_065_octets_outside_ascii_stay() {
        let options = account();
        let odd = Sm { source: Address::new(5, 0, &[0xE9, 0x41]), ..sm() };
        let message = submission(&options).message_from_submit(odd).unwrap();
        assert_eq!((message.source.ton, message.source.value.as_slice()), (5, &[0xE9, 0x41][..]));
    }

    #[test]
    fn an_account_requires_tlvs_and_adds_defaults() {
        let mut options = account();
        options.tlv_rules.required = vec![0x1400];
        options.tlv_rules.defaults = vec![(0x1401, Bytes::from_static(b"brand"))];
        let with = |tlvs| submission(&options).message_from_submit(Sm { tlvs, ..sm() });
        assert_eq!(with(Tlvs::default()), Err(CommandStatus::RMISSINGTLV));
        let own = Tlvs::default().with(0x1400, b"entity");
        let both = own.clone().with(0x1401, b"brand");
        assert_eq!(with(own).unwrap().tlvs, *both.raw());
    }

    #[test]
    fn check_071_072_073_075_tlvs() {
        let options = account();
        let with =
            |tlvs: Tlvs, esm_class| submission(&options).message_from_submit(Sm { tlvs, esm_class, ..sm() });
        let vendor = Tlvs::default().with(0x1401, &[0xDE, 0xAD]).with(tag::USER_MESSAGE_REFERENCE, &[0, 42]);
        assert_eq!(with(vendor.clone(), 0).unwrap().tlvs, *vendor.raw());
        let fee = sgip::SgipFields { fee_value: Some("9999".into()), ..sgip::SgipFields::default() };
        let mut same_tags = bytes::BytesMut::from(&vendor.raw()[..]);
        fee.append_to(&mut same_tags);
        let same_tags = same_tags.freeze();
        let passed = with(Tlvs::from_raw(same_tags.clone()), 0).unwrap();
        assert_eq!(passed.tlvs, same_tags, "0x1500 to 0x15FF are the customer's");
        assert!(passed.protocol_fields.is_empty(), "an ESME does not say what a gateway charges");
        assert_eq!(
            with(Tlvs::default().with(tag::SAR_TOTAL_SEGMENTS, &[0, 2]), 0),
            Err(CommandStatus::RINVPARLEN)
        );
        let two = Tlvs::default().with(tag::SAR_MSG_REF_NUM, &[0, 1]).with(tag::SAR_TOTAL_SEGMENTS, &[2]);
        assert!(with(two.clone(), 0).unwrap().tlvs.is_empty());
        let three = two.with(tag::SAR_SEGMENT_SEQNUM, &[1]);
        assert_eq!(with(three.clone(), 0).unwrap().tlvs, *three.raw());
        assert!(with(three, ESM_UDHI).unwrap().tlvs.is_empty(), "a header wins");
    }

    #[test]
    fn check_081_082_086_times_and_default_messages() {
        let options = account();
        let submit = |sm| submission(&options).message_from_submit(sm);
        let validity = |text: &'static [u8]| submit(Sm { validity_period: Bytes::from_static(text), ..sm() });
        assert_eq!(validity(b"000000010000000R").unwrap().expires_at, Timestamp(WALL.0 + 3_600_000));
        assert!(validity(b"261231235959032+").is_ok());
        assert_eq!(validity(b"abc"), Err(CommandStatus::RINVEXPIRY));
        assert_eq!(validity(b"").unwrap().expires_at, WALL + options.validity);
        let schedule = Sm { schedule_delivery_time: Bytes::from_static(b"tomorrow"), ..sm() };
        assert_eq!(submit(schedule), Err(CommandStatus::RINVSCHED));
        assert_eq!(submit(Sm { sm_default_msg_id: 7, ..sm() }), Err(CommandStatus::RINVDFTMSGID));
    }

    #[test]
    fn check_083_registered_delivery() {
        let want = |success, failure, intermediate| DlrRequest {
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
            assert_eq!(requested_dlrs(octet, InterfaceVersion::V34), v34, "{octet:#x}");
            assert_eq!(requested_dlrs(octet, InterfaceVersion(0x50)), v5, "{octet:#x} in 5.0");
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
        let message = submission(&options).message_from_submit(long).unwrap();
        assert!(message.text.payload && message.tlvs.is_empty());
        assert_eq!((message.text.octets.len(), message.priority.level()), (300, 3));
        assert_eq!(segment_count(&message.text.octets, 0), 2);
        assert_eq!(segment_count(&[0; 254], 0), 1);
    }

    #[test]
    fn check_094_data_sm_without_payload() {
        let options = account();
        let data = DataSm { destination: Address::international("861301"), ..DataSm::default() };
        assert_eq!(submission(&options).message_from_data(data.clone()), Err(CommandStatus::RMISSINGTLV));
        let tlvs =
            Tlvs::default().with(tag::MESSAGE_PAYLOAD, b"Hi").with(tag::QOS_TIME_TO_LIVE, &[0, 0, 0, 60]);
        let message = submission(&options).message_from_data(DataSm { tlvs, ..data }).unwrap();
        assert_eq!(message.expires_at, Timestamp(WALL.0 + 60_000));
        assert!(message.tlvs.is_empty());
    }
}
