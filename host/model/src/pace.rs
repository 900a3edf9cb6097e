//! Pace buckets and send windows that the decision of a plugin names.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::time::Duration;

/// Minutes of a day.
const DAY: u16 = 1440;

/// A pace bucket that a decision names. In a file: `name`, then `amount`, `per-ms` or `zone`, and `counts` if the decision
/// defines it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "BucketForm", into = "BucketForm")]
pub struct PaceBucketUse {
    /// Its name: as for [`crate::MessageChanges::is_attribute_name`].
    pub name: Box<str>,
    /// Its definition by the decision; `None`: the configuration defines it. The configuration takes precedence.
    pub defined: Option<PaceBucketDefinition>,
}

/// The definition of a pace bucket by a plugin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PaceBucketDefinition {
    /// Messages or segments in its period, and its capacity: 1 to [`PaceBucketDefinition::MAX_AMOUNT`].
    pub amount: u64,
    /// Its period.
    pub per: DefinedPeriod,
    /// Its unit.
    pub counts: PaceUnit,
}

impl PaceBucketDefinition {
    /// The largest amount.
    pub const MAX_AMOUNT: u64 = 1_000_000_000_000;
    /// The longest time in which a bucket fills.
    pub const MAX_TIME: Duration = Duration::from_secs(31 * 86_400);
}

/// The period of a pace bucket that a plugin defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefinedPeriod {
    /// It fills evenly, in 1 ms to [`PaceBucketDefinition::MAX_TIME`].
    Time(Duration),
    /// It is full at the beginning of each day in this time zone: a name of the IANA database.
    Day(Box<str>),
}

/// The unit of a pace bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum PaceUnit {
    /// Submit attempts of messages.
    #[default]
    Messages = 0,
    /// The segments of messages on the air: see [`crate::Text::segment_count`].
    Segments = 1,
}

impl PaceUnit {
    /// The unit with this number.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        [Self::Messages, Self::Segments].into_iter().find(|unit| *unit as u8 == octet)
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Segments => "segments",
        }
    }
}

/// A send window that a decision names. In a file: `name`, then `zone` and `hours` if the decision defines it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "WindowForm", into = "WindowForm")]
pub struct SendWindowUse {
    /// Its name: as for [`crate::MessageChanges::is_attribute_name`].
    pub name: Box<str>,
    /// Its definition by the decision; `None`: the configuration defines it. The configuration takes precedence.
    pub defined: Option<SendWindowDefinition>,
}

/// The definition of a send window by a plugin: it is open in each of its hours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendWindowDefinition {
    /// The time zone of the hours: a name of the IANA database.
    pub zone: Box<str>,
    /// 1 to [`SendWindowDefinition::MAX_HOURS`].
    pub hours: Vec<SendHours>,
}

impl SendWindowDefinition {
    /// The largest number of hours of a window.
    pub const MAX_HOURS: usize = 14;
}

/// Hours on some days of the week. In a file: `days` of three letters each, every day if it is omitted; `opens` and `closes`
/// as `08:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "HoursForm", into = "HoursForm")]
pub struct SendHours {
    /// The days on which the hours begin, from Monday.
    pub days: [bool; 7],
    /// Minute of the day at which the hours begin, below 1440.
    pub opens: u16,
    /// Minute of the day at which the hours end, at most 1440. If it is before `opens`, the hours end on the next day.
    pub closes: u16,
}

/// The minutes of `HH:MM`, at most 24:00.
#[must_use]
pub fn parse_minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let digits = |text: &str| text.len() == 2 && text.bytes().all(|octet| octet.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY).then_some(all)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct BucketForm {
    name: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    amount: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    per_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counts: Option<PaceUnit>,
}

impl TryFrom<BucketForm> for PaceBucketUse {
    type Error = String;

    fn try_from(form: BucketForm) -> Result<Self, String> {
        let BucketForm { name, amount, per_ms, zone, counts } = form;
        let per = match (per_ms, zone) {
            (None, None) => None,
            (Some(ms), None) => Some(DefinedPeriod::Time(Duration::from_millis(ms))),
            (None, Some(zone)) => Some(DefinedPeriod::Day(zone)),
            (Some(_), Some(_)) => return Err(format!("the pace bucket {name:?} has `per-ms` and `zone`")),
        };
        let defined = match (amount, per) {
            (None, None) if counts.is_none() => None,
            (Some(amount), Some(per)) => {
                Some(PaceBucketDefinition { amount, per, counts: counts.unwrap_or_default() })
            }
            _ => {
                return Err(format!(
                    "the pace bucket {name:?} needs `amount`, and `per-ms` or `zone`, or none of them"
                ));
            }
        };
        Ok(Self { name, defined })
    }
}

impl From<PaceBucketUse> for BucketForm {
    fn from(bucket: PaceBucketUse) -> Self {
        let PaceBucketUse { name, defined } = bucket;
        let Some(PaceBucketDefinition { amount, per, counts }) = defined else {
            return Self { name, amount: None, per_ms: None, zone: None, counts: None };
        };
        let (per_ms, zone) = match per {
            DefinedPeriod::Time(time) => (Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)), None),
            DefinedPeriod::Day(zone) => (None, Some(zone)),
        };
        let counts = Some(counts).filter(|counts| *counts != PaceUnit::Messages);
        Self { name, amount: Some(amount), per_ms, zone, counts }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WindowForm {
    name: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hours: Vec<SendHours>,
}

impl TryFrom<WindowForm> for SendWindowUse {
    type Error = String;

    fn try_from(form: WindowForm) -> Result<Self, String> {
        let WindowForm { name, zone, hours } = form;
        let defined = match (zone, hours.is_empty()) {
            (None, true) => None,
            (Some(zone), false) => Some(SendWindowDefinition { zone, hours }),
            _ => return Err(format!("the send window {name:?} needs `zone` and `hours`, or none of them")),
        };
        Ok(Self { name, defined })
    }
}

impl From<SendWindowUse> for WindowForm {
    fn from(window: SendWindowUse) -> Self {
        let SendWindowUse { name, defined } = window;
        match defined {
            Some(SendWindowDefinition { zone, hours }) => Self { name, zone: Some(zone), hours },
            None => Self { name, zone: None, hours: Vec::new() },
        }
    }
}

const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HoursForm {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    days: Vec<String>,
    opens: String,
    closes: String,
}

impl TryFrom<HoursForm> for SendHours {
    type Error = String;

    fn try_from(form: HoursForm) -> Result<Self, String> {
        let mut days = [form.days.is_empty(); 7];
        for name in &form.days {
            let (_, open) = DAY_NAMES
                .iter()
                .zip(&mut days)
                .find(|(known, _)| *known == name)
                .ok_or_else(|| format!("{name:?} is not a day; the days are {}", DAY_NAMES.join(", ")))?;
            *open = true;
        }
        let minute = |text: &str| {
            parse_minute_of_day(text)
                .ok_or_else(|| format!("{text:?} is not a time of day; write it as \"08:00\""))
        };
        Ok(Self { days, opens: minute(&form.opens)?, closes: minute(&form.closes)? })
    }
}

impl From<SendHours> for HoursForm {
    fn from(hours: SendHours) -> Self {
        let named = |days: [bool; 7]| {
            let open = DAY_NAMES.iter().zip(days).filter(|(_, open)| *open);
            open.map(|(name, _)| (*name).to_owned()).collect()
        };
        let minute = |minute: u16| {
            let mut text = String::new();
            let _ = write!(text, "{:02}:{:02}", minute / 60, minute % 60);
            text
        };
        Self {
            days: if hours.days == [true; 7] { Vec::new() } else { named(hours.days) },
            opens: minute(hours.opens),
            closes: minute(hours.closes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_of_a_day() {
        for (text, minute) in [("00:00", 0), ("08:30", 510), ("24:00", 1440)] {
            assert_eq!(parse_minute_of_day(text), Some(minute), "{text}");
        }
        for wrong in ["", "8:00", "08:60", "24:01", "08:00:00", "+8:00", "0800"] {
            assert_eq!(parse_minute_of_day(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_definition_is_whole_or_missing() {
        let bucket = |form: BucketForm| PaceBucketUse::try_from(form);
        let form = |amount, per_ms, zone: Option<&str>| BucketForm {
            name: "c1".into(),
            amount,
            per_ms,
            zone: zone.map(Into::into),
            counts: None,
        };
        assert_eq!(bucket(form(None, None, None)).unwrap().defined, None);
        let defined = bucket(form(Some(5), None, Some("UTC"))).unwrap().defined.unwrap();
        assert_eq!((defined.amount, defined.per), (5, DefinedPeriod::Day("UTC".into())));
        for wrong in
            [form(Some(5), None, None), form(None, Some(1), None), form(Some(5), Some(1), Some("UTC"))]
        {
            assert!(bucket(wrong).is_err());
        }
        let window = |zone: Option<&str>| WindowForm {
            name: "day".into(),
            zone: zone.map(Into::into),
            hours: Vec::new(),
        };
        assert_eq!(SendWindowUse::try_from(window(None)).unwrap().defined, None);
        assert!(SendWindowUse::try_from(window(Some("UTC"))).is_err());
    }

    #[test]
    fn hours_are_read_as_they_are_written() {
        let weekdays = [true, true, true, true, true, false, false];
        for hours in [
            SendHours { days: weekdays, opens: 480, closes: 1260 },
            SendHours { days: [true; 7], opens: 0, closes: 1440 },
        ] {
            assert_eq!(SendHours::try_from(HoursForm::from(hours)), Ok(hours));
        }
        let wrong =
            HoursForm { days: vec!["monday".to_owned()], opens: "08:00".into(), closes: "09:00".into() };
        assert_eq!(
            SendHours::try_from(wrong).unwrap_err(),
            "\"monday\" is not a day; the days are mon, tue, wed, thu, fri, sat, sun"
        );
    }
}
