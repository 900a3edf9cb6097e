use crate::cloud_event::EventType;
use crate::record_source::NamedMessages;
use configuration::{Keys, Section, Word};
use model::NumberDisplay;
use redaction::NumberRedaction;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How events are put into requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum EventMode {
    /// Many events in a request: `application/cloudevents-batch+json`.
    #[default]
    Batch,
    /// One event in a request: `application/cloudevents+json`.
    Structured,
}

/// The mechanism by which a sink logs in to Kafka.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum SaslMechanism {
    /// PLAIN (RFC 4616): the password is sent as it is, so use it with TLS.
    #[default]
    Plain,
    /// SCRAM-SHA-256 (RFC 7677): the password is not sent, and the broker proves that it knows it.
    #[word("scram-sha-256")]
    ScramSha256,
    /// SCRAM-SHA-512, as SCRAM-SHA-256.
    #[word("scram-sha-512")]
    ScramSha512,
}

/// How events show the numbers of subscribers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum EventNumbers {
    /// All but the first four and last two characters are asterisks.
    #[default]
    Masked,
    /// Whole.
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

/// How events get to a sink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SinkProtocol {
    Http,
    Nats,
    Amqp,
    Kafka,
}

impl SinkProtocol {
    fn of_scheme(scheme: &str) -> Option<Self> {
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

/// `[[event-sink]]`: a system that gets events.
#[derive(Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
pub struct EventSinkOptions {
    /// Its name. Its position in the journal is stored under it.
    #[key(example = "crm", length = 1..=64)]
    pub name: String,
    /// Where events go: they are posted to `http://` or `https://`, published to a stream of NATS JetStream at `nats://HOST[:PORT]` or
    /// `tls://HOST[:PORT]`, to an exchange of AMQP 0.9.1 at `amqp://HOST[:PORT][/VHOST]` or `amqps://HOST[:PORT][/VHOST]`, or to a topic of
    /// Kafka at `kafka://HOST[:PORT],…` or `kafkas://HOST[:PORT],…`.
    #[key(example = "https://crm.example/events")]
    pub url: String,
    /// The certificate authority of an https, tls, amqps or kafkas URL, PEM.
    #[key(existing, default_as = "the authorities that the system trusts")]
    pub ca: Option<PathBuf>,
    /// By HTTP a token that is sent with each request: `Authorization: Bearer TOKEN`. By NATS a token, or `USER:PASSWORD`. By
    /// AMQP and Kafka `USER:PASSWORD`.
    #[key(secret, or_file)]
    pub token: String,
    /// By NATS, events are published to the subjects `SUBJECT.TYPE`, such as `switchyard.ended`; by AMQP, these are the routing keys.
    #[key(default = "switchyard", length = 1..=128)]
    pub subject: String,
    /// By AMQP, the exchange that events are published to. It must exist.
    #[key(default = "switchyard", length = 1..=255)]
    pub exchange: String,
    /// By Kafka, the topic that events are produced to. It must exist.
    #[key(default = "switchyard", length = 1..=249)]
    pub topic: String,
    /// By Kafka, the mechanism of SASL by which `token` is used.
    #[key(default = "plain")]
    pub sasl_mechanism: SaslMechanism,
    /// By HTTP, one event or many in a request.
    #[key(default = "batch")]
    pub mode: EventMode,
    /// Maximum number of events in a request, or that a stream, exchange or topic has not acknowledged.
    #[key(range = 1..=1000, default = 100)]
    pub batch: usize,
    /// Maximum time for the answer to a request.
    #[key(default = "10s")]
    pub timeout: Duration,
    /// The types of events: `accepted`, `attempt`, `dlr`, `ended`, `pool`, `fault`, `exchange`, `configuration`.
    #[key(default_as = "all")]
    pub types: Vec<String>,
    /// Accounts whose messages make events.
    #[key(default_as = "all", reference = "account")]
    pub accounts: Vec<String>,
    /// How the numbers of subscribers are shown. Events have no texts of messages.
    #[key(default = "masked")]
    pub numbers: EventNumbers,
    /// Rules for numbers, in place of `numbers`.
    pub redact: NumberRedaction,
}

impl EventSinkOptions {
    fn check(&mut self, section: &Section<'_>) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !self.name.chars().all(is_name) {
            section.error("name", "must be letters, digits, '-' and '_'");
        }
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let protocol = SinkProtocol::of_scheme(scheme);
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
                    format!("{name:?} is no type of events; known are: {}", known.join(", ")),
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
        SinkProtocol::of_scheme(scheme).unwrap_or(SinkProtocol::Http)
    }

    /// The messages that its events tell of.
    pub(crate) fn named_messages(&self) -> NamedMessages {
        NamedMessages {
            attempts: self.has_type(EventType::Attempt),
            dlrs: self.has_type(EventType::Dlr),
            ended: self.has_type(EventType::Ended),
            pools: self.has_type(EventType::Pool),
        }
    }

    /// Whether events of this type are sent. A gap always is.
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
