//! The SGIP dialer: connects to gateways, to Submit, and to SPs, to Deliver and Report.

use super::connection::{Connection, ConnectionEnd};
use super::options::{GatewayOptions, SgipNodeOptions, SpOptions};
use super::outgoing::OutgoingTarget;
use crate::accounts::ControlReceiver;
use crate::accounts::LinkControl;
use crate::backoff::BackOff;
use crate::link_record::{LinkPhase, LinkRecord, LinkRole};
use crate::shared::Shared;
use crate::tracked_socket::Socket;
use crate::{PeerError, clock};
use model::PeerId;
use sgip::{Bind, LoginType, ResultCode, Sequence, Session, SgipOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};

/// A gateway or SP whose connections are kept up.
#[derive(Debug)]
pub(crate) struct DialedNode {
    controls: Vec<UnboundedSender<LinkControl>>,
}

impl DialedNode {
    /// Closes all connections; they have until `until`.
    pub(crate) fn stop(&self, until: Instant) {
        for control in &self.controls {
            let _ = control.send(LinkControl::Close(until));
        }
    }
}

/// A connection counts as stable after this time: some servers accept a login and close.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Dials one connection to a gateway or SP, and keeps it up.
struct Dialer {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    target: OutgoingTarget,
    address: String,
    bind: Bind,
    node: u32,
    bind_timeout: Duration,
    options: SgipOptions,
    /// Part 3 of the sequences of our own Binds.
    counter: AtomicU32,
}

/// Starts to dial a gateway.
pub(crate) fn gateway(
    shared: &Arc<Shared>,
    options: &Arc<GatewayOptions>,
    alive: &mpsc::Sender<()>,
) -> Result<DialedNode, PeerError> {
    let target = OutgoingTarget::Gateway(options.clone());
    let to = DialTarget { name: &options.name, peer: options.peer, address: &options.address };
    dial(shared, alive, &to, &target, (&options.node, LoginType::SP, options.bind_timeout))
}

/// Starts to dial an SP's listener.
pub(crate) fn sp(
    shared: &Arc<Shared>,
    name: &str,
    peer: PeerId,
    options: &Arc<SpOptions>,
    alive: &mpsc::Sender<()>,
) -> Result<DialedNode, PeerError> {
    let target = OutgoingTarget::Sp { peer, options: options.clone() };
    let to = DialTarget { name, peer, address: &options.address };
    dial(shared, alive, &to, &target, (&options.node, LoginType::GATEWAY, Duration::from_secs(10)))
}

/// The node to dial.
struct DialTarget<'a> {
    name: &'a str,
    peer: PeerId,
    address: &'a str,
}

fn dial(
    shared: &Arc<Shared>,
    alive: &mpsc::Sender<()>,
    to: &DialTarget<'_>,
    target: &OutgoingTarget,
    (node, login_type, bind_timeout): (&SgipNodeOptions, LoginType, Duration),
) -> Result<DialedNode, PeerError> {
    let options = SgipOptions {
        window_out: node.window.max(1),
        response_timeout: node.response_timeout,
        tries: node.tries.max(1),
        bind_timeout,
        limit: node.quirks.limit,
        loose_match: node.quirks.loose_match,
        ..SgipOptions::default()
    };
    let bind = Bind {
        login_type,
        name: node.login_name.clone(),
        password: node.login_password.0.clone(),
        reserve: [0; 8],
    };
    let is_address = to
        .address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !is_address {
        return Err(PeerError::Address { name: to.name.to_owned(), address: to.address.to_owned() });
    }
    let mut controls = Vec::new();
    for number in 0..node.connections.max(1) {
        let (control, commands) = unbounded_channel();
        controls.push(control);
        let record = LinkRecord::new(LinkRole::Client, to.peer, to.name, number, false);
        shared.records.add(record.clone());
        let dialer = Dialer {
            shared: shared.clone(),
            record,
            target: target.clone(),
            address: to.address.to_owned(),
            bind: bind.clone(),
            node: node.node,
            bind_timeout: options.bind_timeout,
            options: options.clone(),
            counter: AtomicU32::new(0),
        };
        let alive = alive.clone();
        tokio::spawn(async move {
            dialer.run(commands).await;
            drop(alive);
        });
    }
    Ok(DialedNode { controls })
}

impl Dialer {
    /// Keeps one connection up until it is told to close.
    async fn run(self, mut commands: ControlReceiver) {
        let mut backoff = BackOff::new(BackOff::MAX);
        loop {
            let (end, returned) = self.dial_once(commands).await;
            commands = returned;
            if end.requested {
                break;
            }
            let stable =
                end.bound_at.is_some_and(|at| clock::now().saturating_duration_since(at) >= STABLE_AFTER);
            if stable {
                backoff.reset();
            }
            let wait = match end.refused {
                // The protocol is not made for long connections: gateways close an idle one and expect an immediate
                // reconnect (SGIP 1.2 §3.1).
                None if stable => Duration::from_millis(100),
                refused => {
                    self.record.set_error(end.reason.clone());
                    let least = match refused {
                        Some(ResultCode::LOGIN | ResultCode::LOGIN_TYPE) => Duration::from_secs(30),
                        _ => Duration::ZERO,
                    };
                    backoff.next(None, getrandom::u64().unwrap_or(20)).max(least)
                }
            };
            let (peer, link, reason) = (&self.record.name, self.record.number, &end.reason);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            if end.refused == Some(ResultCode::LOGIN) {
                tracing::error!(
                    %peer,
                    link,
                    %reason,
                    wait_ms,
                    "login refused; check login-name and login-password"
                );
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
        self.shared.records.remove(&self.record);
    }

    /// Runs one connection, from the dial to its end.
    async fn dial_once(&self, mut commands: ControlReceiver) -> (ConnectionEnd, ControlReceiver) {
        self.record.set_phase(LinkPhase::Connecting);
        let failed =
            |reason: String, requested| ConnectionEnd { reason, refused: None, bound_at: None, requested };
        let address = &self.address;
        let stream = tokio::select! {
            connected = tokio::time::timeout(self.bind_timeout, TcpStream::connect(address.as_str())) => {
                match connected {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return (failed(format!("{address}: cannot connect: {error}"), false), commands),
                    Err(_) => return (failed(format!("{address}: connect timeout"), false), commands),
                }
            }
            _ = commands.recv() => return (failed("closed on request".to_owned(), true), commands),
        };
        if let Ok(remote) = stream.peer_addr() {
            self.record.set_remote(remote);
        }
        let _ = stream.set_nodelay(true);
        self.record.set_phase(LinkPhase::Binding);
        let sequence = Sequence::new(self.node, clock::wall(), self.counter.fetch_add(1, Relaxed));
        let session = Session::connector(clock::now(), self.options.clone(), &self.bind, sequence);
        let (control, inner) = unbounded_channel();
        let connection = Connection::outgoing(
            self.shared.clone(),
            self.record.clone(),
            Socket::Plain(stream),
            session,
            inner,
            self.target.clone(),
        );
        // The connection runs in a task of its own: if that panics, the peer is dialed again nevertheless.
        let mut run = tokio::spawn(connection.run());
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
        (end, commands)
    }
}
