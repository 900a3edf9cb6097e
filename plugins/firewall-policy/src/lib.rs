//! The policy document of `firewall`: rules that are evaluated in order, each with conditions and an action.

mod action;
mod dlt;
mod document;
mod evaluate;
mod facts;
mod fold;
mod links;
mod punycode;
mod rule;
mod source;
mod volume;
mod words;

pub use action::{Reason, Report, Verdict};
pub use evaluate::Outcome;

use document::Document;
use pace_policy::TableNames;
use policy_values::{line, read};
use rule::Rule;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use words::WordSearch;

/// Maximum number of tags of a document: all of them fit into the changes of one message.
const MAX_TAGS: usize = 32;

/// The record of a message.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The account that sent it.
    pub account: &'a str,
    /// The sender.
    pub source: &'a str,
    /// The number of the recipient.
    pub destination: &'a str,
    /// The data coding scheme.
    pub data_coding: u8,
    /// The number of short messages.
    pub segments: u16,
    /// Whether the text begins with a user data header.
    pub header: bool,
}

/// The host's functions about a message. Each is called only if a rule needs its result.
pub trait Host {
    /// The text; `None` for 8-bit data.
    fn text(&self) -> Option<String>;
    /// The links in the text.
    fn urls(&self) -> Vec<String>;
    /// The hash that near-duplicates share; `None` if there is no text.
    fn near_duplicate(&self) -> Option<u64>;
    /// The value of the TLV with this tag.
    fn tlv(&self, tag: u16) -> Option<Vec<u8>>;
    /// The value of a key in the table with this index in [`Policy::tables`].
    fn look_up(&self, table: usize, key: &str) -> Option<String>;
    /// Adds one to a counter, and returns its sum in the window.
    fn count(&self, name: &str, key: &str, window: Duration) -> u64;
}

/// The checked document.
#[derive(Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    search: WordSearch,
    tables: TableNames,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        let (mut rules, mut search, mut tables) = (Vec::new(), WordSearch::default(), TableNames::default());
        let mut lines: HashMap<String, usize> = HashMap::new();
        let mut tags = BTreeSet::new();
        for entry in document.rule {
            let at = line(text, entry.span());
            let entry = entry.into_inner();
            let name = entry.name.clone();
            let rule = Rule::read(rules.len(), entry, &mut search, &mut tables)
                .map_err(|what| format!("line {at}: rule {name:?}: {what}"))?;
            tags.extend(rule.tags.iter().map(|(name, _)| name.clone()));
            if tags.len() > MAX_TAGS {
                return Err(format!(
                    "line {at}: rule {name:?}: the document has more than {MAX_TAGS} different tags"
                ));
            }
            if let Some(first) = lines.insert(name, at) {
                return Err(format!(
                    "line {at}: the rule of line {first} has the name {:?} too, and counters go by it; give each its own",
                    rule.name
                ));
            }
            rules.push(rule);
        }
        if rules.is_empty() {
            return Err("the document has no rule: add a [[rule]]".to_owned());
        }
        search.compile()?;
        Ok(Self { rules, search, tables })
    }

    /// The tables of the appliance that the rules use.
    #[must_use]
    pub fn tables(&self) -> &[String] {
        self.tables.names()
    }
}

#[cfg(test)]
mod tests;
