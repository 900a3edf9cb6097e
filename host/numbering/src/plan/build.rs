//! From what is written to a plan, with all that is wrong with it.

use super::{Plan, Range, SHORTEST, Short};
use crate::document::{self, Head, Problems};
use crate::number::Target;
use crate::pattern::{LONGEST, Written, is_digits};
use crate::ranges::Ranges;
use std::sync::Arc;
use toml::Spanned;

/// The tables within a plan, each with the place at which it begins.
pub(crate) struct Rows {
    pub(crate) ranges: Vec<(usize, document::Range)>,
    pub(crate) codes: Vec<(usize, document::Short)>,
    pub(crate) internal: Vec<(usize, document::Short)>,
}

/// Where in the document, and what was found so far.
struct Place<'p> {
    at: usize,
    table: &'p str,
    problems: &'p mut Problems,
}

impl Place<'_> {
    fn wrong(&mut self, what: impl Into<String>) {
        self.problems.add(self.at, self.table, what);
    }

    fn wrong_at<T>(&mut self, written: &Spanned<T>, what: impl Into<String>) {
        // What is not written at all has no place of its own.
        let at = if written.span().is_empty() { self.at } else { written.span().start };
        self.problems.add(at, self.table, what);
    }

    fn pattern(&mut self, written: &Spanned<String>) -> Option<Written> {
        Written::read(written.get_ref()).map_err(|what| self.wrong_at(written, what)).ok()
    }

    fn patterns(&mut self, key: &str, written: &[Spanned<String>]) -> Vec<crate::pattern::Pattern> {
        if written.len() > MOST {
            self.wrong(format!("`{key}` has {} patterns; at most {MOST} make sense", written.len()));
            return Vec::new();
        }
        written.iter().filter_map(|text| self.pattern(text)).flat_map(|written| written.patterns).collect()
    }

    fn target(&mut self, written: &Spanned<String>) -> Target {
        Target::read(written.get_ref()).unwrap_or_else(|what| {
            self.wrong_at(written, what);
            Target::Route
        })
    }

    fn digits(&mut self, key: &str, written: &Spanned<String>, most: usize) -> String {
        let text = written.get_ref();
        if !is_digits(text) || text.len() > most {
            self.wrong_at(
                written,
                format!("`{key}` has {text:?}; it takes 1 to {most} digits, without a plus sign"),
            );
        }
        text.clone()
    }
}

/// Forms of dialling in one list, at most.
const MOST: usize = 64;

pub(crate) fn plan(name: &str, at: usize, head: Head, rows: Rows, problems: &mut Problems) -> Plan {
    let table = format!("plan.{name}");
    let mut place = Place { at, table: &table, problems };
    if name.is_empty() || name.len() > 32 || name.chars().any(char::is_control) {
        place.wrong("a plan's name has 1 to 32 characters");
    }
    let country_code = place.digits("country-code", &head.country_code, 3);
    if country_code.starts_with('0') {
        place.wrong_at(&head.country_code, "`country-code` begins with a zero; none does");
    }
    let mut prefixes = |key, written: &[Spanned<String>]| -> Vec<String> {
        written.iter().map(|prefix| place.digits(key, prefix, 8)).collect()
    };
    let international_prefix = prefixes("international-prefix", &head.international_prefix);
    let trunk_prefix = prefixes("trunk-prefix", &head.trunk_prefix);
    if head.trunk_needed && trunk_prefix.is_empty() {
        place.wrong("`trunk-needed` goes with a `trunk-prefix`");
    }
    if head.national_numbers.is_empty() {
        place.wrong("`national-numbers` is empty; write what numbers look like after the country code");
    }
    let national = place.patterns("national-numbers", &head.national_numbers);
    let local = place.patterns("local-numbers", &head.local_numbers);
    let area_code_of_caller = head.area_code_of_caller.map(|length| {
        if !(1..=8).contains(length.get_ref()) {
            place.wrong_at(&length, "`area-code-of-caller` is how many digits an area code has: 1 to 8");
        }
        length.into_inner()
    });
    let area_code = head.area_code.map(|area| place.digits("area-code", &area, 8));
    let has_area = area_code_of_caller.is_some() || area_code.is_some();
    if has_area == head.local_numbers.is_empty() {
        place.wrong("`local-numbers` goes with `area-code-of-caller` or `area-code`, and they with it");
    }
    let to_national = place.target(&head.national);
    let to_international = place.target(&head.international);
    for (written, to) in [(&head.national, &to_national), (&head.international, &to_international)] {
        if *to == Target::Home {
            place.wrong_at(written, "only numbers in a range are at \"home\"");
        }
    }
    let mut plan = Plan {
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
        ranges: Ranges::default(),
        short: Ranges::default(),
        peers: Vec::new(),
    };
    for (key, rows, short) in [
        ("short-code", rows.codes, Short::Code as fn(Arc<Range>) -> Short),
        ("internal", rows.internal, Short::Internal),
    ] {
        let path = format!("{table}.{key}");
        for (at, row) in rows {
            short_form(&mut plan, row, short, &mut Place { at, table: &path, problems: place.problems });
        }
    }
    let path = format!("{table}.range");
    for (at, row) in rows.ranges {
        range(&mut plan, row, &mut Place { at, table: &path, problems: place.problems });
    }
    let targets = [&plan.to_national, &plan.to_international];
    let peers = targets.into_iter().filter_map(Target::peer).map(str::to_owned);
    plan.peers.extend(peers.collect::<Vec<_>>());
    plan
}

fn range(plan: &mut Plan, row: document::Range, place: &mut Place<'_>) {
    let to = place.target(&row.to);
    let Some(value) = named(plan, row.name, to, place) else { return };
    if row.numbers.is_empty() {
        place.wrong("`numbers` is empty; write patterns, ranges or numbers");
    }
    let abbreviation = row.abbreviation.map(|length| {
        if !(2..=8).contains(length.get_ref()) || value.to != Target::Home {
            place.wrong_at(
                &length,
                "`abbreviation` is how many of the last digits are enough within the network: 2 to 8, in a range that \
                 leads to \"home\"",
            );
        }
        length.into_inner()
    });
    for text in &row.numbers {
        let (written, prefix) = match text.get_ref().strip_prefix('+') {
            Some(rest) => (Written::read(rest), ""),
            None => (Written::read(text.get_ref()), plan.country_code.as_str()),
        };
        let written = match written {
            Ok(written) => written.after(prefix),
            Err(what) => {
                place.wrong_at(text, what);
                continue;
            }
        };
        let (least, most) = written.lengths();
        if most < SHORTEST || least > LONGEST || written.may_begin_with_zero() {
            place.wrong_at(
                text,
                format!(
                    "{:?} is no international number: with the country code it has {SHORTEST} to {LONGEST} digits, and \
                     the first is no zero; what stands without a plus sign gets the country code in front",
                    text.get_ref()
                ),
            );
            continue;
        }
        let line = place.problems.line(text.span().start);
        if let Some(length) = abbreviation {
            abbreviate(plan, &written, length, text, place);
        }
        if let Err(what) = plan.ranges.add(written, &value, line) {
            place.wrong_at(text, format!("{:?} {what}", text.get_ref()));
        }
    }
}

fn abbreviate(
    plan: &mut Plan,
    written: &Written,
    length: usize,
    text: &Spanned<String>,
    place: &mut Place<'_>,
) {
    let line = place.problems.line(text.span().start);
    for pattern in &written.patterns {
        let Some((before, ending)) = pattern.ending(length) else {
            place.wrong_at(
                text,
                format!(
                    "{:?} has numbers that differ before their last {length} digits, so that an abbreviation would not \
                     name one; write them as ranges of their own",
                    text.get_ref()
                ),
            );
            return;
        };
        let ending = Written::of(ending);
        if let Err(what) = plan.short.add_apart(ending, &Short::Abbreviation(before), line) {
            place.wrong_at(text, format!("the abbreviation of {:?} {what}", text.get_ref()));
        }
    }
}

fn short_form(plan: &mut Plan, row: document::Short, short: fn(Arc<Range>) -> Short, place: &mut Place<'_>) {
    let to = place.target(&row.to);
    let Some(value) = named(plan, row.name, to, place) else { return };
    if row.numbers.is_empty() {
        place.wrong("`numbers` is empty; write patterns, ranges or numbers");
    }
    let value = short(value);
    for text in &row.numbers {
        let Some(written) = place.pattern(text) else { continue };
        let line = place.problems.line(text.span().start);
        if let Err(what) = plan.short.add(written, &value, line) {
            place.wrong_at(text, format!("{:?} {what}", text.get_ref()));
        }
    }
}

/// A range with its name, which goes into traces.
fn named(plan: &mut Plan, name: String, to: Target, place: &mut Place<'_>) -> Option<Arc<Range>> {
    if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
        place.wrong("`name` has 1 to 64 characters: it goes into the traces of messages");
        return None;
    }
    plan.peers.extend(to.peer().map(str::to_owned));
    Some(Arc::new(Range { name, to }))
}
