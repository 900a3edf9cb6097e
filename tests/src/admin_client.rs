//! A client of the admin API: sends credentials, and returns answers with their headers.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::SocketAddr;
use testkit::test_daemon::TestDaemon;
use ureq::http::{HeaderMap, Request};
use ureq::tls::{Certificate, ClientCert, RootCerts, TlsConfig};

/// An HTTP client with or without a token or a session.
#[derive(Debug, Clone)]
pub struct AdminClient {
    agent: ureq::Agent,
    base: String,
    headers_sent: Vec<(String, String)>,
}

/// An answer of the API.
#[derive(Debug, Clone)]
pub struct ApiResponse {
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
        .timeout_global(Some(2 * crate::TIMEOUT));
    if let Some(tls) = tls {
        config = config.tls_config(tls);
    }
    config.build().into()
}

impl AdminClient {
    /// A client without credentials.
    pub fn anonymous(appliance: &TestDaemon) -> Self {
        let base = format!("http://{}", appliance.config().http());
        Self { agent: agent(None), base, headers_sent: Vec::new() }
    }

    /// A client over TLS that trusts only this certificate, and may have a client certificate.
    pub fn over_tls(appliance: &TestDaemon, certificate: &[u8], own: Option<ClientCert>) -> Result<Self> {
        Self::over_tls_at(appliance.config().http(), certificate, own)
    }

    /// A client over TLS for any listener of the appliance.
    pub fn over_tls_at(address: SocketAddr, certificate: &[u8], own: Option<ClientCert>) -> Result<Self> {
        let roots = RootCerts::new_with_certs(&[Certificate::from_pem(certificate)?]);
        let tls = TlsConfig::builder().root_certs(roots).client_cert(own).build();
        let base = format!("https://{address}");
        Ok(Self { agent: agent(Some(tls)), base, headers_sent: Vec::new() })
    }

    /// A copy with one more header.
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut headers_sent = self.headers_sent.clone();
        headers_sent.push((name.to_owned(), value.to_owned()));
        Self { headers_sent, ..self.clone() }
    }

    /// A copy with a token.
    pub fn with_token(&self, token: &str) -> Self {
        self.with_header("authorization", &format!("Bearer {token}"))
    }

    /// A client with the root token.
    pub fn root(appliance: &TestDaemon) -> Result<Self> {
        Ok(Self::anonymous(appliance).with_token(&appliance.token()?))
    }

    /// A copy with a session: sends its cookie and its CSRF token.
    pub fn with_session(&self, login: &Value) -> Result<Self> {
        let response = self.ask("POST", "/v1/sessions", Some(login))?;
        ensure!(response.status == 200, "{}", response.text);
        let cookie = response.header("set-cookie")?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let csrf = response.json()?["csrf"].as_str().context("no csrf")?.to_owned();
        Ok(self.with_header("cookie", &cookie).with_header("switchyard-csrf", &csrf))
    }

    /// Sends a request and waits for the whole answer.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<ApiResponse> {
        self.send(method, path, body, true)
    }

    /// Sends a request and waits for the head of the answer: some bodies have no end.
    pub fn request_head(&self, method: &str, path: &str, body: Option<&Value>) -> Result<ApiResponse> {
        self.send(method, path, body, false)
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>, whole: bool) -> Result<ApiResponse> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in &self.headers_sent {
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
        Ok(ApiResponse { status: answer.status().as_u16(), headers: answer.headers().clone(), text })
    }

    /// Creates a user, as an admin.
    pub fn make_user(&self, name: &str, password: &str, more: &Value) -> Result<Value> {
        let mut request = json!({ "name": name, "password": password });
        if let (Some(request), Some(more)) = (request.as_object_mut(), more.as_object()) {
            request.extend(more.clone());
        }
        let response = self.ask("POST", "/v1/users", Some(&request))?;
        ensure!(response.status == 201, "{}", response.text);
        response.json()
    }

    /// Creates a token, as an admin; returns the token itself.
    pub fn make_token(&self, name: &str, more: &Value) -> Result<String> {
        let mut request = json!({ "name": name });
        if let (Some(request), Some(more)) = (request.as_object_mut(), more.as_object()) {
            request.extend(more.clone());
        }
        let response = self.ask("POST", "/v1/tokens", Some(&request))?;
        ensure!(response.status == 201, "{}", response.text);
        Ok(response.json()?["token"].as_str().context("no token")?.to_owned())
    }
}

impl ApiResponse {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| format!("{}: {:.300}", self.status, self.text))
    }

    /// A header that must be present.
    pub fn header(&self, name: &str) -> Result<&str> {
        let value = self.headers.get(name).with_context(|| format!("no header {name}"))?;
        Ok(value.to_str()?)
    }

    /// The machine-readable reason in a problem document.
    pub fn reason(&self) -> String {
        let body = self.json().unwrap_or_default();
        body["reason"].as_str().unwrap_or_default().to_owned()
    }
}
