//! A policy document is tried on messages before it is activated.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::TestDaemon;
use behaviour_tests::{AdminClient, Fixture, activate, bind, until, upload};
use serde_json::{Value, json};
use std::sync::Arc;

/// The hook without fields that change by themselves.
fn hook(appliance: &TestDaemon, hook: &str) -> Result<Value> {
    let state = appliance.get(&format!("/v1/hooks/{hook}"))?;
    Ok(json!([state["live"], state["counts"], state["candidate"], state["events"], state["faults"]]))
}

fn attempt(appliance: &TestDaemon, hook: &str, request: &Value) -> Result<Value> {
    appliance.ask("POST", &format!("/v1/hooks/{hook}/try"), request.to_string().as_bytes())
}

#[test]
fn typed_messages_show_both_decisions_and_change_nothing() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("north", "").account("south", "");
    let appliance = config.start()?;
    let live = "[[destination]]\nprefix = \"\"\noffers = [{ peer = \"north\", cost = \"0.02\" }]\n";
    let version =
        bind(&appliance, "router", "least-cost", &fixture.component("least_cost")?, live, &json!({}))?;
    let before = hook(&appliance, "router")?;
    let policy = "[[destination]]\nprefix = \"\"\noffers = [{ peer = \"north\", cost = \"0.02\" }]\n\
                  [[destination]]\nprefix = \"49\"\noffers = [{ peer = \"south\", cost = \"0.0125\" }, { peer = \"west\", cost = \"0.01\" }]\n";
    let messages = [
        json!({ "origin": "acme", "destination": "4917" }),
        json!({ "origin": "acme", "destination": "8613" }),
    ];
    let request = json!({ "plugin": "least-cost", "policy": policy, "messages": messages });
    let tried = attempt(&appliance, "router", &request)?;
    ensure!(tried["different"] == 1 && tried["complete"] == true, "{tried}");
    ensure!(tried["plugins"] == tried["live"] && tried["live"][0]["version"] == version, "{tried}");
    let (first, second) = (&tried["messages"][0], &tried["messages"][1]);
    ensure!(first["different"] == true && second["different"] == false, "{tried}");
    let decided = &first["tried"];
    // Neither account has a link, so messages wait for the cheapest peer that exists.
    ensure!(
        decided["legs"] == json!([{ "peer": "south", "rank": 0, "weight": 1, "cost": 12_500 }]),
        "{decided}"
    );
    ensure!(decided["note"].is_string() && decided["fault"].is_null(), "{decided}");
    ensure!(decided["by"] == format!("least-cost {version}"), "{decided}");
    ensure!(decided["cpu_ns"].as_u64() > Some(0), "{decided}");
    let calls = decided["host_calls"].to_string();
    ensure!(calls.contains("0 links, 0 queued") && calls.contains("\"west\""), "{calls}");
    ensure!(first["live"]["legs"][0]["peer"] == "north", "{first}");
    ensure!(
        tried["unknown"] == json!([{ "plugin": "least-cost", "kind": "peer", "name": "west" }]),
        "{tried}"
    );
    ensure!(hook(&appliance, "router")? == before, "the try left traces");

    let document = fixture.folder().join("offers.toml");
    std::fs::write(&document, policy)?;
    let mut command = fixture.command(&appliance);
    command.args(["policy", "try", "router", "--plugin", "least-cost", "--from-account", "acme"]);
    let output = command.args(["--destination", "4917", "--policy"]).arg(&document).output()?;
    let printed = String::from_utf8(output.stdout)?;
    for words in
        ["forward: south", "forward: north", "0.0125", "peer west: unknown", "1 of 1 decisions differ"]
    {
        ensure!(printed.contains(words), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

#[test]
fn a_refused_document_names_its_line() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "");
    let appliance = config.start()?;
    let version = upload(&appliance, "prefix-router", &fixture.component("prefix_router")?)?;
    let request = |more: Value| {
        let mut request = json!({ "plugin": "prefix-router", "version": version });
        if let (Some(all), Some(more)) = (request.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        request.to_string().into_bytes()
    };
    let messages = json!([{ "origin": "acme", "destination": "49" }]);
    for (hook, more, status, words) in [
        (
            "router",
            json!({ "policy": "\n[[route]]\nprefix = \"+4\"\nhome = true\n", "messages": messages }),
            422,
            "line 2",
        ),
        ("router", json!({ "policy": "[default]\nhome = true\n" }), 422, "needs `messages`"),
        (
            "router",
            json!({ "policy": "[default]\nhome = true\n", "messages": messages, "last": 1 }),
            422,
            "needs `messages`",
        ),
        ("router", json!({ "policy": "[default]\nhome = true\n", "last": 101 }), 422, "1 to 100"),
        ("router", json!({ "policy": "[default]\nreject = \"no-route\"\n", "last": 1 }), 409, "no archive"),
        (
            "router",
            json!({ "policy": "[default]\nhome = true\n", "messages": [{ "origin": "nobody", "destination": "4" }] }),
            404,
            "nobody",
        ),
        ("router", json!({ "policy": "[default]\nhome = tru\n", "messages": [] }), 422, "line 2, column 8"),
        (
            "router",
            json!({ "policy": "[default]\nreject = \"no-route\"\n", "messages": [] }),
            200,
            "\"unknown\":[]",
        ),
        ("resolver", json!({ "messages": messages }), 422, "screen, router and biller"),
        ("biller", json!({ "policy": "", "messages": messages }), 422, "serves the hook"),
    ] {
        let (answered, text) = appliance.request("POST", &format!("/v1/hooks/{hook}/try"), &request(more))?;
        ensure!(answered == status && text.contains(words), "{hook}: {answered} {text}");
    }
    Ok(())
}

#[test]
fn a_price_is_tried_and_counters_begin_empty() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("upstream", "");
    let appliance = config.start()?;
    let live = "default-tariff = \"a\"\n[[tariff]]\nname = \"a\"\nprices = { \"\" = \"0.05\" }\n";
    bind(&appliance, "biller", "prepaid", &fixture.component("prepaid")?, live, &json!({}))?;
    let messages = json!([{ "origin": "acme", "destination": "4917" }]);
    let policy = live.replace("0.05", "0.07");
    let request = json!({ "plugin": "prepaid", "policy": policy, "messages": messages });
    let tried = attempt(&appliance, "biller", &request)?;
    let one = &tried["messages"][0];
    ensure!(one["different"] == true && one["live"]["price"]["amount"] == 50_000, "{tried}");
    ensure!(
        one["tried"]["price"]["amount"] == 70_000 && one["tried"]["price"]["account"] == "acme",
        "{tried}"
    );

    let guard = upload(&appliance, "fraud-guard", &fixture.component("fraud_guard")?)?;
    let policy = "[[velocity]]\nname = \"v\"\nmessages = 1\nwindow = \"1h\"\n";
    let messages =
        json!([{ "origin": "acme", "destination": "4917" }, { "origin": "acme", "destination": "4918" }]);
    let request = json!({ "plugin": "fraud-guard", "version": guard, "policy": policy, "position": 0, "messages": messages });
    for _ in 0..2 {
        let tried = attempt(&appliance, "router", &request)?;
        ensure!(tried["plugins"].as_array().is_some_and(|all| all.len() == 2), "{tried}");
        let (first, second) = (&tried["messages"][0], &tried["messages"][1]);
        ensure!(first["different"] == false, "{tried}");
        ensure!(
            second["tried"]["decision"] == "reject: prohibited" && second["different"] == true,
            "{tried}"
        );
    }
    Ok(())
}

#[test]
fn archived_messages_are_tried_with_the_recorded_answers() -> Result<()> {
    let fixture = Fixture::new()?;
    let sink = Sink::start(SinkOptions::default(), &Arc::new(Tally::new(100)))?;
    let mut config = fixture.config()?;
    config.account("acme", "").account("south", "").peer("upstream", sink.address(), "dlrs = false");
    config.archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()));
    let appliance = config.start()?;
    let offer = |peer: &str| {
        format!("[[destination]]\nprefix = \"\"\noffers = [{{ peer = \"{peer}\", cost = \"0.02\" }}]\n")
    };
    let component = fixture.component("least_cost")?;
    let version = bind(&appliance, "router", "least-cost", &component, &offer("upstream"), &json!({}))?;
    for number in ["8613012345678", "8613012345679"] {
        let message = json!({ "account": "acme", "from": "1", "to": number, "text": "hi" });
        appliance.ask("POST", "/v1/messages", message.to_string().as_bytes())?;
    }
    until("both are in the archive", || Ok(appliance.get("/v1/archive")?["archived"].as_u64() >= Some(2)))?;
    activate(&appliance, "router", ("least-cost", &version), &offer("upstream"), &json!({}))?;

    let request = json!({ "plugin": "least-cost", "policy": offer("south"), "last": 1 });
    let tried = attempt(&appliance, "router", &request)?;
    ensure!(tried["messages"].as_array().is_some_and(|all| all.len() == 1), "{tried}");
    let one = &tried["messages"][0];
    ensure!(one["destination"] == "8613012345679" && one["id"].is_string(), "{tried}");
    ensure!(one["live"]["legs"][0]["peer"] == "upstream", "{tried}");
    let recorded = one["live"]["host_calls"].to_string();
    ensure!(recorded.contains("1 link, "), "{recorded}");
    // The state of the other peer was not asked for at the time.
    ensure!(one["inexact"].as_str().context("exact")?.contains("a peer's state"), "{tried}");

    let root = AdminClient::root(&appliance)?;
    let token = root.make_token("operator", &json!({ "role": "operator" }))?;
    let operator = AdminClient::anonymous(&appliance).with_token(&token);
    let request = json!({ "plugin": "least-cost", "last": 100 });
    let answer = operator.ask("POST", "/v1/hooks/router/try", Some(&request))?;
    let tried = answer.json()?;
    ensure!(tried["different"] == 0 && tried["complete"] == true, "{tried}");
    let text = tried.to_string();
    ensure!(text.contains("8613*******78") && !text.contains("8613012345678"), "{text}");
    let viewer = root.make_token("viewer", &json!({ "role": "viewer" }))?;
    let refused = AdminClient::anonymous(&appliance).with_token(&viewer).ask(
        "POST",
        "/v1/hooks/router/try",
        Some(&request),
    )?;
    ensure!(refused.status == 403, "{}", refused.status);

    // The same messages as cases, which pass, and in a profile.
    let refused = operator.ask("POST", "/v1/hooks/router/cases", Some(&request))?;
    ensure!(refused.status == 403, "{}", refused.status);
    let folder = fixture.folder();
    std::fs::write(folder.join("least_cost.wasm"), fixture.component("least_cost")?)?;
    let run = |arguments: &[&str]| -> Result<String> {
        let output = fixture.command(&appliance).current_dir(folder).args(arguments).output()?;
        let printed = String::from_utf8([output.stdout, output.stderr].concat())?;
        ensure!(output.status.success(), "{arguments:?}: {printed}");
        Ok(printed)
    };
    let printed = run(&["plugin", "case", "router", "--last", "100", "--append", "cases.toml"])?;
    ensure!(printed.contains("2 cases of messages appended"), "{printed}");
    let cases = std::fs::read_to_string(folder.join("cases.toml"))?;
    ensure!(cases.contains("8613012345678") && cases.contains("text = \"hi\""), "{cases}");
    ensure!(cases.contains("upstream = { links = 1") || cases.contains("upstream.links = 1"), "{cases}");
    let printed = run(&["plugin", "test", "least_cost.wasm"])?;
    ensure!(printed.contains("2 cases, all right"), "{printed}{cases}");
    let printed = run(&["plugin", "profile", "least_cost.wasm", "--replay", "2", "--samples", "50"])?;
    ensure!(printed.contains(" of 2 cases\n") && printed.contains("LeastCost"), "{printed}");
    let audit = appliance.get("/v1/audit")?.to_string();
    ensure!(audit.contains("2 cases"), "{audit}");
    sink.stop()?;
    Ok(())
}

#[test]
fn a_document_of_screens_is_tried_on_typed_texts() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = fixture.config()?;
    config.account("acme", "");
    let appliance = config.start()?;
    let version = upload(&appliance, "firewall", &fixture.component("firewall")?)?;
    let policy = "[[rule]]\nname = \"lottery\"\nwords = \"lottery\"\nthen = \"quarantine\"\n";
    let messages = [
        json!({ "origin": "acme", "destination": "4917", "text": "the LOTTERY is open" }),
        json!({ "origin": "acme", "destination": "4917", "text": "grüße, 您好" }),
    ];
    let request = json!({ "plugin": "firewall", "version": version, "policy": policy, "messages": messages });
    let tried = attempt(&appliance, "screen", &request)?;
    // No screen is live, so that all messages pass there.
    ensure!(tried["different"] == 1 && tried["live"] == json!([]), "{tried}");
    let (first, second) = (&tried["messages"][0], &tried["messages"][1]);
    ensure!(first["tried"]["decision"] == "quarantine" && first["live"]["decision"] == "pass", "{first}");
    ensure!(first["tried"]["note"].to_string().contains("lottery"), "{first}");
    ensure!(second["tried"]["decision"] == "pass" && second["different"] == false, "{second}");
    ensure!(appliance.get("/v1/quarantine")?["messages"] == json!([]), "nothing is kept");
    Ok(())
}
