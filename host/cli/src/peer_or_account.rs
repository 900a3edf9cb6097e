//! Peers and accounts, each with its configuration, its queue and its links.

mod config_patch;

pub(crate) use config_patch::ConfigChangeArgs;

use crate::config::current;
use crate::format::{blocked_by, count, duration_text, list, table, timestamp, value_text};
use crate::global_args::optional;
use crate::output::{Failure, Output};
use api::{AccountInfo, LinkRole, LinkView, QueueView};
use client::ApiClient;
use client::terminal::visible;
use serde_json::{Map, Value, json};

/// The sections of the configuration that contain peers, and the protocol of each. A gateway may have another protocol.
const PEERS: [(&str, &str); 3] = [("peer", "SMPP"), ("gateway", "SGIP"), ("gsm", "GSUP")];

/// A peer or an account.
#[derive(Debug)]
pub(crate) struct PeerOrAccount {
    pub(crate) name: String,
    /// Whether this is an account; otherwise it is a peer.
    is_account: bool,
    /// The protocol of a peer; `None` if the caller may not read the configuration.
    protocol: Option<&'static str>,
    settings: Value,
    queue: Option<QueueView>,
    links: Vec<LinkView>,
}

/// Loads all peers, or all accounts, with their queues and links.
pub(crate) fn load_all(api: &ApiClient, accounts: bool) -> Result<Vec<PeerOrAccount>, Failure> {
    let configuration = optional(current(api))?;
    let links: Vec<LinkView> = api.read("/v1/links")?;
    let (queues, mut entries) = match &configuration {
        Some(configuration) => {
            (api.read("/v1/queues")?, from_configuration(&configuration.document, accounts))
        }
        None => match optional(api.read::<Vec<QueueView>>("/v1/queues"))? {
            Some(queues) => {
                let entries = from_queues(&queues, &links, accounts);
                (queues, entries)
            }
            // Users of tenants may list their accounts, but see no queues.
            None if accounts => (Vec::new(), from_accounts(&api.read::<Vec<AccountInfo>>("/v1/accounts")?)),
            None => (api.read("/v1/queues")?, Vec::new()),
        },
    };
    for entry in &mut entries {
        entry.queue = queues.iter().find(|queue| queue.peer == entry.name).cloned();
        entry.links = links.iter().filter(|link| link.peer == entry.name).cloned().collect();
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The peers or accounts of a configuration document.
fn from_configuration(document: &Value, accounts: bool) -> Vec<PeerOrAccount> {
    let sections: &[(&str, &'static str)] = if accounts { &[("account", "")] } else { &PEERS };
    let mut entries = Vec::new();
    for (section, protocol) in sections {
        for settings in document[*section].as_array().into_iter().flatten() {
            entries.push(PeerOrAccount {
                name: settings["name"].as_str().unwrap_or_default().to_owned(),
                is_account: accounts,
                protocol: match settings["protocol"].as_str() {
                    _ if protocol.is_empty() => None,
                    Some("cmpp") => Some("CMPP"),
                    Some("smgp") => Some("SMGP"),
                    _ => Some(protocol),
                },
                settings: settings.clone(),
                queue: None,
                links: Vec::new(),
            });
        }
    }
    entries
}

/// The accounts of a branch.
fn from_accounts(accounts: &[AccountInfo]) -> Vec<PeerOrAccount> {
    let entry = |account: &AccountInfo| PeerOrAccount {
        name: account.name.clone(),
        is_account: true,
        protocol: None,
        settings: json!({ "tenant": account.tenant }),
        queue: None,
        links: Vec::new(),
    };
    accounts.iter().map(entry).collect()
}

/// For callers who may not read the configuration: a queue with client links is a peer, the others are accounts.
fn from_queues(queues: &[QueueView], links: &[LinkView], accounts: bool) -> Vec<PeerOrAccount> {
    let is_peer = |name: &str| links.iter().any(|link| link.role == LinkRole::Client && link.peer == name);
    let queues = queues.iter().filter(|queue| queue.configured && is_peer(&queue.peer) != accounts);
    let entry = |queue: &QueueView| PeerOrAccount {
        name: queue.peer.clone(),
        is_account: accounts,
        protocol: None,
        settings: Value::Null,
        queue: None,
        links: Vec::new(),
    };
    queues.map(entry).collect()
}

/// Adds or changes a peer or an account, or removes it if `settings` is `None`. `section` is the section of a new one.
pub(crate) fn change(
    api: &ApiClient,
    output: &Output,
    accounts: bool,
    (section, name): (&str, &str),
    settings: Option<&[String]>,
    change_args: &ConfigChangeArgs,
) -> Result<(), Failure> {
    let what = settings.map(config_patch::patch).transpose()?;
    let current = current(api)?;
    let sections = if accounts { &["account"][..] } else { &PEERS.map(|(section, _)| section) };
    let existing = config_patch::existing_section(&current.document, sections, name);
    let section = match (existing, &what) {
        (Some(existing), _) => existing,
        (None, Some(_)) => section,
        (None, None) => return Err(missing(accounts, name)),
    };
    let what = what.map_or(Value::Null, Value::Object);
    config_patch::change(api, output, &current, (section, name), &what, change_args)
}

fn missing(accounts: bool, name: &str) -> Failure {
    let kind = if accounts { "account" } else { "peer" };
    Failure::Refused(format!("there is no {kind} {name:?}; switchyard {kind} list shows all"))
}

/// Loads the peer or account with this name.
pub(crate) fn load(api: &ApiClient, accounts: bool, name: &str) -> Result<PeerOrAccount, Failure> {
    let found = load_all(api, accounts)?.into_iter().find(|entry| entry.name == name);
    found.ok_or_else(|| missing(accounts, name))
}

impl PeerOrAccount {
    fn up(&self) -> usize {
        self.links.iter().filter(|link| link.is_up()).count()
    }

    /// The number of bound links, and for client links also the total.
    fn links_text(&self) -> String {
        if self.links.iter().any(|link| link.role == LinkRole::Client) {
            return format!("{}/{}", self.up(), self.links.len());
        }
        if self.links.is_empty() { self.figure(|queue| queue.links as u64) } else { self.up().to_string() }
    }

    /// A figure of the queue; `-` if there is no queue.
    fn figure(&self, of: fn(&QueueView) -> u64) -> String {
        count(&self.queue.as_ref().map(of))
    }

    fn blocked_by(&self) -> String {
        blocked_by(&self.queue.as_ref().map(|queue| &queue.blocked_by))
    }

    fn oldest_age(&self, now: u64) -> String {
        let oldest = self.queue.as_ref().and_then(|queue| queue.oldest);
        oldest.map_or_else(|| "-".to_owned(), |oldest| duration_text(&now.saturating_sub(oldest)))
    }

    fn json(&self) -> Value {
        let kind = if self.is_account { "account" } else { "peer" };
        json!({
            "name": self.name, "kind": kind, "protocol": self.protocol, "configuration": self.settings,
            "queue": self.queue, "links": self.links,
        })
    }

    fn table_row(&self, now: u64) -> Vec<String> {
        let mut row = vec![visible(&self.name)];
        if !self.is_account {
            let address = self.settings.get("address").or_else(|| self.settings.get("listen"));
            row.extend([
                self.protocol.unwrap_or("-").to_owned(),
                address.map_or_else(|| "-".to_owned(), value_text),
            ]);
        }
        row.push(self.links_text());
        row.extend([
            self.figure(|queue| queue.queued),
            self.figure(|queue| queue.in_flight),
            self.figure(|queue| queue.deferred),
            self.figure(|queue| queue.uncertain),
            self.oldest_age(now),
            self.blocked_by(),
        ]);
        row
    }
}

/// Prints peers or accounts as a table.
pub(crate) fn print_all(output: &Output, entries: &[PeerOrAccount], accounts: bool) -> Result<(), Failure> {
    if output.json {
        return output.document(&entries.iter().map(PeerOrAccount::json).collect::<Vec<_>>());
    }
    if entries.is_empty() {
        output.remark(if accounts { "there is no account" } else { "there is no peer" });
        return Ok(());
    }
    let mut head = vec!["NAME"];
    if !accounts {
        head.extend(["PROTOCOL", "ADDRESS"]);
    }
    head.extend(["LINKS", "QUEUED", "IN FLIGHT", "DEFERRED", "UNCERTAIN", "OLDEST", "BLOCKED BY"]);
    let now = output.now();
    let rows: Vec<Vec<String>> = entries.iter().map(|entry| entry.table_row(now)).collect();
    output.table(&head, &rows)
}

/// The settings as rows; keys of inner tables are joined with a dot.
fn settings(prefix: &str, table: &Map<String, Value>, rows: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = visible(&format!("{prefix}{key}"));
        match value {
            Value::Object(inner) => settings(&format!("{name}."), inner, rows),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(value_text).collect();
                rows.push((name, items.join(", ")));
            }
            Value::Null => {}
            value => rows.push((name, value_text(value))),
        }
    }
}

/// Prints a peer or an account with queue, links and settings.
pub(crate) fn print(output: &Output, entry: &PeerOrAccount) -> Result<(), Failure> {
    if output.json {
        return output.document(&entry.json());
    }
    let mut rows = vec![("name", visible(&entry.name))];
    if let Some(protocol) = entry.protocol {
        rows.push(("protocol", protocol.to_owned()));
    }
    rows.extend([
        ("links up", entry.links_text()),
        ("queued", entry.figure(|queue| queue.queued)),
        ("in flight", entry.figure(|queue| queue.in_flight)),
        ("deferred", entry.figure(|queue| queue.deferred)),
        ("uncertain", entry.figure(|queue| queue.uncertain)),
        ("awaiting DLR", entry.figure(|queue| queue.awaiting_dlr)),
        ("oldest", entry.oldest_age(output.now())),
        ("blocked by", entry.blocked_by()),
    ]);
    if let Some(rate) = entry.queue.as_ref().and_then(|queue| queue.learnt_rate) {
        rows.push(("learnt rate", format!("{rate:.1} messages a second")));
    }
    output.write(&list(&rows))?;
    if !entry.links.is_empty() {
        output.write("\n")?;
        output.write(&links(&entry.links))?;
    }
    if let Some(table) = entry.settings.as_object() {
        let mut rows = Vec::new();
        settings("", table, &mut rows);
        let rows: Vec<(&str, String)> =
            rows.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        output.write("\nConfiguration:\n")?;
        output.write(&list(&rows))?;
    }
    Ok(())
}

fn links(links: &[LinkView]) -> String {
    let row = |link: &LinkView| -> Vec<String> {
        vec![
            value_text(&link.phase),
            value_text(&link.remote),
            value_text(&link.bind),
            (if link.tls { "yes" } else { "no" }).to_owned(),
            timestamp(&link.up_or_down_since()),
            format!("{}/{}", count(&link.in_flight), count(&link.window)),
            link.round_trip_us
                .map_or_else(|| "-".to_owned(), |trip| format!("{}.{}ms", trip / 1_000, trip % 1_000 / 100)),
            blocked_by(&link.blocked_by),
            value_text(&link.last_error),
        ]
    };
    let rows: Vec<Vec<String>> = links.iter().map(row).collect();
    let head = ["LINK", "REMOTE", "BIND", "TLS", "SINCE", "WINDOW", "ANSWERS IN", "BLOCKED BY", "LAST ERROR"];
    table(&head, &rows)
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, NOW, run};
    use crate::fixtures;
    use api::{BindMode, LinkPhase, LinkRole, LinkView, QueueView};
    use serde_json::{Value, json};

    fn queue(peer: &str, queued: u64, links: usize) -> QueueView {
        QueueView {
            queued,
            deferred: 2,
            in_flight: 5,
            uncertain: 1,
            awaiting_dlr: 1_234,
            oldest: Some(NOW - 2_500),
            links,
            ..fixtures::queue(peer)
        }
    }

    fn link(peer: &str, role: LinkRole, phase: LinkPhase) -> LinkView {
        LinkView {
            remote: Some("10.0.0.1:2775".to_owned()),
            bind: Some(BindMode::Transceiver),
            tls: true,
            window: 500,
            in_flight: 5,
            round_trip_us: Some(12_345),
            since: NOW - 60_000,
            last_error: (phase != LinkPhase::Bound).then(|| "connection refused".to_owned()),
            ..fixtures::link(peer, role, phase)
        }
    }

    fn api(with_configuration: bool) -> FakeApi {
        let api = FakeApi::default()
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
                    link("upstream", LinkRole::Client, LinkPhase::Bound),
                    link("upstream", LinkRole::Client, LinkPhase::BackingOff),
                    link("demo", LinkRole::Server, LinkPhase::Bound),
                    link("unicom", LinkRole::Client, LinkPhase::Bound),
                ]),
            );
        if !with_configuration {
            return api;
        }
        let document = json!({
            "peer": [{
                "name": "upstream", "address": "10.0.0.1:2775", "system-id": "us", "password": "(unchanged)",
                "retry": ["10s", "1m"], "error-classes": { "0x45": "temporary" },
            }],
            "gateway": [{ "name": "unicom", "address": "10.0.0.2:8801" }],
            "account": [{ "name": "demo", "window": 10 }, { "name": "短信" }],
        });
        api.with("GET /v1/configuration", 200, &json!(fixtures::configuration(document)))
    }

    #[test]
    fn peers_and_accounts_are_listed_and_shown() {
        let url = api(true).start();
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
        insta::assert_snapshot!("peers_and_accounts", all);
        let done = run(&url, &["peer", "show", "upstream", "--json"]);
        let shown: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(
            (&shown["configuration"]["system-id"], &shown["protocol"]),
            (&json!("us"), &json!("SMPP"))
        );
        assert_eq!(shown["links"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn an_unknown_name_is_not_found() {
        let url = api(true).start();
        // A peer is not an account, and vice versa.
        for arguments in
            [["peer", "show", "demo"], ["account", "show", "upstream"], ["peer", "show", "nobody"]]
        {
            let done = run(&url, &arguments);
            assert_eq!((done.code, done.out.as_str()), (1, ""), "{arguments:?}");
            assert!(done.error.contains(arguments[2]), "{done:?}");
        }
    }

    #[test]
    fn without_the_configuration_client_links_mark_peers() {
        let url = api(false).start();
        let names = |kind: &str| -> Vec<String> {
            let done = run(&url, &[kind, "list", "--json"]);
            let shown: Value = serde_json::from_str(&done.out).unwrap();
            let names =
                shown.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned());
            names.collect()
        };
        assert_eq!(names("peer"), ["unicom", "upstream"]);
        assert_eq!(names("account"), ["demo", "短信"]);
    }

    #[test]
    fn a_user_of_a_tenant_lists_the_accounts_of_its_branch() {
        let refused = json!({ "title": "not allowed", "status": 403, "detail": "for the operator only", "reason": "tenant" });
        let api = FakeApi::default()
            .with("GET /v1/configuration", 403, &refused)
            .with("GET /v1/queues", 403, &refused)
            .with("GET /v1/links", 200, &json!([link("shop", LinkRole::Server, LinkPhase::Bound)]))
            .with(
                "GET /v1/accounts",
                200,
                &json!([
                    { "name": "bank", "tenant": "north", "messages_per_day": null },
                    { "name": "shop", "tenant": "north-shop", "messages_per_day": null }
                ]),
            );
        let done = run(&api.start(), &["account", "list"]);
        assert_eq!(done.code, 0, "{}", done.error);
        let names: Vec<&str> =
            done.out.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["bank", "shop"], "{}", done.out);
    }
}
