//! Event sinks and CDR files over take-overs.

use crate::nodes::ClusterFixture;
use anyhow::{Context as _, Result, ensure};
use api::{ClusterView, EventSinkView};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{SmsApi, TIMEOUT, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The ids of the messages that have an event of this type.
fn messages_with(sink: &SmsApi, kind: &str) -> BTreeSet<String> {
    let requests = sink.requests();
    let events = requests.iter().flat_map(|request| request.body.as_array().into_iter().flatten());
    let of_kind = events.filter(|event: &&Value| event["type"] == kind);
    of_kind.filter_map(|event| Some(event["data"]["message"].as_str()?.to_owned())).collect()
}

/// The messages in the CDR files of all nodes, in the order of the file numbers, and the names of the files.
fn records(folders: &[PathBuf]) -> Result<(Vec<String>, Vec<String>)> {
    let mut files = Vec::new();
    for folder in folders {
        let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.extend(found.map(|entry| entry.path()));
    }
    files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    let (mut messages, mut names) = (Vec::new(), Vec::new());
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        let ids: Vec<_> =
            text.lines().filter_map(|line| line.strip_prefix("R,")).map(str::to_owned).collect();
        if let Some(trailer) = text.lines().find_map(|line| line.strip_prefix("T,billing,")) {
            let count = trailer.split(',').nth(1).context("no count")?;
            ensure!(count == ids.len().to_string(), "{}: {trailer}, {} records", path.display(), ids.len());
        }
        messages.extend(ids);
        names.push(path.file_name().context("no name")?.to_string_lossy().into_owned());
    }
    Ok((messages, names))
}

fn config(fixture: &ClusterFixture, node: &str, keys: &str, sink: &SmsApi) -> Result<TestDaemonConfig> {
    let mut config = fixture.node(node, keys)?;
    config.tables(&format!(
        "[[event-sink]]\nname = \"crm\"\nurl = \"{}\"\ntypes = [\"accepted\", \"ended\"]\n\
         [[cdr]]\nname = \"billing\"\ncolumns = [\"message\"]\nmax-size = \"2KiB\"\n",
        sink.base_url()
    ));
    Ok(config)
}

#[test]
fn a_killed_leader_takes_no_event_along_and_repeats_no_cdr() -> Result<()> {
    let (fixture, sink) = (ClusterFixture::new()?, SmsApi::start()?);
    let nodes = [config(&fixture, "a", "", &sink)?, config(&fixture, "b", "", &sink)?];
    let folders: Vec<_> = nodes.iter().map(|node| node.data().join("cdr/billing")).collect();
    let [first, second] = nodes;
    let mut leader = first.start()?;
    let mut follower = second.follow()?;
    let source = fixture.source()?;
    let mut answered = BTreeSet::new();
    for round in 0..4 {
        fixture.wait_for_traffic()?;
        let mut esme = Probe::bind(leader.smpp(), "acme", PASSWORD, "861", false)?;
        for number in 0..40 {
            let id = esme.submit(round * 100 + number)?;
            answered.insert(id.map_err(|status| anyhow::anyhow!("refused with {status:#x}"))?);
        }
        let dead = leader.kill()?;
        leader = follower.ready()?;
        follower = dead.follow()?;
    }
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    let messages = check(&fixture, &leader, &sink, &folders)?;
    ensure!(messages.is_superset(&answered), "{} messages, {answered:?}", messages.len());
    for folder in &folders {
        ensure!(std::fs::read_dir(folder)?.count() > 1, "{} has no files", folder.display());
    }
    drop(follower);
    Ok(())
}

#[test]
fn a_node_that_has_just_joined_has_what_the_sinks_need() -> Result<()> {
    let (fixture, sink) = (ClusterFixture::new()?, SmsApi::start()?);
    let nodes = [config(&fixture, "a", "slots = 512", &sink)?, config(&fixture, "b", "", &sink)?];
    let folders: Vec<_> = nodes.iter().map(|node| node.data().join("cdr/billing")).collect();
    let [first, second] = nodes;
    let leader = first.start()?;
    let away = second.follow()?.kill()?;
    let source = fixture.source()?;
    until("more records than etcd keeps", || Ok(leader.read::<ClusterView>("/v1/cluster")?.head > 1_200))?;
    let follower = away.launch()?;
    follower.wait_for_line(TIMEOUT, |line| line.contains("tables replaced by a snapshot of the leader"))?;
    leader.wait_for_nodes(2)?;
    let dead = leader.kill()?;
    let leader = follower.ready()?;
    let follower = dead.follow()?;
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    check(&fixture, &leader, &sink, &folders)?;
    drop(follower);
    Ok(())
}

/// Checks that each accepted message has its events, and exactly one record in a file. Returns the messages.
fn check(
    fixture: &ClusterFixture,
    leader: &TestDaemon,
    sink: &SmsApi,
    folders: &[PathBuf],
) -> Result<BTreeSet<String>> {
    until("all messages have ended", || {
        Ok(fixture.tally.summary().missing == 0 && leader.get("/v1/status")?["waiting"] == 0)
    })?;
    let count = usize::try_from(fixture.tally.accepted_count())?;
    until("the sink has all events", || {
        let accepted = messages_with(sink, "switchyard.message.accepted");
        Ok(accepted.len() >= count && accepted == messages_with(sink, "switchyard.message.ended"))
    })?;
    let accepted = messages_with(sink, "switchyard.message.accepted");
    until("all records are written, and the files of dead leaders are complete", || {
        let (messages, names) = records(folders)?;
        let open = names.iter().filter(|name| name.ends_with(".part")).count();
        Ok(messages.len() >= accepted.len() && open <= 1)
    })
    .with_context(|| {
        let found = records(folders).map(|(messages, names)| (messages.len(), names));
        format!("{} messages, records and files: {found:?}", accepted.len())
    })?;
    let (messages, names) = records(folders)?;
    let ids: BTreeSet<_> = messages.iter().cloned().collect();
    ensure!(ids.len() == messages.len(), "{} records of {} messages", messages.len(), ids.len());
    ensure!(ids == accepted, "{} records, {} messages", ids.len(), accepted.len());
    for (number, name) in (1..).zip(&names) {
        ensure!(name.starts_with(&format!("billing-{number:08}.csv")), "{number}: {name}");
    }
    let sinks: Vec<EventSinkView> = leader.read("/v1/event-sinks")?;
    ensure!(sinks.len() == 2 && sinks.iter().all(|sink| sink.gaps == 0), "{sinks:?}");
    Ok(ids)
}
