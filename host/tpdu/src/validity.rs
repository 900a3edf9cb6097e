//! Validity period: TP-VP in its three formats (3GPP TS 23.040 §9.2.3.12).

use crate::wire::{Reader, decimal};
use crate::{Error, Result, TimeStamp};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// A validity period.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Validity {
    /// Not set; the service centre decides.
    #[default]
    None,
    /// Relative format: one octet, five minutes to 63 weeks in growing steps.
    Relative(u8),
    /// Absolute format.
    Absolute(TimeStamp),
    /// Enhanced format: seven octets.
    Enhanced([u8; 7]),
}

/// The duration of a relative validity period, in milliseconds.
#[must_use]
pub fn relative_ms(octet: u8) -> u64 {
    let number = u64::from(octet);
    match octet {
        0..=143 => (number + 1) * 5 * MINUTE,
        144..=167 => 12 * HOUR + (number - 143) * 30 * MINUTE,
        168..=196 => (number - 166) * DAY,
        197..=255 => (number - 192) * WEEK,
    }
}

/// A decoded enhanced validity period.
struct Enhanced {
    single_shot: bool,
    /// Milliseconds; `None` if no period is given.
    lasts: Option<u64>,
}

fn enhanced(octets: [u8; 7]) -> Result<Enhanced> {
    let mut reader = Reader::new(&octets);
    let first = reader.u8("validity period")?;
    let mut last = first;
    while last & 0x80 != 0 {
        last = reader
            .u8("validity period")
            .map_err(|_| Error::Validity("its functionality indicator does not end"))?;
    }
    let mut value = || reader.u8("validity period").map_err(|_| Error::Validity("its value is missing"));
    let lasts = match first & 7 {
        0 => None,
        1 => Some(relative_ms(value()?)),
        2 => match value()? {
            0 => return Err(Error::Validity("zero seconds")),
            seconds => Some(u64::from(seconds) * 1000),
        },
        3 => {
            let mut part = |limit: u8| {
                let part = decimal(value()?).filter(|number| *number < limit);
                part.map(u64::from).ok_or(Error::Validity("invalid hours, minutes or seconds"))
            };
            Some(part(100)? * HOUR + part(60)? * MINUTE + part(60)? * 1000)
        }
        _ => return Err(Error::Validity("a reserved format")),
    };
    Ok(Enhanced { single_shot: first & 0x40 != 0, lasts })
}

impl Validity {
    /// The expiry time for a message received at `now`, both in milliseconds since the Unix epoch. `None` if no period
    /// is set, or if an enhanced period cannot be decoded.
    #[must_use]
    pub fn expires_at(&self, now: u64) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Relative(octet) => Some(now.saturating_add(relative_ms(*octet))),
            Self::Absolute(stamp) => stamp.unix_ms(),
            Self::Enhanced(octets) => Some(now.saturating_add(enhanced(*octets).ok()?.lasts?)),
        }
    }

    /// Whether the service centre makes a single attempt.
    #[must_use]
    pub fn single_shot(&self) -> bool {
        matches!(self, Self::Enhanced(octets) if enhanced(*octets).is_ok_and(|read| read.single_shot))
    }

    /// TP-VPF, at its position in the first octet of SMS-SUBMIT.
    pub(crate) fn format(&self) -> u8 {
        match self {
            Self::None => 0x00,
            Self::Enhanced(_) => 0x08,
            Self::Relative(_) => 0x10,
            Self::Absolute(_) => 0x18,
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::None => {}
            Self::Relative(octet) => out.push(*octet),
            Self::Absolute(stamp) => out.extend(stamp.encode()?),
            Self::Enhanced(octets) => {
                enhanced(*octets)?;
                out.extend(octets);
            }
        }
        Ok(())
    }

    pub(crate) fn read(first: u8, reader: &mut Reader<'_>) -> Result<Self> {
        const FIELD: &str = "validity period";
        Ok(match first & 0x18 {
            0x10 => Self::Relative(reader.u8(FIELD)?),
            0x18 => {
                let stamp = TimeStamp::decode(reader.array(FIELD)?);
                Self::Absolute(stamp.map_err(|_| Error::Validity("its end is not a valid time stamp"))?)
            }
            0x08 => {
                let octets = reader.array(FIELD)?;
                enhanced(octets)?;
                Self::Enhanced(octets)
            }
            _ => Self::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_format_steps() {
        let rows = [
            (0, 5 * MINUTE),
            (11, HOUR),
            (143, 12 * HOUR),
            (144, 12 * HOUR + 30 * MINUTE),
            (167, DAY),
            (168, 2 * DAY),
            (173, WEEK),
            (196, 30 * DAY),
            (197, 5 * WEEK),
            (255, 63 * WEEK),
        ];
        for (octet, ms) in rows {
            assert_eq!(relative_ms(octet), ms, "{octet}");
        }
        assert!((0..255).all(|octet| relative_ms(octet) < relative_ms(octet + 1)));
    }

    #[test]
    fn expiry_of_every_format() {
        let now = 1_700_000_000_000;
        let ends = |validity: Validity| validity.expires_at(now);
        assert_eq!(ends(Validity::None), None);
        assert_eq!(ends(Validity::Relative(11)), Some(now + HOUR));
        let stamp = TimeStamp::at(now + DAY, -20).unwrap();
        assert_eq!(ends(Validity::Absolute(stamp)), Some(now + DAY));
        let enhanced = |octets: [u8; 7]| Validity::Enhanced(octets);
        assert_eq!(ends(enhanced([0x00, 0, 0, 0, 0, 0, 0])), None);
        assert_eq!(ends(enhanced([0x01, 167, 0, 0, 0, 0, 0])), Some(now + DAY));
        assert_eq!(ends(enhanced([0x42, 30, 0, 0, 0, 0, 0])), Some(now + 30_000));
        assert_eq!(
            ends(enhanced([3, 0x21, 0x43, 0x95, 0, 0, 0])),
            Some(now + 12 * HOUR + 34 * MINUTE + 59_000)
        );
        assert_eq!(ends(enhanced([0x83, 0x00, 0x10, 0, 0, 0, 0])), Some(now + HOUR), "an octet of extension");
        assert_eq!(ends(enhanced([0x04, 0, 0, 0, 0, 0, 0])), None);
        assert_eq!(Validity::Relative(0).expires_at(u64::MAX), Some(u64::MAX));
        assert!(enhanced([0x42, 30, 0, 0, 0, 0, 0]).single_shot());
        assert!(!enhanced([0x02, 30, 0, 0, 0, 0, 0]).single_shot() && !Validity::None.single_shot());
    }

    #[test]
    fn invalid_validity_is_an_error() {
        for octets in
            [[0x02, 0, 0, 0, 0, 0, 0], [0x03, 0xFF, 0, 0, 0, 0, 0], [0x05, 0, 0, 0, 0, 0, 0], [0x81; 7]]
        {
            let mut reader = Reader::new(&octets);
            let error = Validity::read(0x08, &mut reader).unwrap_err();
            assert!(matches!(error, Error::Validity(_)), "{octets:02x?}");
            assert_eq!(error.failure_cause(), crate::FailureCause::VALIDITY_PERIOD_NOT_SUPPORTED);
        }
        assert!(matches!(Validity::read(0x18, &mut Reader::new(&[0xFF; 7])), Err(Error::Validity(_))));
        assert_eq!(Validity::read(0x10, &mut Reader::new(&[])), Err(Error::Short("validity period")));
    }
}
