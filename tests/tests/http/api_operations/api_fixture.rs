//! A running daemon with at least one of every kind of object.

use super::row::Row;
use anyhow::{Context, Result, ensure};
use behaviour_tests::fake_image_service::FakeImageService;
use behaviour_tests::load::gsm::{HlrOptions, SimulatedHlr, Subscribers};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, free_port};
use behaviour_tests::{Fixture, POLICY, until, upload};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// ESME_RSYSERR: the peer may accept it later.
const FAULT: u32 = 0x08;

pub(crate) struct ApiFixture {
    pub(crate) appliance: TestDaemon,
    /// Its API document.
    pub(crate) document: Value,
    component: Vec<u8>,
    version: String,
    uncertain: String,
    numbers: AtomicU64,
    sink: Sink,
    _hlr: SimulatedHlr,
    _fixture: Fixture,
}

/// A folder with the plugin `prefix-router`, tag 1.0, and its bill of materials.
fn stick(fixture: &Fixture) -> Result<PathBuf> {
    let component = fixture.folder().join("prefix-router.wasm");
    std::fs::copy(fixture.guest("prefix_router"), &component)?;
    std::fs::write(component.with_extension("sbom.json"), r#"{"spdxVersion":"SPDX-2.3"}"#)?;
    let stick = fixture.folder().join("stick");
    let location = format!("oci-layout:{}/prefix-router:1.0", stick.display());
    let output =
        Command::new(fixture.binary()).args(["plugin", "push"]).arg(component).arg(location).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(stick)
}

impl ApiFixture {
    pub(crate) fn start() -> Result<Self> {
        let fixture = Fixture::new()?;
        let tally = Arc::new(Tally::new(1_000));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let hlr = SimulatedHlr::start(HlrOptions::new(Subscribers::new(1, "1")))?;
        let stick = stick(&fixture)?;
        let mut config = fixture.config()?;
        config
            .account("acme", "")
            .peer("upstream", sink.address(), "dlrs = false\nuncertain = \"query\"")
            .archive(&format!("sqlite:{}", fixture.folder().join("archive.db").display()))
            .tables(&format!(
                "[[gsm]]\nname = \"phones\"\nhlr = \"{}\"\nctrl = \"{}\"\nlisten = \"127.0.0.1:{}\"\n\
                 service-centre = \"19990014444\"\n[[plugins.sources]]\nname = \"stick\"\nurl = \"oci-layout:{}\"\n",
                hlr.gsup(),
                hlr.ctrl(),
                free_port()?,
                stick.display()
            ))
            .environment("SWITCHYARD_OPERATE", FakeImageService::start(fixture.folder())?.socket());
        let appliance = config.start()?;
        let component = fixture.component("prefix_router")?;
        let version = upload(&appliance, "prefix-router", &component)?;
        let pulled = json!({ "source": "stick", "plugin": "prefix-router", "tag": "1.0" });
        appliance.ask("POST", "/v1/plugins/pull", pulled.to_string().as_bytes())?;

        let mut probe = Probe::bind(appliance.smpp(), "acme", PASSWORD, "4917", false)?;
        let mut submit =
            |number| probe.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"));
        submit(1)?;
        let finished = |page: &Value| page["messages"].as_array().is_some_and(|all| !all.is_empty());
        until("a message is archived", || Ok(finished(&appliance.get("/v1/history")?)))?;
        // Accepted by the peer, but never answered.
        sink.behave(SinkOptions { delay: Duration::from_secs(3_600), ..SinkOptions::default() });
        let uncertain = submit(2)?;
        until("the peer has it", || Ok(sink.message_count() == 2))?;
        sink.drop_links();
        let path = format!("/v1/messages/{uncertain}");
        until("the message is uncertain", || Ok(appliance.get(&path)?["state"] == "uncertain"))?;

        let document = appliance.get("/v1/openapi.json")?;
        let numbers = AtomicU64::new(1_000);
        Ok(Self {
            appliance,
            document,
            component,
            version,
            uncertain,
            numbers,
            sink,
            _hlr: hlr,
            _fixture: fixture,
        })
    }

    fn serial(&self) -> Result<u64> {
        let hook = self.appliance.get("/v1/hooks/router")?;
        hook["live"]["serial"].as_u64().context("no serial")
    }

    fn binding(&self) -> Value {
        json!({ "plugin": "prefix-router", "version": self.version, "policy": POLICY })
    }

    /// Fills in the values that are only known at run time. They are read at the time of the call: two concurrent requests
    /// expect the same version.
    pub(crate) fn filled(&self, text: &str) -> Result<String> {
        let with = |more: Value| {
            let (mut all, more) = (self.binding(), more);
            if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
                all.extend(more);
            }
            all.to_string()
        };
        Ok(match text {
            "$BINDING" => self.binding().to_string(),
            "$OTHER" => with(json!({ "policy": POLICY.replace("everything", "all") })),
            "$TRIAL" => with(json!({ "mode": "shadow" })),
            "$EXPECTING" => with(json!({ "expected": self.serial()? })),
            "$DOCUMENT" => {
                let mut document = self.appliance.get("/v1/configuration")?["document"].take();
                document["peer"][0]["rate"] = self.new_number().into();
                document.to_string()
            }
            "$REPLAY" => with(json!({ "limit": 10 })),
            text => {
                let subscriber = format!("msisdn-{}", Subscribers::new(1, "1").msisdn(0));
                let mut text =
                    text.replace("$UNCERTAIN", &self.uncertain).replace("$SUBSCRIBER", &subscriber);
                if text.contains("$SERIAL") {
                    text = text.replace("$SERIAL", &self.serial()?.to_string());
                }
                if text.contains("$SAM") {
                    let version = self.appliance.get("/v1/users/sam")?["version"].to_string();
                    text = text.replace("$SAM", &version);
                }
                if text.contains("$SESSION") {
                    text = self.log_in()?;
                }
                if text.contains("$CONFIGURATION") {
                    let version = self.appliance.get("/v1/configuration")?["version"].to_string();
                    text = text.replace("$CONFIGURATION", &version);
                }
                if text.contains("$ACTION") {
                    let newest = self.appliance.get("/v1/queue-actions")?[0]["id"].to_string();
                    text = text.replace("$ACTION", &newest);
                }
                text = text.replace("$VERSION", &self.version);
                if text.contains("$FAULT") {
                    text = text.replace("$FAULT", &self.fault()?);
                }
                if text.contains("$DEFERRED") {
                    text = text.replace("$DEFERRED", &self.deferred()?);
                }
                if text.contains("$NEW") || text.contains("$KEY") {
                    let number = self.new_number().to_string();
                    text = text.replace("$NEW", &number).replace("$KEY", &number);
                }
                text
            }
        })
    }

    /// A new unique number.
    fn new_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// The number of a fault of the router, which names a peer that does not exist.
    fn fault(&self) -> Result<String> {
        let mut broken = self.binding();
        broken["policy"] = "[default]\nlegs = [{ peer = \"nowhere\" }]\n".into();
        broken["force"] = true.into();
        let activate = |binding: &Value| {
            self.appliance.ask("POST", "/v1/hooks/router/activate", binding.to_string().as_bytes())
        };
        activate(&broken)?;
        let message = r#"{"account":"acme","from":"100","to":"49171234","text":"hello"}"#;
        let _ = self.appliance.send("POST", "/v1/messages", message.as_bytes(), &[])?;
        activate(&self.binding())?;
        let hook = self.appliance.get("/v1/hooks/router")?;
        Ok(hook["faults"][0]["examples"][0]["id"].to_string())
    }

    /// The id of a message that waits for its next attempt.
    fn deferred(&self) -> Result<String> {
        self.sink.behave(SinkOptions { error_status: FAULT, ..SinkOptions::default() });
        let message = r#"{"account":"acme","from":"100","to":"49171234","text":"hello"}"#;
        let reply = self.appliance.ask("POST", "/v1/messages", message.as_bytes())?;
        let id = reply["id"].as_str().context("no id")?.to_owned();
        let path = format!("/v1/messages/{id}");
        until("it is deferred", || Ok(self.appliance.get(&path)?["state"] == "deferred"))?;
        Ok(id)
    }

    /// Opens a session for pat; its token may also be sent as a bearer token.
    fn log_in(&self) -> Result<String> {
        let login = r#"{"user":"pat","password":"correct horse"}"#;
        let answer = ureq::post(format!("http://{}/v1/sessions", self.appliance.config().http()))
            .header("content-type", "application/json")
            .send(login)?;
        let cookie = answer.headers().get("set-cookie").and_then(|cookie| cookie.to_str().ok());
        let word = cookie.and_then(|cookie| cookie.split(';').next()?.strip_prefix("switchyard-session="));
        Ok(format!("Bearer {}", word.context("no session in the cookie")?))
    }

    /// Establishes the row's preconditions.
    pub(crate) fn prepare(&self, row: &Row) -> Result<()> {
        for (method, at, body) in &row.before {
            let (method, may_fail) = match method.strip_suffix('?') {
                Some(method) => (method, true),
                None => (*method, false),
            };
            let body = self.filled(body)?;
            // A configuration change needs the current version.
            let version = self.filled("\"$CONFIGURATION\"")?;
            let headers = [("if-match", version.as_str())];
            let headers = if at.starts_with("/v1/configuration") { headers.as_slice() } else { &[] };
            let (status, reply) = self.appliance.send(method, at, body.as_bytes(), headers)?;
            ensure!(
                may_fail || status < 300,
                "before {} {}: {method} {at}: {status} {reply}",
                row.method,
                row.at
            );
        }
        Ok(())
    }

    /// The row's request, which can be sent repeatedly.
    pub(crate) fn request(&self, row: &Row) -> Result<Request> {
        let body = match row.body.as_slice() {
            b"$COMPONENT" => self.component.clone(),
            body => match std::str::from_utf8(body) {
                Ok(text) => self.filled(text)?.into_bytes(),
                Err(_) => body.to_vec(),
            },
        };
        let headers = row.headers.iter().map(|(name, value)| Ok(((*name).to_owned(), self.filled(value)?)));
        Ok(Request {
            method: row.method,
            at: self.filled(row.at)?,
            headers: headers.collect::<Result<_>>()?,
            body,
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) at: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Sends it; returns status and body.
    pub(crate) fn send(&self, appliance: &TestDaemon) -> Result<(u16, String)> {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        appliance.send(self.method, &self.at, &self.body, &headers)
    }

    /// A copy with this header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}
