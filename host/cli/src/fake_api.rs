//! For tests: an HTTP server with prepared responses, which are checked against the API document, and a function that runs a
//! command line against it.

use crate::command::{CliCommand, CliContext};
use crate::doctor::ConfigFacts;
use crate::output::Streams;
use admin::{Problem, ProblemKind};
use clap::{CommandFactory, Parser};
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use testkit::api_document::{fixture, media_type};

/// The current time in tests of commands: 2026-11-21 16:03:02 UTC, in milliseconds.
pub(crate) const NOW: u64 = 1_795_276_982_000;

/// The command line with the admin's commands only.
#[derive(Debug, Parser)]
#[command(name = "switchyard", version = "0.1.0", about = "An SMS routing appliance", term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: CliCommand,
}

/// The version of the command line.
pub(crate) const VERSION: &str = "0.1.0";

pub(crate) fn context() -> CliContext {
    CliContext { command: CommandLine::command, version: VERSION, read: read_facts }
}

/// Reads a configuration of the tests, which is JSON.
fn read_facts(path: &Path) -> Result<ConfigFacts, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?;
    let data = PathBuf::from(value["data"].as_str().unwrap());
    let listens = value["listens"].as_object().unwrap().iter();
    let listens = listens.map(|(name, address)| (name.clone(), address.as_str().unwrap().parse().unwrap()));
    Ok(ConfigFacts {
        summary: "nothing".to_owned(),
        token_file: data.join("token"),
        data,
        free_space_watermark: value["watermark"].as_u64().unwrap(),
        listens: listens.collect(),
        connections: value["connections"].as_u64().unwrap(),
        url: value["url"].as_str().unwrap().to_owned(),
        archive: value["archive"].as_str().map(str::to_owned),
    })
}

/// A request that the server received.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedRequest {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

#[derive(Debug)]
struct CannedResponse {
    request_line: String,
    status: u16,
    /// The content type; `None` without a body.
    media_type: Option<String>,
    body: Vec<u8>,
    /// The server closes the connection after this many octets of the body.
    cut: Option<usize>,
}

/// The fake API: it answers prepared requests, and all others with 404.
#[derive(Debug, Default, Clone)]
pub(crate) struct FakeApi {
    answers: Arc<Mutex<Vec<CannedResponse>>>,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl FakeApi {
    /// Prepares a JSON response to `METHOD PATH`, null for one without a body. Several responses to one request are sent in order;
    /// the last one repeats.
    ///
    /// # Panics
    /// If the response does not conform to the API document.
    #[track_caller]
    pub(crate) fn with(self, request_line: &str, status: u16, body: &impl Serialize) -> Self {
        let (method, path) = request_line.split_once(' ').unwrap();
        let body = fixture(method, path, status, serde_json::to_value(body).unwrap());
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.push(request_line, status, body, None)
    }

    /// Prepares a refusal.
    #[track_caller]
    pub(crate) fn refusing(self, request_line: &str, problem: &Problem) -> Self {
        self.with(request_line, problem.status, &json!(problem))
    }

    /// Prepares a file as a response. With `cut`, the server closes the connection after this many octets of it.
    #[track_caller]
    pub(crate) fn with_file(self, request_line: &str, body: Vec<u8>, cut: Option<usize>) -> Self {
        let added = self.push(request_line, 200, body, cut);
        let kind = added.answers.lock().unwrap().last().unwrap().media_type.clone();
        assert!(kind.is_some_and(|kind| !kind.contains("json")), "{request_line} does not answer a file");
        added
    }

    #[track_caller]
    fn push(self, request_line: &str, status: u16, body: Vec<u8>, cut: Option<usize>) -> Self {
        let (method, path) = request_line.split_once(' ').unwrap();
        self.answers.lock().unwrap().push(CannedResponse {
            request_line: request_line.to_owned(),
            status,
            media_type: media_type(method, path, status).unwrap(),
            body,
            cut,
        });
        self
    }

    /// Starts the server; returns its URL.
    pub(crate) fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let api = self.clone();
        // The thread ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let api = api.clone();
                std::thread::spawn(move || api.serve(stream));
            }
        });
        url
    }

    /// The received requests, in order.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let request_line = line.rsplit_once(' ').map_or("", |(line, _)| line).to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let body = String::from_utf8(body(&mut reader, &headers)).unwrap();
        self.requests.lock().unwrap().push(RecordedRequest { line: request_line.clone(), headers, body });
        let octets = self.answer(&request_line);
        let _ = stream.write_all(&octets);
    }

    fn answer(&self, request_line: &str) -> Vec<u8> {
        let mut answers = self.answers.lock().unwrap();
        let found: Vec<usize> =
            (0..answers.len()).filter(|at| answers[*at].request_line == request_line).collect();
        let missing = CannedResponse {
            request_line: String::new(),
            status: 404,
            media_type: Some("application/problem+json".to_owned()),
            body: json!(Problem::new(ProblemKind::NotFound, "no such path")).to_string().into_bytes(),
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

/// Reads the whole body of a request: to close the connection earlier would interrupt a client that still sends.
fn body(reader: &mut impl BufRead, headers: &[(String, String)]) -> Vec<u8> {
    let header =
        |expected: &str| headers.iter().find(|(name, _)| name == expected).map(|(_, value)| value.as_str());
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

fn octets(answer: &CannedResponse) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} -\r\nconnection: close\r\n", answer.status);
    if answer.status != 204 {
        head.push_str(&format!("content-length: {}\r\n", answer.body.len()));
    }
    if let Some(media_type) = &answer.media_type {
        head.push_str(&format!("content-type: {media_type}\r\n"));
    }
    let body = answer.cut.map_or(&answer.body[..], |cut| &answer.body[..cut]);
    [head.as_bytes(), b"\r\n", body].concat()
}

/// The result of a command: exit code and output.
#[derive(Debug)]
pub(crate) struct CommandOutcome {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) error: String,
}

#[derive(Clone, Default)]
struct SharedBuffer(Rc<RefCell<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(octets)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a command line against the server at `url`.
pub(crate) fn run(url: &str, arguments: &[&str]) -> CommandOutcome {
    let line = ["switchyard"].into_iter().chain(arguments.iter().copied());
    let calls_api = !["completions", "man"].contains(&arguments[0]);
    let target = if calls_api { &["--url", url, "--token", "t0ken"][..] } else { &[] };
    let (out, error) = (SharedBuffer::default(), SharedBuffer::default());
    let code = match CommandLine::try_parse_from(line.chain(target.iter().copied())) {
        Ok(line) => line.command.run_on(Streams::captured(out.clone(), error.clone()), &context()),
        Err(invalid) => {
            write!(error.clone(), "{invalid}").unwrap();
            ExitCode::from(u8::try_from(invalid.exit_code()).unwrap())
        }
    };
    let code = (0..=255).find(|number| ExitCode::from(*number) == code).unwrap();
    let text = |sink: SharedBuffer| String::from_utf8(sink.0.borrow().clone()).unwrap();
    CommandOutcome { code, out: text(out), error: text(error) }
}
