use crate::logins::{self, Logins};
use crate::trust::Trust;
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{Request, Response, header};
use ureq::tls::TlsConfig;
use ureq::{AsSendBody, Body, SendBody};

/// Octets of an answer that is read as a whole, at most.
const ANSWER: u64 = 256 << 20;
/// How long an answer may take: a component of many megabytes may take a while to compile.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(10);

/// Which appliance.
#[derive(Debug, Clone, Args)]
pub struct At {
    /// The appliance's HTTP listener; SWITCHYARD_URL otherwise, or what is in the file SWITCHYARD_URL_FILE, or
    /// http://127.0.0.1:8080.
    #[arg(long, global = true)]
    url: Option<String>,
    /// The token of its API; SWITCHYARD_TOKEN otherwise, or who has logged in with `switchyard login`.
    #[arg(long, global = true, conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with the token: `token` in the appliance's data folder; SWITCHYARD_TOKEN_FILE otherwise.
    #[arg(long, global = true)]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    trust: Trust,
}

/// Why the appliance did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It said no.
    #[error("{title}: {detail}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// In a word or two.
        title: String,
        /// What exactly.
        detail: String,
        /// The whole answer, if it was JSON.
        problem: Value,
    },
    /// It does not answer.
    #[error("{url}: {why}\nIs the appliance running, and is --url its [http] listener?")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        why: String,
    },
    /// Nobody said what the token is.
    #[error(
        "the appliance wants to know who asks: log in with `switchyard login USER`, or give --token-file DATA/token, DATA \
         being its data folder, or set SWITCHYARD_TOKEN_FILE"
    )]
    NoToken,
    /// The token's file cannot be read.
    #[error("{path}: {source}")]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What `switchyard login` keeps cannot be read or written.
    #[error("{path}: {source}; it holds what `switchyard login` keeps, and may be removed")]
    Logins {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no place to keep a login at.
    #[error("no place to keep the login at: set HOME or XDG_CONFIG_HOME")]
    NoPlace,
    /// A certificate cannot be used.
    #[error("{path}: {why}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// One appliance, and the right to talk to it.
#[derive(Debug)]
pub struct Appliance {
    agent: ureq::Agent,
    /// For what takes as long as it takes.
    patient: ureq::Agent,
    tls: Option<TlsConfig>,
    url: String,
    authorization: Option<String>,
}

impl At {
    /// Whether the command line says where.
    #[must_use]
    pub fn is_said(&self) -> bool {
        self.url.is_some()
    }

    /// The same, with a place and a token's file for where nobody has said any.
    #[must_use]
    pub fn or(mut self, url: &str, token_file: &Path) -> Self {
        let said = |names: &[&str]| {
            names.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        };
        if self.url.is_none() && !said(&["SWITCHYARD_URL", "SWITCHYARD_URL_FILE"]) {
            self.url = Some(url.to_owned());
        }
        let has_token = self.token.is_some() || self.token_file.is_some();
        if !has_token && !said(&["SWITCHYARD_TOKEN", "SWITCHYARD_TOKEN_FILE"]) {
            self.token_file = Some(token_file.to_owned());
        }
        self
    }

    fn place(&self) -> String {
        // The daemon writes it, and is not there to do so when it does not run.
        let written = || std::fs::read_to_string(set("SWITCHYARD_URL_FILE")?).ok();
        let url = self.url.clone().or_else(|| set("SWITCHYARD_URL")).or_else(written);
        let url = url.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
        url.trim().trim_end_matches('/').to_owned()
    }

    /// The token that was given; nothing if none was.
    fn given(&self) -> Result<Option<String>, ClientError> {
        let file = self.token_file.clone().or_else(|| set("SWITCHYARD_TOKEN_FILE").map(PathBuf::from));
        let token = match (self.token.clone(), file) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => Some(
                std::fs::read_to_string(&path).map_err(|source| ClientError::TokenFile { path, source })?,
            ),
            (None, None) => set("SWITCHYARD_TOKEN"),
        };
        Ok(token.map(|token| token.trim().to_owned()))
    }

    /// The token that was given.
    ///
    /// # Errors
    /// When there is none.
    pub fn token(&self) -> Result<String, ClientError> {
        self.given()?.ok_or(ClientError::NoToken)
    }

    fn appliance(self, authorization: Option<String>) -> Result<Appliance, ClientError> {
        let url = self.place();
        let tls = self.trust.config(&url)?;
        let (quick, patient) = (agent(Some(PATIENCE), tls.clone()), agent(None, tls.clone()));
        Ok(Appliance { agent: quick, patient, tls, url, authorization })
    }

    /// Finds out where the appliance is and who asks: by the token that was given, or the login that was kept. Does not talk to
    /// it yet.
    ///
    /// # Errors
    /// When there is neither, or a file cannot be read.
    pub fn reach(self) -> Result<Appliance, ClientError> {
        let word = match (self.given()?, logins::place()) {
            (Some(token), _) => Some(token),
            (None, Some(path)) => Logins::read(&path)?.of(&self.place()).map(str::to_owned),
            (None, None) => None,
        };
        let word = word.ok_or(ClientError::NoToken)?;
        self.appliance(Some(format!("Bearer {word}")))
    }

    /// Opens a session and keeps it, for the commands that follow. `login` is what `POST /v1/sessions` takes; gives back what it
    /// says.
    ///
    /// # Errors
    /// When the appliance refuses, cannot be reached, or the session cannot be kept.
    pub fn log_in(self, login: &Value) -> Result<Value, ClientError> {
        let path = logins::place().ok_or(ClientError::NoPlace)?;
        let appliance = self.appliance(None)?;
        let kind = [("content-type", "application/json")];
        let place = "/v1/sessions";
        let answer = appliance.run(&appliance.agent, "POST", place, &kind, login.to_string().as_bytes())?;
        let cookies: Vec<String> = answer
            .headers()
            .get_all(header::SET_COOKIE)
            .iter()
            .filter_map(|cookie| cookie.to_str().ok().map(str::to_owned))
            .collect();
        let standing = appliance.read(place, answer)?;
        let word = cookies.iter().find_map(|cookie| {
            cookie.split(';').next().unwrap_or_default().trim().strip_prefix("switchyard-session=")
        });
        let word =
            word.ok_or_else(|| appliance.unreachable(place, &"it has opened a session without a word"))?;
        let mut logins = Logins::read(&path)?;
        logins.keep(&appliance.url, word);
        logins.write(&path)?;
        Ok(standing)
    }

    /// Ends the session that was kept, and forgets it; says whether there was one.
    ///
    /// # Errors
    /// When what was kept cannot be read or written, or the appliance cannot be reached: the session is forgotten then as well,
    /// and ends by itself.
    pub fn log_out(self) -> Result<bool, ClientError> {
        let path = logins::place().ok_or(ClientError::NoPlace)?;
        let mut logins = Logins::read(&path)?;
        let Some(word) = logins.forget(&self.place()) else { return Ok(false) };
        logins.write(&path)?;
        match self.appliance(Some(format!("Bearer {word}")))?.delete("/v1/sessions/current") {
            // It has ended already.
            Ok(_) | Err(ClientError::Refused { status: 401, .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// What the environment says.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn agent(patience: Option<Duration>, tls: Option<TlsConfig>) -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let config = config.timeout_connect(Some(CONNECT)).timeout_global(patience);
    let config = if let Some(tls) = tls { config.tls_config(tls) } else { config };
    config.build().new_agent()
}

/// All but what a path may have in one of its parts without being changed.
const SPECIAL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A name as a part of a path, or as a value after the question mark.
#[must_use]
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, SPECIAL).to_string()
}

impl Appliance {
    /// Waits no longer than this for an answer that is read as a whole.
    #[must_use]
    pub fn patience(self, longest: Duration) -> Self {
        Self { agent: agent(Some(longest), self.tls.clone()), ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// GET.
    ///
    /// # Errors
    /// When the appliance refuses, or cannot be reached.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.ask("GET", path, None)
    }

    /// POST of a JSON body.
    ///
    /// # Errors
    /// As [`Appliance::get`].
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.ask("POST", path, Some(body))
    }

    /// PUT of a JSON body.
    ///
    /// # Errors
    /// As [`Appliance::get`].
    pub fn put(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.ask("PUT", path, Some(body))
    }

    /// PATCH with a JSON body.
    ///
    /// # Errors
    /// As [`Appliance::get`].
    pub fn patch(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.ask("PATCH", path, Some(body))
    }

    /// DELETE.
    ///
    /// # Errors
    /// As [`Appliance::get`].
    pub fn delete(&self, path: &str) -> Result<Value, ClientError> {
        self.ask("DELETE", path, None)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        match body {
            Some(body) => {
                let kind = [("content-type", "application/json")];
                self.send(method, path, &kind, body.to_string().as_bytes())
            }
            None => self.read(path, self.run(&self.agent, method, path, &[], ())?),
        }
    }

    /// Sends octets as they are, and reads the answer's JSON.
    ///
    /// # Errors
    /// As [`Appliance::get`].
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Value, ClientError> {
        self.read(path, self.run(&self.agent, method, path, headers, body)?)
    }

    /// POST of what a reader gives, for as long as that takes.
    ///
    /// # Errors
    /// As [`Appliance::get`].
    pub fn post_all(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &mut dyn Read,
    ) -> Result<Value, ClientError> {
        let body = SendBody::from_reader(body);
        self.read(path, self.run(&self.patient, "POST", path, headers, body)?)
    }

    /// GET of an answer that comes bit by bit, and may have no end.
    ///
    /// # Errors
    /// As [`Appliance::get`].
    pub fn open(&self, path: &str, headers: &[(&str, &str)]) -> Result<impl Read + 'static, ClientError> {
        let answer = self.run(&self.patient, "GET", path, headers, ())?;
        if answer.status().is_success() {
            return Ok(answer.into_body().into_reader());
        }
        match self.read(path, answer) {
            Err(error) => Err(error),
            Ok(_) => Err(self.unreachable(path, &"an answer that cannot be understood")),
        }
    }

    fn unreachable(&self, path: &str, why: &dyn std::fmt::Display) -> ClientError {
        ClientError::Unreachable { url: format!("{}{path}", self.url), why: why.to_string() }
    }

    fn run(
        &self,
        agent: &ureq::Agent,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> Result<Response<Body>, ClientError> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url));
        let request = match &self.authorization {
            Some(word) => request.header(header::AUTHORIZATION, word),
            None => request,
        };
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.body(body).map_err(|error| self.unreachable(path, &error))?;
        agent.run(request).map_err(|error| self.unreachable(path, &error))
    }

    /// The answer's JSON; what is no success is an error in the appliance's own words (RFC 9457).
    fn read(&self, path: &str, mut answer: Response<Body>) -> Result<Value, ClientError> {
        let status = answer.status();
        let text = answer.body_mut().with_config().limit(ANSWER).read_to_string();
        let text = text.map_err(|error| self.unreachable(path, &error))?;
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(body);
        }
        let word = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
        Err(ClientError::Refused {
            status: status.as_u16(),
            title: word("title").unwrap_or_else(|| format!("HTTP status {status}")),
            detail: word("detail").unwrap_or_else(|| {
                let words: String = text.chars().take(500).collect();
                if words.is_empty() { format!("{}{path} says no more", self.url) } else { words }
            }),
            problem: body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn names_are_one_part_of_a_path() {
        assert_eq!(segment("support-line"), "support-line");
        assert_eq!(segment("pool:1?#%"), "pool%3A1%3F%23%25");
        assert_eq!(segment("idle+up"), "idle%2Bup");
        assert_eq!(segment("名"), "%E5%90%8D");
    }
}
