//! The SMPP dialer: connects to SMSCs, binds, and reconnects.

use crate::accounts::ControlReceiver;
use crate::accounts::LinkControl;
use crate::backoff::BackOff;
use crate::link::{Link, LinkEnd};
use crate::link_record::{LinkPhase, LinkRecord, LinkRole};
use crate::shared::Shared;
use crate::smsc_requests::SmscRequests;
use crate::tracked_socket::Socket;
use crate::{PeerOptions, TlsError, clock, tls};
use rustls_pki_types::ServerName;
use smpp::{Bind, CommandStatus, Session, SmppClientOptions, SmppOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};
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

/// A peer whose links are kept up.
#[derive(Debug)]
pub(crate) struct DialedPeer {
    pub(crate) options: Arc<PeerOptions>,
    controls: Vec<UnboundedSender<LinkControl>>,
}

impl DialedPeer {
    /// Closes all links; they have until `until`.
    pub(crate) fn stop(&self, until: Instant) {
        for control in &self.controls {
            let _ = control.send(LinkControl::Close(until));
        }
    }
}

/// Dials one link to a peer, and keeps it up.
struct Dialer {
    shared: Arc<Shared>,
    options: Arc<PeerOptions>,
    record: Arc<LinkRecord>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Starts to dial a peer.
pub(crate) fn dial(
    shared: &Arc<Shared>,
    options: PeerOptions,
    alive: &mpsc::Sender<()>,
) -> Result<DialedPeer, PeerError> {
    let host = options
        .address
        .rsplit_once(':')
        .filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        .map(|(host, _)| host.trim_start_matches('[').trim_end_matches(']'))
        .ok_or_else(|| PeerError::Address { name: options.name.clone(), address: options.address.clone() })?;
    let tls = match &options.tls {
        Some(files) => Some(
            tls::connector(files, host)
                .map_err(|reason| PeerError::Tls { name: options.name.clone(), reason })?,
        ),
        None => None,
    };
    let options = Arc::new(options);
    let mut controls = Vec::new();
    for number in 0..options.links.max(1) {
        let (control, commands) = unbounded_channel();
        controls.push(control);
        let record = LinkRecord::new(LinkRole::Client, options.peer, &options.name, number, tls.is_some());
        shared.records.add(record.clone());
        let dialer = Dialer { shared: shared.clone(), options: options.clone(), record, tls: tls.clone() };
        let alive = alive.clone();
        tokio::spawn(async move {
            dialer.run(commands).await;
            drop(alive);
        });
    }
    Ok(DialedPeer { options, controls })
}

/// A link counts as stable after this time. A peer that accepts a bind and closes at once must not be dialed in quick
/// succession (sheet §2.3).
const STABLE_AFTER: Duration = Duration::from_secs(5);

impl Dialer {
    /// Keeps one link up until it is told to close.
    async fn run(self, mut commands: ControlReceiver) {
        let mut backoff = BackOff::new(self.options.redial_interval);
        loop {
            let began = clock::now();
            let (end, returned) = self.dial_once(commands).await;
            commands = returned;
            if end.requested {
                break;
            }
            self.record.set_error(end.reason.clone());
            if end.was_bound && clock::now().saturating_duration_since(began) >= STABLE_AFTER {
                backoff.reset();
            }
            let wait = backoff.next(end.refused, random());
            let (peer, link, reason) = (&self.options.name, self.record.number, &end.reason);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            if matches!(end.refused, Some(CommandStatus::RINVPASWD | CommandStatus::RINVSYSID)) {
                tracing::error!(
                    %peer,
                    link,
                    %reason,
                    wait_ms,
                    "bind refused; check system-id, password and system-type"
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
    async fn dial_once(&self, mut commands: ControlReceiver) -> (LinkEnd, ControlReceiver) {
        self.record.set_phase(LinkPhase::Connecting);
        let failed =
            |reason: String, requested| LinkEnd { reason, refused: None, was_bound: false, requested };
        let socket = tokio::select! {
            connected = tokio::time::timeout(self.options.bind_timeout, self.connect()) => match connected {
                Ok(Ok(socket)) => socket,
                Ok(Err(reason)) => return (failed(reason, false), commands),
                Err(_) => {
                    let reason = format!("{}: connect timeout", self.options.address);
                    return (failed(reason, false), commands);
                }
            },
            _ = commands.recv() => return (failed("closed on request".to_owned(), true), commands),
        };
        self.record.set_phase(LinkPhase::Binding);
        let session = Session::client(
            clock::now(),
            session_options(self.shared.options.system_id.clone(), &self.options),
        );
        // The link handles the commands. They pass through here so that the next connection can get them too.
        let (control, inner) = unbounded_channel();
        let smsc = SmscRequests { options: self.options.clone() };
        let link = Link::outgoing(self.shared.clone(), self.record.clone(), socket, session, inner, smsc);
        // The link runs in a task of its own: if that panics, the peer is dialed again nevertheless.
        let mut run = tokio::spawn(link.run());
        let mut requested = false;
        let mut end = loop {
            tokio::select! {
                end = &mut run => match end {
                    Ok(end) => break end,
                    Err(fault) => break failed(format!("internal error: {fault}"), false),
                },
                command = commands.recv(), if !requested => {
                    requested = true;
                    let command = command.unwrap_or_else(|| LinkControl::Close(clock::now()));
                    let _ = control.send(command);
                }
            }
        };
        end.requested |= requested;
        if let Some(status) = end.refused {
            end.reason = format!("bind refused: {status}");
        }
        (end, commands)
    }

    async fn connect(&self) -> Result<Socket, String> {
        let address = &self.options.address;
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
}

/// The session options of a link to a peer. `ourselves` is our own system_id.
pub(crate) fn session_options(ourselves: bytes::Bytes, options: &PeerOptions) -> SmppClientOptions {
    SmppClientOptions {
        options: SmppOptions {
            system_id: ourselves,
            interface_version: options.interface_version,
            window_in: options.window_in.max(1),
            window_out: options.window.max(1),
            enquire_interval: options.enquire_interval,
            enquire_timeout: options.enquire_timeout,
            response_timeout: options.response_timeout,
            init_timeout: options.bind_timeout,
            // Our enquire_links find a dead peer sooner; silence alone is no reason to unbind.
            inactivity: Duration::ZERO,
            ..SmppOptions::default()
        },
        bind: Bind {
            mode: options.bind,
            system_id: options.system_id.clone(),
            password: options.password.0.clone(),
            system_type: options.system_type.clone(),
            interface_version: options.interface_version,
            addr_ton: 0,
            addr_npi: 0,
            address_range: bytes::Bytes::new(),
        },
        await_outbind: None,
    }
}

fn random() -> u64 {
    getrandom::u64().unwrap_or(20)
}
