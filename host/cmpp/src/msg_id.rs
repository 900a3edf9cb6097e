use bytes::Bytes;

/// The id of a message at a gateway (CMPP 3.0 §8.4.3.2): month 4 bits, day 5, hour 5, minute 6, second 6, gateway 22,
/// counter 16. An SP must treat it as eight opaque octets, since other gateways use other layouts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CmppMsgId(pub u64);

impl CmppMsgId {
    /// Makes an id from the second since 1970, a gateway code up to 4,194,303, and a counter of which 16 bits are used.
    #[must_use]
    pub fn new(second: u64, gateway: u32, counter: u32) -> Self {
        let text = sp_session::wall_clock(model::Timestamp(second * 1000));
        let part = |at: usize| text.get(at..at + 2).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let (month, day, hour, minute, second) = (part(2), part(4), part(6), part(8), part(10));
        let time = month << 60 | day << 55 | hour << 50 | minute << 44 | second << 38;
        Self(time | u64::from(gateway & 0x3F_FFFF) << 16 | u64::from(counter & 0xFFFF))
    }

    /// The id of message `index` of a Submit to several users, of which this is the first. The counter starts again
    /// at 0 without changing the gateway (CMPP 3.0 §9).
    #[must_use]
    pub fn following(self, index: u32) -> Self {
        let counter = (self.0 & 0xFFFF).wrapping_add(u64::from(index)) & 0xFFFF;
        Self(self.0 & !0xFFFF | counter)
    }

    /// The octets on the wire.
    #[must_use]
    pub fn octets(self) -> Bytes {
        Bytes::copy_from_slice(&self.0.to_be_bytes())
    }

    /// The id in these octets; 0, which is not the id of a message, unless there are eight.
    #[must_use]
    pub fn of(octets: &[u8]) -> Self {
        Self(octets.try_into().map_or(0, u64::from_be_bytes))
    }

    /// The id for people and for comparisons: 16 hexadecimal digits.
    #[must_use]
    pub fn text(self) -> Bytes {
        format!("{:016x}", self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_14_the_layout() {
        // 8 July 09:07:15 in China, gateway 101001, counter 17.
        let id = CmppMsgId::new(1_783_472_835, 101_001, 17);
        assert_eq!(id, CmppMsgId(0x7424_73C1_8A89_0011));
        assert_eq!(id.text(), "742473c18a890011");
        assert_eq!(CmppMsgId::of(&id.octets()), id);
        // December: above 2^63.
        let late = CmppMsgId::new(1_796_000_000, 4_194_303, 0xFFFF);
        assert!(late.0 > 1 << 63 && late.0 >> 60 == 11 || late.0 >> 60 == 12);
        assert_eq!(late.0 >> 16 & 0x3F_FFFF, 4_194_303);
        assert_eq!(CmppMsgId::of(&late.octets()), late);
    }

    #[test]
    fn check_58_a_range_starts_again_at_0_and_keeps_the_gateway() {
        let id = CmppMsgId::new(1_783_472_835, 101_001, 0xFFFF);
        assert_eq!(id.following(0), id);
        assert_eq!(id.following(1), CmppMsgId::new(1_783_472_835, 101_001, 0));
        assert_eq!(id.following(3), CmppMsgId::new(1_783_472_835, 101_001, 2));
    }
}
