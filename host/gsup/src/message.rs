//! A GSUP message: its type, whom it is about, and its information elements in their order.

use crate::ipa::{self, EXTENSION_GSUP, STREAM_OSMOCOM};
use crate::{
    DecodeError, EncodeError, GmmCause, Imsi, MessageType, Name, Number, RpAddress, RpCause, digits,
};
use bytes::{Bytes, BytesMut};
use std::fmt;

/// The tag of an information element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(pub u8);

impl Tag {
    /// The subscriber; always first.
    pub const IMSI: Self = Self(0x01);
    /// Why the network refuses.
    pub const CAUSE: Self = Self(0x02);
    /// Why a location is cancelled.
    pub const CANCEL_TYPE: Self = Self(0x06);
    /// The subscriber's number, with a length of its own inside.
    pub const MSISDN: Self = Self(0x08);
    /// What kind of user the message is for.
    pub const MESSAGE_CLASS: Self = Self(0x0a);
    /// Circuit or packet switched.
    pub const CN_DOMAIN: Self = Self(0x28);
    /// Message reference of the relay layer.
    pub const SM_RP_MR: Self = Self(0x40);
    /// Destination on the relay layer.
    pub const SM_RP_DA: Self = Self(0x41);
    /// Origin on the relay layer.
    pub const SM_RP_OA: Self = Self(0x42);
    /// The TPDU.
    pub const SM_RP_UI: Self = Self(0x43);
    /// Why the phone refuses.
    pub const SM_RP_CAUSE: Self = Self(0x44);
    /// More messages wait.
    pub const SM_RP_MMS: Self = Self(0x45);
    /// Why a phone is ready again.
    pub const SM_ALERT_REASON: Self = Self(0x46);
    /// Whose message it is, on the way back from whom; with a NUL.
    pub const SOURCE_NAME: Self = Self(0x60);
    /// For whom it is; with a NUL.
    pub const DESTINATION_NAME: Self = Self(0x61);

    /// Where it stands among the others: the order in which libosmocore writes.
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

/// What kind of user a message is for, at an MSC and in an HLR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageClass(pub u8);

impl MessageClass {
    /// Subscriber management.
    pub const SUBSCRIBER: Self = Self(1);
    /// Short messages.
    pub const SMS: Self = Self(2);
    /// Supplementary services.
    pub const USSD: Self = Self(3);
}

/// Which half of a core network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CnDomain(pub u8);

impl CnDomain {
    /// Packet switched: an SGSN.
    pub const PS: Self = Self(1);
    /// Circuit switched: an MSC.
    pub const CS: Self = Self(2);
}

/// Why a phone can take short messages again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AlertReason(pub u8);

impl AlertReason {
    /// It is back. OsmoMSC never says so.
    pub const PRESENT: Self = Self(1);
    /// It has room.
    pub const MEMORY_AVAILABLE: Self = Self(2);
}

/// A GSUP message.
///
/// What was read keeps its information elements as they came, also those that nobody here knows. What is built with
/// [`Message::new`] and the methods `with_…` has them in the order in which libosmocore writes.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub kind: MessageType,
    /// Whom it is about.
    pub imsi: Imsi,
    /// What stands behind the IMSI: whole elements, checked.
    elements: Bytes,
}

/// An information element of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element<'a> {
    /// Its tag.
    pub tag: Tag,
    /// Its value.
    pub value: &'a [u8],
}

/// Elements one after the other; ends where one is not whole.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let [tag, octets, rest @ ..] = self.0 else { return None };
        let (value, rest) = rest.split_at_checked(usize::from(*octets))?;
        self.0 = rest;
        Some(Element { tag: Tag(*tag), value })
    }
}

/// A message that is only looked at, where it lies.
pub(crate) struct View<'a> {
    pub(crate) imsi: Imsi,
    elements: &'a [u8],
}

impl<'a> View<'a> {
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

/// Inside the element stands a length again, and then digits: without an octet for type and plan, unlike everywhere else.
fn msisdn(value: &[u8]) -> Option<String> {
    let (octets, bcd) = value.split_first()?;
    digits::decode(bcd.get(..usize::from(*octets))?).filter(|number| !number.is_empty())
}

/// Type and subscriber of a message, and where begins what stands behind them.
fn split(octets: &[u8]) -> Result<(MessageType, Imsi, usize), DecodeError> {
    let (kind, rest) = octets.split_first().ok_or(DecodeError::Empty)?;
    let mut elements = Elements(rest);
    let first = elements.next().filter(|element| element.tag == Tag::IMSI);
    let first = first.ok_or(DecodeError::NoImsi(*kind))?;
    let imsi = Imsi::from_bcd(first.value).ok_or(DecodeError::BadImsi(*kind))?;
    Ok((MessageType(*kind), imsi, octets.len() - elements.0.len()))
}

/// Type and subscriber of a message, without a look at the rest.
///
/// # Errors
/// When one of them is missing or broken.
pub fn peek(octets: &[u8]) -> Result<(MessageType, Imsi), DecodeError> {
    split(octets).map(|(kind, imsi, _)| (kind, imsi))
}

impl Message {
    /// A message with nothing in it.
    #[must_use]
    pub fn new(kind: MessageType, imsi: Imsi) -> Self {
        Self { kind, imsi, elements: Bytes::new() }
    }

    /// Reads a message: the payload of a frame, without the octet that says that it is GSUP.
    ///
    /// # Errors
    /// When type or IMSI are missing, or an information element is longer than the message.
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

    /// The message's octets, as in a frame behind the octet that says that it is GSUP.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let imsi = self.imsi.to_bcd();
        let mut octets = Vec::with_capacity(3 + imsi.len() + self.elements.len());
        octets.push(self.kind.0);
        octets.push(Tag::IMSI.0);
        // An IMSI has eight octets at most.
        octets.push(u8::try_from(imsi.len()).unwrap_or(u8::MAX));
        octets.extend(imsi);
        octets.extend_from_slice(&self.elements);
        octets.into()
    }

    /// Writes it as a whole frame.
    pub fn put(&self, output: &mut BytesMut) {
        ipa::put(output, STREAM_OSMOCOM, &[EXTENSION_GSUP], &self.encode());
    }

    /// All information elements behind the IMSI, as they stand.
    pub fn elements(&self) -> impl Iterator<Item = Element<'_>> {
        Elements(&self.elements)
    }

    /// The value under a tag; of several the last, as libosmocore reads it.
    #[must_use]
    pub fn get(&self, tag: Tag) -> Option<&[u8]> {
        last(&self.elements, tag)
    }

    fn octet(&self, tag: Tag) -> Option<u8> {
        self.get(tag)?.first().copied()
    }

    /// Message reference of the relay layer. An MSC answers with one of its own.
    #[must_use]
    pub fn reference(&self) -> Option<u8> {
        self.octet(Tag::SM_RP_MR)
    }

    /// Destination on the relay layer.
    ///
    /// # Errors
    /// When it is no address.
    pub fn destination(&self) -> Result<Option<RpAddress>, DecodeError> {
        self.address(Tag::SM_RP_DA)
    }

    /// Origin on the relay layer.
    ///
    /// # Errors
    /// When it is no address.
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

    /// Why the network refuses.
    #[must_use]
    pub fn cause(&self) -> Option<GmmCause> {
        self.octet(Tag::CAUSE).map(GmmCause)
    }

    /// Why the phone, or the far end's relay layer, refuses.
    #[must_use]
    pub fn rp_cause(&self) -> Option<RpCause> {
        self.octet(Tag::SM_RP_CAUSE).map(RpCause)
    }

    /// Whether more messages wait.
    #[must_use]
    pub fn more_messages(&self) -> bool {
        self.octet(Tag::SM_RP_MMS).is_some_and(|more| more != 0)
    }

    /// Why a phone is ready again.
    #[must_use]
    pub fn alert_reason(&self) -> Option<AlertReason> {
        self.octet(Tag::SM_ALERT_REASON).map(AlertReason)
    }

    /// For what kind of user the message is.
    #[must_use]
    pub fn class(&self) -> Option<MessageClass> {
        self.octet(Tag::MESSAGE_CLASS).map(MessageClass)
    }

    /// Which half of the core network it is about.
    #[must_use]
    pub fn cn_domain(&self) -> Option<CnDomain> {
        self.octet(Tag::CN_DOMAIN).map(CnDomain)
    }

    /// Whose message it is.
    #[must_use]
    pub fn source_name(&self) -> Option<&str> {
        self.name(Tag::SOURCE_NAME)
    }

    /// For whom it is.
    #[must_use]
    pub fn destination_name(&self) -> Option<&str> {
        self.name(Tag::DESTINATION_NAME)
    }

    fn name(&self, tag: Tag) -> Option<&str> {
        let value = self.get(tag)?.split(|octet| *octet == 0).next()?;
        std::str::from_utf8(value).ok().filter(|name| !name.is_empty())
    }

    /// The subscriber's number, where there is one.
    #[must_use]
    pub fn msisdn(&self) -> Option<String> {
        msisdn(self.get(Tag::MSISDN)?)
    }

    /// With an information element at its place; one with this tag that is there already goes.
    ///
    /// # Errors
    /// When the value has more than 255 octets.
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
            // It came out of an octet.
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

    /// With a message reference.
    #[must_use]
    pub fn with_reference(self, reference: u8) -> Self {
        self.with_octet(Tag::SM_RP_MR, reference)
    }

    /// With a destination.
    ///
    /// # Errors
    /// When its digits are none.
    pub fn with_destination(self, address: &RpAddress) -> Result<Self, EncodeError> {
        self.with(Tag::SM_RP_DA, &address.encode()?)
    }

    /// With an origin.
    ///
    /// # Errors
    /// When its digits are none.
    pub fn with_origin(self, address: &RpAddress) -> Result<Self, EncodeError> {
        self.with(Tag::SM_RP_OA, &address.encode()?)
    }

    /// With a TPDU.
    ///
    /// # Errors
    /// When it has more than 255 octets.
    pub fn with_user_information(self, tpdu: &[u8]) -> Result<Self, EncodeError> {
        self.with(Tag::SM_RP_UI, tpdu)
    }

    /// With why the network refuses.
    #[must_use]
    pub fn with_cause(self, cause: GmmCause) -> Self {
        self.with_octet(Tag::CAUSE, cause.0)
    }

    /// With why the phone or the service centre refuses.
    #[must_use]
    pub fn with_rp_cause(self, cause: RpCause) -> Self {
        self.with_octet(Tag::SM_RP_CAUSE, cause.0)
    }

    /// Says that more messages wait: the MSC keeps the channel to the phone open.
    #[must_use]
    pub fn with_more_messages(self) -> Self {
        self.with_octet(Tag::SM_RP_MMS, 1)
    }

    /// With why a phone is ready again.
    #[must_use]
    pub fn with_alert_reason(self, reason: AlertReason) -> Self {
        self.with_octet(Tag::SM_ALERT_REASON, reason.0)
    }

    /// With the kind of user it is for.
    #[must_use]
    pub fn with_class(self, class: MessageClass) -> Self {
        self.with_octet(Tag::MESSAGE_CLASS, class.0)
    }

    /// With whose message it is.
    #[must_use]
    pub fn with_source_name(self, name: &Name) -> Self {
        self.with_name(Tag::SOURCE_NAME, name)
    }

    /// With for whom it is.
    #[must_use]
    pub fn with_destination_name(self, name: &Name) -> Self {
        self.with_name(Tag::DESTINATION_NAME, name)
    }

    fn with_name(mut self, tag: Tag, name: &Name) -> Self {
        let value = name.with_nul();
        // A name has 32 octets at most.
        self.put_element(tag, u8::try_from(value.len()).unwrap_or(u8::MAX), &value);
        self
    }

    /// With the subscriber's number, as an HLR writes it.
    ///
    /// # Errors
    /// When its digits are none.
    pub fn with_msisdn(self, msisdn: &str) -> Result<Self, EncodeError> {
        let bcd = digits::encode(msisdn.as_bytes()).ok_or(EncodeError::Digits)?;
        let octets = u8::try_from(bcd.len())
            .map_err(|_| EncodeError::Long { tag: Tag::MSISDN.0, octets: bcd.len() })?;
        self.with(Tag::MSISDN, &[&[octets], &bcd[..]].concat())
    }

    /// A short message for a phone, from this service centre.
    ///
    /// The reference is 0xFF, since the MSC makes its own. A source name is needed behind an HLR that routes by name.
    ///
    /// # Errors
    /// When the TPDU is too long or the service centre's number has something other than digits.
    pub fn mt_forward(
        imsi: Imsi,
        service_centre: &Number,
        tpdu: &[u8],
        more: bool,
        source: Option<&Name>,
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

    /// The good answer to this request: same subscriber and reference, and the way back.
    #[must_use]
    pub fn accepted(&self, own_name: Option<&Name>) -> Self {
        self.answered(self.kind.to_result(), own_name, None)
    }

    /// The refusal of this request. Always with a cause of the relay layer: without one an MSC leaves its phone without an
    /// answer.
    #[must_use]
    pub fn refused(&self, cause: RpCause, own_name: Option<&Name>) -> Self {
        self.answered(self.kind.to_error(), own_name, Some(cause))
    }

    fn answered(&self, kind: MessageType, own_name: Option<&Name>, cause: Option<RpCause>) -> Self {
        let mut answer = Self::new(kind, self.imsi);
        if let Some(reference) = self.reference() {
            answer = answer.with_reference(reference);
        }
        if let Some(cause) = cause {
            answer = answer.with_rp_cause(cause);
        }
        answer = answer.with_class(MessageClass::SMS);
        // The HLR sends back what has both names, and only that.
        let Some(source) = self.get(Tag::SOURCE_NAME) else { return answer };
        let Some(own_name) = own_name else { return answer };
        let octets = u8::try_from(source.len()).unwrap_or(u8::MAX);
        answer = answer.with_source_name(own_name);
        answer.put_element(Tag::DESTINATION_NAME, octets, source);
        answer
    }
}

impl fmt::Debug for Message {
    /// Without the TPDU: what somebody writes to somebody is not for logs.
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
