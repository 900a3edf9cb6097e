//! A connection: moves octets between the socket and the request handler.

use crate::accounts::Account;
use crate::request_handler::{Login, RequestHandler};
use crate::server_state::{RedisSettings, Shared};
use ports::{
    ConnectionPermit, LinkCommand, LinkHandle, LoginAccount, LoginAttempt, LoginInterface, LoginRefused,
    LoginSecret, Protocol, clock,
};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::sleep_until;

/// Octets per read. The buffer belongs to the thread, since most connections are idle.
const READ_SIZE: usize = 64 << 10;

thread_local! {
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into_boxed_slice());
}

/// Reason why reading has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadEnd {
    /// The client has closed its side.
    ClientClosed,
    /// The connection is broken: pending requests are completed, and their answers dropped.
    Broken,
    /// The server shuts down, with this deadline.
    ShuttingDown(Instant),
}

pub(crate) struct Connection {
    shared: Arc<Shared>,
    settings: Arc<RedisSettings>,
    remote: SocketAddr,
    permit: Arc<ConnectionPermit>,
    handler: RequestHandler,
    /// The registration for the engine's answers.
    handle: LinkHandle,
    read_end: Option<ReadEnd>,
    /// Whether the server shuts down.
    shutting_down: bool,
    /// Since when the client has not read its pending answers.
    stalled_since: Option<Instant>,
    login_deadline: Instant,
}

impl Connection {
    pub(crate) fn new(
        shared: Arc<Shared>,
        settings: Arc<RedisSettings>,
        (remote, local): (SocketAddr, SocketAddr),
        permit: Arc<ConnectionPermit>,
    ) -> Self {
        let handle = LinkHandle::register(shared.core.clone(), shared.registry.clone(), Protocol::Internal);
        let session = shared.session(&settings, local);
        let handler = RequestHandler::new(shared.clone(), settings.clone(), session, handle.link());
        let login_deadline = clock::now() + settings.options.login_timeout;
        Self {
            shared,
            settings,
            remote,
            permit,
            handler,
            handle,
            read_end: None,
            shutting_down: false,
            stalled_since: None,
            login_deadline,
        }
    }

    /// Serves the client until either side closes the connection.
    pub(crate) async fn run(
        mut self,
        mut stream: TcpStream,
        shutdown_signal: watch::Receiver<Option<Instant>>,
    ) {
        let (mut reader, writer) = stream.split();
        // Created once: a new future per iteration would make all connections contend for its lock.
        let shutdown_requested = shutdown_requested(shutdown_signal);
        tokio::pin!(shutdown_requested);
        let timer = sleep_until(self.login_deadline.into());
        tokio::pin!(timer);
        loop {
            self.exchange(&writer).await;
            if self.handler.session.is_http() {
                if self.shared.may_log() {
                    let remote = self.remote;
                    tracing::warn!(%remote, "redis client sent an http request, connection closed");
                }
                break;
            }
            let has_output = !self.handler.session.output().is_empty();
            if !has_output
                && (self.handler.session.is_finished() || (self.read_end.is_some() && self.handler.is_idle()))
            {
                break;
            }
            let deadline = self.next_deadline();
            if let Some(at) = deadline
                && timer.deadline() != at.into()
            {
                timer.as_mut().reset(at.into());
            }
            let reading = self.read_end.is_none() && self.handler.session.wants_bytes();
            // Random order: a client that always sends must not starve the timer.
            tokio::select! {
                batch = self.handle.recv() => self.handle_commands(batch),
                read = receive(&mut reader, &mut self.handler), if reading => match read {
                    Ok(0) => self.read_end = Some(ReadEnd::ClientClosed),
                    Ok(_) => {}
                    Err(_) => self.read_end = Some(ReadEnd::Broken),
                },
                _ = writer.writable(), if has_output => {}
                deadline = &mut shutdown_requested, if !self.shutting_down => {
                    self.shutting_down = true;
                    if self.read_end != Some(ReadEnd::Broken) {
                        self.read_end = Some(ReadEnd::ShuttingDown(deadline));
                    }
                }
                () = &mut timer, if deadline.is_some() => {
                    if self.deadline_passed() {
                        break;
                    }
                }
            }
        }
    }

    /// The next deadline.
    fn next_deadline(&self) -> Option<Instant> {
        let stall_deadline = self.stalled_since.map(|since| since + self.settings.options.stall_timeout);
        let login = (!self.handler.session.is_authenticated()).then_some(self.login_deadline);
        let leaving = match self.read_end {
            Some(ReadEnd::ShuttingDown(deadline)) => Some(deadline),
            _ => None,
        };
        [stall_deadline, login, leaving].into_iter().flatten().min()
    }

    /// Checks the deadlines. Returns whether one has passed and the connection must be closed.
    fn deadline_passed(&mut self) -> bool {
        let passed = self.next_deadline().is_some_and(|at| at <= clock::now());
        if passed && self.shared.may_log() {
            let (authenticated, stalled) =
                (self.handler.session.is_authenticated(), self.stalled_since.is_some());
            tracing::info!(remote = %self.remote, authenticated, stalled, "redis client timed out");
        }
        passed
    }

    /// Passes requests to the engine and answers to the client, until neither makes progress.
    async fn exchange(&mut self, writer: &WriteHalf<'_>) {
        loop {
            while let Some(login) = self.handler.collect_events() {
                self.push_events();
                let account = self.authenticate(&login).await;
                self.handler.finish_login(&login, account);
            }
            self.push_events();
            if !self.write(writer) {
                return;
            }
        }
    }

    fn push_events(&mut self) {
        let events = self.handler.take_events();
        if !events.is_empty() {
            self.shared.core.push(events);
        }
    }

    /// Writes as much as the socket accepts. Returns whether anything was written.
    fn write(&mut self, writer: &WriteHalf<'_>) -> bool {
        let output = self.handler.session.output();
        if output.is_empty() {
            return false;
        }
        let written = match self.read_end {
            Some(ReadEnd::Broken) => output.len(),
            _ => match writer.try_write(output) {
                Ok(0) => return false,
                Ok(octets) => octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stalled_since.get_or_insert_with(clock::now);
                    return false;
                }
                Err(_) => {
                    self.read_end = Some(ReadEnd::Broken);
                    output.len()
                }
            },
        };
        self.handler.session.mark_written(written);
        self.stalled_since = None;
        true
    }

    fn handle_commands(&mut self, batch: Vec<LinkCommand>) {
        let mut next = Some(batch);
        while let Some(batch) = next {
            for command in batch {
                if let LinkCommand::Answer { token, answer } = command {
                    self.handler.handle_answer(token, answer);
                }
            }
            next = self.handle.try_recv();
        }
    }

    /// Authenticates a login. An unknown name and a wrong network take as long as a wrong password.
    async fn authenticate(&self, login: &Login) -> Option<Arc<Account>> {
        let shared = &self.shared;
        let account = self.settings.accounts.find(&login.name);
        let named = account.as_ref().map(|account| LoginAccount {
            account: None,
            networks: &account.options.networks,
            secret: LoginSecret::Hash(&account.options.password_hash),
        });
        let attempt = LoginAttempt {
            interface: LoginInterface::Redis,
            name: &login.name,
            password: &login.password,
            remote: self.remote.ip(),
        };
        let (registry, any_hash) = (shared.registry.accounts(), self.settings.accounts.any_hash());
        let checked = registry.authenticate(&shared.verifier, &attempt, named, any_hash).await;
        if checked.is_ok() {
            self.permit.identify();
            return account;
        }
        shared.counts.wrong_passwords.fetch_add(1, Relaxed);
        if !matches!(checked, Err(LoginRefused::Blocked(_))) && shared.may_log() {
            let name = String::from_utf8_lossy(&login.name);
            tracing::warn!(remote = %self.remote, account = %name, "redis login failed");
        }
        None
    }
}

/// Waits for the shutdown signal, and returns its deadline.
async fn shutdown_requested(mut shutdown_signal: watch::Receiver<Option<Instant>>) -> Instant {
    match shutdown_signal.wait_for(Option::is_some).await {
        Ok(deadline) => deadline.unwrap_or_else(clock::now),
        Err(_) => clock::now(),
    }
}

/// Reads once from the socket into the session.
async fn receive(reader: &mut ReadHalf<'_>, handler: &mut RequestHandler) -> io::Result<usize> {
    poll_fn(|context| {
        BUFFER.with_borrow_mut(|buffer| {
            let mut into = ReadBuf::new(buffer);
            ready!(Pin::new(&mut *reader).poll_read(context, &mut into))?;
            handler.session.receive(into.filled());
            Poll::Ready(Ok(into.filled().len()))
        })
    })
    .await
}
