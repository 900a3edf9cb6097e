use bytes::Bytes;

/// The id of a message at a gateway (SMGP 3.0.3 §6.2.14): ten octets of BCD; the gateway 3, `MMDDhhmm` 4, a counter 3.
/// An SP must treat it as ten opaque octets, since other gateways use other layouts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SmgpMsgId(pub [u8; 10]);

/// The counter has six digits.
const COUNTERS: u32 = 1_000_000;

impl SmgpMsgId {
    /// Makes an id from the second since 1970, a gateway of six digits, and a counter of which six digits are used.
    #[must_use]
    pub fn new(second: u64, gateway: u32, counter: u32) -> Self {
        let time = sp_session::wall_clock(model::Timestamp(second * 1000));
        let digits = format!(
            "{:06}{}{:06}",
            gateway % 1_000_000,
            time.get(2..10).unwrap_or("00000000"),
            counter % COUNTERS
        );
        let mut id = Self::default();
        for (octet, pair) in id.0.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *octet = (pair[0] & 0xF) << 4 | pair[1] & 0xF;
        }
        id
    }

    /// The id of message `index` of a Submit to several users, of which this is the first. The counter starts again
    /// at 0 (SMGP 3.0.3 annex B). Octets that are not BCD have no counter; then all messages have the same id.
    #[must_use]
    pub fn following(self, index: u32) -> Self {
        let mut counter = 0;
        for octet in &self.0[7..] {
            let (high, low) = (octet >> 4, octet & 0xF);
            if high > 9 || low > 9 {
                return self;
            }
            counter = counter * 100 + u32::from(high) * 10 + u32::from(low);
        }
        let digits = format!("{:06}", counter.wrapping_add(index) % COUNTERS);
        let mut id = self;
        for (octet, pair) in id.0[7..].iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *octet = (pair[0] & 0xF) << 4 | pair[1] & 0xF;
        }
        id
    }

    /// The id in these octets; zeros, which are not the id of a message, unless there are ten.
    #[must_use]
    pub fn of(octets: &[u8]) -> Self {
        Self(octets.try_into().unwrap_or_default())
    }

    /// The id for people and for comparisons: 20 hexadecimal digits.
    #[must_use]
    pub fn text(self) -> Bytes {
        self.0.iter().map(|octet| format!("{octet:02x}")).collect::<String>().into()
    }

    /// Makes an id from 20 decimal digits, as some gateways write it in reports.
    #[must_use]
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        if digits.len() != 20 || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut id = Self::default();
        for (octet, pair) in id.0.iter_mut().zip(digits.chunks_exact(2)) {
            *octet = (pair[0] & 0xF) << 4 | pair[1] & 0xF;
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_and_its_range() {
        let id = SmgpMsgId::new(1_783_472_835, 10_061, 17);
        assert_eq!(id.text(), "01006107080907000017");
        assert_eq!(SmgpMsgId::from_digits(b"01006107080907000017"), Some(id));
        let last = SmgpMsgId::new(1_783_472_835, 10_061, 999_999);
        assert_eq!(last.following(1).text(), "01006107080907000000");
        assert_eq!(last.following(0), last);
    }

    #[test]
    fn check_18_octets_that_are_no_bcd_are_kept() {
        let id = SmgpMsgId([0xFF; 10]);
        assert_eq!(id.following(1), id);
        assert_eq!(id.text(), "ffffffffffffffffffff");
        assert_eq!(SmgpMsgId::from_digits(b"0100610708090700001x"), None);
    }
}
