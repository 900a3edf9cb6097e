//! Connections that come in, and who may log in.

use super::connection::{Connection, Judge, Judgement};
use super::options::{GatewayOptions, SgipListenerOptions, SpOptions};
use super::taking::Source;
use crate::accounts::{Account, Control};
use crate::clock;
use crate::listener::{Admit, LeaveOrders};
use crate::shared::Shared;
use crate::socket::Socket;
use crate::state::{LinkRecord, LinkRole, Phase};
use bytes::Bytes;
use doors::{Entrance, Network, Place};
use model::PeerId;
use parking_lot::RwLock;
use sgip::{Bind, LoginType, Options, ResultCode, Session};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedSender, unbounded_channel};

/// Who may log in, by login name.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    gateways: RwLock<HashMap<Bytes, GatewayLogin>>,
    sps: RwLock<HashMap<Bytes, SpLogin>>,
}

#[derive(Clone, Debug)]
struct GatewayLogin {
    options: Arc<GatewayOptions>,
    seats: Seats,
}

#[derive(Clone, Debug)]
struct SpLogin {
    account: Arc<Account>,
    options: Arc<SpOptions>,
    seats: Seats,
}

/// How many connections a login has.
type Seats = Arc<AtomicUsize>;

/// One connection of a login; given back when dropped.
#[derive(Debug)]
pub(super) struct Seat(Seats);

impl Seat {
    fn take(seats: &Seats, most: usize) -> Option<Self> {
        if seats.fetch_add(1, Relaxed) >= most {
            seats.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Self(seats.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Logins {
    pub(crate) fn set_gateway(&self, options: &Arc<GatewayOptions>) {
        let mut gateways = self.gateways.write();
        gateways.retain(|_, other| other.options.name != options.name);
        if !options.its_name.is_empty() {
            let login = GatewayLogin { options: options.clone(), seats: Seats::default() };
            gateways.insert(options.its_name.clone(), login);
        }
    }

    pub(crate) fn remove_gateway(&self, name: &str) {
        self.gateways.write().retain(|_, other| other.options.name != name);
    }

    pub(crate) fn set_sp(&self, account: &Arc<Account>, options: &Arc<SpOptions>) {
        self.remove_sp(account.options().peer);
        if !options.its_name.is_empty() {
            let (account, options) = (account.clone(), options.clone());
            let login = SpLogin { account, options, seats: Seats::default() };
            self.sps.write().insert(login.options.its_name.clone(), login);
        }
    }

    pub(crate) fn remove_sp(&self, peer: PeerId) {
        self.sps.write().retain(|_, other| other.account.options().peer != peer);
    }
}

struct Doorman {
    shared: Arc<Shared>,
    options: SgipListenerOptions,
    orders: LeaveOrders,
}

/// Who admits the connections of an SGIP listener.
pub(crate) fn doorman(shared: Arc<Shared>, options: SgipListenerOptions, orders: LeaveOrders) -> Admit {
    let doorman = Arc::new(Doorman { shared, options, orders });
    Box::new(move |stream, remote, place, alive| doorman.clone().admit(stream, remote, place, alive))
}

impl Doorman {
    fn admit(self: Arc<Self>, stream: TcpStream, remote: SocketAddr, place: Place, alive: &mpsc::Sender<()>) {
        let alive = alive.clone();
        let place = Arc::new(place);
        tokio::spawn(async move {
            // Only one that is not bound is displaced, and it is owed nothing.
            tokio::select! {
                () = self.serve(stream, remote, place.clone()) => {}
                () = place.displaced() => {}
            }
            drop(alive);
        });
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, remote: SocketAddr, place: Arc<Place>) {
        let (control, receiver) = unbounded_channel();
        let options = Options {
            bind_timeout: self.options.bind_timeout,
            idle: self.options.idle,
            ..Options::default()
        };
        let session = Session::acceptor(clock::now(), options);
        let unknown = LinkRecord::new(LinkRole::Server, PeerId(u32::MAX), "", 0, false);
        unknown.remote(remote);
        unknown.phase(Phase::Binding);
        let judge = self.clone().judge(remote, place);
        let socket = Socket::Plain(stream);
        let connection = Connection::incoming(self.shared.clone(), unknown, socket, session, receiver, judge);
        let watching = self.watch(control);
        let ended = connection.run();
        tokio::pin!(watching, ended);
        let ended = tokio::select! {
            ended = &mut ended => ended,
            () = &mut watching => ended.await,
        };
        if ended.bound_at.is_none() && ended.refused.is_none() && self.shared.lines.allow(clock::now()) {
            tracing::info!(
                listener = %self.options.name, %remote, why = %ended.why, "closed without a login"
            );
        }
    }

    /// Passes the listener's own end on to a connection.
    async fn watch(&self, control: UnboundedSender<Control>) {
        let mut orders = self.orders.clone();
        let until = match orders.wait_for(Option::is_some).await {
            Ok(order) => *order,
            Err(_) => None,
        };
        let _ = control.send(Control::Leave(until.unwrap_or_else(clock::now)));
    }

    fn judge(self: Arc<Self>, remote: SocketAddr, place: Arc<Place>) -> Judge {
        Box::new(move |bind| {
            let (doorman, place) = (self.clone(), place.clone());
            Box::pin(async move {
                let judgement = doorman.judge_login(&bind, remote).await;
                let doors = &doorman.shared.doors;
                match &judgement {
                    Judgement::Accept { .. } => {
                        place.identify();
                        doors.binds.fetch_add(1, Relaxed);
                    }
                    Judgement::Refuse { code, why } => {
                        doors.binds_refused.fetch_add(1, Relaxed);
                        if doorman.shared.lines.allow(clock::now()) {
                            tracing::warn!(
                                listener = %doorman.options.name,
                                %remote,
                                login = %String::from_utf8_lossy(&bind.name),
                                login_type = bind.login_type.0,
                                %code,
                                why,
                                "login refused"
                            );
                        }
                    }
                }
                judgement
            })
        })
    }

    async fn judge_login(&self, bind: &Bind, remote: SocketAddr) -> Judgement {
        let shared = &self.shared;
        let refuse = |code, why| Judgement::Refuse { code, why };
        let any = self.options.any_login_type;
        // Which of the two a name means is the login type's to say. Where it says wrongly, only who has the password is told.
        let gateway = shared.logins.gateways.read().get(&bind.name).cloned();
        let sp = shared.logins.sps.read().get(&bind.name).cloned();
        let is_first = bind.login_type == LoginType::GATEWAY || any || sp.is_none();
        let gateway = gateway.filter(|_| is_first);
        let networks = match (&gateway, &sp) {
            (Some(gateway), _) => gateway.options.networks.clone(),
            (None, Some(sp)) => sp.account.options().networks.clone(),
            (None, None) => Vec::new(),
        };
        let is_near = is_in(&networks, remote.ip());
        let any_hash = shared.accounts.any_hash();
        let check = async {
            match (&gateway, &sp) {
                (Some(gateway), _) if is_near && is_same(&gateway.options.its_password.0, &bind.password) => {
                    true
                }
                (None, Some(sp)) if is_near => {
                    let hash = sp.account.options().password_hash.clone();
                    shared.verifier.verify(&hash, &bind.password, clock::now()).await
                }
                _ => shared.verifier.refuse(any_hash.as_deref(), &bind.password).await,
            }
        };
        match shared.limiter.check(Entrance::Sgip, &bind.name, remote.ip(), check).await {
            Ok(true) => {}
            Ok(false) if !is_near => {
                return refuse(ResultCode::LOGIN, "the login may not be used from this address");
            }
            Ok(false) => return refuse(ResultCode::LOGIN, "unknown login name or wrong password"),
            Err(_) => {
                return refuse(ResultCode::LOGIN, "too many wrong passwords of this login from its address");
            }
        }
        let is_meant = match bind.login_type {
            LoginType::GATEWAY => gateway.is_some() || any,
            LoginType::SP => gateway.is_none() || any,
            _ => any,
        };
        if !is_meant {
            return refuse(ResultCode::LOGIN_TYPE, "the login type is not the one for this name");
        }
        if shared.full.load(Relaxed) {
            return refuse(ResultCode::BUSY, "nobody new is let in while the appliance drains");
        }
        match (gateway, sp) {
            (Some(GatewayLogin { options, seats }), _) => {
                let Some(seat) = Seat::take(&seats, options.connections_in) else {
                    return refuse(ResultCode::CONNECTIONS, "the gateway has as many connections as it may");
                };
                let record = LinkRecord::new(LinkRole::Server, options.peer, &options.name, 0, false);
                record.remote(remote);
                Judgement::Accept { source: Source::Gateway { options, _seat: seat }, record, window_in: 100 }
            }
            (None, Some(SpLogin { account, options, seats })) => {
                let rules = account.options();
                let Some(seat) = Seat::take(&seats, options.connections_in) else {
                    return refuse(ResultCode::CONNECTIONS, "the account has as many connections as it may");
                };
                let record = LinkRecord::new(LinkRole::Server, rules.peer, &rules.name, 0, false);
                record.remote(remote);
                let window_in = options.window_in;
                Judgement::Accept { source: Source::Sp { account, options, _seat: seat }, record, window_in }
            }
            (None, None) => refuse(ResultCode::LOGIN, "unknown login name or wrong password"),
        }
    }
}

fn is_in(networks: &[Network], address: IpAddr) -> bool {
    networks.is_empty() || networks.iter().any(|network| network.contains(address))
}

/// Compares passwords in a time that does not tell where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
