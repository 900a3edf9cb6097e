//! GSUP messages: type, IMSI and ordered information elements.

use crate::ipa::{self, EXTENSION_GSUP, STREAM_OSMOCOM};
use crate::{
    DecodeError, EncodeError, GmmCause, GsupImsi, IpaName, IsdnNumber, MessageType, RpAddress, RpCause, bcd,
};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// The tag of an information element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(pub u8);

impl Tag {
    /// The IMSI; always the first element.
    pub const IMSI: Self = Self(0x01);
    /// Cause of the network.
    pub const CAUSE: Self = Self(0x02);
    /// Reason for a location cancellation.
    pub const CANCEL_TYPE: Self = Self(0x06);
    /// MSISDN, with an inner length.
    pub const MSISDN: Self = Self(0x08);
    /// Message class: the user of the message.
    pub const MESSAGE_CLASS: Self = Self(0x0a);
    /// Core network domain: circuit or packet switched.
    pub const CN_DOMAIN: Self = Self(0x28);
    /// SM-RP message reference.
    pub const SM_RP_MR: Self = Self(0x40);
    /// SM-RP destination address.
    pub const SM_RP_DA: Self = Self(0x41);
    /// SM-RP originator address.
    pub const SM_RP_OA: Self = Self(0x42);
    /// SM-RP user information: the TPDU.
    pub const SM_RP_UI: Self = Self(0x43);
    /// SM-RP cause.
    pub const SM_RP_CAUSE: Self = Self(0x44);
    /// SM-RP more messages to send.
    pub const SM_RP_MMS: Self = Self(0x45);
    /// Alert reason in READY-FOR-SM.
    pub const SM_ALERT_REASON: Self = Self(0x46);
    /// Source name for routing, with a NUL.
    pub const SOURCE_NAME: Self = Self(0x60);
    /// Destination name for routing, with a NUL.
    pub const DESTINATION_NAME: Self = Self(0x61);

    /// Position of the element in the order that libosmocore writes.
    fn rank(self) -> u8 {
        const ORDER: [Tag; 15] = [
            Tag::IMSI,
            Tag::MSISDN,
            Tag::CAUSE,
            Tag::CANCEL_TYPE,
            Tag::CN_DOMAIN,
            Tag::SM_RP_MR,
            Tag::SM_RP_DA,
            Tag::SM_RP_OA,
            Tag::SM_RP_UI,
            Tag::SM_RP_MMS,
            Tag::SM_RP_CAUSE,
            Tag::SM_ALERT_REASON,
            Tag::MESSAGE_CLASS,
            Tag::SOURCE_NAME,
            Tag::DESTINATION_NAME,
        ];
        let at = ORDER.iter().position(|known| *known == self).unwrap_or(ORDER.len());
        u8::try_from(at).unwrap_or(u8::MAX)
    }
}

/// The user of a message in MSC and HLR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageClass(pub u8);

impl MessageClass {
    /// Subscriber management.
    pub const SUBSCRIBER: Self = Self(1);
    /// Short messages.
    pub const SMS: Self = Self(2);
}

/// Core network domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CnDomain(pub u8);

impl CnDomain {
    /// Packet switched: an SGSN.
    pub const PS: Self = Self(1);
    /// Circuit switched: an MSC.
    pub const CS: Self = Self(2);
}

/// Alert reason: why a handset can receive short messages again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AlertReason(pub u8);

impl AlertReason {
    /// The handset has free memory again.
    pub const MEMORY_AVAILABLE: Self = Self(2);
}

/// A GSUP message.
///
/// A decoded message keeps its information elements in order, including unknown ones. A message built with
/// [`GsupMessage::new`] and the `with_…` methods has them in the order that libosmocore writes.
#[derive(Clone, PartialEq, Eq)]
pub struct GsupMessage {
    /// The message type.
    pub kind: MessageType,
    /// The subscriber.
    pub imsi: GsupImsi,
    /// The validated elements after the IMSI.
    elements: Bytes,
}

/// An information element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GsupElement<'a> {
    /// The tag.
    pub tag: Tag,
    /// The value.
    pub value: &'a [u8],
}

/// Iterates over elements, and ends at an incomplete one.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = GsupElement<'a>;

    fn next(&mut self) -> Option<GsupElement<'a>> {
        let [tag, octets, rest @ ..] = self.0 else { return None };
        let (value, rest) = rest.split_at_checked(usize::from(*octets))?;
        self.0 = rest;
        Some(GsupElement { tag: Tag(*tag), value })
    }
}

/// A borrowed view of an encoded message.
pub(crate) struct MessageView<'a> {
    pub(crate) imsi: GsupImsi,
    elements: &'a [u8],
}

impl<'a> MessageView<'a> {
    pub(crate) fn of(octets: &'a [u8]) -> Option<Self> {
        let (_, imsi, begin) = split(octets).ok()?;
        Some(Self { imsi, elements: octets.get(begin..)? })
    }

    pub(crate) fn get(&self, tag: Tag) -> Option<&'a [u8]> {
        last(self.elements, tag)
    }

    pub(crate) fn cn_domain(&self) -> Option<CnDomain> {
        self.get(Tag::CN_DOMAIN)?.first().copied().map(CnDomain)
    }

    pub(crate) fn msisdn(&self) -> Option<String> {
        msisdn(self.get(Tag::MSISDN)?)
    }
}

fn last(elements: &[u8], tag: Tag) -> Option<&[u8]> {
    Elements(elements).filter(|element| element.tag == tag).last().map(|element| element.value)
}

/// The element has an inner length and then digits, without an octet for type and plan.
fn msisdn(value: &[u8]) -> Option<String> {
    let (octets, bcd) = value.split_first()?;
    bcd::decode(bcd.get(..usize::from(*octets))?).filter(|number| !number.is_empty())
}

/// Type and IMSI of a message, and the offset of the elements after them.
fn split(octets: &[u8]) -> Result<(MessageType, GsupImsi, usize), DecodeError> {
    let (kind, rest) = octets.split_first().ok_or(DecodeError::Empty)?;
    let mut elements = Elements(rest);
    let first = elements.next().filter(|element| element.tag == Tag::IMSI);
    let first = first.ok_or(DecodeError::NoImsi(*kind))?;
    let imsi = GsupImsi::from_bcd(first.value).ok_or(DecodeError::BadImsi(*kind))?;
    Ok((MessageType(*kind), imsi, octets.len() - elements.0.len()))
}

/// Decodes only the type and the IMSI of a message.
///
/// # Errors
/// If one of them is missing or invalid.
pub fn peek(octets: &[u8]) -> Result<(MessageType, GsupImsi), DecodeError> {
    split(octets).map(|(kind, imsi, _)| (kind, imsi))
}

impl GsupMessage {
    /// Creates a message without elements.
    #[must_use]
    pub fn new(kind: MessageType, imsi: GsupImsi) -> Self {
        Self { kind, imsi, elements: Bytes::new() }
    }

    /// Decodes a message: the payload of a frame without the extension octet.
    ///
    /// # Errors
    /// If type or IMSI are missing, or an element is truncated.
    pub fn decode(octets: &Bytes) -> Result<Self, DecodeError> {
        let (kind, imsi, begin) = split(octets)?;
        let elements = octets.slice(begin..);
        let mut rest = Elements(&elements);
        rest.by_ref().for_each(drop);
        match rest.0 {
            [] => Ok(Self { kind, imsi, elements }),
            [tag, ..] => Err(DecodeError::Short { kind: kind.0, tag: *tag }),
        }
    }

    /// Encodes the message: the payload of a frame without the extension octet.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let imsi = self.imsi.to_bcd();
        let mut octets = Vec::with_capacity(3 + imsi.len() + self.elements.len());
        octets.push(self.kind.0);
        octets.push(Tag::IMSI.0);
        // An IMSI has at most eight octets.
        octets.push(u8::try_from(imsi.len()).unwrap_or(u8::MAX));
        octets.extend(imsi);
        octets.extend_from_slice(&self.elements);
        octets.into()
    }

    /// Encodes it as a complete frame.
    pub fn put(&self, output: &mut BytesMut) {
        ipa::put(output, STREAM_OSMOCOM, &[EXTENSION_GSUP], &self.encode());
    }

    /// All elements after the IMSI, in order.
    pub fn elements(&self) -> impl Iterator<Item = GsupElement<'_>> {
        Elements(&self.elements)
    }

    /// The value of an element; if it is repeated, the last one counts, as in libosmocore.
    #[must_use]
    pub fn get(&self, tag: Tag) -> Option<&[u8]> {
        last(&self.elements, tag)
    }

    fn octet(&self, tag: Tag) -> Option<u8> {
        self.get(tag)?.first().copied()
    }

    /// SM-RP message reference. An MSC answers with its own.
    #[must_use]
    pub fn reference(&self) -> Option<u8> {
        self.octet(Tag::SM_RP_MR)
    }

    /// SM-RP destination address.
    ///
    /// # Errors
    /// If the element is invalid.
    pub fn destination(&self) -> Result<Option<RpAddress>, DecodeError> {
        self.address(Tag::SM_RP_DA)
    }

    /// SM-RP originator address.
    ///
    /// # Errors
    /// If the element is invalid.
    pub fn origin(&self) -> Result<Option<RpAddress>, DecodeError> {
        self.address(Tag::SM_RP_OA)
    }

    fn address(&self, tag: Tag) -> Result<Option<RpAddress>, DecodeError> {
        self.get(tag).map(|value| RpAddress::decode(tag, value)).transpose()
    }

    /// The TPDU.
    #[must_use]
    pub fn user_information(&self) -> Option<Bytes> {
        self.get(Tag::SM_RP_UI).map(|value| self.elements.slice_ref(value))
    }

    /// The cause of the network.
    #[must_use]
    pub fn cause(&self) -> Option<GmmCause> {
        self.octet(Tag::CAUSE).map(GmmCause)
    }

    /// The SM-RP cause of the handset or the peer's relay layer.
    #[must_use]
    pub fn rp_cause(&self) -> Option<RpCause> {
        self.octet(Tag::SM_RP_CAUSE).map(RpCause)
    }

    /// Whether more messages wait for the subscriber.
    #[must_use]
    pub fn more_messages(&self) -> bool {
        self.octet(Tag::SM_RP_MMS).is_some_and(|more| more != 0)
    }

    /// The alert reason.
    #[must_use]
    pub fn alert_reason(&self) -> Option<AlertReason> {
        self.octet(Tag::SM_ALERT_REASON).map(AlertReason)
    }

    /// The message class.
    #[must_use]
    pub fn class(&self) -> Option<MessageClass> {
        self.octet(Tag::MESSAGE_CLASS).map(MessageClass)
    }

    /// The core network domain.
    #[must_use]
    pub fn cn_domain(&self) -> Option<CnDomain> {
        self.octet(Tag::CN_DOMAIN).map(CnDomain)
    }

    /// The source name.
    #[must_use]
    pub fn source_name(&self) -> Option<&str> {
        self.name(Tag::SOURCE_NAME)
    }

    /// The destination name.
    #[must_use]
    pub fn destination_name(&self) -> Option<&str> {
        self.name(Tag::DESTINATION_NAME)
    }

    fn name(&self, tag: Tag) -> Option<&str> {
        let value = self.get(tag)?.split(|octet| *octet == 0).next()?;
        std::str::from_utf8(value).ok().filter(|name| !name.is_empty())
    }

    /// The MSISDN.
    #[must_use]
    pub fn msisdn(&self) -> Option<String> {
        msisdn(self.get(Tag::MSISDN)?)
    }

    /// Sets an information element at its position, replacing one with the same tag.
    ///
    /// # Errors
    /// If the value has more than 255 octets.
    pub fn with(mut self, tag: Tag, value: &[u8]) -> Result<Self, EncodeError> {
        let octets =
            u8::try_from(value.len()).map_err(|_| EncodeError::Long { tag: tag.0, octets: value.len() })?;
        self.put_element(tag, octets, value);
        Ok(self)
    }

    fn put_element(&mut self, tag: Tag, octets: u8, value: &[u8]) {
        let mut elements = Vec::with_capacity(self.elements.len() + 2 + value.len());
        let mut at = None;
        for element in Elements(&self.elements) {
            if element.tag == tag {
                continue;
            }
            if element.tag.rank() > tag.rank() && at.is_none() {
                at = Some(elements.len());
            }
            elements.push(element.tag.0);
            // The length was decoded from one octet.
            elements.push(u8::try_from(element.value.len()).unwrap_or(u8::MAX));
            elements.extend_from_slice(element.value);
        }
        let at = at.unwrap_or(elements.len());
        elements.splice(at..at, [tag.0, octets].into_iter().chain(value.iter().copied()));
        self.elements = elements.into();
    }

    fn with_octet(mut self, tag: Tag, value: u8) -> Self {
        self.put_element(tag, 1, &[value]);
        self
    }

    /// Sets the SM-RP message reference.
    #[must_use]
    pub fn with_reference(self, reference: u8) -> Self {
        self.with_octet(Tag::SM_RP_MR, reference)
    }

    /// Sets the SM-RP destination address.
    ///
    /// # Errors
    /// If its digits are invalid.
    pub fn with_destination(self, address: &RpAddress) -> Result<Self, EncodeError> {
        self.with(Tag::SM_RP_DA, &address.encode()?)
    }

    /// Sets the SM-RP originator address.
    ///
    /// # Errors
    /// If its digits are invalid.
    pub fn with_origin(self, address: &RpAddress) -> Result<Self, EncodeError> {
        self.with(Tag::SM_RP_OA, &address.encode()?)
    }

    /// Sets the TPDU.
    ///
    /// # Errors
    /// If it has more than 255 octets.
    pub fn with_user_information(self, tpdu: &[u8]) -> Result<Self, EncodeError> {
        self.with(Tag::SM_RP_UI, tpdu)
    }

    /// Sets the cause of the network.
    #[must_use]
    pub fn with_cause(self, cause: GmmCause) -> Self {
        self.with_octet(Tag::CAUSE, cause.0)
    }

    /// Sets the SM-RP cause.
    #[must_use]
    pub fn with_rp_cause(self, cause: RpCause) -> Self {
        self.with_octet(Tag::SM_RP_CAUSE, cause.0)
    }

    /// Sets more-messages-to-send: the MSC keeps the channel to the handset open.
    #[must_use]
    pub fn with_more_messages(self) -> Self {
        self.with_octet(Tag::SM_RP_MMS, 1)
    }

    /// Sets the alert reason.
    #[must_use]
    pub fn with_alert_reason(self, reason: AlertReason) -> Self {
        self.with_octet(Tag::SM_ALERT_REASON, reason.0)
    }

    /// Sets the message class.
    #[must_use]
    pub fn with_class(self, class: MessageClass) -> Self {
        self.with_octet(Tag::MESSAGE_CLASS, class.0)
    }

    /// Sets the source name.
    #[must_use]
    pub fn with_source_name(self, name: &IpaName) -> Self {
        self.with_name(Tag::SOURCE_NAME, name)
    }

    /// Sets the destination name.
    #[must_use]
    pub fn with_destination_name(self, name: &IpaName) -> Self {
        self.with_name(Tag::DESTINATION_NAME, name)
    }

    fn with_name(mut self, tag: Tag, name: &IpaName) -> Self {
        let value = name.with_nul();
        // A name has at most 32 octets.
        self.put_element(tag, u8::try_from(value.len()).unwrap_or(u8::MAX), &value);
        self
    }

    /// Sets the MSISDN, as an HLR does.
    ///
    /// # Errors
    /// If its digits are invalid.
    pub fn with_msisdn(self, msisdn: &str) -> Result<Self, EncodeError> {
        let bcd = bcd::encode(msisdn.as_bytes()).ok_or(EncodeError::Digits)?;
        let octets = u8::try_from(bcd.len())
            .map_err(|_| EncodeError::Long { tag: Tag::MSISDN.0, octets: bcd.len() })?;
        self.with(Tag::MSISDN, &[&[octets], &bcd[..]].concat())
    }

    /// Creates an MT-FORWARD-SM request from this service centre.
    ///
    /// The reference is 0xFF, since the MSC assigns its own. Behind an HLR that routes by name, a source name is
    /// required.
    ///
    /// # Errors
    /// If the TPDU is too long, or the number of the service centre is invalid.
    pub fn mt_forward(
        imsi: GsupImsi,
        service_centre: &IsdnNumber,
        tpdu: &[u8],
        more: bool,
        source: Option<&IpaName>,
    ) -> Result<Self, EncodeError> {
        let message = Self::new(MessageType::MT_FORWARD_SM_REQUEST, imsi)
            .with_reference(0xff)
            .with_destination(&RpAddress::Imsi(imsi))?
            .with_origin(&RpAddress::ServiceCentre(service_centre.clone()))?
            .with_user_information(tpdu)?;
        let message = if more { message.with_more_messages() } else { message };
        let message = message.with_class(MessageClass::SMS);
        Ok(match source {
            Some(name) => message.with_source_name(name),
            None => message,
        })
    }

    /// The positive answer to this request, with the same subscriber and reference, and the names for routing.
    #[must_use]
    pub fn accepted(&self, own_name: Option<&IpaName>) -> Self {
        self.answered(self.kind.to_result(), own_name, None)
    }

    /// The negative answer to this request. It always has an SM-RP cause: without one, an MSC does not answer its
    /// handset.
    #[must_use]
    pub fn refused(&self, cause: RpCause, own_name: Option<&IpaName>) -> Self {
        self.answered(self.kind.to_error(), own_name, Some(cause))
    }

    fn answered(&self, kind: MessageType, own_name: Option<&IpaName>, cause: Option<RpCause>) -> Self {
        let mut answer = Self::new(kind, self.imsi);
        if let Some(reference) = self.reference() {
            answer = answer.with_reference(reference);
        }
        if let Some(cause) = cause {
            answer = answer.with_rp_cause(cause);
        }
        answer = answer.with_class(MessageClass::SMS);
        // The HLR routes an answer only if it has both names.
        let Some(source) = self.get(Tag::SOURCE_NAME) else { return answer };
        let Some(own_name) = own_name else { return answer };
        let octets = u8::try_from(source.len()).unwrap_or(u8::MAX);
        answer = answer.with_source_name(own_name);
        answer.put_element(Tag::DESTINATION_NAME, octets, source);
        answer
    }
}

impl fmt::Debug for GsupMessage {
    /// Omits the TPDU, since message content must not be logged.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.imsi)?;
        for element in self.elements() {
            if element.tag == Tag::SM_RP_UI {
                write!(formatter, " 43:({} octets)", element.value.len())?;
            } else {
                write!(formatter, " {:02x}:", element.tag.0)?;
                element.value.iter().try_for_each(|octet| write!(formatter, "{octet:02x}"))?;
            }
        }
        Ok(())
    }
}
