//! Authentication of SGIP logins (Bind) at our listeners: login name, login type, password, network, connection limit.

use super::incoming::IncomingSource;
use super::options::{GatewayOptions, SpOptions};
use crate::accounts::Account;
use crate::shared::Shared;
use bytes::Bytes;
use model::PeerId;
use parking_lot::RwLock;
use ports::link::{IncomingPeer, LinkRecord, PendingLogin};
use ports::{
    AccountLimits, LoginAccount, LoginAttempt, LoginInterface, LoginRefused, LoginSecret, Protocol,
    SessionPermit, SessionRequest,
};
use sgip::{Bind, LoginType, ResultCode};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The logins of gateways and SPs, by login name.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    gateways: RwLock<HashMap<Bytes, GatewayLogin>>,
    sps: RwLock<HashMap<Bytes, SpLogin>>,
}

#[derive(Clone, Debug)]
struct GatewayLogin {
    options: Arc<GatewayOptions>,
    limits: Arc<AccountLimits>,
}

#[derive(Clone, Debug)]
struct SpLogin {
    account: Arc<Account>,
    options: Arc<SpOptions>,
}

impl Logins {
    pub(crate) fn set_gateway(&self, options: &Arc<GatewayOptions>, limits: Arc<AccountLimits>) {
        let mut gateways = self.gateways.write();
        gateways.retain(|_, other| other.options.name != options.name);
        if !options.inbound_login_name.is_empty() {
            let login = GatewayLogin { options: options.clone(), limits };
            gateways.insert(options.inbound_login_name.clone(), login);
        }
    }

    /// Removes a gateway and closes the connections that it has opened.
    pub(crate) fn remove_gateway(&self, name: &str, until: Instant) {
        self.gateways.write().retain(|_, other| {
            let stays = other.options.name != name;
            if !stays {
                other.limits.close_sessions(None, until);
            }
            stays
        });
    }

    pub(crate) fn set_sp(&self, account: &Arc<Account>, options: &Arc<SpOptions>) {
        self.remove_sp(account.options().peer);
        if !options.inbound_login_name.is_empty() {
            let login = SpLogin { account: account.clone(), options: options.clone() };
            self.sps.write().insert(login.options.inbound_login_name.clone(), login);
        }
    }

    pub(crate) fn remove_sp(&self, peer: PeerId) {
        self.sps.write().retain(|_, other| other.account.options().peer != peer);
    }
}

/// The decision on a login.
pub(crate) enum BindDecision {
    Accept { source: IncomingSource, session: (Arc<LinkRecord>, SessionPermit), window_in: usize },
    Refuse { code: ResultCode, reason: &'static str },
}

/// Authenticates the logins of one connection.
#[derive(Clone)]
pub(super) struct BindAuthenticator {
    pub(super) shared: Arc<Shared>,
    /// Whether any login type is accepted from a known login name.
    pub(super) any_login_type: bool,
    /// Maximum time for a decision.
    pub(super) timeout: Duration,
    pub(super) incoming: IncomingPeer,
}

impl BindAuthenticator {
    /// Starts the authentication of a login.
    pub(super) fn authenticate(&self, bind: Bind) -> PendingLogin<BindDecision> {
        let authenticator = self.clone();
        Box::pin(async move {
            let incoming = &authenticator.incoming;
            let attempt = LoginAttempt {
                interface: LoginInterface::Sgip,
                name: &bind.name,
                password: &bind.password,
                remote: incoming.remote.ip(),
            };
            let decision = authenticator.decide(&bind, &attempt).await;
            let decision = incoming.on_decision(&attempt, decision);
            decision.unwrap_or_else(|(code, reason)| BindDecision::Refuse { code, reason })
        })
    }

    async fn decide(
        &self,
        bind: &Bind,
        attempt: &LoginAttempt<'_>,
    ) -> Result<BindDecision, (ResultCode, &'static str)> {
        let (shared, any) = (&self.shared, self.any_login_type);
        // A name may belong to a gateway and to an SP; the login type decides which is meant. Only a client with the
        // right password learns that its login type is wrong.
        let gateway = shared.logins.gateways.read().get(&bind.name).cloned();
        let sp = shared.logins.sps.read().get(&bind.name).cloned();
        let is_first = bind.login_type == LoginType::GATEWAY || any || sp.is_none();
        let gateway = gateway.filter(|_| is_first);
        let rules = sp.as_ref().map(|sp| sp.account.options());
        let named = match (&gateway, &rules) {
            (Some(gateway), _) => {
                let password = &gateway.options.inbound_login_password.0;
                Some(LoginAccount {
                    account: Some(gateway.options.peer),
                    networks: &gateway.options.networks,
                    secret: LoginSecret::Compared(is_equal_constant_time(password, &bind.password)),
                })
            }
            (None, Some(rules)) => Some(LoginAccount {
                account: Some(rules.peer),
                networks: &rules.networks,
                secret: LoginSecret::Hash(&rules.password_hash),
            }),
            (None, None) => None,
        };
        let any_hash = shared.accounts.any_hash();
        let registry = shared.deps.registry.accounts();
        let checked = registry.authenticate(&shared.verifier, attempt, named, any_hash.as_deref()).await;
        checked.map_err(|refused| (ResultCode::LOGIN, refused.reason()))?;
        let is_meant = match bind.login_type {
            LoginType::GATEWAY => gateway.is_some() || any,
            LoginType::SP => gateway.is_none() || any,
            _ => any,
        };
        if !is_meant {
            return Err((ResultCode::LOGIN_TYPE, "wrong login type for this login name"));
        }
        if shared.deps.refuses_logins() {
            return Err((ResultCode::BUSY, "the appliance is draining"));
        }
        let (limits, name, limit, window_in) = match (&gateway, &sp, &rules) {
            (Some(gateway), ..) => {
                (&gateway.limits, &gateway.options.name, gateway.options.node.connections_in, 100)
            }
            (None, Some(sp), Some(rules)) => {
                (&sp.account.limits, &rules.name, sp.options.node.connections_in, sp.options.window_in)
            }
            _ => return Err((ResultCode::LOGIN, LoginRefused::WrongPassword.reason())),
        };
        let (protocol, timeout) = (Protocol::Sgip, self.timeout);
        let request = SessionRequest { limits, name, protocol, limit, can_prove_alive: false, timeout };
        let Some(session) = self.incoming.acquire_session(&request).await else {
            return Err((ResultCode::CONNECTIONS, "connection limit of the account or gateway reached"));
        };
        let source = match (gateway, sp) {
            (Some(GatewayLogin { options, .. }), _) => IncomingSource::Gateway { options },
            (None, Some(SpLogin { account, options })) => IncomingSource::Sp { account, options },
            (None, None) => return Err((ResultCode::LOGIN, LoginRefused::WrongPassword.reason())),
        };
        Ok(BindDecision::Accept { source, session, window_in })
    }
}

/// Compares passwords. The duration does not depend on the position of the first difference.
fn is_equal_constant_time(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
