use crate::options::BusinessAccountOptions;
use crate::problem::{Problem, ProblemKind};
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::RwLock;
use ports::{
    AccountLimits, AccountRegistry, LoginAccount, LoginAttempt, LoginInterface, LoginRefused, LoginSecret,
    PasswordVerifier,
};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// An account, and the state that its calls share.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) options: BusinessAccountOptions,
    limits: Arc<AccountLimits>,
    pub(crate) counts: crate::account_state::CallCounts,
}

impl Account {
    /// Takes tokens of the rate limit for this number of messages; false if the account exceeds its rate.
    pub(crate) fn take(&self, messages: usize, now: Instant) -> bool {
        let count = u32::try_from(messages).unwrap_or(u32::MAX);
        self.limits.take(count, now)
    }
}

/// All accounts, by name.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    by_name: RwLock<HashMap<String, Arc<Account>>>,
}

impl Accounts {
    pub(crate) fn set(&self, options: BusinessAccountOptions, registry: &AccountRegistry) -> Arc<Account> {
        let limits = registry.set(options.peer, options.rate, options.burst, Instant::now());
        let account = Arc::new(Account { limits, counts: Default::default(), options });
        self.by_name.write().insert(account.options.name.clone(), account.clone());
        account
    }

    pub(crate) fn remove(&self, name: &str) -> bool {
        self.by_name.write().remove(name).is_some()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Account>> {
        self.by_name.read().get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Account>> {
        self.by_name.read().values().cloned().collect()
    }

    /// An arbitrary password hash. It is verified for unknown accounts, so that the rejection takes the same time.
    fn any_hash(&self) -> Option<String> {
        self.by_name.read().values().next().map(|account| account.options.password_hash.clone())
    }
}

pub(crate) fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, word) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = STANDARD.decode(word.trim()).ok()?;
    let colon = pair.iter().position(|octet| *octet == b':')?;
    let name = String::from_utf8(pair.get(..colon)?.to_vec()).ok()?;
    Some((name, pair.get(colon + 1..)?.to_vec()))
}

/// Authenticates a caller. An unknown name, a wrong password and a wrong network get the same response in the same time.
pub(crate) async fn authenticate(
    accounts: &Accounts,
    verifier: &PasswordVerifier,
    registry: &AccountRegistry,
    headers: &HeaderMap,
    remote: IpAddr,
) -> Result<Arc<Account>, Problem> {
    let Some((name, password)) = credentials(headers) else {
        let detail = "send the account's name and password (HTTP Basic)";
        return Err(Problem::new(ProblemKind::Unauthorised, detail));
    };
    log_in(accounts, verifier, registry, (&name, &password), remote).await
}

/// [`authenticate`] with this name and password.
pub(crate) async fn log_in(
    accounts: &Accounts,
    verifier: &PasswordVerifier,
    registry: &AccountRegistry,
    (name, password): (&str, &[u8]),
    remote: IpAddr,
) -> Result<Arc<Account>, Problem> {
    let refused = |detail: &str| Err(Problem::new(ProblemKind::Unauthorised, detail));
    let account = accounts.find(name);
    let named = account.as_ref().map(|account| LoginAccount {
        account: Some(account.options.peer),
        networks: &account.options.networks,
        secret: LoginSecret::Hash(&account.options.password_hash),
    });
    let interface = LoginInterface::Business;
    let attempt = LoginAttempt { interface, name: name.as_bytes(), password, remote };
    let checked = registry.authenticate(verifier, &attempt, named, accounts.any_hash().as_deref()).await;
    match (checked, account) {
        (Ok(()), Some(account)) => Ok(account),
        (Err(LoginRefused::Blocked(blocked)), _) => refused(&blocked.to_string()),
        _ => refused("unknown account, wrong password, or not allowed from this address"),
    }
}
