//! The shell server: listens on the Unix socket.

use crate::connection::{self, ConnectionSlots};
use crate::records::{RecordReader, Viewer};
use crate::user_permissions::{UserPermissions, user_label};
use crate::wire::{ShellAccepted, ShellFault, ShellFaultKind, ShellSubmission};
use crate::{
    MailboxIndex, NumberParser, ShellOptions, ShellRecordSource, SubscriberNumber, inbox, submission,
};
use engine::{EngineAnswer, Event};
use model::Timestamp;
use parking_lot::Mutex;
use ports::{EngineClient, EventSink, LinkRegistry, Protocol, RateLimiter, RefusalRecord, Routing};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::Store;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

/// The socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// Another daemon listens on the socket.
    #[error("[shell] socket = {0:?}: another program listens on it")]
    InUse(PathBuf),
    /// The path exists and is not a socket.
    #[error(
        "[shell] socket = {0:?}: the path exists and is not a socket; configure another path or remove it"
    )]
    NoSocket(PathBuf),
    /// A system call failed.
    #[error("[shell] socket = {path:?}: {what}: {source}")]
    System {
        /// Path of the socket.
        path: PathBuf,
        /// The failed operation.
        what: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}

/// Dependencies of the shell server.
pub struct ShellDeps {
    /// Takes events for the engine.
    pub core: Arc<dyn EventSink>,
    /// Routes messages.
    pub routing: Arc<dyn Routing>,
    /// Registry of live links; dispatches the engine's commands.
    pub registry: Arc<LinkRegistry>,
    /// Messages that are not archived yet.
    pub store: Arc<Store>,
    /// The mailbox index, which observes every commit.
    pub mailbox_index: Arc<MailboxIndex>,
    /// Message states and the archive.
    pub records: Arc<dyn ShellRecordSource>,
    /// Parses dialled numbers.
    pub number_parser: Arc<dyn NumberParser>,
}

/// The running shell server.
pub struct ShellServer {
    path: PathBuf,
    stop: watch::Sender<bool>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

/// State of the shell server, for metrics.
#[derive(Debug, Clone, Default)]
pub struct ShellState {
    /// Open connections.
    pub connections: usize,
    /// Callers that were turned away: without permission or over a limit.
    pub turned_away: u64,
    /// Requests since the start, by operation and result: `ok`, or the kind of fault.
    pub requests: BTreeMap<(&'static str, &'static str), u64>,
}

/// State shared by all connections.
pub(crate) struct Shared {
    options: Mutex<Arc<ShellOptions>>,
    pub(crate) reader: Arc<RecordReader>,
    pub(crate) connection_slots: Arc<ConnectionSlots>,
    core: Arc<dyn EventSink>,
    routing: Arc<dyn Routing>,
    number_parser: Arc<dyn NumberParser>,
    engine_client: EngineClient,
    registry: Arc<LinkRegistry>,
    rate_limiters: Mutex<HashMap<SubscriberNumber, (RateLimiter, Instant)>>,
    connection_permits: Arc<Semaphore>,
    turned_away: AtomicU64,
    requests: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
}

/// Interval of mailbox maintenance.
const MAILBOX_MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);

impl ShellServer {
    /// Opens the socket. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn open(options: ShellOptions, ports: ShellDeps) -> Result<Self, ShellError> {
        let path = options.socket.clone();
        let listener = listen(&options)?;
        let options = Arc::new(options);
        let ShellDeps { core, routing, registry, store, mailbox_index, records, number_parser } = ports;
        let shared = Arc::new(Shared {
            options: Mutex::new(options.clone()),
            reader: Arc::new(RecordReader { store, mailbox_index: mailbox_index.clone(), records }),
            connection_slots: Arc::default(),
            core: core.clone(),
            routing,
            number_parser,
            engine_client: EngineClient::open_for(&registry, Protocol::Shell),
            registry: registry.clone(),
            rate_limiters: Mutex::default(),
            connection_permits: Arc::new(Semaphore::new(options.connections)),
            turned_away: AtomicU64::new(0),
            requests: Mutex::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let tasks = vec![
            tokio::spawn(inbox::run(core, registry.clone(), options.clone(), stopped.clone())),
            tokio::spawn(accept(shared.clone(), listener, stopped.clone())),
            tokio::spawn(maintain_mailboxes(mailbox_index, options, stopped)),
        ];
        Ok(Self { path, stop, tasks: Mutex::new(tasks), shared })
    }

    /// Changes the options for the next requests and connections, except for the socket, the users and the number of
    /// connections.
    pub fn set_options(&self, options: ShellOptions) {
        *self.shared.options.lock() = Arc::new(options);
        self.shared.rate_limiters.lock().clear();
    }

    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A snapshot of the state.
    #[must_use]
    pub fn state(&self) -> ShellState {
        let shared = &self.shared;
        ShellState {
            connections: shared
                .options()
                .connections
                .saturating_sub(shared.connection_permits.available_permits()),
            turned_away: shared.turned_away.load(Relaxed),
            requests: shared.requests.lock().clone(),
        }
    }

    /// Shuts down: accepts no new connections; open ones end with their next answer, or after `within`. The engine must
    /// keep running until then.
    pub async fn shutdown(&self, within: Duration) {
        // Remove the path first, so that new callers fail at once.
        let _ = std::fs::remove_file(&self.path);
        self.stop.send_replace(true);
        let tasks: Vec<_> = self.tasks.lock().drain(..).collect();
        let deadline = tokio::time::Instant::now() + within;
        for mut task in tasks {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
        self.shared.engine_client.close();
    }
}

fn listen(options: &ShellOptions) -> Result<UnixListener, ShellError> {
    let path = &options.socket;
    let system_error = |what| move |source| ShellError::System { path: path.clone(), what, source };
    if let Ok(metadata) = std::fs::symlink_metadata(path) {
        if !metadata.file_type().is_socket() {
            return Err(ShellError::NoSocket(path.clone()));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(ShellError::InUse(path.clone()));
        }
        // A stale socket of a killed daemon.
        std::fs::remove_file(path).map_err(system_error("removing a stale socket"))?;
    }
    let listener = UnixListener::bind(path).map_err(system_error("creating it"))?;
    if options.group.is_some() {
        std::os::unix::fs::chown(path, None, options.group).map_err(system_error("setting its group"))?;
    }
    // A caller that connects in between is checked by its credentials, too.
    let mode = std::fs::Permissions::from_mode(options.mode);
    std::fs::set_permissions(path, mode).map_err(system_error("setting its mode"))?;
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
            Ok((stream, _)) => match shared.connection_permits.clone().try_acquire_owned() {
                Ok(place) => {
                    let (shared, stop) = (shared.clone(), stop.clone());
                    connections.spawn(async move {
                        serve_connection(&shared, stream, stop).await;
                        drop(place);
                    });
                }
                Err(_) => {
                    shared.turned_away();
                    let detail = "too many connections; try again later";
                    connection::reject(&stream, &ShellFault::new(ShellFaultKind::Unavailable, detail));
                }
            },
            Err(error) => {
                tracing::warn!(%error, "shell connection cannot be accepted");
                // Usually the process is out of file descriptors; an immediate retry would fail again.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn serve_connection(shared: &Arc<Shared>, stream: UnixStream, stop: watch::Receiver<bool>) {
    let credentials = match stream.peer_cred() {
        Ok(credentials) => credentials,
        Err(error) => {
            tracing::warn!(%error, "shell caller without credentials");
            return;
        }
    };
    let (uid, gid, options) = (credentials.uid(), credentials.gid(), shared.options());
    let permissions = tokio::task::spawn_blocking(move || {
        UserPermissions::of_caller(&options, uid, gid).ok_or_else(|| user_label(uid))
    });
    match permissions.await {
        Ok(Ok(permissions)) => connection::serve(shared, &permissions, stream, stop).await,
        Ok(Err(name)) => {
            shared.turned_away();
            tracing::info!(uid, "shell caller not permitted");
            let detail =
                format!("{name} may not use this appliance; an admin can change that in [[shell.users]]");
            connection::reject(&stream, &ShellFault::new(ShellFaultKind::NotAllowed, detail));
        }
        Err(_) => {}
    }
}

async fn maintain_mailboxes(
    mailbox_index: Arc<MailboxIndex>,
    options: Arc<ShellOptions>,
    mut stop: watch::Receiver<bool>,
) {
    if let Err(error) = mailbox_index.open_configured(&options.numbers()).await {
        tracing::error!(%error, "store cannot be read, inboxes are opened on demand");
    }
    let mut interval = tokio::time::interval(MAILBOX_MAINTENANCE_INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
        let mailbox_index = mailbox_index.clone();
        let result = tokio::task::spawn_blocking(move || mailbox_index.remove_stale(Instant::now())).await;
        if let Ok(Err(error)) = result {
            tracing::warn!(%error, "store cannot be read");
        }
    }
}

impl Shared {
    pub(crate) fn options(&self) -> Arc<ShellOptions> {
        self.options.lock().clone()
    }

    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
    }

    pub(crate) fn count(&self, request: &'static str, result: &'static str) {
        *self.requests.lock().entry((request, result)).or_default() += 1;
    }

    /// Submits a message. The answer follows after the message is on disk.
    pub(crate) async fn submit(
        &self,
        view: &Viewer,
        submission: &ShellSubmission,
    ) -> Result<ShellAccepted, ShellFault> {
        let Viewer::Subscriber(caller) = view else {
            return Err(ShellFault::new(
                ShellFaultKind::NotAllowed,
                "an operator has no number to send from; use --as",
            ));
        };
        let prepared = submission::idempotency_key(submission, caller).and_then(|key| {
            Ok((
                key,
                submission::message(
                    submission,
                    caller,
                    &*self.number_parser,
                    &self.options(),
                    Timestamp::now(),
                )?,
            ))
        });
        let rate_checked =
            prepared.and_then(|prepared| self.check_rate(caller, Instant::now()).map(|()| prepared));
        let (key, mut message) = rate_checked.inspect_err(|fault| self.record_refusal(caller, fault))?;
        self.routing.route(&mut message);
        let to = crate::number::display_number(&message.destination);
        let event = |reply| Event::AcceptMany { messages: vec![message], shared_id: false, key, reply };
        let answer = self.engine_client.request(&*self.core, self.options().submit_timeout, event).await;
        match answer.map_err(|error| ShellFault::new(ShellFaultKind::Unavailable, error.to_string()))? {
            EngineAnswer::AcceptedMany(results) => match results.first() {
                Some(Ok(id)) => Ok(ShellAccepted { message: id.to_string(), to }),
                Some(Err(refusal)) => Err(submission::fault_for(*refusal)),
                None => Err(submission::fault_for(model::Refusal::Internal)),
            },
            EngineAnswer::Refused(refusal) => Err(submission::fault_for(refusal)),
            _ => Err(submission::fault_for(model::Refusal::Internal)),
        }
    }

    /// Records a submission that is refused before it reaches the engine. The record contains no text or number of the
    /// submission.
    fn record_refusal(&self, caller: &SubscriberNumber, fault: &ShellFault) {
        let (code, source) = (fault.kind.name(), caller.address());
        let (at, destination) = (Timestamp::now(), model::Address::default());
        let refused =
            RefusalRecord { at, protocol: Protocol::Shell, source, destination, code, reason: code.into() };
        self.registry.refusals().record(self.options().peer, refused, 1);
    }

    fn check_rate(&self, caller: &SubscriberNumber, now: Instant) -> Result<(), ShellFault> {
        /// Above this number of rate limiters, those at their full burst are dropped.
        const MAX_RATE_LIMITERS: usize = 10_000;
        let options = self.options();
        let Some(rate) = options.rate else { return Ok(()) };
        let mut rate_limiters = self.rate_limiters.lock();
        if rate_limiters.len() >= MAX_RATE_LIMITERS {
            let full_after = Duration::from_secs_f64((f64::from(options.burst) / rate).clamp(1.0, 86_400.0));
            rate_limiters.retain(|_, (_, used)| now.saturating_duration_since(*used) < full_after);
        }
        let fresh = || (RateLimiter::new(rate, options.burst, now), now);
        let (limiter, last_used) = rate_limiters.entry(caller.clone()).or_insert_with(fresh);
        *last_used = now;
        if limiter.take(1, now) { Ok(()) } else { Err(submission::fault_for(model::Refusal::Throttled)) }
    }
}
