//! Authentication of SMPP binds at our listeners: account, password, network, bind mode, session limit.

use crate::ListenerOptions;
use crate::accounts::Account;
use crate::shared::Shared;
use ports::link::{IncomingPeer, LinkRecord, PendingLogin};
use ports::{
    LoginAccount, LoginAttempt, LoginInterface, LoginRefused, LoginSecret, Protocol, SessionPermit,
    SessionRequest,
};
use smpp::{Bind, BindMode, CommandStatus, InterfaceVersion};
use std::sync::Arc;

/// The decision on a bind.
pub(crate) enum BindDecision {
    /// The ESME may bind.
    Accept {
        account: Arc<Account>,
        session: (Arc<LinkRecord>, SessionPermit),
        version: InterfaceVersion,
        mode: BindMode,
    },
    /// The ESME may not bind.
    Refuse { status: CommandStatus, reason: &'static str },
}

/// Authenticates the binds of one connection.
#[derive(Clone)]
pub(crate) struct BindAuthenticator {
    pub(crate) shared: Arc<Shared>,
    pub(crate) options: Arc<ListenerOptions>,
    pub(crate) incoming: IncomingPeer,
}

impl BindAuthenticator {
    /// Starts the authentication of a bind.
    pub(crate) fn authenticate(&self, bind: Bind) -> PendingLogin<BindDecision> {
        let authenticator = self.clone();
        Box::pin(async move {
            let incoming = &authenticator.incoming;
            let attempt = LoginAttempt {
                interface: LoginInterface::Smpp,
                name: &bind.system_id,
                password: &bind.password,
                remote: incoming.remote.ip(),
            };
            let decision = authenticator.decide(&bind, &attempt).await;
            let decision = incoming.on_decision(&attempt, decision);
            decision.unwrap_or_else(|(status, reason)| BindDecision::Refuse { status, reason })
        })
    }

    /// Decides about a bind. An unknown system_id, a wrong password and a wrong network get the same answer after the
    /// same time.
    async fn decide(
        &self,
        bind: &Bind,
        attempt: &LoginAttempt<'_>,
    ) -> Result<BindDecision, (CommandStatus, &'static str)> {
        let shared = &self.shared;
        let account = shared.accounts.find(&bind.system_id);
        let options = account.as_ref().map(|account| account.options());
        let named = options.as_ref().map(|options| LoginAccount {
            account: Some(options.peer),
            networks: &options.networks,
            secret: LoginSecret::Hash(&options.password_hash),
        });
        let any_hash = shared.accounts.any_hash();
        let registry = shared.deps.registry.accounts();
        let checked = registry.authenticate(&shared.verifier, attempt, named, any_hash.as_deref()).await;
        let (account, options) = match (checked, account.zip(options)) {
            (Ok(()), Some(named)) => named,
            (Err(refused @ LoginRefused::Blocked(_)), _) => {
                return Err((CommandStatus::RBINDFAIL, refused.reason()));
            }
            (Err(refused), _) => return Err((CommandStatus::RINVPASWD, refused.reason())),
            (Ok(()), None) => return Err((CommandStatus::RINVPASWD, LoginRefused::WrongPassword.reason())),
        };
        if shared.deps.refuses_logins() {
            return Err((CommandStatus::RBINDFAIL, "the appliance is draining"));
        }
        if !options.bind.contains(&bind.mode) {
            return Err((CommandStatus::RBINDFAIL, "the account may not bind in this mode"));
        }
        let request = SessionRequest {
            limits: &account.limits,
            name: &options.name,
            protocol: Protocol::Smpp,
            limit: options.sessions,
            can_prove_alive: true,
            // At most half of the ESME's bind timeout, because the answer must arrive within it.
            timeout: self.options.enquire_timeout.min(self.options.bind_timeout / 2),
        };
        let Some(session) = self.incoming.acquire_session(&request).await else {
            return Err((CommandStatus::RBINDFAIL, "session limit of the account reached"));
        };
        let version = InterfaceVersion(bind.interface_version);
        Ok(BindDecision::Accept { account, session, version, mode: bind.mode })
    }
}
