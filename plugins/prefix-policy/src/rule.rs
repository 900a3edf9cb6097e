use crate::LegRule;
use pace_policy::PaceRule;
use policy_values::{AttributeConditions, MessageAttributes};
use serde::Deserialize;

/// The reject reasons of a route.
#[derive(Debug, Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reject {
    /// No route.
    NoRoute,
    /// Not a valid number.
    InvalidDestination,
    /// This sender is not allowed.
    InvalidSource,
    /// Against the rules.
    Prohibited,
    /// Not for this account.
    NotAuthorised,
    /// Not now.
    TryLater,
}

/// The action for a message.
#[derive(Debug, Clone)]
pub enum Action {
    /// Forward to one of these legs; 1 to 255.
    Forward(Vec<LegRule>),
    /// Deliver to one of the operator's own subscribers.
    Home,
    /// Refuse.
    Reject(Reject),
}

/// The action for a message, and the reason.
#[derive(Debug, Clone)]
pub struct Target {
    /// The action.
    pub action: Action,
    /// The pace buckets and send windows that the message uses.
    pub limits: Vec<PaceRule>,
    /// For the trace.
    pub note: Option<String>,
}

/// A rule of a prefix, with its conditions.
#[derive(Debug)]
pub struct Rule {
    pub(crate) accounts: Vec<String>,
    pub(crate) sources: Vec<String>,
    pub(crate) attributes: AttributeConditions,
    /// The line of the document on which it starts.
    pub(crate) line: usize,
    /// The target.
    pub target: Target,
}

impl Rule {
    /// Whether its conditions hold.
    #[must_use]
    pub fn applies(
        &self,
        account: &str,
        source: &str,
        attributes: &MessageAttributes<impl Fn(&str) -> Option<String>>,
    ) -> bool {
        (self.accounts.is_empty() || self.accounts.iter().any(|name| name == account))
            && (self.sources.is_empty()
                || self.sources.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(start) => source.starts_with(start),
                    None => source == pattern,
                }))
            && self.attributes.hold(attributes)
    }

    /// Whether it applies to every message to which the other rule applies.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let accounts = self.accounts.is_empty()
            || (!other.accounts.is_empty() && other.accounts.iter().all(|name| self.accounts.contains(name)));
        let all_sources = self.sources.is_empty() || self.sources.iter().any(|pattern| pattern == "*");
        let sources = all_sources
            || (!other.sources.is_empty()
                && other.sources.iter().all(|narrow| {
                    self.sources.iter().any(|wide| match wide.strip_suffix('*') {
                        Some(start) => narrow.starts_with(start),
                        None => narrow == wide,
                    })
                }));
        accounts && sources && self.attributes.cover(&other.attributes)
    }
}
