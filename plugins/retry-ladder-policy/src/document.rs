//! The document format; `policies/retries.toml` is a commented example.

use crate::retry_schedule::{RetrySchedule, ScheduleEntry};
use crate::{FailureClass, RetrySchedules};
use policy_values::{Names, Time, line};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    pub(crate) overall_limit: Option<Time>,
    temporary: Option<toml::Spanned<ScheduleEntry>>,
    permanent: Option<toml::Spanned<ScheduleEntry>>,
    absent: Option<toml::Spanned<ScheduleEntry>>,
    memory_full: Option<toml::Spanned<ScheduleEntry>>,
    throttled: Option<toml::Spanned<ScheduleEntry>>,
    #[serde(default)]
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
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Peer {
    pub(crate) name: Names,
    temporary: Option<toml::Spanned<ScheduleEntry>>,
    permanent: Option<toml::Spanned<ScheduleEntry>>,
    absent: Option<toml::Spanned<ScheduleEntry>>,
    memory_full: Option<toml::Spanned<ScheduleEntry>>,
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
