//! The policy document of `least-cost`: the offers of peers for destinations, and the choice of offers for a message.

mod choice;
mod document;
mod offer;

pub use choice::{Choice, ChosenLeg, PeerState};
pub use offer::Offer;

use document::Document;
use pace_policy::{PaceRule, TableNames, read_limits};
use policy_values::{AttributeConditions, MessageAttributes, check_prefix, line, read};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Maximum number of offers for one destination: each needs a host call.
const MAX_OFFERS: usize = 64;

/// The action for a message without an acceptable offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoOfferAction {
    /// The next router decides.
    #[default]
    Pass,
    /// Refuse it: no route.
    Reject,
}

/// Limits of acceptable offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Minimum quality.
    pub lowest_quality: u8,
    /// Maximum cost of a segment, in millionths.
    pub highest_cost: Option<u64>,
}

/// The offers for prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// At least one.
    pub offers: Vec<Offer>,
    /// The limits for these prefixes.
    pub limits: Limits,
    /// The pace buckets and send windows that messages use.
    pub pace: Vec<PaceRule>,
    attributes: AttributeConditions,
    /// The line of the document on which it starts.
    line: usize,
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Prefix → index of its destinations, for [`Policy::destination`].
    pub prefixes: Vec<(String, u32)>,
    /// The destinations of each prefix: indexes into `destinations`, in the order of the document.
    by_prefix: Vec<Vec<u32>>,
    /// The offers by destination.
    pub destinations: Vec<Destination>,
    /// An appliance table with more offers.
    pub table: Option<String>,
    /// The action for a message without an acceptable offer.
    pub otherwise: NoOfferAction,
    tables: TableNames,
    pub(crate) limits: Limits,
    pub(crate) most_legs: usize,
    pub(crate) most_queued: Option<u64>,
    pub(crate) longest_wait: Option<Duration>,
}

impl Policy {
    /// The peers in the document's offers, each once; peers of a shared table are not included.
    pub fn peers(&self) -> std::collections::BTreeSet<&str> {
        let offers = self.destinations.iter().flat_map(|destination| &destination.offers);
        offers.map(|offer| offer.peer.as_str()).collect()
    }

    /// The destination of a message whose prefix has this index in [`Policy::prefixes`]: the first one whose conditions hold.
    #[must_use]
    pub fn destination(
        &self,
        prefix: u32,
        attributes: &MessageAttributes<impl Fn(&str) -> Option<String>>,
    ) -> Option<u32> {
        let all = self.by_prefix.get(prefix as usize)?;
        let holds = |index: &&u32| {
            let destination = self.destinations.get(**index as usize);
            destination.is_some_and(|destination| destination.attributes.hold(attributes))
        };
        all.iter().find(holds).copied()
    }

    /// The tables of the appliance that the pace buckets use.
    #[must_use]
    pub fn pace_tables(&self) -> &[String] {
        self.tables.names()
    }

    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        if document.destination.is_empty() && document.table.is_none() {
            return Err(
                "the document has no offers: add a [[destination]] with `prefix` and `offers`, or a `table`"
                    .to_owned(),
            );
        }
        if document.table.as_deref() == Some("") {
            return Err("`table` is empty; leave it out, or name an appliance table".to_owned());
        }
        if document.most_legs == Some(0) {
            return Err("`most-legs` is zero; it is 1 to 255".to_owned());
        }
        let limits = Limits {
            lowest_quality: document.lowest_quality.unwrap_or(0),
            highest_cost: document.highest_cost.map(|cost| cost.0),
        };
        check_quality(limits.lowest_quality)?;
        let mut by_prefix: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut destinations: Vec<Destination> = Vec::new();
        let mut tables = TableNames::default();
        for (destination, index) in document.destination.into_iter().zip(0_u32..) {
            let at = line(text, destination.span());
            let destination = destination.into_inner();
            let fail = |what: String| format!("line {at}: {what}");
            let own = Limits {
                lowest_quality: destination.lowest_quality.unwrap_or(limits.lowest_quality),
                highest_cost: destination.highest_cost.map(|cost| cost.0).or(limits.highest_cost),
            };
            check_quality(own.lowest_quality).map_err(fail)?;
            let offers: Vec<Offer> =
                destination.offers.into_iter().map(Offer::check).collect::<Result<_, _>>().map_err(fail)?;
            check_offers(&offers, own).map_err(fail)?;
            let attributes = destination.attributes;
            for prefix in destination.prefix.0 {
                check_prefix(&prefix).map_err(fail)?;
                let earlier = by_prefix.entry(prefix.clone()).or_default();
                if earlier.contains(&index) {
                    return Err(fail(format!("prefix {prefix:?} stands twice in one list; write it once")));
                }
                let mut destinations = earlier.iter().filter_map(|index| destinations.get(*index as usize));
                if let Some(first) = destinations.find(|first| first.attributes.cover(&attributes)) {
                    return Err(fail(format!(
                        "prefix {prefix:?} has its offers at line {} already; put them together, or put the one with `attributes` first",
                        first.line
                    )));
                }
                earlier.push(index);
            }
            let pace = read_limits(&destination.pace_buckets, &destination.send_windows, &mut tables);
            destinations.push(Destination {
                offers,
                limits: own,
                pace: pace.map_err(fail)?,
                attributes,
                line: at,
            });
        }
        let (prefixes, by_prefix): (Vec<_>, Vec<_>) = by_prefix.into_iter().unzip();
        Ok(Self {
            prefixes: prefixes.into_iter().zip(0..).collect(),
            by_prefix,
            destinations,
            tables,
            table: document.table,
            otherwise: document.otherwise,
            limits,
            most_legs: usize::from(document.most_legs.unwrap_or(u8::MAX)),
            most_queued: document.most_queued,
            longest_wait: document.longest_wait.map(|time| time.0),
        })
    }
}

fn check_quality(lowest: u8) -> Result<(), String> {
    if lowest > 100 {
        return Err(format!("`lowest-quality` is {lowest}; it is 0 to 100, and 100 is best"));
    }
    Ok(())
}

fn check_offers(offers: &[Offer], limits: Limits) -> Result<(), String> {
    if offers.is_empty() || offers.len() > MAX_OFFERS {
        return Err(format!("`offers` has {}; 1 to {MAX_OFFERS} make sense", offers.len()));
    }
    let mut peers = HashSet::new();
    if let Some(twice) = offers.iter().find(|offer| !peers.insert(offer.peer.as_str())) {
        return Err(format!("peer {:?} has two offers; keep one", twice.peer));
    }
    if !offers.iter().any(|offer| limits.admit(offer)) {
        return Err("no offer is within `lowest-quality` and `highest-cost`: no message could ever go here"
            .to_owned());
    }
    Ok(())
}

impl Limits {
    fn admit(&self, offer: &Offer) -> bool {
        offer.quality >= self.lowest_quality
            && self.highest_cost.is_none_or(|highest| u64::from(offer.cost) <= highest)
    }
}

#[cfg(test)]
mod tests;
