use crate::contexts::{ContextSettings, Contexts};
use crate::error::ClientError;
use crate::saved_logins::{self, SavedLogins};
use crate::tls_args::TlsArgs;
use api::{LoginRequest, Problem, WhoamiView};
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{Request, Response, StatusCode, header};
use ureq::tls::TlsConfig;
use ureq::{AsSendBody, Body, SendBody};

/// Maximum octets of a JSON answer.
const MAX_ANSWER_OCTETS: u64 = 256 << 20;
/// Timeout of a JSON answer. A component of many megabytes takes a while to compile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connection arguments: the appliance, and the credentials.
#[derive(Debug, Clone, Args)]
pub struct ConnectionArgs {
    /// URL of the appliance's HTTP listener. Default: SWITCHYARD_URL, or the content of the file SWITCHYARD_URL_FILE, or the
    /// URL of the context of `switchyard context use`, or http://127.0.0.1:8080.
    #[arg(long, global = true)]
    url: Option<String>,
    /// The appliance of `switchyard context add`. Default: SWITCHYARD_CONTEXT.
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "url")]
    context: Option<String>,
    /// Token of the API. Default: SWITCHYARD_TOKEN, or the session of `switchyard login`.
    #[arg(long, global = true, conflicts_with = "token_file")]
    token: Option<String>,
    /// File with the token, such as `token` in the appliance's data folder. Default: SWITCHYARD_TOKEN_FILE.
    #[arg(long, global = true)]
    token_file: Option<PathBuf>,
    /// The partition of the cluster for the request, or `all` for lists of messages and queues. Default: the partition of the node that
    /// gets the request.
    #[arg(long, global = true, value_name = "NUMBER|all", value_parser = PartitionChoice::parse)]
    partition: Option<PartitionChoice>,
    #[command(flatten)]
    trust: TlsArgs,
}

/// A client of one appliance's API, with credentials.
#[derive(Debug)]
pub struct ApiClient {
    agent: ureq::Agent,
    /// Agent without a timeout, for streams.
    untimed_agent: ureq::Agent,
    tls: Option<TlsConfig>,
    url: String,
    authorization: Option<String>,
    partition: Option<PartitionChoice>,
    read_only: bool,
}

/// The partitions that a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartitionChoice {
    One(u8),
    All,
}

impl PartitionChoice {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let number = text.parse().ok().filter(|number| *number <= 127);
        number.map(Self::One).ok_or_else(|| "must be 0 to 127, or `all`".to_owned())
    }

    /// The value of the header `Partition`.
    fn header(self) -> String {
        match self {
            Self::One(number) => number.to_string(),
            Self::All => "all".to_owned(),
        }
    }
}

impl ConnectionArgs {
    /// Whether the command line names an appliance.
    #[must_use]
    pub fn has_url(&self) -> bool {
        self.url.is_some() || self.context.is_some()
    }

    /// Sets a URL and a token file that apply if neither the command line nor the environment has any.
    #[must_use]
    pub fn with_defaults(mut self, url: &str, token_file: &Path) -> Self {
        let is_set = |names: &[&str]| names.iter().any(|name| env_var(name).is_some());
        if !self.has_url() && !is_set(&["SWITCHYARD_CONTEXT", "SWITCHYARD_URL", "SWITCHYARD_URL_FILE"]) {
            self.url = Some(url.to_owned());
        }
        let has_token = self.token.is_some() || self.token_file.is_some();
        if self.context.is_none() && !has_token && !is_set(&["SWITCHYARD_TOKEN", "SWITCHYARD_TOKEN_FILE"]) {
            self.token_file = Some(token_file.to_owned());
        }
        self
    }

    /// The settings of a context with these arguments.
    ///
    /// # Errors
    /// If there is no URL, or a path cannot be made absolute.
    pub fn context_settings(self) -> Result<ContextSettings, ClientError> {
        let absolute = |path: Option<PathBuf>| match path {
            Some(path) => {
                std::path::absolute(&path).map(Some).map_err(|source| ClientError::TokenFile { path, source })
            }
            None => Ok(None),
        };
        let (ca, client_certificate) = self.trust.paths();
        Ok(ContextSettings {
            url: trim_url(&self.url.ok_or(ClientError::ContextWithoutUrl)?),
            token_file: absolute(self.token_file)?,
            token: self.token,
            ca: absolute(ca)?,
            client_certificate: absolute(client_certificate)?,
        })
    }

    /// The URL of the appliance, and its context if the URL comes from one.
    fn target(&self) -> Result<(String, Option<ContextSettings>), ClientError> {
        if let Some(url) = &self.url {
            return Ok((trim_url(url), None));
        }
        let of_context = |settings: &ContextSettings| (trim_url(&settings.url), Some(settings.clone()));
        if let Some(name) = self.context.clone().or_else(|| env_var("SWITCHYARD_CONTEXT")) {
            return Ok(of_context(Contexts::read()?.find(&name)?));
        }
        // The daemon writes the file; it may not exist while the daemon does not run.
        let written = || std::fs::read_to_string(env_var("SWITCHYARD_URL_FILE")?).ok();
        if let Some(url) = env_var("SWITCHYARD_URL").or_else(written) {
            return Ok((trim_url(&url), None));
        }
        let contexts = Contexts::read()?;
        match &contexts.current {
            Some(name) => Ok(of_context(contexts.find(name)?)),
            None => Ok(("http://127.0.0.1:8080".to_owned(), None)),
        }
    }

    /// The token of the command line, the context or the environment; `None` if there is none. The environment's token is not sent to
    /// the appliance of a context, because it may belong to another appliance.
    fn explicit_token(&self, context: Option<&ContextSettings>) -> Result<Option<String>, ClientError> {
        let of_environment = |name| env_var(name).filter(|_| context.is_none());
        let file = self.token_file.clone();
        let of_context = context.filter(|_| file.is_none() && self.token.is_none());
        let file = file
            .or_else(|| of_context.and_then(|context| context.token_file.clone()))
            .or_else(|| of_environment("SWITCHYARD_TOKEN_FILE").map(PathBuf::from));
        let token = match (self.token.clone(), file) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => Some(
                std::fs::read_to_string(&path).map_err(|source| ClientError::TokenFile { path, source })?,
            ),
            (None, None) => of_context
                .and_then(|context| context.token.clone())
                .or_else(|| of_environment("SWITCHYARD_TOKEN")),
        };
        Ok(token.map(|token| token.trim().to_owned()))
    }

    /// The token of the command line or environment.
    ///
    /// # Errors
    /// If there is none.
    pub fn token(&self) -> Result<String, ClientError> {
        let (_, context) = self.target()?;
        self.explicit_token(context.as_ref())?.ok_or(ClientError::NoToken)
    }

    fn api_client(self, authorization: Option<String>) -> Result<ApiClient, ClientError> {
        let (url, context) = self.target()?;
        let tls = self.trust.config(&url, context.as_ref())?;
        let (agent, untimed_agent) = (agent(Some(ANSWER_TIMEOUT), tls.clone()), agent(None, tls.clone()));
        let partition = self.partition;
        Ok(ApiClient { agent, untimed_agent, tls, url, authorization, partition, read_only: false })
    }

    /// Creates a client with the given token or the saved login. Sends no request.
    ///
    /// # Errors
    /// If there is neither, or a file cannot be read.
    pub fn connect(self) -> Result<ApiClient, ClientError> {
        let (url, context) = self.target()?;
        let token = match (self.explicit_token(context.as_ref())?, saved_logins::default_path()) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => SavedLogins::read(&path)?.get(&url).map(str::to_owned),
            (None, None) => None,
        };
        let token = token.ok_or(ClientError::NoToken)?;
        self.api_client(Some(format!("Bearer {token}")))
    }

    /// Opens a session and saves it for later commands. Returns the session's owner.
    ///
    /// # Errors
    /// If the appliance refuses or cannot be reached, or the session cannot be saved.
    pub fn log_in(self, login: &LoginRequest) -> Result<WhoamiView, ClientError> {
        let path = saved_logins::default_path().ok_or(ClientError::NoSettingsFolder)?;
        let client = self.api_client(None)?;
        let kind = [("content-type", "application/json")];
        let sessions = "/v1/sessions";
        let login = serde_json::to_vec(login).map_err(|source| client.unexpected(sessions, source))?;
        let answer = client.send_request(&client.agent, "POST", sessions, &kind, login.as_slice())?;
        let cookies: Vec<String> = answer
            .headers()
            .get_all(header::SET_COOKIE)
            .iter()
            .filter_map(|cookie| cookie.to_str().ok().map(str::to_owned))
            .collect();
        let whoami = client.typed(sessions, client.read_json(sessions, answer)?)?;
        let token = cookies.iter().find_map(|cookie| {
            cookie.split(';').next().unwrap_or_default().trim().strip_prefix("switchyard-session=")
        });
        let token = token.ok_or_else(|| client.unreachable(sessions, &"the answer has no session cookie"))?;
        let mut logins = SavedLogins::read(&path)?;
        logins.insert(&client.url, token);
        logins.write(&path)?;
        Ok(whoami)
    }

    /// Ends the saved session and deletes it. Returns whether there was one.
    ///
    /// # Errors
    /// If the saved logins cannot be read or written, or the appliance cannot be reached. In the latter case the saved
    /// session is deleted nevertheless, and expires on the appliance.
    pub fn log_out(self) -> Result<bool, ClientError> {
        let path = saved_logins::default_path().ok_or(ClientError::NoSettingsFolder)?;
        let mut logins = SavedLogins::read(&path)?;
        let Some(token) = logins.remove(&self.target()?.0) else { return Ok(false) };
        logins.write(&path)?;
        match self.api_client(Some(format!("Bearer {token}")))?.delete("/v1/sessions/current") {
            // The session has expired.
            Ok(_) | Err(ClientError::Refused(Problem { status: 401, .. })) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

fn trim_url(url: &str) -> String {
    url.trim().trim_end_matches('/').to_owned()
}

/// An environment variable; `None` if it is unset or empty.
fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn agent(timeout: Option<Duration>, tls: Option<TlsConfig>) -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let config = config.timeout_connect(Some(CONNECT_TIMEOUT)).timeout_global(timeout);
    let config = if let Some(tls) = tls { config.tls_config(tls) } else { config };
    config.build().new_agent()
}

/// Characters that a path segment may not contain unescaped.
const PATH_SEGMENT_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a name as a path segment or a query value.
#[must_use]
pub fn encode_segment(name: &str) -> String {
    utf8_percent_encode(name, PATH_SEGMENT_ESCAPES).to_string()
}

impl ApiClient {
    /// Refuses all requests that change something.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Sets the timeout of JSON answers.
    #[must_use]
    pub fn with_timeout(self, longest: Duration) -> Self {
        Self { agent: agent(Some(longest), self.tls.clone()), ..self }
    }

    /// The base URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// If the appliance refuses, or cannot be reached.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.ask("GET", path, None)
    }

    /// Sends a GET request and reads the answer as its type.
    ///
    /// # Errors
    /// As [`ApiClient::get`], and if the answer is of another type.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.typed(path, self.get(path)?)
    }

    /// As [`ApiClient::read`], for an operation that answers with the same type and this error status too.
    ///
    /// # Errors
    /// As [`ApiClient::read`].
    pub fn read_with_status<T: DeserializeOwned>(&self, path: &str, status: u16) -> Result<T, ClientError> {
        let answer = self.send_request(&self.agent, "GET", path, &[], ())?;
        let (answer_status, text) = (answer.status(), self.read_text(path, answer)?);
        match serde_json::from_str(&text) {
            Ok(typed) if answer_status.as_u16() == status => Ok(typed),
            _ => self.typed(path, self.parse_json(path, answer_status, &text)?),
        }
    }

    /// Sends a request with a JSON body and reads the answer as its type; `()` for no content.
    ///
    /// # Errors
    /// As [`ApiClient::read`].
    pub fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.call_with(method, path, &[("content-type", "application/json")], body)
    }

    /// As [`ApiClient::call`], with these headers; they include `content-type`.
    ///
    /// # Errors
    /// As [`ApiClient::read`].
    pub fn call_with<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_value(body).map_err(|source| self.unexpected(path, source))?;
        self.typed(path, self.send(method, path, headers, body.to_string().as_bytes())?)
    }

    /// Reads an answer to a request for `path` as its type.
    ///
    /// # Errors
    /// If the answer is of another type.
    pub fn typed<T: DeserializeOwned>(&self, path: &str, answer: Value) -> Result<T, ClientError> {
        serde_json::from_value(answer).map_err(|source| self.unexpected(path, source))
    }

    fn unexpected(&self, path: &str, source: serde_json::Error) -> ClientError {
        ClientError::UnexpectedAnswer { url: format!("{}{path}", self.url), source }
    }

    /// Sends a POST request with a JSON body.
    ///
    /// # Errors
    /// As [`ApiClient::get`].
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.ask("POST", path, Some(body))
    }

    /// Sends a DELETE request.
    ///
    /// # Errors
    /// As [`ApiClient::get`].
    pub fn delete(&self, path: &str) -> Result<Value, ClientError> {
        self.ask("DELETE", path, None)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        match body {
            Some(body) => {
                let kind = [("content-type", "application/json")];
                self.send(method, path, &kind, body.to_string().as_bytes())
            }
            None => self.read_json(path, self.send_request(&self.agent, method, path, &[], ())?),
        }
    }

    /// Sends a request with a binary body and returns the JSON answer.
    ///
    /// # Errors
    /// As [`ApiClient::get`].
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Value, ClientError> {
        self.read_json(path, self.send_request(&self.agent, method, path, headers, body)?)
    }

    /// As [`ApiClient::send`], and reads the answer as its type.
    ///
    /// # Errors
    /// As [`ApiClient::read`].
    pub fn upload<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<T, ClientError> {
        self.typed(path, self.send(method, path, headers, body)?)
    }

    /// Sends a request with a body from a reader, without a timeout.
    ///
    /// # Errors
    /// As [`ApiClient::get`].
    pub fn send_all(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &mut dyn Read,
    ) -> Result<Value, ClientError> {
        let body = SendBody::from_reader(body);
        self.read_json(path, self.send_request(&self.untimed_agent, method, path, headers, body)?)
    }

    /// Sends a GET request and returns the body as a stream, without a timeout.
    ///
    /// # Errors
    /// As [`ApiClient::get`].
    pub fn open(&self, path: &str, headers: &[(&str, &str)]) -> Result<impl Read + 'static, ClientError> {
        let answer = self.send_request(&self.untimed_agent, "GET", path, headers, ())?;
        if answer.status().is_success() {
            return Ok(answer.into_body().into_reader());
        }
        match self.read_json(path, answer) {
            Err(error) => Err(error),
            Ok(_) => Err(self.unreachable(path, &"unexpected answer")),
        }
    }

    /// Whether its requests are about all partitions of the cluster.
    #[must_use]
    pub fn asks_all_partitions(&self) -> bool {
        self.partition == Some(PartitionChoice::All)
    }

    fn unreachable(&self, path: &str, why: &dyn std::fmt::Display) -> ClientError {
        ClientError::Unreachable { url: format!("{}{path}", self.url), why: why.to_string() }
    }

    fn send_request(
        &self,
        agent: &ureq::Agent,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> Result<Response<Body>, ClientError> {
        if self.read_only && method != "GET" {
            return Err(ClientError::ReadOnly { method: method.to_owned(), path: path.to_owned() });
        }
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        let request = match &self.authorization {
            Some(value) => request.header(header::AUTHORIZATION, value),
            None => request,
        };
        let request = match self.partition {
            Some(partition) => request.header("partition", partition.header()),
            None => request,
        };
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(body).map_err(|error| self.unreachable(path, &error))?;
        agent.run(request).map_err(|error| self.unreachable(path, &error))
    }

    fn read_text(&self, path: &str, mut answer: Response<Body>) -> Result<String, ClientError> {
        let text = answer.body_mut().with_config().limit(MAX_ANSWER_OCTETS).read_to_string();
        text.map_err(|error| self.unreachable(path, &error))
    }

    fn read_json(&self, path: &str, answer: Response<Body>) -> Result<Value, ClientError> {
        let status = answer.status();
        self.parse_json(path, status, &self.read_text(path, answer)?)
    }

    /// Parses a JSON answer. An error status becomes [`ClientError::Refused`] with the problem document (RFC 9457), or with the
    /// start of any other text.
    fn parse_json(&self, path: &str, status: StatusCode, text: &str) -> Result<Value, ClientError> {
        if status.is_success() {
            return Ok(serde_json::from_str(text).unwrap_or(Value::Null));
        }
        let mut problem = serde_json::from_str(text).unwrap_or_else(|_| {
            let excerpt: String = text.chars().take(500).collect();
            let nothing = excerpt.is_empty();
            Problem {
                title: format!("HTTP status {status}").into(),
                status: 0,
                detail: if nothing { format!("{}{path} sent no details", self.url) } else { excerpt },
                reason: None,
                problems: Vec::new(),
            }
        });
        problem.status = status.as_u16();
        Err(ClientError::Refused(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::{PartitionChoice, encode_segment};

    #[test]
    fn a_partition_is_a_number_or_all() {
        let header = |text: &str| PartitionChoice::parse(text).map(PartitionChoice::header).ok();
        assert_eq!([header("0"), header("127"), header("all")].map(Option::unwrap), ["0", "127", "all"]);
        assert!([header("128"), header("-1"), header(""), header("All")].iter().all(Option::is_none));
    }

    #[test]
    fn names_encode_to_one_path_segment() {
        assert_eq!(encode_segment("support-line"), "support-line");
        assert_eq!(encode_segment("pool:1?#%"), "pool%3A1%3F%23%25");
        assert_eq!(encode_segment("idle+up"), "idle%2Bup");
        assert_eq!(encode_segment("名"), "%E5%90%8D");
    }
}
