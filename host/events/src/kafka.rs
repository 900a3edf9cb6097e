//! Event transport for a topic of Kafka: the Kafka protocol binding of CloudEvents 1.0, in structured mode.
//!
//! The key of a record is the event's id, by which a consumer or the compaction of the topic drops repetitions. The
//! partition is chosen by the event's subject, so the events of a message stay in order. Events are accepted when all
//! in-sync replicas have them.

use crate::EventsError;
use crate::options::{EventSinkOptions, SaslMechanism};
use crate::server_connection::tls_config;
use crate::transport::{EncodedEvent, EventTransport, SendError};
use futures_util::future::try_join_all;
use rskafka::BackoffConfig;
use rskafka::chrono::DateTime;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::{ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tracing::dispatcher::{self, Dispatch};

/// Default port of a broker.
const PORT: &str = "9092";

/// Produces events to a topic.
pub(crate) struct KafkaTransport {
    /// Runtime of this thread: the connections make progress only while a request is sent.
    runtime: Runtime,
    /// `HOST:PORT` of the bootstrap brokers.
    brokers: Vec<String>,
    /// TLS of a `kafkas://` URL.
    tls: Option<Arc<ClientConfig>>,
    /// Credentials, `USER:PASSWORD`; empty without.
    token: String,
    mechanism: SaslMechanism,
    topic: String,
    timeout: Duration,
    /// Clients of the partitions, by index; `None` before the first connection.
    partitions: Option<Vec<PartitionClient>>,
}

impl KafkaTransport {
    pub(crate) fn new(options: &EventSinkOptions) -> Result<Self, EventsError> {
        let tls = match options.url.starts_with("kafkas://") {
            true => Some(Arc::new(tls_config(options)?)),
            false => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| EventsError::Thread { sink: options.name.clone(), source })?;
        Ok(Self {
            runtime,
            brokers: brokers(&options.url),
            tls,
            token: options.token.clone(),
            mechanism: options.sasl_mechanism,
            topic: options.topic.clone(),
            timeout: options.timeout,
            partitions: None,
        })
    }

    async fn connect(&self) -> Result<Vec<PartitionClient>, SendError> {
        let failed = |error: rskafka::client::error::Error| SendError(error.to_string());
        // An error is returned at once, or after the timeout: the sink's thread does the back-off.
        let backoff = BackoffConfig { deadline: Some(self.timeout), ..BackoffConfig::default() };
        let mut builder =
            ClientBuilder::new(self.brokers.clone()).client_id("switchyard").backoff_config(backoff);
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.clone());
        }
        if let Some((user, password)) = self.token.split_once(':') {
            let credentials = Credentials::new(user.to_owned(), password.to_owned());
            builder = builder.sasl_config(match self.mechanism {
                SaslMechanism::Plain => SaslConfig::Plain(credentials),
                SaslMechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
                SaslMechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
            });
        }
        let client = builder.build().await.map_err(failed)?;
        let topics = client.list_topics().await.map_err(failed)?;
        let topic = topics.into_iter().find(|topic| topic.name == self.topic);
        let numbers = topic.map(|topic| topic.partitions).unwrap_or_default();
        if numbers.is_empty() {
            return Err(SendError(format!("topic {:?} does not exist: create it first", self.topic)));
        }
        let clients = numbers
            .into_iter()
            .map(|number| client.partition_client(self.topic.clone(), number, UnknownTopicHandling::Error));
        try_join_all(clients).await.map_err(failed)
    }

    async fn produce(partitions: &[PartitionClient], events: &[EncodedEvent]) -> Result<(), SendError> {
        let mut records: Vec<Vec<Record>> = partitions.iter().map(|_| Vec::new()).collect();
        for event in events {
            if let Some(records) = records.get_mut(partition_of(event, partitions.len())) {
                records.push(record(event));
            }
        }
        // All events with one subject are in one request, in order.
        let sent = partitions.iter().zip(records).map(|(partition, records)| async move {
            let produced = partition.produce(records, Compression::NoCompression).await;
            produced.map_err(|error| SendError(format!("partition {}: {error}", partition.partition())))
        });
        try_join_all(sent).await.map(drop)
    }
}

impl EventTransport for KafkaTransport {
    fn send(&mut self, events: &[EncodedEvent]) -> Result<(), SendError> {
        let known = self.partitions.take();
        let work = async {
            let partitions = match known {
                Some(partitions) => partitions,
                None => self.connect().await?,
            };
            Self::produce(&partitions, events).await?;
            Ok(partitions)
        };
        let limited = async { tokio::time::timeout(self.timeout, work).await };
        // The client logs every attempt; the sink's thread logs once that the sink is down.
        let done = dispatcher::with_default(&Dispatch::none(), || self.runtime.block_on(limited));
        // After a failure, the next attempt opens new connections, and looks up the partitions' leaders again.
        self.partitions = Some(done.map_err(|_| SendError("no acknowledgement in time".to_owned()))??);
        Ok(())
    }
}

/// Brokers of a URL `kafka://HOST[:PORT][,HOST[:PORT]…]`.
fn brokers(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let with_port = |broker: &str| match broker.rsplit_once(':') {
        Some((host, _)) if !host.contains(':') || host.ends_with(']') => broker.to_owned(),
        _ => format!("{broker}:{PORT}"),
    };
    authority.split(',').map(with_port).collect()
}

/// Partition of an event; the same for all events with the same subject.
fn partition_of(event: &EncodedEvent, partitions: usize) -> usize {
    let hash = crc32c::crc32c(event.subject.as_deref().unwrap_or_default().as_bytes());
    usize::try_from(hash).unwrap_or(0).checked_rem(partitions).unwrap_or(0)
}

fn record(event: &EncodedEvent) -> Record {
    let content_type = b"application/cloudevents+json; charset=utf-8".to_vec();
    let millis = i64::try_from(event.time.0).unwrap_or(i64::MAX);
    Record {
        key: Some(event.id.clone().into_bytes()),
        value: Some(event.json.clone()),
        headers: BTreeMap::from([("content-type".to_owned(), content_type)]),
        timestamp: DateTime::from_timestamp_millis(millis).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud_event::EventType;
    use model::Timestamp;

    #[test]
    fn a_url_names_brokers() {
        assert_eq!(brokers("kafka://a.example,b.example:19092/"), ["a.example:9092", "b.example:19092"]);
        assert_eq!(brokers("kafkas://[2001:db8::7]"), ["[2001:db8::7]:9092"]);
    }

    #[test]
    fn events_about_one_message_have_one_partition() {
        let event = |id: &str, subject: Option<&str>| EncodedEvent {
            id: id.to_owned(),
            kind: EventType::Ended,
            subject: subject.map(str::to_owned),
            time: Timestamp(1_000),
            json: b"{}".to_vec(),
        };
        let mut used = std::collections::BTreeSet::new();
        for message in 0..100 {
            let subject = format!("messages/{message}");
            let first = partition_of(&event("a", Some(&subject)), 6);
            assert_eq!(first, partition_of(&event("b", Some(&subject)), 6));
            used.insert(first);
        }
        assert_eq!(used.len(), 6);
        assert!(partition_of(&event("gap", None), 6) < 6);
        let record = record(&event("1-ended", None));
        assert_eq!((record.key, record.timestamp.timestamp_millis()), (Some(b"1-ended".to_vec()), 1_000));
    }
}
