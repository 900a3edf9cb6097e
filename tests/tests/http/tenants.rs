//! Tenants: isolation of branches, in every operation of the API.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{AdminClient, Fixture, until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// ESME_RSYSERR: the peer may accept it later.
const FAULT: u32 = 0x08;

/// Names, numbers and texts of the branch `southern`; its message ids are added at run time.
const FOREIGN: [&str; 10] = [
    "southern",
    "omega-bank",
    "omega-hidden",
    "447700900123",
    "4915999888",
    "omegasecret",
    "7771234567",
    "bert@southern",
    "ci@southern",
    "omega-reason",
];

/// Three destinations: delivered, deferred for ever, and an account of `southern` as a peer.
const ROUTES: &str = "[[route]]\nprefix = \"4915999888\"\nlegs = [{ peer = \"upstream\" }]\n\
                      [[route]]\nprefix = \"4916\"\nlegs = [{ peer = \"broken\" }]\n\
                      [[route]]\nprefix = \"4917\"\nlegs = [{ peer = \"omega-hidden\" }]\n\
                      [default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"as for omega-bank\"\n";

pub(crate) struct TwoBranches {
    pub(crate) appliance: TestDaemon,
    root: AdminClient,
    document: Value,
    /// Messages of `southern`: finished, waiting.
    foreign_ids: Vec<String>,
    /// Messages of `northern`: finished, waiting, and routed to an account of `southern`.
    own_ids: Vec<String>,
    _sinks: [Sink; 2],
    fixture: Fixture,
}

impl TwoBranches {
    pub(crate) fn start() -> Result<Self> {
        let fixture = Fixture::new()?;
        let tally = Arc::new(Tally::new(1_000));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let broken = Sink::start(SinkOptions { error_status: FAULT, ..SinkOptions::default() }, &tally)?;
        let mut config = fixture.config()?;
        config
            .router(&fixture.guest("prefix_router"), ROUTES)?
            .archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()))
            .peer("upstream", sink.address(), "dlrs = false")
            .peer("broken", broken.address(), "")
            .account("alpha", "tenant = \"northern-shop\"")
            .account("omega-bank", "tenant = \"southern\"")
            .account("omega-hidden", "tenant = \"southern\"")
            .account("carriers", "")
            .tables(
                "[[tenant]]\nname = \"northern\"\n[[tenant]]\nname = \"northern-shop\"\nparent = \"northern\"\n\
                 [[tenant]]\nname = \"southern\"\n",
            );
        let appliance = config.start()?;
        let root = AdminClient::root(&appliance)?;
        let document = appliance.get("/v1/openapi.json")?;
        for (name, credit, fund, reason) in [
            ("omega-bank", 1, 7_771_234_567_i64, "omega-reason"),
            ("southern", 1, 7_771_234_567, "omega-reason"),
            ("alpha", 1, 5_000, "alpha-reason"),
        ] {
            let made = appliance.ledger(
                name,
                &format!("{name}-1"),
                &json!({ "credit": credit, "reason": reason }),
            )?;
            ensure!(made.0 == 200, "{made:?}");
            let made =
                appliance.ledger(name, &format!("{name}-2"), &json!({ "fund": fund, "reason": reason }))?;
            ensure!(made.0 == 200, "{made:?}");
        }
        for tenant in ["southern", "northern-shop"] {
            root.make_user(
                &format!("bert@{tenant}"),
                "correct horse",
                &json!({ "role": "viewer", "tenant": tenant }),
            )?;
            root.make_token(&format!("ci@{tenant}"), &json!({ "role": "operator", "tenant": tenant }))?;
        }
        let send = |account: &str, to: &str, text: &str| -> Result<String> {
            let message = json!({ "account": account, "from": "447700900123", "to": to, "text": text });
            let from_alpha = json!({ "account": account, "from": "4420", "to": to, "text": text });
            let message = if account == "alpha" { from_alpha } else { message };
            let reply = root.ask("POST", "/v1/messages", Some(&message))?;
            ensure!(reply.status == 201, "{}", reply.text);
            Ok(reply.json()?["id"].as_str().context("no id")?.to_owned())
        };
        let foreign_ids = vec![
            send("omega-bank", "4915999888777", "omegasecret one")?,
            send("omega-bank", "4916999888777", "omegasecret two")?,
        ];
        let own_ids = vec![
            send("alpha", "33123456789", "alpha one")?,
            send("alpha", "4916123456", "alpha two")?,
            send("alpha", "4917123456", "alpha three")?,
        ];
        for id in [&foreign_ids[0], &own_ids[0]] {
            let archived = |page: &Value| {
                page["messages"].as_array().is_some_and(|all| all.iter().any(|one| one["id"] == **id))
            };
            until("the message is archived", || Ok(archived(&appliance.get("/v1/history")?)))?;
        }
        for id in [&foreign_ids[1], &own_ids[1]] {
            let path = format!("/v1/messages/{id}");
            until("the message is deferred", || Ok(appliance.get(&path)?["state"] == "deferred"))?;
        }
        // An entry of the audit log of each branch.
        let branches =
            Self { appliance, root, document, foreign_ids, own_ids, _sinks: [sink, broken], fixture };
        let southern = branches.caller("auditor", "admin", "southern", true)?;
        let path = format!("/v1/messages/{}?body=1", branches.foreign_ids[0]);
        ensure!(southern.ask("GET", &path, None)?.text.contains("omegasecret"), "southern sees its own");
        Ok(branches)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.fixture.folder()
    }

    /// Words that are in answers about `southern` only.
    pub(crate) fn foreign_words(&self) -> Vec<String> {
        let ids = self.foreign_ids.iter().map(|id| format!("\"{id}\""));
        FOREIGN.iter().map(|word| (*word).to_owned()).chain(ids).collect()
    }

    pub(crate) fn ensure_foreign_is_unchanged(&self) -> Result<()> {
        let waiting = format!("/v1/messages/{}", self.foreign_ids[1]);
        ensure!(self.appliance.get(&waiting)?["state"] == "deferred");
        ensure!(self.appliance.get("/v1/users/bert@southern")?["bodies"] == false);
        let finished = format!("/v1/messages/{}?body=1", self.foreign_ids[0]);
        ensure!(self.appliance.get(&finished)?["body"] == "omegasecret one");
        ensure!(self.appliance.get("/v1/tokens")?.to_string().contains("ci@southern"));
        ensure!(!self.appliance.get("/v1/users")?.to_string().contains("new@southern"));
        Ok(())
    }

    /// A client with a token of a tenant.
    fn caller(&self, name: &str, role: &str, tenant: &str, bodies: bool) -> Result<AdminClient> {
        Ok(AdminClient::anonymous(&self.appliance).with_token(&self.token(name, role, tenant, bodies)?))
    }

    /// A token of a tenant.
    pub(crate) fn token(&self, name: &str, role: &str, tenant: &str, bodies: bool) -> Result<String> {
        let mut token = json!({ "role": role, "tenant": tenant, "bodies": bodies });
        if role == "account" {
            token["account"] = "alpha".into();
        }
        self.root.make_token(&format!("{name}-{role}@{tenant}"), &token)
    }

    /// Strings of `southern` that the answer contains and the request does not.
    fn leaks(&self, request: &str, text: &str) -> Vec<String> {
        let words = self.foreign_words().into_iter();
        words.filter(|word| text.contains(word) && !request.contains(word.trim_matches('"'))).collect()
    }

    /// All operations of the document that need credentials, as `(method, path)`.
    fn operations(&self) -> Result<Vec<(String, String)>> {
        let mut operations = Vec::new();
        for (path, item) in self.document["paths"].as_object().context("no paths")? {
            for (method, operation) in item.as_object().context("no operations")? {
                if operation["security"].as_array().is_none_or(|all| !all.is_empty()) {
                    operations.push((method.to_uppercase(), path.clone()));
                }
            }
        }
        Ok(operations)
    }

    /// Requests for an operation: paths, each with a body, about objects of a branch.
    fn requests(&self, method: &str, path: &str, is_own: bool) -> Vec<(String, Option<Value>)> {
        let (ids, account, tenant) = if is_own {
            (&self.own_ids, "alpha", "northern-shop")
        } else {
            (&self.foreign_ids, "omega-bank", "southern")
        };
        let name = if path.starts_with("/v1/tokens") { "ci" } else { "bert" };
        let filled = |id: &str| {
            path.replace("{id}", id)
                .replace("{account}", account)
                .replace("{hook}", "router")
                .replace("{name}", &format!("{name}@{tenant}"))
                .split('/')
                .map(|part| if part.starts_with('{') { "1" } else { part })
                .collect::<Vec<_>>()
                .join("/")
        };
        let body = match (method, path) {
            ("POST", "/v1/messages") => {
                json!({ "account": account, "from": "4420", "to": "33123456789", "text": "another" })
            }
            ("POST", "/v1/conversions") => json!({ "messages": ids }),
            ("POST", "/v1/users" | "/v1/tokens") => {
                json!({ "name": format!("new@{tenant}"), "role": "viewer", "tenant": tenant })
            }
            ("PATCH", "/v1/users/{name}") => json!({ "bodies": true }),
            ("POST", "/v1/messages/{id}/settle") => json!({ "remedy": "give-up" }),
            _ => json!({}),
        };
        let body = (method != "GET" && method != "DELETE").then_some(body);
        let mut requests: Vec<_> = if path.contains("{id}") {
            ids.iter().map(|id| (filled(id), body.clone())).collect()
        } else {
            vec![(filled(""), body)]
        };
        if method == "GET" {
            let queries: &[String] = match path {
                "/v1/messages" | "/v1/history" | "/v1/history/export" | "/v1/statistics" => &[
                    format!("account={account}"),
                    "peer=omega-hidden".to_owned(),
                    "peer=broken".to_owned(),
                    "account=carriers".to_owned(),
                ],
                "/v1/messages/{id}" => &["body=1".to_owned()],
                "/v1/audit" => &["limit=1000".to_owned(), format!("by=token:auditor-admin@{tenant}")],
                _ => &[],
            };
            let with_query: Vec<_> = requests
                .iter()
                .flat_map(|(path, _)| queries.iter().map(move |query| (format!("{path}?{query}"), None)))
                .collect();
            requests.extend(with_query);
            if matches!(path, "/v1/messages" | "/v1/history" | "/v1/history/export") {
                requests.push((format!("{path}?number=4915999888777"), None));
            }
            if path.starts_with("/v1/history") {
                requests.push((format!("{path}?trace=1&body=1"), None));
            }
        }
        requests
    }
}

#[test]
fn no_operation_shows_anything_of_another_branch() -> Result<()> {
    let branches = TwoBranches::start()?;
    let (mut refused, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for tenant in ["northern", "northern-shop"] {
        for role in ["account", "viewer", "operator", "admin"] {
            let caller = branches.caller("walker", role, tenant, true)?;
            for (method, path) in branches.operations()? {
                // Requests about the branch's own objects change them; other tests make them.
                let own = if method == "GET" { branches.requests(&method, &path, true) } else { Vec::new() };
                let foreign = branches.requests(&method, &path, false);
                let is_foreign = foreign.len();
                for (index, (at, body)) in foreign.into_iter().chain(own).enumerate() {
                    if path == "/v1/sessions/current" {
                        continue;
                    }
                    let name = format!("{method} {at} as {role} of {tenant}");
                    let reply = branches
                        .leak_checked(&caller, &method, &at, body.as_ref())
                        .with_context(|| name.clone())?;
                    ensure!(reply.0 != 500, "{name}: {}", reply.1);
                    if reply.1.contains("\"reason\":\"tenant\"") {
                        refused.insert(format!("{method} {path}"));
                    } else if reply.0 < 300 {
                        answered.insert(format!("{method} {path}"));
                    }
                    // Objects of another branch look as if they did not exist.
                    let is_object = path.contains('{') && index < is_foreign;
                    ensure!(
                        !is_object || matches!(reply.0, 400 | 403 | 404),
                        "{name}: {} {}",
                        reply.0,
                        reply.1
                    );
                }
            }
        }
    }
    ensure!(refused.len() > 80, "{refused:#?}");
    ensure!(answered.len() >= 14, "{answered:#?}");
    ensure!(refused.is_disjoint(&answered), "{:?}", refused.intersection(&answered));
    branches.ensure_foreign_is_unchanged()
}

impl TwoBranches {
    /// Sends a request; returns status and body, which has nothing of `southern`.
    fn leak_checked(
        &self,
        caller: &AdminClient,
        method: &str,
        at: &str,
        body: Option<&Value>,
    ) -> Result<(u16, String)> {
        let reply = caller.ask(method, at, body)?;
        let request = format!("{at} {}", body.map(Value::to_string).unwrap_or_default());
        let headers = format!("{:?}", reply.headers);
        let mut text = reply.text.clone();
        if at.starts_with("/v1/audit") && reply.status == 200 {
            // The audit log contains subjects of all requests of the branch's users, found or not; also the objects of
            // this walk.
            let mut audit: Value = serde_json::from_str(&text)?;
            for entry in audit["entries"].as_array_mut().into_iter().flatten() {
                let tenant = entry["tenant"].as_str().unwrap_or_default();
                ensure!(matches!(tenant, "northern" | "northern-shop"), "{entry}");
                entry["subject"] = Value::Null;
                entry["detail"] = Value::Null;
            }
            text = audit.to_string();
        }
        let leaks = self.leaks(&request, &format!("{headers} {text}"));
        ensure!(leaks.is_empty(), "shows {leaks:?}: {} {:.3000}", reply.status, reply.text);
        Ok((reply.status, reply.text))
    }
}

#[test]
fn a_tenant_sees_and_operates_what_is_its_own() -> Result<()> {
    let branches = TwoBranches::start()?;
    let northern = branches.caller("owner", "admin", "northern", true)?;
    let get = |path: &str| -> Result<Value> {
        let reply = northern.ask("GET", path, None)?;
        ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.text);
        reply.json()
    };
    let alpha = json!({ "name": "alpha", "tenant": "northern-shop", "messages_per_day": null });
    assert_eq!(get("/v1/accounts")?, json!([alpha]));
    let names: Vec<_> =
        get("/v1/tenants")?.as_array().context("no list")?.iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["northern", "northern-shop"]);
    assert_eq!(get("/v1/whoami")?["tenant"], "northern");
    let ids = |page: Value| -> Vec<String> {
        let messages = page["messages"].as_array().cloned().unwrap_or_default();
        messages.iter().filter_map(|one| one["id"].as_str().map(str::to_owned)).rev().collect()
    };
    assert_eq!(ids(get("/v1/messages")?), branches.own_ids);
    assert_eq!(ids(get("/v1/messages?account=alpha&peer=broken")?), branches.own_ids[1..2]);
    assert_eq!(ids(get("/v1/history")?), branches.own_ids[..1]);
    ensure!(get("/v1/statistics")?.as_array().is_some_and(|rows| !rows.is_empty()));
    assert_eq!(get("/v1/ledger")?["accounts"][0]["account"], "alpha");
    assert_eq!(get("/v1/ledger/alpha")?["balance"], 5_000);
    assert_eq!(get("/v1/ledger/alpha/operations")?.as_array().map(Vec::len), Some(2));
    let users = get("/v1/users")?.to_string();
    ensure!(users.contains("bert@northern-shop") && !users.contains("southern"), "{users}");
    // The account of another branch that its message waits for has no name.
    let trace = get(&format!("/v1/messages/{}?body=1", branches.own_ids[2]))?;
    assert_eq!(trace["body"], "alpha three");
    ensure!(trace.to_string().contains("(other)") && !trace.to_string().contains("omega"), "{trace}");
    let export = northern.ask("GET", "/v1/history/export", None)?;
    ensure!(
        export.text.contains(&branches.own_ids[0]) && export.text.lines().count() == 2,
        "{}",
        export.text
    );

    let send = |method: &str, path: &str, body: Option<Value>| northern.ask(method, path, body.as_ref());
    let reply = send("POST", &format!("/v1/messages/{}/cancel", branches.own_ids[1]), None)?;
    assert_eq!(reply.status, 204, "{}", reply.text);
    let reply = send("DELETE", &format!("/v1/messages/{}/content", branches.own_ids[0]), None)?;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let message = json!({ "account": "alpha", "from": "4420", "to": "33123456789", "text": "one more" });
    assert_eq!(send("POST", "/v1/messages", Some(message))?.status, 201);
    // The audit log contains the operations of the branch's users, and no others.
    let audit = get("/v1/audit?limit=1000")?;
    let entries = audit["entries"].as_array().context("no entries")?;
    ensure!(entries.len() >= 3 && entries.iter().all(|entry| entry["tenant"] == "northern"), "{audit}");
    // The root token sees all.
    assert_eq!(branches.appliance.get("/v1/accounts")?.as_array().map(Vec::len), Some(4));
    Ok(())
}

#[test]
fn users_of_a_tenant_stay_within_its_branch() -> Result<()> {
    let branches = TwoBranches::start()?;
    let northern = branches.caller("owner", "admin", "northern", false)?;
    let make = |user: Value| northern.ask("POST", "/v1/users", Some(&user));
    let made = make(json!({ "name": "ann@northern", "role": "admin", "password": "correct horse" }))?;
    assert_eq!((made.status, made.json()?["tenant"].clone()), (201, json!("northern")), "{}", made.text);
    let below = json!({ "name": "eve@northern-shop", "role": "account", "account": "alpha", "tenant": "northern-shop" });
    assert_eq!(make(below)?.status, 201);
    for (user, field) in [
        // Another's tenant, one that does not exist, a name without the tenant, and accounts of others.
        (json!({ "name": "x@southern", "role": "viewer", "tenant": "southern" }), "tenant"),
        (json!({ "name": "x@nowhere", "role": "viewer", "tenant": "nowhere" }), "tenant"),
        (json!({ "name": "x", "role": "viewer" }), "name"),
        (json!({ "name": "bert@southern", "role": "viewer" }), "name"),
        (json!({ "name": "x@northern", "role": "account", "account": "omega-bank" }), "account"),
        (json!({ "name": "x@northern", "role": "account", "account": "carriers" }), "account"),
    ] {
        let reply = make(user.clone())?;
        assert_eq!(reply.status, 422, "{user}: {}", reply.text);
        assert_eq!(reply.json()?["problems"][0]["pointer"], format!("/{field}"), "{user}: {}", reply.text);
    }
    // An account of another branch cannot be set later either.
    let change = json!({ "role": "account", "account": "omega-bank" });
    assert_eq!(northern.ask("PATCH", "/v1/users/ann@northern", Some(&change))?.status, 422);
    for (method, path) in [
        ("GET", "/v1/users/bert@southern"),
        ("DELETE", "/v1/users/bert@southern"),
        ("DELETE", "/v1/tokens/ci@southern"),
    ] {
        let missing = northern.ask(method, &path.replace("@southern", "@nowhere"), None)?;
        let foreign = northern.ask(method, path, None)?;
        assert_eq!((missing.status, foreign.status), (404, 404));
        assert_eq!(missing.text.replace("@nowhere", "@southern"), foreign.text, "{method} {path}");
    }
    // A session has the tenant of its user, and the operator's users are not the tenant's.
    let login = json!({ "user": "ann@northern", "password": "correct horse" });
    let ann = AdminClient::anonymous(&branches.appliance).with_session(&login)?;
    assert_eq!(ann.ask("GET", "/v1/status", None)?.status, 403);
    assert_eq!(ann.ask("GET", "/v1/messages", None)?.status, 200);
    assert_eq!(
        ann.ask(
            "POST",
            "/v1/whoami/password",
            Some(&json!({ "old": "correct horse", "new": "battery staple" }))
        )?
        .status,
        204
    );
    let carrier = json!({ "name": "mallory@northern", "role": "admin" });
    assert_eq!(branches.root.ask("POST", "/v1/users", Some(&carrier))?.status, 422);
    Ok(())
}

#[test]
fn a_tenant_that_is_removed_leaves_users_who_see_nothing() -> Result<()> {
    let branches = TwoBranches::start()?;
    let southern = branches.caller("owner", "admin", "southern", true)?;
    let messages = |caller: &AdminClient| -> Result<usize> {
        let page = caller.ask("GET", "/v1/messages", None)?.json()?;
        Ok(page["messages"].as_array().context("no messages")?.len())
    };
    assert_eq!(messages(&southern)?, 3, "its two messages, and the one that is sent to its account");
    // The accounts move to the other branch at once.
    let document = branches.appliance.get("/v1/configuration")?;
    let mut changed = document["document"].clone();
    for account in changed["account"].as_array_mut().context("no accounts")? {
        if account["tenant"] == "southern" {
            account["tenant"] = "northern".into();
        }
    }
    changed["tenant"].as_array_mut().context("no tenants")?.retain(|tenant| tenant["name"] != "southern");
    let version = format!("\"{}\"", document["version"]);
    let put =
        branches.root.with_header("if-match", &version).ask("PUT", "/v1/configuration", Some(&changed))?;
    ensure!(put.status < 300, "{} {}", put.status, put.text);
    assert_eq!(messages(&southern)?, 0);
    assert_eq!(southern.ask("GET", "/v1/accounts", None)?.json()?, json!([]));
    assert_eq!(southern.ask("GET", "/v1/users", None)?.json()?, json!([]));
    let path = format!("/v1/messages/{}", branches.foreign_ids[0]);
    assert_eq!(southern.ask("GET", &path, None)?.status, 404);
    assert_eq!(messages(&branches.caller("owner", "viewer", "northern", false)?)?, 5);
    Ok(())
}

/// Basic credentials of the account `one`.
const ONE: &str = "Basic b25lOnNlY3JldA==";
/// ESME_RTHROTTLED.
const THROTTLED: u32 = 0x58;

#[test]
fn the_rate_of_a_tenant_bounds_the_sum_of_its_branch() -> Result<()> {
    let fixture = Fixture::new()?;
    let tally = Arc::new(Tally::new(1_000));
    let sink = Sink::start(SinkOptions::default(), &tally)?;
    let mut config = fixture.config()?;
    config
        .peer("upstream", sink.address(), "dlrs = false")
        .business_account("one", "tenant = \"shop\"\nsource = { default = \"10655\" }", "")
        .account("two", "tenant = \"north\"")
        .account("three", "")
        // A token in a quarter of an hour.
        .tables("[[tenant]]\nname = \"north\"\nrate = 0.001\nburst = 2\n[[tenant]]\nname = \"shop\"\nparent = \"north\"\n");
    let appliance = config.start()?;
    let call = || -> Result<u16> {
        let url = format!("http://{}/v1/messages", appliance.config().business());
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = agent.post(url).header("authorization", ONE).header("content-type", "application/json");
        let reply = request.send(json!({ "to": "8613012345678", "text": "hello" }).to_string())?;
        Ok(reply.status().as_u16())
    };
    let mut two = Probe::bind(appliance.smpp(), "two", PASSWORD, "4917", false)?;
    let mut three = Probe::bind(appliance.smpp(), "three", PASSWORD, "4917", false)?;
    assert_eq!(call()? / 100, 2);
    ensure!(two.submit(1)?.is_ok(), "the second of the branch");
    assert_eq!(call()?, 429, "the third of the branch");
    assert_eq!(two.submit(2)?.err(), Some(THROTTLED));
    ensure!(three.submit(3)?.is_ok(), "an account of no tenant");
    // Without the rate, nothing is refused any more.
    let root = AdminClient::root(&appliance)?;
    let document = appliance.get("/v1/configuration")?;
    let change = json!({ "tenant": { "north": { "rate": null, "burst": null } } });
    let version = format!("\"{}\"", document["version"]);
    let changed = root.with_header("if-match", &version).ask("PATCH", "/v1/configuration", Some(&change))?;
    ensure!(changed.status == 200, "{} {}", changed.status, changed.text);
    ensure!(two.submit(4)?.is_ok() && call()? / 100 == 2, "the rate is gone");
    Ok(())
}

#[test]
fn the_console_shows_users_of_a_tenant_only_their_branch() -> Result<()> {
    let branches = TwoBranches::start()?;
    let admin = json!({ "role": "admin", "tenant": "northern", "bodies": true });
    branches.root.make_user("ann@northern", "correct horse", &admin)?;
    let login = json!({ "user": "ann@northern", "password": "correct horse" });
    let ann = AdminClient::anonymous(&branches.appliance).with_session(&login)?;
    let first = ann.ask("GET", "/", None)?;
    assert_eq!((first.status, first.header("location")?), (303, "/messages"));
    let own = branches.own_ids[0].clone();
    for (path, shows) in [
        ("/messages".to_owned(), own.as_str()),
        (format!("/messages/{own}?body=1"), "alpha one"),
        ("/ledger".to_owned(), "alpha"),
        ("/tenants".to_owned(), "northern-shop"),
        ("/ledger/alpha".to_owned(), "alpha-reason"),
        ("/users".to_owned(), "bert@northern-shop"),
        ("/audit".to_owned(), "ann@northern"),
    ] {
        let (status, text) = branches.leak_checked(&ann, "GET", &path, None)?;
        ensure!(status == 200 && text.contains(shows), "{path}: {status} {text:.4000}");
        for hidden in ["/configuration", "/plugins", "/queues", "/peers", "/maintenance", "/archive"] {
            ensure!(!text.contains(&format!("href=\"{hidden}\"")), "{path} links to {hidden}");
        }
    }
    // The other pages exist and are empty.
    for path in [
        "/accounts",
        "/accounts/omega-bank",
        "/peers",
        "/queues",
        "/quarantine",
        "/uncertain",
        "/archive",
        "/configuration",
        "/configuration/versions",
        "/cluster",
        "/maintenance",
        "/plugins",
        "/tables",
        "/pools",
        "/opt-outs",
        "/networks",
        "/ledger/omega-bank",
        "/search?q=omega",
        "/queues.csv",
        "/ledger.csv",
        "/messages.csv",
        "/profile",
    ] {
        branches.leak_checked(&ann, "GET", path, None).with_context(|| path.to_owned())?;
    }
    let foreign = format!("/messages/{}", branches.foreign_ids[0]);
    assert_eq!(branches.leak_checked(&ann, "GET", &foreign, None)?.0, 404);
    Ok(())
}
