//! Event transport for an exchange of an AMQP 0.9.1 broker (for example RabbitMQ).
//!
//! Each event is one persistent message with the event's id in the property `message-id`. It is accepted when the
//! broker confirms it. Messages are mandatory: without the flag, a broker confirms a message that no queue takes and
//! drops it. With it, the broker returns the message, which counts as a failure. The events of a request are published
//! in order on one channel.

mod protocol;

use crate::EventsError;
use crate::options::EventSinkOptions;
use crate::server_connection::{ServerAddress, ServerStream, tls_config};
use crate::transport::{EncodedEvent, EventTransport, SendError};
use protocol::{
    MAX_OCTETS, PROTOCOL_HEADER, encode_channel_open, encode_confirm_select, encode_open, encode_publish,
    encode_start_ok,
};
use rustls::ClientConfig;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use protocol::{AmqpProtocolError, AmqpServerFrame, decode_amqp_frame};

/// Default ports of a broker, without and with TLS.
const PORT: u16 = 5672;
const TLS_PORT: u16 = 5671;

/// Heartbeats are off, and a firewall may have dropped an idle connection: one that was idle for longer is replaced.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// Publishes events with the routing keys `SUBJECT.TYPE`.
pub(crate) struct AmqpTransport {
    server: ServerAddress,
    /// TLS of an `amqps://` URL; `None` for `amqp://`.
    tls: Option<Arc<ClientConfig>>,
    /// Credentials, `USER:PASSWORD`.
    token: String,
    virtual_host: String,
    exchange: String,
    /// Prefix of the routing keys.
    subject: String,
    timeout: Duration,
    connection: Option<AmqpConnection>,
    used_at: Instant,
    /// `None` normally. After the broker returned a message: the ids of the events before it, which were confirmed and
    /// must not be published again with each attempt.
    accepted: Option<Vec<String>>,
}

impl AmqpTransport {
    pub(crate) fn new(options: &EventSinkOptions) -> Result<Self, EventsError> {
        let is_tls = options.url.starts_with("amqps://");
        let tls = match is_tls {
            true => Some(Arc::new(tls_config(options)?)),
            false => None,
        };
        Ok(Self {
            server: ServerAddress::from_url(&options.url, if is_tls { TLS_PORT } else { PORT }),
            tls,
            token: options.token.clone(),
            virtual_host: virtual_host(&options.url),
            exchange: options.exchange.clone(),
            subject: options.subject.clone(),
            timeout: options.timeout,
            connection: None,
            used_at: Instant::now(),
            accepted: None,
        })
    }

    fn connect(&self) -> Result<AmqpConnection, SendError> {
        let socket = self.server.connect(self.timeout)?;
        let stream: Box<dyn ServerStream> = match &self.tls {
            Some(config) => self.server.secure(socket, config)?,
            None => Box::new(socket),
        };
        let mut connection =
            AmqpConnection { stream, input: Vec::new(), frame_max: MAX_OCTETS, published: 0 };
        let deadline = Instant::now() + self.timeout;
        connection.write(PROTOCOL_HEADER)?;
        let start = connection.expect(deadline, |frame| match frame {
            AmqpServerFrame::Start { mechanisms } => Some(mechanisms),
            _ => None,
        })?;
        if !start.split(' ').any(|mechanism| mechanism == "PLAIN") {
            return Err(SendError(format!("the broker does not support passwords (PLAIN), only {start}")));
        }
        let mut out = Vec::new();
        let (user, password) = self.token.split_once(':').unwrap_or((&self.token, ""));
        encode_start_ok(&mut out, (user, password), concat!("switchyard ", env!("CARGO_PKG_VERSION")));
        connection.write(&out)?;
        let frame_max = connection.expect(deadline, |frame| match frame {
            AmqpServerFrame::Tune { frame_max } => Some(frame_max),
            _ => None,
        })?;
        if let Ok(most @ 1..) = usize::try_from(frame_max) {
            connection.frame_max = connection.frame_max.min(most);
        }
        out.clear();
        encode_open(&mut out, connection.frame_max, &self.virtual_host);
        connection.write(&out)?;
        connection.await_frame(deadline, &AmqpServerFrame::Opened)?;
        out.clear();
        encode_channel_open(&mut out);
        connection.write(&out)?;
        connection.await_frame(deadline, &AmqpServerFrame::ChannelOpened)?;
        out.clear();
        encode_confirm_select(&mut out);
        connection.write(&out)?;
        connection.await_frame(deadline, &AmqpServerFrame::ConfirmsSelected)?;
        Ok(connection)
    }

    /// Publishes events and waits until all are confirmed. `Ok(false)`: the broker returned a message.
    fn publish(&self, connection: &mut AmqpConnection, events: &[EncodedEvent]) -> Result<bool, SendError> {
        let mut octets = Vec::with_capacity(events.iter().map(|event| event.json.len() + 256).sum());
        for event in events {
            let routing_key = format!("{}.{}", self.subject, event.kind.name());
            let names = (self.exchange.as_str(), routing_key.as_str());
            encode_publish(&mut octets, names, &event.id, &event.json, connection.frame_max);
        }
        connection.write(&octets)?;
        let deadline = Instant::now() + self.timeout;
        let first = connection.published + 1;
        connection.published += events.len() as u64;
        let mut waiting = events.len();
        let mut is_waiting = vec![true; waiting];
        while waiting > 0 {
            match connection.next(deadline)? {
                // The caller closes the connection, so the confirmation is not awaited.
                AmqpServerFrame::Returned => return Ok(false),
                AmqpServerFrame::Confirmed { tag, is_multiple, is_accepted } => {
                    if !is_accepted {
                        return Err(SendError("the broker refuses an event (basic.nack)".to_owned()));
                    }
                    // Each request awaits all its confirmations, so this one is for the current request.
                    let Some(last) = tag.checked_sub(first).and_then(|last| usize::try_from(last).ok())
                    else {
                        continue;
                    };
                    let from = if is_multiple { 0 } else { last };
                    for one in is_waiting.get_mut(from..=last).unwrap_or_default() {
                        waiting -= usize::from(std::mem::replace(one, false));
                    }
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Publishes events one by one, up to the first that is returned.
    fn publish_singly(
        &mut self,
        connection: &mut AmqpConnection,
        events: &[EncodedEvent],
    ) -> Result<(), SendError> {
        let mut accepted = self.accepted.take().unwrap_or_default();
        let known = events.iter().zip(&accepted).take_while(|(event, id)| event.id == **id).count();
        accepted.truncate(known);
        let mut result = Ok(());
        for event in events.iter().skip(known) {
            result = match self.publish(connection, std::slice::from_ref(event)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(SendError(format!(
                    "exchange {:?} has no queue for the routing key {}.{}: bind one, or leave the type out of `types`",
                    self.exchange,
                    self.subject,
                    event.kind.name()
                ))),
                Err(error) => Err(error),
            };
            if result.is_err() {
                break;
            }
            accepted.push(event.id.clone());
        }
        self.accepted = result.is_err().then_some(accepted);
        result
    }
}

impl EventTransport for AmqpTransport {
    fn send(&mut self, events: &[EncodedEvent]) -> Result<(), SendError> {
        let is_idle = self.used_at.elapsed() >= MAX_IDLE;
        let mut connection = match self.connection.take() {
            Some(connection) if !is_idle => connection,
            _ => self.connect()?,
        };
        // The next attempt opens a new connection: the delivery tags start again there.
        if self.accepted.is_some() {
            self.publish_singly(&mut connection, events)?;
        } else if !self.publish(&mut connection, events)? {
            self.accepted = Some(Vec::new());
            connection = self.connect()?;
            self.publish_singly(&mut connection, events)?;
        }
        (self.connection, self.used_at) = (Some(connection), Instant::now());
        Ok(())
    }
}

/// Virtual host of a URL: its path, where `%2f` is a slash; `/` if the path is empty.
fn virtual_host(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    let path = path.replace("%2f", "/").replace("%2F", "/");
    if path.is_empty() { "/".to_owned() } else { path }
}

struct AmqpConnection {
    stream: Box<dyn ServerStream>,
    /// Received octets that are not decoded yet.
    input: Vec<u8>,
    /// Maximum length of a frame, in octets.
    frame_max: usize,
    /// Delivery tag of the last message published on the channel.
    published: u64,
}

impl AmqpConnection {
    fn write(&mut self, octets: &[u8]) -> Result<(), SendError> {
        let written = self.stream.write_all(octets).and_then(|()| self.stream.flush());
        // The broker's reaction comes with the next frame, which is not read any more.
        written.map_err(|error| SendError(format!("the connection broke: {error}")))
    }

    /// The next frame; a `close` of the broker is an error.
    fn next(&mut self, deadline: Instant) -> Result<AmqpServerFrame, SendError> {
        loop {
            let decoded = decode_amqp_frame(&self.input).map_err(|error| SendError(error.to_string()))?;
            if let Some((frame, used)) = decoded {
                self.input.drain(..used);
                match frame {
                    AmqpServerFrame::Closed { code, text } => {
                        return Err(SendError(format!("the broker answers: {code} {text}")));
                    }
                    frame => return Ok(frame),
                }
            }
            if Instant::now() >= deadline {
                return Err(SendError("no confirmation in time".to_owned()));
            }
            let mut some = [0; 16 * 1024];
            match self.stream.read(&mut some) {
                Ok(0) => return Err(SendError("the broker closed the connection".to_owned())),
                Ok(count) => self.input.extend_from_slice(some.get(..count).unwrap_or_default()),
                Err(error) => return Err(SendError(format!("no answer: {error}"))),
            }
        }
    }

    /// The first frame that `wanted` takes.
    fn expect<T>(
        &mut self,
        deadline: Instant,
        wanted: impl Fn(AmqpServerFrame) -> Option<T>,
    ) -> Result<T, SendError> {
        loop {
            if let Some(found) = wanted(self.next(deadline)?) {
                return Ok(found);
            }
        }
    }

    fn await_frame(&mut self, deadline: Instant, wanted: &AmqpServerFrame) -> Result<(), SendError> {
        self.expect(deadline, |frame| (frame == *wanted).then_some(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_name_a_virtual_host() {
        for (url, host) in [
            ("amqp://bus.example", "/"),
            ("amqp://bus.example/", "/"),
            ("amqps://bus.example:5671/orders", "orders"),
            ("amqp://bus.example/%2Fa", "/a"),
        ] {
            assert_eq!(virtual_host(url), host, "{url}");
        }
    }
}
