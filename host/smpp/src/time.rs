//! SMPP times: `YYMMDDhhmmsstnnp` (34 §7.1.1).

use model::Timestamp;

/// The time field cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an SMPP time (YYMMDDhhmmsstnnp, p being +, - or R)")]
pub struct TimeError;

fn number(digits: &[u8]) -> Result<u64, TimeError> {
    digits.iter().try_fold(0_u64, |sum, digit| {
        if digit.is_ascii_digit() { Ok(sum * 10 + u64::from(digit - b'0')) } else { Err(TimeError) }
    })
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a day number.
fn date_from_days(day_number: i64) -> (i64, i64, i64) {
    let z = day_number + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * mp + 2) / 5 + 1)
}

/// Seconds from the epoch to a date and time of `YYMMDDhhmm[ss]` digits; each field must be in its range.
fn absolute(digits: &[u8]) -> Result<i64, TimeError> {
    let field = |at: usize| digits.get(at..at + 2).map_or(Ok(0), number).map(u64::cast_signed);
    let (year, month, day, hour, minute, second) =
        (field(0)?, field(2)?, field(4)?, field(6)?, field(8)?, field(10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return Err(TimeError);
    }
    let day_number = days_from_date(2000 + year, month, day);
    if date_from_days(day_number) != (2000 + year, month, day) {
        return Err(TimeError);
    }
    Ok(day_number * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Parses a schedule or validity field: `None` if it is empty. Twelve digits without zone are UTC; 13 to 15 are read
/// as far as they go.
///
/// # Errors
/// If it is neither empty nor a time. A relative time of zero is not an error.
pub fn parse(field: &[u8], now: Timestamp) -> Result<Option<Timestamp>, TimeError> {
    if field.is_empty() {
        return Ok(None);
    }
    if !(12..=16).contains(&field.len()) {
        return Err(TimeError);
    }
    let (digits, rest) = field.split_at(12);
    if rest.last() == Some(&b'R') {
        let part = |at: usize| number(digits.get(at..at + 2).unwrap_or_default());
        let (years, months, days_from_date) = (part(0)?, part(2)?, part(4)?);
        let (hours, minutes, seconds) = (part(6)?, part(8)?, part(10)?);
        number(rest.get(..rest.len() - 1).unwrap_or_default())?;
        let days_from_date = years * 365 + months * 30 + days_from_date;
        let seconds = days_from_date * 86_400 + hours * 3600 + minutes * 60 + seconds;
        return Ok(Some(Timestamp(now.0 + seconds * 1000)));
    }
    let local = absolute(digits)?;
    let tenths = match rest.first() {
        Some(digit) if digit.is_ascii_digit() => u64::from(digit - b'0'),
        None => 0,
        Some(_) => return Err(TimeError),
    };
    let quarters = number(rest.get(1..3.min(rest.len())).unwrap_or_default())?.cast_signed();
    if quarters > 48 {
        return Err(TimeError);
    }
    let offset = match rest.get(3) {
        None => 0,
        Some(b'+') => quarters * 900,
        Some(b'-') => -quarters * 900,
        Some(_) => return Err(TimeError),
    };
    let utc = u64::try_from(local - offset).map_err(|_| TimeError)?;
    Ok(Some(Timestamp(utc * 1000 + tenths * 100)))
}

fn fields(at: Timestamp) -> (i64, i64, i64, u64, u64, u64) {
    let seconds = at.0 / 1000;
    let (year, month, day) = date_from_days((seconds / 86_400).cast_signed());
    let rest = seconds % 86_400;
    (year.rem_euclid(100), month, day, rest / 3600, rest / 60 % 60, rest % 60)
}

/// Formats an absolute time in UTC, 16 characters.
#[must_use]
pub fn format(at: Timestamp) -> String {
    let (year, month, day, hour, minute, second) = fields(at);
    let tenths = at.0 % 1000 / 100;
    format!("{year:02}{month:02}{day:02}{hour:02}{minute:02}{second:02}{tenths}00+")
}

/// Formats the ten digits of a receipt's dates (34 appendix B), in UTC.
#[must_use]
pub fn format_receipt(at: Timestamp) -> String {
    let (year, month, day, hour, minute, _) = fields(at);
    format!("{year:02}{month:02}{day:02}{hour:02}{minute:02}")
}

/// Parses a receipt's date: 10 or 12 digits, or an SMPP time.
#[must_use]
pub fn parse_receipt(field: &[u8]) -> Option<Timestamp> {
    match field.len() {
        10 | 12 => u64::try_from(absolute(field).ok()?).ok().map(|seconds| Timestamp(seconds * 1000)),
        15 | 16 => parse(field, Timestamp(0)).ok().flatten(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    #[test]
    fn check_081_082_times_are_parsed() {
        assert_eq!(parse(b"", NOW), Ok(None));
        assert_eq!(parse(b"000000010000000R", NOW), Ok(Some(Timestamp(NOW.0 + 3_600_000))));
        let end = parse(b"261231235959032+", NOW).unwrap().unwrap();
        assert_eq!(format(end), "261231155959000+");
        let west = parse(b"261231235959032-", NOW).unwrap().unwrap();
        assert_eq!(format(west), "270101075959000+");
        assert_eq!(parse(b"abc", NOW), Err(TimeError));
        assert_eq!(parse(b"00000001000000000000", NOW), Err(TimeError));
        assert_eq!(parse(b"260231120000000+", NOW), Err(TimeError), "there is no 31 February");
        assert_eq!(parse(b"261231235959049+", NOW), Err(TimeError));
        assert_eq!(parse(b"26123123595903x+", NOW), Err(TimeError));
        assert!(parse(b"261231235959", NOW).is_ok());
    }

    #[test]
    fn dates_round_trip() {
        for day in (0..36_000).step_by(13) {
            let at = Timestamp((day + 10_957) * 86_400_000 + 45_296_000);
            assert_eq!(parse(format(at).as_bytes(), NOW), Ok(Some(at)));
            assert_eq!(parse_receipt(format_receipt(at).as_bytes()), Some(Timestamp(at.0 / 60_000 * 60_000)));
        }
    }
}
