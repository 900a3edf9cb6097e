//! Identity and keep-alive ("CCM", common channel management), on a stream of their own.

use crate::ipa::{self, STREAM_CCM};
use crate::{Name, NameError};
use bytes::{Buf, Bytes, BytesMut};

/// Tags of an identity.
pub mod tag {
    /// Serial number: **the name by which is routed**.
    pub const SERIAL: u8 = 0x00;
    /// Unit name: for people.
    pub const UNIT_NAME: u8 = 0x01;
    /// First place.
    pub const LOCATION: u8 = 0x02;
    /// Second place.
    pub const LOCATION_2: u8 = 0x03;
    /// Version of the equipment.
    pub const EQUIPMENT_VERSION: u8 = 0x04;
    /// Version of the software.
    pub const SOFTWARE_VERSION: u8 = 0x05;
    /// A MAC address.
    pub const MAC: u8 = 0x07;
    /// Unit id, three numbers with slashes between them: an HLR closes a connection without it.
    pub const UNIT_ID: u8 = 0x08;
}

/// What an HLR takes for a unit id without more thought.
pub const UNIT_ID: &str = "0/0/0";

const PING: u8 = 0x00;
const PONG: u8 = 0x01;
const ID_GET: u8 = 0x04;
const ID_RESPONSE: u8 = 0x05;
const ID_ACK: u8 = 0x06;

/// A word about the connection itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ccm {
    /// Are you there?
    Ping,
    /// Yes.
    Pong,
    /// Who are you? With the tags that are wanted.
    IdGet(Vec<u8>),
    /// Who we are.
    IdResponse(IdResponse),
    /// I see.
    IdAck,
    /// Anything else, as it came.
    Other(Bytes),
}

/// An identity as it stands on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdResponse {
    /// Tag and value, with the NUL that ends it.
    pub items: Vec<(u8, Bytes)>,
}

impl IdResponse {
    /// The value under a tag, up to its NUL.
    #[must_use]
    pub fn get(&self, tag: u8) -> Option<&[u8]> {
        let (_, value) = self.items.iter().find(|(known, _)| *known == tag)?;
        value.split(|octet| *octet == 0).next()
    }

    /// The name by which is routed.
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
            // Values of ours have some ten octets, and what was read fits where it came from.
            let octets = u16::try_from(1 + value.len()).unwrap_or(u16::MAX);
            into.extend(octets.to_be_bytes());
            into.push(*tag);
            into.extend_from_slice(value.get(..usize::from(octets) - 1).unwrap_or_default());
        }
    }
}

impl Ccm {
    /// Whether a payload claims to be an identity.
    pub(crate) fn is_id_response(payload: &[u8]) -> bool {
        payload.first() == Some(&ID_RESPONSE)
    }

    /// Whether a payload is a ping.
    pub(crate) fn is_ping(payload: &[u8]) -> bool {
        payload.first() == Some(&PING)
    }

    /// Whether a payload claims to be the question who is there.
    pub(crate) fn is_id_get(payload: &[u8]) -> bool {
        payload.first() == Some(&ID_GET)
    }

    /// Reads the payload of a frame on this stream. What is not understood comes back as [`Ccm::Other`].
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

    /// Writes it as a whole frame.
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

/// Here an item is a length of one octet and as many octets, of which the first is the tag.
fn id_get(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut tags = Vec::new();
    while let Some((octets, after)) = rest.split_first() {
        let (item, after) = after.split_at_checked(usize::from(*octets))?;
        tags.push(*item.first()?);
        rest = after;
    }
    Some(tags)
}

/// Who we are on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name by which is routed. Two connections with one name: the second gets nothing, and is not told.
    pub name: Name,
    /// For people: what the far end shows.
    pub unit_name: String,
    /// Three numbers with slashes between them; must not be empty.
    pub unit_id: String,
    /// For people: what we are, and of which version.
    pub software: String,
}

impl Identity {
    /// An identity with the usual unit id.
    ///
    /// # Errors
    /// When the name is none that an HLR takes.
    pub fn new(name: &str, software: &str) -> Result<Self, NameError> {
        let name: Name = name.parse()?;
        let unit_name = name.to_string();
        Ok(Self { name, unit_name, unit_id: UNIT_ID.to_owned(), software: software.to_owned() })
    }

    /// The answer to who asks for these tags. Name and unit id are in it, wanted or not.
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

/// Text with the NUL that ends it on the wire.
pub(crate) fn terminated(text: &str) -> Bytes {
    let text: Vec<u8> = text.bytes().filter(|octet| *octet != 0).take(250).chain([0]).collect();
    text.into()
}
