//! Number plans: normalise dialled numbers and classify them.
//!
//! Dialling rules differ by country and are data: a document with one plan per country; `policies/numbering.toml`
//! explains it by example. A [`NumberPlan`] is a pure function of the document. A number of unknown type is matched in
//! a fixed order: short forms (short codes, internal numbers, abbreviations), international prefix, trunk prefix, bare
//! national number, local number. A number of type international is not reinterpreted.
#![forbid(unsafe_code)]

mod document;
mod normalised_number;
mod number_plan;
mod pattern_set;
mod range_map;

pub use document::{NumberPlanError, NumberPlanProblem};
pub use normalised_number::{
    DialledNumber, NormalisedNumber, NumberClass, NumberKind, NumberRefusal, NumberTarget,
};
pub use number_plan::NumberPlan;

use std::collections::BTreeMap;

/// All plans of a document.
#[derive(Debug, Clone)]
pub struct NumberPlans {
    pub(crate) plans: BTreeMap<String, NumberPlan>,
    pub(crate) default: String,
}

impl NumberPlans {
    /// Reads and validates a document.
    ///
    /// # Errors
    /// All problems, each with its line and remedy.
    pub fn parse(text: &str) -> Result<Self, NumberPlanError> {
        document::read(text)
    }

    /// The plan with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&NumberPlan> {
        self.plans.get(name)
    }

    /// The name of the default plan, which always exists.
    #[must_use]
    pub fn default_name(&self) -> &str {
        &self.default
    }

    /// All plans by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NumberPlan)> {
        self.plans.iter().map(|(name, plan)| (name.as_str(), plan))
    }

    /// The peers named by the plans, without duplicates; each must be configured.
    #[must_use]
    pub fn peers(&self) -> Vec<&str> {
        let mut peers: Vec<&str> = self.plans.values().flat_map(NumberPlan::peers).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }
}

#[cfg(test)]
mod tests;
