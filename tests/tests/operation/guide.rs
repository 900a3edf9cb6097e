//! The manual is complete: each command of the tutorial and of the guide is run by a test, or listed with the reason.

use anyhow::{Result, bail, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::manual::ManualPage;
use std::collections::BTreeSet;
use std::process::Command;

const README: &str = "README.md";
const FOLDERS: [&str; 2] = ["docs/tutorial", "docs/guide"];
/// The marks of command blocks.
pub(crate) const MARKS: [&str; 6] =
    ["sh", "sh build", "sh certificates", "sh cluster", "sh elsewhere", "sh machine"];

/// The pages of the tutorial walk, in order.
pub(crate) const TUTORIAL: [&str; 5] = [
    "docs/tutorial/first-message.md",
    "docs/tutorial/first-plugin.md",
    "docs/guide/configuration.md",
    "docs/guide/monitoring.md",
    "docs/guide/backup-and-upgrade.md",
];

/// The pages of the guide walk, in order. A page may need what an earlier one has created.
pub(crate) const GUIDE: [&str; 22] = [
    "docs/guide/install.md",
    "docs/guide/command-line.md",
    "docs/guide/tls-and-users.md",
    "docs/guide/accounts-and-binds.md",
    "docs/guide/tenants.md",
    "docs/guide/http-and-webhooks.md",
    "docs/guide/subscribers-command-line.md",
    "docs/guide/number-pools.md",
    "docs/guide/redis-clients.md",
    "docs/guide/smpp.md",
    "docs/guide/sgip.md",
    "docs/guide/gsm.md",
    "docs/guide/queues.md",
    "docs/guide/archive.md",
    "docs/guide/dlrs-and-retries.md",
    "docs/guide/plugins.md",
    "docs/guide/plugin-sources.md",
    "docs/guide/number-portability.md",
    "docs/guide/moving-from-kannel-and-jasmin.md",
    "docs/guide/billing.md",
    "docs/guide/operation.md",
    "docs/guide/privacy.md",
];

/// Commands of the manual that no test runs as they are, with the reason.
const ELSEWHERE: [(&str, &str); 12] = [
    ("cargo xtask demo", "runs until it is interrupted; `cargo xtask test all` runs it with --exit"),
    ("cargo xtask package", "builds two releases; `cargo xtask test all` runs its part --stage"),
    ("cargo xtask image", "builds a system of Debian's packages, as root"),
    ("cargo xtask test all", "is what runs this test"),
    (
        "switchyard privacy new-root-key /etc/switchyard/root.key",
        "writes outside of the test's folder; `tests/tests/operation/text_encryption.rs` runs it",
    ),
    (
        "switchyard context add lab --url http://127.0.0.1:8080 --token-file .state/data/token",
        "writes into the home folder; `tests/tests/http/access.rs` runs it",
    ),
    ("switchyard context list", "reads the home folder; `tests/tests/http/access.rs` runs it"),
    ("switchyard status --context lab", "needs that context; `tests/tests/http/access.rs` runs the like"),
    ("switchyard tail --account acme", "runs until it is interrupted; the tests of `cli` run it"),
    ("switchyard queue list --watch=5s", "runs until it is interrupted; the tests of `cli` run it"),
    (
        "switchyard plugin replay --hook receipt second-chance@VERSION --policy new.toml --from 2026-11-20T00:00:00Z \
         --until 2026-11-21T00:00:00Z",
        "needs recorded calls; `tests/tests/plugins/replays.rs` makes some",
    ),
    (
        "switchyard plugin replay --hook peer http-peer@VERSION --policy new.toml --set 'peers=[\"aggregator\"]' \
         --from 2026-11-20T00:00:00Z --until 2026-11-21T00:00:00Z --body",
        "needs recorded submissions; `tests/tests/plugins/replays.rs` makes some",
    ),
];

/// All pages of the tutorial and the guide, as paths from the top of the source tree.
fn pages() -> Result<Vec<String>> {
    let mut pages = Vec::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(workspace::root().join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages.sort();
    Ok(pages)
}

#[test]
fn each_page_with_commands_is_in_one_walk() -> Result<()> {
    let walked: Vec<&str> = TUTORIAL.into_iter().chain(GUIDE).collect();
    let pages = pages()?;
    for page in &pages {
        let has_commands = ManualPage::read(page, &MARKS)?.blocks.iter().any(|block| block.mark == "sh");
        let walks = walked.iter().filter(|path| *path == page).count();
        ensure!(walks == 1 || (walks == 0 && !has_commands), "{page} is in {walks} walks");
    }
    for path in walked {
        ensure!(pages.iter().any(|page| page == path), "{path} is in a walk and does not exist");
    }
    Ok(())
}

/// Commands that no test runs are at least parsed by the programs: each command, each option.
#[test]
fn commands_that_are_named_in_passing_are_there() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut pages_read = vec![ManualPage::read(README, &MARKS)?];
    for page in pages()? {
        pages_read.push(ManualPage::read(&page, &MARKS)?);
    }
    let elsewhere: BTreeSet<&str> = pages_read.iter().flat_map(ManualPage::commands_not_run).collect();
    let known: BTreeSet<&str> = ELSEWHERE.iter().map(|(command, _)| *command).collect();
    ensure!(
        elsewhere == known,
        "these are run nowhere: {elsewhere:?}; there is a reason for these: {known:?}"
    );
    let named: BTreeSet<String> = pages_read.iter().flat_map(ManualPage::named_commands).collect();
    ensure!(named.len() >= 20, "fewer than there were: {named:?}");
    let mut wrong = String::new();
    for command in &named {
        let mut words = command.split_whitespace();
        let mut program = match words.next() {
            Some("cargo") => {
                ensure!(words.next() == Some("xtask"), "what is this? {command}");
                Command::new(fixture.binary().with_file_name("xtask"))
            }
            Some("switchyard") => Command::new(fixture.binary()),
            _ => bail!("what is this? {command}"),
        };
        let output = program.args(words).arg("--help").output()?;
        if !output.status.success() {
            wrong.push_str(&format!("{command}: {}\n", String::from_utf8_lossy(&output.stderr)));
        }
    }
    ensure!(wrong.is_empty(), "{wrong}");
    Ok(())
}
