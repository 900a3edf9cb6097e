//! State that the nodes share in addition to the log: configuration, users, plugins, tables, counters of plugins.

use crate::nodes::ClusterFixture;
use anyhow::{Context, Result, ensure};
use api::ClusterView;
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{AdminClient, TIMEOUT, bind, until};
use serde_json::{Value, json};
use testkit::database::Database;

/// A table that is too large for etcd: the nodes fetch it from each other.
fn large_table() -> Vec<u8> {
    (0..20_000).flat_map(|number| format!("49{number:05},germany\n").into_bytes()).collect()
}

/// The count that the router of a message saw.
pub(crate) fn counted(leader: &TestDaemon) -> Result<u64> {
    let mut esme = Probe::bind(leader.smpp(), "acme", PASSWORD, "861", false)?;
    let id = esme.submit(7)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    let trace = leader.get(&format!("/v1/messages/{id}"))?;
    let note = trace["routing"]["note"].as_str().context("no note")?;
    let count = note.split("counted ").nth(1).and_then(|rest| rest.split(',').next()).context("no count")?;
    Ok(count.parse()?)
}

/// Changes the configuration; returns its version.
pub(crate) fn change(leader: &TestDaemon, patch: &Value) -> Result<u64> {
    let version = leader.get("/v1/configuration")?["version"].as_u64().context("no version")?;
    let admin = AdminClient::root(leader)?.with_header("if-match", &format!("\"{version}\""));
    let changed = admin.ask("PATCH", "/v1/configuration", Some(patch))?;
    ensure!(changed.status == 200, "{}", changed.text);
    changed.json()?["version"].as_u64().context("no version")
}

#[test]
fn the_next_leader_has_the_changes_of_the_last_one() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node_without_router("a", "")?.start()?;
    // State that exists before the other node joins, and state that changes while it follows.
    let root = AdminClient::root(&leader)?;
    root.make_user("ann", "correct horse battery", &json!({ "role": "admin" }))?;
    leader.ask("PUT", "/v1/tables/early?kind=exact", b"a,b\n")?;
    let mut other = fixture.node_without_router("b", "")?;
    // This account never becomes part of the cluster's configuration.
    other.account("of-b-alone", "");
    let follower = other.follow()?;
    leader.wait_for_nodes(2)?;
    let token = root.make_token("robot", &json!({ "role": "operator" }))?;
    leader.ask("PUT", "/v1/tables/prefixes?kind=prefix", &large_table())?;
    leader.ask("DELETE", "/v1/tables/early", b"")?;
    let grants = json!({ "grants": { "counters": [{ "name": "asked", "window": "month", "zone": "Asia/Shanghai" }] } });
    let component = fixture.base.component("test_asker")?;
    let version = bind(&leader, "router", "asker", &component, "to upstream 1", &grants)?;
    change(&leader, &json!({ "attention": { "queue-age": "7m" } }))?;
    for expected in 1..=3 {
        assert_eq!(counted(&leader)?, expected);
    }
    // A backup writes the counts first.
    let backup = fixture.base.folder().join("backup.tar");
    let output = fixture.base.command(&leader).arg("backup").arg(&backup).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (before, tables) = (leader.get("/v1/configuration/versions")?, leader.get("/v1/tables")?);
    leader.kill()?;
    let leader = follower.ready()?;
    assert_eq!(leader.get("/v1/configuration/versions")?, before);
    assert_eq!(leader.get("/v1/tables")?, tables);
    let document = leader.get("/v1/configuration")?;
    assert_eq!(document["document"]["attention"]["queue-age"], "7m", "{document:#}");
    assert!(!document.to_string().contains("of-b-alone"));
    assert_eq!(document["document"]["cluster"]["node"], "b");
    let robot = AdminClient::anonymous(&leader).with_token(&token);
    assert_eq!(robot.ask("GET", "/v1/queues", None)?.status, 200);
    assert_eq!(leader.get("/v1/users/ann")?["role"], "admin");
    let hook = leader.get("/v1/hooks/router")?;
    assert_eq!(hook["live"]["chain"][0]["version"], version.as_str(), "{hook:#}");
    assert_eq!(counted(&leader)?, 4, "the counter goes on");
    Ok(())
}

#[test]
fn a_node_without_a_plugin_or_table_does_not_lead() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    let away = fixture.node("b", "")?.follow()?;
    leader.wait_for_nodes(2)?;
    let away = away.kill()?;
    leader.read_until(TIMEOUT, "/v1/cluster", |cluster: &ClusterView| {
        cluster.nodes.iter().any(|node| !node.alive)
    })?;
    leader.ask("PUT", "/v1/tables/prefixes?kind=prefix", &large_table())?;
    let dead = leader.kill()?;
    // etcd names the table, and only the dead node has it.
    let incomplete = away.follow_incomplete()?;
    incomplete.wait_for_line(TIMEOUT, |line| line.contains("not claiming the log"))?;
    let cluster: ClusterView = incomplete.read_until(TIMEOUT, "/v1/cluster", |cluster: &ClusterView| {
        cluster.nodes.iter().any(|node| node.name == "b" && node.lacks.is_some())
    })?;
    assert_eq!(cluster.role, api::ClusterRole::Follower);
    // Both nodes have the table as soon as the dead one returns; the node that claims first leads.
    let nodes = [dead.launch()?, incomplete];
    let leads = |node: &TestDaemon| node.request("GET", "/v1/ready", &[]).is_ok_and(|(code, _)| code == 200);
    until("one leads", || Ok(nodes.iter().any(leads)))?;
    let leader = nodes.iter().find(|node| leads(node)).context("none leads")?;
    leader.wait_for_nodes(2)?;
    assert_eq!(leader.get("/v1/tables")?[0]["name"], "prefixes");
    Ok(())
}

#[test]
fn a_file_that_only_one_node_has_keeps_the_other_from_leading() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    let follower = fixture.node("b", "")?.follow()?;
    leader.wait_for_nodes(2)?;
    let own = leader.config().data().join("of-a.txt");
    std::fs::write(&own, "secret")?;
    // Relative paths refer to each node's own folder.
    let peer = json!({ "address": "127.0.0.1:1", "system-id": "a", "password-file": "data/of-a.txt" });
    change(&leader, &json!({ "peer": { "more": peer } }))?;
    let lacking = |cluster: &ClusterView| {
        cluster
            .nodes
            .iter()
            .find(|node| node.name == "b")
            .is_some_and(|node| node.lacks.as_ref().is_some_and(|lacks| lacks.contains("of-a.txt")))
    };
    leader.read_until(TIMEOUT, "/v1/cluster", lacking)?;
    let refused = fixture.base.command(&leader).args(["cluster", "hand-over"]).output()?;
    assert!(!refused.status.success());
    std::fs::write(follower.config().data().join("of-a.txt"), "secret")?;
    change(&leader, &json!({ "attention": { "queue-age": "7m" } }))?;
    leader.wait_for_nodes(2)?;
    Ok(())
}

#[test]
fn the_audit_logs_of_all_nodes_are_in_the_archive() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let folder = fixture.base.folder().join("postgres");
    std::fs::create_dir_all(&folder)?;
    let database = Database::postgres(&folder)?;
    let url = database.create("audited")?;
    let node = |name: &str| -> Result<TestDaemonConfig> {
        let mut config = fixture.node(name, "")?;
        config.archive(&url);
        Ok(config)
    };
    let logged = |name: &str, what: &str| -> Result<bool> {
        let sql =
            format!("SELECT operation, subject, outcome FROM audit WHERE node = '{name}' ORDER BY serial");
        Ok(database.query_in("audited", &sql)?.iter().any(|row| row.join(" ") == what))
    };
    let leader = node("a")?.start()?;
    let follower = node("b")?.follow()?;
    leader.wait_for_nodes(2)?;
    leader.ask("PUT", "/v1/tables/one?kind=exact", b"a,b\n")?;
    until("the line of a", || logged("a", "PUT /v1/tables/{name} one done"))?;
    leader.kill()?;
    let leader = follower.ready()?;
    leader.ask("DELETE", "/v1/tables/one", b"")?;
    until("the line of b", || logged("b", "DELETE /v1/tables/{name} one done"))?;
    Ok(())
}

#[test]
fn a_file_that_only_a_dead_leader_offered_does_not_prevent_a_take_over() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let leader = fixture.node("a", "")?.start()?;
    let follower = fixture.node("b", "")?.follow()?;
    // A confirmed change: the leader has withdrawn the offers of former leaders.
    AdminClient::root(&leader)?.make_user("ann", "correct horse battery", &json!({ "role": "viewer" }))?;
    // The leader dies before another node has fetched the file of a plugin: then no node has it.
    let offer = format!("/switchyard/shared/offer/{}", "4f".repeat(32));
    fixture.servers.control(&["put", &offer, "522138"])?;
    fixture.servers.control(&["put", "/switchyard/changed", "1"])?;
    follower.wait_for_line(TIMEOUT, |line| line.contains("a file that the leader offers was not fetched"))?;
    leader.kill()?;
    let leader = follower.ready()?;
    until("the offer is withdrawn", || Ok(fixture.servers.control(&["get", &offer])?.is_empty()))?;
    let other = fixture.node("c", "")?.follow()?;
    drop((leader, other));
    Ok(())
}
