//! Reference pages: pages of the manual that a unit test generates from declarations in the program.
//!
//! The test compares the generated page with the file in the source tree. If the environment variable `UPDATE` is set, the test
//! writes the file instead.

use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// The command that regenerates all reference pages: the names of the tests that call [`check`] end with `is_up_to_date`. Each page
/// contains the command.
pub const COMMAND: &str = "UPDATE=1 cargo test --workspace --lib --bins is_up_to_date";

/// Maximum number of a line's characters in a message.
const MAX_EXCERPT: usize = 200;

/// Characters of a long line that are shown before the first difference.
const BEFORE_DIFFERENCE: usize = 60;

/// Compares the file at `path`, from the root of the source tree, with the generated page `wanted`. If the environment variable
/// `UPDATE` is set, writes the file instead.
///
/// # Panics
/// If the file differs from the page, or cannot be read or written, or if the page does not contain [`COMMAND`]. The message has the
/// path, the first line that differs, and the command.
#[track_caller]
#[allow(clippy::panic, reason = "the caller is a test, and fails")]
pub fn check(path: &str, wanted: &str) {
    let update = std::env::var_os("UPDATE").is_some();
    if let Err(error) = compare_or_write(&workspace::root(), path, wanted, update) {
        panic!("{error:#}");
    }
}

fn compare_or_write(root: &Path, path: &str, wanted: &str, update: bool) -> Result<()> {
    ensure!(wanted.contains(COMMAND), "{path} must name the command that generates it: {COMMAND}");
    let file = root.join(path);
    let found = std::fs::read_to_string(&file);
    if update {
        // Writing a file, even with the same text, makes cargo compile the crates that include it.
        if found.is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        return std::fs::write(&file, wanted).with_context(|| format!("writing {path}"));
    }
    let found = found.with_context(|| format!("reading {path}; to generate it, run {COMMAND}"))?;
    if let Some(difference) = first_difference(&found, wanted) {
        bail!("{path} is not up to date: {difference}\nTo regenerate the reference pages, run {COMMAND}");
    }
    Ok(())
}

/// The first line that differs, as a text. Line ends count: a page without its last line end differs.
fn first_difference(found: &str, wanted: &str) -> Option<String> {
    let (mut found_lines, mut wanted_lines) = (found.split('\n'), wanted.split('\n'));
    let mut number = 1;
    let (found, wanted) = loop {
        match (found_lines.next(), wanted_lines.next()) {
            (None, None) => return None,
            (found, wanted) if found == wanted => number += 1,
            different => break different,
        }
    };
    let pairs = found.unwrap_or_default().chars().zip(wanted.unwrap_or_default().chars());
    let same = pairs.take_while(|(found, wanted)| found == wanted).count();
    let (found, wanted) = (excerpt(found, same), excerpt(wanted, same));
    Some(format!("line {number}\n  is:        {found}\n  should be: {wanted}"))
}

/// A line, or that part of a long line that has the character at `position`. None: the page has no such line.
fn excerpt(line: Option<&str>, position: usize) -> String {
    let Some(line) = line else { return "(end of the page)".to_owned() };
    let omitted = line.chars().count().saturating_sub(MAX_EXCERPT);
    let start = position.saturating_sub(BEFORE_DIFFERENCE).min(omitted);
    let part: String = line.chars().skip(start).take(MAX_EXCERPT).collect();
    let (before, after) = (if start > 0 { "…" } else { "" }, if start < omitted { "…" } else { "" });
    format!("{before}{part:?}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "page.md";

    fn page(text: &str) -> String {
        format!("Generated: {COMMAND}\n{text}")
    }

    #[test]
    fn an_update_writes_the_page() {
        let folder = tempfile::tempdir().unwrap();
        let missing = compare_or_write(folder.path(), PATH, &page("a\n"), false).unwrap_err().to_string();
        assert!(missing.contains(PATH) && missing.contains(COMMAND), "{missing}");
        for text in ["a\n", "b\n"] {
            compare_or_write(folder.path(), PATH, &page(text), true).unwrap();
            assert_eq!(std::fs::read_to_string(folder.path().join(PATH)).unwrap(), page(text));
            compare_or_write(folder.path(), PATH, &page(text), false).unwrap();
        }
        let error = compare_or_write(folder.path(), "none/page.md", &page("a\n"), true).unwrap_err();
        assert!(error.to_string().contains("none/page.md"), "{error}");
    }

    #[test]
    fn an_update_leaves_an_equal_page_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(PATH);
        std::fs::write(&file, page("a\n")).unwrap();
        let long_ago = std::time::UNIX_EPOCH;
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
        compare_or_write(folder.path(), PATH, &page("a\n"), true).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), long_ago);
    }

    #[test]
    fn a_difference_is_reported_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(PATH);
        std::fs::write(&file, page("same\nold\nrest\n")).unwrap();
        let error = compare_or_write(folder.path(), PATH, &page("same\nnew\nrest\n"), false).unwrap_err();
        let expected = format!(
            "page.md is not up to date: line 3\n  is:        \"old\"\n  should be: \"new\"\n\
             To regenerate the reference pages, run {COMMAND}"
        );
        assert_eq!(error.to_string(), expected);
        assert_eq!(std::fs::read_to_string(file).unwrap(), page("same\nold\nrest\n"));
    }

    #[test]
    fn a_page_names_its_command() {
        let folder = tempfile::tempdir().unwrap();
        for update in [false, true] {
            let error = compare_or_write(folder.path(), PATH, "a\n", update).unwrap_err().to_string();
            assert!(error.contains(PATH) && error.contains(COMMAND), "{error}");
        }
        assert!(!folder.path().join(PATH).exists());
    }

    #[test]
    fn the_first_difference_is_found() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let shorter = first_difference("a\n", "a\nb\n").unwrap();
        assert_eq!(shorter, "line 2\n  is:        \"\"\n  should be: \"b\"");
        let no_last_end = first_difference("a", "a\n").unwrap();
        assert_eq!(no_last_end, "line 2\n  is:        (end of the page)\n  should be: \"\"");
        let other_ends = first_difference("a\r\n", "a\n").unwrap();
        assert_eq!(other_ends, "line 1\n  is:        \"a\\r\"\n  should be: \"a\"");
    }

    #[test]
    fn a_long_line_is_cut_around_the_difference() {
        let line = |middle: &str| format!("{}{middle}{}", "ä".repeat(300), "z".repeat(300));
        let text = first_difference(&line("1"), &line("2")).unwrap();
        for middle in ["1", "2"] {
            let part = format!("…\"{}{middle}{}\"…", "ä".repeat(BEFORE_DIFFERENCE), "z".repeat(139));
            assert!(text.contains(&part), "{text}");
        }
        let at_the_end = first_difference(&"a".repeat(300), &"a".repeat(301)).unwrap();
        assert!(at_the_end.contains(&format!("…\"{}\"\n", "a".repeat(200))), "{at_the_end}");
        assert_eq!(excerpt(Some(&"a".repeat(200)), 199), format!("{:?}", "a".repeat(200)));
    }
}
