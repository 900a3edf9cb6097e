//! A Kafka broker from Debian's package `kcat`: librdkafka's in-memory test broker, with a consumer in the same
//! process.

use crate::program::Program;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The broker, and the records that its consumer has read. Killed when dropped.
#[derive(Debug)]
pub struct KafkaBroker {
    records: PathBuf,
    address: String,
    program: Program,
}

/// A record of the topic.
#[derive(Debug, Clone, PartialEq)]
pub struct KafkaRecord {
    /// Its partition.
    pub partition: u64,
    /// Its key.
    pub key: String,
    /// Its headers.
    pub headers: Value,
    /// Its value.
    pub payload: Value,
}

impl KafkaBroker {
    /// Starts a broker with an empty topic of four partitions.
    ///
    /// # Errors
    /// If it is not installed or does not start; the error contains its log.
    pub fn start(folder: &Path, topic: &str) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut command = Command::new("sh");
        // Records in a file of their own: kcat writes a line in pieces, between which are lines of the broker.
        command.args(["-c", "exec kcat \"$@\" > records", "kcat"]);
        command.args(["-C", "-b", "mock", "-X", "test.mock.num.brokers=1", "-t", topic, "-J", "-u"]);
        command.args(["-d", "mock"]);
        let program = Program::launch("kcat", folder, &mut command)?;
        program.wait_for_log_lines(1, |line| line.contains("Created topic"))?;
        let text = std::fs::read_to_string(folder.join("kcat.log"))?;
        let (_, rest) = text.split_once("bootstrap.servers=").context("no address")?;
        let address = rest.split_whitespace().next().context("no address")?.to_owned();
        Ok(Self { records: folder.join("records"), address, program })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("kafka://{}", self.address)
    }

    /// Pauses or resumes the broker.
    ///
    /// # Errors
    /// The process has ended.
    pub fn pause(&self, pause: bool) -> Result<()> {
        self.program.pause(pause)
    }

    /// The end of the broker's log.
    pub fn log(&self) -> String {
        self.program.log()
    }

    /// All records that the consumer has read; the records of a partition are in order.
    ///
    /// # Errors
    /// The output of the consumer cannot be read.
    pub fn records(&self) -> Result<Vec<KafkaRecord>> {
        let text = String::from_utf8_lossy(&std::fs::read(&self.records)?).into_owned();
        // The last line may be incomplete.
        let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let record = |record: Value| {
            Ok(KafkaRecord {
                partition: record["partition"].as_u64().context("no partition")?,
                key: record["key"].as_str().unwrap_or_default().to_owned(),
                headers: record["headers"].clone(),
                payload: serde_json::from_str(record["payload"].as_str().context("no payload")?)?,
            })
        };
        records.filter(|record| record["partition"].is_u64()).map(record).collect()
    }
}
