use crate::options::BusinessAccountOptions;
use crate::problem::{Problem, ProblemKind};
use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::RwLock;
use ports::{AccountRate, AccountRates, LoginInterface, LoginLimiter, PasswordVerifier};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// An account and what its calls share.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) options: BusinessAccountOptions,
    rate: Arc<AccountRate>,
    pub(crate) counts: crate::account_state::CallCounts,
}

impl Account {
    /// Consumes rate for this many messages; false if the account is over its rate.
    pub(crate) fn take(&self, messages: usize, now: Instant) -> bool {
        let count = u32::try_from(messages).unwrap_or(u32::MAX);
        self.rate.take(count, now)
    }
}

/// All accounts, by name.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    by_name: RwLock<HashMap<String, Arc<Account>>>,
}

impl Accounts {
    pub(crate) fn set(&self, options: BusinessAccountOptions, rates: &AccountRates) -> Arc<Account> {
        let rate = rates.set(options.peer, options.rate, options.burst, Instant::now());
        let account = Arc::new(Account { rate, counts: Default::default(), options });
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

    /// Any password hash, verified for unknown accounts so that the rejection takes as long.
    fn any_hash(&self) -> Option<String> {
        self.by_name.read().values().next().map(|account| account.options.password_hash.clone())
    }
}

fn credentials(headers: &HeaderMap) -> Option<(String, Vec<u8>)> {
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

/// Authenticates a caller. An unknown name, a wrong password and a wrong network get the same answer in the same time.
pub(crate) async fn authenticate(
    accounts: &Accounts,
    verifier: &PasswordVerifier,
    limiter: &LoginLimiter,
    headers: &HeaderMap,
    remote: IpAddr,
) -> Result<Arc<Account>, Problem> {
    let refused = |detail: &str| Err(Problem::new(ProblemKind::Unauthorised, detail));
    let Some((name, password)) = credentials(headers) else {
        return refused("send the account's name and password (HTTP Basic)");
    };
    let account = accounts.find(&name);
    let network_allowed = account.as_ref().is_some_and(|account| {
        let networks = &account.options.networks;
        networks.is_empty() || networks.iter().any(|network| network.contains(remote))
    });
    let check = async {
        match &account {
            Some(account) if network_allowed => {
                verifier.verify(&account.options.password_hash, &password, Instant::now()).await
            }
            account => {
                let own = account.as_ref().map(|account| account.options.password_hash.clone());
                verifier.refuse(own.or_else(|| accounts.any_hash()).as_deref(), &password).await
            }
        }
    };
    let right = limiter.check(LoginInterface::Business, name.as_bytes(), remote, check).await;
    match (right, account) {
        (Ok(true), Some(account)) => Ok(account),
        (Err(shut), _) => refused(&shut.to_string()),
        _ => refused("unknown account, wrong password, or not allowed from this address"),
    }
}
