//! A running appliance with one of everything that operations are about.

use crate::row::Row;
use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, PASSWORD, free_port};
use behaviour_tests::load::gsm::{HlrOptions, StandInHlr, Subscribers};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::operator::Operator;
use behaviour_tests::{POLICY, Stage, until, upload};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// ESME_RSYSERR: the peer may take it later.
const FAULT: u32 = 0x08;

pub(crate) struct Stand {
    pub(crate) appliance: Appliance,
    /// What it says of itself.
    pub(crate) document: Value,
    component: Vec<u8>,
    version: String,
    uncertain: String,
    numbers: AtomicU64,
    sink: Sink,
    _hlr: StandInHlr,
    _stage: Stage,
}

impl Stand {
    pub(crate) fn start() -> Result<Self> {
        let stage = Stage::new()?;
        let tally = Arc::new(Tally::new(1_000));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let hlr = StandInHlr::start(HlrOptions::new(Subscribers::new(1, "1")))?;
        let mut blueprint = stage.blueprint()?;
        blueprint
            .account("acme", "")
            .peer("upstream", sink.address(), "receipts = false\nuncertain = \"ask\"")
            .archive(&format!("sqlite:{}", stage.folder().join("archive.db").display()))
            .tables(&format!(
                "[[gsm]]\nname = \"phones\"\nhlr = \"{}\"\nctrl = \"{}\"\nlisten = \"127.0.0.1:{}\"\n\
                 service-centre = \"19990014444\"\n",
                hlr.gsup(),
                hlr.ctrl(),
                free_port()?
            ))
            .environment("SWITCHYARD_OPERATE", Operator::start(stage.folder())?.socket());
        let appliance = blueprint.start()?;
        let component = stage.component("prefix_router")?;
        let version = upload(&appliance, "prefix-router", &component)?;

        let mut probe = Probe::bind(appliance.smpp(), "acme", PASSWORD, "4917", false)?;
        let mut submit =
            |number| probe.submit(number)?.map_err(|status| anyhow::anyhow!("refused: {status:#x}"));
        submit(1)?;
        let finished = |page: &Value| page["messages"].as_array().is_some_and(|all| !all.is_empty());
        until("a message is archived", || Ok(finished(&appliance.get("/v1/history")?)))?;
        // Taken by the peer, and never answered.
        sink.behave(SinkOptions { delay: Duration::from_secs(3_600), ..SinkOptions::default() });
        let uncertain = submit(2)?;
        until("the peer has it", || Ok(sink.messages_so_far() == 2))?;
        sink.drop_links();
        let path = format!("/v1/messages/{uncertain}");
        until("nobody knows what became of it", || Ok(appliance.get(&path)?["state"] == "uncertain"))?;

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
            _stage: stage,
        })
    }

    fn serial(&self) -> Result<u64> {
        let hook = self.appliance.get("/v1/hooks/router")?;
        hook["live"]["serial"].as_u64().context("no serial")
    }

    fn binding(&self) -> Value {
        json!({ "plugin": "prefix-router", "version": self.version, "policy": POLICY })
    }

    /// A request's text with what is only known now. All of it is read when it is asked for: two that come at the same time
    /// expect the same.
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
                if text.contains("$ORDER") {
                    let newest = self.appliance.get("/v1/orders")?[0]["id"].to_string();
                    text = text.replace("$ORDER", &newest);
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

    /// One that was not there before.
    fn new_number(&self) -> u64 {
        self.numbers.fetch_add(1, Relaxed)
    }

    /// The id of a message that waits for its next attempt.
    fn deferred(&self) -> Result<String> {
        self.sink.behave(SinkOptions { error_status: FAULT, ..SinkOptions::default() });
        let message = r#"{"account":"acme","from":"100","to":"49171234","text":"hello"}"#;
        let told = self.appliance.ask("POST", "/v1/messages", message.as_bytes())?;
        let id = told["id"].as_str().context("no id")?.to_owned();
        let path = format!("/v1/messages/{id}");
        until("it is deferred", || Ok(self.appliance.get(&path)?["state"] == "deferred"))?;
        Ok(id)
    }

    /// Opens a session of pat's, whose word may come as a bearer's as well.
    fn log_in(&self) -> Result<String> {
        let login = r#"{"user":"pat","password":"correct horse"}"#;
        let answer = ureq::post(format!("http://{}/v1/sessions", self.appliance.blueprint().http()))
            .header("content-type", "application/json")
            .send(login)?;
        let cookie = answer.headers().get("set-cookie").and_then(|cookie| cookie.to_str().ok());
        let word = cookie.and_then(|cookie| cookie.split(';').next()?.strip_prefix("switchyard-session="));
        Ok(format!("Bearer {}", word.context("no session in the cookie")?))
    }

    /// Does what must have happened before.
    pub(crate) fn prepare(&self, row: &Row) -> Result<()> {
        for (method, at, body) in &row.before {
            let (method, may_fail) = match method.strip_suffix('?') {
                Some(method) => (method, true),
                None => (*method, false),
            };
            let body = self.filled(body)?;
            // A change of the configuration names what it changes.
            let version = self.filled("\"$CONFIGURATION\"")?;
            let headers = [("if-match", version.as_str())];
            let headers = if at.starts_with("/v1/configuration") { headers.as_slice() } else { &[] };
            let (status, told) = self.appliance.send(method, at, body.as_bytes(), headers)?;
            ensure!(
                may_fail || status < 300,
                "before {} {}: {method} {at}: {status} {told}",
                row.method,
                row.at
            );
        }
        Ok(())
    }

    /// The row's request, ready to be sent, as often as is wanted.
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
    /// Sends it: status and body.
    pub(crate) fn send(&self, appliance: &Appliance) -> Result<(u16, String)> {
        let headers: Vec<_> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        appliance.send(self.method, &self.at, &self.body, &headers)
    }

    /// The same with a header of this value.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}
