//! SGsAP (3GPP TS 29.118), as far as a handset that only uses short messages needs it.

/// Message types (§9.2).
pub(crate) mod kind {
    pub(crate) const PAGING_REQUEST: u8 = 0x01;
    pub(crate) const PAGING_REJECT: u8 = 0x02;
    pub(crate) const SERVICE_REQUEST: u8 = 0x06;
    pub(crate) const DOWNLINK_UNITDATA: u8 = 0x07;
    pub(crate) const UPLINK_UNITDATA: u8 = 0x08;
    pub(crate) const LOCATION_UPDATE_REQUEST: u8 = 0x09;
    pub(crate) const LOCATION_UPDATE_ACCEPT: u8 = 0x0a;
    pub(crate) const LOCATION_UPDATE_REJECT: u8 = 0x0b;
    pub(crate) const TMSI_REALLOCATION_COMPLETE: u8 = 0x0c;
    pub(crate) const IMSI_DETACH_INDICATION: u8 = 0x13;
    pub(crate) const IMSI_DETACH_ACK: u8 = 0x14;
    pub(crate) const RESET_INDICATION: u8 = 0x15;
    pub(crate) const RESET_ACK: u8 = 0x16;
    pub(crate) const RELEASE_REQUEST: u8 = 0x1b;
}

/// Information elements (§9.3).
pub(crate) mod element {
    pub(crate) const IMSI: u8 = 0x01;
    pub(crate) const LOCATION_AREA: u8 = 0x04;
    pub(crate) const REJECT_CAUSE: u8 = 0x0f;
    pub(crate) const SGS_CAUSE: u8 = 0x08;
    pub(crate) const MME_NAME: u8 = 0x09;
    pub(crate) const LOCATION_UPDATE_TYPE: u8 = 0x0a;
    pub(crate) const MOBILE_IDENTITY: u8 = 0x0e;
    pub(crate) const NAS_CONTAINER: u8 = 0x16;
    pub(crate) const SERVICE_INDICATOR: u8 = 0x20;
    pub(crate) const DETACH_TYPE: u8 = 0x11;
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    pub(crate) kind: u8,
    elements: Vec<(u8, Vec<u8>)>,
}

impl Packet {
    pub(crate) fn new(kind: u8) -> Self {
        Self { kind, elements: Vec::new() }
    }

    /// A message about a subscriber: almost all begin with the IMSI.
    pub(crate) fn about(kind: u8, imsi: &str) -> Self {
        Self::new(kind).with(element::IMSI, &identity(imsi))
    }

    pub(crate) fn with(mut self, tag: u8, value: &[u8]) -> Self {
        self.elements.push((tag, value.to_owned()));
        self
    }

    pub(crate) fn get(&self, tag: u8) -> Option<&[u8]> {
        self.elements.iter().find(|(its, _)| *its == tag).map(|(_, value)| value.as_slice())
    }

    pub(crate) fn imsi(&self) -> Option<String> {
        self.get(element::IMSI).map(digits)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut octets = vec![self.kind];
        for (tag, value) in &self.elements {
            octets.extend_from_slice(&[*tag, value.len() as u8]);
            octets.extend_from_slice(value);
        }
        octets
    }

    /// `None` if it is truncated.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let (kind, mut rest) = octets.split_first()?;
        let mut packet = Self::new(*kind);
        while let [tag, length, more @ ..] = rest {
            let (value, after) = more.split_at_checked(usize::from(*length))?;
            packet.elements.push((*tag, value.to_owned()));
            rest = after;
        }
        rest.is_empty().then_some(packet)
    }
}

/// An IMSI as a mobile identity (TS 24.008 §10.5.1.4): the digits begin in the second half octet.
fn identity(imsi: &str) -> Vec<u8> {
    let mut halves = vec![1 | u8::from(imsi.len() % 2 == 1) << 3];
    halves.extend(imsi.bytes().map(|digit| digit - b'0'));
    if halves.len() % 2 == 1 {
        halves.push(0xf);
    }
    halves.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect()
}

fn digits(identity: &[u8]) -> String {
    let halves = identity.iter().flat_map(|octet| [octet & 0xf, octet >> 4]);
    halves.skip(1).filter(|half| *half < 10).map(|half| char::from(b'0' + half)).collect()
}
