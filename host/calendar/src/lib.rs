//! Calendar days and weekly windows of a time zone. Times are arguments, in milliseconds since the Unix epoch, UTC.
//!
//! The time zone database is compiled in, so that an appliance and its replacement count alike.

mod weekly_window;
mod zone;

pub use weekly_window::{MINUTES_PER_DAY, WeeklyWindow, WeeklyWindowError};
pub use zone::{CalendarPeriod, LAST_TIME, Zone};
