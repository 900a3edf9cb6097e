//! The document format; `policies/numbering.toml` explains it by example.
//!
//! Each table is read separately, so that an error in one does not hide errors in the next.

use crate::number_plan::build;
use crate::{NumberPlan, NumberPlans};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// All problems of a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct NumberPlanError(pub Vec<NumberPlanProblem>);

/// A problem in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberPlanProblem {
    /// The line, from 1.
    pub line: usize,
    /// The table, for example `plan.nanp.range`; empty for the top level.
    pub table: String,
    /// The problem and its remedy.
    pub description: String,
}

impl fmt::Display for NumberPlanProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.table.as_str() {
            "" => write!(f, "line {}: {}", self.line, self.description),
            table => write!(f, "line {}: [{table}]: {}", self.line, self.description),
        }
    }
}

/// Collects problems with their lines.
pub(crate) struct ProblemCollector {
    /// Offset of each line but the first.
    lines: Vec<usize>,
    found: Vec<NumberPlanProblem>,
}

impl ProblemCollector {
    fn of(text: &str) -> Self {
        Self { lines: text.match_indices('\n').map(|(at, _)| at + 1).collect(), found: Vec::new() }
    }

    pub(crate) fn add(&mut self, at: usize, table: &str, description: impl Into<String>) {
        let line = self.line(at);
        self.found.push(NumberPlanProblem { line, table: table.to_owned(), description: description.into() });
    }

    /// The line, from 1, of an offset in the text.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at) + 1
    }
}

/// `[plan.NAME]` without its tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PlanHeader {
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
    pub(crate) show: DisplayForm,
    #[serde(default = "route")]
    pub(crate) national: Spanned<String>,
    #[serde(default = "route")]
    pub(crate) international: Spanned<String>,
}

/// Display form of numbers of the plan's country.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DisplayForm {
    #[default]
    International,
    National,
}

fn route() -> Spanned<String> {
    Spanned::new(0..0, "route".to_owned())
}

/// A `[[plan.NAME.range]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RangeRow {
    pub(crate) name: String,
    pub(crate) numbers: Vec<Spanned<String>>,
    pub(crate) to: Spanned<String>,
    pub(crate) abbreviation: Option<Spanned<usize>>,
}

/// A `[[plan.NAME.short-code]]` or `[[plan.NAME.internal]]` table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ShortRow {
    pub(crate) name: String,
    pub(crate) numbers: Vec<Spanned<String>>,
    pub(crate) to: Spanned<String>,
}

/// Reads and validates a document.
pub(crate) fn read(text: &str) -> Result<NumberPlans, NumberPlanError> {
    let mut problems = ProblemCollector::of(text);
    let plans = match DeTable::parse(text) {
        Ok(table) => read_root(table.into_inner(), &mut problems),
        Err(error) => {
            problems.add(error.span().map_or(0, |span| span.start), "", error.message());
            None
        }
    };
    let mut found = problems.found;
    found.sort_by_key(|problem| problem.line);
    match plans {
        Some(plans) if found.is_empty() => Ok(plans),
        _ => Err(NumberPlanError(found)),
    }
}

fn read_root(root: DeTable<'_>, problems: &mut ProblemCollector) -> Option<NumberPlans> {
    let mut plans = BTreeMap::new();
    let mut default = None;
    for (key, value) in root {
        let at = key.span().start;
        match (key.get_ref().as_ref(), value.into_inner()) {
            ("default", DeValue::String(name)) => default = Some((at, name.into_owned())),
            ("default", _) => problems.add(at, "", "`default` must be the name of a plan, in quotes"),
            ("plan", DeValue::Table(tables)) => {
                for (name, value) in tables {
                    let (at, name) = (name.span().start, name.into_inner().into_owned());
                    let DeValue::Table(table) = value.into_inner() else {
                        problems.add(at, "plan", format!("{name:?} is not a plan; write [plan.{name}]"));
                        continue;
                    };
                    let plan = read_plan(&name, at, table, problems);
                    plans.insert(name, plan);
                }
            }
            ("plan", _) => problems.add(at, "", "plans are tables: [plan.NAME]"),
            (other, _) => problems.add(at, "", format!("{other:?} is unknown; known here: default, plan")),
        }
    }
    if plans.is_empty() {
        problems.add(
            0,
            "",
            "the document has no plan; write [plan.NAME] with `country-code` and `national-numbers`",
        );
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
            problems.add(0, "", "`default` is missing: name the default plan");
            return None;
        }
    };
    let plans = plans.into_iter().map(|(name, plan)| Some((name, plan?))).collect::<Option<_>>()?;
    Some(NumberPlans { plans, default })
}

fn read_plan(
    name: &str,
    at: usize,
    mut table: DeTable<'_>,
    problems: &mut ProblemCollector,
) -> Option<NumberPlan> {
    let path = format!("plan.{name}");
    let ranges = rows::<RangeRow>(&mut table, &path, "range", problems);
    let codes = rows::<ShortRow>(&mut table, &path, "short-code", problems);
    let internal = rows::<ShortRow>(&mut table, &path, "internal", problems);
    let head = read_table::<PlanHeader>(Spanned::new(at..at, DeValue::Table(table)), at, &path, problems)?;
    Some(build::plan(name, at, head, build::PlanRows { ranges, codes, internal }, problems))
}

/// The tables of an array of tables, with their offsets.
fn rows<T: DeserializeOwned>(
    table: &mut DeTable<'_>,
    path: &str,
    key: &str,
    problems: &mut ProblemCollector,
) -> Vec<(usize, T)> {
    let path = format!("{path}.{key}");
    let Some(value) = table.remove(key) else { return Vec::new() };
    let at = value.span().start;
    let DeValue::Array(items) = value.into_inner() else {
        problems.add(at, &path, format!("must be written as [[{path}]], once per entry"));
        return Vec::new();
    };
    let items = items.into_iter().map(|item| (item.span().start, item));
    items.filter_map(|(at, item)| Some((at, read_table(item, at, &path, problems)?))).collect()
}

fn read_table<T: DeserializeOwned>(
    value: Spanned<DeValue<'_>>,
    at: usize,
    path: &str,
    problems: &mut ProblemCollector,
) -> Option<T> {
    match T::deserialize(ValueDeserializer::from(value)) {
        Ok(read) => Some(read),
        Err(error) => {
            problems.add(error.span().map_or(at, |span| span.start), path, error.message());
            None
        }
    }
}
