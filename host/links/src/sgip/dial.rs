//! Connections that we make: to gateways, to Submit; to SPs, to Deliver and Report.

use super::connection::{Connection, Ended};
use super::options::{GatewayOptions, SpOptions};
use super::outgoing::Target;
use crate::accounts::Control;
use crate::backoff::BackOff;
use crate::server::Orders;
use crate::shared::Shared;
use crate::socket::Socket;
use crate::state::{LinkRecord, LinkRole, Phase};
use crate::{PeerError, clock};
use model::PeerId;
use sgip::{Bind, LoginType, Options, ResultCode, Sequence, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};

/// A far end that is kept dialled.
#[derive(Debug)]
pub(crate) struct Dialled {
    controls: Vec<UnboundedSender<Control>>,
}

impl Dialled {
    /// Takes all connections down; they have until then.
    pub(crate) fn stop(&self, until: Instant) {
        for control in &self.controls {
            let _ = control.send(Control::Leave(until));
        }
    }
}

/// How long a connection must have been bound to count as one that works: some servers say yes to a login and close.
const STEADY: Duration = Duration::from_secs(5);

struct Dialler {
    shared: Arc<Shared>,
    record: Arc<LinkRecord>,
    target: Target,
    address: String,
    bind: Bind,
    node: u32,
    bind_timeout: Duration,
    options: Options,
    /// Part 3 of the sequences of our own Binds.
    counter: AtomicU32,
}

/// Begins to dial a gateway.
pub(crate) fn gateway(
    shared: &Arc<Shared>,
    options: &Arc<GatewayOptions>,
    alive: &mpsc::Sender<()>,
) -> Result<Dialled, PeerError> {
    let session = Options {
        window_out: options.window.max(1),
        response_timeout: options.response_timeout,
        tries: options.tries.max(1),
        bind_timeout: options.bind_timeout,
        limit: options.habits.limit,
        loose_match: options.habits.loose_match,
        ..Options::default()
    };
    let bind = Bind {
        login_type: LoginType::SP,
        name: options.login_name.clone(),
        password: options.login_password.0.clone(),
        reserve: [0; 8],
    };
    let target = Target::Gateway(options.clone());
    let to = To { name: &options.name, peer: options.peer, address: &options.address, node: options.node };
    dial(shared, alive, &to, &target, &bind, &session, options.connections)
}

/// Begins to dial an SP's listener.
pub(crate) fn sp(
    shared: &Arc<Shared>,
    name: &str,
    peer: PeerId,
    options: &Arc<SpOptions>,
    alive: &mpsc::Sender<()>,
) -> Result<Dialled, PeerError> {
    let session = Options {
        window_out: options.window.max(1),
        response_timeout: options.response_timeout,
        tries: options.tries.max(1),
        bind_timeout: Duration::from_secs(10),
        limit: options.habits.limit,
        loose_match: options.habits.loose_match,
        ..Options::default()
    };
    let bind = Bind {
        login_type: LoginType::GATEWAY,
        name: options.login_name.clone(),
        password: options.login_password.0.clone(),
        reserve: [0; 8],
    };
    let target = Target::Sp { peer, options: options.clone() };
    let to = To { name, peer, address: &options.address, node: options.node };
    dial(shared, alive, &to, &target, &bind, &session, options.connections)
}

/// Whom to dial.
struct To<'a> {
    name: &'a str,
    peer: PeerId,
    address: &'a str,
    node: u32,
}

fn dial(
    shared: &Arc<Shared>,
    alive: &mpsc::Sender<()>,
    to: &To<'_>,
    target: &Target,
    bind: &Bind,
    options: &Options,
    connections: usize,
) -> Result<Dialled, PeerError> {
    let is_address = to
        .address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    if !is_address {
        return Err(PeerError::Address { name: to.name.to_owned(), address: to.address.to_owned() });
    }
    let mut controls = Vec::new();
    for number in 0..connections.max(1) {
        let (control, orders) = unbounded_channel();
        controls.push(control);
        let record = LinkRecord::new(LinkRole::Client, to.peer, to.name, number, false);
        shared.records.add(record.clone());
        let dialler = Dialler {
            shared: shared.clone(),
            record,
            target: target.clone(),
            address: to.address.to_owned(),
            bind: bind.clone(),
            node: to.node,
            bind_timeout: options.bind_timeout,
            options: options.clone(),
            counter: AtomicU32::new(0),
        };
        let alive = alive.clone();
        tokio::spawn(async move {
            dialler.keep(orders).await;
            drop(alive);
        });
    }
    Ok(Dialled { controls })
}

impl Dialler {
    /// Keeps one connection up until it is told to stop.
    async fn keep(self, mut orders: Orders) {
        let mut backoff = BackOff::new(BackOff::LONGEST);
        loop {
            let (ended, returned) = self.once(orders).await;
            orders = returned;
            if ended.wanted {
                break;
            }
            let steady =
                ended.bound_at.is_some_and(|at| clock::now().saturating_duration_since(at) >= STEADY);
            if steady {
                backoff.reset();
            }
            let wait = match ended.refused {
                // Connections that live long are not what the protocol was made for: gateways close what is idle, and
                // coming back at once is what they expect (SGIP 1.2 §3.1).
                None if steady => Duration::from_millis(100),
                refused => {
                    self.record.error(ended.why.clone());
                    let least = match refused {
                        Some(ResultCode::LOGIN | ResultCode::LOGIN_TYPE) => Duration::from_secs(30),
                        _ => Duration::ZERO,
                    };
                    backoff.next(None, getrandom::u64().unwrap_or(20)).max(least)
                }
            };
            let (peer, link, why) = (&self.record.name, self.record.number, &ended.why);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            if ended.refused == Some(ResultCode::LOGIN) {
                tracing::error!(
                    %peer,
                    link,
                    %why,
                    wait_ms,
                    "the peer refuses our login, and is dialled again after the wait: check login-name and login-password"
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
        let failed = |why: String, wanted| Ended { why, refused: None, bound_at: None, wanted };
        let address = &self.address;
        let stream = tokio::select! {
            connected = tokio::time::timeout(self.bind_timeout, TcpStream::connect(address.as_str())) => {
                match connected {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return (failed(format!("{address}: cannot connect: {error}"), false), orders),
                    Err(_) => return (failed(format!("{address}: no connection in time"), false), orders),
                }
            }
            _ = orders.recv() => return (failed("told to go".to_owned(), true), orders),
        };
        if let Ok(remote) = stream.peer_addr() {
            self.record.remote(remote);
        }
        let _ = stream.set_nodelay(true);
        self.record.phase(Phase::Binding);
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
        // A task of its own: should it die by a fault of ours, the far end is dialled again all the same.
        let mut run = tokio::spawn(connection.run());
        let mut wanted = false;
        let mut ended = loop {
            tokio::select! {
                ended = &mut run => match ended {
                    Ok(ended) => break ended,
                    Err(fault) => break failed(format!("a fault of ours: {fault}"), false),
                },
                order = orders.recv(), if !wanted => {
                    wanted = true;
                    let _ = control.send(order.unwrap_or_else(|| Control::Leave(clock::now())));
                }
            }
        };
        ended.wanted |= wanted;
        (ended, orders)
    }
}
