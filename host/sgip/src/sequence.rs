use model::Timestamp;
use std::fmt;
use std::str::FromStr;

/// The twelve octets that identify a command in the whole network: three numbers of 32 bits, in this order (SGIP 1.2
/// §3.4). An answer has the sequence of its command.
///
/// A sequence that is echoed is opaque; a peer may put any value into the parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Sequence {
    /// Part 1: the number of the node that created the command. An SP's number is 3AAAAQQQQQ, beyond 31 bits.
    pub node: u32,
    /// Part 2: the time, as the decimal number MMDDhhmmss. It has no year, because commands live only for days.
    pub time: u32,
    /// Part 3: a counter, which wraps at 32 bits.
    pub counter: u32,
}

/// Beijing is eight hours ahead of UTC, all year; every time in the protocol is Beijing time.
const BEIJING_MS: u64 = 8 * 3_600_000;
const DAY_MS: u64 = 86_400_000;

impl Sequence {
    /// The sequence of a command that `node` creates at `at`.
    #[must_use]
    pub fn new(node: u32, at: Timestamp, counter: u32) -> Self {
        Self { node, time: time_of(at), counter }
    }

    /// Decodes the octets.
    #[must_use]
    pub fn from_octets(octets: [u8; 12]) -> Self {
        let part =
            |at: usize| u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        Self { node: part(0), time: part(4), counter: part(8) }
    }

    /// Encodes the octets.
    #[must_use]
    pub fn octets(self) -> [u8; 12] {
        let mut octets = [0; 12];
        octets[..4].copy_from_slice(&self.node.to_be_bytes());
        octets[4..8].copy_from_slice(&self.time.to_be_bytes());
        octets[8..].copy_from_slice(&self.counter.to_be_bytes());
        octets
    }
}

/// MMDDhhmmss in Beijing.
fn time_of(at: Timestamp) -> u32 {
    let local = at.0 + BEIJING_MS;
    let (_, month, day) = date_from_days(local / DAY_MS);
    let seconds = u32::try_from(local % DAY_MS / 1000).unwrap_or(0);
    month * 100_000_000 + day * 1_000_000 + seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60
}

/// Year, month and day of a day since the epoch, Gregorian. The algorithm counts from 1 March of the year 0, so that
/// the leap day is the last of its year.
pub(crate) fn date_from_days(days: u64) -> (u64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = u32::try_from(day_of_year - (153 * shifted_month + 2) / 5 + 1).unwrap_or(1);
    let month =
        u32::try_from(if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 }).unwrap_or(1);
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Thirty digits: node, MMDDhhmmss and counter, ten each, as in operators' logs.
impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}{:010}{:010}", self.node, self.time, self.counter)
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.node, self.time, self.counter)
    }
}

/// The text is not the thirty digits of a sequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no SGIP sequence: expected thirty digits, ten each for node, MMDDhhmmss and counter")]
pub struct ParseSequenceError(pub String);

impl FromStr for Sequence {
    type Err = ParseSequenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseSequenceError(text.to_owned());
        if text.len() != 30 || !text.bytes().all(|c| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let part = |at: usize| text.get(at..at + 10).and_then(|digits| digits.parse().ok()).ok_or_else(wrong);
        Ok(Self { node: part(0)?, time: part(10)?, counter: part(20)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20 20:32:25 in Beijing.
    const EXAMPLE: Timestamp = Timestamp(1_795_177_945_000);

    #[test]
    fn the_example_of_the_specification_decodes() {
        let sequence = Sequence::new(3_010_012_345, EXAMPLE, 1);
        assert_eq!(sequence.time, 1_120_203_225);
        let octets = [0xb3, 0x69, 0x24, 0xb9, 0x42, 0xc4, 0xf1, 0xd9, 0, 0, 0, 1];
        assert_eq!(sequence.octets(), octets);
        assert_eq!(Sequence::from_octets(octets), sequence);
        assert_eq!(sequence.to_string(), "301001234511202032250000000001");
        assert_eq!(sequence.to_string().parse(), Ok(sequence));
        assert!("30100123451120203225000000000".parse::<Sequence>().is_err());
        assert!("999999999911202032250000000001".parse::<Sequence>().is_err());
    }

    #[test]
    fn check_14_january_has_nine_digits_and_the_year_turns() {
        assert_eq!(Sequence::new(1, Timestamp(1_798_732_799_000), 0).time, 1_231_235_959);
        assert_eq!(Sequence::new(1, Timestamp(1_798_732_800_000), 0).time, 101_000_000);
    }

    #[test]
    fn dates_of_days() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (60, (1970, 3, 2)),
            (365, (1971, 1, 1)),
            (789, (1972, 2, 29)),
            (11016, (2000, 2, 29)),
            (20777, (2026, 11, 20)),
            (20778, (2026, 11, 21)),
            (47481, (2099, 12, 31)),
        ] {
            assert_eq!(date_from_days(day), date, "{day}");
        }
    }
}
