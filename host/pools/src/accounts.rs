use crate::redis_options::{RedisAccountOptions, RedisPermissions};
use model::PoolName;
use std::collections::HashMap;
use std::sync::Arc;

/// An account, shared by its connections.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) options: RedisAccountOptions,
}

/// All accounts by name.
#[derive(Debug, Default)]
pub(crate) struct Accounts(HashMap<String, Arc<Account>>);

impl Accounts {
    pub(crate) fn new(accounts: Vec<RedisAccountOptions>) -> Self {
        let named = |options: RedisAccountOptions| (options.name.clone(), Arc::new(Account { options }));
        Self(accounts.into_iter().map(named).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<Account>> {
        self.0.get(std::str::from_utf8(name).ok()?).cloned()
    }

    /// The hash of any account, so that the timing of a refusal does not reveal unknown names.
    pub(crate) fn any_hash(&self) -> Option<&str> {
        self.0.values().next().map(|account| account.options.password_hash.as_str())
    }
}

/// The account of a connection, with its permissions.
#[derive(Debug)]
pub(crate) struct Authorization {
    /// `None`: no accounts are configured, and everything is allowed.
    account: Option<Arc<Account>>,
    /// The name in the pools' journals.
    pub(crate) by: Arc<str>,
    /// The last pool that was checked, and whether it is visible.
    last_pool: Option<(PoolName, bool)>,
}

/// The permission that a request needs; see [`RedisPermissions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolAction {
    Read,
    Lease,
    Manage,
}

/// Reason why a request is denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionDenied {
    /// The account lacks the permission for the command.
    Command,
    /// The account may not see the pool.
    Pool,
}

impl Authorization {
    /// The authorization without configured accounts.
    pub(crate) fn open() -> Self {
        Self { account: None, by: "redis".into(), last_pool: None }
    }

    pub(crate) fn of(account: Arc<Account>) -> Self {
        // A copy per connection: a shared reference count would be contended between cores.
        Self { by: account.options.name.as_str().into(), account: Some(account), last_pool: None }
    }

    pub(crate) fn check(&mut self, pool: &PoolName, action: PoolAction) -> Result<(), PermissionDenied> {
        let Some(account) = &self.account else { return Ok(()) };
        let RedisPermissions { read, lease, manage } = account.options.permissions;
        let allowed = match action {
            PoolAction::Read => read,
            PoolAction::Lease => lease,
            PoolAction::Manage => manage,
        };
        if !allowed {
            return Err(PermissionDenied::Command);
        }
        let visible = match &self.last_pool {
            Some((last_pool, visible)) if last_pool == pool => *visible,
            _ => {
                let visible = account.options.can_see(pool.as_str());
                self.last_pool = Some((pool.clone(), visible));
                visible
            }
        };
        if visible { Ok(()) } else { Err(PermissionDenied::Pool) }
    }

    /// Whether a list may contain the pool.
    pub(crate) fn can_list(&self, pool: &PoolName) -> bool {
        self.account
            .as_ref()
            .is_none_or(|account| account.options.permissions.read && account.options.can_see(pool.as_str()))
    }
}
