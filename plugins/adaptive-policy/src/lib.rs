//! The policy document of `adaptive`: the candidates for destinations, and the choice among them by success rate and cost.

mod choice;
mod document;
mod spread;

pub use choice::{Candidacy, Choice, ChosenLeg, Outcomes};
pub use spread::spread;

use document::{CandidateEntry, Document};
use policy_values::{check_prefix, line, read};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

/// Maximum number of candidates for one destination: each needs up to three host calls, whose answers are recorded.
const MAX_CANDIDATES: usize = 8;
/// Maximum share of the messages that explores, over all candidates, in percent.
const MAX_EXPLORATION: u32 = 50;

/// The measure of success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SuccessMeasure {
    /// The share of delivered messages among messages with a DLR and failed attempts.
    #[default]
    Dlr,
    /// The share of accepted attempts that led to a conversion.
    Conversion,
}

/// The action for a message without a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoCandidateAction {
    /// The next router decides.
    #[default]
    Pass,
    /// Refuse it: no route.
    Reject,
}

/// The messages that a candidate's figures cover, in addition to all of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// No other figures.
    Peer,
    /// Messages to destinations with the same leading digits: this number of digits.
    Digits(u8),
    /// Messages with the same value of this attribute.
    Attribute(String),
}

/// A peer that can take messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The peer.
    pub peer: String,
    /// Cost of a segment, in millionths.
    pub cost: u32,
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Prefix → index into `destinations`.
    pub prefixes: Vec<(String, u32)>,
    /// The candidates within the cost bound by destination, cheapest first.
    pub destinations: Vec<Vec<Candidate>>,
    /// The messages that the figures cover.
    pub scope: Scope,
    /// The action for a message without a candidate.
    pub otherwise: NoCandidateAction,
    pub(crate) success: SuccessMeasure,
    pub(crate) samples: u32,
    /// Rates and margins in percent.
    pub(crate) assumed: u32,
    pub(crate) leave_margin: u32,
    pub(crate) return_margin: u32,
    pub(crate) exploration: u32,
    pub(crate) longest_wait: Option<Duration>,
}

impl Policy {
    /// The candidates, each once.
    pub fn peers(&self) -> BTreeSet<&str> {
        self.destinations.iter().flatten().map(|candidate| candidate.peer.as_str()).collect()
    }

    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        check_percentages(&document)?;
        let scope = match (document.digits, document.attribute) {
            (None, None) => Scope::Peer,
            (Some(digits @ 1..=8), None) => Scope::Digits(digits),
            (Some(digits), None) => return Err(format!("`digits` is {digits}; it is 1 to 8")),
            (None, Some(name)) if !name.is_empty() => Scope::Attribute(name),
            (None, Some(_)) => {
                return Err("`attribute` is empty; leave it out, or name an attribute".to_owned());
            }
            (Some(_), Some(_)) => {
                return Err("`digits` and `attribute` exclude each other; keep one".to_owned());
            }
        };
        if document.destination.is_empty() {
            return Err(
                "the document has no candidates: add a [[destination]] with `prefix` and `candidates`"
                    .to_owned(),
            );
        }
        let mut prefixes: BTreeMap<String, (u32, usize)> = BTreeMap::new();
        let mut destinations = Vec::new();
        for (destination, index) in document.destination.into_iter().zip(0_u32..) {
            let at = line(text, destination.span());
            let destination = destination.into_inner();
            let fail = |what: String| format!("line {at}: {what}");
            let highest = destination.highest_cost.or(document.highest_cost).map(|cost| cost.0);
            let markup = destination.highest_markup.or(document.highest_markup);
            let candidates = candidates(destination.candidates, highest, markup).map_err(fail)?;
            if document.exploration as usize * (candidates.len() - 1) > MAX_EXPLORATION as usize {
                return Err(fail(format!(
                    "`exploration` is {} for each of {} further candidates; together that is more than {MAX_EXPLORATION} %",
                    document.exploration,
                    candidates.len() - 1
                )));
            }
            for prefix in destination.prefix.0 {
                check_prefix(&prefix).map_err(fail)?;
                if let Some((_, first)) = prefixes.insert(prefix.clone(), (index, at)) {
                    return Err(fail(format!(
                        "prefix {prefix:?} has its candidates at line {first} already; put them together"
                    )));
                }
            }
            destinations.push(candidates);
        }
        Ok(Self {
            prefixes: prefixes.into_iter().map(|(prefix, (index, _))| (prefix, index)).collect(),
            destinations,
            scope,
            otherwise: document.otherwise,
            success: document.success,
            samples: document.samples,
            assumed: document.assumed,
            leave_margin: document.leave_margin,
            return_margin: document.return_margin,
            exploration: document.exploration,
            longest_wait: document.longest_wait.map(|time| time.0),
        })
    }
}

fn check_percentages(document: &Document) -> Result<(), String> {
    for (key, value) in [
        ("assumed", document.assumed),
        ("leave-margin", document.leave_margin),
        ("return-margin", document.return_margin),
        ("exploration", document.exploration),
    ] {
        if value > 100 {
            return Err(format!("`{key}` is {value}; it is a percentage, 0 to 100"));
        }
    }
    if document.samples == 0 {
        return Err("`samples` is zero; it is at least 1".to_owned());
    }
    if document.return_margin > document.leave_margin {
        return Err(format!(
            "`return-margin` is {}, more than `leave-margin` with {}: a peer would lose its messages and get them back at once",
            document.return_margin, document.leave_margin
        ));
    }
    Ok(())
}

/// The candidates within the cost bound, cheapest first.
fn candidates(
    entries: Vec<CandidateEntry>,
    highest: Option<u64>,
    markup: Option<u32>,
) -> Result<Vec<Candidate>, String> {
    if entries.is_empty() || entries.len() > MAX_CANDIDATES {
        return Err(format!("`candidates` has {}; 1 to {MAX_CANDIDATES} make sense", entries.len()));
    }
    let mut peers = HashSet::new();
    let mut candidates = Vec::new();
    for CandidateEntry { peer, cost } in entries {
        if peer.is_empty() {
            return Err("a candidate has an empty `peer`".to_owned());
        }
        if !peers.insert(peer.clone()) {
            return Err(format!("peer {peer:?} is there twice; keep one"));
        }
        let cost = u32::try_from(cost.0)
            .map_err(|_| format!("candidate {peer:?} costs more than a leg may, 4294.967295 a part"))?;
        candidates.push(Candidate { peer, cost });
    }
    // The sort is stable: candidates with the same cost keep the order of the document.
    candidates.sort_by_key(|candidate| candidate.cost);
    let cheapest = candidates.first().map_or(0, |candidate| u64::from(candidate.cost));
    let most = markup.map(|markup| cheapest + cheapest * u64::from(markup) / 100);
    candidates.retain(|candidate| {
        let cost = u64::from(candidate.cost);
        highest.is_none_or(|highest| cost <= highest) && most.is_none_or(|most| cost <= most)
    });
    if candidates.is_empty() {
        return Err("no candidate is within `highest-cost`: no message could ever go here".to_owned());
    }
    Ok(candidates)
}

#[cfg(test)]
mod tests;
