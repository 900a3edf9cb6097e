//! A daemon with a Redis listener, and the visible state of its pools.

use super::PoolRequest;
use super::model::{JournalEntry, NumberView, PoolView};
use super::protocol::{
    PoolProtocol, PoolReply, SCRIPT, decode_json, decode_redis, encode_json, encode_redis, legacy_state,
};
use crate::Fixture;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use testkit::load::pools::{RedisClient, RedisReply};
use testkit::test_daemon::{TestDaemon, TestDaemonConfig, free_port};

/// A daemon that can be killed and restarted.
#[derive(Debug)]
pub struct PoolServer {
    /// `None` only while it is restarted.
    appliance: Option<TestDaemon>,
    redis: SocketAddr,
}

impl PoolServer {
    /// Starts a daemon. `more` are further keys of `[redis]`.
    pub fn open(fixture: &Fixture, more: &str) -> Result<Self> {
        let mut config = fixture.config()?;
        let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let redis = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        config.peer("upstream", nobody, "").native("upstream");
        config.tables(&format!("[redis]\nlisten = [\"{redis}\"]\nscripts = [\"{SCRIPT}\"]\n{more}\n"));
        Ok(Self { appliance: Some(config.start()?), redis })
    }

    /// The daemon.
    pub fn appliance(&self) -> Result<&TestDaemon> {
        self.appliance.as_ref().context("the daemon is not running")
    }

    /// Address of the Redis listener.
    pub fn redis(&self) -> SocketAddr {
        self.redis
    }

    /// A new Redis connection.
    pub fn client(&self) -> Result<RedisClient> {
        RedisClient::connect(self.redis)
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) -> Result<TestDaemonConfig> {
        self.appliance.take().context("the daemon is not running")?.kill()
    }

    /// Restarts the daemon.
    pub fn start(&mut self, config: &TestDaemonConfig) -> Result<()> {
        self.appliance = Some(config.start()?);
        Ok(())
    }

    /// Sends SIGKILL and restarts.
    pub fn crash(&mut self) -> Result<()> {
        let config = self.kill()?;
        self.start(&config)
    }

    /// Sends several requests in one HTTP request.
    pub fn post(&self, pool: &str, requests: &[PoolRequest]) -> Result<Vec<PoolReply>> {
        let body = Value::Array(requests.iter().map(encode_json).collect()).to_string();
        let answer = self.appliance()?.ask("POST", &format!("/v1/pools/{pool}/events"), body.as_bytes())?;
        let answers = answer.as_array().context("no array")?;
        ensure!(answers.len() == requests.len(), "{} answers to {} events", answers.len(), requests.len());
        requests.iter().zip(answers).map(|(request, answer)| decode_json(request, answer)).collect()
    }

    /// Sends one request over HTTP.
    pub fn post_one(&self, pool: &str, request: &PoolRequest) -> Result<PoolReply> {
        let path = format!("/v1/pools/{pool}/events");
        let (status, text) =
            self.appliance()?.request("POST", &path, encode_json(request).to_string().as_bytes())?;
        ensure!(status == 200 || status == 409, "{request:?}: {status} {text}");
        decode_json(request, &serde_json::from_str(&text)?)
    }

    /// Sends several requests in one HTTP request, without waiting for the answer.
    pub fn post_later(&self, pool: &str, requests: &[PoolRequest]) -> Result<PendingRequest> {
        let appliance = self.appliance()?;
        let address = appliance.config().http();
        let body = Value::Array(requests.iter().map(encode_json).collect()).to_string();
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(crate::TIMEOUT))?;
        write!(
            socket,
            "POST /v1/pools/{pool}/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            appliance.token()?,
            body.len()
        )?;
        Ok(PendingRequest(socket))
    }

    /// The visible state of a pool, over HTTP and over the Redis protocol, which must agree.
    pub fn view(&self, pool: &str) -> Result<PoolView> {
        let mut view = PoolView::default();
        let mut path = format!("/v1/pools/{pool}/numbers?limit=1000");
        loop {
            let page = self.appliance()?.get(&path)?;
            for number in page["numbers"].as_array().context("no numbers")? {
                let text = |name: &str| number[name].as_str().unwrap_or_default().to_owned();
                let seen = NumberView {
                    state: text("state"),
                    holder: text("holder"),
                    calls: number["calls"].as_u64().context("no calls")?,
                    leased: number["lease-ends"].is_u64(),
                };
                view.numbers.insert(text("number"), seen);
            }
            match page["next"].as_u64() {
                Some(next) => path = format!("/v1/pools/{pool}/numbers?limit=1000&cursor={next}"),
                None => break,
            }
        }
        let mut client = self.client()?;
        view.idle = texts(&client.ask(&["LRANGE", &format!("{{{pool}}}:idle:up"), "0", "-1"])?)?;
        let states = texts(&client.ask(&["HGETALL", &format!("{{{pool}}}:numstate")])?)?;
        ensure!(states.len() == 2 * view.numbers.len(), "{states:?} and {:?}", view.numbers);
        for pair in states.chunks_exact(2) {
            let seen =
                view.numbers.get(&pair[0]).with_context(|| format!("{} is not there by HTTP", pair[0]))?;
            ensure!(
                legacy_state(&seen.state) == pair[1],
                "{}: {} by the Redis protocol, {} by HTTP",
                pair[0],
                pair[1],
                seen.state
            );
        }
        Ok(view)
    }

    /// The ticket of a held number.
    pub fn ticket(&self, pool: &str, number: &str) -> Result<u64> {
        let path = format!("/v1/pools/{pool}/numbers/{}", number.replace('+', "%2B").replace('#', "%23"));
        self.appliance()?.get(&path)?["ticket"].as_u64().context("no ticket")
    }

    /// The whole history, oldest first.
    pub fn history(&self, pool: &str) -> Result<Vec<JournalEntry>> {
        let mut all = Vec::new();
        let mut path = format!("/v1/pools/{pool}/history?limit=1000");
        loop {
            let page = self.appliance()?.get(&path)?;
            for entry in page["entries"].as_array().context("no entries")? {
                let text = |name: &str| entry[name].as_str().map(str::to_owned);
                let words = || format!("{entry}");
                all.push((
                    text("event").with_context(words)?,
                    text("number").with_context(words)?,
                    text("state").with_context(words)?,
                    text("by"),
                ));
            }
            match page["next"].as_u64() {
                Some(next) => path = format!("/v1/pools/{pool}/history?limit=1000&before={next}"),
                None => break,
            }
        }
        all.reverse();
        Ok(all)
    }
}

/// A pending HTTP request.
#[derive(Debug)]
pub struct PendingRequest(TcpStream);

impl PendingRequest {
    /// The replies received before the connection ended; `None` if the answer is incomplete.
    pub fn answer(mut self, requests: &[PoolRequest]) -> Result<Option<Vec<PoolReply>>> {
        let mut octets = Vec::new();
        // The connection may break here.
        let _ = self.0.read_to_end(&mut octets);
        let text = String::from_utf8_lossy(&octets);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(None) };
        let Ok(answer) = serde_json::from_str::<Value>(body) else { return Ok(None) };
        ensure!(head.starts_with("HTTP/1.1 200"), "{text}");
        let answers = answer.as_array().context("no array")?;
        ensure!(answers.len() == requests.len(), "{text}");
        requests
            .iter()
            .zip(answers)
            .map(|(request, answer)| decode_json(request, answer))
            .collect::<Result<_>>()
            .map(Some)
    }
}

/// The elements of an array of texts.
pub(super) fn texts(answer: &RedisReply) -> Result<Vec<String>> {
    let RedisReply::Array(all) = answer else { anyhow::bail!("{answer:?} is not an array") };
    all.iter()
        .map(|one| match one {
            RedisReply::Text(text) => Ok(text.clone()),
            other => anyhow::bail!("{other:?} is not a text"),
        })
        .collect()
}

/// Encoded requests, and how to decode their replies.
#[derive(Debug, Default)]
pub struct RequestBatch {
    octets: Vec<u8>,
    scripts: Vec<bool>,
}

impl RequestBatch {
    /// Encodes the requests.
    pub fn new<'a>(pool: &str, requests: impl IntoIterator<Item = (&'a PoolRequest, PoolProtocol)>) -> Self {
        let mut batch = Self::default();
        for (request, protocol) in requests {
            let (octets, script) = encode_redis(pool, request, protocol);
            batch.octets.extend_from_slice(&octets);
            batch.scripts.push(script);
        }
        batch
    }

    /// Sends them.
    pub fn send(&self, client: &mut RedisClient) -> Result<()> {
        client.send(&self.octets)
    }

    /// Decodes the reply to one of the requests.
    pub fn decode(&self, index: usize, request: &PoolRequest, answer: &RedisReply) -> Result<PoolReply> {
        decode_redis(request, self.scripts[index], answer)
    }
}
