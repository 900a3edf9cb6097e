//! The document as it is written; `policies/retries.toml` explains it by example.

use crate::ladder::{Ladder, Written};
use crate::{Class, Ladders as Checked};
use policy_words::{Names, Time, line};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Document {
    pub(crate) overall_limit: Option<Time>,
    temporary: Option<toml::Spanned<Written>>,
    permanent: Option<toml::Spanned<Written>>,
    absent: Option<toml::Spanned<Written>>,
    memory_full: Option<toml::Spanned<Written>>,
    throttled: Option<toml::Spanned<Written>>,
    #[serde(default)]
    pub(crate) peer: Vec<toml::Spanned<Peer>>,
}

impl Document {
    pub(crate) fn ladders(&mut self) -> Ladders {
        Ladders {
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
    temporary: Option<toml::Spanned<Written>>,
    permanent: Option<toml::Spanned<Written>>,
    absent: Option<toml::Spanned<Written>>,
    memory_full: Option<toml::Spanned<Written>>,
    throttled: Option<toml::Spanned<Written>>,
}

impl Peer {
    pub(crate) fn ladders(&mut self) -> Ladders {
        Ladders {
            temporary: self.temporary.take(),
            permanent: self.permanent.take(),
            absent: self.absent.take(),
            memory_full: self.memory_full.take(),
            throttled: self.throttled.take(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Ladders {
    temporary: Option<toml::Spanned<Written>>,
    permanent: Option<toml::Spanned<Written>>,
    absent: Option<toml::Spanned<Written>>,
    memory_full: Option<toml::Spanned<Written>>,
    throttled: Option<toml::Spanned<Written>>,
}

impl Ladders {
    fn of(&self, class: Class) -> Option<&toml::Spanned<Written>> {
        match class {
            Class::Temporary => self.temporary.as_ref(),
            Class::Permanent => self.permanent.as_ref(),
            Class::Absent => self.absent.as_ref(),
            Class::MemoryFull => self.memory_full.as_ref(),
            Class::Throttled => self.throttled.as_ref(),
        }
    }

    pub(crate) fn has(&self, class: Class) -> bool {
        self.of(class).is_some()
    }

    /// Checks what is written; a class that is not is as in `otherwise`.
    pub(crate) fn read(&self, text: &str, otherwise: Option<&Checked>) -> Result<Checked, String> {
        let mut checked = otherwise.cloned().unwrap_or_default();
        for (class, place) in Class::ALL.into_iter().zip(&mut checked) {
            if let Some(written) = self.of(class) {
                *place = Ladder::check(written.get_ref(), class).map_err(|what| {
                    format!("line {}: [{}] {what}", line(text, written.span()), class.name())
                })?;
            }
        }
        Ok(checked)
    }
}
