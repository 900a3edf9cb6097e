use crate::Zone;
use jiff::civil;

/// Minutes of a day on which the clocks do not change.
pub const MINUTES_PER_DAY: u16 = 1440;

/// Days searched for the next opening: a week, and the days around it that a zone may skip.
const SEARCHED_DAYS: i64 = 9;

/// Hours on some days of the week, by the clocks of a time zone.
///
/// It is open while the local time is within the hours. If the clocks skip an hour, the window lacks it; if the clocks show
/// an hour twice, the window is open twice. Hours that cross midnight belong to the day on which they begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeeklyWindow {
    zone: Zone,
    /// The days on which it opens, from Monday.
    days: [bool; 7],
    from: u16,
    to: u16,
}

/// An invalid window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeeklyWindowError {
    /// No day is named.
    NoDay,
    /// `from` is not below 1440, or `to` is above it.
    NoMinute,
    /// `from` and `to` are equal.
    Empty,
}

impl WeeklyWindow {
    /// A window on these days, from Monday, between two minutes of the day: `from` is below 1440, `to` exclusive and at
    /// most 1440. It crosses midnight if `to` is before `from`.
    ///
    /// # Errors
    /// No day is named, a minute is not one of a day, or both are equal.
    pub fn new(zone: Zone, days: [bool; 7], from: u16, to: u16) -> Result<Self, WeeklyWindowError> {
        if !days.contains(&true) {
            return Err(WeeklyWindowError::NoDay);
        }
        if from >= MINUTES_PER_DAY || to > MINUTES_PER_DAY {
            return Err(WeeklyWindowError::NoMinute);
        }
        if from == to {
            return Err(WeeklyWindowError::Empty);
        }
        Ok(Self { zone, days, from, to })
    }

    /// Whether it is open. A time beyond the year 9999 is in every window.
    #[must_use]
    pub fn is_open(&self, time: u64) -> bool {
        let Some(local) = self.zone.local(time) else { return true };
        let minute = local.hour().unsigned_abs() as u16 * 60 + local.minute().unsigned_abs() as u16;
        let today = usize::from(local.weekday().to_monday_zero_offset().unsigned_abs());
        let open_on = |day: usize| self.days.get(day % 7).copied().unwrap_or(false);
        if self.from < self.to {
            return open_on(today) && (self.from..self.to).contains(&minute);
        }
        open_on(today) && minute >= self.from || open_on(today + 6) && minute < self.to
    }

    /// The next time at which it is open: `time` itself if it is open then, otherwise the moment at which it opens.
    #[must_use]
    pub fn next_open(&self, time: u64) -> u64 {
        if self.is_open(time) {
            return time;
        }
        let opening = self.candidates(time).into_iter().filter(|at| *at > time && self.is_open(*at)).min();
        // No candidate: only beyond the calendar.
        opening.unwrap_or(u64::MAX)
    }

    /// The moments at which it may open: when the clocks show `from`, and when they change.
    fn candidates(&self, time: u64) -> Vec<u64> {
        let mut moments: Vec<jiff::Timestamp> = Vec::new();
        let Some(local) = self.zone.local(time) else { return Vec::new() };
        let zone = self.zone.time_zone();
        let (hour, minute) = ((self.from / 60) as i8, (self.from % 60) as i8);
        let Ok(from) = civil::Time::new(hour, minute, 0, 0) else { return Vec::new() };
        let mut date = local.date();
        for _ in 0..SEARCHED_DAYS {
            let shown = zone.to_ambiguous_timestamp(date.to_datetime(from));
            moments.extend([shown.earlier(), shown.later()].into_iter().flatten());
            let Ok(tomorrow) = date.tomorrow() else { break };
            date = tomorrow;
        }
        let last = moments.iter().max().copied();
        let changes = zone.following(local.timestamp()).map(|change| change.timestamp());
        moments.extend(changes.take_while(|at| last.is_none_or(|last| *at <= last)).take(8));
        moments.into_iter().filter_map(|at| u64::try_from(at.as_millisecond()).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [bool; 7] = [true; 7];
    const WEEKDAYS: [bool; 7] = [true, true, true, true, true, false, false];

    fn window(zone: &str, days: [bool; 7], from: u16, to: u16) -> WeeklyWindow {
        WeeklyWindow::new(Zone::find(zone).unwrap(), days, from, to).unwrap()
    }

    fn at(text: &str) -> u64 {
        u64::try_from(text.parse::<jiff::Timestamp>().unwrap().as_millisecond()).unwrap()
    }

    #[test]
    fn hours_follow_the_zone_clock() {
        let day = window("America/New_York", WEEKDAYS, 8 * 60, 21 * 60);
        // Friday 2026-11-27, 20:59:59 in New York.
        assert!(day.is_open(at("2026-11-28T01:59:59Z")));
        assert!(!day.is_open(at("2026-11-28T02:00:00Z")));
        assert_eq!(day.next_open(at("2026-11-28T02:00:00Z")), at("2026-11-30T13:00:00Z"), "Monday");
        assert_eq!(day.next_open(at("2026-11-30T13:00:01Z")), at("2026-11-30T13:00:01Z"));
    }

    #[test]
    fn hours_across_midnight_belong_to_the_day_on_which_they_begin() {
        let friday = [false, false, false, false, true, false, false];
        let night = window("Europe/Berlin", friday, 22 * 60, 6 * 60);
        assert!(!night.is_open(at("2026-11-27T20:59:00Z")));
        assert!(night.is_open(at("2026-11-27T21:00:00Z")));
        assert!(night.is_open(at("2026-11-28T04:59:00Z")), "Saturday morning");
        assert!(!night.is_open(at("2026-11-28T05:00:00Z")));
        assert!(!night.is_open(at("2026-11-28T21:00:00Z")), "Saturday evening");
        assert_eq!(night.next_open(at("2026-11-28T05:00:00Z")), at("2026-12-04T21:00:00Z"));
    }

    #[test]
    fn windows_follow_both_changes_of_the_clocks() {
        // On 29 March 2026 the clocks go from 02:00 to 03:00, on 25 October from 03:00 back to 02:00.
        let skipped = window("Europe/Berlin", ALL, 2 * 60 + 30, 5 * 60);
        assert_eq!(skipped.next_open(at("2026-03-28T22:00:00Z")), at("2026-03-29T01:00:00Z"), "03:00");
        let twice = window("Europe/Berlin", ALL, 2 * 60 + 30, 2 * 60 + 45);
        assert_eq!(twice.next_open(at("2026-10-24T23:00:00Z")), at("2026-10-25T00:30:00Z"));
        assert_eq!(twice.next_open(at("2026-10-25T00:45:00Z")), at("2026-10-25T01:30:00Z"), "once more");
        let missing = window("Europe/Berlin", ALL, 2 * 60, 3 * 60);
        assert_eq!(
            missing.next_open(at("2026-03-28T12:00:00Z")),
            at("2026-03-30T00:00:00Z"),
            "a day without it"
        );
        let morning = window("Europe/Berlin", ALL, 8 * 60, 9 * 60);
        assert_eq!(morning.next_open(at("2026-03-28T12:00:00Z")), at("2026-03-29T06:00:00Z"));
        assert_eq!(morning.next_open(at("2026-10-24T12:00:00Z")), at("2026-10-25T07:00:00Z"));
    }

    #[test]
    fn invalid_windows_are_refused() {
        let zone = || Zone::find("UTC").unwrap();
        assert_eq!(WeeklyWindow::new(zone(), [false; 7], 0, 60), Err(WeeklyWindowError::NoDay));
        assert_eq!(WeeklyWindow::new(zone(), ALL, 1440, 60), Err(WeeklyWindowError::NoMinute));
        assert_eq!(WeeklyWindow::new(zone(), ALL, 0, 1441), Err(WeeklyWindowError::NoMinute));
        assert_eq!(WeeklyWindow::new(zone(), ALL, 60, 60), Err(WeeklyWindowError::Empty));
        assert!(Zone::find("Europe/Bonn").is_none());
    }

    proptest! {
        #[test]
        fn the_next_opening_is_the_first_open_minute(
            time in 1_700_000_000_u64..2_000_000_000,
            days in any::<[bool; 7]>().prop_filter("a day", |days| days.contains(&true)),
            (from, to) in (0_u16..1440, 0_u16..=1440).prop_filter("hours", |(from, to)| from != to),
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
        ) {
            let window = window(zone, days, from, to);
            let time = time / 60 * 60_000;
            let mut expected = time;
            while !window.is_open(expected) && expected < time + 9 * 86_400_000 {
                expected += 60_000;
            }
            prop_assert_eq!(window.next_open(time), expected);
        }
    }
}
