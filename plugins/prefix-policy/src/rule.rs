use crate::LegRule;
use serde::Deserialize;

/// The reasons for which a route may refuse.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reject {
    /// No route.
    NoRoute,
    /// Not a number.
    InvalidDestination,
    /// Not this sender.
    InvalidSource,
    /// Against the rules.
    Prohibited,
    /// Not for this account.
    NotAuthorised,
    /// Not now.
    TryLater,
}

/// What becomes of a message.
#[derive(Debug, Clone)]
pub enum Action {
    /// It goes to one of these; 1 to 255.
    Forward(Vec<LegRule>),
    /// It is for a subscriber of ours.
    Home,
    /// It is refused.
    Reject(Reject),
}

/// What becomes of a message, and why.
#[derive(Debug, Clone)]
pub struct Target {
    /// What becomes of it.
    pub action: Action,
    /// For the trace.
    pub note: Option<String>,
}

/// One rule of a prefix, with its conditions.
#[derive(Debug)]
pub struct Rule {
    pub(crate) accounts: Vec<String>,
    pub(crate) sources: Vec<String>,
    /// The line of the document on which it begins.
    pub(crate) line: usize,
    /// Where to.
    pub target: Target,
}

impl Rule {
    /// Whether its conditions hold.
    #[must_use]
    pub fn applies(&self, account: &str, source: &str) -> bool {
        (self.accounts.is_empty() || self.accounts.iter().any(|name| name == account))
            && (self.sources.is_empty()
                || self.sources.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(start) => source.starts_with(start),
                    None => source == pattern,
                }))
    }

    /// Whether it applies wherever the other one does.
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
        accounts && sources
    }
}
