//! Open listeners. When a listener's options change, its socket and its connections stay.

use super::driver::Driver;
use super::link_record::LinkRecord;
use super::{LinkControl, LinkDeps, LinkPhase, LinkProtocol, LinkRole, Socket, TlsError};
use crate::pass_on::splice;
use crate::{
    Acceptor, ConnectionLimitReached, ConnectionLimiter, ConnectionLimits, ConnectionPermit, FirstRequest,
    LoginAttempt, PassOn, PassedConnection, PassedInterface, ServerTlsFiles, SessionPermit, SessionRequest,
    clock,
};
use bytes::BytesMut;
use model::PeerId;
use std::fmt;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// A listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// The address cannot be bound.
    #[error("listener {name:?}: cannot listen on {address}: {reason}")]
    Socket {
        /// The listener's name.
        name: String,
        /// The address.
        address: SocketAddr,
        /// The cause.
        reason: io::Error,
    },
    /// The TLS files cannot be used.
    #[error("listener {name:?}: {reason}")]
    Tls {
        /// The listener's name.
        name: String,
        /// The cause.
        reason: TlsError,
    },
    /// A listener of this name is open.
    #[error("a listener {0:?} exists already")]
    NameTaken(String),
    /// The appliance is shutting down.
    #[error("the appliance is shutting down")]
    ShuttingDown,
}

/// The settings of a listener that every protocol has.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSettings {
    /// The name in the configuration.
    pub name: String,
    /// Address and port; port 0 takes any free port.
    pub listen: SocketAddr,
    /// The limits of its connections.
    pub limits: ConnectionLimits,
    /// The time for the TLS handshake.
    pub handshake_timeout: Duration,
    /// The TLS files, if the listener uses TLS.
    pub tls: Option<ServerTlsFiles>,
}

/// Serves a connection that another node has passed on.
type ServePassed = Box<dyn Fn(Socket, PassedConnection, ConnectionPermit) + Send + Sync>;

/// An open listener; `O` are the options that its connections were given.
pub struct Listener<O> {
    address: SocketAddr,
    serve_passed: ServePassed,
    options: O,
    settings: ListenerSettings,
    socket: Arc<TcpListener>,
    limiter: Arc<ConnectionLimiter>,
    close_signal: watch::Sender<Option<Instant>>,
    /// When it is dropped, accepting ends; open connections stay.
    accept_guard: watch::Sender<()>,
}

/// A listener that is ready to be opened.
pub struct PreparedListener<O> {
    options: O,
    settings: ListenerSettings,
    socket: Arc<TcpListener>,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl<O: Clone + PartialEq> PreparedListener<O> {
    /// Does every part of opening that can fail. `socket` is the socket of an open listener on the same address.
    ///
    /// # Errors
    /// If the address cannot be bound, or the TLS files cannot be used.
    pub async fn new(
        options: O,
        settings: ListenerSettings,
        socket: Option<Arc<TcpListener>>,
    ) -> Result<Self, ListenerError> {
        let name = &settings.name;
        let tls = match &settings.tls {
            Some(files) => {
                let config = files.read().map_err(TlsError::from);
                let config = config.map_err(|reason| ListenerError::Tls { name: name.clone(), reason })?;
                Some(TlsAcceptor::from(Arc::new(config)))
            }
            None => None,
        };
        let listen = settings.listen;
        let failed = |reason| ListenerError::Socket { name: name.clone(), address: listen, reason };
        let socket = match socket {
            Some(socket) => socket,
            None => Arc::new(TcpListener::bind(listen).await.map_err(failed)?),
        };
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { options, settings, socket, address, tls })
    }

    /// The name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &O {
        &self.options
    }

    /// Starts to accept connections. Takes over the connections of `before`, an older listener of the same name.
    /// `create` makes the protocol's side of a new connection.
    pub fn open<P: LinkProtocol>(
        self,
        deps: &Arc<LinkDeps>,
        before: Option<Listener<O>>,
        create: impl Fn(IncomingPeer) -> P + Send + Sync + 'static,
    ) -> Listener<O> {
        let Self { options, settings, socket, address, tls } = self;
        let (limiter, close_signal) = match before {
            Some(before) => (before.limiter, before.close_signal),
            None => {
                (ConnectionLimiter::new(settings.limits, deps.connections.clone()), watch::channel(None).0)
            }
        };
        limiter.set_limits(settings.limits);
        tracing::info!(listener = %settings.name, %address, tls = tls.is_some(), "listening");
        let (accept_guard, mut stop_signal) = watch::channel(());
        let connections = Acceptor::new(&settings.name, socket.clone(), limiter.clone());
        let server = Arc::new(Server {
            deps: deps.clone(),
            name: settings.name.as_str().into(),
            handshake_timeout: settings.handshake_timeout,
            tls,
            close_signal: close_signal.subscribe(),
            create,
        });
        let passed_to = server.clone();
        let serve_passed: ServePassed = Box::new(move |socket, passed, permit| {
            let (server, permit) = (passed_to.clone(), Arc::new(permit));
            server.deps.clone().spawn(async move {
                let displaced = permit.clone();
                tokio::select! {
                    () = server.serve_locally(socket, passed.remote, passed.tls, permit, BytesMut::new()) => {}
                    () = displaced.displaced() => {}
                }
            });
        });
        let mut closing = close_signal.subscribe();
        deps.spawn(async move {
            loop {
                let (stream, remote, permit) = tokio::select! {
                    accepted = connections.accept() => accepted,
                    _ = closing.changed() => break,
                    _ = stop_signal.changed() => return,
                };
                let (server, permit) = (server.clone(), Arc::new(permit));
                server.deps.clone().spawn(async move {
                    // Only a connection without a login is displaced. It waits for no answer.
                    tokio::select! {
                        () = server.serve(stream, remote, permit.clone()) => {}
                        () = permit.displaced() => {}
                    }
                });
            }
            tracing::info!(listener = %server.name, "listener closed");
        });
        Listener { address, serve_passed, options, settings, socket, limiter, close_signal, accept_guard }
    }
}

impl<O: fmt::Debug> fmt::Debug for Listener<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Listener")
            .field("address", &self.address)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<O: PartialEq> Listener<O> {
    /// The options.
    #[must_use]
    pub fn options(&self) -> &O {
        &self.options
    }

    /// Serves a connection that came to another node, as if it had come here. It is not passed on again.
    ///
    /// # Errors
    /// At a limit of this listener, which counts it for the client's address.
    pub fn accept_passed(
        &self,
        socket: Socket,
        connection: PassedConnection,
    ) -> Result<(), ConnectionLimitReached> {
        let permit = self.limiter.admit(connection.remote.ip())?;
        (self.serve_passed)(socket, connection, permit);
        Ok(())
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening and closes the connections until `until`.
    pub fn stop(&self, until: Instant) {
        self.close_signal.send_replace(Some(until));
    }

    /// Whether the listener has these options. A listener with TLS never matches: its files may have changed.
    #[must_use]
    pub fn matches(&self, wanted: &O) -> bool {
        self.options == *wanted && self.settings.tls.is_none() && !self.accept_guard.is_closed()
    }

    /// The listener's socket, if it listens on this address.
    #[must_use]
    pub fn socket_on(&self, address: SocketAddr) -> Option<Arc<TcpListener>> {
        (self.settings.listen == address).then(|| self.socket.clone())
    }
}

/// State that the connections of one listener share.
struct Server<F> {
    deps: Arc<LinkDeps>,
    name: Arc<str>,
    handshake_timeout: Duration,
    tls: Option<TlsAcceptor>,
    close_signal: watch::Receiver<Option<Instant>>,
    create: F,
}

impl<P: LinkProtocol, F: Fn(IncomingPeer) -> P + Send + Sync> Server<F> {
    /// Serves one connection, from the TLS handshake to its end.
    async fn serve(&self, stream: TcpStream, remote: SocketAddr, permit: Arc<ConnectionPermit>) {
        let Some(mut socket) = self.handshake(stream, remote).await else { return };
        let mut input = BytesMut::new();
        if let Some(pass_on) = self.deps.registry.pass_on() {
            // In a place of its own: most connections stay here, and each is as large as its largest future.
            let passing = Box::pin(self.pass_on(&**pass_on, socket, remote, &permit, &mut input));
            let Some(here) = passing.await else { return };
            socket = here;
        }
        self.serve_locally(socket, remote, self.tls.is_some(), permit, input).await;
    }

    /// Passes a connection on if it is the login of an account of another partition. Otherwise returns it, with what was read of
    /// it in `input`.
    async fn pass_on(
        &self,
        pass_on: &dyn PassOn,
        mut socket: Socket,
        remote: SocketAddr,
        permit: &ConnectionPermit,
        input: &mut BytesMut,
    ) -> Option<Socket> {
        let until = tokio::time::Instant::now() + self.handshake_timeout;
        let (interface, partition) = loop {
            match P::first_request(input) {
                FirstRequest::Other => return Some(socket),
                FirstRequest::Login(interface, name) => match pass_on.elsewhere(interface, &name) {
                    Some(partition) => break (interface, partition),
                    None => return Some(socket),
                },
                FirstRequest::Incomplete => {}
            }
            match tokio::time::timeout_at(until, socket.read_buf(input)).await {
                Ok(Ok(count)) if count > 0 => {}
                _ => {
                    if self.deps.log.take(clock::now()).is_some() {
                        let reason = "it sent no login in time";
                        tracing::info!(listener = %self.name, %remote, reason, "connection closed before the login");
                    }
                    return None;
                }
            }
        };
        let passed = PassedConnection {
            interface: PassedInterface::Login(interface),
            listener: self.name.to_string(),
            remote,
            local: None,
            tls: self.tls.is_some(),
        };
        let passing = async {
            let mut leader = pass_on.connect(partition, passed).await?;
            leader.write_all(input).await?;
            leader.flush().await?;
            let mut answer = BytesMut::new();
            let is_accepted = loop {
                if leader.read_buf(&mut answer).await? == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                if let Some(is_accepted) = P::is_accepted(&answer) {
                    break is_accepted;
                }
            };
            Ok((leader, answer, is_accepted))
        };
        // Until the leader has answered, the connection counts as one without a login, and may be displaced.
        let mut closing = self.close_signal.clone();
        match tokio::time::timeout_at(until, passing).await {
            Ok(Ok((leader, answer, is_accepted))) => {
                if is_accepted {
                    permit.identify();
                    tracing::debug!(listener = %self.name, %remote, partition, "connection passed on");
                }
                if socket.write_all(&answer).await.is_ok() && socket.flush().await.is_ok() {
                    tokio::select! {
                        () = splice(socket, leader, pending()) => {}
                        _ = closing.wait_for(Option::is_some) => {}
                    }
                }
            }
            failed => {
                if self.deps.log.take(clock::now()).is_some() {
                    let reason = match failed {
                        Ok(Err(error)) => error.to_string(),
                        _ => "it has not answered in time".to_owned(),
                    };
                    tracing::warn!(
                        listener = %self.name, %remote, partition, reason, "connection not passed on to the leader of its partition"
                    );
                }
                let _ = socket.write_all(&P::refuse_for_now(input)).await;
                let _ = socket.shutdown().await;
            }
        }
        None
    }

    /// Serves a connection, of which `input` was read already.
    async fn serve_locally(
        &self,
        socket: Socket,
        remote: SocketAddr,
        tls: bool,
        permit: Arc<ConnectionPermit>,
        input: BytesMut,
    ) {
        let (control, commands) = unbounded_channel();
        let record = LinkRecord::new(LinkRole::Server, PeerId(u32::MAX), "", 0, tls);
        record.set_remote(remote);
        record.set_phase(LinkPhase::Binding);
        let mut protocol = (self.create)(IncomingPeer {
            deps: self.deps.clone(),
            listener: self.name.clone(),
            remote,
            tls,
            permit,
            control: control.clone(),
        });
        protocol.input().extend_from_slice(&input);
        let driver = Driver::new(self.deps.clone(), record, socket, protocol, commands);
        let close_forwarder = self.forward_close(control);
        let end = driver.run();
        tokio::pin!(close_forwarder, end);
        // The forwarder ends only after the link; polling it here saves one task per connection.
        let end = tokio::select! {
            end = &mut end => end,
            () = &mut close_forwarder => end.await,
        };
        if end.bound_at.is_none() && end.refused.is_none() && self.deps.log.take(clock::now()).is_some() {
            tracing::info!(
                listener = %self.name, %remote, reason = %end.reason, "connection closed before the login"
            );
        }
    }

    async fn handshake(&self, stream: TcpStream, remote: SocketAddr) -> Option<Socket> {
        let Some(tls) = &self.tls else { return Some(Socket::Plain(stream)) };
        let error = match tokio::time::timeout(self.handshake_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => return Some(Socket::Tls(Box::new(stream.into()))),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "handshake timeout".to_owned(),
        };
        self.deps.logins.handshakes_failed.fetch_add(1, Relaxed);
        if self.deps.log.take(clock::now()).is_some() {
            tracing::warn!(listener = %self.name, %remote, %error, "TLS handshake failed");
        }
        None
    }

    /// Forwards the listener's close signal to a connection.
    async fn forward_close(&self, control: UnboundedSender<LinkControl>) {
        let mut close_signal = self.close_signal.clone();
        let until = match close_signal.wait_for(Option::is_some).await {
            Ok(until) => *until,
            Err(_) => None,
        };
        let _ = control.send(LinkControl::Close(until.unwrap_or_else(clock::now)));
    }
}

/// The peer of an incoming connection, before its login is decided.
#[derive(Clone)]
pub struct IncomingPeer {
    /// Dependencies that all links share.
    pub deps: Arc<LinkDeps>,
    /// The address of the remote end.
    pub remote: SocketAddr,
    listener: Arc<str>,
    tls: bool,
    /// Marked as identified when a login is accepted.
    permit: Arc<ConnectionPermit>,
    /// For the account's later commands to the session.
    control: UnboundedSender<LinkControl>,
}

impl IncomingPeer {
    /// Counts and logs the decision on a login, and returns it. After an accepted login the connection is not displaced any more.
    pub fn on_decision<T, C: fmt::Display>(
        &self,
        login: &LoginAttempt<'_>,
        decision: Result<T, (C, &'static str)>,
    ) -> Result<T, (C, &'static str)> {
        let Err((code, reason)) = &decision else {
            self.permit.identify();
            self.deps.logins.accepted.fetch_add(1, Relaxed);
            return decision;
        };
        self.deps.logins.refused.fetch_add(1, Relaxed);
        if self.deps.log.take(clock::now()).is_some() {
            let (listener, remote, interface) = (&self.listener, self.remote, login.interface.name());
            let name = String::from_utf8_lossy(login.name);
            tracing::warn!(%listener, %remote, protocol = interface, %name, %code, reason, "login refused");
        }
        decision
    }

    /// Acquires a session permit of an account, and creates the record of its link. `limit` is the number of sessions
    /// over this protocol; the account has a limit over all. The decision takes no longer than `timeout`.
    pub async fn acquire_session(
        &self,
        request: &SessionRequest<'_>,
    ) -> Option<(Arc<LinkRecord>, SessionPermit)> {
        let record = LinkRecord::new(LinkRole::Server, request.limits.peer(), request.name, 0, self.tls);
        record.set_remote(self.remote);
        let permit = request.limits.acquire_session(request, &record, &self.control).await?;
        Some((record, permit))
    }
}
