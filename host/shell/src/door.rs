//! The socket.

use crate::connection::{self, Slots};
use crate::permit::{Permit, name_of};
use crate::records::{Library, View};
use crate::wire::{Accepted, Fault, Kind, Submission};
use crate::{Number, Numbering, Records, ShellOptions, Watch, inbox, submission};
use doors::{Bucket, Core, Desk, Hub, Protocol, Refused, Routing};
use engine::{Answer, Event};
use model::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::Store;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Why the door cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// Another daemon listens there.
    #[error("[shell] socket = {0:?}: another program is listening there")]
    InUse(PathBuf),
    /// There is something else.
    #[error("[shell] socket = {0:?}: is there already, and is no socket; name another path or remove it")]
    NoSocket(PathBuf),
    /// The system says no.
    #[error("[shell] socket = {path:?}: {what}: {source}")]
    System {
        /// Where.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

/// What the door needs of the house.
pub struct Ports {
    /// The way into the engine.
    pub core: Arc<dyn Core>,
    /// Where messages go.
    pub routing: Arc<dyn Routing>,
    /// The way back.
    pub hub: Arc<Hub>,
    /// What is not in the archive yet.
    pub store: Arc<Store>,
    /// Told of every commit.
    pub watch: Arc<Watch>,
    /// What messages do, and the archive.
    pub records: Arc<dyn Records>,
    /// How numbers are dialled.
    pub numbering: Arc<dyn Numbering>,
}

/// The open door.
pub struct Shell {
    path: PathBuf,
    stop: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    hub: Arc<Hub>,
    shared: Arc<Shared>,
}

/// What the door has come to.
#[derive(Debug, Clone, Default)]
pub struct ShellState {
    /// Connections now.
    pub connections: usize,
    /// Callers that were turned away, as strangers or for want of room.
    pub turned_away: u64,
    /// Requests since the start, by what was asked and what came of it: `ok`, or the kind of fault.
    pub requests: BTreeMap<(&'static str, &'static str), u64>,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) options: Arc<ShellOptions>,
    pub(crate) library: Arc<Library>,
    pub(crate) slots: Arc<Slots>,
    core: Arc<dyn Core>,
    routing: Arc<dyn Routing>,
    numbering: Arc<dyn Numbering>,
    desk: Arc<Desk>,
    hub: Arc<Hub>,
    buckets: Mutex<HashMap<Number, (Bucket, Instant)>>,
    places: Arc<Semaphore>,
    turned_away: AtomicU64,
    requests: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
}

/// How often boxes are looked over.
const TIDY: Duration = Duration::from_secs(60);

impl Shell {
    /// Opens the door. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn open(options: ShellOptions, ports: Ports) -> Result<Self, ShellError> {
        let path = options.socket.clone();
        let listener = listen(&options)?;
        let options = Arc::new(options);
        let Ports { core, routing, hub, store, watch, records, numbering } = ports;
        let shared = Arc::new(Shared {
            options: options.clone(),
            library: Arc::new(Library { store, watch: watch.clone(), records }),
            slots: Arc::default(),
            core: core.clone(),
            routing,
            numbering,
            desk: Desk::open_for(&hub, Protocol::Shell),
            hub: hub.clone(),
            buckets: Mutex::default(),
            places: Arc::new(Semaphore::new(options.connections)),
            turned_away: AtomicU64::new(0),
            requests: Mutex::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let tasks = vec![
            tokio::spawn(inbox::run(core, hub.clone(), options.clone(), stopped.clone())),
            tokio::spawn(accept(shared.clone(), listener, stopped.clone())),
            tokio::spawn(keep_boxes(watch, options, stopped)),
        ];
        Ok(Self { path, stop, tasks: Mutex::new(tasks), hub, shared })
    }

    /// Where the socket is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it has come to.
    #[must_use]
    pub fn state(&self) -> ShellState {
        let shared = &self.shared;
        ShellState {
            connections: shared.options.connections.saturating_sub(shared.places.available_permits()),
            turned_away: shared.turned_away.load(Relaxed),
            requests: shared.requests.lock().clone(),
        }
    }

    /// Closes the door: no new connections, and those that are there end with their next answer, or when the time is over. The
    /// core must go on working meanwhile.
    pub async fn shutdown(&self, within: Duration) {
        // The path first: whoever comes now learns at once that nobody is there.
        let _ = std::fs::remove_file(&self.path);
        self.stop.send_replace(true);
        let tasks: Vec<_> = self.tasks.lock().drain(..).collect();
        let until = tokio::time::Instant::now() + within;
        for mut task in tasks {
            if tokio::time::timeout_at(until, &mut task).await.is_err() {
                task.abort();
            }
        }
        self.shared.desk.close(&self.hub);
    }
}

fn listen(options: &ShellOptions) -> Result<UnixListener, ShellError> {
    let path = &options.socket;
    let failed = |what| move |source| ShellError::System { path: path.clone(), what, source };
    if let Ok(metadata) = std::fs::symlink_metadata(path) {
        if !metadata.file_type().is_socket() {
            return Err(ShellError::NoSocket(path.clone()));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(ShellError::InUse(path.clone()));
        }
        // Left by a daemon that was killed.
        std::fs::remove_file(path).map_err(failed("removing what a daemon before left"))?;
    }
    let listener = UnixListener::bind(path).map_err(failed("making it"))?;
    if options.group.is_some() {
        std::os::unix::fs::chown(path, None, options.group).map_err(failed("giving it to its group"))?;
    }
    // Whoever comes in between is asked for its credentials as everybody is.
    let mode = std::fs::Permissions::from_mode(options.mode);
    std::fs::set_permissions(path, mode).map_err(failed("setting its mode"))?;
    Ok(listener)
}

async fn accept(shared: Arc<Shared>, listener: UnixListener, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, _)) => match shared.places.clone().try_acquire_owned() {
                Ok(place) => {
                    let (shared, stop) = (shared.clone(), stop.clone());
                    connections.spawn(async move {
                        one(&shared, stream, stop).await;
                        drop(place);
                    });
                }
                Err(_) => {
                    shared.turned_away();
                    let detail = "too many connections; try again later";
                    connection::turn_away(&stream, &Fault::new(Kind::Unavailable, detail));
                }
            },
            Err(error) => {
                tracing::warn!(%error, "a connection to the shell's socket was not taken");
                // Most likely there are no file descriptors left; they do not come back by trying harder.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn one(shared: &Arc<Shared>, stream: UnixStream, stop: watch::Receiver<bool>) {
    let credentials = match stream.peer_cred() {
        Ok(credentials) => credentials,
        Err(error) => {
            tracing::warn!(%error, "a caller without credentials");
            return;
        }
    };
    let (uid, gid, options) = (credentials.uid(), credentials.gid(), shared.options.clone());
    let judged =
        tokio::task::spawn_blocking(move || Permit::of(&options, uid, gid).ok_or_else(|| name_of(uid)));
    match judged.await {
        Ok(Ok(permit)) => connection::serve(shared, &permit, stream, stop).await,
        Ok(Err(name)) => {
            shared.turned_away();
            tracing::info!(uid, "a stranger at the shell's socket");
            let detail =
                format!("{name} may not use this appliance; an admin can change that in [[shell.users]]");
            connection::turn_away(&stream, &Fault::new(Kind::NotAllowed, detail));
        }
        Err(_) => {}
    }
}

async fn keep_boxes(watch: Arc<Watch>, options: Arc<ShellOptions>, mut stop: watch::Receiver<bool>) {
    if let Err(error) = watch.open_named(&options.numbers()).await {
        tracing::error!(%error, "the store cannot be read; inboxes are opened when they are asked for");
    }
    let mut turns = tokio::time::interval(TIDY);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = turns.tick() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
        let watch = watch.clone();
        let tidied = tokio::task::spawn_blocking(move || watch.tidy(Instant::now())).await;
        if let Ok(Err(error)) = tidied {
            tracing::warn!(%error, "the store cannot be read");
        }
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Shared {
    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    pub(crate) fn count(&self, request: &'static str, result: &'static str) {
        *self.requests.lock().entry((request, result)).or_default() += 1;
    }

    /// Submits; the answer comes when the message is on disk.
    pub(crate) async fn submit(&self, view: &View, asked: &Submission) -> Result<Accepted, Fault> {
        let View::Subscriber(caller) = view else {
            return Err(Fault::new(Kind::NotAllowed, "an operator has no number to send from; use --as"));
        };
        let read = submission::key(asked, caller).and_then(|key| {
            Ok((key, submission::message(asked, caller, &*self.numbering, &self.options, wall())?))
        });
        let turn = read.and_then(|read| self.take_turn(caller, Instant::now()).map(|()| read));
        let (key, mut message) = turn.inspect_err(|fault| self.refused(caller, fault))?;
        message.routed = self.routing.route(&message);
        let to = crate::number::shown(&message.destination);
        let event = |reply| Event::AcceptMany { messages: vec![message], shared_id: false, key, reply };
        let answer = self.desk.ask(&*self.core, self.options.patience, event).await;
        match answer.map_err(|error| Fault::new(Kind::Unavailable, error.to_string()))? {
            Answer::AcceptedMany(results) => match results.first() {
                Some(Ok(id)) => Ok(Accepted { message: id.to_string(), to }),
                Some(Err(refusal)) => Err(submission::refused(*refusal)),
                None => Err(submission::refused(model::Refusal::Internal)),
            },
            Answer::Refused(refusal) => Err(submission::refused(refusal)),
            _ => Err(submission::refused(model::Refusal::Internal)),
        }
    }

    /// Counts a submission that is refused before the engine sees it. The record quotes nothing of it.
    fn refused(&self, caller: &Number, fault: &Fault) {
        let (code, source) = (fault.kind.name(), caller.address());
        let (at, destination) = (wall(), model::Address::default());
        let refused =
            Refused { at, protocol: Protocol::Shell, source, destination, code, reason: code.into() };
        self.hub.refusals().record(self.options.peer, refused, 1);
    }

    fn take_turn(&self, caller: &Number, now: Instant) -> Result<(), Fault> {
        /// Buckets that may be remembered before those that are full again are forgotten.
        const MANY: usize = 10_000;
        let Some(rate) = self.options.rate else { return Ok(()) };
        let mut buckets = self.buckets.lock();
        if buckets.len() >= MANY {
            let full_after =
                Duration::from_secs_f64((f64::from(self.options.burst) / rate).clamp(1.0, 86_400.0));
            buckets.retain(|_, (_, used)| now.saturating_duration_since(*used) < full_after);
        }
        let fresh = || (Bucket::new(rate, self.options.burst, now), now);
        let (bucket, used) = buckets.entry(caller.clone()).or_insert_with(fresh);
        *used = now;
        if bucket.take(1, now) { Ok(()) } else { Err(submission::refused(model::Refusal::Throttled)) }
    }
}
