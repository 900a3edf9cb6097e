//! Reads of plugin sources, each on a thread of its own with a time limit.
//!
//! A read of a folder cannot be interrupted, and hangs if its network or device is gone. The caller stops waiting; the
//! thread stays until the system answers; reads of other sources continue.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The purpose of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadKind {
    /// An artifact, which is held in memory.
    Pull,
    /// Tags and digests.
    Inspect,
}

impl ReadKind {
    /// Maximum number of concurrent reads of one source, including hanging ones.
    fn limit(self) -> usize {
        match self {
            Self::Pull => 1,
            Self::Inspect => 4,
        }
    }
}

/// The reason why a source was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// The source has reached the limit of reads of this kind.
    Busy,
    /// The read did not end within this time.
    TimedOut(Duration),
    /// The read panicked, or its thread did not start.
    Failed,
}

/// The numbers of running reads, by source and kind.
#[derive(Debug, Default)]
pub(crate) struct SourceReaders {
    running: Arc<Mutex<BTreeMap<(String, ReadKind), usize>>>,
}

/// A running read. It counts until its thread ends.
struct RunningRead {
    running: Arc<Mutex<BTreeMap<(String, ReadKind), usize>>>,
    key: (String, ReadKind),
}

impl Drop for RunningRead {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        if let Some(count) = running.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.key);
            }
        }
    }
}

/// Results of a read, in the order of arrival.
#[derive(Debug)]
pub(crate) struct ReadResults<T> {
    results: Receiver<T>,
    limit: Duration,
    deadline: Instant,
}

impl<T> ReadResults<T> {
    /// Returns the next result.
    ///
    /// # Errors
    /// The read has timed out, has failed, or has no more results.
    pub(crate) fn next(&self) -> Result<T, ReadFailure> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        self.results.recv_timeout(remaining).map_err(|error| match error {
            RecvTimeoutError::Timeout => ReadFailure::TimedOut(self.limit),
            RecvTimeoutError::Disconnected => ReadFailure::Failed,
        })
    }
}

impl SourceReaders {
    /// Starts a read that sends its results.
    ///
    /// # Errors
    /// The source is busy, or the thread cannot be started.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        source: &str,
        kind: ReadKind,
        limit: Duration,
        read: impl FnOnce(&Sender<T>) + Send + 'static,
    ) -> Result<ReadResults<T>, ReadFailure> {
        let key = (source.to_owned(), kind);
        {
            let mut running = self.running.lock();
            let count = running.entry(key.clone()).or_default();
            if *count >= kind.limit() {
                return Err(ReadFailure::Busy);
            }
            *count += 1;
        }
        let counted = RunningRead { running: self.running.clone(), key };
        let (sender, results) = channel();
        let deadline = Instant::now() + limit;
        let work = move || {
            let _counted = counted;
            read(&sender);
        };
        let started = std::thread::Builder::new().name("plugin-source".to_owned()).spawn(work);
        started.map_err(|_| ReadFailure::Failed)?;
        Ok(ReadResults { results, limit, deadline })
    }

    /// Reads once and returns the result.
    ///
    /// # Errors
    /// As [`Self::start`] and [`ReadResults::next`].
    pub(crate) fn read<T: Send + 'static>(
        &self,
        source: &str,
        kind: ReadKind,
        limit: Duration,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadFailure> {
        let results = self.start(source, kind, limit, move |results| {
            // The caller may have stopped waiting.
            let _ = results.send(read());
        })?;
        results.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_read_that_hangs_holds_its_source_only() {
        let readers = SourceReaders::default();
        let (end, ends) = channel::<()>();
        let hangs = move || ends.recv().is_ok();
        let timed_out = readers.read("stick", ReadKind::Pull, Duration::ZERO, hangs);
        assert_eq!(timed_out, Err(ReadFailure::TimedOut(Duration::ZERO)));
        assert_eq!(readers.read("stick", ReadKind::Pull, LIMIT, || 1), Err(ReadFailure::Busy));
        assert_eq!(readers.read("stick", ReadKind::Inspect, LIMIT, || 2), Ok(2));
        assert_eq!(readers.read("carrier", ReadKind::Pull, LIMIT, || 3), Ok(3));
        drop(end);
        // The thread has its answer and ends soon.
        while readers.read("stick", ReadKind::Pull, LIMIT, || 4) == Err(ReadFailure::Busy) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_read_that_panics_has_no_result() {
        let readers = SourceReaders::default();
        let read = || -> u8 { panic!("a test") };
        assert_eq!(readers.read("stick", ReadKind::Pull, LIMIT, read), Err(ReadFailure::Failed));
    }

    #[test]
    fn results_come_one_by_one() {
        let readers = SourceReaders::default();
        let results = readers.start("stick", ReadKind::Inspect, LIMIT, |results| {
            for number in 0..2 {
                results.send(number).unwrap();
            }
        });
        let results = results.unwrap();
        assert_eq!([results.next(), results.next()], [Ok(0), Ok(1)]);
        assert_eq!(results.next(), Err(ReadFailure::Failed));
    }
}
