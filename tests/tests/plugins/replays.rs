//! Replays of calls after the acceptance: receipt policies, and plugin peers.

use anyhow::{Context, Result, ensure};
use behaviour_tests::load::Probe;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{ApiReaction, Fixture, SmsApi, TIMEOUT};
use serde_json::{Value, json};

/// The policy document of the peer, for the API at this URL: position of the text, the header, and the meaning of
/// status 402.
fn policy(url: &str, text: &str, header: &str, class: &str) -> String {
    format!(
        "[request]\nurl = \"{url}messages\"\nbearer = \"token\"\nheaders = {{ {header} = \"{{key}}\" }}\n\
         json = {{ to = \"+{{destination}}\", from = \"{{source}}\", {text} = \"{{text}}\", login = \"{{secret:token}}\" }}\n\
         [accepted]\nwhere = {{ \"/status\" = \"queued\" }}\nid = \"/message_id\"\n\
         [[refused]]\nstatus = [402]\nclass = \"{class}\"\n\
         [receipts]\ncheck = {{ secret = \"token\", query = \"key\" }}\nid = \"/id\"\nstate = \"/state\"\n\
         states = {{ delivered = \"delivered\" }}\n"
    )
}

struct Setup {
    appliance: TestDaemon,
    api: SmsApi,
    version: String,
}

impl Setup {
    /// An archive, the account `acme`, and the peer `upstream` of which this percentage is recorded.
    fn open(fixture: &Fixture, percent: u32) -> Result<Self> {
        let api = SmsApi::start()?;
        let mut config: TestDaemonConfig = fixture.config()?;
        let document = fixture.folder().join("upstream.toml");
        std::fs::write(&document, policy(&api.base_url(), "text", "x-key", "permanent"))?;
        let component = fixture.guest("http_peer");
        let archive = format!("sqlite:{}", fixture.folder().join("archive.sqlite").display());
        config.archive(&archive).account("acme", "").tables(&format!(
            "[[plugin-peer]]\nname = \"upstream\"\ndlrs = false\nrecorded-percent = {percent}\n\
             component = {component:?}\npolicy = {document:?}\n\
             [plugin-peer.grants]\nhttp = [\"{}\"]\nhttp-timeout = \"60s\"\n\
             [[plugin-peer.secret]]\nname = \"token\"\nvalue = \"t0ken\"\n",
            api.base_url()
        ));
        let appliance = config.start()?;
        let hook = appliance.get("/v1/hooks/peer")?;
        let version = hook["live"]["chain"][0]["version"].as_str().context("no version")?.to_owned();
        Ok(Self { appliance, api, version })
    }

    /// Submits messages to these numbers, one after the other, and waits until they are archived.
    fn submit(&self, reactions: &[ApiReaction]) -> Result<Vec<String>> {
        let mut esme = Probe::bind(self.appliance.smpp(), "acme", PASSWORD, "86", false)?;
        let mut ids = Vec::new();
        for (number, reaction) in reactions.iter().enumerate() {
            self.api.react(&[*reaction]);
            let id =
                esme.submit(number as u64 + 1)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"))?;
            self.appliance
                .wait_until(TIMEOUT, &format!("/v1/messages/{id}"), |trace| trace["finished"] == true)?;
            ids.push(id);
        }
        wait_for_archive(&self.appliance, ids.len())?;
        Ok(ids)
    }

    fn candidate(&self, document: &str) -> Value {
        json!({
            "hook": "peer", "last": 100, "plugin": "http-peer", "version": self.version, "policy": document,
            "peers": ["upstream"],
        })
    }
}

fn wait_for_archive(appliance: &TestDaemon, count: usize) -> Result<()> {
    appliance.wait_until(TIMEOUT, "/v1/archive", |archive| {
        archive["archived"].as_u64() >= Some(count as u64) && archive["backlog"] == 0
    })?;
    Ok(())
}

/// Runs a replay; returns its id and its report.
fn replay(appliance: &TestDaemon, request: &Value) -> Result<(String, Value)> {
    let started = appliance.call::<Value>("POST", "/v1/replays", request)?;
    let path = format!("/v1/replays/{}", started["id"].as_str().context("no id")?);
    let state = appliance.wait_until(TIMEOUT, &path, |replay| replay["state"] != "running")?;
    ensure!(state["state"] == "done", "{state:#}");
    Ok((path, state["report"].clone()))
}

#[test]
fn a_replay_of_a_peer_compares_requests_and_outcomes_and_sends_nothing() -> Result<()> {
    let fixture = Fixture::new()?;
    let setup = Setup::open(&fixture, 100)?;
    let url = setup.api.base_url();
    let ids = setup.submit(&[ApiReaction::Accept, ApiReaction::Status(402)])?;
    let sent = setup.api.requests().len();

    // The live document decides as it did.
    let live = policy(&url, "text", "x-key", "permanent");
    let (_, report) = replay(&setup.appliance, &setup.candidate(&live))?;
    ensure!(
        (&report["messages"], &report["same"], &report["exact"]) == (&json!(2), &json!(2), &json!(2)),
        "{report:#}"
    );

    // Another document gives the refusal another class, and makes another request.
    let other = policy(&url, "message", "x-reference", "temporary");
    let (path, report) = replay(&setup.appliance, &setup.candidate(&other))?;
    ensure!(report["different"] == 2 && report["exact"] == 2, "{report:#}");
    let groups = report["groups"].as_array().context("no groups")?;
    let changed = "; another request: header x-key, header x-reference, body";
    let expected = [
        ("upstream: accepted", format!("upstream: accepted{changed}")),
        (
            "upstream: refused (permanent, code 402)",
            format!("upstream: refused (temporary, code 402){changed}"),
        ),
    ];
    for (from, to) in &expected {
        ensure!(
            groups.iter().any(|group| group["from"] == *from && group["to"] == *to),
            "{from}: {report:#}"
        );
    }
    // Requests have texts: they are shown if they are asked for, and secrets never are.
    let shown = &groups[0]["examples"][0]["request"][2];
    ensure!(shown["part"] == "body" && shown["live"].is_null() && shown["candidate"].is_null(), "{report:#}");
    let whole = setup.appliance.get(&format!("{path}?body=1"))?;
    let example = &whole["report"]["groups"][0]["examples"][0];
    ensure!(ids.iter().any(|id| example["id"] == **id), "{example:#}");
    let body = &example["request"][2];
    let sides = (body["live"].as_str().unwrap_or_default(), body["candidate"].as_str().unwrap_or_default());
    ensure!(sides.0.contains("\"text\"") && sides.1.contains("\"message\""), "{example:#}");
    ensure!(sides.1.contains("secret-token") && !whole.to_string().contains("t0ken"), "{whole:#}");
    assert_eq!(setup.api.requests().len(), sent, "a replay sends nothing");
    // The records are not steps of the trace.
    let trace = setup.appliance.get(&format!("/v1/messages/{}", ids[0]))?;
    ensure!(!trace.to_string().contains("call recorded"), "{trace:#}");
    Ok(())
}

#[test]
fn only_the_configured_share_of_submissions_is_recorded() -> Result<()> {
    let fixture = Fixture::new()?;
    let setup = Setup::open(&fixture, 0)?;
    setup.submit(&[ApiReaction::Accept])?;
    let live = policy(&setup.api.base_url(), "text", "x-key", "permanent");
    let (_, report) = replay(&setup.appliance, &setup.candidate(&live))?;
    ensure!((&report["messages"], &report["unrouted"]) == (&json!(0), &json!(1)), "{report:#}");
    Ok(())
}
