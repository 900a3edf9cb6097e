//! The help of the whole command line, in groups by task.

use clap::Command;
use std::fmt::Write as _;

/// The groups: the heading, and the commands in their order.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "See what happens",
        &["status", "top", "tail", "message", "history", "refusals", "explain", "subscriber"],
    ),
    ("Traffic", &["queue", "quarantine", "drain", "opt-out", "erase", "sms"]),
    ("Connections", &["peer", "account", "send", "sink"]),
    ("Decisions, numbers and money", &["plugin", "policy", "table", "pool", "ledger"]),
    ("Configuration", &["config", "check", "hash-password", "log-level"]),
    ("Access", &["login", "logout", "whoami", "context", "user", "token", "tenant", "audit"]),
    (
        "The appliance",
        &["serve", "doctor", "cluster", "backup", "restore", "journal", "privacy", "appliance"],
    ),
    ("This program", &["completions", "man", "help"]),
];

const EXAMPLES: &str = "Examples:
  switchyard status                               # one screen, and what needs attention
  switchyard message find --number 8613012345678  # where a message is
  switchyard queue list --sort -queued            # the fullest queues
  switchyard status --context lab                 # another appliance: see switchyard context
  switchyard queue --help                         # the commands, exit statuses and examples of a command";

/// The command line, with its commands in groups in the help. Commands that are in no group come last.
#[must_use]
pub fn with_help_groups(command: Command) -> Command {
    let mut commands: Vec<(String, String)> = command
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
        .map(|one| {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            (one.get_name().to_owned(), about.lines().next().unwrap_or_default().to_owned())
        })
        .collect();
    commands.push(("help".to_owned(), "Print this message or the help of a command".to_owned()));
    let width = commands.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    let mut print = |heading: &str, group: &[(String, String)]| {
        if !group.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{heading}:");
            for (name, about) in group {
                let _ = writeln!(text, "  {name:width$}  {about}");
            }
            text.push('\n');
        }
    };
    for (heading, names) in GROUPS {
        let mut group = Vec::new();
        for name in *names {
            let place = commands.iter().position(|(known, _)| known == name);
            group.extend(place.map(|place| commands.remove(place)));
        }
        print(heading, &group);
    }
    print("Others", &commands);
    // Braces in the texts would be read as parts of the template.
    let text = text.replace('{', "(").replace('}', ")");
    command.after_help(EXAMPLES).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::context;

    #[test]
    fn every_command_of_an_admin_is_in_a_group() {
        let mut command = with_help_groups((context().command)());
        let help = command.render_long_help().to_string();
        assert!(!help.contains("Others:"), "{help}");
        for one in command.get_subcommands() {
            assert_eq!(help.matches(&format!("\n  {} ", one.get_name())).count(), 1, "{}", one.get_name());
        }
        assert!(help.contains("Examples:") && help.contains("Usage: switchyard"), "{help}");
    }
}
