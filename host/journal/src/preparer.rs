//! Preparation of the next segment and removal of old ones in the background, so that an append waits for neither.
//!
//! An old segment is renamed to become the next one, after its header is blanked. Its blocks are allocated and written
//! already, so an append does not change metadata of the file system. Without an old segment, a new file is filled with
//! zeros.

use crate::directory::{JournalDirectory, JournalFile, write_all};
use crate::segment::{HEADER, NEW_SEGMENT, segment_name};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Octets of zeros per step. Each step is synced, so that an append's sync does not wait for the whole file.
const STEP: usize = 1024 * 1024;

/// Interval at which a waiting caller checks whether the thread has ended.
const THREAD_CHECK: Duration = Duration::from_secs(1);

/// Execution of the preparer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preparation {
    /// On a thread of its own.
    #[default]
    Thread,
    /// Within the calls of the journal, for deterministic tests.
    Inline,
}

pub(crate) struct Preparer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    directory: Arc<dyn JournalDirectory>,
    segment_octets: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Generation of the next segment; `None` while one is in `ready`.
    wanted: Option<u64>,
    ready: Option<(u64, Arc<dyn JournalFile>)>,
    /// Generations whose files are free, oldest first. They are reused or removed in this order, so that the generations
    /// never have a gap.
    retired: VecDeque<u64>,
    failed: Option<io::Error>,
    /// Whether a failure is logged and nothing was prepared since.
    failure_logged: bool,
    stop: bool,
}

enum Task {
    Create(u64),
    Recycle { old: u64, new: u64 },
    Remove(u64),
}

impl Preparer {
    pub(crate) fn start(
        directory: Arc<dyn JournalDirectory>,
        segment_octets: u64,
        preparation: Preparation,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            directory,
            segment_octets,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        });
        let thread = match preparation {
            Preparation::Inline => None,
            Preparation::Thread => {
                let shared = shared.clone();
                Some(std::thread::Builder::new().name("journal".to_owned()).spawn(move || shared.serve())?)
            }
        };
        Ok(Self { shared, thread })
    }

    /// Requests the segment `generation`, in the background, and releases the file of a retired segment for it.
    pub(crate) fn want(&self, generation: u64, retired: Option<u64>) {
        {
            let mut state = self.shared.state.lock();
            state.wanted = Some(generation);
            state.retired.extend(retired);
        }
        self.wake();
    }

    /// Releases the file of a segment for removal.
    pub(crate) fn retire(&self, generation: u64) {
        self.shared.state.lock().retired.push_back(generation);
        self.wake();
    }

    /// Provides a segment that is already prepared.
    pub(crate) fn provide(&self, generation: u64, file: Arc<dyn JournalFile>) {
        self.shared.state.lock().ready = Some((generation, file));
    }

    /// Retries failed work.
    pub(crate) fn retry(&self) {
        if self.shared.state.lock().failed.is_some() {
            self.wake();
        }
    }

    /// Whether a segment is prepared.
    pub(crate) fn is_ready(&self) -> bool {
        self.shared.state.lock().ready.is_some()
    }

    /// Waits for the prepared segment `generation` and takes it; retries failed work.
    pub(crate) fn take(&self, generation: u64) -> io::Result<Arc<dyn JournalFile>> {
        let mut state = self.shared.state.lock();
        state.failed = None;
        loop {
            match state.ready.take() {
                Some((ready, file)) if ready == generation => return Ok(file),
                _ => state.wanted = Some(generation),
            }
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if let Some(thread) = &self.thread {
                if thread.is_finished() {
                    return Err(io::Error::other("the thread that prepares segments has ended"));
                }
                self.shared.changed.notify_all();
                self.shared.changed.wait_for(&mut state, THREAD_CHECK);
            } else {
                MutexGuard::unlocked(&mut state, || self.shared.work());
            }
        }
    }

    /// Starts the work, including failed work.
    fn wake(&self) {
        self.shared.state.lock().failed = None;
        if self.thread.is_some() {
            self.shared.changed.notify_all();
        } else {
            self.shared.work();
        }
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}

impl State {
    fn task(&self) -> Option<Task> {
        if self.stop || self.failed.is_some() {
            return None;
        }
        match (self.wanted, self.retired.front()) {
            (Some(new), Some(&old)) => Some(Task::Recycle { old, new }),
            (Some(new), None) => Some(Task::Create(new)),
            (None, Some(&old)) => Some(Task::Remove(old)),
            (None, None) => None,
        }
    }
}

impl Shared {
    /// Main loop of the thread.
    fn serve(&self) {
        loop {
            self.work();
            let mut state = self.state.lock();
            while state.task().is_none() {
                if state.stop {
                    return;
                }
                self.changed.wait(&mut state);
            }
        }
    }

    /// Does all tasks, up to the first that fails.
    fn work(&self) {
        loop {
            let Some(task) = self.state.lock().task() else { return };
            let failure = match task {
                Task::Create(_) | Task::Recycle { .. } => {
                    "the next segment of the journal cannot be prepared"
                }
                Task::Remove(_) => "an old segment of the journal cannot be removed",
            };
            let result = match task {
                Task::Create(new) => self.create(new).map(|file| file.map(|file| (new, file))),
                Task::Recycle { old, new } => self.recycle(old, new).map(|file| file.map(|file| (new, file))),
                Task::Remove(old) => self.remove(old).map(|()| None),
            };
            let mut state = self.state.lock();
            match result {
                Ok(Some((new, file))) => {
                    state.ready = Some((new, file));
                    state.wanted = None;
                    if std::mem::take(&mut state.failure_logged) {
                        tracing::info!(
                            "{}: the next segment of the journal is prepared",
                            self.directory.path("").display()
                        );
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    // While the disk is full, the work is retried continuously: log the failure once.
                    if !std::mem::replace(&mut state.failure_logged, true) {
                        tracing::warn!("{}: {failure}: {error}", self.directory.path("").display());
                    }
                    state.failed = Some(error);
                }
            }
            self.changed.notify_all();
        }
    }

    fn create(&self, new: u64) -> io::Result<Option<Arc<dyn JournalFile>>> {
        create_segment(&*self.directory, self.segment_octets, new, &|| self.state.lock().stop)
    }

    /// Turns an old segment into the next one; `None` if an earlier try has removed the old one.
    fn recycle(&self, old: u64, new: u64) -> io::Result<Option<Arc<dyn JournalFile>>> {
        // A file with a blank header would count as damage under its old name.
        let renamed = found(self.directory.rename(&segment_name(old), NEW_SEGMENT))?;
        self.directory.sync()?;
        self.state.lock().retired.pop_front();
        if !renamed {
            return Ok(None);
        }
        let file = self.directory.open(NEW_SEGMENT)?;
        write_all(&*file, 0, &[0; HEADER])?;
        file.sync_data()?;
        self.directory.rename(NEW_SEGMENT, &segment_name(new))?;
        self.directory.sync()?;
        Ok(Some(file))
    }

    fn remove(&self, old: u64) -> io::Result<()> {
        found(self.directory.remove(&segment_name(old)))?;
        // Synced one by one, so that no crash leaves a gap.
        self.directory.sync()?;
        self.state.lock().retired.pop_front();
        Ok(())
    }
}

/// Whether the file existed.
fn found(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        other => other.map(|()| true),
    }
}

/// Creates a segment file of zeros; `None` if `stop` becomes true meanwhile.
pub(crate) fn create_segment(
    directory: &dyn JournalDirectory,
    octets: u64,
    generation: u64,
    stop: &dyn Fn() -> bool,
) -> io::Result<Option<Arc<dyn JournalFile>>> {
    let file = create_or_replace(directory, NEW_SEGMENT)?;
    match fill(&*file, octets, stop) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => {
            // The disk space is needed. If the removal fails, the next try removes the file.
            let _ = directory.remove(NEW_SEGMENT);
            return Err(error);
        }
    }
    directory.rename(NEW_SEGMENT, &segment_name(generation))?;
    directory.sync()?;
    Ok(Some(file))
}

/// Fills a file with zeros; `false` if `stop` becomes true meanwhile.
fn fill(file: &dyn JournalFile, octets: u64, stop: &dyn Fn() -> bool) -> io::Result<bool> {
    file.allocate(octets)?;
    let zeros = vec![0; STEP.min(usize::try_from(octets).unwrap_or(STEP))];
    let mut offset = 0;
    while offset < octets {
        if stop() {
            return Ok(false);
        }
        let left = usize::try_from(octets - offset).unwrap_or(usize::MAX);
        let step = zeros.get(..left).unwrap_or(&zeros);
        write_all(file, offset, step)?;
        file.sync_data()?;
        offset += step.len() as u64;
    }
    Ok(true)
}

/// Creates an empty file; replaces a file of the same name.
pub(crate) fn create_or_replace(
    directory: &dyn JournalDirectory,
    name: &str,
) -> io::Result<Arc<dyn JournalFile>> {
    found(directory.remove(name))?;
    directory.create(name)
}
