//! Generates `docs/reference/cli.md` from the command line's declaration.

use crate::Arguments;
use crate::critical_thread::PANICKED;
use clap::{Command, CommandFactory};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Minimum number of commands with an option for listing it only once.
const COMMON: usize = 20;

fn head() -> String {
    format!(
        "# Command line\n\n\
         Generated from the declarations in `host/switchyard`, `host/cli`, `host/shell`, `host/traffic` and `host/workbench` \
         (`UPDATE=1 cargo test --workspace --lib --bins is_up_to_date`), do not edit.\n\n\
         [Command line](../guide/command-line.md) is the introduction. `switchyard COMMAND --help` prints the same text, and `switchyard man DIR` \
         writes it as manual pages.\n\n\
         ## Exit statuses\n\n\
         The help of a command lists its exit statuses. These are common:\n\n\
         | status | meaning |\n|---|---|\n\
         | 0 | done |\n\
         | 1 | the appliance refused, or the object does not exist; for `serve`, `check` and `restore`: an error, which standard error names |\n\
         | 2 | the command line or the token is wrong, or the appliance cannot be reached |\n\
         | 3 | `serve`: the store has failed; `doctor`: something is wrong |\n\
         | {PANICKED} | `serve`: a critical thread has panicked; the service manager restarts the daemon |\n"
    )
}

/// A help text in three parts: the lines before `Options:`, the lines of each option, and the rest.
struct Help {
    before: Vec<String>,
    options: Vec<Vec<String>>,
    after: Vec<String>,
}

impl Help {
    fn of(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        let start = lines.iter().position(|line| line == "Options:").unwrap_or(lines.len());
        let (before, rest) = lines.split_at(start);
        let rest = rest.get(1..).unwrap_or_default();
        let end =
            rest.iter().position(|line| !line.is_empty() && !line.starts_with(' ')).unwrap_or(rest.len());
        let (lines, after) = rest.split_at(end);
        let mut options: Vec<Vec<String>> = Vec::new();
        for line in lines.iter().filter(|line| !line.is_empty()) {
            let indent = line.len() - line.trim_start().len();
            match options.last_mut() {
                Some(option) if indent > 6 || !line.trim_start().starts_with('-') => {
                    option.push(line.clone());
                }
                _ => options.push(vec![line.clone()]),
            }
        }
        Self { before: before.to_vec(), options, after: after.to_vec() }
    }

    /// The text without the common options.
    fn without(&self, common: &BTreeSet<String>) -> String {
        let mut first = self.before.join("\n").trim_end().to_owned();
        let own: Vec<&Vec<String>> =
            self.options.iter().filter(|option| !common.contains(&words(option))).collect();
        if !own.is_empty() {
            first.push_str("\n\nOptions:");
        }
        for line in own.into_iter().flatten() {
            first.push('\n');
            first.push_str(line);
        }
        let after = self.after.join("\n");
        if after.trim().is_empty() { first } else { format!("{first}\n\n{}", after.trim()) }
    }
}

/// The words of an option's text, independent of the column width.
fn words(option: &[String]) -> String {
    option.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ")
}

/// Collects the help texts of a command and its subcommands.
fn add_help(command: &mut Command, path: &str, found: &mut Vec<(String, Help)>) {
    found.push((path.to_owned(), Help::of(&command.render_long_help().to_string())));
    for below in command.get_subcommands_mut() {
        if below.get_name() != "help" && !below.is_hide_set() {
            let path = format!("{path} {}", below.get_name());
            add_help(below, &path, found);
        }
    }
}

fn page() -> String {
    // Lines are not wrapped, since their width would depend on the terminal.
    let mut command = Arguments::command().name("switchyard").bin_name("switchyard").term_width(0);
    command.build();
    let mut helps = Vec::new();
    add_help(&mut command, "switchyard", &mut helps);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for option in helps.iter().flat_map(|(_, help)| &help.options) {
        *counts.entry(words(option)).or_default() += 1;
    }
    counts.retain(|_, count| *count >= COMMON);
    let common: BTreeSet<String> = counts.into_keys().collect();
    let mut text = head();
    let _ = writeln!(
        text,
        "\n## Common options\n\nThe sections below do not repeat these options. `switchyard COMMAND --help` tells which of them a command has.\n\n```text"
    );
    for option in &common {
        let _ = writeln!(text, "{option}");
    }
    let _ = writeln!(text, "```");
    for (path, help) in &helps {
        let _ = writeln!(text, "\n## {path}\n\n```text\n{}\n```", help.without(&common));
    }
    text
}

#[test]
fn command_line_reference_is_up_to_date() {
    testkit::reference_page::check("docs/reference/cli.md", &page());
}

#[test]
fn every_command_is_in_a_group_of_the_help() {
    let help = cli::with_help_groups(Arguments::command()).render_long_help().to_string();
    assert!(!help.contains("Others:"), "{help}");
}

#[test]
fn the_reference_has_every_command() {
    let page = page();
    for part in [
        "\n## switchyard serve\n",
        "\n## switchyard message find\n",
        "\n--json Print JSON",
        "Exit status:",
        "\n## switchyard plugin new\n",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}
