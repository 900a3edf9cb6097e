//! Peers in other languages, controlled by lines of JSON: SMPP with third-party libraries, SGIP and business systems with only
//! Python's standard library.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A running peer; killed when dropped.
#[derive(Debug)]
pub struct Peer {
    name: String,
    process: Child,
    input: Option<ChildStdin>,
    events: Receiver<Value>,
    /// Events that were received but not consumed yet.
    seen: Vec<Value>,
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

impl Peer {
    /// A script for Node.js with npm `smpp`.
    pub fn node(name: &str, options: &Value) -> Result<Self> {
        let modules = workspace::peers().join("node_modules");
        if !modules.join("smpp/package.json").exists() {
            bail!("npm `smpp` is not installed in {}; run: cargo xtask setup", modules.display());
        }
        let mut node = Command::new("node");
        node.env("NODE_PATH", modules);
        Self::start(name, &mut node, options)
    }

    /// A script for Python with PyPI `smpplib`, `redis` or `dnslib`.
    pub fn python(name: &str, options: &Value) -> Result<Self> {
        let python = workspace::peers().join("venv/bin/python");
        if !python.exists() {
            bail!(
                "PyPI `smpplib`, `redis` and `dnslib` are not installed ({} is missing); run: cargo xtask setup",
                python.display()
            );
        }
        Self::start(name, &mut Command::new(python), options)
    }

    /// A script for Python that needs only the standard library.
    pub fn plain_python(name: &str, options: &Value) -> Result<Self> {
        // -B: no compiled files next to the sources.
        Self::start(name, Command::new("python3").arg("-B"), options)
    }

    fn start(name: &str, command: &mut Command, options: &Value) -> Result<Self> {
        let mut process = command
            .arg(script(name))
            .arg(options.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!("starting {name}; if its interpreter is missing, run: cargo xtask setup")
            })?;
        let output = process.stdout.take().context("no standard output")?;
        let input = process.stdin.take();
        let (sender, events) = channel();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(event).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { name: name.to_owned(), process, input, events, seen: Vec::new() })
    }

    /// Sends an action to the peer.
    pub fn send_action(&mut self, action: &Value) -> Result<()> {
        let input = self.input.as_mut().context("its input is closed")?;
        writeln!(input, "{action}").with_context(|| format!("telling {}", self.name))
    }

    /// The next event with this name that satisfies the condition; other events are kept for later.
    pub fn expect_matching(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + crate::TIMEOUT;
        let wanted = |event: &Value| event["event"] == name && fits(event);
        if let Some(place) = self.seen.iter().position(wanted) {
            return Ok(self.seen.remove(place));
        }
        loop {
            match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(event) if wanted(&event) => return Ok(event),
                Ok(event) => self.seen.push(event),
                Err(RecvTimeoutError::Timeout) => {
                    bail!(
                        "{}: no {name:?} within {:?}; received: {:#?}",
                        self.name,
                        crate::TIMEOUT,
                        self.seen
                    )
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{}: exited without {name:?}; received: {:#?}", self.name, self.seen)
                }
            }
        }
    }

    /// The next event with this name.
    pub fn expect(&mut self, name: &str) -> Result<Value> {
        self.expect_matching(name, |_| true)
    }

    /// All events with this name that arrived so far or arrive within this time.
    pub fn collect(&mut self, name: &str, time: Duration) -> Vec<Value> {
        let deadline = Instant::now() + time;
        while let Ok(event) = self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.seen.push(event);
        }
        let (found, rest) =
            std::mem::take(&mut self.seen).into_iter().partition(|event| event["event"] == name);
        self.seen = rest;
        found
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
