//! Pace buckets and send windows: limits on the rate and the hours of sending. The appliance applies them; a message waits
//! in its queue, and its trace names the bucket or window for which it waits.
//!
//! ```ignore
//! use std::time::Duration;
//! use switchyard_sdk::{forward, leg, pace};
//!
//! forward(vec![leg("upstream")])
//!     .use_pace_bucket(pace::per_day("campaign-c1", 2_000, "America/Los_Angeles"))
//!     .use_pace_bucket(pace::per_time("brand-b1", 75, Duration::from_secs(1)).counting_segments())
//!     .use_send_window(pace::window("daytime", "America/New_York", vec![pace::hours(8 * 60, 21 * 60)]))
//! ```
//!
//! A name is 1 to 64 of a-z, 0-9, dot, hyphen and underscore. If the configuration has the name, its definition counts.

pub use crate::bindings::router::switchyard::hooks::types::{
    PaceBucket, PaceBucketDefinition, PacePeriod, PaceUnit, SendHours, SendWindow, SendWindowDefinition,
    Weekday,
};
use std::time::Duration;

/// The pace bucket of the configuration with this name. An unknown name is a fault.
#[must_use]
pub fn configured(name: &str) -> PaceBucket {
    PaceBucket { name: name.to_owned(), definition: None }
}

/// A bucket that is full at the beginning of each day in this time zone, such as `Europe/Berlin`. The amount is at least 1.
#[must_use]
pub fn per_day(name: &str, amount: u64, zone: &str) -> PaceBucket {
    defined(name, amount, PacePeriod::Day(zone.to_owned()))
}

/// A bucket that fills evenly in this time, 1 ms to 31 days. The amount is at least 1.
#[must_use]
pub fn per_time(name: &str, amount: u64, time: Duration) -> PaceBucket {
    defined(name, amount, PacePeriod::Time(crate::milliseconds(time)))
}

fn defined(name: &str, amount: u64, per: PacePeriod) -> PaceBucket {
    let definition = Some(PaceBucketDefinition { amount, per, counts: PaceUnit::Messages });
    PaceBucket { name: name.to_owned(), definition }
}

impl PaceBucket {
    /// The same bucket, counting the segments of messages on the air. No effect on a bucket of the configuration.
    #[must_use]
    pub fn counting_segments(mut self) -> Self {
        if let Some(definition) = &mut self.definition {
            definition.counts = PaceUnit::Segments;
        }
        self
    }
}

/// The send window of the configuration with this name. An unknown name is a fault.
#[must_use]
pub fn configured_window(name: &str) -> SendWindow {
    SendWindow { name: name.to_owned(), definition: None }
}

/// A window that is open in each of these hours (1 to 14 entries), in this time zone.
#[must_use]
pub fn window(name: &str, zone: &str, hours: Vec<SendHours>) -> SendWindow {
    let definition = Some(SendWindowDefinition { zone: zone.to_owned(), hours });
    SendWindow { name: name.to_owned(), definition }
}

/// Hours of every day, between two minutes of the day: `opens` is below 1440, `closes` at most 1440. If `closes` is before
/// `opens`, the hours end on the next day.
#[must_use]
pub fn hours(opens: u16, closes: u16) -> SendHours {
    SendHours { days: Vec::new(), opens, closes }
}

impl SendHours {
    /// The same hours, on these days only.
    #[must_use]
    pub fn on(mut self, days: &[Weekday]) -> Self {
        self.days = days.to_vec();
        self
    }
}
