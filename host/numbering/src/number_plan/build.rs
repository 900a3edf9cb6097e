//! Builds a plan from the document and collects all problems.

use super::{MIN_DIGITS, NumberPlan, PlanRange, ShortForm};
use crate::document::{self, PlanHeader, ProblemCollector};
use crate::normalised_number::NumberTarget;
use crate::pattern_set::{MAX_DIGITS, PatternSet, is_digits};
use crate::range_map::RangeMap;
use std::sync::Arc;
use toml::Spanned;

/// The tables of a plan, with their offsets.
pub(crate) struct PlanRows {
    pub(crate) ranges: Vec<(usize, document::RangeRow)>,
    pub(crate) codes: Vec<(usize, document::ShortRow)>,
    pub(crate) internal: Vec<(usize, document::ShortRow)>,
}

/// Position in the document, and the problems so far.
struct TableContext<'p> {
    at: usize,
    table: &'p str,
    problems: &'p mut ProblemCollector,
}

impl TableContext<'_> {
    fn problem(&mut self, description: impl Into<String>) {
        self.problems.add(self.at, self.table, description);
    }

    fn problem_at<T>(&mut self, pattern_set: &Spanned<T>, description: impl Into<String>) {
        // A missing value has no offset of its own.
        let at = if pattern_set.span().is_empty() { self.at } else { pattern_set.span().start };
        self.problems.add(at, self.table, description);
    }

    fn pattern(&mut self, pattern_set: &Spanned<String>) -> Option<PatternSet> {
        PatternSet::parse(pattern_set.get_ref())
            .map_err(|description| self.problem_at(pattern_set, description))
            .ok()
    }

    fn patterns(&mut self, key: &str, pattern_set: &[Spanned<String>]) -> Vec<crate::pattern_set::Pattern> {
        if pattern_set.len() > MAX_DIALLING_FORMS {
            self.problem(format!(
                "`{key}` has {} patterns; the limit is {MAX_DIALLING_FORMS}",
                pattern_set.len()
            ));
            return Vec::new();
        }
        pattern_set
            .iter()
            .filter_map(|text| self.pattern(text))
            .flat_map(|pattern_set| pattern_set.patterns)
            .collect()
    }

    fn target(&mut self, pattern_set: &Spanned<String>) -> NumberTarget {
        NumberTarget::parse(pattern_set.get_ref()).unwrap_or_else(|description| {
            self.problem_at(pattern_set, description);
            NumberTarget::Route
        })
    }

    fn digits(&mut self, key: &str, pattern_set: &Spanned<String>, most: usize) -> String {
        let text = pattern_set.get_ref();
        if !is_digits(text) || text.len() > most {
            self.problem_at(
                pattern_set,
                format!("`{key}` has {text:?}; it must be 1 to {most} digits, without a plus sign"),
            );
        }
        text.clone()
    }
}

/// Maximum number of patterns in one list.
const MAX_DIALLING_FORMS: usize = 64;

pub(crate) fn plan(
    name: &str,
    at: usize,
    head: PlanHeader,
    rows: PlanRows,
    problems: &mut ProblemCollector,
) -> NumberPlan {
    let table = format!("plan.{name}");
    let mut context = TableContext { at, table: &table, problems };
    if name.is_empty() || name.len() > 32 || name.chars().any(char::is_control) {
        context.problem("the name of a plan must have 1 to 32 characters");
    }
    let country_code = context.digits("country-code", &head.country_code, 3);
    if country_code.starts_with('0') {
        context.problem_at(&head.country_code, "`country-code` must not begin with a zero");
    }
    let mut prefixes = |key, pattern_set: &[Spanned<String>]| -> Vec<String> {
        pattern_set.iter().map(|prefix| context.digits(key, prefix, 8)).collect()
    };
    let international_prefix = prefixes("international-prefix", &head.international_prefix);
    let trunk_prefix = prefixes("trunk-prefix", &head.trunk_prefix);
    if head.trunk_needed && trunk_prefix.is_empty() {
        context.problem("`trunk-needed` requires a `trunk-prefix`");
    }
    if head.national_numbers.is_empty() {
        context.problem("`national-numbers` is empty; write patterns of the numbers after the country code");
    }
    let national = context.patterns("national-numbers", &head.national_numbers);
    let local = context.patterns("local-numbers", &head.local_numbers);
    let area_code_of_caller = head.area_code_of_caller.map(|length| {
        if !(1..=8).contains(length.get_ref()) {
            context.problem_at(&length, "`area-code-of-caller` must be the length of an area code: 1 to 8");
        }
        length.into_inner()
    });
    let area_code = head.area_code.map(|area| context.digits("area-code", &area, 8));
    let has_area = area_code_of_caller.is_some() || area_code.is_some();
    if has_area == head.local_numbers.is_empty() {
        context.problem("`local-numbers` requires `area-code-of-caller` or `area-code`, and vice versa");
    }
    let to_national = context.target(&head.national);
    let to_international = context.target(&head.international);
    for (pattern_set, to) in [(&head.national, &to_national), (&head.international, &to_international)] {
        if *to == NumberTarget::Home {
            context.problem_at(pattern_set, "\"home\" is allowed for ranges only");
        }
    }
    let mut plan = NumberPlan {
        name: name.to_owned(),
        country_code,
        international_prefix,
        trunk_prefix,
        trunk_needed: head.trunk_needed,
        national,
        local,
        area_code_of_caller,
        area_code,
        show: head.show,
        to_national,
        to_international,
        ranges: RangeMap::default(),
        short: RangeMap::default(),
        peers: Vec::new(),
    };
    for (key, rows, short) in [
        ("short-code", rows.codes, ShortForm::Code as fn(Arc<PlanRange>) -> ShortForm),
        ("internal", rows.internal, ShortForm::Internal),
    ] {
        let path = format!("{table}.{key}");
        for (at, row) in rows {
            short_form(
                &mut plan,
                row,
                short,
                &mut TableContext { at, table: &path, problems: context.problems },
            );
        }
    }
    let path = format!("{table}.range");
    for (at, row) in rows.ranges {
        range(&mut plan, row, &mut TableContext { at, table: &path, problems: context.problems });
    }
    let targets = [&plan.to_national, &plan.to_international];
    let peers = targets.into_iter().filter_map(NumberTarget::peer).map(str::to_owned);
    plan.peers.extend(peers.collect::<Vec<_>>());
    plan
}

fn range(plan: &mut NumberPlan, row: document::RangeRow, context: &mut TableContext<'_>) {
    let to = context.target(&row.to);
    let Some(value) = named_range(plan, row.name, to, context) else { return };
    if row.numbers.is_empty() {
        context.problem("`numbers` is empty; write patterns, ranges or numbers");
    }
    let abbreviation = row.abbreviation.map(|length| {
        if !(2..=8).contains(length.get_ref()) || value.to != NumberTarget::Home {
            context.problem_at(
                &length,
                "`abbreviation` must be the number of last digits dialled within the network: 2 to 8, in a range that \
                 leads to \"home\"",
            );
        }
        length.into_inner()
    });
    for text in &row.numbers {
        let (pattern_set, prefix) = match text.get_ref().strip_prefix('+') {
            Some(rest) => (PatternSet::parse(rest), ""),
            None => (PatternSet::parse(text.get_ref()), plan.country_code.as_str()),
        };
        let pattern_set = match pattern_set {
            Ok(pattern_set) => pattern_set.after(prefix),
            Err(description) => {
                context.problem_at(text, description);
                continue;
            }
        };
        let (least, most) = pattern_set.lengths();
        if most < MIN_DIGITS || least > MAX_DIGITS || pattern_set.may_begin_with_zero() {
            context.problem_at(
                text,
                format!(
                    "{:?} is not an international number: with the country code it must have {MIN_DIGITS} to {MAX_DIGITS} digits, and \
                     no leading zero; the country code is prepended to a number without a plus sign",
                    text.get_ref()
                ),
            );
            continue;
        }
        let line = context.problems.line(text.span().start);
        if let Some(length) = abbreviation {
            abbreviate(plan, &pattern_set, length, text, context);
        }
        if let Err(description) = plan.ranges.add(pattern_set, &value, line) {
            context.problem_at(text, format!("{:?} {description}", text.get_ref()));
        }
    }
}

fn abbreviate(
    plan: &mut NumberPlan,
    pattern_set: &PatternSet,
    length: usize,
    text: &Spanned<String>,
    context: &mut TableContext<'_>,
) {
    let line = context.problems.line(text.span().start);
    for pattern in &pattern_set.patterns {
        let Some((before, ending)) = pattern.split_suffix(length) else {
            context.problem_at(
                text,
                format!(
                    "{:?} has numbers that differ before their last {length} digits, so an abbreviation would not \
                     name one; write them as ranges of their own",
                    text.get_ref()
                ),
            );
            return;
        };
        let ending = PatternSet::of(ending);
        if let Err(description) = plan.short.add_disjoint(ending, &ShortForm::Abbreviation(before), line) {
            context.problem_at(text, format!("the abbreviation of {:?} {description}", text.get_ref()));
        }
    }
}

fn short_form(
    plan: &mut NumberPlan,
    row: document::ShortRow,
    short: fn(Arc<PlanRange>) -> ShortForm,
    context: &mut TableContext<'_>,
) {
    let to = context.target(&row.to);
    let Some(value) = named_range(plan, row.name, to, context) else { return };
    if row.numbers.is_empty() {
        context.problem("`numbers` is empty; write patterns, ranges or numbers");
    }
    let value = short(value);
    for text in &row.numbers {
        let Some(pattern_set) = context.pattern(text) else { continue };
        let line = context.problems.line(text.span().start);
        if let Err(description) = plan.short.add(pattern_set, &value, line) {
            context.problem_at(text, format!("{:?} {description}", text.get_ref()));
        }
    }
}

/// Creates a named range; the name appears in traces.
fn named_range(
    plan: &mut NumberPlan,
    name: String,
    to: NumberTarget,
    context: &mut TableContext<'_>,
) -> Option<Arc<PlanRange>> {
    if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
        context.problem("`name` must have 1 to 64 characters: it appears in message traces");
        return None;
    }
    plan.peers.extend(to.peer().map(str::to_owned));
    Some(Arc::new(PlanRange { name, to }))
}
