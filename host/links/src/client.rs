//! The client's side: peers that we dial, and dial again.

use crate::accounts::Control;
use crate::backoff::BackOff;
use crate::link::{Ended, Link};
use crate::server::Orders;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::state::{LinkRecord, LinkRole, Phase};
use crate::upstream::Upstream;
use crate::{PeerOptions, TlsError, clock, tls};
use rustls_pki_types::ServerName;
use smpp::{Bind, ClientOptions, Options, Session, Status};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsConnector;

/// A peer cannot be dialled as configured.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Its TLS settings.
    #[error("peer {name:?}: {reason}")]
    Tls {
        /// The peer.
        name: String,
        /// What is wrong.
        reason: TlsError,
    },
    /// Its address.
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

/// A peer that is kept dialled.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) options: Arc<PeerOptions>,
    controls: Vec<UnboundedSender<Control>>,
}

impl Dialled {
    /// Takes all links down; they have until then.
    pub(crate) fn stop(&self, until: Instant) {
        for control in &self.controls {
            let _ = control.send(Control::Leave(until));
        }
    }
}

struct Dialler {
    shared: Arc<Shared>,
    options: Arc<PeerOptions>,
    record: Arc<LinkRecord>,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Begins to dial a peer.
pub(crate) fn dial(
    shared: &Arc<Shared>,
    options: PeerOptions,
    alive: &mpsc::Sender<()>,
) -> Result<Dialled, PeerError> {
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
        let (control, orders) = unbounded_channel();
        controls.push(control);
        let record = LinkRecord::new(LinkRole::Client, options.peer, &options.name, number, tls.is_some());
        shared.records.add(record.clone());
        let dialler = Dialler { shared: shared.clone(), options: options.clone(), record, tls: tls.clone() };
        let alive = alive.clone();
        tokio::spawn(async move {
            dialler.keep(orders).await;
            drop(alive);
        });
    }
    Ok(Dialled { options, controls })
}

/// How long a link must have been bound to count as one that works: a peer that accepts a bind and closes at once must
/// not be hammered (sheet §2.3).
const STEADY: Duration = Duration::from_secs(5);

impl Dialler {
    /// Keeps one link up until it is told to stop.
    async fn keep(self, mut orders: Orders) {
        let mut backoff = BackOff::new(self.options.redial_interval);
        loop {
            let began = clock::now();
            let (ended, returned) = self.once(orders).await;
            orders = returned;
            if ended.wanted {
                break;
            }
            self.record.error(ended.why.clone());
            if ended.was_bound && clock::now().saturating_duration_since(began) >= STEADY {
                backoff.reset();
            }
            let wait = backoff.next(ended.refused, lot());
            let (peer, link, why) = (&self.options.name, self.record.number, &ended.why);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            if matches!(ended.refused, Some(Status::RINVPASWD | Status::RINVSYSID)) {
                tracing::error!(
                    %peer,
                    link,
                    %why,
                    wait_ms,
                    "the peer refuses our credentials, and is dialled again after the wait: check system-id, password and system-type"
                );
            } else {
                tracing::warn!(%peer, link, %why, wait_ms, "link is down; dialled again after the wait");
            }
            self.record.back_off(wait);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.record.dial_now.notified() => backoff.reset(),
                _ = orders.recv() => break,
            }
        }
        self.shared.records.remove(&self.record);
    }

    /// One connection, from dialling to its end.
    async fn once(&self, mut orders: Orders) -> (Ended, Orders) {
        self.record.phase(Phase::Connecting);
        let failed = |why: String, wanted| Ended { why, refused: None, was_bound: false, wanted };
        let socket = tokio::select! {
            connected = tokio::time::timeout(self.options.bind_timeout, self.connect()) => match connected {
                Ok(Ok(socket)) => socket,
                Ok(Err(why)) => return (failed(why, false), orders),
                Err(_) => {
                    let why = format!("{}: no connection in time", self.options.address);
                    return (failed(why, false), orders);
                }
            },
            _ = orders.recv() => return (failed("told to go".to_owned(), true), orders),
        };
        self.record.phase(Phase::Binding);
        let session = Session::client(
            clock::now(),
            client_options(self.shared.options.system_id.clone(), &self.options),
        );
        // The link takes its orders itself; they pass through here so that the next connection can have them too.
        let (control, inner) = unbounded_channel();
        let upstream = Upstream { options: self.options.clone() };
        let link = Link::outgoing(self.shared.clone(), self.record.clone(), socket, session, inner, upstream);
        // A task of its own: should it die by a fault of ours, the peer is dialled again all the same.
        let mut run = tokio::spawn(link.run());
        let mut wanted = false;
        let mut ended = loop {
            tokio::select! {
                ended = &mut run => match ended {
                    Ok(ended) => break ended,
                    Err(fault) => break failed(format!("a fault of ours: {fault}"), false),
                },
                order = orders.recv(), if !wanted => {
                    wanted = true;
                    let order = order.unwrap_or_else(|| Control::Leave(clock::now()));
                    let _ = control.send(order);
                }
            }
        };
        ended.wanted |= wanted;
        if let Some(status) = ended.refused {
            ended.why = format!("bind refused: {status}");
        }
        (ended, orders)
    }

    async fn connect(&self) -> Result<Socket, String> {
        let address = &self.options.address;
        let stream = TcpStream::connect(address.as_str())
            .await
            .map_err(|error| format!("{address}: cannot connect: {error}"))?;
        if let Ok(remote) = stream.peer_addr() {
            self.record.remote(remote);
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

/// How a session with a peer begins, as ourselves.
pub(crate) fn client_options(ourselves: bytes::Bytes, options: &PeerOptions) -> ClientOptions {
    ClientOptions {
        options: Options {
            system_id: ourselves,
            interface_version: options.interface_version,
            window_in: options.window_in.max(1),
            window_out: options.window.max(1),
            enquire_interval: options.enquire_interval,
            enquire_timeout: options.enquire_timeout,
            response_timeout: options.response_timeout,
            init_timeout: options.bind_timeout,
            // Our own enquire_links find a dead peer sooner; silence alone is no reason to leave one.
            inactivity: Duration::ZERO,
            ..Options::default()
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

fn lot() -> u64 {
    getrandom::u64().unwrap_or(20)
}
