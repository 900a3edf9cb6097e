//! Delivery receipts: the text form of 34 appendix B, in all its variants, and the TLVs.

use crate::message_id::MessageIdForm;
use crate::text::{SmppAlphabet, alphabet, decode_ucs2};
use crate::time;
use crate::{Sm, Tlvs, tag};
use bytes::Bytes;
use model::{AddressBytes, Dlr, DlrContent, DlrState, PeerMessageId, Timestamp};

/// esm_class: the message is a receipt (34 §5.2.12).
pub const ESM_RECEIPT: u8 = 0x04;
/// esm_class: the message is an intermediate notification.
pub const ESM_INTERMEDIATE: u8 = 0x20;
/// The bits of esm_class that hold the message type.
pub const ESM_TYPE: u8 = 0x3C;

const KEYS: [&[u8]; 8] =
    [b"id:", b"sub:", b"dlvrd:", b"submit date:", b"done date:", b"stat:", b"err:", b"text:"];

/// Whether esm_class marks a message as a receipt or an intermediate notification. Text that only looks like a
/// receipt is an ordinary message (34 §5.2.12).
#[must_use]
pub fn is_receipt(esm_class: u8) -> bool {
    matches!(esm_class & ESM_TYPE, ESM_RECEIPT | ESM_INTERMEDIATE)
}

/// The fields of a delivery receipt's text; every field may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryReceipt {
    /// `id:`.
    pub id: Option<Vec<u8>>,
    /// `sub:`: segments submitted.
    pub submitted: Option<u16>,
    /// `dlvrd:`: segments delivered.
    pub delivered: Option<u16>,
    /// `submit date:`.
    pub submitted_at: Option<Timestamp>,
    /// `stat:`, or the bare word.
    pub state: Option<DlrState>,
    /// `err:`, if it is a number.
    pub error: Option<u16>,
    /// `done date:`.
    pub done_at: Option<Timestamp>,
    /// `text:`: the first octets of the message.
    pub text: Option<Vec<u8>>,
}

fn parse_state(word: &[u8]) -> Option<DlrState> {
    let word = word.to_ascii_uppercase();
    Some(match word.as_slice() {
        b"DELIVRD" | b"DELIVERED" | b"DELIVRED" => DlrState::Delivered,
        b"EXPIRED" => DlrState::Expired,
        b"DELETED" => DlrState::Deleted,
        b"UNDELIV" | b"UNDELIVERABLE" | b"UNDELIVERED" | b"FAILED" => DlrState::Undeliverable,
        b"ACCEPTD" | b"ACCEPTED" => DlrState::Accepted,
        b"UNKNOWN" => DlrState::Unknown,
        b"REJECTD" | b"REJECTED" => DlrState::Rejected,
        b"ENROUTE" | b"BUFFERED" => DlrState::Enroute,
        b"SCHEDULED" | b"SCHEDLD" => DlrState::Scheduled,
        b"SKIPPED" => DlrState::Skipped,
        _ => return None,
    })
}

/// Parses a receipt's text: keys in any case and order, any blanks, any field may be missing.
#[must_use]
pub fn parse_text(text: &[u8]) -> DeliveryReceipt {
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<(usize, usize, usize)> = Vec::new();
    for (number, key) in KEYS.iter().enumerate() {
        // A key is at the beginning of the text or after a blank; everything after "text:" belongs to the message.
        let mut from = 0;
        while let Some(at) =
            lower.get(from..).and_then(|rest| rest.windows(key.len()).position(|part| part == *key))
        {
            let start = from + at;
            if start == 0 || lower.get(start - 1).is_some_and(|octet| !octet.is_ascii_alphanumeric()) {
                found.push((start, start + key.len(), number));
                break;
            }
            from = start + 1;
        }
    }
    found.sort_unstable();
    if let Some(text_at) = found.iter().position(|(_, _, key)| *key == 7) {
        found.truncate(text_at + 1);
    }
    let mut fields = DeliveryReceipt::default();
    let mut remaining_words: Vec<&[u8]> = Vec::new();
    for (index, (_, start, key)) in found.iter().enumerate() {
        let end = found.get(index + 1).map_or(text.len(), |(next, _, _)| *next);
        let value = text.get(*start..end).unwrap_or_default().trim_ascii();
        let mut words = value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let number = || std::str::from_utf8(first).ok().and_then(|word| word.parse().ok());
        match key {
            0 if !first.is_empty() => fields.id = Some(first.to_vec()),
            1 => fields.submitted = number(),
            2 => fields.delivered = number(),
            3 => fields.submitted_at = time::parse_receipt(first),
            4 => fields.done_at = time::parse_receipt(first),
            5 => fields.state = parse_state(first),
            6 => fields.error = number(),
            7 => fields.text = Some(value.to_vec()),
            _ => {}
        }
        if *key != 7 {
            remaining_words.extend(words);
        }
    }
    if fields.state.is_none() {
        fields.state = remaining_words.into_iter().find_map(parse_state);
    }
    fields
}

/// Reads the DLR of a deliver_sm or data_sm. TLVs take precedence over the text. The second value is true if text and
/// TLVs contain different states. The text is read as ASCII. If `data_coding` is UCS2 and the octets contain no receipt,
/// it is read as UCS2: some SMSCs set the data coding of the original message.
#[must_use]
pub fn read(
    esm_class: u8,
    data_coding: u8,
    source: &[u8],
    destination: &[u8],
    text: &[u8],
    tlvs: &Tlvs,
    form: MessageIdForm,
) -> (Dlr, bool) {
    let mut fields = parse_text(text);
    if fields.id.is_none() && fields.state.is_none() && alphabet(data_coding) == SmppAlphabet::Ucs2 {
        fields = parse_text(decode_ucs2(text).as_bytes());
    }
    let tlv_state = tlvs.u8(tag::MESSAGE_STATE).and_then(DlrState::from_octet);
    let state = tlv_state.or(fields.state).unwrap_or(DlrState::Unknown);
    let differs = tlv_state.is_some() && fields.state.is_some() && tlv_state != fields.state;
    let id = tlvs
        .c_string(tag::RECEIPTED_MESSAGE_ID)
        .filter(|id| !id.is_empty())
        .map(|id| id.to_vec())
        .or(fields.id)
        .map_or_else(PeerMessageId::default, |id| form.from_receipt(&id));
    let network_error =
        tlvs.get(tag::NETWORK_ERROR_CODE).and_then(|value| <[u8; 3]>::try_from(value.as_ref()).ok());
    let is_state_missing = tlv_state.is_none() && fields.state.is_none();
    let intermediate = esm_class & ESM_TYPE == ESM_INTERMEDIATE || (!is_state_missing && !state.is_final());
    let receipt = Dlr {
        id,
        state,
        intermediate,
        error: fields
            .error
            .unwrap_or_else(|| network_error.map_or(0, |code| u16::from_be_bytes([code[1], code[2]]))),
        network_error,
        done_at: fields.done_at,
        from: AddressBytes::from_slice(source),
        to: AddressBytes::from_slice(destination),
    };
    (receipt, differs)
}

/// The word of a state in the text of a receipt (34 appendix B).
#[must_use]
pub fn state_word(state: DlrState) -> &'static str {
    match state {
        DlrState::Delivered => "DELIVRD",
        DlrState::Expired => "EXPIRED",
        DlrState::Deleted => "DELETED",
        DlrState::Undeliverable => "UNDELIV",
        DlrState::Accepted => "ACCEPTD",
        DlrState::Unknown => "UNKNOWN",
        DlrState::Rejected => "REJECTD",
        DlrState::Enroute | DlrState::Scheduled => "ENROUTE",
        DlrState::Skipped => "SKIPPED",
    }
}

/// Writes a DLR as the text, esm_class and TLVs of `sm`. `id` is the message id that the submitter knows; `text` is
/// the beginning of the message. 20 characters of it are written, with `?` for characters outside ASCII, because
/// readers of receipts take data coding 0 for ASCII. TLVs are written only if `with_tlvs` is set.
pub fn write(sm: &mut Sm, receipt: &DlrContent, id: &str, text: &str, with_tlvs: bool) {
    let shown: String =
        text.chars().take(20).map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    let (parts, delivered) = receipt.segments;
    let mut body = format!(
        "id:{id} sub:{:03} dlvrd:{:03} submit date:{} done date:{} stat:{} err:{:03} text:",
        parts.min(999),
        delivered.min(999),
        time::format_receipt(receipt.submitted_at),
        time::format_receipt(receipt.done_at),
        state_word(receipt.state),
        receipt.error.min(999),
    )
    .into_bytes();
    body.extend_from_slice(shown.as_bytes());
    sm.esm_class = if receipt.intermediate { ESM_INTERMEDIATE } else { ESM_RECEIPT };
    sm.data_coding = 0;
    sm.short_message = Bytes::from(body);
    sm.tlvs = Tlvs::default();
    if with_tlvs {
        let mut id = id.as_bytes().to_vec();
        id.push(0);
        let mut tlvs = Tlvs::default().with(tag::RECEIPTED_MESSAGE_ID, &id);
        tlvs = tlvs.with(tag::MESSAGE_STATE, &[receipt.state as u8]);
        if let Some(code) = receipt.network_error {
            tlvs = tlvs.with(tag::NETWORK_ERROR_CODE, &code);
        }
        sm.tlvs = tlvs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_116_every_receipt_variant_is_parsed() {
        let full = parse_text(b"id:0000012345 sub:001 dlvrd:001 submit date:2612090930 done date:2612090931 stat:DELIVRD err:000 text:Hello");
        assert_eq!(full.id.as_deref(), Some(&b"0000012345"[..]));
        assert_eq!(full.state, Some(DlrState::Delivered));
        assert_eq!(full.error, Some(0));
        assert_eq!(time::format_receipt(full.done_at.unwrap()), "2612090931");
        assert_eq!(time::format_receipt(full.submitted_at.unwrap()), "2612090930");
        assert_eq!((full.submitted, full.delivered), (Some(1), Some(1)));
        assert_eq!(full.text.as_deref(), Some(&b"Hello"[..]));
        let capitals = parse_text(b"ID:7 STAT:UNDELIV ERR:0001 TEXT:");
        assert_eq!((capitals.state, capitals.error), (Some(DlrState::Undeliverable), Some(1)));
        assert_eq!(parse_text(b"id:7 err: 0 stat:EXPIRED").error, Some(0));
        assert_eq!(parse_text(b"id:7 err:null stat:EXPIRED").error, None);
        assert!(parse_text(b"id:7 done date:261209093112 stat:DELIVRD").done_at.is_some());
        assert!(parse_text(b"id:7 done date:180711070003912+ stat:DELIVRD").done_at.is_some());
        let bare = parse_text(b"id:7 sub:000 dlvrd:000 done date:180903120816 DELIVRD err:000 Text:");
        assert_eq!(bare.state, Some(DlrState::Delivered));
        assert_eq!((bare.submitted, bare.delivered, bare.error), (Some(0), Some(0), Some(0)));
        assert_eq!(parse_text(b"id:7 stat:FAILED").state, Some(DlrState::Undeliverable));
        let trap = parse_text(b"id:7 stat:DELIVRD err:000 text:id:8 stat:EXPIRED");
        assert_eq!((trap.id.as_deref(), trap.state), (Some(&b"7"[..]), Some(DlrState::Delivered)));
        let silent = parse_text(b"id:7 err:000 text:stat:EXPIRED done date:2611200931");
        assert_eq!((silent.state, silent.done_at), (None, None), "that is the message's own");
        assert_eq!(parse_text(b"msgid:9 id:7 stat:DELIVRD").id.as_deref(), Some(&b"7"[..]));
        assert_eq!(parse_text(b""), DeliveryReceipt::default());
        assert_eq!(parse_text(&[0xFF; 300]), DeliveryReceipt::default());
    }

    #[test]
    fn check_123_124_tlvs_take_precedence_and_a_wrong_length_is_ignored() {
        let tlvs = Tlvs::default()
            .with(tag::MESSAGE_STATE, &[2])
            .with(tag::RECEIPTED_MESSAGE_ID, b"abc")
            .with(tag::NETWORK_ERROR_CODE, &[3, 0, 0, 1]);
        let (receipt, differs) =
            read(4, 0, b"86", b"10", b"id:7 stat:UNDELIV err:012", &tlvs, MessageIdForm::AsIs);
        assert!(differs);
        assert_eq!(receipt.state, DlrState::Delivered);
        assert_eq!(receipt.id, PeerMessageId::new(b"abc"));
        assert_eq!((receipt.network_error, receipt.error), (None, 12));
    }

    #[test]
    fn a_receipt_in_ucs2_is_parsed() {
        let text = "id:7 sub:001 dlvrd:001 stat:DELIVRD err:000 text:你";
        let ucs2: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let (receipt, _) = read(4, 8, b"", b"", &ucs2, &Tlvs::default(), MessageIdForm::AsIs);
        assert_eq!((receipt.id, receipt.state), (PeerMessageId::new(b"7"), DlrState::Delivered));
        // ASCII octets under the data coding of the message that the receipt is for.
        let (receipt, _) = read(4, 8, b"", b"", b"id:7 stat:EXPIRED", &Tlvs::default(), MessageIdForm::AsIs);
        assert_eq!((receipt.id, receipt.state), (PeerMessageId::new(b"7"), DlrState::Expired));
    }

    #[test]
    fn check_122_intermediate_is_not_final() {
        let tlvs = Tlvs::default().with(tag::MESSAGE_STATE, &[1]);
        assert!(read(0x20, 0, b"", b"", b"", &tlvs, MessageIdForm::AsIs).0.intermediate);
        assert!(!read(0x04, 0, b"", b"", b"id:1", &Tlvs::default(), MessageIdForm::AsIs).0.intermediate);
    }

    #[test]
    fn check_139_our_receipt_round_trips() {
        let mut sm = Sm::default();
        let text = DlrContent {
            of: model::MessageId(1_000_000_001),
            state: DlrState::Undeliverable,
            intermediate: false,
            error: 12,
            network_error: Some([3, 0, 12]),
            submitted_at: Timestamp(1_795_000_000_000),
            done_at: Timestamp(1_795_000_060_000),
            segments: (1, 0),
            segment: 0,
            peer_id: PeerMessageId::default(),
        };
        write(&mut sm, &text, "1000000001", "Hello \u{1}", true);
        assert_eq!(sm.esm_class, 4);
        let shown = String::from_utf8(sm.short_message.to_vec()).unwrap();
        assert!(shown.starts_with("id:1000000001 sub:001 dlvrd:000 submit date:"), "{shown}");
        assert!(shown.ends_with("stat:UNDELIV err:012 text:Hello ?"), "{shown}");
        let (receipt, differs) =
            read(sm.esm_class, sm.data_coding, b"", b"", &sm.short_message, &sm.tlvs, MessageIdForm::AsIs);
        assert!(!differs);
        assert_eq!(receipt.id, PeerMessageId::new(b"1000000001"));
        assert_eq!(receipt.network_error, Some([3, 0, 12]));
        assert_eq!(sm.tlvs.get(tag::RECEIPTED_MESSAGE_ID).unwrap().last(), Some(&0));
        write(&mut sm, &text, "1000000001", "", false);
        assert!(sm.tlvs.is_empty());
    }
}
