//! For tests: a server that gives prepared answers, and a command line that is run against it.

use crate::command::{Command, House};
use crate::doctor::Facts;
use crate::output::Streams;
use clap::{CommandFactory, Parser};
use serde_json::Value;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// The time at which all tests of commands play: 2026-11-21 16:03:02 UTC.
pub(crate) const NOW: u64 = 1_795_276_982_000;

/// The admin's part of the command line.
#[derive(Debug, Parser)]
#[command(name = "switchyard", version = "0.1.0", about = "An SMS routing appliance", term_width = 100)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// The version of the command line.
pub(crate) const VERSION: &str = "0.1.0";

pub(crate) fn house() -> House {
    House { command: Line::command, version: VERSION, read: facts }
}

/// The tests' configurations are JSON, and hold nothing else.
fn facts(path: &Path) -> Result<Facts, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?;
    let data = PathBuf::from(value["data"].as_str().unwrap());
    let listens = value["listens"].as_object().unwrap().iter();
    let listens = listens.map(|(name, address)| (name.clone(), address.as_str().unwrap().parse().unwrap()));
    Ok(Facts {
        summary: "nothing".to_owned(),
        token_file: data.join("token"),
        data,
        watermark: value["watermark"].as_u64().unwrap(),
        listens: listens.collect(),
        connections: value["connections"].as_u64().unwrap(),
        url: value["url"].as_str().unwrap().to_owned(),
        archive: value["archive"].as_str().map(str::to_owned),
    })
}

/// What a request was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) what: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

#[derive(Debug)]
struct Answer {
    what: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// It ends the connection after so many octets of its body.
    cut: Option<usize>,
}

/// An appliance in name only: what it was not told, it does not know (404).
#[derive(Debug, Default, Clone)]
pub(crate) struct Stub {
    answers: Arc<Mutex<Vec<Answer>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Stub {
    /// Answers `METHOD PATH` with JSON; of several answers to the same, each is given once, and the last for ever.
    pub(crate) fn with(self, what: &str, status: u16, body: &Value) -> Self {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.with_octets(what, status, body, None)
    }

    pub(crate) fn with_octets(self, what: &str, status: u16, body: Vec<u8>, cut: Option<usize>) -> Self {
        let kind = vec![("content-type".to_owned(), "application/json".to_owned())];
        self.answers.lock().unwrap().push(Answer { what: what.to_owned(), status, headers: kind, body, cut });
        self
    }

    /// Begins to answer; where.
    pub(crate) fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stub = self.clone();
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let stub = stub.clone();
                std::thread::spawn(move || stub.serve(stream));
            }
        });
        url
    }

    /// What it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let what = line.rsplit_once(' ').map_or("", |(what, _)| what).to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let body = String::from_utf8(body(&mut reader, &headers)).unwrap();
        self.asked.lock().unwrap().push(Asked { what: what.clone(), headers, body });
        let octets = self.answer(&what);
        let _ = stream.write_all(&octets);
    }

    fn answer(&self, what: &str) -> Vec<u8> {
        let mut answers = self.answers.lock().unwrap();
        let found: Vec<usize> = (0..answers.len()).filter(|at| answers[*at].what == what).collect();
        let missing = Answer {
            what: String::new(),
            status: 404,
            headers: vec![("content-type".to_owned(), "application/problem+json".to_owned())],
            body: br#"{"title":"not found","status":404,"detail":"no such path"}"#.to_vec(),
            cut: None,
        };
        let answer = match found[..] {
            [] => missing,
            [only] => return octets(&answers[only]),
            [first, ..] => answers.remove(first),
        };
        octets(&answer)
    }
}

/// The whole body of a request: who answers and hangs up before its end cuts off a client that is still sending.
fn body(reader: &mut impl BufRead, headers: &[(String, String)]) -> Vec<u8> {
    let header =
        |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if header("transfer-encoding") != Some("chunked") {
        body.resize(header("content-length").map_or(0, |length| length.parse().unwrap()), 0);
        reader.read_exact(&mut body).unwrap();
        return body;
    }
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

fn octets(answer: &Answer) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} -\r\nconnection: close\r\n", answer.status);
    if answer.status != 204 {
        head.push_str(&format!("content-length: {}\r\n", answer.body.len()));
    }
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = answer.cut.map_or(&answer.body[..], |cut| &answer.body[..cut]);
    [head.as_bytes(), b"\r\n", body].concat()
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) error: String,
}

#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(octets)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a command line against the server there.
pub(crate) fn run(url: &str, arguments: &[&str]) -> Done {
    let line = ["switchyard"].into_iter().chain(arguments.iter().copied());
    let asks = !["completions", "man"].contains(&arguments[0]);
    let way = if asks { &["--url", url, "--token", "t0ken"][..] } else { &[] };
    let (out, error) = (Sink::default(), Sink::default());
    let code = match Line::try_parse_from(line.chain(way.iter().copied())) {
        Ok(line) => line.command.run_on(Streams::captured(out.clone(), error.clone()), &house()),
        Err(wrong) => {
            write!(error.clone(), "{wrong}").unwrap();
            ExitCode::from(u8::try_from(wrong.exit_code()).unwrap())
        }
    };
    let code = (0..=255).find(|number| ExitCode::from(*number) == code).unwrap();
    let text = |sink: Sink| String::from_utf8(sink.0.borrow().clone()).unwrap();
    Done { code, out: text(out), error: text(error) }
}
