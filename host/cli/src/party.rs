//! Whoever messages come from and go to: peers and accounts, each with its configuration, its queue and its links.

mod changing;

pub(crate) use changing::How;

use crate::output::{Failure, Output};
use crate::picture::is_up;
use crate::table::{brake, count, list, moment, span, table, word};
use crate::way::optional;
use client::Appliance;
use client::terminal::visible;
use serde_json::{Map, Value, json};

/// Where peers stand in the configuration, and what they speak.
const PEERS: [(&str, &str); 3] = [("peer", "SMPP"), ("gateway", "SGIP"), ("gsm", "GSUP")];

/// One of them.
#[derive(Debug)]
pub(crate) struct Party {
    pub(crate) name: String,
    /// Whether it is an account; a peer otherwise.
    is_account: bool,
    /// What a peer speaks; not known where the configuration is not shown.
    protocol: Option<&'static str>,
    settings: Value,
    queue: Value,
    links: Vec<Value>,
}

/// Everybody who is in the configuration; whoever is not there any more, but has messages, has no settings.
pub(crate) fn parties(appliance: &Appliance, accounts: bool) -> Result<Vec<Party>, Failure> {
    let configuration = optional(appliance.get("/v1/configuration"))?;
    let queues = appliance.get("/v1/queues")?;
    let links = appliance.get("/v1/links")?;
    let mut parties = match &configuration {
        Some(configuration) => configured(&configuration["document"], accounts),
        None => seen(&queues, &links, accounts),
    };
    for party in &mut parties {
        let is_its = |value: &&Value| value["peer"] == party.name.as_str();
        party.queue = queues.as_array().into_iter().flatten().find(is_its).cloned().unwrap_or_default();
        party.links = links.as_array().into_iter().flatten().filter(is_its).cloned().collect();
    }
    parties.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(parties)
}

/// Those of a document of the configuration.
fn configured(document: &Value, accounts: bool) -> Vec<Party> {
    let sections: &[(&str, &'static str)] = if accounts { &[("account", "")] } else { &PEERS };
    let mut parties = Vec::new();
    for (section, protocol) in sections {
        for settings in document[*section].as_array().into_iter().flatten() {
            parties.push(Party {
                name: settings["name"].as_str().unwrap_or_default().to_owned(),
                is_account: accounts,
                protocol: (!protocol.is_empty()).then_some(protocol),
                settings: settings.clone(),
                queue: Value::Null,
                links: Vec::new(),
            });
        }
    }
    parties
}

/// For callers who may not see the configuration: whom we dial is a peer, the others are accounts.
fn seen(queues: &Value, links: &Value, accounts: bool) -> Vec<Party> {
    let links = links.as_array().map_or(&[][..], Vec::as_slice);
    let is_peer = |name: &Value| links.iter().any(|link| link["role"] == "client" && link["peer"] == *name);
    let queues = queues.as_array().into_iter().flatten();
    let queues = queues.filter(|queue| queue["configured"] != false && is_peer(&queue["peer"]) != accounts);
    let party = |queue: &Value| Party {
        name: queue["peer"].as_str().unwrap_or_default().to_owned(),
        is_account: accounts,
        protocol: None,
        settings: Value::Null,
        queue: Value::Null,
        links: Vec::new(),
    };
    queues.map(party).collect()
}

/// Adds or changes one of them, or removes it where nothing is said of it. `section` is where a new one goes.
pub(crate) fn change(
    appliance: &Appliance,
    output: &Output,
    accounts: bool,
    (section, name): (&str, &str),
    settings: Option<&[String]>,
    how: &How,
) -> Result<(), Failure> {
    let what = settings.map(changing::patch).transpose()?;
    let current = appliance.get("/v1/configuration")?;
    let sections = if accounts { &["account"][..] } else { &PEERS.map(|(section, _)| section) };
    let there = changing::section(&current["document"], sections, name);
    let section = match (there, &what) {
        (Some(there), _) => there,
        (None, Some(_)) => section,
        (None, None) => return Err(missing(accounts, name)),
    };
    let what = what.map_or(Value::Null, Value::Object);
    changing::change(appliance, output, &current, (section, name), &what, how)
}

fn missing(accounts: bool, name: &str) -> Failure {
    let kind = if accounts { "account" } else { "peer" };
    Failure::Refused(format!("there is no {kind} {name:?}; switchyard {kind} list shows all"))
}

/// The one of that name.
pub(crate) fn party(appliance: &Appliance, accounts: bool, name: &str) -> Result<Party, Failure> {
    let found = parties(appliance, accounts)?.into_iter().find(|party| party.name == name);
    found.ok_or_else(|| missing(accounts, name))
}

impl Party {
    fn up(&self) -> usize {
        self.links.iter().filter(|link| is_up(link)).count()
    }

    /// Links that are up; of those that we dial, also how many there are.
    fn link_words(&self) -> String {
        if self.links.iter().any(|link| link["role"] == "client") {
            return format!("{}/{}", self.up(), self.links.len());
        }
        if self.links.is_empty() { count(&self.queue["links"]) } else { self.up().to_string() }
    }

    fn age(&self, now: u64) -> String {
        let oldest = self.queue["oldest"].as_u64();
        oldest.map_or_else(|| "-".to_owned(), |oldest| span(&now.saturating_sub(oldest).into()))
    }

    fn json(&self) -> Value {
        let kind = if self.is_account { "account" } else { "peer" };
        json!({
            "name": self.name, "kind": kind, "protocol": self.protocol, "configuration": self.settings,
            "queue": self.queue, "links": self.links,
        })
    }

    fn row(&self, now: u64) -> Vec<String> {
        let queue = &self.queue;
        let mut row = vec![visible(&self.name)];
        if !self.is_account {
            let address = self.settings.get("address").or_else(|| self.settings.get("listen"));
            row.extend([
                self.protocol.unwrap_or("-").to_owned(),
                address.map_or_else(|| "-".to_owned(), word),
            ]);
        }
        row.push(self.link_words());
        row.extend(["queued", "in_flight", "deferred", "uncertain"].map(|name| count(&queue[name])));
        row.extend([self.age(now), brake(&queue["brake"])]);
        row
    }
}

/// All of them as a table.
pub(crate) fn show_all(output: &Output, parties: &[Party], accounts: bool) -> Result<(), Failure> {
    if output.json {
        return output.document(&parties.iter().map(Party::json).collect());
    }
    if parties.is_empty() {
        output.remark(if accounts { "there is no account" } else { "there is no peer" });
        return Ok(());
    }
    let mut head = vec!["NAME"];
    if !accounts {
        head.extend(["PROTOCOL", "ADDRESS"]);
    }
    head.extend(["LINKS", "QUEUED", "IN FLIGHT", "DEFERRED", "UNCERTAIN", "OLDEST", "HELD UP BY"]);
    let now = output.now();
    let rows: Vec<Vec<String>> = parties.iter().map(|party| party.row(now)).collect();
    output.write(&table(&head, &rows))
}

/// Settings, one a line, those of inner tables with a point.
fn settings(prefix: &str, table: &Map<String, Value>, rows: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = visible(&format!("{prefix}{key}"));
        match value {
            Value::Object(inner) => settings(&format!("{name}."), inner, rows),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(word).collect();
                rows.push((name, items.join(", ")));
            }
            Value::Null => {}
            value => rows.push((name, word(value))),
        }
    }
}

/// One of them, with everything that is known.
pub(crate) fn show(output: &Output, party: &Party) -> Result<(), Failure> {
    if output.json {
        return output.document(&party.json());
    }
    let queue = &party.queue;
    let mut rows = vec![("name", visible(&party.name))];
    if let Some(protocol) = party.protocol {
        rows.push(("protocol", protocol.to_owned()));
    }
    rows.push(("links up", party.link_words()));
    for (title, name) in [
        ("queued", "queued"),
        ("in flight", "in_flight"),
        ("deferred", "deferred"),
        ("uncertain", "uncertain"),
        ("awaiting receipt", "awaiting_receipt"),
    ] {
        rows.push((title, count(&queue[name])));
    }
    rows.extend([("oldest", party.age(output.now())), ("held up by", brake(&queue["brake"]))]);
    if let Some(rate) = queue["learnt_rate"].as_f64() {
        rows.push(("learnt rate", format!("{rate:.1} messages a second")));
    }
    output.write(&list(&rows))?;
    if !party.links.is_empty() {
        output.write("\n")?;
        output.write(&links(&party.links))?;
    }
    if let Some(table) = party.settings.as_object() {
        let mut rows = Vec::new();
        settings("", table, &mut rows);
        let rows: Vec<(&str, String)> =
            rows.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        output.write("\nConfiguration:\n")?;
        output.write(&list(&rows))?;
    }
    Ok(())
}

fn links(links: &[Value]) -> String {
    let row = |link: &Value| -> Vec<String> {
        let trip = link["round_trip_us"].as_u64();
        vec![
            word(&link["phase"]),
            word(&link["remote"]),
            word(&link["bind"]),
            (if link["tls"] == true { "yes" } else { "no" }).to_owned(),
            moment(&link["since"]),
            format!("{}/{}", count(&link["in_flight"]), count(&link["window"])),
            trip.map_or_else(|| "-".to_owned(), |trip| format!("{}.{}ms", trip / 1_000, trip % 1_000 / 100)),
            brake(&link["brake"]),
            word(&link["last_error"]),
        ]
    };
    let rows: Vec<Vec<String>> = links.iter().map(row).collect();
    let head = ["LINK", "REMOTE", "BIND", "TLS", "SINCE", "WINDOW", "ANSWERS IN", "HELD UP BY", "LAST ERROR"];
    table(&head, &rows)
}

#[cfg(test)]
mod tests {
    use crate::stub::{NOW, Stub, run};
    use serde_json::{Value, json};

    fn queue(peer: &str, queued: u64, links: u64) -> Value {
        json!({
            "peer": peer, "configured": true, "queued": queued, "deferred": 2, "in_flight": 5, "uncertain": 1,
            "awaiting_receipt": 1_234, "oldest": NOW - 2_500, "links": links, "brake": "idle",
        })
    }

    fn link(peer: &str, role: &str, phase: &str) -> Value {
        json!({
            "peer": peer, "role": role, "phase": phase, "remote": "10.0.0.1:2775", "bind": "transceiver", "tls": true,
            "window": 500, "in_flight": 5, "round_trip_us": 12_345, "brake": "none", "since": NOW - 60_000,
            "last_error": if phase == "bound" { Value::Null } else { json!("connection refused") },
        })
    }

    fn appliance(with_configuration: bool) -> Stub {
        let stub = Stub::default()
            .with(
                "GET /v1/queues",
                200,
                &json!([
                    queue("upstream", 10, 1),
                    queue("demo", 0, 1),
                    queue("unicom", 0, 2),
                    queue("短信", 1, 0)
                ]),
            )
            .with(
                "GET /v1/links",
                200,
                &json!([
                    link("upstream", "client", "bound"),
                    link("upstream", "client", "backing-off"),
                    link("demo", "server", "bound"),
                    link("unicom", "client", "bound"),
                ]),
            );
        if !with_configuration {
            return stub;
        }
        let document = json!({
            "peer": [{
                "name": "upstream", "address": "10.0.0.1:2775", "system-id": "us", "password": "(unchanged)",
                "retry": ["10s", "1m"], "error-classes": { "0x45": "temporary" },
            }],
            "gateway": [{ "name": "unicom", "address": "10.0.0.2:8801" }],
            "account": [{ "name": "demo", "window": 10 }, { "name": "短信" }],
        });
        stub.with("GET /v1/configuration", 200, &json!({ "version": 7, "document": document }))
    }

    #[test]
    fn peers_and_accounts_are_listed_and_shown() {
        let url = appliance(true).start();
        let mut all = String::new();
        for arguments in [
            &["peer", "list"][..],
            &["account", "list"],
            &["peer", "show", "upstream"],
            &["account", "show", "短信"],
        ] {
            let done = run(&url, arguments);
            assert_eq!((done.code, done.error.as_str()), (0, ""), "{arguments:?}");
            all.push_str(&format!("$ switchyard {}\n{}\n", arguments.join(" "), done.out));
        }
        insta::assert_snapshot!("parties", all);
        let done = run(&url, &["peer", "show", "upstream", "--json"]);
        let shown: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(
            (&shown["configuration"]["system-id"], &shown["protocol"]),
            (&json!("us"), &json!("SMPP"))
        );
        assert_eq!(shown["links"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn who_is_not_there_is_not_found() {
        let url = appliance(true).start();
        // A peer is no account, and the other way round.
        for arguments in
            [["peer", "show", "demo"], ["account", "show", "upstream"], ["peer", "show", "nobody"]]
        {
            let done = run(&url, &arguments);
            assert_eq!((done.code, done.out.as_str()), (1, ""), "{arguments:?}");
            assert!(done.error.contains(arguments[2]), "{done:?}");
        }
    }

    #[test]
    fn without_the_configuration_whom_we_dial_is_a_peer() {
        let url = appliance(false).start();
        let names = |kind: &str| -> Vec<String> {
            let done = run(&url, &[kind, "list", "--json"]);
            let shown: Value = serde_json::from_str(&done.out).unwrap();
            let names =
                shown.as_array().unwrap().iter().map(|party| party["name"].as_str().unwrap().to_owned());
            names.collect()
        };
        assert_eq!(names("peer"), ["unicom", "upstream"]);
        assert_eq!(names("account"), ["demo", "短信"]);
    }
}
