use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{ZonedDateTime, civil};

/// The last millisecond that jiff can convert in every zone (year 9999). All later times belong to one period.
pub const LAST_TIME: u64 = 253_402_207_200_000;

/// A half-open range of time: milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CalendarPeriod {
    /// The first millisecond.
    pub start: u64,
    /// The end, exclusive.
    pub end: u64,
}

impl CalendarPeriod {
    /// The period of all times beyond the calendar.
    pub const BEYOND: Self = Self { start: LAST_TIME, end: u64::MAX };

    /// Whether the time is in the period.
    #[must_use]
    pub fn contains(self, time: u64) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// The current period at `time`, if `self` was the current period before. `period_of` returns the period of a time.
    ///
    /// If the clock goes back over the start of `self`, `self` stays current, so that a quota is not granted twice. If
    /// the clock goes back by more than a whole period, it was wrong before: the period of `time` counts, because the
    /// start of `self` may be years away.
    #[must_use]
    pub fn current(self, time: u64, period_of: impl Fn(u64) -> Self) -> Self {
        if self.contains(time) {
            return self;
        }
        let own = period_of(time);
        if own.start < self.start && period_of(own.end).start >= self.start { self } else { own }
    }
}

/// A time zone of the IANA database.
#[derive(Debug, Clone)]
pub struct Zone {
    zone: TimeZone,
    /// As spelled in the database.
    name: Box<str>,
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Zone {
    /// The zone with this name, such as `Europe/Berlin`, in any case; `None` if there is none.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let zone = TimeZoneDatabase::bundled().get(name).ok().filter(|zone| !zone.is_unknown())?;
        let name = zone.iana_name()?.into();
        Some(Self { zone, name })
    }

    /// The error text for a name that [`Zone::find`] does not find.
    #[must_use]
    pub fn unknown(name: &str) -> String {
        format!(
            "the time zone {name:?} is unknown; a zone is a name of the IANA database, such as Europe/Berlin or UTC"
        )
    }

    /// The name as spelled in the database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The local time in the zone; `None` beyond the year 9999.
    #[must_use]
    pub fn local(&self, time: u64) -> Option<ZonedDateTime> {
        let instant = jiff::Timestamp::from_millisecond(i64::try_from(time).ok()?).ok()?;
        Some(instant.to_zoned_datetime(self.zone.clone()))
    }

    /// The first moment of a date. On a date without midnight, the moment at which the clocks are set forward.
    #[must_use]
    pub fn midnight(&self, date: civil::Date) -> Option<u64> {
        let first: ZonedDateTime = date.to_zoned_datetime(self.zone.clone()).ok()?;
        Some(u64::try_from(first.timestamp().as_millisecond()).unwrap_or(0))
    }

    /// The calendar day of a time: 23 to 25 hours when the clocks change.
    #[must_use]
    pub fn day(&self, time: u64) -> CalendarPeriod {
        if time >= LAST_TIME {
            return CalendarPeriod::BEYOND;
        }
        let day = || {
            let date = self.local(time)?.date();
            Some(CalendarPeriod { start: self.midnight(date)?, end: self.midnight(date.tomorrow().ok()?)? })
        };
        day().unwrap_or(CalendarPeriod::BEYOND)
    }

    pub(crate) fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
}
