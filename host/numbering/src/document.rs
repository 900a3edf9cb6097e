//! The document as it is written; `policies/numbering.toml` explains it by example.
//!
//! Every table is read on its own, so that one that is wrong does not hide what is wrong with the next.

use crate::plan::build;
use crate::{Plan, Plans};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// What is wrong with a document: all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct DocumentError(pub Vec<Problem>);

/// One thing that is wrong with a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The table, such as `plan.nanp.range`; empty for the document itself.
    pub table: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.table.as_str() {
            "" => write!(f, "line {}: {}", self.line, self.what),
            table => write!(f, "line {}: [{table}]: {}", self.line, self.what),
        }
    }
}

/// Everything that was found wrong so far.
pub(crate) struct Problems {
    /// Where every line but the first begins.
    lines: Vec<usize>,
    found: Vec<Problem>,
}

impl Problems {
    fn of(text: &str) -> Self {
        Self { lines: text.match_indices('\n').map(|(at, _)| at + 1).collect(), found: Vec::new() }
    }

    pub(crate) fn add(&mut self, at: usize, table: &str, what: impl Into<String>) {
        let line = self.line(at);
        self.found.push(Problem { line, table: table.to_owned(), what: what.into() });
    }

    /// The line, from 1, of a place in the text.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at) + 1
    }
}

/// `[plan.NAME]` without the tables in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Head {
    pub(crate) country_code: Spanned<String>,
    #[serde(default)]
    pub(crate) international_prefix: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) trunk_prefix: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) trunk_needed: bool,
    pub(crate) national_numbers: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) local_numbers: Vec<Spanned<String>>,
    pub(crate) area_code_of_caller: Option<Spanned<usize>>,
    pub(crate) area_code: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) show: Show,
    #[serde(default = "route")]
    pub(crate) national: Spanned<String>,
    #[serde(default = "route")]
    pub(crate) international: Spanned<String>,
}

/// How numbers of the own country are shown to subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Show {
    #[default]
    International,
    National,
}

fn route() -> Spanned<String> {
    Spanned::new(0..0, "route".to_owned())
}

/// `[[plan.NAME.range]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Range {
    pub(crate) name: String,
    pub(crate) numbers: Vec<Spanned<String>>,
    pub(crate) to: Spanned<String>,
    pub(crate) abbreviation: Option<Spanned<usize>>,
}

/// `[[plan.NAME.short-code]]` and `[[plan.NAME.internal]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Short {
    pub(crate) name: String,
    pub(crate) numbers: Vec<Spanned<String>>,
    pub(crate) to: Spanned<String>,
}

/// Reads and checks a document.
pub(crate) fn read(text: &str) -> Result<Plans, DocumentError> {
    let mut problems = Problems::of(text);
    let plans = match DeTable::parse(text) {
        Ok(table) => of_root(table.into_inner(), &mut problems),
        Err(error) => {
            problems.add(error.span().map_or(0, |span| span.start), "", error.message());
            None
        }
    };
    let mut found = problems.found;
    found.sort_by_key(|problem| problem.line);
    match plans {
        Some(plans) if found.is_empty() => Ok(plans),
        _ => Err(DocumentError(found)),
    }
}

fn of_root(root: DeTable<'_>, problems: &mut Problems) -> Option<Plans> {
    let mut plans = BTreeMap::new();
    let mut default = None;
    for (key, value) in root {
        let at = key.span().start;
        match (key.get_ref().as_ref(), value.into_inner()) {
            ("default", DeValue::String(name)) => default = Some((at, name.into_owned())),
            ("default", _) => problems.add(at, "", "`default` is the name of a plan, in quotes"),
            ("plan", DeValue::Table(tables)) => {
                for (name, value) in tables {
                    let (at, name) = (name.span().start, name.into_inner().into_owned());
                    let DeValue::Table(table) = value.into_inner() else {
                        problems.add(at, "plan", format!("{name:?} is no plan; write [plan.{name}]"));
                        continue;
                    };
                    let plan = of_plan(&name, at, table, problems);
                    plans.insert(name, plan);
                }
            }
            ("plan", _) => problems.add(at, "", "plans are tables: [plan.NAME]"),
            (other, _) => problems.add(at, "", format!("{other:?} is unknown; known here: default, plan")),
        }
    }
    if plans.is_empty() {
        problems.add(0, "", "there is no plan; write [plan.NAME] with `country-code` and `national-numbers`");
        return None;
    }
    let default = match default {
        Some((_, name)) if plans.contains_key(&name) => name,
        Some((at, name)) => {
            problems.add(at, "", format!("`default` is {name:?}, and there is no [plan.{name}]"));
            return None;
        }
        None if plans.len() == 1 => plans.keys().next()?.clone(),
        None => {
            problems.add(0, "", "`default` is missing: which of the plans counts where none is named?");
            return None;
        }
    };
    let plans = plans.into_iter().map(|(name, plan)| Some((name, plan?))).collect::<Option<_>>()?;
    Some(Plans { plans, default })
}

fn of_plan(name: &str, at: usize, mut table: DeTable<'_>, problems: &mut Problems) -> Option<Plan> {
    let path = format!("plan.{name}");
    let ranges = rows::<Range>(&mut table, &path, "range", problems);
    let codes = rows::<Short>(&mut table, &path, "short-code", problems);
    let internal = rows::<Short>(&mut table, &path, "internal", problems);
    let head = one::<Head>(Spanned::new(at..at, DeValue::Table(table)), at, &path, problems)?;
    Some(build::plan(name, at, head, build::Rows { ranges, codes, internal }, problems))
}

/// The tables of an array of tables, with where each begins.
fn rows<T: DeserializeOwned>(
    table: &mut DeTable<'_>,
    path: &str,
    key: &str,
    problems: &mut Problems,
) -> Vec<(usize, T)> {
    let path = format!("{path}.{key}");
    let Some(value) = table.remove(key) else { return Vec::new() };
    let at = value.span().start;
    let DeValue::Array(items) = value.into_inner() else {
        problems.add(at, &path, format!("is written as [[{path}]], once for each"));
        return Vec::new();
    };
    let items = items.into_iter().map(|item| (item.span().start, item));
    items.filter_map(|(at, item)| Some((at, one(item, at, &path, problems)?))).collect()
}

fn one<T: DeserializeOwned>(
    value: Spanned<DeValue<'_>>,
    at: usize,
    path: &str,
    problems: &mut Problems,
) -> Option<T> {
    match T::deserialize(ValueDeserializer::from(value)) {
        Ok(read) => Some(read),
        Err(error) => {
            problems.add(error.span().map_or(at, |span| span.start), path, error.message());
            None
        }
    }
}
