//! Event sinks and CDR files of a cluster node: positions in etcd, and a copy of the log on the disk of this node.

use crate::config::Config;
use crate::critical_thread;
use anyhow::{Context as _, Result};
use cluster::{Cluster, LogCopy};
use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use events::{CdrOptions, EventSinkOptions, EventsError, PositionStore, SinkCursors, SinkStorage};
use journal::{JournalHold, Seq};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Folder with the copy of the log, in the data directory.
pub(crate) const LOG_COPY_FOLDER: &str = "cluster-log";
/// Interval at which a follower reads the positions of the leader's readers.
const POLL: Duration = Duration::from_secs(1);

/// Position store in etcd.
struct EtcdPositions(Arc<Cluster>);

impl EtcdPositions {
    fn failed(&self, name: &str) -> impl FnOnce(cluster::ClusterError) -> EventsError + use<> {
        let location = self.location(name);
        move |error| EventsError::SharedPosition { location, source: error.into() }
    }
}

impl PositionStore for EtcdPositions {
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>, EventsError> {
        self.0.position(name).map_err(self.failed(name))
    }

    fn save(&self, name: &str, previous: Option<&[u8]>, octets: &[u8]) -> Result<(), EventsError> {
        self.0.write_position(name, previous, octets).map_err(self.failed(name))
    }

    fn location(&self, name: &str) -> String {
        format!("the position {name:?} in etcd")
    }
}

/// The event sinks and CDR files of the cluster.
pub(crate) struct ClusterSinks {
    storage: SinkStorage,
    sinks: Vec<EventSinkOptions>,
    cdrs: Vec<CdrOptions>,
    /// The records that the copy of the log keeps.
    hold: Arc<JournalHold>,
    folder: PathBuf,
    cluster: u64,
}

impl ClusterSinks {
    /// The configured event sinks and CDR files; `None` if there are none: then this node needs no copy of the log.
    pub(crate) fn of(config: &Config, cluster: &Arc<Cluster>) -> Result<Option<Self>> {
        let data = &config.appliance.data;
        let folder = data.join(LOG_COPY_FOLDER);
        if config.event_sinks.is_empty() && config.cdrs.is_empty() {
            match std::fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("removing {}", folder.display()));
                }
                _ => return Ok(None),
            }
        }
        let positions = Arc::new(EtcdPositions(cluster.clone()));
        Ok(Some(Self {
            storage: SinkStorage::in_cluster(cluster.node(), cluster.number(), positions, data),
            sinks: config.event_sinks.clone(),
            cdrs: config.cdrs.clone(),
            // Hold everything until the positions are known.
            hold: Arc::new(JournalHold::new(Seq(0), config.engine.journal_hold)),
            folder,
            cluster: cluster.number(),
        }))
    }

    /// Opens the copy of the log. A new one begins after record `applied`.
    pub(crate) fn open_copy(&self, applied: Seq) -> Result<LogCopy> {
        Ok(LogCopy::open(&self.folder, self.cluster, self.hold.clone(), applied)?)
    }

    /// Replaces the copy by one that begins after this record. The previous copy must be closed.
    pub(crate) fn replace_copy(&self, after: Seq) -> Result<LogCopy> {
        Ok(LogCopy::replace(&self.folder, self.cluster, self.hold.clone(), after)?)
    }

    /// Reads the positions, for a node that has become the leader.
    pub(crate) fn load(&self, config: &Config) -> Result<SinkCursors> {
        Ok(SinkCursors::load(&self.storage, &config.event_sinks, &config.cdrs, self.hold.clone())?)
    }

    /// Starts the thread of a follower: until the returned watch is dropped, it releases records that no reader needs,
    /// and completes CDR files that this node left behind as a leader.
    pub(crate) fn watch(self: &Arc<Self>) -> Result<SinkWatch> {
        let sinks = self.clone();
        let (stop, stopped) = bounded::<()>(0);
        let run = move || {
            let mut has_failed = false;
            loop {
                match sinks.follow() {
                    Ok(()) => has_failed = false,
                    Err(error) => {
                        if !has_failed {
                            tracing::warn!(%error, "reading the positions of event sinks failed, trying again");
                        }
                        has_failed = true;
                    }
                }
                if stopped.recv_timeout(POLL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = critical_thread::spawn("sink-positions", run)?;
        Ok(SinkWatch { stop: Some(stop), thread: Some(thread) })
    }

    fn follow(&self) -> Result<(), EventsError> {
        SinkCursors::load(&self.storage, &self.sinks, &self.cdrs, self.hold.clone())?.finish_left_files()
    }
}

/// Thread of a follower. Dropping it waits for its end, since a leader writes the same files.
pub(crate) struct SinkWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for SinkWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
