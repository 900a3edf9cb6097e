//! Two partitions, each led by one of two nodes and followed by the other. All requests come to one address.

use crate::nodes::ClusterFixture;
use crate::shared_state::change;
use anyhow::{Context, Result, ensure};
use api::ClusterView;
use behaviour_tests::load::{Probe, Source, SourceOptions};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{AdminClient, TIMEOUT, until};
use model::MessageId;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Basic credentials of the account `shop`.
const SHOP: &str = "Basic c2hvcDpzZWNyZXQ=";
/// ESME_RBINDFAIL.
const BIND_FAILED: &str = "0xd";

/// Submits a message at this address; returns its id.
fn submit(address: SocketAddr, account: &str, number: u64) -> Result<MessageId> {
    let mut esme = Probe::bind(address, account, PASSWORD, "992", false)?;
    let id = esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
    Ok(id.parse()?)
}

/// Calls the API of business systems at this address as the account `shop`; returns status and body.
fn call(address: SocketAddr, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let url = format!("http://{address}{path}");
    let mut answer = match body {
        Some(body) => agent
            .post(url)
            .header("authorization", SHOP)
            .header("content-type", "application/json")
            .send(body.to_string())?,
        None => agent.get(url).header("authorization", SHOP).call()?,
    };
    let text = answer.body_mut().read_to_string()?;
    Ok((answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

/// Traffic of this account.
fn source(fixture: &ClusterFixture, address: SocketAddr, account: &str) -> Result<Source> {
    let mut options = SourceOptions::new(address, account, PASSWORD);
    (options.reconnect, options.rate) = (true, Some(150.0));
    Source::start(&options, &fixture.tally)
}

/// The accounts with links at this node.
fn bound_accounts(node: &TestDaemon) -> Result<String> {
    Ok(node.get("/v1/links")?.to_string())
}

#[test]
fn requests_for_another_partition_are_passed_on() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let zero = fixture.partition_node("a", 0)?.start()?;
    let (smpp, business) = (zero.smpp(), zero.config().business());

    // Partition 1 has no leader yet.
    let refused = Probe::bind(smpp, "zenith", PASSWORD, "992", false).err().context("it was bound")?;
    ensure!(refused.to_string().contains(BIND_FAILED), "{refused:#}");
    let text = json!({ "from": "10655", "to": "8613012345678", "text": "hello" });
    assert_eq!(call(business, "/v1/messages", Some(&text))?.0, 503);

    let one = fixture.partition_node("b", 1)?.start()?;
    zero.read_until(TIMEOUT, "/v1/cluster", |cluster: &ClusterView| {
        cluster.partitions.len() == 2 && cluster.partitions.iter().all(|one| one.leader.is_some())
    })?;
    assert_eq!(submit(smpp, "acme", 1)?.partition(), 0);
    let id = submit(smpp, "zenith", 2)?;
    assert_eq!((id.partition(), id.0 >= MessageId::first_of(1).0), (1, true));
    // It was not accepted twice; and from the other partition, an account is also reached in its own partition.
    assert_eq!(submit(one.smpp(), "acme", 3)?.partition(), 0);
    assert_eq!(submit(one.smpp(), "zenith", 4)?.partition(), 1);
    let held = Probe::bind(smpp, "zenith", PASSWORD, "992", false)?;
    assert!(bound_accounts(&one)?.contains("zenith") && !bound_accounts(&zero)?.contains("zenith"));
    let of_one = AdminClient::root(&zero)?.with_header("partition", "1");
    assert!(of_one.ask("GET", "/v1/links", None)?.text.contains("zenith"));
    let of_nobody = AdminClient::root(&zero)?.with_header("partition", "7");
    assert_eq!(of_nobody.ask("GET", "/v1/links", None)?.status, 503);
    drop(held);
    until("the link ends with the connection", || Ok(!bound_accounts(&one)?.contains("zenith")))?;
    let wrong = Probe::bind(smpp, "zenith", "wrong", "992", false).err().context("it was bound")?;
    ensure!(wrong.to_string().contains("0xe"), "{wrong:#}");

    // Calls of business systems.
    let (status, answer) = call(business, "/v1/messages", Some(&text))?;
    ensure!(status == 202, "{status} {answer}");
    let sent: MessageId = answer["messages"][0]["id"].as_str().context("no id")?.parse()?;
    assert_eq!(sent.partition(), 1);
    assert_eq!(call(business, &format!("/v1/messages/{sent}"), None)?.0, 200);
    let long = json!({ "from": "10655", "to": "8613012345678", "text": "x".repeat(5 << 20) });
    assert_eq!(call(business, "/v1/messages", Some(&long))?.0, 413);

    // The API finds a message by its id, at each leader.
    for node in [&zero, &one] {
        assert_eq!(node.get(&format!("/v1/messages/{id}"))?["id"], id.to_string().as_str());
    }
    let admin = AdminClient::root(&zero)?;
    admin.make_user("ann", "correct horse battery", &json!({ "role": "viewer" }))?;
    let token = admin.make_token("robot", &json!({ "role": "viewer" }))?;
    let viewer = AdminClient::anonymous(&zero).with_token(&token);
    assert_eq!(viewer.ask("GET", &format!("/v1/messages/{id}"), None)?.status, 200);
    let refused = viewer.ask("POST", &format!("/v1/messages/{id}/cancel"), None)?;
    assert_eq!(refused.status, 403, "{}", refused.text);
    let forged = AdminClient::anonymous(&zero)
        .with_header("passed-caller", "{\"name\":\"x\",\"role\":\"admin\",\"bodies\":true}");
    assert_eq!(forged.ask("GET", &format!("/v1/messages/{id}"), None)?.status, 401);

    // The state that all partitions share is changed at partition 0, and is in force in the other partition at once.
    let (status, refusal) = one.request("PUT", "/v1/tables/t?kind=exact", b"a,b\n")?;
    ensure!(
        status == 503 && refusal.contains(&format!("http://{}", zero.config().http())),
        "{status} {refusal}"
    );
    zero.ask("PUT", "/v1/tables/t?kind=exact", b"a,b\n")?;
    until("the table", || Ok(one.get("/v1/tables")?[0]["name"] == "t"))?;
    until("the user", || Ok(one.request("GET", "/v1/users/ann", &[])?.0 == 200))?;
    let hash = testkit::test_daemon::HASH;
    change(&zero, &json!({ "account": { "late": { "password-hash": hash, "partition": 1 } } }))?;
    until("the new account", || Ok(submit(smpp, "late", 5).is_ok_and(|id| id.partition() == 1)))?;
    let status = |arguments: &[&str]| -> Result<String> {
        Ok(String::from_utf8(fixture.base.command(&zero).args(arguments).output()?.stdout)?)
    };
    let shown = status(&["cluster", "status"])?;
    ensure!(shown.contains("PARTITION") && shown.contains("1          b"), "{shown}");
    let shown = status(&["cluster", "status", "--partition", "1"])?;
    ensure!(shown.contains("this node          b\npartition          1\n"), "{shown}");
    assert_eq!(zero.metric("switchyard_cluster_partition_led")?, 2.0);
    Ok(())
}

#[test]
fn one_partition_loses_its_leader_and_nothing_is_missing() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let zero = fixture.partition_node("a", 0)?.start()?;
    let one = fixture.partition_node("b", 1)?.start()?;
    let (other_zero, other_one) =
        (fixture.partition_node("b", 0)?.follow()?, fixture.partition_node("a", 1)?.follow()?);
    let sources = [source(&fixture, zero.smpp(), "acme")?, source(&fixture, zero.smpp(), "zenith")?];
    fixture.wait_for_traffic()?;
    let before = submit(zero.smpp(), "zenith", 1_900_000)?;
    let dead = one.kill()?;
    // The other partition is not affected.
    fixture.wait_for_traffic()?;
    let one = other_one.ready()?;
    until("the accounts of the partition are back", || {
        Ok(submit(zero.smpp(), "zenith", 1_900_001).is_ok_and(|id| id.partition() == 1 && id > before))
    })?;
    let _follower = dead.follow()?;
    fixture.wait_for_traffic()?;
    for source in sources {
        source.stop();
        source.join()?;
    }
    until("all accepted arrive", || Ok(fixture.tally.summary().missing == 0))?;
    let sums = fixture.tally.summary();
    assert_eq!((sums.missing, sums.refused), (0, 0), "{sums:?}");
    // Now the leader of partition 0 dies, and its address with it; its accounts are reached through the other partition.
    zero.kill()?;
    let zero = other_zero.ready()?;
    until("the accounts of partition 0 are back", || {
        Ok(submit(one.smpp(), "acme", 1_900_002).is_ok_and(|id| id.partition() == 0))
    })?;
    let cluster: ClusterView = zero.read("/v1/cluster")?;
    let leaders: Vec<_> =
        cluster.partitions.iter().map(|one| (one.partition, one.leader.as_deref())).collect();
    assert_eq!(leaders, [(0, Some("b")), (1, Some("a"))]);
    Ok(())
}

#[test]
fn unsupported_partition_configurations_are_refused() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let mut torn = fixture.partition_node("a", 0)?;
    torn.tables("[[tenant]]\nname = \"north\"\ncharged = true\n");
    torn.account("north-one", "tenant = \"north\"").account("north-two", "tenant = \"north\"\npartition = 1");
    let (valid, words) = torn.check()?;
    ensure!(!valid && words.contains("share `charged` of the tenant"), "{words}");
    let mut alone = fixture.base.config()?;
    alone.account("acme", "partition = 1");
    let (valid, words) = alone.check()?;
    ensure!(!valid && words.contains("belongs to no cluster"), "{words}");
    Ok(())
}
