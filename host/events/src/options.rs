use crate::cloud_event::EventType;
use crate::record_source::NamedMessages;
use configuration::{Keys, Section, Word};
use model::NumberDisplay;
use redaction::NumberRedaction;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Content mode of HTTP requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum EventMode {
    /// Many events in one request: `application/cloudevents-batch+json`.
    #[default]
    Batch,
    /// One event per request: `application/cloudevents+json`.
    Structured,
}

/// SASL mechanism for Kafka.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum SaslMechanism {
    /// PLAIN (RFC 4616): the password is sent in clear, so use it with TLS only.
    #[default]
    Plain,
    /// SCRAM-SHA-256 (RFC 7677): the password is not sent, and the broker proves that it knows the password.
    #[word("scram-sha-256")]
    ScramSha256,
    /// SCRAM-SHA-512: like SCRAM-SHA-256, with SHA-512.
    #[word("scram-sha-512")]
    ScramSha512,
}

/// How events show subscribers' numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum EventNumbers {
    /// Only the first four and the last two characters are shown; the others are asterisks.
    #[default]
    Masked,
    /// Numbers are shown in full.
    Whole,
}

impl EventNumbers {
    pub(crate) const fn display(self) -> NumberDisplay {
        match self {
            Self::Masked => NumberDisplay::Masked,
            Self::Whole => NumberDisplay::Whole,
        }
    }
}

/// Protocol of a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SinkProtocol {
    Http,
    Nats,
    Amqp,
    Kafka,
}

impl SinkProtocol {
    fn from_scheme(scheme: &str) -> Option<Self> {
        match scheme {
            "http" | "https" => Some(Self::Http),
            "nats" | "tls" => Some(Self::Nats),
            "amqp" | "amqps" => Some(Self::Amqp),
            "kafka" | "kafkas" => Some(Self::Kafka),
            _ => None,
        }
    }

    /// The name in the API.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Nats => "nats",
            Self::Amqp => "amqp",
            Self::Kafka => "kafka",
        }
    }
}

/// `[[event-sink]]`: a system that receives events.
#[derive(Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
pub struct EventSinkOptions {
    /// The name. The sink's position in the journal is stored under it.
    #[key(example = "crm", length = 1..=64)]
    pub name: String,
    /// The URL of the sink. `http://` and `https://`: events are posted. `nats://HOST[:PORT]` and `tls://HOST[:PORT]`:
    /// events are published to a stream of NATS JetStream. `amqp://HOST[:PORT][/VHOST]` and
    /// `amqps://HOST[:PORT][/VHOST]`: events are published to an exchange of AMQP 0.9.1. `kafka://HOST[:PORT],…` and
    /// `kafkas://HOST[:PORT],…`: events are produced to a topic of Kafka.
    #[key(example = "https://crm.example/events")]
    pub url: String,
    /// File with the certificate authority of an https, tls, amqps or kafkas URL, in PEM.
    #[key(existing, default_as = "the authorities that the system trusts")]
    pub ca: Option<PathBuf>,
    /// Credentials. HTTP: a token, sent as `Authorization: Bearer TOKEN`. NATS: a token or `USER:PASSWORD`. AMQP and Kafka:
    /// `USER:PASSWORD`.
    #[key(secret, or_file)]
    pub token: String,
    /// Prefix of the NATS subjects or AMQP routing keys `SUBJECT.TYPE`, for example `switchyard.ended`.
    #[key(default = "switchyard", length = 1..=128)]
    pub subject: String,
    /// The AMQP exchange to which events are published. It must exist.
    #[key(default = "switchyard", length = 1..=255)]
    pub exchange: String,
    /// The Kafka topic to which events are produced. It must exist.
    #[key(default = "switchyard", length = 1..=249)]
    pub topic: String,
    /// The SASL mechanism with which `token` is used, for Kafka.
    #[key(default = "plain")]
    pub sasl_mechanism: SaslMechanism,
    /// One or many events per request, for HTTP.
    #[key(default = "batch")]
    pub mode: EventMode,
    /// Maximum number of events per request, or of unacknowledged events at a stream, exchange or topic.
    #[key(range = 1..=1000, default = 100)]
    pub batch: usize,
    /// Maximum time until a request is answered.
    #[key(default = "10s")]
    pub timeout: Duration,
    /// Types of events that are sent: `accepted`, `attempt`, `dlr`, `ended`, `pool`, `fault`, `exchange`, `configuration`.
    #[key(default_as = "all")]
    pub types: Vec<String>,
    /// Accounts whose messages cause events.
    #[key(default_as = "all", reference = "account")]
    pub accounts: Vec<String>,
    /// How subscribers' numbers are shown. Events never contain message texts.
    #[key(default = "masked")]
    pub numbers: EventNumbers,
    /// Redaction rules for numbers; they replace `numbers`.
    pub redact: NumberRedaction,
}

impl EventSinkOptions {
    fn check(&mut self, section: &Section<'_>) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !self.name.chars().all(is_name) {
            section.error("name", "must be letters, digits, '-' and '_'");
        }
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let protocol = SinkProtocol::from_scheme(scheme);
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            section.error("url", "must have no credentials: set token-file");
        } else if !self.url.is_empty()
            && (protocol.is_none() || authority.is_empty() || self.url.contains(char::is_whitespace))
        {
            let what = "must be an http, https, nats, tls, amqp, amqps, kafka or kafkas URL, such as \"https://crm.example/events\"";
            section.error("url", what);
        }
        if protocol.is_some_and(|protocol| protocol != SinkProtocol::Http) && section.has("mode") {
            section.error("mode", "is for HTTP");
        }
        let has_subjects = matches!(protocol, None | Some(SinkProtocol::Nats | SinkProtocol::Amqp));
        if !has_subjects && section.has("subject") {
            section.error("subject", "is for NATS and AMQP");
        }
        if protocol.is_some_and(|protocol| protocol != SinkProtocol::Kafka) && section.has("topic") {
            section.error("topic", "is for Kafka");
        }
        if protocol.is_some_and(|protocol| protocol != SinkProtocol::Kafka) && section.has("sasl-mechanism") {
            section.error("sasl-mechanism", "is for Kafka");
        }
        if protocol.is_some_and(|protocol| protocol != SinkProtocol::Amqp) && section.has("exchange") {
            section.error("exchange", "is for AMQP");
        }
        let has_user = matches!(protocol, Some(SinkProtocol::Amqp | SinkProtocol::Kafka));
        if has_user && !self.token.is_empty() && !self.token.contains(':') {
            section.error("token", "must be USER:PASSWORD");
        }
        if self.subject.contains(|c: char| c.is_whitespace() || matches!(c, '*' | '>'))
            || self.subject.split('.').any(str::is_empty)
        {
            section.error("subject", "must be words with dots between them, without * and >");
        }
        for name in &self.types {
            if EventType::from_name(name).is_none_or(|kind| kind == EventType::Gap) {
                let known: Vec<_> = EventType::ALL.iter().filter(|kind| **kind != EventType::Gap).collect();
                let known: Vec<_> = known.into_iter().map(|kind| kind.name()).collect();
                section.error(
                    "types",
                    format!("{name:?} is not an event type; known are: {}", known.join(", ")),
                );
            }
        }
        if self.timeout.is_zero() {
            section.error("timeout", "must be above 0");
        }
    }

    /// The protocol.
    pub(crate) fn protocol(&self) -> SinkProtocol {
        let scheme = self.url.split_once("://").map_or("", |(scheme, _)| scheme);
        SinkProtocol::from_scheme(scheme).unwrap_or(SinkProtocol::Http)
    }

    /// The messages whose facts its events need.
    pub(crate) fn named_messages(&self) -> NamedMessages {
        NamedMessages {
            attempts: self.has_type(EventType::Attempt),
            dlrs: self.has_type(EventType::Dlr),
            ended: self.has_type(EventType::Ended),
            pools: self.has_type(EventType::Pool),
        }
    }

    /// Whether events of this type are sent. Gap events always are.
    #[must_use]
    pub fn has_type(&self, kind: EventType) -> bool {
        kind == EventType::Gap || self.types.is_empty() || self.types.iter().any(|name| name == kind.name())
    }

    /// Whether events about messages of this account are sent.
    pub(crate) fn has_account(&self, account: &str) -> bool {
        self.accounts.is_empty() || self.accounts.iter().any(|name| name == account)
    }
}

impl fmt::Debug for EventSinkOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSinkOptions")
            .field("name", &self.name)
            .field("url", &self.url)
            .field("mode", &self.mode)
            .field("types", &self.types)
            .field("accounts", &self.accounts)
            .finish_non_exhaustive()
    }
}
