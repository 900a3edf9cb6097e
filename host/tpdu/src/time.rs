//! Time stamps (3GPP TS 23.040 §9.2.3.11): seven octets of swapped decimal digits; the last is the time zone.

use crate::wire::{decimal, swapped};
use crate::{Error, Result};

/// Milliseconds of a quarter of an hour.
const QUARTER: i64 = 15 * 60 * 1000;

/// A local time with its offset from UTC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimeStamp {
    /// 1990 to 2089: the wire format has two digits, of which 90 to 99 mean 1990 to 1999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// Quarters of an hour ahead of UTC, -79 to 79; negative west of Greenwich.
    pub quarters: i8,
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a day number.
fn date(day_number: i64) -> (i64, i64, i64) {
    let z = day_number + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * mp + 2) / 5 + 1)
}

impl TimeStamp {
    /// Converts a Unix time to a local time, `quarters` of an hour ahead of UTC. Milliseconds are dropped.
    ///
    /// # Errors
    /// [`Error::Time`] for a zone beyond 79 quarters, and for years before 1990 or after 2089.
    pub fn at(unix_ms: u64, quarters: i8) -> Result<Self> {
        // The limit is far beyond the year 9999, and the sums below cannot overflow.
        let unix_ms = i64::try_from(unix_ms).ok().filter(|ms| *ms < 1 << 50).ok_or(Error::Time("year"))?;
        let local = (unix_ms + i64::from(quarters) * QUARTER).div_euclid(1000);
        let (year, month, day) = date(local.div_euclid(86_400));
        let second = local.rem_euclid(86_400);
        let stamp = Self {
            year: u16::try_from(year).map_err(|_| Error::Time("year"))?,
            month: month as u8,
            day: day as u8,
            hour: (second / 3600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
            quarters,
        };
        stamp.check()?;
        Ok(stamp)
    }

    /// Milliseconds since the Unix epoch; `None` if a field is out of range.
    #[must_use]
    pub fn unix_ms(&self) -> Option<u64> {
        self.check().ok()?;
        let day = days(i64::from(self.year), i64::from(self.month), i64::from(self.day));
        let second = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        u64::try_from((day * 86_400 + second) * 1000 - i64::from(self.quarters) * QUARTER).ok()
    }

    fn check(&self) -> Result<()> {
        let date_of = |day| date(days(i64::from(self.year), i64::from(self.month), day));
        let whole = (i64::from(self.year), i64::from(self.month), i64::from(self.day));
        let checks = [
            ((1990..2090).contains(&self.year), "year"),
            ((1..=12).contains(&self.month), "month"),
            ((1..=31).contains(&self.day) && date_of(i64::from(self.day)) == whole, "day"),
            (self.hour < 24, "hour"),
            (self.minute < 60, "minute"),
            (self.second < 60, "second"),
            ((-79..=79).contains(&self.quarters), "zone"),
        ];
        checks.into_iter().find(|(right, _)| !right).map_or(Ok(()), |(_, field)| Err(Error::Time(field)))
    }

    /// Encodes the seven octets.
    ///
    /// # Errors
    /// [`Error::Time`] with the field that is out of range.
    pub fn encode(&self) -> Result<[u8; 7]> {
        self.check()?;
        // The sign is the top bit of the tens digit, which is in the lower semi-octet.
        let zone = swapped(self.quarters.unsigned_abs()) | if self.quarters < 0 { 0x08 } else { 0 };
        Ok([
            swapped((self.year % 100) as u8),
            swapped(self.month),
            swapped(self.day),
            swapped(self.hour),
            swapped(self.minute),
            swapped(self.second),
            zone,
        ])
    }

    /// Decodes the seven octets.
    ///
    /// # Errors
    /// [`Error::Time`] with the first field that is not decimal or is out of range.
    pub fn decode(octets: [u8; 7]) -> Result<Self> {
        let [year, month, day, hour, minute, second, zone] = octets;
        let read = |octet, field| decimal(octet).ok_or(Error::Time(field));
        let year = u16::from(read(year, "year")?);
        let quarters = read(zone & !0x08, "zone")?.cast_signed();
        let stamp = Self {
            year: year + if year < 90 { 2000 } else { 1900 },
            month: read(month, "month")?,
            day: read(day, "day")?,
            hour: read(hour, "hour")?,
            minute: read(minute, "minute")?,
            second: read(second, "second")?,
            quarters: if zone & 0x08 == 0 { quarters } else { -quarters },
        };
        stamp.check()?;
        Ok(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn san_diego_and_kathmandu() {
        // 2023-12-23 13:37:42 at UTC-8, 32 quarters.
        let west = TimeStamp::decode([0x32, 0x21, 0x32, 0x31, 0x73, 0x24, 0x2B]).unwrap();
        assert_eq!((west.year, west.month, west.day, west.quarters), (2023, 12, 23, -32));
        assert_eq!(west.unix_ms(), Some(1_703_367_462_000));
        assert_eq!(west.encode().unwrap(), [0x32, 0x21, 0x32, 0x31, 0x73, 0x24, 0x2B]);
        assert_eq!(TimeStamp::at(1_703_367_462_999, -32), Ok(west));
        let east = TimeStamp::at(1_703_367_462_000, 23).unwrap();
        assert_eq!((east.day, east.hour, east.minute, east.encode().unwrap()[6]), (24, 3, 22, 0x32));
        assert_eq!(east.unix_ms(), west.unix_ms());
    }

    #[test]
    fn every_time_zone_round_trips() {
        for quarters in -79..=79 {
            let stamp = TimeStamp::at(1_709_210_096_000, quarters).unwrap();
            assert_eq!(TimeStamp::decode(stamp.encode().unwrap()), Ok(stamp));
            assert_eq!(stamp.unix_ms(), Some(1_709_210_096_000));
        }
        assert_eq!(TimeStamp::at(1_700_000_000_000, 80), Err(Error::Time("zone")));
        assert_eq!(TimeStamp::at(1_700_000_000_000, i8::MIN), Err(Error::Time("zone")));
        // A zero offset may have either sign.
        assert_eq!(TimeStamp::decode([0, 0x10, 0x10, 0, 0, 0, 8]).unwrap().quarters, 0);
    }

    #[test]
    fn the_century_turns_at_ninety() {
        let year = |octet| TimeStamp::decode([octet, 0x10, 0x10, 0, 0, 0, 0]).unwrap().year;
        assert_eq!([0x00, 0x98, 0x09, 0x99].map(year), [2000, 2089, 1990, 1999]);
        assert_eq!(TimeStamp::at(3_786_912_000_000, 0), Err(Error::Time("year")), "2090");
        assert_eq!(TimeStamp::at(u64::MAX, 0), Err(Error::Time("year")));
        assert_eq!(TimeStamp::at(0, 0), Err(Error::Time("year")));
    }

    #[test]
    fn invalid_dates_are_rejected() {
        let decode = |year, month, day| TimeStamp::decode([year, month, day, 0, 0, 0, 0]).map(|_| ());
        assert_eq!(decode(0x42, 0x20, 0x92), Ok(()), "29 February 2024");
        assert_eq!(decode(0x32, 0x20, 0x92), Err(Error::Time("day")));
        assert_eq!(decode(0x00, 0x20, 0x92), Ok(()), "2000 is a leap year");
        assert_eq!(decode(0x42, 0x40, 0x13), Err(Error::Time("day")));
        assert_eq!(decode(0x42, 0x00, 0x10), Err(Error::Time("month")));
        assert_eq!(decode(0x42, 0x31, 0x10), Err(Error::Time("month")));
        assert_eq!(decode(0x42, 0x0A, 0x10), Err(Error::Time("month")));
        assert_eq!(TimeStamp::decode([0x42, 0x10, 0x10, 0x42, 0, 0, 0]), Err(Error::Time("hour")));
        assert_eq!(TimeStamp::decode([0x42, 0x10, 0x10, 0, 0x06, 0, 0]), Err(Error::Time("minute")));
        assert_eq!(TimeStamp::decode([0x42, 0x10, 0x10, 0, 0, 0, 0xA0]), Err(Error::Time("zone")));
        assert_eq!(TimeStamp::decode([0xFF; 7]), Err(Error::Time("year")));
    }
}
