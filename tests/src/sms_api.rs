//! An HTTP API that accepts messages, like those of operators and aggregators.

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// How the API reacts to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiReaction {
    /// It accepts the message under the id `api-1`, `api-2` …
    Accept,
    /// It answers with this status, and an empty body.
    Status(u16),
    /// It answers with status 200, and this body.
    Text(&'static str),
    /// It reads the request, and closes the connection without an answer.
    Cut,
    /// It reads the request, and never answers.
    Hang,
}

/// A request that the API has received.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiRequest {
    /// The first line, without the protocol.
    pub line: String,
    /// The header Authorization.
    pub authorization: String,
    /// The header X-Twilio-Signature.
    pub twilio_signature: String,
    /// The JSON document in the body; null if there is none.
    pub body: Value,
    /// The body as text.
    pub text: String,
}

#[derive(Debug, Default)]
struct ApiState {
    requests: Vec<ApiRequest>,
    reactions: VecDeque<ApiReaction>,
    accepted: usize,
    /// Connections that wait for an answer.
    hanging: Vec<TcpStream>,
}

/// The running API. It accepts every message unless another reaction is set.
#[derive(Debug)]
pub struct SmsApi {
    address: SocketAddr,
    state: Arc<Mutex<ApiState>>,
}

impl SmsApi {
    /// Listens on a free loopback port.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = Arc::<Mutex<ApiState>>::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = shared.clone();
                // An error means that the client has disconnected.
                std::thread::spawn(move || serve(&connection, &state));
            }
        });
        Ok(Self { address, state })
    }

    /// The base URL, which a binding grants.
    pub fn base_url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Sets the reactions to the next requests, in this order.
    pub fn react(&self, reactions: &[ApiReaction]) {
        self.state.lock().reactions.extend(reactions);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.state.lock().requests.clone()
    }
}

fn serve(connection: &TcpStream, state: &Mutex<ApiState>) -> Result<()> {
    let mut input = BufReader::new(connection.try_clone()?);
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (mut length, mut authorization, mut twilio_signature) = (0, String::new(), String::new());
        loop {
            let mut header = String::new();
            input.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().context("content-length")?,
                "authorization" => value.trim().clone_into(&mut authorization),
                "x-twilio-signature" => value.trim().clone_into(&mut twilio_signature),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let line = line.trim_end().rsplit_once(' ').map_or("", |(line, _)| line).to_owned();
        let text = String::from_utf8_lossy(&body).into_owned();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let mut state = state.lock();
        state.requests.push(ApiRequest { line, authorization, twilio_signature, body, text });
        let (status, answer) = match state.reactions.pop_front().unwrap_or(ApiReaction::Accept) {
            ApiReaction::Accept => {
                state.accepted += 1;
                (
                    201,
                    json!({ "status": "queued", "message_id": format!("api-{}", state.accepted) })
                        .to_string(),
                )
            }
            ApiReaction::Status(status) => (status, String::new()),
            ApiReaction::Text(text) => (200, text.to_owned()),
            ApiReaction::Cut => return Ok(connection.shutdown(std::net::Shutdown::Both)?),
            ApiReaction::Hang => {
                state.hanging.push(connection.try_clone()?);
                return Ok(());
            }
        };
        drop(state);
        let mut output = connection;
        write!(output, "HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{answer}", answer.len())?;
    }
}
