//! CCM (common channel management): identity and keep-alive, on a stream of their own.

use crate::ipa::{self, STREAM_CCM};
use crate::{IpaName, IpaNameError};
use bytes::{Buf, Bytes, BytesMut};

/// Tags of an identity.
pub mod tag {
    /// Serial number: **the name used for routing**.
    pub const SERIAL: u8 = 0x00;
    /// Unit name, for display.
    pub const UNIT_NAME: u8 = 0x01;
    /// First location.
    pub const LOCATION: u8 = 0x02;
    /// Second location.
    pub const LOCATION_2: u8 = 0x03;
    /// Equipment version.
    pub const EQUIPMENT_VERSION: u8 = 0x04;
    /// Software version.
    pub const SOFTWARE_VERSION: u8 = 0x05;
    /// A MAC address.
    pub const MAC: u8 = 0x07;
    /// Unit id, three numbers separated by slashes. An HLR closes a connection without it.
    pub const UNIT_ID: u8 = 0x08;
}

/// A unit id that every HLR accepts.
pub const UNIT_ID: &str = "0/0/0";

const PING: u8 = 0x00;
const PONG: u8 = 0x01;
const ID_GET: u8 = 0x04;
const ID_RESPONSE: u8 = 0x05;
const ID_ACK: u8 = 0x06;

/// A CCM message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ccm {
    /// Keep-alive request.
    Ping,
    /// Keep-alive answer.
    Pong,
    /// Identity request, with the requested tags.
    IdGet(Vec<u8>),
    /// Identity response.
    IdResponse(IdResponse),
    /// Identity acknowledgement.
    IdAck,
    /// Any other message, undecoded.
    Other(Bytes),
}

/// An identity response in wire format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdResponse {
    /// Tags and values; a value includes its terminating NUL.
    pub items: Vec<(u8, Bytes)>,
}

impl IdResponse {
    /// The value of a tag, up to its NUL.
    #[must_use]
    pub fn get(&self, tag: u8) -> Option<&[u8]> {
        let (_, value) = self.items.iter().find(|(known, _)| *known == tag)?;
        value.split(|octet| *octet == 0).next()
    }

    /// The name used for routing.
    #[must_use]
    pub fn serial(&self) -> Option<&str> {
        std::str::from_utf8(self.get(tag::SERIAL)?).ok().filter(|name| !name.is_empty())
    }

    fn decode(mut payload: Bytes) -> Option<Self> {
        let mut items = Vec::new();
        while !payload.is_empty() {
            let octets = usize::from(payload.try_get_u16().ok()?);
            if octets == 0 || octets > payload.len() {
                return None;
            }
            let mut item = payload.split_to(octets);
            items.push((item.get_u8(), item));
        }
        Some(Self { items })
    }

    fn encode(&self, into: &mut Vec<u8>) {
        for (tag, value) in &self.items {
            // Own values have some ten octets, and decoded ones fit into their original length.
            let octets = u16::try_from(1 + value.len()).unwrap_or(u16::MAX);
            into.extend(octets.to_be_bytes());
            into.push(*tag);
            into.extend_from_slice(value.get(..usize::from(octets) - 1).unwrap_or_default());
        }
    }
}

impl Ccm {
    /// Whether a payload has the type of an identity response.
    pub(crate) fn is_id_response(payload: &[u8]) -> bool {
        payload.first() == Some(&ID_RESPONSE)
    }

    /// Whether a payload is a ping.
    pub(crate) fn is_ping(payload: &[u8]) -> bool {
        payload.first() == Some(&PING)
    }

    /// Whether a payload has the type of an identity request.
    pub(crate) fn is_id_get(payload: &[u8]) -> bool {
        payload.first() == Some(&ID_GET)
    }

    /// Decodes the payload of a CCM frame; unknown messages become [`Ccm::Other`].
    #[must_use]
    pub fn decode(payload: &Bytes) -> Self {
        let Some((kind, rest)) = payload.split_first() else { return Self::Other(payload.clone()) };
        let known = match *kind {
            PING => Some(Self::Ping),
            PONG => Some(Self::Pong),
            ID_GET => id_get(rest).map(Self::IdGet),
            ID_RESPONSE => IdResponse::decode(payload.slice(1..)).map(Self::IdResponse),
            ID_ACK => Some(Self::IdAck),
            _ => None,
        };
        known.unwrap_or_else(|| Self::Other(payload.clone()))
    }

    /// Encodes it as a complete frame.
    pub fn put(&self, output: &mut BytesMut) {
        let mut payload = Vec::new();
        match self {
            Self::Ping => payload.push(PING),
            Self::Pong => payload.push(PONG),
            Self::IdGet(tags) => {
                payload.push(ID_GET);
                payload.extend(tags.iter().flat_map(|tag| [1, *tag]));
            }
            Self::IdResponse(response) => {
                payload.push(ID_RESPONSE);
                response.encode(&mut payload);
            }
            Self::IdAck => payload.push(ID_ACK),
            Self::Other(octets) => payload.extend_from_slice(octets),
        }
        ipa::put(output, STREAM_CCM, &[], &payload);
    }
}

/// In an identity request, an item is a one-octet length followed by a tag.
fn id_get(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut tags = Vec::new();
    while let Some((octets, after)) = rest.split_first() {
        let (item, after) = after.split_at_checked(usize::from(*octets))?;
        tags.push(*item.first()?);
        rest = after;
    }
    Some(tags)
}

/// The identity of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name used for routing. If two connections have the same name, the HLR sends no messages to the second and does not report it.
    pub name: IpaName,
    /// Unit name, shown by the HLR.
    pub unit_name: String,
    /// Three numbers separated by slashes; must not be empty.
    pub unit_id: String,
    /// Software name and version, shown by the HLR.
    pub software: String,
}

impl Identity {
    /// An identity with the default unit id.
    ///
    /// # Errors
    /// If the name is not a valid IPA name.
    pub fn new(name: &str, software: &str) -> Result<Self, IpaNameError> {
        let name: IpaName = name.parse()?;
        let unit_name = name.to_string();
        Ok(Self { name, unit_name, unit_id: UNIT_ID.to_owned(), software: software.to_owned() })
    }

    /// The response to a request for these tags. Name and unit id are always included.
    #[must_use]
    pub fn response(&self, wanted: &[u8]) -> IdResponse {
        let unit_id = if self.unit_id.is_empty() { UNIT_ID } else { &self.unit_id };
        let value = |wanted: u8| match wanted {
            tag::SERIAL => self.name.as_str(),
            tag::UNIT_NAME => &self.unit_name,
            tag::EQUIPMENT_VERSION | tag::SOFTWARE_VERSION => &self.software,
            tag::UNIT_ID => unit_id,
            tag::MAC => "00:00:00:00:00:00",
            _ => "",
        };
        let missing = [tag::UNIT_ID, tag::SERIAL].into_iter().filter(|must| !wanted.contains(must));
        let items = wanted.iter().copied().chain(missing);
        IdResponse { items: items.map(|tag| (tag, terminated(value(tag)))).collect() }
    }
}

/// A text with its terminating NUL.
pub(crate) fn terminated(text: &str) -> Bytes {
    let text: Vec<u8> = text.bytes().filter(|octet| *octet != 0).take(250).chain([0]).collect();
    text.into()
}
