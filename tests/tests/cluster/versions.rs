//! Nodes of several versions: upgrades one by one, and records that a node cannot read.
//!
//! There is one format of records so far. So both daemons of the upgrade are the same binary, unless
//! `SWITCHYARD_TEST_OLDER_DAEMON` is the path of an earlier one, and the nodes that read another format are written by the tests.

use crate::nodes::{ClusterFixture, ended};
use anyhow::{Context, Result, ensure};
use api::{ClusterNodeView, ClusterRole, ClusterView, RecordFormats};
use behaviour_tests::test_daemon::TestDaemon;
use behaviour_tests::{TIMEOUT, until};
use cluster::{Cluster, ClusterOptions, DegradedPolicy};
use journal::{Journal as _, NodeId, Seq};
use std::sync::Arc;
use testkit::built;
use tokio::runtime::Runtime;

/// A node of a version that reads and writes only records of a format after the newest one.
fn join_newer(fixture: &ClusterFixture, runtime: &Runtime) -> Result<Arc<Cluster>> {
    let options = ClusterOptions {
        node: "newer".to_owned(),
        partition: 0,
        endpoints: fixture.servers.endpoints(),
        prefix: "/switchyard".to_owned(),
        address: None,
        listen: ([127, 0, 0, 1], 0).into(),
        own_sections: Vec::new(),
        ca: None,
        certificate: None,
        key: None,
        user: String::new(),
        password: String::new(),
        degraded: DegradedPolicy::GoOn,
        slots: 1024,
        compress: true,
    };
    let format = codec::BatchFormat::NEWEST.number() + 1;
    let version = ("9.0.0", RecordFormats { oldest: format, newest: format });
    Ok(runtime.block_on(Cluster::join(options, "", version, runtime.handle().clone()))?)
}

fn node<'a>(cluster: &'a ClusterView, name: &str) -> Result<&'a ClusterNodeView> {
    cluster.nodes.iter().find(|node| node.name == name).with_context(|| format!("no {name}: {cluster:#?}"))
}

/// Waits until this node reports that it cannot read the log.
fn wait_until_unreadable(daemon: &TestDaemon, name: &str) -> Result<ClusterView> {
    daemon.wait_for_line(TIMEOUT, |line| line.contains("following stopped"))?;
    daemon.read_until(TIMEOUT, "/v1/cluster", |cluster: &ClusterView| {
        let lacks = node(cluster, name).ok().and_then(|node| node.lacks.as_deref());
        lacks.is_some_and(|lacks| lacks.contains("which a newer version wrote"))
    })
}

#[test]
fn a_record_of_a_newer_format_stops_the_follower_and_not_the_leader() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    let follower = fixture.node("b", "")?.follow()?;
    let runtime = Runtime::new()?;
    let newer = join_newer(&fixture, &runtime)?;
    // The follower cannot read the leader's records: the leader reports it, and continues.
    let shown = |leader: &TestDaemon| -> Result<String> {
        let output = fixture.base.command(leader).args(["cluster", "status"]).output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    until(
        "the leader knows the newer node",
        || Ok(shown(&leader)?.contains("a reads record formats up to")),
    )?;
    let source = fixture.source()?;
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;

    // The newer node becomes the leader, and writes records that the others cannot read.
    let mut journal = newer.journal(Seq(0));
    let mut writer = journal.claim(NodeId(9))?;
    let payload = [codec::BatchFormat::NEWEST.number() + 1, 0, 0, 0, 0];
    let unreadable = journal.append(&mut writer, &payload)?;
    let (status, config) = ended(leader)?;
    assert_eq!(status.code(), Some(5), "replaced");
    let cluster = wait_until_unreadable(&follower, "b")?;
    let lacks = node(&cluster, "b")?.lacks.clone().unwrap_or_default();
    assert!(lacks.starts_with(&format!("the records from {unreadable} on")), "{lacks}");
    assert!(shown(&follower)?.contains(&format!("b lacks {lacks}\n")), "{cluster:#?}");
    // The other node, too, when it returns; and the leader continues.
    let other = config.follow_incomplete()?;
    wait_until_unreadable(&other, "a")?;
    journal.append(&mut writer, &payload)?;

    // Now no node leads, and neither of them claims.
    for daemon in [&follower, &other] {
        daemon.wait_for_line(TIMEOUT, |line| line.contains("not claiming the log"))?;
        let cluster: ClusterView = daemon.read("/v1/cluster")?;
        assert_eq!((cluster.role, cluster.term), (ClusterRole::Follower, writer.term().0), "{cluster:#?}");
    }
    drop(runtime);
    assert!(follower.stop()?.0.success());
    assert!(other.stop()?.0.success());
    Ok(())
}

#[test]
fn nodes_are_upgraded_one_by_one_under_traffic() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let older_daemon = built::older_daemon()?;
    let leader = fixture.node("a", "")?.binary(&older_daemon).start()?;
    let follower = fixture.node("b", "")?.binary(&older_daemon).follow()?;
    // An absent node of a version that did not publish its formats: it reads only the first format.
    let older =
        r#"{"role":"follower","address":"http://192.0.2.3","version":"0.1.0","applied":0,"renewal":1}"#;
    fixture.servers.control(&["put", "/switchyard/node/older", older])?;
    leader.read_until(TIMEOUT, "/v1/cluster", |cluster: &ClusterView| node(cluster, "older").is_ok())?;
    let cluster: ClusterView = leader.read("/v1/cluster")?;
    assert_eq!((node(&cluster, "older")?.formats.newest, cluster.format), (1, 1), "{cluster:#?}");
    let source = fixture.source()?;
    fixture.wait_for_traffic()?;

    let hand_over = |leader: TestDaemon| -> Result<_> {
        leader.wait_for_nodes(2)?;
        let output = fixture.base.command(&leader).args(["cluster", "hand-over"]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (status, config) = ended(leader)?;
        ensure!(status.success(), "{status}");
        Ok(config)
    };
    // The follower first, then the leader; and back, so that both have led and followed after their upgrade.
    let (status, mut config) = follower.stop()?;
    assert!(status.success());
    fixture.wait_for_traffic()?;
    let follower = config.binary(fixture.base.binary()).follow()?;
    fixture.wait_for_traffic()?;
    let upgraded = hand_over(leader)?.binary(fixture.base.binary()).follow()?;
    let leader = follower.ready()?;
    fixture.wait_for_traffic()?;
    let follower = hand_over(leader)?.follow()?;
    let leader = upgraded.ready()?;
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    let sums = fixture.tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unknown), (0, 0, 0), "{sums:?}");
    let removed = fixture.base.command(&leader).args(["cluster", "remove", "older"]).output()?;
    ensure!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    drop(follower);
    Ok(())
}
