use crate::options::{AccountOptions, Rights};
use doors::matches;
use model::PoolName;
use std::collections::HashMap;
use std::sync::Arc;

/// An account as connections know it.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) options: AccountOptions,
}

impl Account {
    /// Whether the account may see a pool at all.
    pub(crate) fn sees(&self, pool: &PoolName) -> bool {
        let name = pool.as_str().as_bytes();
        self.options.pools.iter().any(|pattern| matches(pattern.as_bytes(), name))
    }
}

/// Who may come in.
#[derive(Debug, Default)]
pub(crate) struct Accounts(HashMap<String, Arc<Account>>);

impl Accounts {
    pub(crate) fn new(accounts: Vec<AccountOptions>) -> Self {
        let named = |options: AccountOptions| (options.name.clone(), Arc::new(Account { options }));
        Self(accounts.into_iter().map(named).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<Arc<Account>> {
        self.0.get(std::str::from_utf8(name).ok()?).cloned()
    }

    /// Any account's hash: a name that nobody has must not be told by the time that its refusal takes.
    pub(crate) fn any_hash(&self) -> Option<&str> {
        self.0.values().next().map(|account| account.options.password_hash.as_str())
    }
}

/// Who a connection is, and what that allows.
#[derive(Debug)]
pub(crate) struct Permit {
    /// `None`: there are no accounts, and everything is allowed.
    account: Option<Arc<Account>>,
    /// As it stands in the pools' journals.
    pub(crate) by: Arc<str>,
    /// The pool that was asked for last, and whether it may be seen.
    last: Option<(PoolName, bool)>,
}

/// One of the [`Rights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    Read,
    Call,
    Manage,
}

/// What is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// What is asked.
    Command,
    /// The pool.
    Pool,
}

impl Permit {
    /// Where there are no accounts.
    pub(crate) fn open() -> Self {
        Self { account: None, by: "redis".into(), last: None }
    }

    pub(crate) fn of(account: Arc<Account>) -> Self {
        // A name of its own for each connection, since counting those who share one would keep the cores busy.
        Self { by: account.options.name.as_str().into(), account: Some(account), last: None }
    }

    pub(crate) fn check(&mut self, pool: &PoolName, right: Right) -> Result<(), Denied> {
        let Some(account) = &self.account else { return Ok(()) };
        let Rights { read, call, manage } = account.options.rights;
        let allowed = match right {
            Right::Read => read,
            Right::Call => call,
            Right::Manage => manage,
        };
        if !allowed {
            return Err(Denied::Command);
        }
        let seen = match &self.last {
            Some((last, seen)) if last == pool => *seen,
            _ => {
                let seen = account.sees(pool);
                self.last = Some((pool.clone(), seen));
                seen
            }
        };
        if seen { Ok(()) } else { Err(Denied::Pool) }
    }

    /// Whether a list may name the pool.
    pub(crate) fn lists(&self, pool: &PoolName) -> bool {
        self.account.as_ref().is_none_or(|account| account.options.rights.read && account.sees(pool))
    }
}
