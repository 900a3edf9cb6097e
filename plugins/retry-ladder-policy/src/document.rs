//! The document format; `policies/retries.toml` is a commented example.

use crate::retry_schedule::{RetrySchedule, ScheduleEntry};
use crate::{FailureClass, RetrySchedules};
use policy_values::{Names, Time, line};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    /// Maximum age for attempts; the last attempt is made at this age. A message whose validity is shorter expires earlier.
    /// Default: the validity.
    pub(crate) overall_limit: Option<Time>,
    /// System errors, no receiver bound, queue full: a later attempt may succeed.
    #[cfg_attr(test, schemars(with = "ScheduleEntry"))]
    temporary: Option<toml::Spanned<ScheduleEntry>>,
    /// Invalid number, prohibited: no attempt on this leg can succeed.
    #[cfg_attr(test, schemars(with = "ScheduleEntry"))]
    permanent: Option<toml::Spanned<ScheduleEntry>>,
    /// The handset is off or out of coverage.
    #[cfg_attr(test, schemars(with = "ScheduleEntry"))]
    absent: Option<toml::Spanned<ScheduleEntry>>,
    /// The memory of the handset is full.
    #[cfg_attr(test, schemars(with = "ScheduleEntry"))]
    memory_full: Option<toml::Spanned<ScheduleEntry>>,
    /// The peer throttles. The message returns to its position in the queue; the peer is paused already.
    #[cfg_attr(test, schemars(with = "ScheduleEntry"))]
    throttled: Option<toml::Spanned<ScheduleEntry>>,
    /// Peers with their own retry schedules, for some classes.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<Peer>"))]
    pub(crate) peer: Vec<toml::Spanned<Peer>>,
}

impl Document {
    pub(crate) fn schedules(&mut self) -> ScheduleEntries {
        ScheduleEntries {
            temporary: self.temporary.take(),
            permanent: self.permanent.take(),
            absent: self.absent.take(),
            memory_full: self.memory_full.take(),
            throttled: self.throttled.take(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Peer {
    /// The peer, or a list of peers.
    #[cfg_attr(test, schemars(extend("x-switchyard" = "peer")))]
    pub(crate) name: Names,
    /// System errors, no receiver bound, queue full: a later attempt may succeed.
    #[cfg_attr(test, schemars(with = "Option<ScheduleEntry>"))]
    temporary: Option<toml::Spanned<ScheduleEntry>>,
    /// Invalid number, prohibited: no attempt on this leg can succeed.
    #[cfg_attr(test, schemars(with = "Option<ScheduleEntry>"))]
    permanent: Option<toml::Spanned<ScheduleEntry>>,
    /// The handset is off or out of coverage.
    #[cfg_attr(test, schemars(with = "Option<ScheduleEntry>"))]
    absent: Option<toml::Spanned<ScheduleEntry>>,
    /// The memory of the handset is full.
    #[cfg_attr(test, schemars(with = "Option<ScheduleEntry>"))]
    memory_full: Option<toml::Spanned<ScheduleEntry>>,
    /// The peer throttles. The message returns to its position in the queue; the peer is paused already.
    #[cfg_attr(test, schemars(with = "Option<ScheduleEntry>"))]
    throttled: Option<toml::Spanned<ScheduleEntry>>,
}

impl Peer {
    pub(crate) fn schedules(&mut self) -> ScheduleEntries {
        ScheduleEntries {
            temporary: self.temporary.take(),
            permanent: self.permanent.take(),
            absent: self.absent.take(),
            memory_full: self.memory_full.take(),
            throttled: self.throttled.take(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct ScheduleEntries {
    temporary: Option<toml::Spanned<ScheduleEntry>>,
    permanent: Option<toml::Spanned<ScheduleEntry>>,
    absent: Option<toml::Spanned<ScheduleEntry>>,
    memory_full: Option<toml::Spanned<ScheduleEntry>>,
    throttled: Option<toml::Spanned<ScheduleEntry>>,
}

impl ScheduleEntries {
    fn of(&self, class: FailureClass) -> Option<&toml::Spanned<ScheduleEntry>> {
        match class {
            FailureClass::Temporary => self.temporary.as_ref(),
            FailureClass::Permanent => self.permanent.as_ref(),
            FailureClass::Absent => self.absent.as_ref(),
            FailureClass::MemoryFull => self.memory_full.as_ref(),
            FailureClass::Throttled => self.throttled.as_ref(),
        }
    }

    pub(crate) fn has(&self, class: FailureClass) -> bool {
        self.of(class).is_some()
    }

    /// Checks the entries; a missing class is taken from `otherwise`.
    pub(crate) fn read(
        &self,
        text: &str,
        otherwise: Option<&RetrySchedules>,
    ) -> Result<RetrySchedules, String> {
        let mut checked = otherwise.cloned().unwrap_or_default();
        for (class, place) in FailureClass::ALL.into_iter().zip(&mut checked) {
            if let Some(entry) = self.of(class) {
                *place = RetrySchedule::check(entry.get_ref(), class).map_err(|what| {
                    format!("line {}: [{}] {what}", line(text, entry.span()), class.name())
                })?;
            }
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_is_up_to_date() {
        policy_values::schema::assert_up_to_date::<super::Document>("retry-ladder");
    }
}
