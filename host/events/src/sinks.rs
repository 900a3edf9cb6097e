//! All readers of the journal: event sinks and CDR files.

use crate::EventsError;
use crate::amqp::AmqpTransport;
use crate::cdr::{CdrOptions, CdrState, CdrThread, CdrWriter, first_number};
use crate::cursor::Cursor;
use crate::held_positions::{HeldPositions, first_needed};
use crate::http::HttpTransport;
use crate::kafka::KafkaTransport;
use crate::message_facts::MessageDirectory;
use crate::nats::NatsTransport;
use crate::options::{EventSinkOptions, SinkProtocol};
use crate::position_store::StoredPosition;
use crate::record_source::RecordSource;
use crate::sink_status::SinkMonitor;
use crate::sink_storage::SinkStorage;
use crate::sink_thread::SinkThread;
use crate::transport::EventTransport;
use api::EventSinkView;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use journal::{JournalHold, JournalReader, Seq};
use model::Timestamp;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An event sink that is not started yet.
#[derive(Debug)]
struct LoadedSink {
    options: EventSinkOptions,
    file: StoredPosition<Cursor>,
    cursor: Option<Cursor>,
}

/// A `[[cdr]]` whose thread is not started yet.
#[derive(Debug)]
struct LoadedCdr {
    options: CdrOptions,
    folder: PathBuf,
    file: StoredPosition<CdrState>,
    state: Option<CdrState>,
}

/// Positions of event sinks and CDR files. They are read before the journal is opened, so that it keeps the needed records.
#[derive(Debug)]
pub struct SinkCursors {
    sinks: Vec<LoadedSink>,
    cdrs: Vec<LoadedCdr>,
    storage: SinkStorage,
    hold: Arc<JournalHold>,
}

impl SinkCursors {
    /// Reads the positions, and tells `hold` which records are needed.
    ///
    /// # Errors
    /// A position cannot be read.
    pub fn load(
        storage: &SinkStorage,
        sinks: &[EventSinkOptions],
        cdrs: &[CdrOptions],
        hold: Arc<JournalHold>,
    ) -> Result<Self, EventsError> {
        let load_sink = |options: &EventSinkOptions| {
            let mut file = StoredPosition::new(storage.positions.clone(), format!("{}.cursor", options.name));
            let cursor = file.load()?;
            Ok::<_, EventsError>(LoadedSink { options: options.clone(), file, cursor })
        };
        let load_cdr = |options: &CdrOptions| {
            let mut file = StoredPosition::new(storage.positions.clone(), format!("{}.cdr", options.name));
            let state = file.load()?;
            let folder = match &options.folder {
                Some(folder) => PathBuf::from(folder),
                None => storage.data.join("cdr").join(&options.name),
            };
            Ok::<_, EventsError>(LoadedCdr { options: options.clone(), folder, file, state })
        };
        let sinks: Vec<_> = sinks.iter().map(load_sink).collect::<Result<_, _>>()?;
        let cdrs: Vec<_> = cdrs.iter().map(load_cdr).collect::<Result<_, _>>()?;
        let positions = sinks.iter().filter_map(|sink| sink.cursor.map(Cursor::seq));
        let positions: Vec<Seq> =
            positions.chain(cdrs.iter().filter_map(|cdr| cdr.state.as_ref().map(CdrState::seq))).collect();
        hold.set(first_needed(&positions));
        Ok(Self { sinks, cdrs, storage: storage.clone(), hold })
    }

    /// On a follower: completes the CDR files that this node began before another node became leader.
    ///
    /// # Errors
    /// A file cannot be written, or has lost octets.
    pub fn finish_left_files(self) -> Result<(), EventsError> {
        for cdr in self.cdrs {
            if let Some(state) = cdr.state {
                let names = ("", self.storage.node.as_str());
                CdrWriter::new(cdr.options, cdr.folder, names, cdr.file, state).finish_left_files()?;
            }
        }
        Ok(())
    }

    /// The records that the journal must keep; `None` without readers.
    #[must_use]
    pub fn hold(&self) -> Option<Arc<JournalHold>> {
        (!self.sinks.is_empty() || !self.cdrs.is_empty()).then(|| self.hold.clone())
    }

    /// Starts the readers. A new reader begins with the records that are appended from now on. `name` is the name of the
    /// appliance.
    ///
    /// # Errors
    /// A position cannot be stored, or a thread cannot be started.
    pub fn start(
        self,
        reader: &JournalReader,
        directory: &Arc<dyn MessageDirectory>,
        name: &str,
    ) -> Result<EventSinks, EventsError> {
        let journal = self.storage.journal.unwrap_or_else(|| reader.created());
        let held = HeldPositions::new(self.hold);
        let (stop, stopped) = bounded::<()>(0);
        let mut starting = Starting {
            reader,
            directory,
            name,
            node: &self.storage.node,
            journal,
            held: Arc::new(held),
            stopped,
            running: Vec::new(),
        };
        let mut threads: Vec<(String, Box<dyn FnOnce() + Send>)> = Vec::new();
        for sink in self.sinks {
            threads.push((sink.options.name.clone(), starting.sink(sink)?));
        }
        for cdr in self.cdrs {
            threads.push((cdr.options.name.clone(), starting.cdr(cdr)?));
        }
        // All positions are known, and none of them has moved yet.
        starting.held.apply();
        let (running, ended) = bounded::<()>(0);
        for (sink, run) in threads {
            let running = running.clone();
            let run = move || {
                run();
                drop(running);
            };
            std::thread::Builder::new()
                .name("events".to_owned())
                .spawn(run)
                .map_err(|source| EventsError::Thread { sink, source })?;
        }
        let stop = Mutex::new(Some(stop));
        Ok(EventSinks { sinks: starting.running, reader: reader.another(), stop, ended })
    }
}

/// The inputs that all readers share at their start.
struct Starting<'a> {
    reader: &'a JournalReader,
    directory: &'a Arc<dyn MessageDirectory>,
    name: &'a str,
    /// Name of the node; empty without a cluster.
    node: &'a str,
    journal: u64,
    held: Arc<HeldPositions>,
    stopped: Receiver<()>,
    running: Vec<RunningSink>,
}

impl Starting<'_> {
    /// Start position of a reader: its stored position; the beginning if that belongs to another journal.
    fn begin(&self, name: &str, journal: u64, position: Seq) -> Seq {
        if journal == self.journal {
            return position;
        }
        tracing::warn!(
            sink = name,
            "the journal was replaced by a restore, the sink begins with its first record"
        );
        Seq(self.reader.oldest().0.saturating_sub(1))
    }

    fn register(&mut self, name: &str, kind: &'static str, position: Seq) -> (usize, Arc<SinkMonitor>) {
        let monitor = Arc::new(SinkMonitor::new(position));
        self.running.push(RunningSink { name: name.to_owned(), kind, monitor: monitor.clone() });
        (self.held.add(position), monitor)
    }

    fn sink(&mut self, sink: LoadedSink) -> Result<Box<dyn FnOnce() + Send>, EventsError> {
        let LoadedSink { options, mut file, cursor } = sink;
        let position = match cursor {
            Some(cursor) => self.begin(&options.name, cursor.journal, cursor.seq()),
            None => {
                let head = self.reader.head().seq;
                file.save(&Cursor { journal: self.journal, seq: head.0 })?;
                head
            }
        };
        let (index, monitor) = self.register(&options.name, options.protocol().name(), position);
        let transport: Box<dyn EventTransport> = match options.protocol() {
            SinkProtocol::Http => Box::new(HttpTransport::new(&options)?),
            SinkProtocol::Nats => Box::new(NatsTransport::new(&options)?),
            SinkProtocol::Amqp => Box::new(AmqpTransport::new(&options)?),
            SinkProtocol::Kafka => Box::new(KafkaTransport::new(&options)?),
        };
        let named = options.named_messages();
        let thread = SinkThread {
            transport,
            source_attribute: format!("/switchyard/{}", self.name),
            source: RecordSource::new(self.reader.another(), self.directory.clone(), position, named),
            journal: self.journal,
            cursor: file,
            done: position,
            saved: position,
            saved_at: Instant::now(),
            held: self.held.clone(),
            index,
            monitor,
            stop: self.stopped.clone(),
            options,
        };
        Ok(Box::new(move || thread.run()))
    }

    fn cdr(&mut self, cdr: LoadedCdr) -> Result<Box<dyn FnOnce() + Send>, EventsError> {
        let LoadedCdr { options, folder, mut file, state } = cdr;
        let state = match state {
            Some(state) => {
                let seq = self.begin(&options.name, state.journal, state.seq()).0;
                let next = CdrState { journal: self.journal, seq, ..state.clone() }.continued_by(self.node);
                if next != state {
                    file.save(&next)?;
                }
                next
            }
            None => {
                let (seq, number) = (self.reader.head().seq.0, first_number(&folder, &options.name));
                let state = CdrState {
                    journal: self.journal,
                    seq,
                    file: number,
                    octets: 0,
                    totals: Default::default(),
                    renaming: false,
                    node: self.node.to_owned(),
                    left: Vec::new(),
                };
                file.save(&state)?;
                state
            }
        };
        let (index, monitor) = self.register(&options.name, "cdr-file", state.seq());
        let thread = CdrThread {
            writer: CdrWriter::new(options.clone(), folder, (self.name, self.node), file, state),
            reader: self.reader.another(),
            directory: self.directory.clone(),
            held: self.held.clone(),
            index,
            monitor,
            stop: self.stopped.clone(),
            options,
        };
        Ok(Box::new(move || thread.run()))
    }
}

#[derive(Debug)]
struct RunningSink {
    name: String,
    kind: &'static str,
    monitor: Arc<SinkMonitor>,
}

/// The running readers of the journal. When this is dropped, they stop without waiting for a sink that does not answer:
/// its events are sent after the next start.
pub struct EventSinks {
    sinks: Vec<RunningSink>,
    reader: JournalReader,
    /// The readers stop when this sender is dropped.
    stop: Mutex<Option<Sender<()>>>,
    /// Disconnected when all readers have ended.
    ended: Receiver<()>,
}

impl EventSinks {
    /// Lets the readers store their positions and end. Waits up to `timeout` for readers that are sending.
    pub fn stop(&self, timeout: Duration) {
        *self.stop.lock() = None;
        if self.ended.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
            tracing::info!("an event sink does not answer, some of its events will be sent again");
        }
    }

    /// The state of each reader, in the order of the configuration.
    #[must_use]
    pub fn status(&self) -> Vec<EventSinkView> {
        let (head, now) = (self.reader.head().seq, Timestamp::now());
        self.sinks.iter().map(|sink| sink.monitor.view((&sink.name, sink.kind), head, now)).collect()
    }
}

impl std::fmt::Debug for EventSinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventSinks").field("sinks", &self.sinks).finish_non_exhaustive()
    }
}
