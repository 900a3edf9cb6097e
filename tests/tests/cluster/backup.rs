//! A cluster is lost as a whole, and a backup of its leader creates the next one.

use crate::nodes::ClusterFixture;
use crate::shared_state::{change, counted};
use anyhow::{Context, Result, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{AdminClient, TIMEOUT, bind};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use testkit::etcd::EtcdServers;

/// A node whose messages wait for a peer that is down.
fn node(fixture: &ClusterFixture, folder: &str, name: &str) -> Result<TestDaemonConfig> {
    let mut config = fixture.node_in(folder, name, "")?;
    config.peer("closed", ([127, 0, 0, 1], free_port()?).into(), "uncertain = \"send-again\"");
    config.tables("[[cdr]]\nname = \"billing\"\ncolumns = [\"message\"]\n");
    Ok(config)
}

fn submit(leader: &TestDaemon) -> Result<String> {
    let mut esme = Probe::bind(leader.smpp(), "acme", PASSWORD, "861", false)?;
    esme.submit(7)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))
}

fn state(leader: &TestDaemon, id: &str) -> Result<String> {
    let message = leader.get(&format!("/v1/messages/{id}"))?;
    Ok(message["state"].as_str().context("no state")?.to_owned())
}

/// Restores the backup on a machine that is node a of the cluster in etcd.
fn restore(fixture: &ClusterFixture, backup: &Path, folder: &str) -> Result<TestDaemonConfig> {
    let config = node(fixture, folder, "a")?;
    // The file exists before the data directory: a later change of it would replace the restored configuration.
    config.write()?;
    let mut command = Command::new(fixture.base.binary());
    let output = command.arg("restore").arg(backup).arg("--data").arg(config.data()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(config)
}

#[test]
fn a_backup_of_the_leader_founds_a_new_cluster() -> Result<()> {
    let mut fixture = ClusterFixture::new()?;
    let leader = node(&fixture, "a", "a")?.start()?;
    let follower = node(&fixture, "b", "b")?.follow()?;
    leader.wait_for_nodes(2)?;
    let root = AdminClient::root(&leader)?;
    root.make_user("ann", "correct horse battery", &json!({ "role": "admin" }))?;
    let token = root.make_token("robot", &json!({ "role": "operator" }))?;
    leader.ask("PUT", "/v1/tables/early?kind=exact", b"a,b\n")?;
    let grants = json!({ "grants": { "counters": [{ "name": "asked", "window": "month", "zone": "Asia/Shanghai" }] } });
    let component = fixture.base.component("test_asker")?;
    let version = bind(&leader, "router", "asker", &component, "to closed 1", &grants)?;
    change(&leader, &json!({ "attention": { "queue-age": "7m" } }))?;
    assert_eq!(counted(&leader)?, 1);
    let waiting = submit(&leader)?;
    let backup = fixture.base.folder().join("backup.tar");
    let output = fixture.base.command(&leader).arg("backup").arg(&backup).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(leader.config().data().join("cluster-log").is_dir(), "the log is copied for the CDR files");
    let members = String::from_utf8(Command::new("tar").arg("tf").arg(&backup).output()?.stdout)?;
    ensure!(!members.contains("cluster-log") && !members.contains("node/"), "{members}");
    let lost = submit(&leader)?;
    drop((leader.kill()?, follower.kill()?));

    // etcd still has the log of the old cluster, with records after the backup: that is another history.
    let refused = restore(&fixture, &backup, "refused")?.launch()?;
    refused.wait_for_line(TIMEOUT, |line| line.contains("name a new prefix"))?;
    drop(refused);

    // etcd is lost, too. One machine gets the backup.
    fixture.servers = EtcdServers::start(&fixture.base.folder().join("etcd-2"), 3, None)?;
    let leader = restore(&fixture, &backup, "restored")?.start()?;
    assert_eq!(state(&leader, &waiting)?, "uncertain");
    assert_eq!(leader.request("GET", &format!("/v1/messages/{lost}"), &[])?.0, 404);
    let check = |leader: &TestDaemon| -> Result<()> {
        let robot = AdminClient::anonymous(leader).with_token(&token);
        assert_eq!(robot.ask("GET", "/v1/queues", None)?.status, 200);
        assert_eq!(leader.get("/v1/users/ann")?["role"], "admin");
        assert_eq!(leader.get("/v1/tables")?[0]["name"], "early");
        let document = leader.get("/v1/configuration")?;
        assert_eq!(document["document"]["attention"]["queue-age"], "7m", "{document:#}");
        let hook = leader.get("/v1/hooks/router")?;
        assert_eq!(hook["live"]["chain"][0]["version"], version.as_str(), "{hook:#}");
        Ok(())
    };
    check(&leader)?;
    leader.wait_until(TIMEOUT, "/v1/event-sinks", |sinks| sinks[0]["state"] == "up")?;
    assert_eq!(counted(&leader)?, 3, "the count of the backup goes on");
    let new = submit(&leader)?;
    assert_ne!(new, lost, "an id is never used twice");

    // Another machine joins with an empty disk, and has all messages when the first one dies.
    let follower = node(&fixture, "c", "c")?.follow()?;
    leader.wait_for_nodes(2)?;
    leader.kill()?;
    let leader = follower.ready()?;
    assert_eq!(state(&leader, &waiting)?, "uncertain");
    assert_eq!(state(&leader, &new)?, "queued");
    check(&leader)?;
    Ok(())
}
