//! Thread of one event sink.

use crate::EventsError;
use crate::cloud_event::CloudEvent;
use crate::cursor::Cursor;
use crate::held_positions::HeldPositions;
use crate::options::EventSinkOptions;
use crate::position_store::StoredPosition;
use crate::record_source::{RecordPart, RecordRead, RecordSource};
use crate::sink_status::SinkMonitor;
use crate::translator::{Translator, gap};
use crate::transport::{EncodedEvent, EventTransport, SendError};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use journal::Seq;
use model::Timestamp;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// First delay after a failure; it doubles up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// The longest delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(30);
/// Maximum time to wait for new records before the thread checks whether it must stop.
const POLL: Duration = Duration::from_millis(250);
/// After some records, the thread waits this long for more: it limits the passes of a sink per second.
const LINGER: Duration = Duration::from_millis(20);
/// Minimum time between two saves of the position. After a crash, events since the last save are sent again.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// Reads the journal for one sink.
pub(crate) struct SinkThread {
    pub(crate) options: EventSinkOptions,
    /// Attribute `source` of all events.
    pub(crate) source_attribute: String,
    pub(crate) source: RecordSource,
    pub(crate) transport: Box<dyn EventTransport>,
    pub(crate) journal: u64,
    pub(crate) cursor: StoredPosition<Cursor>,
    /// The last record whose events are all accepted.
    pub(crate) done: Seq,
    /// The position that is stored.
    pub(crate) saved: Seq,
    pub(crate) saved_at: Instant,
    pub(crate) held: Arc<HeldPositions>,
    /// Index in `held`.
    pub(crate) index: usize,
    pub(crate) monitor: Arc<SinkMonitor>,
    pub(crate) stop: Receiver<()>,
}

/// The daemon is stopping.
struct Stopped;

impl SinkThread {
    pub(crate) fn run(mut self) {
        // Traffic has priority.
        if let Err(error) = rustix::process::setpriority_process(None, 10) {
            tracing::debug!(%error, "lowering the priority of an event sink failed");
        }
        let mut delay = FIRST_DELAY;
        loop {
            let wait = match self.pass() {
                Ok(Ok(wait)) => {
                    delay = FIRST_DELAY;
                    wait
                }
                Ok(Err(Stopped)) => break,
                Err(error) => {
                    if self.monitor.down(&error.to_string()) {
                        tracing::error!(sink = self.options.name, %error, "events cannot be read, trying again");
                    }
                    delay = (delay * 2).min(MAX_DELAY);
                    delay
                }
            };
            if self.is_stopped_within(wait) {
                break;
            }
        }
        if let Err(error) = self.save() {
            tracing::warn!(sink = self.options.name, %error, "storing the position of an event sink failed, some events will be sent again");
        }
    }

    /// Reads some records and sends their events. Returns how long to wait for more records.
    fn pass(&mut self) -> Result<Result<Duration, Stopped>, EventsError> {
        match self.source.read(POLL)? {
            RecordRead::End => {
                self.monitor.caught_up();
                self.save_if_due()?;
                Ok(Ok(Duration::ZERO))
            }
            RecordRead::Gap { first, last } => {
                let records = last.0.saturating_sub(first.0) + 1;
                tracing::error!(
                    sink = self.options.name,
                    first = first.0,
                    last = last.0,
                    "the journal has removed records before the sink read them, their events are lost"
                );
                self.monitor.gap(records);
                if let Err(stopped) = self.send(&[gap(first, last, Timestamp::now())]) {
                    return Ok(Err(stopped));
                }
                self.reached(last);
                Ok(Ok(Duration::ZERO))
            }
            RecordRead::Part(part) => {
                self.monitor.waits_since(part.first_at);
                let events = self.translate(&part);
                if let Err(stopped) = self.send(&events) {
                    return Ok(Err(stopped));
                }
                self.reached(part.last);
                self.save_if_due()?;
                let is_behind = self.source.head() > part.last;
                if !is_behind {
                    self.monitor.caught_up();
                }
                Ok(Ok(if is_behind { Duration::ZERO } else { LINGER }))
            }
        }
    }

    fn translate(&mut self, part: &RecordPart) -> Vec<CloudEvent> {
        let mut events = Vec::new();
        let (directory, window) = self.source.directory_and_window();
        let mut translator = Translator { options: &self.options, directory, window };
        for record in &part.records {
            translator.translate(record, &mut events);
        }
        events
    }

    /// Sends events until they are accepted.
    fn send(&mut self, events: &[CloudEvent]) -> Result<(), Stopped> {
        for events in events.chunks(self.options.batch.max(1)) {
            let encoded: Vec<_> = events
                .iter()
                .map(|event| {
                    let mut json = Vec::with_capacity(512);
                    event.write_json(&mut json, &self.source_attribute);
                    EncodedEvent {
                        id: event.id.clone(),
                        kind: event.kind,
                        subject: event.subject.clone(),
                        time: event.time,
                        json,
                    }
                })
                .collect();
            let mut delay = FIRST_DELAY;
            while let Err(SendError(why)) = self.transport.send(&encoded) {
                if self.monitor.down(&why) {
                    tracing::warn!(sink = self.options.name, %why, "event sink down, its events wait in the journal");
                }
                if self.is_stopped_within(delay) {
                    return Err(Stopped);
                }
                delay = (delay * 2).min(MAX_DELAY);
            }
            if self.monitor.up(encoded.len()) {
                tracing::info!(sink = self.options.name, "event sink up");
            }
        }
        Ok(())
    }

    fn reached(&mut self, position: Seq) {
        self.done = position;
        self.monitor.set_position(position);
    }

    /// Stores the position, if [`SAVE_INTERVAL`] has passed since the last save.
    fn save_if_due(&mut self) -> Result<(), EventsError> {
        if self.saved_at.elapsed() >= SAVE_INTERVAL { self.save() } else { Ok(()) }
    }

    /// Stores the position, if it has changed.
    fn save(&mut self) -> Result<(), EventsError> {
        if self.done != self.saved {
            self.cursor.save(&Cursor { journal: self.journal, seq: self.done.0 })?;
            self.saved = self.done;
            // The journal may remove only what the stored position covers: the next process starts there.
            self.held.set(self.index, self.done);
        }
        self.saved_at = Instant::now();
        Ok(())
    }

    fn is_stopped_within(&self, wait: Duration) -> bool {
        self.stop.recv_timeout(wait) != Err(RecvTimeoutError::Timeout)
    }
}
