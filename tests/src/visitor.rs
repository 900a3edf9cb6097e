//! Somebody at the admin's door: what he shows of himself, and what he is told, headers included.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::SocketAddr;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{Certificate, ClientCert, RootCerts, TlsConfig};
use xtask::appliance::Appliance;

/// Somebody with or without a token or a session.
#[derive(Debug, Clone)]
pub struct Visitor {
    agent: ureq::Agent,
    base: String,
    shows: Vec<(String, String)>,
}

/// What he was told.
#[derive(Debug, Clone)]
pub struct Told {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
}

fn agent(tls: Option<TlsConfig>) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(4 * crate::PATIENCE));
    if let Some(tls) = tls {
        config = config.tls_config(tls);
    }
    config.build().into()
}

impl Visitor {
    /// Who shows nothing.
    pub fn nobody(appliance: &Appliance) -> Self {
        let base = format!("http://{}", appliance.blueprint().http());
        Self { agent: agent(None), base, shows: Vec::new() }
    }

    /// Who comes through TLS, trusts this certificate alone, and may have one of his own.
    pub fn trusting(appliance: &Appliance, certificate: &[u8], own: Option<ClientCert>) -> Result<Self> {
        Self::trusting_at(appliance.blueprint().http(), certificate, own)
    }

    /// The same at any listener of the appliance.
    pub fn trusting_at(address: SocketAddr, certificate: &[u8], own: Option<ClientCert>) -> Result<Self> {
        let roots = RootCerts::new_with_certs(&[Certificate::from_pem(certificate)?]);
        let tls = TlsConfig::builder().root_certs(roots).client_cert(own).build();
        let base = format!("https://{address}");
        Ok(Self { agent: agent(Some(tls)), base, shows: Vec::new() })
    }

    /// The same with one more header.
    pub fn showing(&self, name: &str, value: &str) -> Self {
        let mut shows = self.shows.clone();
        shows.push((name.to_owned(), value.to_owned()));
        Self { shows, ..self.clone() }
    }

    /// The same with a token.
    pub fn with_token(&self, token: &str) -> Self {
        self.showing("authorization", &format!("Bearer {token}"))
    }

    /// Who has the house's token.
    pub fn house(appliance: &Appliance) -> Result<Self> {
        Ok(Self::nobody(appliance).with_token(&appliance.token()?))
    }

    /// The same in a session: with its cookie and its CSRF word.
    pub fn logged_in(&self, login: &Value) -> Result<Self> {
        let told = self.ask("POST", "/v1/sessions", Some(login))?;
        ensure!(told.status == 200, "{}", told.text);
        let cookie = told.header("set-cookie")?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let csrf = told.json()?["csrf"].as_str().context("no csrf")?.to_owned();
        Ok(self.showing("cookie", &cookie).showing("switchyard-csrf", &csrf))
    }

    /// Asks, and waits for the whole answer.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Told> {
        self.send(method, path, body, true)
    }

    /// Asks, and waits for the answer's head: some answers have no end.
    pub fn glance(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Told> {
        self.send(method, path, body, false)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>, whole: bool) -> Result<Told> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in &self.shows {
            request = request.header(name, value);
        }
        let answer = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string())?)
            }
            None => self.agent.run(request.body(())?),
        };
        let mut answer = answer.with_context(|| format!("{method} {path}"))?;
        let text = if whole { answer.body_mut().read_to_string()? } else { String::new() };
        Ok(Told { status: answer.status().as_u16(), headers: answer.headers().clone(), text })
    }

    /// Makes a user, as an admin.
    pub fn make_user(&self, name: &str, password: &str, more: &Value) -> Result<Value> {
        let mut wish = json!({ "name": name, "password": password });
        if let (Some(wish), Some(more)) = (wish.as_object_mut(), more.as_object()) {
            wish.extend(more.clone());
        }
        let told = self.ask("POST", "/v1/users", Some(&wish))?;
        ensure!(told.status == 201, "{}", told.text);
        told.json()
    }

    /// Makes a token, as an admin; gives back its word.
    pub fn make_token(&self, name: &str, more: &Value) -> Result<String> {
        let mut wish = json!({ "name": name });
        if let (Some(wish), Some(more)) = (wish.as_object_mut(), more.as_object()) {
            wish.extend(more.clone());
        }
        let told = self.ask("POST", "/v1/tokens", Some(&wish))?;
        ensure!(told.status == 201, "{}", told.text);
        Ok(told.json()?["token"].as_str().context("no token")?.to_owned())
    }
}

impl Told {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("{}: {:.300}", self.status, self.text))
    }

    /// A header that must be there.
    pub fn header(&self, name: &str) -> Result<&str> {
        let value = self.headers.get(name).with_context(|| format!("no header {name}"))?;
        Ok(value.to_str()?)
    }

    /// The word for programs in a refusal.
    pub fn reason(&self) -> String {
        let body = self.json().unwrap_or_default();
        body["reason"].as_str().unwrap_or_default().to_owned()
    }
}
