//! Proofs of the password in a login and in its answer, and the time in them (CMPP 3.0 §8.4.1, SMGP 3.0.3 §6.2).

use md5::{Digest as _, Md5};
use model::Timestamp;

/// China has one time zone without summer time: UTC+8.
const OFFSET_MS: u64 = 8 * 3_600_000;

/// The proof in an SP's login: MD5 over its name, zeros, the password and the time of the login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientAuthenticator {
    /// Length of the name's field in octets: 6 in CMPP, 8 in SMGP. Name and zeros are 15 octets together.
    pub name_width: usize,
}

impl ClientAuthenticator {
    /// The proof with the name padded to its field, as real gateways require it.
    #[must_use]
    pub fn padded(self, name: &[u8], secret: &[u8], timestamp: u32) -> [u8; 16] {
        let padding = self.name_width.saturating_sub(name.len());
        self.hash(name, padding, secret, timestamp)
    }

    /// The proof with the unpadded name; some clients and gateways compute this form.
    #[must_use]
    pub fn unpadded(self, name: &[u8], secret: &[u8], timestamp: u32) -> [u8; 16] {
        self.hash(name, 0, secret, timestamp)
    }

    /// Whether a proof is valid for this password, in either form. The comparison takes constant time.
    #[must_use]
    pub fn verify(self, authenticator: [u8; 16], name: &[u8], secret: &[u8], timestamp: u32) -> bool {
        let is_equal = |other: [u8; 16]| {
            authenticator.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
        };
        is_equal(self.padded(name, secret, timestamp)) | is_equal(self.unpadded(name, secret, timestamp))
    }

    fn hash(self, name: &[u8], padding: usize, secret: &[u8], timestamp: u32) -> [u8; 16] {
        let zeros = 15_usize.saturating_sub(self.name_width) + padding;
        let mut hash = Md5::new();
        hash.update(name);
        hash.update(&[0_u8; 32][..zeros.min(32)]);
        hash.update(secret);
        hash.update(format!("{timestamp:010}"));
        hash.finalize().into()
    }
}

/// The proof in a gateway's answer: MD5 over the status (as wide as on the wire), the client's proof and the password.
#[must_use]
pub fn server_authenticator(status: &[u8], client: [u8; 16], secret: &[u8]) -> [u8; 16] {
    let mut hash = Md5::new();
    hash.update(status);
    hash.update(client);
    hash.update(secret);
    hash.finalize().into()
}

/// The time of a login, `MMDDHHMMSS` in China, as a number.
#[must_use]
pub fn china_time(at: Timestamp) -> u32 {
    let text = wall_clock(at);
    text.get(2..12).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The time in China as `YYMMDDhhmmss`.
#[must_use]
pub fn wall_clock(at: Timestamp) -> String {
    let mut text = smpp::time::format(Timestamp(at.0 + OFFSET_MS));
    text.truncate(12);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const CMPP: ClientAuthenticator = ClientAuthenticator { name_width: 6 };
    const SMGP: ClientAuthenticator = ClientAuthenticator { name_width: 8 };

    fn hex(octets: [u8; 16]) -> String {
        octets.iter().map(|octet| format!("{octet:02x}")).collect()
    }

    #[test]
    fn check_21_the_authenticators_of_the_examples() {
        let client = CMPP.padded(b"901234", b"1234", 708_090_713);
        assert_eq!(hex(client), "d2de552872338f05d636fb992b9793fd");
        assert_eq!(hex(server_authenticator(&[0], client, b"1234")), "029940fbcc0a137e4bcd901d2776c722");
        assert_eq!(hex(server_authenticator(&[0; 4], client, b"1234")), "20d91032a109212d611c846a97e75608");
        let client = SMGP.padded(b"12345678", b"1234", 708_090_713);
        assert_eq!(hex(client), "a6463f75579ab8d30344b66297672b72");
        assert_eq!(hex(server_authenticator(&[0; 4], client, b"1234")), "04d58052cc7791bfee5b6a3df3d28f8e");
    }

    #[test]
    fn check_23_a_short_name_is_accepted_padded_and_unpadded() {
        assert_eq!(hex(CMPP.padded(b"1234", b"1234", 708_090_713)), "07e91287864615be746194bdf6044b99");
        assert_eq!(hex(CMPP.unpadded(b"1234", b"1234", 708_090_713)), "4443c94c441ff70bd92f6ce7e9f425e8");
        assert_eq!(hex(SMGP.padded(b"1234", b"1234", 708_090_713)), "07e91287864615be746194bdf6044b99");
        assert_eq!(hex(SMGP.unpadded(b"1234", b"1234", 708_090_713)), "5f05f24217488d39d987608ed07177c6");
        for one in [CMPP, SMGP] {
            assert!(one.verify(one.padded(b"12", b"s", 1), b"12", b"s", 1));
            assert!(one.verify(one.unpadded(b"12", b"s", 1), b"12", b"s", 1));
            assert!(!one.verify(one.padded(b"12", b"s", 1), b"12", b"t", 1));
            assert!(!one.verify(one.padded(b"12", b"s", 1), b"12", b"s", 2));
        }
    }

    #[test]
    fn check_22_the_time_of_a_login_is_that_of_china() {
        // 2026-07-08 01:07:13 UTC.
        assert_eq!(china_time(Timestamp(1_783_472_833_000)), 708_090_713);
        assert_eq!(wall_clock(Timestamp(1_783_472_833_000)), "260708090713");
    }
}
