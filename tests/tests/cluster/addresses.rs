//! Ways for clients to find the leader: the configurations of the manual's page, used by the programs that they are
//! for.

use crate::nodes::ClusterFixture;
use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::free_port;
use behaviour_tests::{Fixture, until};
use std::net::SocketAddr;
use std::process::Command;
use testkit::program::Program;

/// The block of the page that contains these words.
fn block(words: &str) -> Result<String> {
    let page = std::fs::read_to_string(workspace::root().join("docs/guide/cluster.md"))?;
    let blocks = page.split("```ini\n").skip(1).filter_map(|rest| rest.split("```").next());
    let found = blocks.into_iter().find(|block| block.contains(words));
    Ok(found.with_context(|| format!("the page has no block with {words:?}"))?.to_owned())
}

#[test]
fn haproxy_leads_esmes_to_the_leader() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    // On one machine, each needs ports of its own.
    let own = "own-sections = [\"listener\"]";
    let mut one = fixture.node("a", own)?;
    let mut other = fixture.node("b", own)?;
    for config in [&mut one, &mut other] {
        config.ports(free_port()?, free_port()?);
    }
    let front = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let mut text = block("frontend smpp")?.replace("192.0.2.10:2775", &front.to_string());
    for (address, config) in [("192.0.2.1", &one), ("192.0.2.2", &other)] {
        let there = format!("{address}:2775 check port 8080");
        ensure!(text.contains(&there), "the page has no {there:?}");
        text = text.replace(&there, &format!("{} check port {}", config.smpp(), config.http().port()));
    }
    let folder = fixture.base.folder().join("haproxy");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("haproxy.cfg"), text)?;
    let mut command = Command::new("/usr/sbin/haproxy");
    let _haproxy = Program::start("haproxy", &folder, command.args(["-db", "-f", "haproxy.cfg"]), &[front])?;

    let leader = one.start()?;
    let follower = other.follow()?;
    let source = fixture.source_at(front)?;
    fixture.wait_for_traffic()?;
    leader.kill()?;
    let leader = follower.ready()?;
    fixture.wait_for_traffic()?;
    let sessions = leader.read::<serde_json::Value>("/v1/links")?.to_string();
    ensure!(sessions.contains("acme"), "the ESME is not at the new leader: {sessions}");
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    Ok(())
}

/// Runs in a network namespace of its own: starts the daemon and keepalived until the address exists; then kills the
/// daemon, and waits until the address is removed.
const WITH_KEEPALIVED: &str = r#"
set -eu
ip link set lo up
ip link add eth0 type veth peer name eth1
ip link set eth1 up
ip address add 192.0.2.1/24 dev eth0
ip link set eth0 up
"$DAEMON" serve --config switchyard.toml 2> switchyard.log &
daemon=$!
/usr/sbin/keepalived --dont-fork --log-console --vrrp --use-file keepalived.conf --pid keepalived.pid --vrrp_pid vrrp.pid     2> keepalived.log > keepalived.log &
keepalived=$!
trap 'kill $keepalived 2> kill.log || true; kill -9 $daemon 2> kill.log || true' EXIT
address() { ip -oneline address show dev eth0 | grep -q 192.0.2.10/; }
wait_until() { for turn in $(seq 600); do if "$@"; then return 0; fi; sleep 0.1; done; tail keepalived.log switchyard.log; return 1; }
is_gone() { ! address; }
wait_until address
kill -9 $daemon
wait_until is_gone
"#;

#[test]
fn keepalived_moves_the_address_of_the_leader() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.ports(2775, 8080);
    let folder = fixture.folder().join("keepalived");
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(config.write()?, folder.join("switchyard.toml"))?;
    std::fs::write(folder.join("keepalived.conf"), block("vrrp_instance")?)?;
    let mut command = Command::new("unshare");
    command.arg("--net");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let output = command
        .args(["sh", "-c", WITH_KEEPALIVED])
        .env("DAEMON", fixture.binary())
        .current_dir(&folder)
        .output()
        .context("running unshare")?;
    let words = [output.stdout, output.stderr].concat();
    ensure!(
        output.status.success(),
        "in a network namespace, which needs root or user namespaces: {}",
        String::from_utf8_lossy(&words)
    );
    Ok(())
}
