//! A peer that permits one bind has a home: one partition has the link, and the other submits to it.

use crate::nodes::{ClusterFixture, queue};
use anyhow::{Context as _, Result, ensure};
use api::{ClusterView, UncertainPageView};
use behaviour_tests::load::{Probe, SinkOptions, Source, SourceOptions};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{TIMEOUT, until};
use serde_json::json;
use std::net::SocketAddr;

/// The account of partition 1 at the home of the peer.
const PARTITION_ACCOUNT: &str = "partition-1/upstream";

/// A peer with one bind that sends DLRs.
fn sole() -> SinkOptions {
    SinkOptions { receipts: true, sole_bind: true, ..SinkOptions::default() }
}

/// A node of a partition; partition 0 is the home of the peer.
fn node(fixture: &ClusterFixture, name: &str, partition: u8) -> Result<TestDaemonConfig> {
    let mut config = fixture.partition_node_with(name, partition, &[], "partition = 0")?;
    // A DLR of a message whose answer was lost is matched soon.
    config.tables("[engine]\norphan-dlr-retention = \"1s\"\n");
    Ok(config)
}

/// Traffic of an account, of which each message asks for a DLR.
fn source(fixture: &ClusterFixture, address: SocketAddr, account: &str) -> Result<Source> {
    let mut options = SourceOptions::new(address, account, PASSWORD);
    (options.reconnect, options.rate, options.track_receipts) = (true, Some(150.0), true);
    Source::start(&options, &fixture.tally)
}

/// Submits a message; returns its id.
fn submit(node: &TestDaemon, account: &str, number: u64) -> Result<String> {
    let mut esme = Probe::bind(node.smpp(), account, PASSWORD, "992", false)?;
    esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))
}

/// The uncertain messages of an account.
fn uncertain(node: &TestDaemon, account: &str) -> Result<Vec<String>> {
    let page: UncertainPageView = node.read("/v1/uncertain?limit=1000")?;
    Ok(page.messages.into_iter().filter(|one| one.account == account).map(|one| one.id).collect())
}

/// Waits until all messages have arrived, with a DLR each, but for those that are uncertain.
fn settle(fixture: &ClusterFixture, of_zero: &TestDaemon, of_one: &TestDaemon) -> Result<()> {
    let settled = until("all that has arrived has a DLR, and the queues are empty", || {
        let waiting =
            [queue(of_zero, "upstream")?, queue(of_one, "upstream")?, queue(of_zero, PARTITION_ACCOUNT)?];
        let is_idle = waiting
            .iter()
            .all(|queue| ["queued", "in_flight", "deferred"].iter().all(|state| queue[*state] == 0));
        Ok(is_idle && fixture.tally.arrived_without_receipt(1).is_empty())
    });
    let left = fixture.tally.arrived_without_receipt(20);
    settled.with_context(|| format!("{:?}, without a DLR {left:?}", fixture.tally.summary()))?;
    // What is uncertain has not arrived: otherwise its DLR would have settled it.
    for (node, account) in [(of_zero, "acme"), (of_one, "zenith")] {
        let ids = uncertain(node, account)?;
        if !ids.is_empty() {
            let request = json!({ "remedy": "send-again", "ids": ids });
            let settled = node.ask("POST", "/v1/uncertain/settle", request.to_string().as_bytes())?;
            ensure!(settled["settled"] == ids.len(), "{settled}");
        }
    }
    until("the uncertain messages arrive, with DLRs", || Ok(fixture.tally.without_receipt(1).is_empty()))?;
    let sums = fixture.tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unknown, sums.refused), (0, 0, 0, 0), "{sums:?}");
    Ok(())
}

#[test]
fn a_peer_with_a_home_has_one_link_for_all_partitions() -> Result<()> {
    let fixture = ClusterFixture::with_sink(sole())?;
    let zero = node(&fixture, "a", 0)?.start()?;
    let one = node(&fixture, "b", 1)?.start()?;
    let sources = [source(&fixture, zero.smpp(), "acme")?, source(&fixture, one.smpp(), "zenith")?];
    fixture.wait_for_traffic()?;
    sources.iter().for_each(Source::stop);
    settle(&fixture, &zero, &one)?;
    for source in sources {
        source.quit();
        source.join()?;
    }
    assert_eq!(fixture.tally.repeated_receipts(), 0);

    // The outcome is the peer's: its id, its refusal.
    let number = 1_900_000;
    let id = submit(&one, "zenith", number)?;
    let path = format!("/v1/messages/{id}");
    let trace = one.wait_until(TIMEOUT, &path, |trace| trace["finished"] == true)?;
    ensure!(trace["state"] == "relayed" || trace["state"] == "delivered", "{trace:#}");
    fixture.sink.behave(SinkOptions { error_status: 0x45, error_every: 1, ..sole() });
    let id = submit(&one, "zenith", number + 1)?;
    let path = format!("/v1/messages/{id}");
    let trace = one.wait_until(TIMEOUT, &path, |trace| trace["finished"] == true)?;
    ensure!(trace["state"] == "failed" && trace.to_string().contains("69"), "{trace:#}");
    fixture.sink.behave(sole());

    // At the home they are those of the partition.
    let listed = zero.get(&format!("/v1/messages?account={PARTITION_ACCOUNT}&limit=5"))?;
    ensure!(listed.to_string().contains(PARTITION_ACCOUNT), "{listed:#}");
    assert_eq!(queue(&zero, PARTITION_ACCOUNT)?["queued"], 0);

    // Without the home, messages wait.
    let home = zero.kill()?;
    until("the queue names the home", || {
        submit(&one, "zenith", number + 2)?;
        Ok(queue(&one, "upstream")?["blocked_by"] == "no connection to the home partition of the peer")
    })?;
    let zero = home.start()?;
    until("the queue is empty again", || Ok(queue(&one, "upstream")?["queued"] == 0))?;
    assert_eq!(fixture.tally.summary().refused_arrived, 0);
    drop((zero, one));
    Ok(())
}

#[test]
fn leaders_of_home_and_origin_die_and_nothing_is_missing_or_submitted_twice() -> Result<()> {
    let fixture = ClusterFixture::with_sink(sole())?;
    let zero = node(&fixture, "a", 0)?.start()?;
    let one = node(&fixture, "b", 1)?.start()?;
    let other_zero = node(&fixture, "b", 0)?.follow()?;
    let other_one = node(&fixture, "a", 1)?.follow()?;
    let sources = || {
        Ok::<_, anyhow::Error>([
            source(&fixture, one.smpp(), "acme")?,
            source(&fixture, one.smpp(), "zenith")?,
        ])
    };

    // The home's leader dies. Everything comes to the other partition's.
    let before = sources()?;
    fixture.wait_for_traffic()?;
    zero.kill()?;
    let zero = other_zero.ready()?;
    fixture.wait_for_traffic()?;
    before.iter().for_each(Source::stop);
    settle(&fixture, &zero, &one)?;
    for source in before {
        source.quit();
        source.join()?;
    }

    // The other partition's leader dies. Everything comes to the home's.
    let after = [source(&fixture, zero.smpp(), "acme")?, source(&fixture, zero.smpp(), "zenith")?];
    fixture.wait_for_traffic()?;
    one.kill()?;
    let one = other_one.ready()?;
    fixture.wait_for_traffic()?;
    after.iter().for_each(Source::stop);
    settle(&fixture, &zero, &one)?;
    for source in after {
        source.quit();
        source.join()?;
    }
    let cluster: ClusterView = zero.read("/v1/cluster")?;
    let leaders: Vec<_> =
        cluster.partitions.iter().map(|one| (one.partition, one.leader.as_deref())).collect();
    assert_eq!(leaders, [(0, Some("b")), (1, Some("a"))]);
    Ok(())
}

#[test]
fn mo_messages_reach_the_account_in_another_partition_and_stop_its_messages() -> Result<()> {
    let fixture = ClusterFixture::with_sink(sole())?;
    let keys = "partition = 0\ndefault-account = \"east\"";
    let node = |name: &str, partition| {
        let mut config = fixture.partition_node_with(name, partition, &[], keys)?;
        config.account("east", "partition = 1\nmo-partitions = [0]");
        config.tables("[[opt-out]]\nsenders = [\"10655\"]\nstop = [\"STOP\"]\n");
        Ok::<_, anyhow::Error>(config)
    };
    let zero = node("a", 0)?.start()?;
    let one = node("b", 1)?.start()?;
    let mut esme = Probe::bind(one.smpp(), "east", PASSWORD, "992", false)?;
    esme.submit(1)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;

    let subscriber = "9920000000001";
    fixture.sink.send_mo(subscriber, "10655", "hello");
    esme.wait_for_delivered(1, TIMEOUT)?;
    assert_eq!(esme.delivered, ["hello"]);
    for (node, account) in [(&zero, "upstream"), (&one, "partition-0/east")] {
        until("the MO message is delivered", || {
            let page = node.get("/v1/messages?limit=100")?;
            let mut messages = page["messages"].as_array().into_iter().flatten();
            Ok(messages.any(|message| {
                message["account"] == account
                    && message["source"] == subscriber
                    && message["state"] == "delivered"
            }))
        })?;
    }

    // While the account's partition has no leader, the message waits.
    let stopped = one.kill()?;
    fixture.sink.send_mo(subscriber, "10655", "STOP");
    until("the MO message waits", || Ok(queue(&zero, "east")?["queued"] == 1))?;
    let one = stopped.start()?;
    let mut esme = Probe::bind(one.smpp(), "east", PASSWORD, "992", false)?;
    esme.wait_for_delivered(1, TIMEOUT)?;
    assert_eq!(esme.delivered, ["STOP"]);
    ensure!(esme.submit_to(1, 2)?.is_err(), "the subscriber has opted out");
    ensure!(esme.submit_to(3, 3)?.is_ok(), "another subscriber has not");
    Ok(())
}

#[test]
fn a_home_needs_a_cluster_and_a_name_of_its_own() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let mut alone = fixture.base.config()?;
    alone.peer("upstream", fixture.sink.address(), "partition = 0");
    let (valid, words) = alone.check()?;
    ensure!(!valid && words.contains("belongs to none"), "{words}");
    let mut taken = node(&fixture, "a", 0)?;
    taken.account(PARTITION_ACCOUNT, "system-id = \"x\"");
    let (valid, words) = taken.check()?;
    ensure!(!valid && words.contains("is reserved for the account of a partition"), "{words}");
    Ok(())
}
