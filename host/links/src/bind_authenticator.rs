//! Authentication of SMPP binds at our listeners: account, password, network, bind mode, session limit.

use crate::accounts::{Account, LinkControl, SessionPermit};
use crate::clock;
use crate::link_record::{LinkRecord, LinkRole};
use crate::smpp_acceptor::SmppAcceptor;
use ports::{ConnectionPermit, LoginInterface};
use smpp::{Bind, BindMode, CommandStatus, InterfaceVersion};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::mpsc::UnboundedSender;

/// The decision on a bind.
pub(crate) enum BindDecision {
    /// The ESME may bind.
    Accept {
        account: Arc<Account>,
        permit: SessionPermit,
        record: Arc<LinkRecord>,
        version: InterfaceVersion,
        mode: BindMode,
    },
    /// The ESME may not bind.
    Refuse { status: CommandStatus, reason: &'static str },
}

/// A bind whose authentication runs.
pub(crate) type PendingBind = Pin<Box<dyn Future<Output = BindDecision> + Send>>;

/// Authenticates the binds of one connection.
pub(crate) struct BindAuthenticator {
    pub(crate) acceptor: Arc<SmppAcceptor>,
    pub(crate) remote: SocketAddr,
    /// Marked as identified when a bind is accepted.
    pub(crate) connection: Arc<ConnectionPermit>,
    /// The connection's control channel, for the account's later commands to the session.
    pub(crate) control: UnboundedSender<LinkControl>,
}

impl BindAuthenticator {
    /// Starts the authentication of a bind.
    pub(crate) fn authenticate(self: &Arc<Self>, bind: Bind) -> PendingBind {
        let authenticator = self.clone();
        Box::pin(async move {
            let decision = authenticator.decide(bind).await;
            if matches!(decision, BindDecision::Accept { .. }) {
                authenticator.connection.identify();
            }
            decision
        })
    }

    /// Decides on a bind. An unknown system_id, a wrong password and a wrong network get the same answer, after the
    /// same time.
    async fn decide(&self, bind: Bind) -> BindDecision {
        let (acceptor, remote) = (&self.acceptor, self.remote);
        let shared = &acceptor.shared;
        let now = clock::now();
        let account = shared.accounts.find(&bind.system_id);
        let hash = account.as_ref().map(|account| account.options().password_hash.clone());
        let refuse = |status: CommandStatus, reason: &'static str| {
            shared.bind_counters.binds_refused.fetch_add(1, Relaxed);
            if shared.log.take(clock::now()).is_some() {
                tracing::warn!(
                    listener = %acceptor.options.name,
                    %remote,
                    system_id = %String::from_utf8_lossy(&bind.system_id),
                    bind = bind.mode.name(),
                    %status,
                    reason,
                    "bind refused"
                );
            }
            BindDecision::Refuse { status, reason }
        };
        let is_allowed_network = account.as_ref().is_some_and(|account| {
            let networks = &account.options().networks;
            networks.is_empty() || networks.iter().any(|network| network.contains(remote.ip()))
        });
        let check = async {
            match &hash {
                Some(hash) if is_allowed_network => shared.verifier.verify(hash, &bind.password, now).await,
                hash => {
                    let any = hash.clone().or_else(|| shared.accounts.any_hash());
                    shared.verifier.refuse(any.as_deref(), &bind.password).await
                }
            }
        };
        let account =
            match shared.limiter.check(LoginInterface::Smpp, &bind.system_id, remote.ip(), check).await {
                Ok(true) => account,
                Ok(false) if account.is_some() && !is_allowed_network => {
                    return refuse(CommandStatus::RINVPASWD, "the account may not bind from this address");
                }
                Ok(false) => None,
                Err(_) => {
                    return refuse(
                        CommandStatus::RBINDFAIL,
                        "too many wrong passwords for this account from its address",
                    );
                }
            };
        let Some(account) = account else {
            return refuse(CommandStatus::RINVPASWD, "unknown system_id or wrong password");
        };
        let options = account.options();
        if shared.refuse_binds.load(Relaxed) {
            return refuse(CommandStatus::RBINDFAIL, "the appliance is draining");
        }
        if !options.bind.contains(&bind.mode) {
            return refuse(CommandStatus::RBINDFAIL, "the account may not bind in this mode");
        }
        let record =
            LinkRecord::new(LinkRole::Server, options.peer, &options.name, 0, acceptor.tls.is_some());
        record.set_remote(remote);
        // At most half of the time that the ESME has to bind: the answer must come before that is over.
        let timeout = acceptor.options.enquire_timeout.min(acceptor.options.bind_timeout / 2);
        let Some(permit) = account.acquire_session(&record, &self.control, timeout).await else {
            return refuse(CommandStatus::RBINDFAIL, "session limit of the account reached");
        };
        shared.bind_counters.binds.fetch_add(1, Relaxed);
        let version = InterfaceVersion(bind.interface_version);
        BindDecision::Accept { account, permit, record, version, mode: bind.mode }
    }
}
