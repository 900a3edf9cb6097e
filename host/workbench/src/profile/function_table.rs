//! The functions of a profile as a table for the terminal.

use super::call_tree::FunctionName;
use super::shorten;
use cli::format::{number, table, value_text};
use hooks::Profile;
use std::collections::{BTreeMap, BTreeSet};

/// Number of functions in the table.
const ROWS: usize = 20;
/// Maximum length of a name, in characters.
const NAME: usize = 72;
/// Maximum number of parts of a path.
const PARTS: usize = 3;

/// The end of a source path: paths of a language's library are long.
fn end_of(place: &str) -> String {
    let parts: Vec<&str> = place.split('/').collect();
    match parts.len().checked_sub(PARTS) {
        Some(more) if more > 0 => format!("…/{}", parts[more..].join("/")),
        _ => place.to_owned(),
    }
}

#[derive(Default)]
struct FunctionSamples {
    own: u64,
    total: u64,
    /// The samples in the function itself, by source line.
    source_lines: BTreeMap<String, u64>,
}

/// The table of the functions with the most samples. A recursive function counts once for a sample.
pub(super) fn write(profile: &Profile) -> String {
    let mut functions: BTreeMap<FunctionName, FunctionSamples> = BTreeMap::new();
    for stack in &profile.stacks {
        let names: BTreeSet<FunctionName> = stack.frames.iter().map(FunctionName::of).collect();
        for name in names {
            functions.entry(name).or_default().total += stack.samples;
        }
        let Some(last) = stack.frames.last() else { continue };
        let function = functions.entry(FunctionName::of(last)).or_default();
        function.own += stack.samples;
        if let Some(source) = &last.source {
            *function.source_lines.entry(source.clone()).or_default() += stack.samples;
        }
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by_key(|(_, samples)| std::cmp::Reverse((samples.own, samples.total)));
    let share = |samples: u64| format!("{:>5.1} %", samples as f64 * 100.0 / profile.samples.max(1) as f64);
    let rows: Vec<Vec<String>> = functions
        .iter()
        .take(ROWS)
        .map(|(name, samples)| {
            let place = samples.source_lines.iter().max_by_key(|(_, samples)| **samples);
            let place = place.map_or_else(|| "-".to_owned(), |(place, _)| value_text(&end_of(place)));
            vec![share(samples.own), share(samples.total), value_text(&shorten(&name.text(), NAME)), place]
        })
        .collect();
    let mut text = table(&["SELF", "TOTAL", "FUNCTION", "SOURCE"], &rows);
    let left = functions.len().saturating_sub(ROWS);
    if left > 0 {
        text.push_str(&format!("and {} more\n", number(left as u64)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::call_tree::tests::{profiled, sample};
    use super::*;

    #[test]
    fn functions_are_sorted_by_their_own_samples() {
        assert_eq!(
            write(&sample()),
            "SELF     TOTAL    FUNCTION           SOURCE\n\
             \u{20}50.0 %   66.7 %  find               lib.rs:7\n\
             \u{20}25.0 %  100.0 %  route              lib.rs:2\n\
             \u{20}16.7 %   16.7 %  host: peers.state  -\n\
             \u{20} 8.3 %    8.3 %  a;b<c>&\"d\"         -\n"
        );
    }

    #[test]
    fn long_paths_are_cut() {
        assert_eq!(end_of("/a/b/c/d.c:7"), "…/b/c/d.c:7");
        assert_eq!(end_of("src/lib.rs:7"), "src/lib.rs:7");
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let stacks = vec![profiled(&[("walk", ""), ("walk", ""), ("walk", "")], 5)];
        let text = write(&Profile { stacks, samples: 5, ..Profile::default() });
        assert!(text.contains("100.0 %  100.0 %  walk"), "{text}");
    }
}
