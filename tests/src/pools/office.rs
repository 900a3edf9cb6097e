//! An appliance with a Redis door, and what one sees of its pools.

use super::Wish;
use super::language::{Language, SCRIPT, Told, heard, older_state, read, spoken, written};
use super::model::{Entry, Seen, View};
use crate::Stage;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use xtask::appliance::{Appliance, Blueprint, free_port};
use xtask::load::pools::{Answer, Client};

/// An appliance that can be killed and started again.
#[derive(Debug)]
pub struct Office {
    /// `None` only while it is exchanged.
    appliance: Option<Appliance>,
    redis: SocketAddr,
}

impl Office {
    /// Starts one. `more` are further keys of `[redis]`.
    pub fn open(stage: &Stage, more: &str) -> Result<Self> {
        let mut blueprint = stage.blueprint()?;
        let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let redis = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        blueprint.peer("upstream", nobody, "").native("upstream");
        blueprint.tables(&format!("[redis]\nlisten = [\"{redis}\"]\nscripts = [\"{SCRIPT}\"]\n{more}\n"));
        Ok(Self { appliance: Some(blueprint.start()?), redis })
    }

    /// The appliance.
    pub fn appliance(&self) -> Result<&Appliance> {
        self.appliance.as_ref().context("there is no appliance")
    }

    /// Where the Redis protocol is spoken.
    pub fn redis(&self) -> SocketAddr {
        self.redis
    }

    /// A connection to there.
    pub fn client(&self) -> Result<Client> {
        Client::connect(self.redis)
    }

    /// SIGKILL.
    pub fn kill(&mut self) -> Result<Blueprint> {
        self.appliance.take().context("there is no appliance")?.kill()
    }

    /// Starts it again.
    pub fn start(&mut self, blueprint: &Blueprint) -> Result<()> {
        self.appliance = Some(blueprint.start()?);
        Ok(())
    }

    /// SIGKILL, and a new start.
    pub fn crash(&mut self) -> Result<()> {
        let blueprint = self.kill()?;
        self.start(&blueprint)
    }

    /// Asks by HTTP, several things in one request.
    pub fn post(&self, pool: &str, wishes: &[Wish]) -> Result<Vec<Told>> {
        let body = Value::Array(wishes.iter().map(written).collect()).to_string();
        let answer = self.appliance()?.ask("POST", &format!("/v1/pools/{pool}/events"), body.as_bytes())?;
        let answers = answer.as_array().context("no array")?;
        ensure!(answers.len() == wishes.len(), "{} answers to {} events", answers.len(), wishes.len());
        wishes.iter().zip(answers).map(|(wish, answer)| read(wish, answer)).collect()
    }

    /// Asks by HTTP, one thing.
    pub fn post_one(&self, pool: &str, wish: &Wish) -> Result<Told> {
        let path = format!("/v1/pools/{pool}/events");
        let (status, text) =
            self.appliance()?.request("POST", &path, written(wish).to_string().as_bytes())?;
        ensure!(status == 200 || status == 409, "{wish:?}: {status} {text}");
        read(wish, &serde_json::from_str(&text)?)
    }

    /// Asks by HTTP, several things in one request, and does not wait for the answer.
    pub fn post_later(&self, pool: &str, wishes: &[Wish]) -> Result<Request> {
        let appliance = self.appliance()?;
        let address = appliance.blueprint().http();
        let body = Value::Array(wishes.iter().map(written).collect()).to_string();
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(crate::PATIENCE))?;
        write!(
            socket,
            "POST /v1/pools/{pool}/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            appliance.token()?,
            body.len()
        )?;
        Ok(Request(socket))
    }

    /// All that is to be seen of a pool: by HTTP, and by the Redis protocol, which must agree.
    pub fn view(&self, pool: &str) -> Result<View> {
        let mut view = View::default();
        let mut path = format!("/v1/pools/{pool}/numbers?limit=1000");
        loop {
            let page = self.appliance()?.get(&path)?;
            for number in page["numbers"].as_array().context("no numbers")? {
                let text = |name: &str| number[name].as_str().unwrap_or_default().to_owned();
                let seen = Seen {
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
                older_state(&seen.state) == pair[1],
                "{}: {} by the Redis protocol, {} by HTTP",
                pair[0],
                pair[1],
                seen.state
            );
        }
        Ok(view)
    }

    /// The ticket under which a number is held.
    pub fn ticket(&self, pool: &str, number: &str) -> Result<u64> {
        let path = format!("/v1/pools/{pool}/numbers/{}", number.replace('+', "%2B").replace('#', "%23"));
        self.appliance()?.get(&path)?["ticket"].as_u64().context("no ticket")
    }

    /// The whole history, oldest first.
    pub fn history(&self, pool: &str) -> Result<Vec<Entry>> {
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

/// A request by HTTP that is on its way.
#[derive(Debug)]
pub struct Request(TcpStream);

impl Request {
    /// What was answered before the connection ended; `None` if that was not a whole answer.
    pub fn answer(mut self, wishes: &[Wish]) -> Result<Option<Vec<Told>>> {
        let mut octets = Vec::new();
        // A connection that breaks off is what this is about.
        let _ = self.0.read_to_end(&mut octets);
        let text = String::from_utf8_lossy(&octets);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(None) };
        let Ok(answer) = serde_json::from_str::<Value>(body) else { return Ok(None) };
        ensure!(head.starts_with("HTTP/1.1 200"), "{text}");
        let answers = answer.as_array().context("no array")?;
        ensure!(answers.len() == wishes.len(), "{text}");
        wishes.iter().zip(answers).map(|(wish, answer)| read(wish, answer)).collect::<Result<_>>().map(Some)
    }
}

/// The elements of a list of texts.
pub(super) fn texts(answer: &Answer) -> Result<Vec<String>> {
    let Answer::Array(all) = answer else { anyhow::bail!("{answer:?} is no list") };
    all.iter()
        .map(|one| match one {
            Answer::Text(text) => Ok(text.clone()),
            other => anyhow::bail!("{other:?} is no text"),
        })
        .collect()
}

/// Requests in one piece, and how their answers are to be read.
#[derive(Debug, Default)]
pub struct Letter {
    octets: Vec<u8>,
    scripts: Vec<bool>,
}

impl Letter {
    /// Puts the wishes down.
    pub fn new<'a>(pool: &str, wishes: impl IntoIterator<Item = (&'a Wish, Language)>) -> Self {
        let mut letter = Self::default();
        for (wish, language) in wishes {
            let (octets, script) = spoken(pool, wish, language);
            letter.octets.extend_from_slice(&octets);
            letter.scripts.push(script);
        }
        letter
    }

    /// Sends it.
    pub fn send(&self, client: &mut Client) -> Result<()> {
        client.send(&self.octets)
    }

    /// What the answer to one of the wishes means.
    pub fn heard(&self, index: usize, wish: &Wish, answer: &Answer) -> Result<Told> {
        heard(wish, self.scripts[index], answer)
    }
}
