//! A rule: conditions, all of which must hold, and an action.

use crate::action::Action;
use crate::dlt::DltCheck;
use crate::document::{RuleEntry, SourceKindKeyword};
use crate::links::read_domains;
use crate::source::{Pattern, SourceKind};
use crate::volume::{NearDuplicates, Volume};
use crate::words::WordSearch;
use pace_policy::TableNames;
use policy_values::{Names, check_prefix};
use std::collections::HashSet;

/// A rule of the document. Absent conditions are `None`, or empty.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Unique; used in counters and notes.
    pub(crate) name: String,
    pub(crate) accounts: Vec<Pattern>,
    pub(crate) sources: Vec<Pattern>,
    pub(crate) source_kind: Option<SourceKind>,
    /// Tables of senders, by index.
    pub(crate) registered: Option<usize>,
    pub(crate) unregistered: Option<usize>,
    /// Prefixes of numbers, without a plus sign.
    pub(crate) destinations: Vec<String>,
    pub(crate) data_codings: Vec<u8>,
    pub(crate) segments_over: Option<u16>,
    pub(crate) header: Option<bool>,
    pub(crate) words: WordCondition,
    pub(crate) links: Option<bool>,
    /// A link to one of these.
    pub(crate) domains: Option<DomainList>,
    /// A link to another domain.
    pub(crate) other_domains: Option<DomainList>,
    pub(crate) dlt: Option<DltCheck>,
    pub(crate) near_duplicates: Option<NearDuplicates>,
    pub(crate) volume: Option<Volume>,
    pub(crate) action: Action,
    pub(crate) tags: Vec<(String, String)>,
}

/// The text has one of the rule's words, or a word in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WordCondition {
    /// The rule has words in the search of the document.
    pub(crate) own: bool,
    /// A table of words, by index.
    pub(crate) table: Option<usize>,
}

impl WordCondition {
    pub(crate) fn is_given(self) -> bool {
        self.own || self.table.is_some()
    }
}

/// Domains in the document and in a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DomainList {
    pub(crate) own: HashSet<String>,
    pub(crate) table: Option<usize>,
}

fn optional_table(tables: &mut TableNames, name: Option<&str>) -> Result<Option<usize>, String> {
    name.map(|name| tables.index(name)).transpose()
}

impl Rule {
    /// Reads the rule with this index.
    ///
    /// # Errors
    /// The mistake and the correction.
    pub(crate) fn read(
        index: usize,
        entry: RuleEntry,
        search: &mut WordSearch,
        tables: &mut TableNames,
    ) -> Result<Self, String> {
        let action = Action::read(&entry, tables)?;
        for (words, whole) in [(&entry.words, true), (&entry.contains, false)] {
            for word in names(words) {
                search.add(index, word, whole)?;
            }
        }
        let dlt = match entry.dlt {
            Some(dlt) => Some(DltCheck {
                templates: tables.index(&dlt.templates)?,
                entities: optional_table(tables, dlt.entities.as_deref())?,
            }),
            None => None,
        };
        let rule = Self {
            accounts: patterns(&entry.accounts)?,
            sources: patterns(&entry.sources)?,
            source_kind: entry.source_kind.map(|kind| match kind {
                SourceKindKeyword::Numeric => SourceKind::Numeric,
                SourceKindKeyword::Alphanumeric => SourceKind::Alphanumeric,
            }),
            registered: optional_table(tables, entry.registered.as_deref())?,
            unregistered: optional_table(tables, entry.unregistered.as_deref())?,
            destinations: destinations(&entry.destinations)?,
            data_codings: match entry.data_codings {
                Some(codings) if codings.is_empty() => {
                    return Err("`data-codings` is empty; write at least one".to_owned());
                }
                codings => codings.unwrap_or_default(),
            },
            segments_over: entry.segments_over,
            header: entry.header,
            words: WordCondition {
                own: entry.words.is_some() || entry.contains.is_some(),
                table: optional_table(tables, entry.word_table.as_deref())?,
            },
            links: entry.links,
            domains: domains("domains", entry.domains.as_ref(), entry.domain_table.as_deref(), tables)?,
            other_domains: domains(
                "other-domains-than",
                entry.other_domains_than.as_ref(),
                entry.other_domains_than_table.as_deref(),
                tables,
            )?,
            dlt,
            near_duplicates: entry.near_duplicates.as_ref().map(NearDuplicates::read).transpose()?,
            volume: entry.volume.as_ref().map(Volume::read).transpose()?,
            action,
            tags: entry.tags.into_iter().collect(),
            name: entry.name,
        };
        rule.check()?;
        Ok(rule)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || self.name.len() > 64 || self.name.chars().any(char::is_control) {
            return Err(format!(
                "the name {:?}: it takes 1 to 64 octets, since notes and counters show it",
                self.name
            ));
        }
        if !self.has_condition() {
            return Err("it has no condition, so that it would apply to every message; for that, write \
                        `accounts = \"*\"`"
                .to_owned());
        }
        let finds = self.words.own || self.words.table.is_some() || self.has_links();
        if matches!(self.action, Action::Replace(_)) && !finds {
            return Err(
                "`then = \"replace\"` replaces the words and links that the rule finds; give it `words`, \
                        `contains`, `word-table`, `links` or `domains`"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn has_links(&self) -> bool {
        self.links == Some(true) || self.domains.is_some() || self.other_domains.is_some()
    }

    fn has_condition(&self) -> bool {
        !self.accounts.is_empty()
            || !self.sources.is_empty()
            || self.source_kind.is_some()
            || self.registered.is_some()
            || self.unregistered.is_some()
            || !self.destinations.is_empty()
            || !self.data_codings.is_empty()
            || self.segments_over.is_some()
            || self.header.is_some()
            || self.words.is_given()
            || self.links.is_some()
            || self.domains.is_some()
            || self.other_domains.is_some()
            || self.dlt.is_some()
            || self.near_duplicates.is_some()
            || self.volume.is_some()
    }
}

fn names(names: &Option<Names>) -> &[String] {
    names.as_ref().map_or(&[], |names| &names.0)
}

fn patterns(entry: &Option<Names>) -> Result<Vec<Pattern>, String> {
    names(entry).iter().map(|text| Pattern::parse(text)).collect()
}

fn destinations(entry: &Option<Names>) -> Result<Vec<String>, String> {
    let read = names(entry).iter().map(|prefix| {
        check_prefix(prefix)?;
        Ok(prefix.clone())
    });
    read.collect()
}

fn domains(
    key: &str,
    own: Option<&Names>,
    table: Option<&str>,
    tables: &mut TableNames,
) -> Result<Option<DomainList>, String> {
    if own.is_none() && table.is_none() {
        return Ok(None);
    }
    let own = own.map(|domains| read_domains(key, &domains.0)).transpose()?.unwrap_or_default();
    Ok(Some(DomainList { own, table: optional_table(tables, table)? }))
}
