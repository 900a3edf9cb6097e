//! A private NATS server from Debian's package, with JetStream.

use crate::program::Program;
use crate::test_daemon::free_port;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The server; killed when dropped.
#[derive(Debug)]
pub struct NatsServer {
    folder: PathBuf,
    address: SocketAddr,
    /// `None` while it is dead.
    program: Option<Program>,
}

/// A message of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct NatsStreamMessage {
    /// Its subject.
    pub subject: String,
    /// Its headers, as text.
    pub headers: String,
    /// Its payload.
    pub payload: Value,
}

impl NatsServer {
    /// Starts a server without streams, whose clients need the token `hush`.
    ///
    /// # Errors
    /// If it is not installed or does not start; the error contains its log.
    pub fn start(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut server = Self { folder: folder.canonicalize()?, address, program: None };
        server.restart()?;
        Ok(server)
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.program = None;
    }

    /// Restarts the server with its streams.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<()> {
        self.kill();
        let mut command = Command::new("/usr/sbin/nats-server");
        command.args(["-js", "-sd", "streams", "-a", "127.0.0.1", "-p", &self.address.port().to_string()]);
        command.args(["--auth", "hush"]);
        let program = Program::start("nats-server", &self.folder, &mut command, &[self.address])?;
        self.program = Some(program);
        Ok(())
    }

    /// Makes a stream of these subjects.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn make_stream(&self, name: &str, subjects: &str) -> Result<()> {
        let stream =
            json!({ "name": name, "subjects": [subjects], "storage": "file", "retention": "limits" });
        let answer = self.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &stream)?;
        ensure!(answer["error"].is_null(), "{answer}");
        Ok(())
    }

    /// All messages of a stream, in order.
    ///
    /// # Errors
    /// If the server does not answer.
    pub fn messages(&self, name: &str) -> Result<Vec<NatsStreamMessage>> {
        let info = self.ask(&format!("$JS.API.STREAM.INFO.{name}"), &json!({}))?;
        let last = info["state"]["last_seq"].as_u64().with_context(|| format!("{info}"))?;
        let mut found = Vec::new();
        for seq in 1..=last {
            let got = self.ask(&format!("$JS.API.STREAM.MSG.GET.{name}"), &json!({ "seq": seq }))?;
            let message = &got["message"];
            let text = |key: &str| -> Result<String> {
                use base64::Engine as _;
                let octets = message[key].as_str().with_context(|| format!("no {key} in {got}"))?;
                Ok(String::from_utf8(base64::engine::general_purpose::STANDARD.decode(octets)?)?)
            };
            found.push(NatsStreamMessage {
                subject: message["subject"].as_str().unwrap_or_default().to_owned(),
                headers: text("hdrs")?,
                payload: serde_json::from_str(&text("data")?)?,
            });
        }
        Ok(found)
    }

    /// The answer to a request.
    fn ask(&self, subject: &str, request: &Value) -> Result<Value> {
        let mut socket = TcpStream::connect(self.address)?;
        socket.set_read_timeout(Some(Duration::from_secs(30)))?;
        let request = request.to_string();
        write!(
            socket,
            "CONNECT {{\"verbose\":false,\"auth_token\":\"hush\"}}\r\nSUB answer 1\r\nPUB {subject} answer {}\r\n{request}\r\n",
            request.len()
        )?;
        let mut input = BufReader::new(socket);
        loop {
            let mut line = String::new();
            ensure!(input.read_line(&mut line)? > 0, "the server closed the connection");
            if line.starts_with("-ERR") {
                bail!("{subject}: {line}");
            }
            if line.starts_with("MSG answer") {
                let octets = line.split_ascii_whitespace().next_back().context("no length")?.parse()?;
                let mut answer = vec![0; octets];
                input.read_exact(&mut answer)?;
                return Ok(serde_json::from_slice(&answer)?);
            }
        }
    }
}
