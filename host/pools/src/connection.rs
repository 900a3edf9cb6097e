//! A connection: moves octets between the socket and the request handler.

use crate::accounts::Account;
use crate::client_socket::{ClientSocket, SocketStep};
use crate::leader_connection::{LeaderAnswer, LeaderConnection};
use crate::request_handler::{Login, RequestHandler};
use crate::server_state::{RedisSettings, Shared};
use ports::{
    ConnectionPermit, LinkCommand, LinkHandle, LoginAccount, LoginAttempt, LoginInterface, LoginRefused,
    LoginSecret, PassOn, PassedConnection, PassedInterface, Protocol, Socket, clock,
};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::watch;
use tokio::time::sleep_until;

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

impl ReadEnd {
    /// Whether the client waits for its answers.
    fn has_waiting_client(self) -> bool {
        self == Self::ClientClosed
    }
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientOrigin {
    pub(crate) remote: SocketAddr,
    /// The address to which the client has connected.
    pub(crate) local: SocketAddr,
    /// Whether another node of the cluster has passed it on: then all its logins are decided here.
    pub(crate) was_passed_on: bool,
}

pub(crate) struct Connection {
    shared: Arc<Shared>,
    settings: Arc<RedisSettings>,
    origin: ClientOrigin,
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
        origin: ClientOrigin,
        permit: Arc<ConnectionPermit>,
    ) -> Self {
        let handle = LinkHandle::register(shared.core.clone(), shared.registry.clone(), Protocol::Internal);
        let session = shared.session(&settings, origin.local);
        let handler = RequestHandler::new(shared.clone(), settings.clone(), session, handle.link());
        let login_deadline = clock::now() + settings.options.login_timeout;
        Self {
            shared,
            settings,
            origin,
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
    pub(crate) async fn run(mut self, socket: Socket, shutdown_signal: watch::Receiver<Option<Instant>>) {
        let mut client = ClientSocket::new(socket);
        // Created once: a new future per iteration would make all connections contend for its lock.
        let shutdown_requested = shutdown_requested(shutdown_signal);
        tokio::pin!(shutdown_requested);
        let timer = sleep_until(self.login_deadline.into());
        tokio::pin!(timer);
        loop {
            if let Some(leader) = self.exchange(&mut client).await {
                let session = &mut self.handler.session;
                let (output, rest) = (session.output().to_vec(), session.take_unprocessed());
                let closing = async move {
                    let _: Instant = shutdown_requested.await;
                };
                return leader.serve(client.into_socket(), &output, &rest, closing).await;
            }
            if self.handler.session.is_http() {
                if self.shared.may_log() {
                    let remote = self.origin.remote;
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
                step = client.step(&mut self.handler.session, reading) => match step {
                    SocketStep::Received(Ok(0)) => self.read_end = Some(ReadEnd::ClientClosed),
                    SocketStep::Received(Ok(_)) => {}
                    SocketStep::Received(Err(_)) => self.read_end = Some(ReadEnd::Broken),
                    SocketStep::Written(written) => {
                        self.note_written(Some(&written));
                    }
                },
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
            tracing::info!(remote = %self.origin.remote, authenticated, stalled, "redis client timed out");
        }
        passed
    }

    /// Passes requests to the engine and answers to the client, until neither makes progress. Returns the leader of another
    /// partition that has logged the client in.
    async fn exchange(&mut self, client: &mut ClientSocket) -> Option<LeaderConnection> {
        loop {
            while let Some(login) = self.handler.collect_events() {
                self.push_events();
                if let Some((pass_on, partition)) = self.partition_of(&login) {
                    // In a place of its own: most connections stay here, and each is as large as its largest future.
                    let passing = Box::pin(self.log_in_at_leader(&login, &*pass_on, partition));
                    if let Some(leader) = passing.await {
                        return Some(leader);
                    }
                } else {
                    let account = self.authenticate(&login).await;
                    self.handler.finish_login(&login, account);
                }
            }
            self.push_events();
            if !self.write(client).await {
                return None;
            }
        }
    }

    /// The partition that decides a login, if it is another one than this process's. A client that is logged in, or whose
    /// requests are pending, stays here.
    fn partition_of(&self, login: &Login) -> Option<(Arc<dyn PassOn>, u8)> {
        let is_new = !self.handler.session.is_authenticated() && !self.handler.has_pending();
        let can_pass =
            is_new && !self.origin.was_passed_on && self.read_end.is_none_or(ReadEnd::has_waiting_client);
        let pass_on = self.shared.registry.pass_on().filter(|_| can_pass)?;
        Some((pass_on.clone(), pass_on.elsewhere(LoginInterface::Redis, &login.name)?))
    }

    /// Asks the leader of another partition to log the client in. If it refuses, the login is answered here.
    async fn log_in_at_leader(
        &mut self,
        login: &Login,
        pass_on: &dyn PassOn,
        partition: u8,
    ) -> Option<LeaderConnection> {
        let connection = PassedConnection {
            interface: PassedInterface::Login(LoginInterface::Redis),
            listener: "redis".to_owned(),
            remote: self.origin.remote,
            local: Some(self.origin.local),
            tls: false,
        };
        let request = self.handler.session.login_request();
        let asking = LeaderConnection::log_in(pass_on, partition, connection, request);
        let remote = self.origin.remote;
        // Until the leader has answered, the connection counts as one without a login, and may be displaced.
        let refusal = match tokio::time::timeout_at(self.login_deadline.into(), asking).await {
            Ok(Ok(LeaderAnswer::Accepted(leader))) => {
                self.permit.identify();
                tracing::debug!(%remote, partition, "redis client passed on");
                return Some(leader);
            }
            Ok(Ok(LeaderAnswer::Refused(error))) => error,
            failed => {
                if self.shared.may_log() {
                    let reason = match failed {
                        Ok(Err(error)) => error.to_string(),
                        _ => "it has not answered in time".to_owned(),
                    };
                    tracing::warn!(%remote, partition, reason, "redis client not passed on to the leader of its partition");
                }
                format!(
                    "TRYAGAIN the leader of partition {partition}, which has the pools of this account, does not answer at the moment"
                )
            }
        };
        self.handler.session.refuse_login(login.ticket, &refusal);
        None
    }

    fn push_events(&mut self) {
        let events = self.handler.take_events();
        if !events.is_empty() {
            self.shared.core.push(events);
        }
    }

    /// Writes as much as the socket accepts. Returns whether anything was written.
    async fn write(&mut self, client: &mut ClientSocket) -> bool {
        let output = self.handler.session.output();
        if output.is_empty() {
            return false;
        }
        let written = match self.read_end {
            Some(ReadEnd::Broken) => Some(Ok(output.len())),
            _ => client.try_write(output).await,
        };
        self.note_written(written.as_ref())
    }

    /// Notes what was written of the output; `None`: the socket takes nothing now. Returns whether anything was written.
    fn note_written(&mut self, written: Option<&io::Result<usize>>) -> bool {
        let octets = match written {
            None => {
                self.stalled_since.get_or_insert_with(clock::now);
                return false;
            }
            Some(Ok(octets)) if *octets > 0 => *octets,
            Some(_) => {
                self.read_end = Some(ReadEnd::Broken);
                self.handler.session.output().len()
            }
        };
        self.handler.session.mark_written(octets);
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
            remote: self.origin.remote.ip(),
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
            tracing::warn!(remote = %self.origin.remote, account = %name, "redis login failed");
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
