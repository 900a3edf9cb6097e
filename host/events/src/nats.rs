//! Event transport for a stream of NATS JetStream.
//!
//! The event's id is in the header `Nats-Msg-Id`, so the stream drops repetitions within its duplicate window. An event
//! is accepted when the stream acknowledges it. The events of a request are published in order, then all
//! acknowledgements are awaited.

mod protocol;

use crate::EventsError;
use crate::options::EventSinkOptions;
use crate::server_connection::{ServerAddress, ServerStream, tls_config};
use crate::transport::{EncodedEvent, EventTransport, SendError};
use protocol::encode_publish;
use rustls::ClientConfig;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use protocol::{NatsProtocolError, NatsServerMessage, decode_nats_message};

/// Default port of a server.
const PORT: u16 = 4222;

/// An idle connection does not answer the server's pings: one that was idle for longer is replaced.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Publishes events to the subjects `SUBJECT.TYPE`.
pub(crate) struct NatsTransport {
    server: ServerAddress,
    /// TLS of a `tls://` URL.
    tls: Option<Arc<ClientConfig>>,
    token: String,
    subject: String,
    timeout: Duration,
    connection: Option<NatsConnection>,
    used_at: Instant,
}

impl NatsTransport {
    pub(crate) fn new(options: &EventSinkOptions) -> Result<Self, EventsError> {
        let is_tls = options.url.starts_with("tls://");
        let tls = match is_tls {
            true => Some(Arc::new(tls_config(options)?)),
            false => None,
        };
        Ok(Self {
            server: ServerAddress::from_url(&options.url, PORT),
            tls,
            token: options.token.clone(),
            subject: options.subject.clone(),
            timeout: options.timeout,
            connection: None,
            used_at: Instant::now(),
        })
    }

    fn connect(&self) -> Result<NatsConnection, SendError> {
        let failed = |error: std::io::Error| self.server.failed(&error);
        let socket = self.server.connect(self.timeout)?;
        let mut connection = NatsConnection {
            stream: Box::new(socket.try_clone().map_err(failed)?),
            input: Vec::new(),
            inbox: String::new(),
        };
        let deadline = Instant::now() + self.timeout;
        // The server sends INFO first, without TLS.
        let NatsServerMessage::Info(info) = connection.next(deadline)? else {
            return Err(SendError("the server did not introduce itself".to_owned()));
        };
        let info: ServerInfo = serde_json::from_slice(&info).unwrap_or_default();
        match &self.tls {
            Some(config) => connection.stream = self.server.secure(socket, config)?,
            None if info.tls_required => {
                return Err(SendError("the server requires TLS: begin the URL with tls://".to_owned()));
            }
            None => {}
        }
        if !info.headers {
            return Err(SendError("the server takes no headers: NATS 2.2 or later is needed".to_owned()));
        }
        let number = getrandom::u64().map_err(|error| SendError(error.to_string()))?;
        connection.inbox = format!("_INBOX.{number:016x}");
        let mut hello = json!({
            "verbose": false, "pedantic": false, "lang": "rust", "version": env!("CARGO_PKG_VERSION"),
            "name": "switchyard", "protocol": 1, "headers": true, "no_responders": true, "tls_required": self.tls.is_some(),
        });
        match self.token.split_once(':') {
            Some((user, password)) => (hello["user"], hello["pass"]) = (user.into(), password.into()),
            None if !self.token.is_empty() => hello["auth_token"] = self.token.as_str().into(),
            None => {}
        }
        connection
            .write(format!("CONNECT {hello}\r\nSUB {}.* 1\r\nPING\r\n", connection.inbox).as_bytes())?;
        while connection.next(deadline)? != NatsServerMessage::Pong {}
        Ok(connection)
    }

    fn publish(&self, connection: &mut NatsConnection, events: &[EncodedEvent]) -> Result<(), SendError> {
        let mut octets = Vec::with_capacity(events.iter().map(|event| event.json.len() + 256).sum());
        for (number, event) in events.iter().enumerate() {
            let subject = format!("{}.{}", self.subject, event.kind.name());
            let reply = format!("{}.{number}", connection.inbox);
            encode_publish(&mut octets, (&subject, &reply), &event.id, &event.json);
        }
        connection.write(&octets)?;
        let deadline = Instant::now() + self.timeout;
        let mut waiting = vec![true; events.len()];
        while waiting.contains(&true) {
            let NatsServerMessage::Message { subject, headers, payload } = connection.next(deadline)? else {
                continue;
            };
            let number = subject.rsplit('.').next().and_then(|number| number.parse::<usize>().ok());
            let Some(awaited) = number.and_then(|number| waiting.get_mut(number)) else { continue };
            if headers.starts_with(b"NATS/1.0 503") {
                return Err(SendError(format!("no JetStream stream has the subject {}.*", self.subject)));
            }
            let answer: PublishAnswer = serde_json::from_slice(&payload)
                .map_err(|_| SendError("the answer is no acknowledgement of JetStream".to_owned()))?;
            if let Some(error) = answer.error {
                return Err(SendError(format!("JetStream refuses an event: {}", error.description)));
            }
            *awaited = answer.stream.is_none();
        }
        Ok(())
    }
}

impl EventTransport for NatsTransport {
    fn send(&mut self, events: &[EncodedEvent]) -> Result<(), SendError> {
        let is_idle = self.used_at.elapsed() >= MAX_IDLE;
        let mut connection = match self.connection.take() {
            Some(connection) if !is_idle => connection,
            _ => self.connect()?,
        };
        // After a failure, a late acknowledgement could be mistaken for another one: the next attempt opens a new
        // connection.
        self.publish(&mut connection, events)?;
        (self.connection, self.used_at) = (Some(connection), Instant::now());
        Ok(())
    }
}

/// The fields of `INFO` that we use.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerInfo {
    headers: bool,
    tls_required: bool,
}

/// JetStream's answer to a published message.
#[derive(Debug, Deserialize)]
struct PublishAnswer {
    stream: Option<String>,
    error: Option<PublishError>,
}

#[derive(Debug, Deserialize)]
struct PublishError {
    #[serde(default)]
    description: String,
}

struct NatsConnection {
    stream: Box<dyn ServerStream>,
    /// Received octets that are not decoded yet.
    input: Vec<u8>,
    /// Prefix of the reply subjects: without the last token.
    inbox: String,
}

impl NatsConnection {
    fn write(&mut self, octets: &[u8]) -> Result<(), SendError> {
        let written = self.stream.write_all(octets).and_then(|()| self.stream.flush());
        written.map_err(|error| SendError(format!("the connection broke: {error}")))
    }

    /// The next message. Pings are answered here; `-ERR` is returned as an error.
    fn next(&mut self, deadline: Instant) -> Result<NatsServerMessage, SendError> {
        loop {
            let decoded = decode_nats_message(&self.input).map_err(|error| SendError(error.to_string()))?;
            if let Some((message, used)) = decoded {
                self.input.drain(..used);
                match message {
                    NatsServerMessage::Ping => self.write(b"PONG\r\n")?,
                    NatsServerMessage::Error(why) => {
                        return Err(SendError(format!("the server answers: {why}")));
                    }
                    message => return Ok(message),
                }
                continue;
            }
            if Instant::now() >= deadline {
                return Err(SendError("no acknowledgement in time".to_owned()));
            }
            let mut some = [0; 16 * 1024];
            match self.stream.read(&mut some) {
                Ok(0) => return Err(SendError("the server closed the connection".to_owned())),
                Ok(count) => self.input.extend_from_slice(some.get(..count).unwrap_or_default()),
                Err(error) => return Err(SendError(format!("no answer: {error}"))),
            }
        }
    }
}
