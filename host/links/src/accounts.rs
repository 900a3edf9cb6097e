use crate::LinkAccountOptions;
use bytes::Bytes;
use model::PeerId;
use parking_lot::RwLock;
use ports::{AccountLimits, AccountRegistry, Protocol, clock};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Instant;

/// An account, shared by its sessions.
#[derive(Debug)]
pub(crate) struct Account {
    options: RwLock<Arc<LinkAccountOptions>>,
    pub(crate) limits: Arc<AccountLimits>,
}

impl Account {
    pub(crate) fn options(&self) -> Arc<LinkAccountOptions> {
        self.options.read().clone()
    }
}

/// All accounts, by system_id.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    by_system_id: RwLock<FxHashMap<Bytes, Arc<Account>>>,
}

impl Accounts {
    /// Adds an account, or changes the account of that name. Existing sessions continue, and new rules about single
    /// messages apply to them. A changed system_id ends them.
    pub(crate) fn set(
        &self,
        options: LinkAccountOptions,
        registry: &AccountRegistry,
        until: Instant,
    ) -> Arc<Account> {
        let limits = registry.set(options.peer, options.rate, options.burst, clock::now());
        // Another protocol may have more connections than the account has sessions; then that number is the limit for
        // all protocols.
        let sgip = options.sgip.as_ref().map_or(0, |sp| sp.node.connections_in);
        let [cmpp, smgp] =
            [&options.cmpp, &options.smgp].map(|sp| sp.as_ref().map_or(0, |sp| sp.connections_in));
        limits.set_sessions(options.sessions.max(sgip).max(cmpp).max(smgp));
        let mut accounts = self.by_system_id.write();
        let renamed = accounts
            .iter()
            .find(|(system_id, account)| {
                account.options().name == options.name && **system_id != options.system_id
            })
            .map(|(system_id, _)| system_id.clone());
        if let Some(account) = renamed.and_then(|system_id| accounts.remove(&system_id)) {
            account.limits.close_sessions(Some(Protocol::Smpp), until);
        }
        match accounts.get(&options.system_id) {
            Some(account) => {
                *account.options.write() = Arc::new(options);
                account.clone()
            }
            None => {
                let system_id = options.system_id.clone();
                let account = Arc::new(Account { options: RwLock::new(Arc::new(options)), limits });
                accounts.insert(system_id, account.clone());
                account
            }
        }
    }

    /// Removes an account and unbinds its sessions. Returns its peer id; `None` if there is no such account.
    pub(crate) fn remove(&self, name: &str, until: Instant) -> Option<PeerId> {
        let mut accounts = self.by_system_id.write();
        let found = accounts.iter().find(|(_, account)| account.options().name == name);
        let system_id = found.map(|(system_id, _)| system_id.clone())?;
        let account = accounts.remove(&system_id)?;
        account.limits.close_sessions(None, until);
        Some(account.options().peer)
    }

    pub(crate) fn find(&self, system_id: &[u8]) -> Option<Arc<Account>> {
        self.by_system_id.read().get(system_id).cloned()
    }

    /// Returns the options of the account of that name.
    pub(crate) fn options_of(&self, name: &str) -> Option<Arc<LinkAccountOptions>> {
        let accounts = self.by_system_id.read();
        accounts.values().map(|account| account.options()).find(|options| options.name == name)
    }

    /// Returns the password hash of any account. For an unknown system_id, this hash is verified, so that the duration
    /// of a refusal does not reveal which system_ids exist.
    pub(crate) fn any_hash(&self) -> Option<String> {
        self.by_system_id.read().values().next().map(|account| account.options().password_hash.clone())
    }
}
