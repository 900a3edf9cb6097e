//! Authentication of SGIP logins (Bind) at our listeners: login name, login type, password, network, connection limit.

use super::incoming::IncomingSource;
use super::options::{GatewayOptions, SpOptions};
use super::sgip_acceptor::SgipAcceptor;
use crate::accounts::Account;
use crate::clock;
use crate::link_record::{LinkRecord, LinkRole};
use bytes::Bytes;
use model::PeerId;
use parking_lot::RwLock;
use ports::{ConnectionPermit, IpNetwork, LoginInterface};
use sgip::{Bind, LoginType, ResultCode};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The logins of gateways and SPs, by login name.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    gateways: RwLock<HashMap<Bytes, GatewayLogin>>,
    sps: RwLock<HashMap<Bytes, SpLogin>>,
}

#[derive(Clone, Debug)]
struct GatewayLogin {
    options: Arc<GatewayOptions>,
    sessions: SessionCount,
}

#[derive(Clone, Debug)]
struct SpLogin {
    account: Arc<Account>,
    options: Arc<SpOptions>,
    sessions: SessionCount,
}

/// The number of connections of a login.
type SessionCount = Arc<AtomicUsize>;

/// A permit for one connection of a login, released when it is dropped.
#[derive(Debug)]
pub(super) struct SessionPermit(SessionCount);

impl SessionPermit {
    fn acquire(sessions: &SessionCount, limit: usize) -> Option<Self> {
        if sessions.fetch_add(1, Relaxed) >= limit {
            sessions.fetch_sub(1, Relaxed);
            return None;
        }
        Some(Self(sessions.clone()))
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Logins {
    pub(crate) fn set_gateway(&self, options: &Arc<GatewayOptions>) {
        let mut gateways = self.gateways.write();
        gateways.retain(|_, other| other.options.name != options.name);
        if !options.inbound_login_name.is_empty() {
            let login = GatewayLogin { options: options.clone(), sessions: SessionCount::default() };
            gateways.insert(options.inbound_login_name.clone(), login);
        }
    }

    pub(crate) fn remove_gateway(&self, name: &str) {
        self.gateways.write().retain(|_, other| other.options.name != name);
    }

    pub(crate) fn set_sp(&self, account: &Arc<Account>, options: &Arc<SpOptions>) {
        self.remove_sp(account.options().peer);
        if !options.inbound_login_name.is_empty() {
            let (account, options) = (account.clone(), options.clone());
            let login = SpLogin { account, options, sessions: SessionCount::default() };
            self.sps.write().insert(login.options.inbound_login_name.clone(), login);
        }
    }

    pub(crate) fn remove_sp(&self, peer: PeerId) {
        self.sps.write().retain(|_, other| other.account.options().peer != peer);
    }
}

/// The decision on a login.
pub(super) enum BindDecision {
    Accept { source: IncomingSource, record: Arc<LinkRecord>, window_in: usize },
    Refuse { code: ResultCode, reason: &'static str },
}

/// A login whose authentication runs.
pub(super) type PendingBind = Pin<Box<dyn Future<Output = BindDecision> + Send>>;

/// Authenticates the logins of one connection.
pub(super) struct BindAuthenticator {
    pub(super) acceptor: Arc<SgipAcceptor>,
    pub(super) remote: SocketAddr,
    /// Marked as identified when a login is accepted.
    pub(super) connection: Arc<ConnectionPermit>,
}

impl BindAuthenticator {
    /// Starts the authentication of a login.
    pub(super) fn authenticate(self: &Arc<Self>, bind: Bind) -> PendingBind {
        let authenticator = self.clone();
        Box::pin(async move {
            let decision = authenticator.decide(&bind).await;
            let acceptor = &authenticator.acceptor;
            let counters = &acceptor.shared.bind_counters;
            match &decision {
                BindDecision::Accept { .. } => {
                    authenticator.connection.identify();
                    counters.binds.fetch_add(1, Relaxed);
                }
                BindDecision::Refuse { code, reason } => {
                    counters.binds_refused.fetch_add(1, Relaxed);
                    if acceptor.shared.log.take(clock::now()).is_some() {
                        tracing::warn!(
                            listener = %acceptor.options.name,
                            remote = %authenticator.remote,
                            login = %String::from_utf8_lossy(&bind.name),
                            login_type = bind.login_type.0,
                            %code,
                            reason,
                            "login refused"
                        );
                    }
                }
            }
            decision
        })
    }

    async fn decide(&self, bind: &Bind) -> BindDecision {
        let remote = self.remote;
        let shared = &self.acceptor.shared;
        let refuse = |code, reason| BindDecision::Refuse { code, reason };
        let any = self.acceptor.options.any_login_type;
        // A name may belong to a gateway and to an SP; the login type decides which is meant. Only a client with the
        // right password learns that its login type is wrong.
        let gateway = shared.logins.gateways.read().get(&bind.name).cloned();
        let sp = shared.logins.sps.read().get(&bind.name).cloned();
        let is_first = bind.login_type == LoginType::GATEWAY || any || sp.is_none();
        let gateway = gateway.filter(|_| is_first);
        let networks = match (&gateway, &sp) {
            (Some(gateway), _) => gateway.options.networks.clone(),
            (None, Some(sp)) => sp.account.options().networks.clone(),
            (None, None) => Vec::new(),
        };
        let is_allowed_network = is_in_networks(&networks, remote.ip());
        let any_hash = shared.accounts.any_hash();
        let check = async {
            match (&gateway, &sp) {
                (Some(gateway), _)
                    if is_allowed_network
                        && is_equal_constant_time(
                            &gateway.options.inbound_login_password.0,
                            &bind.password,
                        ) =>
                {
                    true
                }
                (None, Some(sp)) if is_allowed_network => {
                    let hash = sp.account.options().password_hash.clone();
                    shared.verifier.verify(&hash, &bind.password, clock::now()).await
                }
                _ => shared.verifier.refuse(any_hash.as_deref(), &bind.password).await,
            }
        };
        match shared.limiter.check(LoginInterface::Sgip, &bind.name, remote.ip(), check).await {
            Ok(true) => {}
            Ok(false) if !is_allowed_network => {
                return refuse(ResultCode::LOGIN, "the login may not be used from this address");
            }
            Ok(false) => return refuse(ResultCode::LOGIN, "unknown login name or wrong password"),
            Err(_) => {
                return refuse(ResultCode::LOGIN, "too many wrong passwords for this login from its address");
            }
        }
        let is_meant = match bind.login_type {
            LoginType::GATEWAY => gateway.is_some() || any,
            LoginType::SP => gateway.is_none() || any,
            _ => any,
        };
        if !is_meant {
            return refuse(ResultCode::LOGIN_TYPE, "wrong login type for this login name");
        }
        if shared.refuse_binds.load(Relaxed) {
            return refuse(ResultCode::BUSY, "the appliance is draining");
        }
        match (gateway, sp) {
            (Some(GatewayLogin { options, sessions }), _) => {
                let Some(permit) = SessionPermit::acquire(&sessions, options.node.connections_in) else {
                    return refuse(ResultCode::CONNECTIONS, "connection limit of the gateway reached");
                };
                let record = LinkRecord::new(LinkRole::Server, options.peer, &options.name, 0, false);
                record.set_remote(remote);
                BindDecision::Accept {
                    source: IncomingSource::Gateway { options, _permit: permit },
                    record,
                    window_in: 100,
                }
            }
            (None, Some(SpLogin { account, options, sessions })) => {
                let rules = account.options();
                let Some(permit) = SessionPermit::acquire(&sessions, options.node.connections_in) else {
                    return refuse(ResultCode::CONNECTIONS, "connection limit of the account reached");
                };
                let record = LinkRecord::new(LinkRole::Server, rules.peer, &rules.name, 0, false);
                record.set_remote(remote);
                let window_in = options.window_in;
                BindDecision::Accept {
                    source: IncomingSource::Sp { account, options, _permit: permit },
                    record,
                    window_in,
                }
            }
            (None, None) => refuse(ResultCode::LOGIN, "unknown login name or wrong password"),
        }
    }
}

fn is_in_networks(networks: &[IpNetwork], address: IpAddr) -> bool {
    networks.is_empty() || networks.iter().any(|network| network.contains(address))
}

/// Compares passwords in a time that does not depend on where they differ.
fn is_equal_constant_time(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
