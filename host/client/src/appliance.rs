use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;
use ureq::http::{Request, Response};
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
    /// The appliance's HTTP listener; SWITCHYARD_URL otherwise, or http://127.0.0.1:8080.
    #[arg(long, global = true)]
    url: Option<String>,
    /// The token of its API; SWITCHYARD_TOKEN otherwise.
    #[arg(long, global = true, conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with the token: `token` in the appliance's data folder; SWITCHYARD_TOKEN_FILE otherwise.
    #[arg(long, global = true)]
    token_file: Option<PathBuf>,
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
        "the appliance wants a token: give --token-file DATA/token, DATA being its data folder, or set \
         SWITCHYARD_TOKEN_FILE"
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
}

/// One appliance, and the right to talk to it.
#[derive(Debug)]
pub struct Appliance {
    agent: ureq::Agent,
    /// For what takes as long as it takes.
    patient: ureq::Agent,
    url: String,
    authorization: String,
}

impl At {
    /// Finds out where the appliance is and what its token is; does not talk to it yet.
    ///
    /// # Errors
    /// When there is no token.
    pub fn reach(self) -> Result<Appliance, ClientError> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = self.url.or_else(|| set("SWITCHYARD_URL"));
        let url = url.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
        let file = self.token_file.or_else(|| set("SWITCHYARD_TOKEN_FILE").map(PathBuf::from));
        let token = match (self.token, file) {
            (Some(token), _) => token,
            (None, Some(path)) => {
                std::fs::read_to_string(&path).map_err(|source| ClientError::TokenFile { path, source })?
            }
            (None, None) => set("SWITCHYARD_TOKEN").ok_or(ClientError::NoToken)?,
        };
        let agent = |patience| {
            let config = ureq::Agent::config_builder().http_status_as_error(false);
            config.timeout_connect(Some(CONNECT)).timeout_global(patience).build().new_agent()
        };
        let authorization = format!("Bearer {}", token.trim());
        let url = url.trim_end_matches('/').to_owned();
        Ok(Appliance { agent: agent(Some(PATIENCE)), patient: agent(None), url, authorization })
    }
}

/// All but what a path may have in one of its parts without being changed.
const SPECIAL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A name as a part of a path, or as a value after the question mark.
#[must_use]
pub fn segment(name: &str) -> String {
    utf8_percent_encode(name, SPECIAL).to_string()
}

impl Appliance {
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
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("authorization", &self.authorization);
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
