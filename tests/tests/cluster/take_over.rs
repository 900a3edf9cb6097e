use crate::nodes::{ClusterFixture, ended};
use anyhow::{Context, Result, ensure};
use api::{ClusterRole, ClusterView};
use behaviour_tests::test_daemon::free_port;
use behaviour_tests::{TIMEOUT, until};
use rustix::process::{Pid, Signal, kill_process};

/// The exit status of a leader that another node has replaced.
const REPLACED: i32 = 5;

#[test]
fn a_killed_leader_is_replaced_and_nothing_is_lost() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let mut leader = fixture.node("a", "")?.start()?;
    let mut follower = fixture.node("b", "")?.follow()?;
    let source = fixture.source()?;
    for _ in 0..3 {
        fixture.wait_for_traffic()?;
        let dead = leader.kill()?;
        leader = follower.ready()?;
        fixture.wait_for_traffic()?;
        follower = dead.follow()?;
    }
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    let cluster: ClusterView = leader.read("/v1/cluster")?;
    assert_eq!((cluster.node.as_str(), cluster.role, cluster.degraded), ("b", ClusterRole::Leader, false));
    assert_eq!(cluster.term, 4, "{cluster:#?}");
    let followed: ClusterView = follower.read("/v1/cluster")?;
    assert_eq!((followed.role, followed.leader.as_deref()), (ClusterRole::Follower, Some("b")));
    // Both end in order: the follower first, then the leader.
    assert!(follower.stop()?.0.success());
    assert!(leader.stop()?.0.success());
    let sums = fixture.tally.summary();
    assert_eq!((sums.missing, sums.unknown, sums.refused), (0, 0, 0), "{sums:?}");
    Ok(())
}

#[test]
fn the_lead_is_handed_over_without_a_duplicate() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    let alone = fixture.base.command(&leader).args(["cluster", "hand-over"]).output()?;
    let complaint = String::from_utf8_lossy(&alone.stderr);
    assert!(!alone.status.success() && complaint.contains("no other node is alive"), "{complaint}");
    let follower = fixture.node("b", "")?.follow()?;
    let source = fixture.source()?;
    fixture.wait_for_traffic()?;
    leader.wait_for_nodes(2)?;
    let output = fixture.base.command(&leader).args(["cluster", "hand-over"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (status, config) = ended(leader)?;
    assert!(status.success());
    let leader = follower.ready()?;
    let follower = config.follow()?;
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    let shown = fixture.base.command(&follower).args(["cluster", "status"]).output()?;
    let shown = String::from_utf8(shown.stdout)?;
    assert!(shown.contains("leader             b\n"), "{shown}");
    let (code, answer) = follower.request("GET", "/v1/ready", &[])?;
    let address = format!("http://{}", leader.config().http());
    assert!(code == 503 && answer.contains("following") && answer.contains(&address), "{answer}");
    let (code, answer) = follower.request("GET", "/v1/queues", &[])?;
    assert!(code == 503 && answer.contains(&address), "{answer}");
    let sums = fixture.tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unknown), (0, 0, 0), "{sums:?}");
    Ok(())
}

#[test]
fn a_leader_that_was_stopped_is_fenced_and_follows() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    // The stopped process keeps its listener.
    let mut other = fixture.node("b", "own-sections = [\"listener\"]")?;
    other.ports(free_port()?, free_port()?);
    let follower = other.follow()?;
    let source = fixture.source()?;
    fixture.wait_for_traffic()?;
    let id = Pid::from_raw(i32::try_from(leader.id())?).context("no process")?;
    kill_process(id, Signal::STOP)?;
    follower.wait_for_line(TIMEOUT, |line| line.contains(": leading "))?;
    kill_process(id, Signal::CONT)?;
    let (status, config) = ended(leader)?;
    assert_eq!(status.code(), Some(REPLACED));
    let leader = follower.ready()?;
    let follower = config.follow()?;
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    drop((leader, follower));
    let sums = fixture.tally.summary();
    assert_eq!((sums.missing, sums.unknown), (0, 0), "{sums:?}");
    Ok(())
}

#[test]
fn a_leader_without_etcd_answers_nothing_and_goes_on_with_it() -> Result<()> {
    let mut fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    let source = fixture.source()?;
    fixture.wait_for_traffic()?;
    // etcd elects a new leader, and the node asks another member.
    fixture.servers.kill(0);
    fixture.wait_for_traffic()?;
    fixture.servers.restart(0)?;
    for member in 0..2 {
        fixture.servers.pause(member, true)?;
    }
    leader.wait_for_line(TIMEOUT, |line| line.contains("append to etcd not answered"))?;
    for member in 0..2 {
        fixture.servers.pause(member, false)?;
    }
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    let (status, _) = leader.stop()?;
    assert!(status.success());
    Ok(())
}

#[test]
fn a_cluster_refuses_an_archive_in_a_file() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let mut config = fixture.node("a", "")?;
    config.archive("sqlite:archive.db");
    let (valid, words) = config.check()?;
    assert!(!valid && words.contains("archive.url") && words.contains("postgres://"), "{words}");
    Ok(())
}

#[test]
fn a_node_that_was_away_for_too_long_joins_with_a_snapshot() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "slots = 512")?.start()?;
    let away = fixture.node("b", "")?.follow()?.kill()?;
    let source = fixture.source()?;
    until("more records than etcd keeps", || Ok(leader.read::<ClusterView>("/v1/cluster")?.head > 1_200))?;
    assert!(leader.read::<ClusterView>("/v1/cluster")?.degraded);
    // Also while messages come.
    let follower = away.launch()?;
    follower.wait_for_line(TIMEOUT, |line| line.contains("tables replaced by a snapshot of the leader"))?;
    leader.read_until::<ClusterView>(TIMEOUT, "/v1/cluster", |cluster| !cluster.degraded)?;
    fixture.wait_for_traffic()?;
    source.stop();
    source.join()?;
    let before = leader.read::<ClusterView>("/v1/cluster")?.head;
    let alive = fixture.base.command(&leader).args(["cluster", "remove", "b"]).output()?;
    let complaint = String::from_utf8_lossy(&alive.stderr);
    assert!(!alive.status.success() && complaint.contains("b is alive"), "{complaint}");
    leader.kill()?;
    let leader = follower.ready()?;
    assert!(leader.read::<ClusterView>("/v1/cluster")?.head > before);
    leader.read_until::<ClusterView>(TIMEOUT, "/v1/cluster", |cluster| {
        cluster.nodes.iter().any(|node| node.name == "a" && !node.alive)
    })?;
    let removed = fixture.base.command(&leader).args(["cluster", "remove", "a"]).output()?;
    ensure!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    assert_eq!(leader.read::<ClusterView>("/v1/cluster")?.nodes.len(), 1);
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    // A new node has an empty disk, and joins in the same way.
    let new = fixture.node("c", "")?.launch()?;
    new.wait_for_line(TIMEOUT, |line| line.contains("tables replaced by a snapshot of the leader"))?;
    leader.read_until::<ClusterView>(TIMEOUT, "/v1/cluster", |cluster| {
        cluster.nodes.iter().any(|node| node.name == "c" && node.lacks.is_none() && node.durable >= before)
    })?;
    Ok(())
}
