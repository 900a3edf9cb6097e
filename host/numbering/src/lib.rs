//! Number plans: what a subscriber dialled becomes one form, and whose number it is.
//!
//! What is dialled means something else in every country, so the rules are data: a document with a plan per country, which
//! `policies/numbering.toml` explains by example. A [`Plan`] is a pure function of it. The order in which it looks at a
//! number of unknown type is fixed: short forms (short codes, internal numbers, abbreviations), then the international
//! prefix, the trunk prefix, the bare national number, the local number. A number that says that it is international is
//! taken as it is written.
#![forbid(unsafe_code)]

mod document;
mod number;
mod pattern;
mod plan;
mod ranges;

pub use document::{DocumentError, Problem};
pub use number::{Called, Class, Kind, Number, Refused, Target};
pub use plan::Plan;

use std::collections::BTreeMap;

/// All plans of a document.
#[derive(Debug, Clone)]
pub struct Plans {
    pub(crate) plans: BTreeMap<String, Plan>,
    pub(crate) default: String,
}

impl Plans {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line, and what would be right.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        document::read(text)
    }

    /// The plan of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Plan> {
        self.plans.get(name)
    }

    /// The name of the plan that counts where none is named. There is always such a plan.
    #[must_use]
    pub fn default_name(&self) -> &str {
        &self.default
    }

    /// The plans, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Plan)> {
        self.plans.iter().map(|(name, plan)| (name.as_str(), plan))
    }

    /// The peers that the document names, each once: all of them must be in the configuration.
    #[must_use]
    pub fn peers(&self) -> Vec<&str> {
        let mut peers: Vec<&str> = self.plans.values().flat_map(Plan::peers).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }
}

#[cfg(test)]
mod tests;
