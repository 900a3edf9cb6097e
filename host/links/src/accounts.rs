use crate::state::LinkRecord;
use crate::{AccountOptions, clock};
use bytes::Bytes;
use doors::{AccountRate, AccountRates};
use model::PeerId;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

/// What a connection is told from outside.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    /// Take leave: finish what is under way until then, unbind, go.
    Leave(Instant),
    /// Show a sign of life until then, or go: another session wants the place.
    Prove(Instant),
}

#[derive(Debug)]
struct SessionEntry {
    record: Arc<LinkRecord>,
    control: UnboundedSender<Control>,
}

/// An account as its sessions share it.
#[derive(Debug)]
pub(crate) struct Account {
    options: RwLock<Arc<AccountOptions>>,
    rate: Arc<AccountRate>,
    sessions: Mutex<Vec<SessionEntry>>,
    /// A session has ended, or has proved that it lives.
    stirred: Notify,
}

/// A place among an account's sessions; given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    account: Arc<Account>,
    record: Arc<LinkRecord>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.account.sessions.lock().retain(|entry| !Arc::ptr_eq(&entry.record, &self.record));
        self.account.stirred.notify_waiters();
    }
}

impl Account {
    fn new(options: AccountOptions, rate: Arc<AccountRate>) -> Self {
        Self {
            options: RwLock::new(Arc::new(options)),
            rate,
            sessions: Mutex::default(),
            stirred: Notify::new(),
        }
    }

    pub(crate) fn options(&self) -> Arc<AccountOptions> {
        self.options.read().clone()
    }

    fn change(&self, options: AccountOptions) {
        *self.options.write() = Arc::new(options);
    }

    /// Whether `parts` may be submitted now.
    pub(crate) fn take(&self, parts: u32, now: Instant) -> bool {
        self.rate.take(parts, now)
    }

    /// A place, if there is one.
    fn free_seat(
        self: &Arc<Self>,
        record: &Arc<LinkRecord>,
        control: &UnboundedSender<Control>,
    ) -> Option<Seat> {
        let limit = self.options().sessions;
        let mut sessions = self.sessions.lock();
        if sessions.len() >= limit {
            return None;
        }
        sessions.push(SessionEntry { record: record.clone(), control: control.clone() });
        Some(Seat { account: self.clone(), record: record.clone() })
    }

    /// Finds a place for one more session. When all are taken, every session must prove within `patience` that it
    /// lives; one that does not makes room, being the half-open remainder of an ESME that comes back (sheet §2.3).
    pub(crate) async fn seat(
        self: &Arc<Self>,
        record: &Arc<LinkRecord>,
        control: &UnboundedSender<Control>,
        patience: Duration,
    ) -> Option<Seat> {
        if let Some(seat) = self.free_seat(record, control) {
            return Some(seat);
        }
        let asked = clock::now();
        for entry in self.sessions.lock().iter() {
            let _ = entry.control.send(Control::Prove(asked + patience));
        }
        let wait = async {
            loop {
                let mut stirred = pin!(self.stirred.notified());
                stirred.as_mut().enable();
                let seat = self.free_seat(record, control);
                if seat.is_some() || self.all_lived_since(asked) {
                    return seat;
                }
                stirred.await;
            }
        };
        // Those that prove nothing go when their time is up, which takes a moment too.
        tokio::time::timeout(patience + Duration::from_secs(1), wait).await.ok().flatten()
    }

    fn all_lived_since(&self, moment: Instant) -> bool {
        let now = clock::now();
        let since = now.saturating_duration_since(moment);
        self.sessions.lock().iter().all(|entry| entry.record.silent_for(now) <= since)
    }

    /// A session has shown the sign of life that it was asked for.
    pub(crate) fn lives(&self) {
        self.stirred.notify_waiters();
    }

    fn leave(&self, until: Instant) {
        for entry in self.sessions.lock().iter() {
            let _ = entry.control.send(Control::Leave(until));
        }
    }
}

/// All accounts, by system_id.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    by_system_id: RwLock<FxHashMap<Bytes, Arc<Account>>>,
}

impl Accounts {
    /// Adds an account or changes one. Sessions that exist go on, under the new rules where these concern single
    /// messages; a changed system_id ends them.
    pub(crate) fn set(&self, options: AccountOptions, rates: &AccountRates, until: Instant) -> Arc<Account> {
        let rate = rates.set(options.peer, options.rate, options.burst, clock::now());
        let mut accounts = self.by_system_id.write();
        let renamed = accounts
            .iter()
            .find(|(system_id, account)| {
                account.options().name == options.name && **system_id != options.system_id
            })
            .map(|(system_id, _)| system_id.clone());
        if let Some(account) = renamed.and_then(|system_id| accounts.remove(&system_id)) {
            account.leave(until);
        }
        match accounts.get(&options.system_id) {
            Some(account) => {
                account.change(options);
                account.clone()
            }
            None => {
                let (system_id, account) = (options.system_id.clone(), Arc::new(Account::new(options, rate)));
                accounts.insert(system_id, account.clone());
                account
            }
        }
    }

    /// Removes an account; its sessions are unbound. Its number, if there was one.
    pub(crate) fn remove(&self, name: &str, until: Instant) -> Option<PeerId> {
        let mut accounts = self.by_system_id.write();
        let found = accounts.iter().find(|(_, account)| account.options().name == name);
        let system_id = found.map(|(system_id, _)| system_id.clone())?;
        let account = accounts.remove(&system_id)?;
        account.leave(until);
        Some(account.options().peer)
    }

    pub(crate) fn find(&self, system_id: &[u8]) -> Option<Arc<Account>> {
        self.by_system_id.read().get(system_id).cloned()
    }

    /// The options of the account of that name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<AccountOptions>> {
        let accounts = self.by_system_id.read();
        accounts.values().map(|account| account.options()).find(|options| options.name == name)
    }

    /// Any account's password hash: something to verify against where there is no account, so that the time that a
    /// refusal takes does not tell which system_ids exist.
    pub(crate) fn any_hash(&self) -> Option<String> {
        self.by_system_id.read().values().next().map(|account| account.options().password_hash.clone())
    }
}
