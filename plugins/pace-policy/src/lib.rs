//! Pace buckets and send windows that the rules of policy documents name.

mod document;
mod limits;
#[cfg(feature = "sdk")]
mod sdk;
mod table_names;

pub use document::{BucketEntry, DayKeyword, EachKeyword, UnitKeyword, WindowEntry};
pub use limits::{Bucket, BucketLimit, PaceRule, PacedSender, Period, Window, WindowHours};
#[cfg(feature = "sdk")]
pub use sdk::use_limits;
pub use table_names::TableNames;

/// Maximum numbers of pace buckets and of send windows in one decision.
const MAX_BUCKETS: usize = 8;
const MAX_WINDOWS: usize = 4;

/// Reads the limits of a route; a message uses all of them.
///
/// # Errors
/// The correction.
pub fn read_limits(
    buckets: &[BucketEntry],
    windows: &[WindowEntry],
    tables: &mut TableNames,
) -> Result<Vec<PaceRule>, String> {
    if buckets.len() > MAX_BUCKETS {
        return Err(format!("`pace-buckets` has {}; a message uses at most {MAX_BUCKETS}", buckets.len()));
    }
    if windows.len() > MAX_WINDOWS {
        return Err(format!("`send-windows` has {}; a message uses at most {MAX_WINDOWS}", windows.len()));
    }
    let mut rules = Vec::with_capacity(buckets.len() + windows.len());
    for bucket in buckets {
        rules.push(PaceRule::read(Some(bucket), None, tables)?);
    }
    for window in windows {
        rules.push(PaceRule::read(None, Some(window), tables)?);
    }
    Ok(rules)
}
