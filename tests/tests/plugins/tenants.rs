//! Routers of tenants in the operator's chain.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::TestDaemon;
use behaviour_tests::{AdminClient, Fixture, bind, until};
use serde_json::{Value, json};
use std::sync::Arc;

const TENANTS: &str = "[[tenant]]\nname = \"northern\"\n[[tenant]]\nname = \"northern-shop\"\nparent = \"northern\"\n\
                       [[tenant]]\nname = \"southern\"\n";

fn all_to(peer: &str) -> String {
    format!("[default]\nlegs = [{{ peer = \"{peer}\" }}]\n")
}

struct TenantRouters {
    appliance: TestDaemon,
    root: AdminClient,
    version: String,
    _sinks: Vec<Sink>,
}

impl TenantRouters {
    /// Peers `one`, `two` and `three`. All messages go to `three` unless a tenant's router decides otherwise.
    fn start(fixture: &Fixture) -> Result<Self> {
        let tally = Arc::new(Tally::new(1_000));
        let mut config = fixture.config()?;
        let mut sinks = Vec::new();
        for peer in ["one", "two", "three"] {
            let sink = Sink::start(SinkOptions::default(), &tally)?;
            config.peer(peer, sink.address(), "dlrs = false");
            sinks.push(sink);
        }
        config
            .account("shop", "tenant = \"northern-shop\"")
            .account("bank", "tenant = \"southern\"")
            .account("own", "")
            .tables(TENANTS);
        let appliance = config.start()?;
        let root = AdminClient::root(&appliance)?;
        let component = fixture.component("prefix_router")?;
        let version = bind(&appliance, "router", "prefix-router", &component, &all_to("three"), &json!({}))?;
        Ok(Self { appliance, root, version, _sinks: sinks })
    }

    /// Binds a router for a tenant; returns status and answer.
    fn bind(&self, tenant: &str, peer: &str, more: &Value) -> Result<(u16, String)> {
        let mut binding = json!({
            "plugin": "prefix-router", "version": self.version, "policy": all_to(peer), "tenant": tenant,
            "peers": [peer], "deadline-ms": 10_000
        });
        if let (Some(binding), Some(more)) = (binding.as_object_mut(), more.as_object()) {
            binding.extend(more.clone());
        }
        let reply = self.root.ask("POST", "/v1/hooks/router/activate", Some(&binding))?;
        Ok((reply.status, reply.text))
    }

    /// The peer that gets a message of an account.
    fn peer_of(&self, account: &str) -> Result<String> {
        let message = json!({ "account": account, "from": "4420", "to": "33123456789", "text": "hello" });
        let reply = self.root.ask("POST", "/v1/messages", Some(&message))?;
        ensure!(reply.status == 201, "{account}: {} {}", reply.status, reply.text);
        let path = format!("/v1/messages/{}", reply.json()?["id"].as_str().context("no id")?);
        until("there is a submit attempt", || {
            Ok(self.appliance.get(&path)?["attempts"][0]["peer"].is_string())
        })?;
        let trace = self.appliance.get(&path)?;
        Ok(trace["attempts"][0]["peer"].as_str().context("no peer")?.to_owned())
    }

    fn chain(&self) -> Result<Vec<Value>> {
        let state = self.appliance.get("/v1/hooks/router")?;
        let chain = state["live"]["chain"].as_array().context("no chain")?;
        Ok(chain.iter().map(|one| one["tenant"].clone()).collect())
    }
}

#[test]
fn each_router_is_asked_for_its_own_tenant() -> Result<()> {
    let fixture = Fixture::new()?;
    let routers = TenantRouters::start(&fixture)?;
    for (tenant, peer) in [("northern", "one"), ("southern", "two")] {
        let (status, text) = routers.bind(tenant, peer, &json!({}))?;
        ensure!(status == 200, "{tenant}: {status} {text}");
    }
    assert_eq!(routers.chain()?, [json!("southern"), json!("northern"), Value::Null]);
    for (account, peer) in [("shop", "one"), ("bank", "two"), ("own", "three"), ("shop", "one")] {
        assert_eq!(routers.peer_of(account)?, peer, "{account}");
    }
    // The operator's binding is replaced without affecting those of tenants.
    let operators = json!({ "plugin": "prefix-router", "policy": all_to("two") });
    ensure!(routers.root.ask("POST", "/v1/hooks/router/activate", Some(&operators))?.status == 200);
    assert_eq!((routers.peer_of("own")?, routers.peer_of("shop")?), ("two".to_owned(), "one".to_owned()));

    // Calls are counted to the tenant of the binding.
    let tenants = routers.appliance.get("/v1/tenants")?;
    let calls = |tenants: &Value, name: &str| {
        let all = tenants.as_array().into_iter().flatten();
        all.filter(|one| one["name"] == name).map(|one| one["plugins"]["calls"].clone()).next()
    };
    assert_eq!(calls(&tenants, "northern"), Some(json!(3)), "{tenants}");
    assert_eq!(calls(&tenants, "southern"), Some(json!(1)), "{tenants}");
    assert_eq!(calls(&tenants, "northern-shop"), Some(Value::Null), "{tenants}");
    let metrics = routers.appliance.metrics()?;
    let counted = |tenant: &str| {
        let name = format!("switchyard_tenant_plugin_calls_total{{tenant=\"{tenant}\"}}");
        metrics.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    };
    assert_eq!((counted("northern"), counted("southern")), (Some(3.0), Some(1.0)));
    assert_eq!(counted("northern-shop"), None, "no plugin is bound for it");

    // A user of a tenant sees the calls of its branch, and no hook.
    let token = routers.root.make_token("ci@southern", &json!({ "role": "viewer", "tenant": "southern" }))?;
    let southern = AdminClient::anonymous(&routers.appliance).with_token(&token);
    let own = southern.ask("GET", "/v1/tenants", None)?;
    assert_eq!(calls(&own.json()?, "southern"), Some(json!(1)));
    ensure!(!own.text.contains("northern"), "{}", own.text);
    assert_eq!(southern.ask("GET", "/v1/hooks/router", None)?.status, 403);
    Ok(())
}

#[test]
fn a_removed_tenants_router_is_asked_no_longer() -> Result<()> {
    let fixture = Fixture::new()?;
    let routers = TenantRouters::start(&fixture)?;
    let (status, text) = routers.bind("nowhere", "one", &json!({}))?;
    ensure!(status == 422 && text.contains("not a [[tenant]]"), "{status} {text}");
    ensure!(routers.bind("southern", "two", &json!({}))?.0 == 200);
    assert_eq!(routers.peer_of("bank")?, "two");
    let configuration = routers.appliance.get("/v1/configuration")?;
    let mut document = configuration["document"].clone();
    let kept = |one: &Value| one["name"] != "southern";
    let tenants: Vec<Value> = document["tenant"].as_array().context("no tenants")?.clone();
    document["tenant"] = tenants.into_iter().filter(kept).collect();
    for account in document["account"].as_array_mut().context("no accounts")? {
        if account["name"] == "bank" {
            account.as_object_mut().context("no object")?.remove("tenant");
        }
    }
    let tag = format!("\"{}\"", configuration["version"]);
    let headers = [("if-match", tag.as_str()), ("content-type", "application/json")];
    let changed =
        routers.appliance.send("PUT", "/v1/configuration", document.to_string().as_bytes(), &headers)?;
    ensure!(changed.0 == 200, "{changed:?}");
    assert_eq!(routers.peer_of("bank")?, "three");
    assert_eq!(routers.chain()?, [json!("southern"), Value::Null], "the binding stays");
    // It does not prevent other changes.
    let bound = routers.bind("northern", "one", &json!({}))?;
    ensure!(bound.0 == 200, "{bound:?}");
    assert_eq!(routers.peer_of("shop")?, "one");
    Ok(())
}

#[test]
fn a_router_that_names_a_peer_of_others_is_a_fault() -> Result<()> {
    let fixture = Fixture::new()?;
    let routers = TenantRouters::start(&fixture)?;
    let outside = json!({ "peers": ["two"] });
    let (status, text) = routers.bind("southern", "one", &outside)?;
    ensure!(status == 422 && text.contains("names one, to which its binding does not let it"), "{text}");
    let mut forced = json!({ "peers": ["two"], "force": true, "on-fault": "pass" });
    let bound = routers.bind("southern", "one", &forced)?;
    ensure!(bound.0 == 200, "{bound:?}");
    assert_eq!(routers.peer_of("bank")?, "three", "the operator's router decides");
    forced["on-fault"] = json!({ "peer": "two" });
    let bound = routers.bind("southern", "one", &forced)?;
    ensure!(bound.0 == 200, "{bound:?}");
    assert_eq!(routers.peer_of("bank")?, "two");
    let state = routers.appliance.get("/v1/hooks/router")?;
    let what = state["faults"][0]["examples"][0]["what"].as_str().context("no example")?;
    ensure!(what.contains("not among the `peers` of its binding for tenant southern"), "{what}");
    Ok(())
}
