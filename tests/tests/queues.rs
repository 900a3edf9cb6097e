//! Orders about waiting messages: what an admin says holds for whatever waits and whatever comes, also over a kill.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint, PASSWORD, free_port};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Source, SourceOptions, Tally};
use behaviour_tests::{Raw, Stage, Visitor, steps, until};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const PEER: &str = "receipts = false\nwindow = 50\nuncertain = \"send-again\"";

fn post(appliance: &Appliance, path: &str, body: &Value) -> Result<Value> {
    appliance.ask("POST", path, body.to_string().as_bytes())
}

fn give(appliance: &Appliance, order: &Value) -> Result<Value> {
    post(appliance, "/v1/orders", order)
}

fn undo(appliance: &Appliance, order: &Value) -> Result<Value> {
    appliance.ask("DELETE", &format!("/v1/orders/{}", order["id"]), b"")
}

fn order(appliance: &Appliance, id: &Value) -> Result<Value> {
    let orders = appliance.get("/v1/orders")?;
    let found = orders.as_array().into_iter().flatten().find(|order| order["id"] == *id);
    found.cloned().with_context(|| format!("order {id} is not in {orders}"))
}

fn queue(appliance: &Appliance, peer: &str) -> Result<Value> {
    let queues = appliance.get("/v1/queues")?;
    let found = queues.as_array().into_iter().flatten().find(|queue| queue["peer"] == peer);
    found.cloned().with_context(|| format!("{peer} is not in {queues}"))
}

/// A source that sends so many, and is done.
fn send(appliance: &Appliance, tally: &Arc<Tally>, account: &str, count: u64) -> Result<()> {
    let mut options = SourceOptions::new(appliance.smpp(), account, PASSWORD);
    (options.connections, options.window, options.count) = (1, 50, Some(count));
    let before = tally.accepted_so_far();
    Source::start(&options, tally)?.join()?;
    ensure!(tally.accepted_so_far() == before + count, "not all were accepted");
    Ok(())
}

fn nowhere() -> Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

#[test]
fn a_suspended_peer_gets_nothing_under_load_and_after_a_kill_and_everything_afterwards() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(2_000_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "window = 1000").peer("upstream", sink.address(), PEER);
    let mut appliance = blueprint.start()?;
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.reconnect, options.window) = (true, 100);
    let source = Source::start(&options, &tally)?;
    until("traffic", || Ok(tally.arrived_so_far() > 500))?;

    let given = give(
        &appliance,
        &json!({ "what": "suspend", "where": { "peer": "upstream" }, "why": "maintenance" }),
    )?;
    assert_eq!((&given["state"], &given["by"]), (&json!("standing"), &json!("token")));
    until("nothing is on its way", || Ok(queue(&appliance, "upstream")?["in_flight"] == 0))?;
    let arrived = tally.arrived_so_far();
    let brake = queue(&appliance, "upstream")?["brake"].clone();
    assert_eq!(brake, json!(format!("suspended by token: maintenance (order {})", given["id"])));
    let before = tally.accepted_so_far();
    until("new ones are taken all the same", || Ok(tally.accepted_so_far() > before + 1000))?;
    assert_eq!(tally.arrived_so_far(), arrived);

    appliance = appliance.kill()?.start()?;
    let before = tally.accepted_so_far();
    until("traffic after the start, and a link", || {
        Ok(tally.accepted_so_far() > before + 500 && queue(&appliance, "upstream")?["links"] == 1)
    })?;
    assert_eq!(tally.arrived_so_far(), arrived, "a start has let something go");
    assert_eq!(order(&appliance, &given["id"])?["state"], "standing");

    assert_eq!(undo(&appliance, &given)?["state"], "undone");
    source.stop();
    source.join()?;
    until("all accepted arrive", || Ok(tally.accounts().missing == 0))?;
    let sums = tally.accounts();
    assert_eq!((sums.missing, sums.duplicates, sums.strangers), (0, 0, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn of_one_peer_one_accounts_messages_stand_still_and_the_others_pass() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").account("other", "").peer("upstream", sink.address(), PEER);
    let appliance = blueprint.start()?;
    until("a link", || Ok(queue(&appliance, "upstream")?["links"] == 1))?;
    let given = give(&appliance, &json!({ "what": "suspend", "where": { "account": "acme" } }))?;
    send(&appliance, &tally, "acme", 100)?;
    send(&appliance, &tally, "other", 100)?;
    until("the others arrive", || Ok(tally.arrived_so_far() == 100))?;
    until("these are set down", || Ok(queue(&appliance, "upstream")?["suspended"] == 100))?;
    let page = appliance.get("/v1/messages?account=acme&state=suspended&limit=1000")?;
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(100), "{page}");
    let id = page["messages"][0]["id"].as_str().context("no id")?.to_owned();
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    let late = trace["why_late"].as_str().unwrap_or_default();
    assert!(late.contains("held back by token"), "{trace}");

    // What has arrived and is not yet written down as such would come again.
    until("the others have ended", || {
        let others = appliance.get("/v1/messages?account=other&limit=1000")?;
        let others = others["messages"].as_array().into_iter().flatten();
        Ok(others.filter(|message| message["finished"] == true).count() == 100)
    })?;
    let appliance = appliance.kill()?.start()?;
    until("they are set down once more", || Ok(queue(&appliance, "upstream")?["suspended"] == 100))?;
    undo(&appliance, &given)?;
    until("they arrive as well", || Ok(tally.arrived_so_far() == 200))?;
    // The peer has it before we have written down that it has.
    let path = format!("/v1/messages/{id}");
    until("it has ended", || Ok(appliance.get(&path)?["finished"] == true))?;
    let trace = appliance.get(&path)?;
    let words = steps(&trace);
    assert!(words.iter().any(|step| step.contains("let go, by token (order 1)")), "{words:?}");
    let sums = tally.accounts();
    assert_eq!((sums.missing, sums.duplicates), (0, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn what_waits_for_a_dead_peer_and_what_comes_goes_to_another_and_nothing_is_lost_or_doubled() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").peer("upstream", nowhere()?, PEER).peer("spare", sink.address(), PEER);
    let appliance = blueprint.start()?;
    send(&appliance, &tally, "acme", 300)?;
    assert_eq!(queue(&appliance, "upstream")?["queued"], 300);
    let wanted =
        json!({ "what": "rebind", "where": { "peer": "upstream" }, "to": "spare", "why": "cable cut" });
    let preview = post(&appliance, "/v1/orders/preview", &wanted)?;
    assert_eq!(
        (&preview["messages"], &preview["by-state"]["queued"]),
        (&json!(300), &json!(300)),
        "{preview}"
    );
    let given = give(&appliance, &wanted)?;
    until("those that waited arrive", || Ok(tally.arrived_so_far() == 300))?;
    send(&appliance, &tally, "acme", 100)?;
    until("new ones arrive", || Ok(tally.arrived_so_far() == 400))?;
    assert_eq!(order(&appliance, &given["id"])?["touched"], 400);
    let page = appliance.get("/v1/messages?peer=spare&limit=1")?;
    let path = format!("/v1/messages/{}", page["messages"][0]["id"].as_str().context("no id")?);
    until("it has ended", || Ok(appliance.get(&path)?["finished"] == true))?;
    let trace = appliance.get(&path)?;
    let words = steps(&trace);
    assert!(words.contains(&"sent another way, to spare, by token (order 1)"), "{words:?}");

    // Back again would be a circle.
    let back = json!({ "what": "rebind", "where": { "peer": "spare" }, "to": "upstream" });
    assert_eq!(appliance.request("POST", "/v1/orders", back.to_string().as_bytes())?.0, 409);
    undo(&appliance, &given)?;
    send(&appliance, &tally, "acme", 10)?;
    assert_eq!(queue(&appliance, "upstream")?["queued"], 10, "the old way again");
    let sums = tally.accounts();
    assert_eq!((sums.missing, sums.duplicates, sums.inversions), (10, 0, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn a_cancellation_that_is_undone_in_time_has_not_been_and_another_ends_what_waits() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let address = nowhere()?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").peer("upstream", address, PEER);
    let appliance = blueprint.start()?;
    send(&appliance, &tally, "acme", 200)?;
    let wanted =
        json!({ "what": "cancel", "where": { "account": "acme" }, "undo-within": "1h", "why": "a typo" });
    let preview = post(&appliance, "/v1/orders/preview", &wanted)?;
    assert_eq!(preview["messages"], 200, "{preview}");
    assert_eq!(preview["sample"].as_array().map(Vec::len), Some(20), "{preview}");
    let first = give(&appliance, &wanted)?;
    assert_eq!(first["state"], "undo-window");
    let sink = Sink::start_at(address, SinkOptions::default(), &tally)?;
    until("they are held back", || Ok(queue(&appliance, "upstream")?["suspended"] == 200))?;
    // What comes later is none of the order's.
    send(&appliance, &tally, "acme", 50)?;
    until("new ones arrive", || Ok(tally.arrived_so_far() == 50))?;
    // What is killed before it has written down that they arrived sends them again.
    let ended = || appliance.get("/v1/messages?state=relayed&limit=1000");
    until("they have ended", || Ok(ended()?["messages"].as_array().map(Vec::len) == Some(50)))?;
    let appliance = appliance.kill()?.start()?;
    until("they are held back after a kill", || Ok(queue(&appliance, "upstream")?["suspended"] == 200))?;
    undo(&appliance, &first)?;
    until("all arrive", || Ok(tally.arrived_so_far() == 250))?;
    let again = appliance.request("DELETE", &format!("/v1/orders/{}", first["id"]), b"")?;
    assert_eq!(again.0, 409, "{}", again.1);

    let stop = give(&appliance, &json!({ "what": "suspend", "where": { "peer": "upstream" } }))?;
    send(&appliance, &tally, "acme", 120)?;
    let second = give(
        &appliance,
        &json!({ "what": "cancel", "where": { "peer": "upstream", "prefix": "+861" }, "undo-within": "0s" }),
    )?;
    until("it is done", || Ok(order(&appliance, &second["id"])?["state"] == "done"))?;
    assert_eq!(order(&appliance, &second["id"])?["touched"], 120);
    undo(&appliance, &stop)?;
    send(&appliance, &tally, "acme", 10)?;
    until("new ones arrive again", || Ok(tally.arrived_so_far() == 260))?;
    let page = appliance.get("/v1/messages?state=cancelled&limit=1000")?;
    assert_eq!(page["messages"].as_array().map(Vec::len), Some(120), "{page}");
    let id = page["messages"][0]["id"].as_str().context("no id")?;
    let trace = appliance.get(&format!("/v1/messages/{id}"))?;
    let words = steps(&trace);
    assert!(words.iter().any(|step| step.starts_with("cancelled, by token (order")), "{words:?}");
    let sums = tally.accounts();
    assert_eq!((sums.missing, sums.duplicates), (120, 0), "{sums:?}");
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn a_drained_peer_takes_nothing_new_and_sends_what_it_has() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").peer("upstream", sink.address(), PEER);
    let appliance = blueprint.start()?;
    let stop = give(&appliance, &json!({ "what": "suspend", "where": { "peer": "upstream" } }))?;
    send(&appliance, &tally, "acme", 60)?;
    let drain = give(&appliance, &json!({ "what": "drain", "where": { "peer": "upstream" } }))?;
    let brake = queue(&appliance, "upstream")?["brake"].as_str().unwrap_or_default().to_owned();
    assert!(brake.contains("takes nothing new by token"), "{brake}");
    let mut options = SourceOptions::new(appliance.smpp(), "acme", PASSWORD);
    (options.connections, options.window, options.count) = (1, 1, Some(5));
    let report = Source::start(&options, &tally)?.join()?;
    assert_eq!(report.refusals.values().sum::<u64>(), 5, "{:?}", report.refusals);
    undo(&appliance, &stop)?;
    until("what it has arrives", || Ok(tally.arrived_so_far() == 60))?;
    undo(&appliance, &drain)?;
    send(&appliance, &tally, "acme", 5)?;
    until("it takes new ones again", || Ok(tally.arrived_so_far() == 65))?;
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn the_uncertain_are_listed_and_settled_one_by_one_and_by_peer() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let slow = SinkOptions { delay: Duration::from_secs(600), ..SinkOptions::default() };
    let sink = Sink::start(slow, &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").peer(
        "upstream",
        sink.address(),
        "receipts = false\nwindow = 6\nuncertain = \"await-receipt\"",
    );
    let appliance = blueprint.start()?;
    send(&appliance, &tally, "acme", 6)?;
    until("all are on their way", || Ok(sink.messages_so_far() == 6))?;
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
    assert_eq!(settled, json!({ "settled": 2, "passed-over": 0 }));
    until("these arrive", || Ok(sink.messages_so_far() == 8))?;
    until("these have ended", || {
        Ok(appliance.get(&format!("/v1/messages/{}", first[0]))?["finished"] == true)
    })?;
    let trace = appliance.get(&format!("/v1/messages/{}", first[0]))?;
    let words = steps(&trace);
    assert!(words.contains(&"its doubt settled: to be sent again, by token"), "{words:?}");
    let settled =
        post(&appliance, "/v1/uncertain/settle", &json!({ "remedy": "give-up", "peer": "upstream" }))?;
    assert_eq!(settled["settled"], 4);
    assert_eq!(appliance.get(&format!("/v1/messages/{}", rest[1]))?["state"], "unknown");
    assert_eq!(ids(&appliance.get("/v1/uncertain")?).len(), 0);
    for bad in [json!({ "remedy": "give-up" }), json!({ "remedy": "give-up", "peer": "upstream", "ids": [] })]
    {
        let (status, told) = appliance.request("POST", "/v1/uncertain/settle", bad.to_string().as_bytes())?;
        assert_eq!(status, 422, "{told}");
    }
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn one_message_is_cancelled_or_tried_at_once_and_all_are_found_page_by_page() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    // 0x64: try later.
    let unwilling = SinkOptions { error_status: 0x64, error_every: 1, ..SinkOptions::default() };
    let sink = Sink::start(unwilling, &tally)?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").peer(
        "upstream",
        sink.address(),
        "receipts = false\nwindow = 50\nretry = [\"1h\"]\nuncertain = \"send-again\"",
    );
    let appliance = blueprint.start()?;
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
    until("it arrives", || Ok(tally.arrived_so_far() == 1))?;
    until("it has ended", || Ok(appliance.get(&format!("/v1/messages/{}", found[1]))?["finished"] == true))?;
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
fn what_makes_no_order_is_refused_with_its_place() -> Result<()> {
    let stage = Stage::new()?;
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").peer("upstream", nowhere()?, PEER).peer("spare", nowhere()?, PEER);
    let appliance = blueprint.start()?;
    for (body, status, pointer) in [
        (json!({ "what": "suspend", "where": {} }), 422, None),
        (json!({ "what": "halt", "where": { "peer": "upstream" } }), 400, Some("/what")),
        (json!({ "what": "suspend", "where": { "peer": "nobody" } }), 422, Some("/where/peer")),
        (json!({ "what": "suspend", "where": { "colour": "red" } }), 400, Some("/where/colour")),
        (json!({ "what": "suspend", "where": { "prefix": "+" } }), 422, Some("/where/prefix")),
        (json!({ "what": "suspend", "where": { "older-than": "long" } }), 422, Some("/where/older-than")),
        (
            json!({ "what": "suspend", "where": { "peer": "upstream" }, "undo-within": "1m" }),
            422,
            Some("/undo-within"),
        ),
        (
            json!({ "what": "cancel", "where": { "peer": "upstream" }, "undo-within": "2d" }),
            422,
            Some("/undo-within"),
        ),
        (json!({ "what": "drain", "where": { "peer": "upstream", "prefix": "1" } }), 422, None),
        (json!({ "what": "rebind", "where": { "peer": "upstream" } }), 422, None),
        (json!({ "what": "rebind", "where": { "peer": "upstream" }, "to": "nobody" }), 422, Some("/to")),
        (json!({ "what": "rebind", "where": { "peer": "upstream" }, "to": "upstream" }), 409, None),
        (json!({ "what": "rebind", "where": { "peer": "upstream" }, "to": "acme" }), 422, None),
        (json!({ "what": "suspend", "where": { "peer": "upstream" }, "to": "spare" }), 422, None),
    ] {
        for path in ["/v1/orders", "/v1/orders/preview"] {
            let (found, told) = appliance.request("POST", path, body.to_string().as_bytes())?;
            assert_eq!(found, status, "{path} {body}: {told}");
            let told: Value = serde_json::from_str(&told)?;
            assert_eq!(told["problems"][0]["pointer"].as_str(), pointer, "{body}: {told}");
        }
    }
    assert_eq!(appliance.get("/v1/orders")?, json!([]));
    assert_eq!(appliance.request("DELETE", "/v1/orders/7", b"")?.0, 404);
    assert_eq!(appliance.request("DELETE", "/v1/orders/seven", b"")?.0, 400);
    appliance.stop()?;
    Ok(())
}

#[test]
fn of_two_admins_who_undo_at_once_one_has_and_an_account_finds_its_own_messages_only() -> Result<()> {
    let stage = Stage::new()?;
    let tally = Arc::new(Tally::new(10_000));
    let mut blueprint = stage.blueprint()?;
    blueprint.account("acme", "").account("rival", "").peer("upstream", nowhere()?, PEER);
    let appliance = blueprint.start()?;
    for turn in 0..10 {
        let given = give(&appliance, &json!({ "what": "suspend", "where": { "prefix": "41" } }))?;
        let (path, start) = (format!("/v1/orders/{}", given["id"]), Barrier::new(2));
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
    let house = Visitor::house(&appliance)?;
    let token = house.make_token("acme-people", &json!({ "role": "account", "account": "acme" }))?;
    let acme = Visitor::nobody(&appliance).with_token(&token);
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
    assert_eq!(acme.ask("GET", "/v1/orders", None)?.status, 403);
    appliance.stop()?;
    Ok(())
}

#[test]
fn a_peer_that_throttles_gets_nine_tenths_of_what_it_allows_and_its_learnt_rate_is_shown() -> Result<()> {
    const ALLOWED: u32 = 50;
    const SECONDS: usize = 10;
    let stage = Stage::without_guests()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions { per_second: ALLOWED, ..SinkOptions::default() }, &tally)?;
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.native("upstream").account("acme", "window = 1000").peer("upstream", sink.address(), PEER);
    let appliance = blueprint.start()?;
    until("a link", || Ok(queue(&appliance, "upstream")?["links"] == 1))?;
    assert_eq!(queue(&appliance, "upstream")?["learnt_rate"], Value::Null);
    send(&appliance, &tally, "acme", 6_000)?;
    // The peer's own counts: with a pause that doubles for each refusal they never come to that.
    until("the peer gets what it allows", || {
        let seconds = sink.seconds();
        let Some((_, whole)) = seconds.split_last() else { return Ok(false) };
        let last = &whole[whole.len().saturating_sub(SECONDS)..];
        let taken: u32 = last.iter().map(|second| second.taken).sum();
        let throttled: u32 = last.iter().map(|second| second.throttled).sum();
        Ok(taken >= SECONDS as u32 * ALLOWED * 9 / 10 && throttled <= taken / 5)
    })?;
    until("the queue says so", || {
        let shown = queue(&appliance, "upstream")?;
        let rate = shown["learnt_rate"].as_f64().context("no rate")?;
        let says = |brake: &str| brake.starts_with("the peer throttles us: learnt rate ");
        Ok(shown["brake"].as_str().is_some_and(says) && (25.0..100.0).contains(&rate))
    })?;
    let metrics = appliance.request("GET", "/metrics", b"")?.1;
    assert!(metrics.contains("switchyard_peer_learnt_rate{peer=\"upstream\"} "), "{metrics}");
    assert_eq!(tally.accounts().duplicates, 0);
    appliance.stop()?;
    sink.stop()?;
    Ok(())
}

#[test]
fn queues_move_while_state_queries_wait_for_an_archive_that_hangs() -> Result<()> {
    const WAITING: u64 = 300;
    const QUERIES: u32 = 150;
    let stage = Stage::without_guests()?;
    let tally = Arc::new(Tally::new(10_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    // It takes connections and says nothing.
    let hanging = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("postgres://nobody@127.0.0.1:{}/archive", hanging.local_addr()?.port());
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    blueprint.native("upstream").account("acme", "window = 1000").archive(&url);
    blueprint.peer("upstream", nowhere()?, "receipts = false").tables("[engine]\nbody-cache = \"16KiB\"\n");
    let appliance = blueprint.start()?;
    send(&appliance, &tally, "acme", WAITING)?;

    let mut esme = Raw::connect(appliance.smpp())?;
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
    until("all arrive", || Ok(tally.arrived_so_far() == WAITING))?;

    let mut statuses = std::collections::BTreeSet::new();
    for _ in 0..QUERIES {
        let (id, status, _, _) = esme.receive()?;
        ensure!(id == 0x8000_0003, "{id:#x}");
        statuses.insert(status);
    }
    // ESME_RTHROTTLED for those of one account that are too many, ESME_RSYSERR for those that the archive does not answer.
    assert_eq!(statuses.into_iter().collect::<Vec<_>>(), [0x08, 0x58]);
    Ok(())
}

#[test]
fn an_account_has_one_rate_over_smpp_and_http() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    let keys = "rate = 0.001\nburst = 2\nsource = { default = \"10655\" }";
    blueprint.native("upstream").business_account("shop", keys, "");
    blueprint.peer("upstream", nowhere()?, "receipts = false");
    let appliance = blueprint.start()?;
    let over_http = || -> Result<String> {
        let mut http = Raw::connect(appliance.blueprint().business())?;
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
    // Both have used up the burst together.
    assert_eq!(over_http()?, "429");
    assert_eq!(esme.submit(2)?, Err(0x58));
    Ok(())
}
