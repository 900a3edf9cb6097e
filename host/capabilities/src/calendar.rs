//! Calendar periods: the hours, days and months of a time zone.

use crate::Error;
use ::calendar::{LAST_TIME, Zone};
use api::{CounterGrant, CounterWindow};
use std::fmt;

pub(crate) use ::calendar::CalendarPeriod;

/// Maximum length of the name of a durable counter, in octets.
const MAX_NAME_OCTETS: usize = 64;
/// Maximum number of durable counters of one binding.
const MAX_COUNTERS: usize = 32;
const HOUR: u64 = 3_600_000;

/// Checks the durable counters of one binding together.
///
/// # Errors
/// A name is empty, longer than 64 octets, contains control characters or occurs twice; a time zone is unknown; or there
/// are more than 32 counters.
pub fn check_counter_grants(grants: &[CounterGrant]) -> Result<(), Error> {
    if let Some(beyond) = grants.get(MAX_COUNTERS) {
        return Err(invalid(beyond, format!("a binding may name at most {MAX_COUNTERS} durable counters")));
    }
    for (at, grant) in grants.iter().enumerate() {
        if grant.name.is_empty() || grant.name.len() > MAX_NAME_OCTETS {
            return Err(invalid(grant, format!("a name has 1 to {MAX_NAME_OCTETS} octets")));
        }
        if grant.name.chars().any(char::is_control) {
            return Err(invalid(grant, "a name has no control characters"));
        }
        if grants.iter().take(at).any(|other| other.name == grant.name) {
            return Err(invalid(grant, "the name occurs twice; give each counter its own"));
        }
        Calendar::of(grant)?;
    }
    Ok(())
}

fn invalid(grant: &CounterGrant, what: impl Into<String>) -> Error {
    Error::CounterGrant { name: grant.name.clone(), what: what.into() }
}

/// A window in a time zone: divides time into periods.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calendar {
    window: CounterWindow,
    zone: Zone,
}

/// The form in stored rows: `day Europe/Berlin`.
impl fmt::Display for Calendar {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.window.name(), self.zone.name())
    }
}

impl Calendar {
    /// # Errors
    /// The time zone is unknown.
    pub(crate) fn of(grant: &CounterGrant) -> Result<Self, Error> {
        Self::new(grant.window, &grant.zone).ok_or_else(|| invalid(grant, Zone::unknown(&grant.zone)))
    }

    /// Parses the `Display` form of a [`Calendar`]; `None` if the zone is unknown or the text is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (window, zone) = text.split_once(' ')?;
        let (_, window) = CounterWindow::ALL.into_iter().find(|(name, _)| *name == window)?;
        Self::new(window, zone)
    }

    fn new(window: CounterWindow, zone: &str) -> Option<Self> {
        Some(Self { window, zone: Zone::find(zone)? })
    }

    /// The period that contains `time`. `time` and the period are in milliseconds since the Unix epoch.
    pub(crate) fn period(&self, time: u64) -> CalendarPeriod {
        if time >= LAST_TIME {
            return CalendarPeriod::BEYOND;
        }
        self.civil_period(time).unwrap_or(CalendarPeriod::BEYOND)
    }

    fn civil_period(&self, time: u64) -> Option<CalendarPeriod> {
        let local = self.zone.local(time)?;
        let (start, end) = match self.window {
            CounterWindow::Hour => {
                // An hour has 60 minutes even when the clocks change: an hour that the clocks show twice is two
                // periods.
                let minutes = u64::try_from(local.minute()).ok()?;
                let within = minutes * 60_000 + time % 60_000;
                let start = time.saturating_sub(within);
                return Some(CalendarPeriod { start, end: start.saturating_add(HOUR) });
            }
            CounterWindow::Day => return Some(self.zone.day(time)),
            CounterWindow::Month => {
                let first = local.date().first_of_month();
                (first, first.last_of_month().tomorrow().ok()?)
            }
        };
        Some(CalendarPeriod { start: self.zone.midnight(start)?, end: self.zone.midnight(end)? })
    }

    /// The current period at `time`, if `seen` was the current period before: see [`CalendarPeriod::current`].
    pub(crate) fn current_period(&self, seen: CalendarPeriod, time: u64) -> CalendarPeriod {
        seen.current(time, |time| self.period(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn calendar(window: CounterWindow, zone: &str) -> Calendar {
        Calendar::new(window, zone).unwrap()
    }

    fn at(text: &str) -> u64 {
        u64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_millisecond()).unwrap()
    }

    fn period(window: CounterWindow, zone: &str, time: &str) -> (String, String) {
        let found = calendar(window, zone).period(at(time));
        let text =
            |time: u64| jiff::Timestamp::from_millisecond(i64::try_from(time).unwrap()).unwrap().to_string();
        (text(found.start), text(found.end))
    }

    fn hours(window: CounterWindow, zone: &str, time: &str) -> u64 {
        let found = calendar(window, zone).period(at(time));
        (found.end - found.start) / HOUR
    }

    #[test]
    fn periods_follow_the_zone_clock() {
        let is = |start: &str, end: &str| (start.to_owned(), end.to_owned());
        use CounterWindow::{Day, Hour, Month};
        assert_eq!(
            period(Day, "UTC", "2026-11-24T23:59:59.999Z"),
            is("2026-11-24T00:00:00Z", "2026-11-25T00:00:00Z")
        );
        assert_eq!(
            period(Day, "Europe/Berlin", "2026-11-24T23:00:00Z"),
            is("2026-11-24T23:00:00Z", "2026-11-25T23:00:00Z")
        );
        assert_eq!(
            period(Month, "Europe/Berlin", "2026-10-31T23:30:00Z"),
            is("2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z")
        );
        assert_eq!(
            period(Month, "Asia/Shanghai", "2026-12-31T15:59:59Z"),
            is("2026-11-30T16:00:00Z", "2026-12-31T16:00:00Z")
        );
        // Half an hour off UTC.
        assert_eq!(
            period(Hour, "Asia/Kolkata", "2026-11-24T10:29:59Z"),
            is("2026-11-24T09:30:00Z", "2026-11-24T10:30:00Z")
        );
    }

    #[test]
    fn days_on_which_the_clocks_change_have_23_or_25_hours() {
        use CounterWindow::{Day, Hour, Month};
        assert_eq!(hours(Day, "Europe/Berlin", "2026-03-29T12:00:00Z"), 23);
        assert_eq!(hours(Day, "Europe/Berlin", "2026-10-25T12:00:00Z"), 25);
        assert_eq!(hours(Month, "Europe/Berlin", "2026-03-10T12:00:00Z"), 31 * 24 - 1);
        // The hour that the clocks show twice is two hourly periods.
        for time in ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"] {
            assert_eq!(hours(Hour, "Europe/Berlin", time), 1);
        }
        // A day without midnight starts when the clocks are set forward.
        assert_eq!(period(Day, "America/Sao_Paulo", "2015-10-18T12:00:00Z").0, "2015-10-18T03:00:00Z");
        assert_eq!(hours(Day, "America/Sao_Paulo", "2015-10-18T12:00:00Z"), 23);
    }

    #[test]
    fn a_clock_that_goes_back_over_a_boundary_stays_in_the_period() {
        let days = calendar(CounterWindow::Day, "Europe/Berlin");
        let seen = days.period(at("2026-11-24T23:00:00Z"));
        assert_eq!(days.current_period(seen, at("2026-11-24T22:59:59.999Z")), seen);
        assert_eq!(days.current_period(seen, at("2026-11-23T23:00:00Z")), seen);
        let earlier = at("2026-11-23T22:59:59Z");
        assert_eq!(
            days.current_period(seen, earlier),
            days.period(earlier),
            "more than a day: it was wrong before"
        );
        let later = at("2026-11-26T00:00:00Z");
        assert_eq!(days.current_period(seen, later), days.period(later));
    }

    #[test]
    fn a_stored_calendar_is_read_back() {
        let written = calendar(CounterWindow::Month, "europe/berlin").to_string();
        assert_eq!(written, "month Europe/Berlin");
        assert_eq!(Calendar::parse(&written), Some(calendar(CounterWindow::Month, "Europe/Berlin")));
        for other in ["", "day", "week UTC", "day Mars/Olympus", "day Etc/Unknown"] {
            assert_eq!(Calendar::parse(other), None, "{other}");
        }
    }

    #[test]
    fn invalid_grants_are_refused() {
        let grant = |name: &str, zone: &str| CounterGrant {
            name: name.into(),
            window: CounterWindow::Day,
            zone: zone.into(),
        };
        let refusal = |grants: &[CounterGrant]| check_counter_grants(grants).unwrap_err().to_string();
        check_counter_grants(&[grant("a", "UTC"), grant("b", "Asia/Shanghai")]).unwrap();
        assert_eq!(
            refusal(&[grant("a", "Europe/Bonn")]),
            "counter \"a\": the time zone \"Europe/Bonn\" is unknown; a zone is a name of the IANA database, such as \
             Europe/Berlin or UTC"
        );
        assert_eq!(
            refusal(&[grant("a", "UTC"), grant("a", "Asia/Shanghai")]),
            "counter \"a\": the name occurs twice; give each counter its own"
        );
        assert_eq!(refusal(&[grant("", "UTC")]), "counter \"\": a name has 1 to 64 octets");
        assert_eq!(refusal(&[grant("a\n", "UTC")]), "counter \"a\\n\": a name has no control characters");
        let many: Vec<_> = (0..33).map(|n| grant(&n.to_string(), "UTC")).collect();
        assert_eq!(refusal(&many), "counter \"32\": a binding may name at most 32 durable counters");
    }

    proptest! {
        #[test]
        fn periods_follow_each_other_without_a_gap(
            time in prop_oneof![0_u64..4_000_000_000_000, any::<u64>()],
            window in 0_usize..3,
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Pacific/Apia"]),
        ) {
            let calendar = calendar(CounterWindow::ALL[window].1, zone);
            let period = calendar.period(time);
            prop_assert!(period.contains(time) || time == u64::MAX, "{:?}", period);
            if period.end < LAST_TIME {
                prop_assert_eq!(calendar.period(period.end).start, period.end);
                prop_assert_eq!(calendar.period(period.end - 1), period);
            }
            prop_assert_eq!(calendar.current_period(CalendarPeriod::default(), time), period);
        }
    }
}
