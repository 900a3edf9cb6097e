use crate::link_record::LinkRecord;
use crate::{LinkAccountOptions, clock};
use bytes::Bytes;
use model::PeerId;
use parking_lot::{Mutex, RwLock};
use ports::{AccountRate, AccountRates};
use rustc_hash::FxHashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// A control message to a connection.
#[derive(Debug, Clone)]
pub(crate) enum LinkControl {
    /// Close: finish the requests in progress until this moment, unbind, close the connection.
    Close(Instant),
    /// Show a sign of life until this moment, or be closed: another session needs the permit.
    ProveAlive(Instant),
}

/// The receiver of the [`LinkControl`] messages of one connection.
pub(crate) type ControlReceiver = UnboundedReceiver<LinkControl>;

#[derive(Debug)]
struct SessionEntry {
    record: Arc<LinkRecord>,
    control: UnboundedSender<LinkControl>,
}

/// An account, shared by its sessions.
#[derive(Debug)]
pub(crate) struct Account {
    options: RwLock<Arc<LinkAccountOptions>>,
    rate: Arc<AccountRate>,
    sessions: Mutex<Vec<SessionEntry>>,
    /// A session has ended, or has shown a sign of life.
    sessions_changed: Notify,
}

/// A permit for one session of an account, released when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionPermit {
    account: Arc<Account>,
    record: Arc<LinkRecord>,
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.account.sessions.lock().retain(|entry| !Arc::ptr_eq(&entry.record, &self.record));
        self.account.sessions_changed.notify_waiters();
    }
}

impl Account {
    fn new(options: LinkAccountOptions, rate: Arc<AccountRate>) -> Self {
        Self {
            options: RwLock::new(Arc::new(options)),
            rate,
            sessions: Mutex::default(),
            sessions_changed: Notify::new(),
        }
    }

    pub(crate) fn options(&self) -> Arc<LinkAccountOptions> {
        self.options.read().clone()
    }

    fn set_options(&self, options: LinkAccountOptions) {
        *self.options.write() = Arc::new(options);
    }

    /// Takes `parts` segments from the account's rate. Returns whether they may be submitted now.
    pub(crate) fn take_rate(&self, segments: u32, now: Instant) -> bool {
        self.rate.take(segments, now)
    }

    /// Acquires a session permit, if one is free.
    fn try_acquire_session(
        self: &Arc<Self>,
        record: &Arc<LinkRecord>,
        control: &UnboundedSender<LinkControl>,
    ) -> Option<SessionPermit> {
        let limit = self.options().sessions;
        let mut sessions = self.sessions.lock();
        if sessions.len() >= limit {
            return None;
        }
        sessions.push(SessionEntry { record: record.clone(), control: control.clone() });
        Some(SessionPermit { account: self.clone(), record: record.clone() })
    }

    /// Acquires a session permit. If all are taken, every session must show a sign of life within `timeout`. A
    /// session that does not is closed, and its permit is free: it is the half-open remainder of an ESME that
    /// reconnects (sheet §2.3).
    pub(crate) async fn acquire_session(
        self: &Arc<Self>,
        record: &Arc<LinkRecord>,
        control: &UnboundedSender<LinkControl>,
        timeout: Duration,
    ) -> Option<SessionPermit> {
        if let Some(permit) = self.try_acquire_session(record, control) {
            return Some(permit);
        }
        let started = clock::now();
        for entry in self.sessions.lock().iter() {
            let _ = entry.control.send(LinkControl::ProveAlive(started + timeout));
        }
        let wait = async {
            loop {
                let mut sessions_changed = pin!(self.sessions_changed.notified());
                sessions_changed.as_mut().enable();
                let permit = self.try_acquire_session(record, control);
                if permit.is_some() || self.all_heard_since(started) {
                    return permit;
                }
                sessions_changed.await;
            }
        };
        // A session without a sign of life closes when its time is up, which takes a moment too.
        tokio::time::timeout(timeout + Duration::from_secs(1), wait).await.ok().flatten()
    }

    fn all_heard_since(&self, moment: Instant) -> bool {
        let now = clock::now();
        let since = now.saturating_duration_since(moment);
        self.sessions.lock().iter().all(|entry| entry.record.silent_for(now) <= since)
    }

    /// Reports that a session has shown the sign of life that was requested.
    pub(crate) fn report_alive(&self) {
        self.sessions_changed.notify_waiters();
    }

    fn close_sessions(&self, until: Instant) {
        for entry in self.sessions.lock().iter() {
            let _ = entry.control.send(LinkControl::Close(until));
        }
    }
}

/// All accounts, by system_id.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    by_system_id: RwLock<FxHashMap<Bytes, Arc<Account>>>,
}

impl Accounts {
    /// Adds an account, or changes the one of that name. Existing sessions continue; new rules about single messages
    /// apply to them. A changed system_id ends them.
    pub(crate) fn set(
        &self,
        options: LinkAccountOptions,
        rates: &AccountRates,
        until: Instant,
    ) -> Arc<Account> {
        let rate = rates.set(options.peer, options.rate, options.burst, clock::now());
        let mut accounts = self.by_system_id.write();
        let renamed = accounts
            .iter()
            .find(|(system_id, account)| {
                account.options().name == options.name && **system_id != options.system_id
            })
            .map(|(system_id, _)| system_id.clone());
        if let Some(account) = renamed.and_then(|system_id| accounts.remove(&system_id)) {
            account.close_sessions(until);
        }
        match accounts.get(&options.system_id) {
            Some(account) => {
                account.set_options(options);
                account.clone()
            }
            None => {
                let (system_id, account) = (options.system_id.clone(), Arc::new(Account::new(options, rate)));
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
        account.close_sessions(until);
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

    /// Returns the password hash of any account. It is verified where there is no account, so that the time of a
    /// refusal does not tell which system_ids exist.
    pub(crate) fn any_hash(&self) -> Option<String> {
        self.by_system_id.read().values().next().map(|account| account.options().password_hash.clone())
    }
}
