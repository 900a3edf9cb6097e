use crate::CommandStatus;
use crate::wire::BodyError;
use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// TLV tags (34 §5.3.2; 5.0).
pub mod tag {
    macro_rules! tags {
        ($($value:literal $name:ident,)*) => { $(#[doc = stringify!($name)] pub const $name: u16 = $value;)* };
    }
    tags! {
        0x0005 DEST_ADDR_SUBUNIT, 0x0006 DEST_NETWORK_TYPE, 0x0007 DEST_BEARER_TYPE, 0x0008 DEST_TELEMATICS_ID,
        0x000D SOURCE_ADDR_SUBUNIT, 0x000E SOURCE_NETWORK_TYPE, 0x000F SOURCE_BEARER_TYPE, 0x0010 SOURCE_TELEMATICS_ID,
        0x0017 QOS_TIME_TO_LIVE, 0x0019 PAYLOAD_TYPE, 0x001D ADDITIONAL_STATUS_INFO_TEXT, 0x001E RECEIPTED_MESSAGE_ID,
        0x0030 MS_MSG_WAIT_FACILITIES, 0x0201 PRIVACY_INDICATOR, 0x0202 SOURCE_SUBADDRESS, 0x0203 DEST_SUBADDRESS,
        0x0204 USER_MESSAGE_REFERENCE, 0x0205 USER_RESPONSE_CODE, 0x020A SOURCE_PORT, 0x020B DESTINATION_PORT,
        0x020C SAR_MSG_REF_NUM, 0x020D LANGUAGE_INDICATOR, 0x020E SAR_TOTAL_SEGMENTS, 0x020F SAR_SEGMENT_SEQNUM,
        0x0210 SC_INTERFACE_VERSION, 0x0302 CALLBACK_NUM_PRES_IND, 0x0303 CALLBACK_NUM_ATAG, 0x0304 NUMBER_OF_MESSAGES,
        0x0381 CALLBACK_NUM, 0x0420 DPF_RESULT, 0x0421 SET_DPF, 0x0422 MS_AVAILABILITY_STATUS,
        0x0423 NETWORK_ERROR_CODE, 0x0424 MESSAGE_PAYLOAD, 0x0425 DELIVERY_FAILURE_REASON,
        0x0426 MORE_MESSAGES_TO_SEND, 0x0427 MESSAGE_STATE, 0x0428 CONGESTION_STATE, 0x0501 USSD_SERVICE_OP,
        0x0600 BROADCAST_CHANNEL_INDICATOR, 0x0601 BROADCAST_CONTENT_TYPE, 0x0602 BROADCAST_CONTENT_TYPE_INFO,
        0x0603 BROADCAST_MESSAGE_CLASS, 0x0604 BROADCAST_REP_NUM, 0x0605 BROADCAST_FREQUENCY_INTERVAL,
        0x0606 BROADCAST_AREA_IDENTIFIER, 0x0607 BROADCAST_ERROR_STATUS, 0x0608 BROADCAST_AREA_SUCCESS,
        0x0609 BROADCAST_END_TIME, 0x060A BROADCAST_SERVICE_GROUP, 0x060B BILLING_IDENTIFICATION,
        0x060D SOURCE_NETWORK_ID, 0x060E DEST_NETWORK_ID, 0x060F SOURCE_NODE_ID, 0x0610 DEST_NODE_ID,
        0x0611 DEST_ADDR_NP_RESOLUTION, 0x0612 DEST_ADDR_NP_INFORMATION, 0x0613 DEST_ADDR_NP_COUNTRY,
        0x1201 DISPLAY_TIME, 0x1203 SMS_SIGNAL, 0x1204 MS_VALIDITY, 0x130C ALERT_ON_MESSAGE_DELIVERY,
        0x1380 ITS_REPLY_TYPE, 0x1383 ITS_SESSION_INFO,
    }
}

/// The permitted lengths of a known tag; `None` for unknown tags, and for tags that some peers are known to write with
/// other lengths.
fn lengths(tag: u16) -> Option<std::ops::RangeInclusive<usize>> {
    use tag::*;
    Some(match tag {
        DEST_ADDR_SUBUNIT
        | DEST_NETWORK_TYPE
        | DEST_BEARER_TYPE
        | SOURCE_ADDR_SUBUNIT
        | SOURCE_NETWORK_TYPE
        | SOURCE_BEARER_TYPE
        | PAYLOAD_TYPE
        | MS_MSG_WAIT_FACILITIES
        | PRIVACY_INDICATOR
        | USER_RESPONSE_CODE
        | LANGUAGE_INDICATOR
        | SAR_TOTAL_SEGMENTS
        | SAR_SEGMENT_SEQNUM
        | SC_INTERFACE_VERSION
        | CALLBACK_NUM_PRES_IND
        | NUMBER_OF_MESSAGES
        | DPF_RESULT
        | SET_DPF
        | MS_AVAILABILITY_STATUS
        | DELIVERY_FAILURE_REASON
        | MORE_MESSAGES_TO_SEND
        | MESSAGE_STATE
        | CONGESTION_STATE
        | USSD_SERVICE_OP
        | BROADCAST_CHANNEL_INDICATOR
        | BROADCAST_MESSAGE_CLASS
        | BROADCAST_AREA_SUCCESS
        | DEST_ADDR_NP_RESOLUTION
        | DISPLAY_TIME
        | ITS_REPLY_TYPE => 1..=1,
        USER_MESSAGE_REFERENCE
        | SOURCE_PORT
        | DESTINATION_PORT
        | SAR_MSG_REF_NUM
        | SMS_SIGNAL
        | ITS_SESSION_INFO
        | DEST_TELEMATICS_ID => 2..=2,
        SOURCE_TELEMATICS_ID | BROADCAST_REP_NUM => 1..=2,
        BROADCAST_CONTENT_TYPE | BROADCAST_FREQUENCY_INTERVAL => 3..=3,
        QOS_TIME_TO_LIVE | BROADCAST_ERROR_STATUS => 4..=4,
        MS_VALIDITY => 1..=4,
        SOURCE_NODE_ID | DEST_NODE_ID => 6..=6,
        DEST_ADDR_NP_INFORMATION => 10..=10,
        ALERT_ON_MESSAGE_DELIVERY => 0..=1,
        SOURCE_SUBADDRESS | DEST_SUBADDRESS => 2..=23,
        CALLBACK_NUM => 4..=19,
        CALLBACK_NUM_ATAG => 0..=65,
        // With and without its NUL.
        ADDITIONAL_STATUS_INFO_TEXT => 0..=256,
        RECEIPTED_MESSAGE_ID => 0..=65,
        BROADCAST_CONTENT_TYPE_INFO | BROADCAST_SERVICE_GROUP => 0..=255,
        BROADCAST_AREA_IDENTIFIER => 1..=usize::MAX,
        BROADCAST_END_TIME => 16..=17,
        BILLING_IDENTIFICATION => 0..=1024,
        SOURCE_NETWORK_ID | DEST_NETWORK_ID => 6..=66,
        DEST_ADDR_NP_COUNTRY => 1..=5,
        _ => return None,
    })
}

/// The TLVs of a PDU, as received. Unknown tags are preserved and can be passed on.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tlvs(Bytes);

impl Tlvs {
    /// Decodes the octets after the mandatory fields. A lone NUL, which some libraries append, is dropped.
    ///
    /// # Errors
    /// If octets are left over, or a TLV is longer than the rest (0xC0).
    pub fn decode(octets: Bytes) -> Result<Self, BodyError> {
        if octets.is_empty() || octets.as_ref() == [0] {
            return Ok(Self::default());
        }
        let mut at = 0;
        while at < octets.len() {
            let length = match octets.get(at + 2..at + 4) {
                Some([high, low]) => usize::from(u16::from_be_bytes([*high, *low])),
                _ => {
                    return Err(BodyError::new(
                        CommandStatus::RINVTLVSTREAM,
                        "octets are left over after the last TLV",
                    ));
                }
            };
            at += 4 + length;
        }
        if at > octets.len() {
            return Err(BodyError::new(
                CommandStatus::RINVTLVSTREAM,
                "a TLV is longer than what is left of the PDU",
            ));
        }
        Ok(Self(octets))
    }

    /// Wraps TLVs that were encoded by us or have been decoded before.
    #[must_use]
    pub fn from_raw(octets: Bytes) -> Self {
        Self::decode(octets).unwrap_or_default()
    }

    /// The TLVs as encoded.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tag and range of each value, in order.
    fn tlv_ranges(&self) -> impl Iterator<Item = (u16, std::ops::Range<usize>)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let head: [u8; 4] = self.0.get(at..at + 4)?.try_into().ok()?;
            let tag = u16::from_be_bytes([head[0], head[1]]);
            let start = at + 4;
            at = start + usize::from(u16::from_be_bytes([head[2], head[3]]));
            (at <= self.0.len()).then_some((tag, start..at))
        })
    }

    /// All TLVs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Bytes)> + '_ {
        self.tlv_ranges().map(|(tag, place)| (tag, self.0.slice(place)))
    }

    /// All values with this tag, in order: callback_num and the broadcast areas may be repeated (34 §5.3.2.36).
    pub fn all(&self, tag: u16) -> impl Iterator<Item = &[u8]> + '_ {
        self.tlv_ranges().filter(move |(found, _)| *found == tag).filter_map(|(_, place)| self.0.get(place))
    }

    /// The first value with this tag.
    #[must_use]
    pub fn value(&self, tag: u16) -> Option<&[u8]> {
        self.all(tag).next()
    }

    /// The first value with this tag, owned.
    #[must_use]
    pub fn get(&self, tag: u16) -> Option<Bytes> {
        self.tlv_ranges().find(|(found, _)| *found == tag).map(|(_, place)| self.0.slice(place))
    }

    /// The first value with this tag, as one octet.
    #[must_use]
    pub fn u8(&self, tag: u16) -> Option<u8> {
        match self.value(tag)? {
            [octet] => Some(*octet),
            _ => None,
        }
    }

    /// The first value with this tag, as two octets.
    #[must_use]
    pub fn u16(&self, tag: u16) -> Option<u16> {
        match self.value(tag)? {
            [high, low] => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }

    /// The first value with this tag, as four octets.
    #[must_use]
    pub fn u32(&self, tag: u16) -> Option<u32> {
        self.value(tag)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// The first value with this tag, as a C-octet string, with or without its NUL.
    #[must_use]
    pub fn c_string(&self, tag: u16) -> Option<Bytes> {
        let value = self.get(tag)?;
        let end = value.iter().position(|octet| *octet == 0).unwrap_or(value.len());
        Some(value.slice(..end))
    }

    /// Checks that all known TLVs have an allowed length.
    ///
    /// # Errors
    /// The first TLV with a wrong length (0xC2).
    pub fn check_lengths(&self) -> Result<(), BodyError> {
        for (tag, place) in self.tlv_ranges() {
            if lengths(tag).is_some_and(|allowed| !allowed.contains(&place.len())) {
                return Err(BodyError::new(
                    CommandStatus::RINVPARLEN,
                    "a TLV has a length that its tag cannot have",
                ));
            }
        }
        Ok(())
    }

    /// The TLVs for which `drop` returns false.
    #[must_use]
    pub fn without(&self, drop: impl Fn(u16) -> bool) -> Self {
        if !self.tlv_ranges().any(|(tag, _)| drop(tag)) {
            return self.clone();
        }
        let mut kept = BytesMut::with_capacity(self.0.len());
        for (tag, place) in self.tlv_ranges().filter(|(tag, _)| !drop(*tag)) {
            put_tlv(&mut kept, tag, self.0.get(place).unwrap_or_default());
        }
        Self(kept.freeze())
    }

    /// The TLVs with one more.
    #[must_use]
    pub fn with(&self, tag: u16, value: &[u8]) -> Self {
        let mut row = BytesMut::with_capacity(self.0.len() + 4 + value.len());
        row.put_slice(&self.0);
        put_tlv(&mut row, tag, value);
        Self(row.freeze())
    }
}

fn put_tlv(out: &mut BytesMut, tag: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    out.put_u16(tag);
    out.put_u16(length);
    out.put_slice(value.get(..usize::from(length)).unwrap_or_default());
}

impl fmt::Debug for Tlvs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.tlv_ranges().map(|(tag, place)| (format!("{tag:04x}"), place.len())))
            .finish()
    }
}
