//! Lists of all partitions: merged, in pages, and with a partition that does not answer.

use crate::nodes::ClusterFixture;
use crate::passed_on::wait_until_nodes_know_leaders;
use anyhow::{Context, Result, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{AdminClient, until};
use model::MessageId;
use serde_json::{Value, json};
use testkit::api_document::check_answer;

/// Gets an answer, which must be as the API document says.
fn get(client: &AdminClient, path: &str) -> Result<Value> {
    let answer = client.ask("GET", path, None)?;
    ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.text);
    let body = answer.json()?;
    let operation = path.split('?').next().unwrap_or_default();
    check_answer("GET", operation, 200, Some(&body))?;
    Ok(body)
}

/// All messages of these accounts, page by page.
fn pages(client: &AdminClient, limit: usize) -> Result<Vec<Value>> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(client, &format!("/v1/messages?limit={limit}{cursor}"))?;
        let messages = page["messages"].as_array().context("no messages")?;
        ensure!(messages.len() <= limit, "{page:#}");
        rows.extend(messages.iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(rows),
        }
    }
}

/// The partitions of rows.
fn partitions(rows: &Value, name: &str, value: &str) -> Vec<u64> {
    let rows = rows.as_array().into_iter().flatten().filter(|row| row[name] == value);
    rows.filter_map(|row| row["partition"].as_u64()).collect()
}

#[test]
fn lists_of_all_partitions_are_merged_and_name_a_missing_one() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let zero = fixture.partition_node("a", 0)?.start()?;
    let one = fixture.partition_node("b", 1)?.start()?;
    wait_until_nodes_know_leaders([&zero, &one])?;
    let mut esmes = [
        Probe::bind(zero.smpp(), "acme", PASSWORD, "992", false)?,
        Probe::bind(zero.smpp(), "zenith", PASSWORD, "992", false)?,
    ];
    let mut sent = Vec::new();
    for number in 0..12 {
        // Two of partition 0 after one of partition 1.
        let esme = &mut esmes[usize::from(number % 3 == 0)];
        let id = esme.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
        sent.push(id.parse::<MessageId>()?);
    }
    for leader in [&zero, &one] {
        let all = AdminClient::root(leader)?.with_header("partition", "all");
        for limit in [1, 5, 100] {
            let rows = pages(&all, limit)?;
            let mut listed = Vec::new();
            for row in &rows {
                let id: MessageId = row["id"].as_str().context("no id")?.parse()?;
                ensure!(row["partition"] == id.partition(), "{row:#}");
                listed.push(id);
            }
            let times: Vec<Option<u64>> = rows.iter().map(|row| row["at"].as_u64()).collect();
            ensure!(times.is_sorted_by(|one, next| one >= next), "{limit}: {times:?}");
            listed.sort();
            let mut expected = sent.clone();
            expected.sort();
            assert_eq!(listed, expected, "{limit}");
        }
        let found = get(&all, "/v1/messages?account=zenith")?;
        assert_eq!(found["messages"].as_array().map(Vec::len), Some(4));
        let queues = get(&all, "/v1/queues")?;
        assert_eq!(partitions(&queues["queues"], "peer", "upstream"), [0, 1]);
        assert_eq!(queues["missing"], json!([]));
        let links = get(&all, "/v1/links")?;
        assert_eq!(partitions(&links["links"], "peer", "acme"), [0]);
        assert_eq!(partitions(&links["links"], "peer", "zenith"), [1]);
        let status = get(&all, "/v1/status")?;
        let statuses = status["statuses"].as_array().context("no statuses")?;
        assert_eq!(statuses.iter().map(|one| &one["partition"]).collect::<Vec<_>>(), [0, 1]);
        for (method, path) in [("GET", "/v1/history"), ("GET", "/v1/pools"), ("POST", "/v1/drain")] {
            let refused = all.ask(method, path, None)?;
            ensure!(refused.status == 400 && refused.text.contains("name one partition"), "{}", refused.text);
        }
        let wrong = all.ask("GET", "/v1/messages?cursor=1000000001", None)?;
        ensure!(wrong.status == 400 && wrong.text.contains("cursor"), "{}", wrong.text);
        let wrong = all.ask("GET", "/v1/messages?limit=0", None)?;
        ensure!(wrong.status == 400 && wrong.text.contains("limit"), "{}", wrong.text);
    }
    // The caller's permissions are those of each partition.
    let admin = AdminClient::root(&zero)?;
    admin.make_user("zed", "correct horse battery", &json!({ "role": "account", "account": "zenith" }))?;
    let token = admin.make_token("zenith-robot", &json!({ "role": "account", "account": "zenith" }))?;
    let own = AdminClient::anonymous(&zero).with_token(&token).with_header("partition", "all");
    assert_eq!(pages(&own, 100)?.len(), 4);
    assert_eq!(own.ask("GET", "/v1/queues", None)?.status, 403);

    // The console shows the partition that its user chooses, and follows a message to its own.
    admin.make_user("ann", "correct horse battery", &json!({ "role": "viewer" }))?;
    let console = AdminClient::anonymous(&zero)
        .with_session(&json!({ "user": "ann", "password": "correct horse battery" }))?;
    let links = |partition: &str| -> Result<String> {
        let console = console.with_header("cookie", &format!("switchyard-partition={partition}"));
        let page = console.ask("GET", "/accounts/zenith", None)?;
        ensure!(page.status == 200, "{}", page.text);
        ensure!(page.text.contains(&format!("<option value=\"{partition}\" selected>")), "{}", page.text);
        let trace = console.ask("GET", &format!("/messages/{}", sent[0]), None)?;
        ensure!(trace.status == 200 && trace.text.contains("zenith"), "{}", trace.text);
        Ok(page.text)
    };
    let (of_zero, of_one) = (links("0")?, links("1")?);
    ensure!(of_one.contains("transceiver") && !of_zero.contains("transceiver"), "{of_zero}{of_one}");

    let shown = |arguments: &[&str]| -> Result<(String, String)> {
        let output = fixture.base.command(&zero).args(arguments).args(["--partition", "all"]).output()?;
        let text = |octets: Vec<u8>| Ok::<_, anyhow::Error>(String::from_utf8(octets)?);
        Ok((text(output.stdout)?, text(output.stderr)?))
    };
    let (queues, missing) = shown(&["queue", "list"])?;
    ensure!(queues.starts_with("PARTITION  PEER") && missing.is_empty(), "{queues}{missing}");
    let (messages, missing) = shown(&["message", "find", "--account", "zenith"])?;
    ensure!(messages.contains(&sent[0].to_string()) && missing.is_empty(), "{messages}{missing}");

    // A partition whose leader is dead is named, and the others are listed.
    drop(esmes);
    one.kill()?;
    missing_one(&zero)?;
    let (queues, missing) = shown(&["queue", "list"])?;
    ensure!(queues.contains("\n0          upstream"), "{queues}");
    ensure!(missing.starts_with("switchyard: partition 1 is missing: "), "{missing}");
    let (_, missing) = shown(&["message", "find", "--account", "acme"])?;
    ensure!(missing.starts_with("switchyard: partition 1 is missing: "), "{missing}");
    Ok(())
}

fn missing_one(zero: &TestDaemon) -> Result<()> {
    let all = AdminClient::root(zero)?.with_header("partition", "all");
    let paths = [("/v1/messages", "messages", 8), ("/v1/queues", "queues", 1), ("/v1/links", "links", 1)];
    for (path, rows, at_least) in paths.into_iter().chain([("/v1/status", "statuses", 1)]) {
        let answer = get(&all, path)?;
        let partition = &answer["missing"][0]["partition"];
        ensure!(*partition == 1 && answer["missing"][0]["reason"].is_string(), "{path}: {answer:#}");
        let rows = answer[rows].as_array().context("no rows")?;
        ensure!(rows.len() >= at_least && rows.iter().all(|row| row["partition"] == 0), "{path}: {answer:#}");
    }
    // It stays named when the cluster knows that it has no leader.
    until("the cluster knows", || Ok(zero.get("/v1/cluster")?["partitions"][1]["leader"].is_null()))?;
    let answer = get(&all, "/v1/queues")?;
    ensure!(answer["missing"][0]["partition"] == 1, "{answer:#}");
    Ok(())
}
