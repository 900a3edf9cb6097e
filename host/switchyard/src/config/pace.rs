//! Pace buckets and send windows, which accounts and peers share by name.

use calendar::{WeeklyWindow, WeeklyWindowError, Zone};
use configuration::{KeyFormat, KeyItem, Keys, Section, Shape, Word, Words};
use engine::{PaceBucketSettings, PaceNames, PacePeriod, SendWindowSettings};
use model::{PaceUnit, parse_minute_of_day};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of pace buckets and of send windows per account or peer.
const MAX_BUCKETS: usize = 8;
const MAX_WINDOWS: usize = 4;
/// Maximum length of a name, in octets.
const MAX_NAME: usize = 64;
/// Maximum time in which a bucket fills.
const MAX_PERIOD: Duration = Duration::from_secs(31 * 86_400);

/// `[[pace-bucket]]`: a limit that accounts and peers share. Each submit attempt takes a token from each pace bucket of
/// its message. A message waits in its queue while one of its buckets has no token.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once; tokens taken today still count", check = Self::complete)]
pub(crate) struct PaceBucketKeys {
    /// The name: 1 to 64 characters of a-z, 0-9, dot, hyphen and underscore.
    #[key(example = "campaign-c1", check = check_name)]
    pub(crate) name: String,
    /// Number of messages or segments per period; also the capacity of the bucket.
    #[key(example = 2000)]
    amount: u64,
    /// The time in which the bucket fills, at a constant rate; it is empty after a start. Without `per`, the bucket is
    /// filled at the beginning of each day.
    #[key(default_as = "a day in `zone`")]
    per: Option<Duration>,
    /// IANA time zone of the days.
    #[key(default = "UTC")]
    zone: String,
    /// The unit of the tokens: submit attempts of messages, or their segments.
    #[key(default = "messages")]
    counts: BucketUnit,
    #[key(skip)]
    pub(crate) settings: Option<PaceBucketSettings>,
}

impl PaceBucketKeys {
    fn complete(&mut self, section: &Section<'_>) {
        if self.amount == 0 && section.has("amount") {
            section.error("amount", "is 0; the least amount is 1");
        }
        let per = match self.per {
            Some(_) if section.has("zone") => {
                section.error("zone", "belongs to a bucket of days; leave out `per` or `zone`");
                return;
            }
            Some(per) if per.is_zero() || per > MAX_PERIOD => {
                section.error("per", "must be between 1ms and 31d");
                return;
            }
            Some(per) => PacePeriod::Time(per),
            None => match zone(section, &self.zone) {
                Some(zone) => PacePeriod::Day(zone),
                None => return,
            },
        };
        self.settings = Some(PaceBucketSettings {
            name: self.name.as_str().into(),
            amount: self.amount.max(1),
            per,
            counts: self.counts.unit(),
        });
    }
}

/// Unit of a pace bucket's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
pub(crate) enum BucketUnit {
    /// Submit attempts.
    Messages,
    /// Segments.
    Segments,
}

impl BucketUnit {
    fn unit(self) -> PaceUnit {
        match self {
            Self::Messages => PaceUnit::Messages,
            Self::Segments => PaceUnit::Segments,
        }
    }
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
pub(crate) enum Weekday {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl KeyItem for Weekday {
    fn read_list(section: &Section<'_>, key: &'static str) -> Option<Vec<Self>> {
        section.key::<Vec<Self>>(&Words(Self::WORDS), key)
    }

    fn list_shape() -> Shape {
        KeyFormat::<Vec<Self>>::shape(&Words(Self::WORDS))
    }
}

/// `[[send-window]]`: hours in which messages may be sent. A message with several windows may be sent while one of
/// them is open.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once", check = Self::complete)]
pub(crate) struct SendWindowKeys {
    /// The name: 1 to 64 characters of a-z, 0-9, dot, hyphen and underscore.
    #[key(example = "daytime", check = check_name)]
    pub(crate) name: String,
    /// IANA time zone of the hours.
    #[key(example = "America/New_York")]
    zone: String,
    /// The days on which the window opens.
    #[key(default_as = "all days")]
    days: Vec<Weekday>,
    /// The time of opening, in the local time of the zone.
    #[key(example = "08:00")]
    from: String,
    /// The time of closing, at most 24:00. A window whose `to` is before its `from` stays open until the next day.
    #[key(example = "21:00")]
    to: String,
    #[key(skip)]
    pub(crate) settings: Option<SendWindowSettings>,
}

impl SendWindowKeys {
    fn complete(&mut self, section: &Section<'_>) {
        let minutes = |key, text: &str| {
            let minutes = parse_minute_of_day(text);
            if minutes.is_none() && section.has(key) {
                section.error(key, format!("is {text:?}; write a time of day such as \"08:00\""));
            }
            minutes
        };
        let (from, to) = (minutes("from", &self.from), minutes("to", &self.to));
        // A missing zone is already reported.
        let zone = if self.zone.is_empty() { None } else { zone(section, &self.zone) };
        let (Some(zone), Some(from), Some(to)) = (zone, from, to) else { return };
        let mut days = [self.days.is_empty(); 7];
        for day in &self.days {
            if let Some(open) = days.get_mut(*day as usize) {
                *open = true;
            }
        }
        match WeeklyWindow::new(zone, days, from, to) {
            Ok(window) => {
                self.settings = Some(SendWindowSettings { name: self.name.as_str().into(), window });
            }
            Err(WeeklyWindowError::Empty) => {
                section.error("to", "is also `from`; the window would never open");
            }
            Err(WeeklyWindowError::NoMinute) => section.error("from", "is 24:00; write \"00:00\""),
            Err(WeeklyWindowError::NoDay) => section.error("days", "names no day"),
        }
    }
}

fn zone(section: &Section<'_>, name: &str) -> Option<Zone> {
    let zone = Zone::find(name);
    if zone.is_none() {
        section.error("zone", Zone::unknown(name));
    }
    zone
}

pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_valid =
        |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b".-_".contains(&octet);
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_valid) {
        return Ok(());
    }
    Err(format!("is {name:?}; a name has 1 to {MAX_NAME} of a-z, 0-9, dot, hyphen and underscore"))
}

/// The names of buckets and windows of an account or a peer.
pub(super) fn names(buckets: &[String], windows: &[String]) -> PaceNames {
    let shared = |names: &[String]| names.iter().map(|name| Arc::from(name.as_str())).collect();
    PaceNames { buckets: shared(buckets), windows: shared(windows) }
}

/// Checks that the buckets and windows of an account or a peer exist.
pub(super) fn check_references(section: &Section<'_>, buckets: &[&str], windows: &[&str]) {
    let lists = [
        ("pace-buckets", "[[pace-bucket]]", buckets, MAX_BUCKETS),
        ("send-windows", "[[send-window]]", windows, MAX_WINDOWS),
    ];
    for (key, kind, known, most) in lists {
        let names = if section.has(key) { section.texts(key).unwrap_or_default() } else { Vec::new() };
        if names.len() > most {
            section.error(key, format!("has {} names; at most {most} are possible", names.len()));
        }
        for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
            let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            section.error(key, format!("{name:?} is not a {kind}; known are: {list}"));
        }
    }
}
