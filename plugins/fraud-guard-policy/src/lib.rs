//! The policy document of `fraud-guard`: limits on the messages and numbers of one source of one account.

mod document;
mod evaluate;
mod rule;

pub use evaluate::{Counters, Finding};
pub use rule::{Check, Rule, RuleAction};

use document::Document;
use policy_values::{line, read};
use std::collections::HashMap;

/// Sources and accounts that are exempt from the rules.
#[derive(Debug, Clone)]
pub(crate) struct Allow {
    accounts: Vec<String>,
    sources: Vec<String>,
}

impl Allow {
    fn covers(&self, account: &str, source: &str) -> bool {
        (self.accounts.is_empty() || self.accounts.iter().any(|name| name == account))
            && (self.sources.is_empty()
                || self.sources.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(start) => source.starts_with(start),
                    None => source == pattern,
                }))
    }
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) allow: Vec<Allow>,
    /// All rules: first velocities, then neighbours, then blocks, each in the order of the document.
    pub rules: Vec<Rule>,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        let mut policy = Self { allow: Vec::new(), rules: Vec::new() };
        for allow in document.allow {
            let at = line(text, allow.span());
            let allow = allow.into_inner();
            if allow.accounts.is_empty() && allow.sources.is_empty() {
                return Err(format!(
                    "line {at}: this [[allow]] names nobody, so it would allow everyone; give it `accounts` or `sources`"
                ));
            }
            policy.allow.push(Allow { accounts: allow.accounts, sources: allow.sources });
        }
        let mut lines: HashMap<String, usize> = HashMap::new();
        let mut add = |at: usize, rule: Result<Rule, String>| {
            let rule = rule.map_err(|what| format!("line {at}: {what}"))?;
            if let Some(first) = lines.insert(rule.name.clone(), at) {
                return Err(format!(
                    "line {at}: the rule of line {first} has the name {:?} too, and counters go by it; give each its own",
                    rule.name
                ));
            }
            policy.rules.push(rule);
            Ok(())
        };
        for velocity in document.velocity {
            add(line(text, velocity.span()), Rule::velocity(velocity.into_inner()))?;
        }
        for neighbours in document.neighbours {
            add(line(text, neighbours.span()), Rule::neighbours(neighbours.into_inner()))?;
        }
        for block in document.block {
            add(line(text, block.span()), Rule::block(block.into_inner()))?;
        }
        if policy.rules.is_empty() {
            return Err(
                "the document has no rule: add a [[velocity]], a [[neighbours]] or a [[block]]".to_owned()
            );
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests;
