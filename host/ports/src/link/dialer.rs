//! The dialer: connects to a peer, logs in, and reconnects.

use super::back_off::BackOff;
use super::driver::{ControlReceiver, Driver, LinkEnd};
use super::link_record::LinkRecord;
use super::{ClientTls, LinkControl, LinkDeps, LinkProtocol, Socket, TlsError};
use crate::{PassedConnection, PassedInterface, clock};
use api::{LinkPhase, LinkRole};
use model::PeerId;
use rustls_pki_types::ServerName;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_rustls::TlsConnector;

/// A peer cannot be dialed as configured.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The TLS settings cannot be used.
    #[error("peer {name:?}: {reason}")]
    Tls {
        /// The peer.
        name: String,
        /// The cause.
        reason: TlsError,
    },
    /// The address is malformed.
    #[error(
        "peer {name:?}: {address:?} is not an address: expected host:port, such as smsc.example.net:2775"
    )]
    Address {
        /// The peer.
        name: String,
        /// The address as configured.
        address: String,
    },
    /// The appliance is shutting down.
    #[error("the appliance is shutting down")]
    ShuttingDown,
}

/// A peer to dial.
#[derive(Clone, Debug)]
pub struct DialTarget {
    /// The name of the peer.
    pub name: String,
    /// The peer id.
    pub peer: PeerId,
    /// Host and port. With a partition, its name in errors.
    pub address: String,
    /// Connect to the leader of this partition instead of the address.
    pub partition: Option<u8>,
    /// The number of links to keep up; at least 1.
    pub links: usize,
    /// The time for the connection and the TLS handshake.
    pub connect_timeout: Duration,
    /// The longest wait before the peer is dialed again; the first is one second, and each is twice the one before.
    pub redial_interval: Duration,
    /// The wait after a link that was stable, if the protocol is not made for long connections: its end is no error
    /// then.
    pub redial_stable_after: Option<Duration>,
    /// TLS options, if the peer uses TLS.
    pub tls: Option<ClientTls>,
}

/// A peer whose links are kept up.
#[derive(Debug)]
pub struct DialedPeer {
    controls: Vec<UnboundedSender<LinkControl>>,
}

impl DialedPeer {
    /// Closes all links; they have until `until`.
    pub fn stop(&self, until: Instant) {
        for control in &self.controls {
            let _ = control.send(LinkControl::Close(until));
        }
    }
}

/// Dials one link to a peer, and keeps it up.
struct Dialer<F> {
    deps: Arc<LinkDeps>,
    target: Arc<DialTarget>,
    record: Arc<LinkRecord>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    create: Arc<F>,
}

/// Starts to dial a peer. `create` makes the protocol's side of a new connection.
///
/// # Errors
/// If the address is malformed or the TLS options cannot be used.
pub fn dial<P: LinkProtocol>(
    deps: &Arc<LinkDeps>,
    target: DialTarget,
    create: impl Fn(Instant) -> P + Send + Sync + 'static,
) -> Result<DialedPeer, PeerError> {
    if deps.is_shutting_down() {
        return Err(PeerError::ShuttingDown);
    }
    let host = match target.partition {
        Some(_) => Some(""),
        None => host_of(&target.address),
    };
    let host = host
        .ok_or_else(|| PeerError::Address { name: target.name.clone(), address: target.address.clone() })?;
    let tls = match &target.tls {
        Some(tls) => {
            Some(tls.connector(host).map_err(|reason| PeerError::Tls { name: target.name.clone(), reason })?)
        }
        None => None,
    };
    let (target, create) = (Arc::new(target), Arc::new(create));
    let mut controls = Vec::new();
    for number in 0..target.links.max(1) {
        let (control, commands) = unbounded_channel();
        controls.push(control);
        let record =
            LinkRecord::new(LinkRole::Client, target.peer, &target.name, number, target.tls.is_some());
        let listed = deps.records.list(record.clone());
        let dialer = Dialer {
            deps: deps.clone(),
            target: target.clone(),
            record,
            tls: tls.clone(),
            create: create.clone(),
        };
        deps.spawn(async move {
            dialer.run(commands).await;
            drop(listed);
        });
    }
    Ok(DialedPeer { controls })
}

/// The host of an address.
fn host_of(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    let is_address = !host.is_empty() && port.parse::<u16>().is_ok();
    is_address.then(|| host.trim_start_matches('[').trim_end_matches(']'))
}

/// A link counts as stable after this time. A peer that accepts a login and closes at once must not be dialed in quick
/// succession.
const STABLE_AFTER: Duration = Duration::from_secs(5);

impl<P: LinkProtocol, F: Fn(Instant) -> P + Send + Sync + 'static> Dialer<F> {
    /// Keeps one link up until it is told to close.
    async fn run(self, mut commands: ControlReceiver) {
        let mut backoff = BackOff::new(self.target.redial_interval);
        loop {
            let (end, returned) = self.dial_once(commands).await;
            commands = returned;
            if end.requested {
                break;
            }
            let stable =
                end.bound_at.filter(|at| clock::now().saturating_duration_since(*at) >= STABLE_AFTER);
            if stable.is_some() {
                backoff.reset();
            }
            let wait = match self.target.redial_stable_after.filter(|_| stable.is_some()) {
                Some(wait) => wait,
                None => {
                    self.record.set_error(end.reason.clone());
                    let least = end.refused.as_ref().map_or(Duration::ZERO, |refusal| refusal.least_wait);
                    backoff.next_wait(least)
                }
            };
            let (peer, link, reason) = (&self.target.name, self.record.number, &end.reason);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            if let Some(check) = end.refused.and_then(|refusal| refusal.check) {
                tracing::error!(%peer, link, %reason, wait_ms, "login refused; check {check}");
            } else {
                tracing::warn!(%peer, link, %reason, wait_ms, "link down");
            }
            self.record.set_back_off(wait);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.record.dial_now.notified() => backoff.reset(),
                _ = commands.recv() => break,
            }
        }
    }

    /// Runs one connection, from the dial to its end.
    async fn dial_once(&self, mut commands: ControlReceiver) -> (LinkEnd, ControlReceiver) {
        self.record.set_phase(LinkPhase::Connecting);
        let failed = |reason: String, requested| LinkEnd { reason, refused: None, bound_at: None, requested };
        let socket = tokio::select! {
            connected = tokio::time::timeout(self.target.connect_timeout, self.connect()) => match connected {
                Ok(Ok(socket)) => socket,
                Ok(Err(reason)) => return (failed(reason, false), commands),
                Err(_) => {
                    let reason = format!("{}: connect timeout", self.target.address);
                    return (failed(reason, false), commands);
                }
            },
            _ = commands.recv() => return (failed("closed on request".to_owned(), true), commands),
        };
        self.record.set_phase(LinkPhase::Binding);
        // The link handles the commands. They pass through here so that the next connection can get them too.
        let (control, inner) = unbounded_channel();
        let protocol = (self.create)(clock::now());
        let driver = Driver::new(self.deps.clone(), self.record.clone(), socket, protocol, inner);
        // The link runs in a task of its own: if that panics, the peer is dialed again nevertheless.
        let mut run = tokio::spawn(driver.run());
        let mut requested = false;
        let mut end = loop {
            tokio::select! {
                end = &mut run => match end {
                    Ok(end) => break end,
                    Err(fault) => break failed(format!("internal error: {fault}"), false),
                },
                command = commands.recv(), if !requested => {
                    requested = true;
                    let _ = control.send(command.unwrap_or_else(|| LinkControl::Close(clock::now())));
                }
            }
        };
        end.requested |= requested;
        if let Some(refusal) = &end.refused {
            end.reason.clone_from(&refusal.reason);
        }
        (end, commands)
    }

    async fn connect(&self) -> Result<Socket, String> {
        if let Some(partition) = self.target.partition {
            return self.connect_to_partition(partition).await;
        }
        let address = &self.target.address;
        let stream = TcpStream::connect(address.as_str())
            .await
            .map_err(|error| format!("{address}: cannot connect: {error}"))?;
        if let Ok(remote) = stream.peer_addr() {
            self.record.set_remote(remote);
        }
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => Ok(Socket::Plain(stream)),
            Some((connector, name)) => {
                let stream = connector
                    .connect(name.clone(), stream)
                    .await
                    .map_err(|error| format!("{address}: TLS: {error}"))?;
                Ok(Socket::Tls(Box::new(stream.into())))
            }
        }
    }

    async fn connect_to_partition(&self, partition: u8) -> Result<Socket, String> {
        let address = &self.target.address;
        let pass_on = self.deps.registry.pass_on();
        let pass_on = pass_on.ok_or_else(|| format!("{address}: this appliance belongs to no cluster"))?;
        let connection = PassedConnection {
            interface: PassedInterface::Partition,
            // This node itself is the client.
            listener: String::new(),
            remote: (Ipv4Addr::UNSPECIFIED, 0).into(),
            local: None,
            tls: true,
        };
        let socket = pass_on.connect(partition, connection).await;
        socket.map_err(|error| format!("{address}: cannot connect: {error}"))
    }
}
