//! The journal of a data directory: its display, its use in a restore, and damage.

use anyhow::{Context as _, Result, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, TIMEOUT, until};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// A daemon whose peer is down, so that messages wait. Its journal keeps records after they are in the tables.
fn config(fixture: &Fixture, name: &str) -> Result<TestDaemonConfig> {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join(name))?;
    config.account("acme", "").peer("upstream", nobody, "dlrs = false");
    config.tables("[engine]\njournal-retention = \"1h\"\n").native("upstream");
    Ok(config)
}

/// Runs `switchyard`; returns whether it succeeds, and its output.
fn run(fixture: &Fixture, words: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(fixture.binary()).args(words).output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}

fn submit(appliance: &TestDaemon, number: u64) -> Result<String> {
    let mut esme = Probe::bind(appliance.smpp(), "acme", PASSWORD, "861", false)?;
    esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))
}

/// Makes a backup without messages, accepts one, then another, and kills the daemon. Returns the backup, the ids, and a time
/// between the two.
fn two_messages(fixture: &Fixture, config: &TestDaemonConfig) -> Result<(PathBuf, [String; 2], String)> {
    let appliance = config.start()?;
    let backup = fixture.folder().join("backup.tar");
    let url = format!("http://{}/v1/backup", appliance.config().http());
    let asked = ureq::get(&url).header("authorization", format!("Bearer {}", appliance.token()?)).call()?;
    std::fs::write(&backup, asked.into_body().read_to_vec()?)?;
    let first = submit(&appliance, 1)?;
    let between = SystemTime::now();
    let later = || Ok(SystemTime::now().duration_since(between)?.as_millis() > 1);
    until("the clock goes on", later)?;
    let second = submit(&appliance, 2)?;
    appliance.kill()?;
    let between = time::OffsetDateTime::from(between);
    Ok((backup, [first, second], between.format(&time::format_description::well_known::Rfc3339)?))
}

fn refuses_to_start(config: &TestDaemonConfig, why: &str) -> Result<()> {
    let mut appliance = config.launch()?;
    appliance.wait_for_line(TIMEOUT, |line| line.contains(why))?;
    until("it ends", || Ok(appliance.ended()?.is_some_and(|status| !status.success())))
}

#[test]
fn the_journal_is_shown_while_the_daemon_runs_with_masked_numbers() -> Result<()> {
    let fixture = Fixture::new()?;
    let config = config(&fixture, "first")?;
    let appliance = config.start()?;
    let id = submit(&appliance, 1)?;
    let data = config.data();
    let (done, words) = run(&fixture, &["journal", "verify", "--data", text(&data)?])?;
    ensure!(done && words.contains("are intact") && words.contains("1 accepted messages"), "{words}");
    let (done, words) = run(&fixture, &["journal", "list", "--data", text(&data)?])?;
    ensure!(done && words.lines().count() == 2, "{words}");
    let (done, masked) = run(&fixture, &["journal", "show", "--data", text(&data)?])?;
    ensure!(done && masked.contains(&format!("accepted {id} from")) && masked.contains("**"), "{masked}");
    let (done, words) = run(&fixture, &["journal", "show", "--unmasked", "--data", text(&data)?])?;
    let line = words.lines().find(|line| line.contains("  accepted ")).unwrap_or_default();
    ensure!(done && !line.contains('*') && line.contains("octets: \""), "{words}");
    Ok(())
}

#[test]
fn a_restore_follows_the_journal_to_its_end_or_to_a_moment() -> Result<()> {
    let fixture = Fixture::new()?;
    let first = config(&fixture, "first")?;
    let (backup, [before, after], between) = two_messages(&fixture, &first)?;
    let journal = first.data().join("switchyard.journal");
    for (name, until, has_second) in [("whole", None, true), ("moment", Some(between.as_str()), false)] {
        let next = config(&fixture, name)?;
        let data = next.data();
        let mut words = vec!["restore", text(&backup)?, "--data", text(&data)?, "--journal", text(&journal)?];
        words.extend(until.iter().flat_map(|until| ["--until", until]));
        let (done, words) = run(&fixture, &words)?;
        ensure!(done && words.contains("batches of the journal were applied"), "{words}");
        let appliance = next.start()?;
        ensure!(appliance.get(&format!("/v1/messages/{before}"))?["state"] == "uncertain");
        let (status, reply) = appliance.request("GET", &format!("/v1/messages/{after}"), b"")?;
        ensure!((status == 200) == has_second, "{name}: {status} {reply}");
    }
    Ok(())
}

#[test]
fn a_damaged_or_missing_journal_stops_the_start() -> Result<()> {
    let fixture = Fixture::new()?;
    let config = config(&fixture, "first")?;
    let (_, ids, _) = two_messages(&fixture, &config)?;
    let journal = config.data().join("switchyard.journal");
    let file = config.write()?;
    let segment = std::fs::read_dir(&journal)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        // The next one is prepared, and has no records.
        .min()
        .context("no segment")?;
    let octets = std::fs::read(&segment)?;
    let mut damaged = octets.clone();
    // Within the first record. The following records show that it was complete.
    damaged[100] ^= 1;
    std::fs::write(&segment, &damaged)?;
    refuses_to_start(&config, "is damaged at octet")?;
    let data = config.data();
    let (done, words) = run(&fixture, &["journal", "verify", "--data", text(&data)?])?;
    ensure!(!done && words.contains("is damaged at octet"), "{words}");
    let (_, words) = run(&fixture, &["doctor", "--offline", "--config", text(&file)?])?;
    ensure!(words.lines().any(|line| line.starts_with("error") && line.contains("journal")), "{words}");
    std::fs::write(&segment, &octets)?;
    let aside = journal.with_extension("aside");
    std::fs::rename(&journal, &aside)?;
    refuses_to_start(&config, "when its journal was removed")?;
    std::fs::rename(&aside, &journal)?;
    let appliance = config.start()?;
    for id in ids {
        ensure!(appliance.get(&format!("/v1/messages/{id}"))?["finished"] == false, "{id}");
    }
    Ok(())
}
