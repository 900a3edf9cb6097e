//! Queue actions: they apply to waiting and to new messages, also after a kill.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{AdminClient, Fixture, RawConnection, steps, until};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const PEER: &str = "dlrs = false\nwindow = 50\nuncertain = \"send-again\"";

fn post(appliance: &TestDaemon, path: &str, body: &Value) -> Result<Value> {
    appliance.ask("POST", path, body.to_string().as_bytes())
}

fn post_action(appliance: &TestDaemon, action: &Value) -> Result<Value> {
    post(appliance, "/v1/queue-actions", action)
}

fn undo(appliance: &TestDaemon, action: &Value) -> Result<Value> {
    appliance.ask("DELETE", &format!("/v1/queue-actions/{}", action["id"]), b"")
}

fn find_action(appliance: &TestDaemon, id: &Value) -> Result<Value> {
    let actions = appliance.get("/v1/queue-actions")?;
    let found = actions.as_array().into_iter().flatten().find(|action| action["id"] == *id);
    found.cloned().with_context(|| format!("action {id} is not in {actions}"))
}

fn queue(appliance: &TestDaemon, peer: &str) -> Result<Value> {
    let queues = appliance.get("/v1/queues")?;
    let found = queues.as_array().into_iter().flatten().find(|queue| queue["peer"] == peer);
    found.cloned().with_context(|| format!("{peer} is not in {queues}"))
}

/// A source that sends this many messages.
fn send(appliance: &TestDaemon, tally: &Arc<Tally>, account: &str, count: u64) -> Result<()> {
    let mut options = SourceOptions::new(appliance.smpp(), account, PASSWORD);
    (options.connections, options.window, options.count) = (1, 50, Some(count));
    let before = tally.accepted_count();
    Source::start(&options, tally)?.join()?;
    ensure!(tally.accepted_count() == before + count, "not all were accepted");
    Ok(())
}

fn closed_address() -> Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

#[test]
fn a_suspended_peer_gets_nothing_until_it_is_resumed_also_after_a_kill() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "window = 1000").peer("upstream", sink.address(), PEER);
    let mut appliance = config.start()?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.reconnect, options.window) = (true, 100);
    let source = Source::start(&options, &tally)?;
    until("traffic", || Ok(tally.arrived_count() > 500))?;

    let given = post_action(
        &appliance,
        &json!({ "action": "suspend", "scope": { "peer": "upstream" }, "why": "maintenance" }),
    )?;
    assert_eq!((&given["state"], &given["by"]), (&json!("active"), &json!("token")));
    until("nothing is on its way", || Ok(queue(&appliance, "upstream")?["in_flight"] == 0))?;
    let arrived = tally.arrived_count();
    let blocked_by = queue(&appliance, "upstream")?["blocked_by"].clone();
    assert_eq!(blocked_by, json!(format!("suspended by token: maintenance (queue action {})", given["id"])));
    let before = tally.accepted_count();
    until("new messages are accepted", || Ok(tally.accepted_count() > before + 1000))?;
    assert_eq!(tally.arrived_count(), arrived);

    appliance = appliance.kill()?.start()?;
    let before = tally.accepted_count();
    until("traffic after the start, and a link", || {
        Ok(tally.accepted_count() > before + 500 && queue(&appliance, "upstream")?["links"] == 1)
    })?;
    assert_eq!(tally.arrived_count(), arrived, "a start has let something go");
    assert_eq!(find_action(&appliance, &given["id"])?["state"], "active");

    assert_eq!(undo(&appliance, &given)?["state"], "undone");
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(tally.summary().missing == 0))?;
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.unknown), (0, 0, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn one_accounts_messages_are_suspended_and_the_others_are_sent() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("other", "").peer("upstream", sink.address(), PEER);
    let appliance = config.start()?;
    until("a link", || Ok(queue(&appliance, "upstream")?["links"] == 1))?;
    let given = post_action(&appliance, &json!({ "action": "suspend", "scope": { "account": "acme" } }))?;
    send(&appliance, &tally, "acme", 100)?;
    send(&appliance, &tally, "other", 100)?;
    until("the others arrive", || Ok(tally.arrived_count() == 100))?;
    until("these are set down", || Ok(queue(&appliance, "upstream")?["suspended"] == 100))?;
    let page = appliance.get("/v1/messages?account=acme&state=suspended&limit=1000")?;
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(100), "{page}");
    let id = page["messages"][0]["id"].as_str().context("no id")?.to_owned();
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    let late = trace["waiting_for"].as_str().unwrap_or_default();
    assert!(late.contains("suspended by token"), "{trace}");

    // A message that arrived but is not recorded as arrived would be sent again after the kill.
    until("the others have ended", || {
        let others = appliance.get("/v1/messages?account=other&limit=1000")?;
        let others = others["messages"].as_array().into_iter().flatten();
        Ok(others.filter(|message| message["finished"] == true).count() == 100)
    })?;
    let appliance = appliance.kill()?.start()?;
    until("they are set down once more", || Ok(queue(&appliance, "upstream")?["suspended"] == 100))?;
    undo(&appliance, &given)?;
    until("they arrive as well", || Ok(tally.arrived_count() == 200))?;
    // The peer has received it before that is on disk.
    let path = format!("/v1/messages/{id}");
    until("the message has ended", || Ok(appliance.get(&path)?["finished"] == true))?;
    let trace = appliance.get(&path)?;
    let words = steps(&trace);
    assert!(words.iter().any(|step| step.contains("resumed, by token (queue action 1)")), "{words:?}");
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates), (0, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn messages_of_a_dead_peer_are_rerouted_without_loss_or_duplicates() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", closed_address()?, PEER).peer("spare", sink.address(), PEER);
    let appliance = config.start()?;
    send(&appliance, &tally, "acme", 300)?;
    assert_eq!(queue(&appliance, "upstream")?["queued"], 300);
    let wanted =
        json!({ "action": "reroute", "scope": { "peer": "upstream" }, "to": "spare", "why": "cable cut" });
    let preview = post(&appliance, "/v1/queue-actions/preview", &wanted)?;
    assert_eq!(
        (&preview["messages"], &preview["by-state"]["queued"]),
        (&json!(300), &json!(300)),
        "{preview}"
    );
    let given = post_action(&appliance, &wanted)?;
    until("those that waited arrive", || Ok(tally.arrived_count() == 300))?;
    send(&appliance, &tally, "acme", 100)?;
    until("new ones arrive", || Ok(tally.arrived_count() == 400))?;
    assert_eq!(find_action(&appliance, &given["id"])?["affected"], 400);
    let page = appliance.get("/v1/messages?peer=spare&limit=1")?;
    let path = format!("/v1/messages/{}", page["messages"][0]["id"].as_str().context("no id")?);
    until("the message has ended", || Ok(appliance.get(&path)?["finished"] == true))?;
    let trace = appliance.get(&path)?;
    let words = steps(&trace);
    assert!(words.contains(&"rerouted to spare, by token (queue action 1)"), "{words:?}");

    // Back again would be a loop.
    let back = json!({ "action": "reroute", "scope": { "peer": "spare" }, "to": "upstream" });
    assert_eq!(appliance.request("POST", "/v1/queue-actions", back.to_string().as_bytes())?.0, 409);
    undo(&appliance, &given)?;
    send(&appliance, &tally, "acme", 10)?;
    assert_eq!(queue(&appliance, "upstream")?["queued"], 10, "the old way again");
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates, sums.inversions), (10, 0, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn a_cancellation_can_be_undone_in_time_and_otherwise_ends_the_waiting_messages() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let address = closed_address()?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", address, PEER);
    let appliance = config.start()?;
    send(&appliance, &tally, "acme", 200)?;
    let wanted =
        json!({ "action": "cancel", "scope": { "account": "acme" }, "undo-within": "1h", "why": "a typo" });
    let preview = post(&appliance, "/v1/queue-actions/preview", &wanted)?;
    assert_eq!(preview["messages"], 200, "{preview}");
    assert_eq!(preview["sample"].as_array().map(Vec::len), Some(20), "{preview}");
    let first = post_action(&appliance, &wanted)?;
    assert_eq!(first["state"], "undo-window");
    let sink = Sink::start_at(address, SinkOptions::default(), &tally)?;
    until("they are held back", || Ok(queue(&appliance, "upstream")?["suspended"] == 200))?;
    // Later messages are not affected.
    send(&appliance, &tally, "acme", 50)?;
    until("new ones arrive", || Ok(tally.arrived_count() == 50))?;
    // A kill before the arrivals are on disk causes them to be sent again.
    let ended = || appliance.get("/v1/messages?state=relayed&limit=1000");
    until("they have ended", || Ok(ended()?["messages"].as_array().map(Vec::len) == Some(50)))?;
    let appliance = appliance.kill()?.start()?;
    until("they are held back after a kill", || Ok(queue(&appliance, "upstream")?["suspended"] == 200))?;
    undo(&appliance, &first)?;
    until("all arrive", || Ok(tally.arrived_count() == 250))?;
    let again = appliance.request("DELETE", &format!("/v1/queue-actions/{}", first["id"]), b"")?;
    assert_eq!(again.0, 409, "{}", again.1);

    let stop = post_action(&appliance, &json!({ "action": "suspend", "scope": { "peer": "upstream" } }))?;
    send(&appliance, &tally, "acme", 120)?;
    let second = post_action(
        &appliance,
        &json!({ "action": "cancel", "scope": { "peer": "upstream", "prefix": "+861" }, "undo-within": "0s" }),
    )?;
    until("it is done", || Ok(find_action(&appliance, &second["id"])?["state"] == "done"))?;
    assert_eq!(find_action(&appliance, &second["id"])?["affected"], 120);
    undo(&appliance, &stop)?;
    send(&appliance, &tally, "acme", 10)?;
    until("new ones arrive again", || Ok(tally.arrived_count() == 260))?;
    let page = appliance.get("/v1/messages?state=cancelled&limit=1000")?;
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(120), "{page}");
    let id = page["messages"][0]["id"].as_str().context("no id")?;
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    let words = steps(&trace);
    assert!(words.iter().any(|step| step.starts_with("cancelled, by token (queue action")), "{words:?}");
    let sums = tally.summary();
    assert_eq!((sums.missing, sums.duplicates), (120, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn a_drained_peer_refuses_new_messages_and_sends_waiting_ones() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", sink.address(), PEER);
    let appliance = config.start()?;
    let stop = post_action(&appliance, &json!({ "action": "suspend", "scope": { "peer": "upstream" } }))?;
    send(&appliance, &tally, "acme", 60)?;
    let drain = post_action(&appliance, &json!({ "action": "drain", "scope": { "peer": "upstream" } }))?;
    let blocked_by = queue(&appliance, "upstream")?["blocked_by"].as_str().unwrap_or_default().to_owned();
    assert!(blocked_by.contains("accepts no new messages by token"), "{blocked_by}");
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.connections, options.window, options.count) = (1, 1, Some(5));
    let report = Source::start(&options, &tally)?.join()?;
    assert_eq!(report.refusals.values().sum::<u64>(), 5, "{:?}", report.refusals);
    undo(&appliance, &stop)?;
    until("waiting messages arrive", || Ok(tally.arrived_count() == 60))?;
    undo(&appliance, &drain)?;
    send(&appliance, &tally, "acme", 5)?;
    until("new messages are accepted again", || Ok(tally.arrived_count() == 65))?;
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn uncertain_messages_are_listed_and_settled_individually_and_by_peer() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let slow = SinkOptions { delay: Duration::from_secs(600), ..SinkOptions::default() };
    let sink = Sink::start(slow, &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer(
        "upstream",
        sink.address(),
        "dlrs = false\nwindow = 6\nuncertain = \"await-dlr\"",
    );
    let appliance = config.start()?;
    send(&appliance, &tally, "acme", 6)?;
    until("all are on their way", || Ok(sink.message_count() == 6))?;
    sink.behave(SinkOptions::default());
    sink.drop_links();
    until("all are uncertain", || Ok(queue(&appliance, "upstream")?["uncertain"] == 6))?;

    let page = appliance.get("/v1/uncertain?peer=upstream&limit=4")?;
    let ids = |page: &Value| -> Vec<String> {
        let messages = page["messages"].as_array().into_iter().flatten();
        messages.filter_map(|message| message["id"].as_str().map(str::to_owned)).collect()
    };
    let first = ids(&page);
    assert_eq!(first.len(), 4, "{page}");
    let next = page["next"].as_str().context("no next")?;
    let rest = ids(&appliance.get(&format!("/v1/uncertain?after={next}"))?);
    assert_eq!(rest.len(), 2);

    let settled = post(
        &appliance,
        "/v1/uncertain/settle",
        &json!({ "remedy": "send-again", "ids": [&first[0], &first[1]] }),
    )?;
    assert_eq!(settled, json!({ "settled": 2, "skipped": 0 }));
    until("these arrive", || Ok(sink.message_count() == 8))?;
    until("these have ended", || {
        Ok(appliance.get(&format!("/v1/messages/{}", first[0]))?["finished"] == true)
    })?;
    let trace = appliance.get(&format!("/v1/messages/{}", first[0]))?;
    let words = steps(&trace);
    assert!(words.contains(&"settled: will be sent again, by token"), "{words:?}");
    let settled =
        post(&appliance, "/v1/uncertain/settle", &json!({ "remedy": "give-up", "peer": "upstream" }))?;
    assert_eq!(settled["settled"], 4);
    assert_eq!(appliance.get(&format!("/v1/messages/{}", rest[1]))?["state"], "unknown");
    assert_eq!(ids(&appliance.get("/v1/uncertain")?).len(), 0);
    for bad in [json!({ "remedy": "give-up" }), json!({ "remedy": "give-up", "peer": "upstream", "ids": [] })]
    {
        let (status, reply) =
            appliance.request("POST", "/v1/uncertain/settle", bad.to_string().as_bytes())?;
        assert_eq!(status, 422, "{reply}");
    }
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn one_message_can_be_cancelled_or_retried_and_the_list_has_pages() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    // 0x64: try later.
    let unwilling = SinkOptions { error_status: 0x64, error_every: 1, ..SinkOptions::default() };
    let sink = Sink::start(unwilling, &tally)?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer(
        "upstream",
        sink.address(),
        "dlrs = false\nwindow = 50\nretry = [\"1h\"]\nuncertain = \"send-again\"",
    );
    let appliance = config.start()?;
    send(&appliance, &tally, "acme", 130)?;
    until("all are put off", || Ok(queue(&appliance, "upstream")?["deferred"] == 130))?;
    sink.behave(SinkOptions::default());

    let mut found: Vec<u64> = Vec::new();
    let mut path = "/v1/messages?account=acme&state=deferred&limit=50".to_owned();
    loop {
        let page = appliance.get(&path)?;
        for message in page["messages"].as_array().into_iter().flatten() {
            assert_eq!((&message["state"], &message["peer"]), (&json!("deferred"), &json!("upstream")));
            found.push(message["id"].as_str().context("no id")?.parse()?);
        }
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/messages?account=acme&state=deferred&limit=50&cursor={next}");
    }
    assert_eq!(found.len(), 130);
    assert!(found.windows(2).all(|pair| pair[0] > pair[1]), "newest first, each once");
    assert_eq!(appliance.get("/v1/messages?number=nobody")?["messages"], json!([]));
    for bad in ["state=lost", "limit=0", "limit=1001", "from=yesterday", "cursor=b", "colour=red"] {
        assert_eq!(appliance.request("GET", &format!("/v1/messages?{bad}"), b"")?.0, 400, "{bad}");
    }

    let act = |id: u64, what: &str| {
        Ok::<_, anyhow::Error>(appliance.request("POST", &format!("/v1/messages/{id}/{what}"), b"")?.0)
    };
    assert_eq!(act(found[0], "cancel")?, 204);
    let ended = appliance.get(&format!("/v1/messages/{}", found[0]))?;
    assert_eq!(ended["state"], "cancelled");
    assert!(steps(&ended).contains(&"cancelled, by token"), "{ended}");
    assert_eq!(act(found[0], "cancel")?, 404, "it waits no more");
    assert_eq!(act(found[1], "retry")?, 204);
    until("it arrives", || Ok(tally.arrived_count() == 1))?;
    until("the message has ended", || {
        Ok(appliance.get(&format!("/v1/messages/{}", found[1]))?["finished"] == true)
    })?;
    assert_eq!(act(1, "retry")?, 404);
    let page = appliance.get("/v1/messages?limit=2")?;
    let states: Vec<&Value> =
        page["messages"].as_array().into_iter().flatten().map(|message| &message["state"]).collect();
    assert_eq!(states, [&json!("cancelled"), &json!("relayed")], "{page}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn an_invalid_queue_action_is_refused_with_its_position() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "").peer("upstream", closed_address()?, PEER).peer(
        "spare",
        closed_address()?,
        PEER,
    );
    let appliance = config.start()?;
    for (body, status, pointer) in [
        (json!({ "action": "suspend", "scope": {} }), 422, None),
        (json!({ "action": "halt", "scope": { "peer": "upstream" } }), 400, Some("/action")),
        (json!({ "action": "suspend", "scope": { "peer": "nobody" } }), 422, Some("/scope/peer")),
        (json!({ "action": "suspend", "scope": { "colour": "red" } }), 400, Some("/scope/colour")),
        (json!({ "action": "suspend", "scope": { "prefix": "+" } }), 422, Some("/scope/prefix")),
        (json!({ "action": "suspend", "scope": { "older-than": "long" } }), 422, Some("/scope/older-than")),
        (
            json!({ "action": "suspend", "scope": { "peer": "upstream" }, "undo-within": "1m" }),
            422,
            Some("/undo-within"),
        ),
        (
            json!({ "action": "cancel", "scope": { "peer": "upstream" }, "undo-within": "2d" }),
            422,
            Some("/undo-within"),
        ),
        (json!({ "action": "drain", "scope": { "peer": "upstream", "prefix": "1" } }), 422, None),
        (json!({ "action": "reroute", "scope": { "peer": "upstream" } }), 422, None),
        (json!({ "action": "reroute", "scope": { "peer": "upstream" }, "to": "nobody" }), 422, Some("/to")),
        (json!({ "action": "reroute", "scope": { "peer": "upstream" }, "to": "upstream" }), 409, None),
        (json!({ "action": "reroute", "scope": { "peer": "upstream" }, "to": "acme" }), 422, None),
        (json!({ "action": "suspend", "scope": { "peer": "upstream" }, "to": "spare" }), 422, None),
    ] {
        for path in ["/v1/queue-actions", "/v1/queue-actions/preview"] {
            let (found, reply) = appliance.request("POST", path, body.to_string().as_bytes())?;
            assert_eq!(found, status, "{path} {body}: {reply}");
            let reply: Value = serde_json::from_str(&reply)?;
            assert_eq!(reply["problems"][0]["pointer"].as_str(), pointer, "{body}: {reply}");
        }
    }
    assert_eq!(appliance.get("/v1/queue-actions")?, json!([]));
    assert_eq!(appliance.request("DELETE", "/v1/queue-actions/7", b"")?.0, 404);
    assert_eq!(appliance.request("DELETE", "/v1/queue-actions/seven", b"")?.0, 400);
    appliance.stop()?;
    Ok(())
}

#[test]
fn concurrent_undos_conflict_and_accounts_find_only_their_own_messages() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let mut config = fixture.config()?;
    config.account("acme", "").account("rival", "").peer("upstream", closed_address()?, PEER);
    let appliance = config.start()?;
    for turn in 0..10 {
        let given = post_action(&appliance, &json!({ "action": "suspend", "scope": { "prefix": "41" } }))?;
        let (path, start) = (format!("/v1/queue-actions/{}", given["id"]), Barrier::new(2));
        let undo = || -> Result<u16> {
            start.wait();
            Ok(appliance.request("DELETE", &path, b"")?.0)
        };
        let both = std::thread::scope(|scope| {
            let threads = [scope.spawn(undo), scope.spawn(undo)];
            threads.map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked"))))
        });
        let mut both = both.into_iter().collect::<Result<Vec<u16>>>()?;
        both.sort_unstable();
        assert_eq!(both, [200, 409], "turn {turn}");
    }

    send(&appliance, &tally, "acme", 3)?;
    send(&appliance, &tally, "rival", 4)?;
    let root = AdminClient::root(&appliance)?;
    let token = root.make_token("acme-people", &json!({ "role": "account", "account": "acme" }))?;
    let acme = AdminClient::anonymous(&appliance).with_token(&token);
    let own = acme.ask("GET", "/v1/messages", None)?;
    ensure!(own.status == 200, "{}", own.text);
    let own = own.json()?;
    let rows = own["messages"].as_array().context("no messages")?;
    assert_eq!(rows.len(), 3, "{own}");
    for row in rows {
        assert_eq!(row["account"], "acme");
        let number = row["destination"].as_str().unwrap_or_default();
        assert!(number.contains("***"), "{number} is not masked");
    }
    assert_eq!(acme.ask("GET", "/v1/messages?account=rival", None)?.status, 403);
    assert_eq!(acme.ask("GET", "/v1/queue-actions", None)?.status, 403);
    appliance.stop()?;
    Ok(())
}

#[test]
fn a_peer_that_throttles_is_sent_what_it_allows_and_its_learnt_rate_is_shown() -> Result<()> {
    const ALLOWED: u32 = 50;
    const SECONDS: u32 = 10;
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions { per_second: ALLOWED, ..SinkOptions::default() }, &tally)?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "window = 1000").peer("upstream", sink.address(), PEER);
    let appliance = config.start()?;
    until("a link", || Ok(queue(&appliance, "upstream")?["links"] == 1))?;
    assert_eq!(queue(&appliance, "upstream")?["learnt_rate"], Value::Null);
    send(&appliance, &tally, "acme", 6_000)?;
    // By the peer's own counts. How near the rate comes to the allowed one is tested with a simulated clock (engine, `pace`).
    until("the peer takes messages", || {
        Ok(sink.seconds().iter().map(|second| second.accepted).sum::<u32>() >= SECONDS * ALLOWED)
    })?;
    let (accepted, throttled) = sink
        .seconds()
        .iter()
        .fold((0, 0), |sums, second| (sums.0 + second.accepted, sums.1 + second.throttled));
    assert!(
        throttled <= accepted / 2,
        "{throttled} of {} were throttled: nothing was learnt",
        accepted + throttled
    );
    until("the queue shows it", || {
        let shown = queue(&appliance, "upstream")?;
        let rate = shown["learnt_rate"].as_f64().context("no rate")?;
        let says = |blocked_by: &str| blocked_by.starts_with("throttled by the peer: learnt rate ");
        Ok(shown["blocked_by"].as_str().is_some_and(says) && (25.0..100.0).contains(&rate))
    })?;
    let metrics = appliance.request("GET", "/metrics", b"")?.1;
    assert!(metrics.contains("switchyard_peer_learnt_rate{peer=\"upstream\"} "), "{metrics}");
    for series in [
        "switchyard_peer_submitted_total{peer=\"upstream\"} ",
        "switchyard_peer_throttled_total{peer=\"upstream\"} ",
        "switchyard_peer_ended_total{peer=\"upstream\",state=\"relayed\"} ",
        "switchyard_peer_answer_seconds_count{peer=\"upstream\"} ",
        "switchyard_account_throttled_total{account=\"acme\"} ",
        "switchyard_build_info{version=\"",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
    ] {
        let line = metrics.lines().find(|line| line.starts_with(series));
        let count = line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        assert!(count.is_some_and(|count| count > 0.0), "{series}{count:?}: {metrics}");
    }
    // Two peers have queues: each metric has one HELP line.
    let mut heads: Vec<&str> = metrics.lines().filter(|line| line.starts_with("# HELP ")).collect();
    let all = heads.len();
    heads.sort_unstable();
    heads.dedup();
    assert_eq!(heads.len(), all, "{metrics}");
    assert_eq!(tally.summary().duplicates, 0);
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn queues_move_while_state_queries_wait_for_a_hanging_archive() -> Result<()> {
    const WAITING: u64 = 300;
    const QUERIES: u32 = 150;
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    // It accepts connections and does not answer.
    let hanging = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("postgres://nobody@127.0.0.1:{}/archive", hanging.local_addr()?.port());
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    config.native("upstream").account("acme", "window = 1000").archive(&url);
    config.peer("upstream", closed_address()?, "dlrs = false").tables("[engine]\nbody-cache = \"16KiB\"\n");
    let appliance = config.start()?;
    send(&appliance, &tally, "acme", WAITING)?;

    let mut esme = RawConnection::connect(appliance.smpp())?;
    ensure!(esme.bind("acme", PASSWORD)? == 0, "the bind was refused");
    for sequence in 0..QUERIES {
        let body = [&b"4000000000\0"[..], &[0, 0, 0]].concat();
        esme.send_pdu(0x0000_0003, 100 + sequence, &body)?;
    }
    // The content of most messages is read back from the store.
    let address = json!({ "peer": { "upstream": { "address": sink.address().to_string() } } });
    let headers = [("if-match", "\"1\""), ("content-type", "application/json")];
    let changed = appliance.send("PATCH", "/v1/configuration", address.to_string().as_bytes(), &headers)?;
    ensure!(changed.0 == 200, "{changed:?}");
    until("all arrive", || Ok(tally.arrived_count() == WAITING))?;

    let mut statuses = std::collections::BTreeSet::new();
    for _ in 0..QUERIES {
        let (id, status, _, _) = esme.receive()?;
        ensure!(id == 0x8000_0003, "{id:#x}");
        statuses.insert(status);
    }
    // ESME_RTHROTTLED for queries above the account's limit, ESME_RSYSERR for queries that the archive does not answer.
    assert_eq!(statuses.into_iter().collect::<Vec<_>>(), [0x08, 0x58]);
    Ok(())
}

#[test]
fn an_account_has_one_rate_over_smpp_and_http() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    let keys = "rate = 0.001\nburst = 2\nsource = { default = \"10655\" }";
    config.native("upstream").business_account("shop", keys, "");
    config.peer("upstream", closed_address()?, "dlrs = false");
    let appliance = config.start()?;
    let over_http = || -> Result<String> {
        let mut http = RawConnection::connect(appliance.config().business())?;
        let body = json!({ "to": "8613012345678", "text": "hello" }).to_string();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Basic c2hvcDpzZWNyZXQ=\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        http.send(head.as_bytes())?;
        let head = http.head()?;
        Ok(head.split(' ').nth(1).context("no status")?.to_owned())
    };
    let mut esme = Probe::bind(appliance.smpp(), "shop", PASSWORD, "861", false)?;
    assert!(esme.submit(1)?.is_ok());
    assert_eq!(over_http()?, "202");
    // Both have shared the burst.
    assert_eq!(over_http()?, "429");
    assert_eq!(esme.submit(2)?, Err(0x58));
    Ok(())
}
