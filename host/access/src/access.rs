use crate::audit::{AUDIT, Audit};
use crate::secret;
use crate::session::Sessions;
use crate::user_directory::{TokenRecord, UserDirectory, UserRecord, token_info};
use crate::{AccessError, AuditQuery, Caller, NewSession, NewUser, Principal, Session, UserChange};
use api::{AuditEntry, AuditPage, AuditRecord, TokenInfo, TokenRequest, User};
use model::{AccountScope, Now};
use parking_lot::{Mutex, RwLock};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use snapshot::{Snapshot, SnapshotError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Table of users. Key: name; value: JSON of a [`UserRecord`].
const USERS: TableDefinition<&str, &[u8]> = TableDefinition::new("users");
/// Table of tokens. Key: name; value: JSON of a [`TokenRecord`].
const TOKENS: TableDefinition<&str, &[u8]> = TableDefinition::new("tokens");

/// The tables that the nodes of a cluster share.
const KINDS: [(&str, TableDefinition<&str, &[u8]>); 2] = [("users", USERS), ("tokens", TOKENS)];

/// Prefix of token secrets, by which secret scanners recognise a leaked token.
const TOKEN_PREFIX: &str = "swyd_";

/// The access store: users, tokens, sessions and the audit log, in `access.redb`.
///
/// Users and tokens are also kept in memory, so authentication reads no disk. Methods that change them and methods of the audit
/// log block until the disk has written.
#[derive(Debug)]
pub struct Access {
    path: PathBuf,
    database: Arc<Database>,
    directory: RwLock<Arc<UserDirectory>>,
    /// Held from the start of a change until it is written.
    write_lock: Mutex<()>,
    /// Counts the changes of users and tokens since the file was opened.
    changes: AtomicU64,
    sessions: Sessions,
    audit: Audit,
}

impl Access {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// If the file cannot be opened, created or read, or a record is damaged.
    pub fn open(path: &Path) -> Result<Self, AccessError> {
        let failed =
            |error: redb::Error| AccessError::Store { path: path.to_owned(), source: Arc::new(error) };
        // A small cache: there are few users, compared to millions of messages.
        let database = Database::builder().set_cache_size(8 << 20).create(path);
        let database = Arc::new(database.map_err(|error| failed(error.into()))?);
        let make = || -> Result<(), redb::Error> {
            let transaction = database.begin_write()?;
            transaction.open_table(USERS)?;
            transaction.open_table(TOKENS)?;
            transaction.open_table(AUDIT)?;
            Ok(transaction.commit()?)
        };
        make().map_err(failed)?;
        let directory = load(path, &database)?;
        Ok(Self {
            path: path.to_owned(),
            audit: Audit::new(path, database.clone())?,
            database,
            directory: RwLock::new(Arc::new(directory)),
            write_lock: Mutex::default(),
            changes: AtomicU64::new(0),
            sessions: Sessions::default(),
        })
    }

    /// Sets the retention of audit records. Default: [`DEFAULT_AUDIT_RETENTION`](crate::DEFAULT_AUDIT_RETENTION).
    pub fn set_audit_retention(&self, audit: Duration) {
        self.audit.set_retention(audit);
    }

    /// Whether expired audit records are deleted. They are not deleted if, when the file was opened, the clock was more than 30
    /// days after the newest record: such a clock may be wrong.
    #[must_use]
    pub fn trims_audit_log(&self) -> bool {
        self.audit.trims()
    }

    /// The redb database, for backups. Read it in a transaction of this handle while it is open.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Takes a snapshot of the file for a backup. Changes continue meanwhile.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(&self.path, &self.database, |copier| {
            copier.table(USERS)?;
            copier.table(TOKENS)?;
            copier.table(AUDIT)
        })
    }

    fn directory(&self) -> Arc<UserDirectory> {
        self.directory.read().clone()
    }

    /// Applies a change to a copy of the directory, writes one record, then publishes the copy.
    fn change<T, R: Serialize>(
        &self,
        table: TableDefinition<&str, &[u8]>,
        change: impl FnOnce(&mut UserDirectory) -> Result<T, AccessError>,
        written: impl FnOnce(&UserDirectory, &T) -> (Arc<str>, Option<R>),
    ) -> Result<T, AccessError> {
        let _lock = self.write_lock.lock();
        let mut directory = UserDirectory::clone(&self.directory());
        let made = change(&mut directory)?;
        let (name, record) = written(&directory, &made);
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let mut table = transaction.open_table(table)?;
                match record {
                    Some(record) => {
                        let octets = serde_json::to_vec(&record).map_err(std::io::Error::other)?;
                        table.insert(&*name, octets.as_slice())?;
                    }
                    None => {
                        table.remove(&*name)?;
                    }
                }
            }
            Ok(transaction.commit()?)
        };
        write().map_err(|error| AccessError::Store { path: self.path.clone(), source: Arc::new(error) })?;
        *self.directory.write() = Arc::new(directory);
        self.changes.fetch_add(1, Relaxed);
        Ok(made)
    }

    /// Changes of users and tokens since the file was opened.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// All users and tokens in their stored form, for another node of a cluster: `users/NAME` and `tokens/NAME`.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn records(&self) -> Result<BTreeMap<String, Vec<u8>>, AccessError> {
        let mut all = BTreeMap::new();
        for (kind, table) in KINDS {
            for (name, record) in octets(&self.path, &self.database, table)? {
                all.insert(format!("{kind}/{name}"), record);
            }
        }
        Ok(all)
    }

    /// Sets records of another node of the cluster; `None` removes a record. All changes are applied, or none.
    ///
    /// # Errors
    /// If a value is not a valid record, or the disk fails.
    pub fn set_records(&self, changes: &[(String, Option<Vec<u8>>)]) -> Result<(), AccessError> {
        let _lock = self.write_lock.lock();
        let damaged = |what: String| AccessError::Damaged { path: self.path.clone(), what };
        let mut rows = Vec::new();
        for (full_name, record) in changes {
            let (kind, name) = full_name.split_once('/').unwrap_or_default();
            let (_, table) = KINDS
                .into_iter()
                .find(|(known, _)| *known == kind)
                .ok_or_else(|| damaged(format!("{full_name:?} is neither a user nor a token")))?;
            if let Some(record) = record {
                let checked = if kind == "users" {
                    serde_json::from_slice::<UserRecord>(record).map(drop)
                } else {
                    serde_json::from_slice::<TokenRecord>(record).map(drop)
                };
                checked.map_err(|error| damaged(format!("the record of {full_name:?}: {error}")))?;
            }
            rows.push((table, name, record));
        }
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            for (table, name, record) in &rows {
                let mut table = transaction.open_table(*table)?;
                match record {
                    Some(record) => drop(table.insert(*name, record.as_slice())?),
                    None => drop(table.remove(*name)?),
                }
            }
            Ok(transaction.commit()?)
        };
        write().map_err(|error| AccessError::Store { path: self.path.clone(), source: Arc::new(error) })?;
        *self.directory.write() = Arc::new(load(&self.path, &self.database)?);
        self.changes.fetch_add(1, Relaxed);
        Ok(())
    }

    /// All users, sorted by name.
    #[must_use]
    pub fn users(&self) -> Vec<User> {
        self.directory().all_users()
    }

    /// The user of this name.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn user(&self, name: &str) -> Result<User, AccessError> {
        let missing = || AccessError::Missing { what: "user", name: name.to_owned() };
        self.directory().user(name).ok_or_else(missing)
    }

    /// The password hash and the version of a user, for verifying a password. `None` if there is no such user, or the user has
    /// no password.
    #[must_use]
    pub fn password_hash(&self, name: &str) -> Option<(String, u64)> {
        let directory = self.directory();
        let record = directory.users.get(name)?;
        record.password_hash.clone().map(|hash| (hash, record.version))
    }

    /// Creates a user.
    ///
    /// # Errors
    /// If a field is invalid, the name is taken, or the disk fails.
    pub fn add_user(&self, new: NewUser, by: &str, now: Now) -> Result<User, AccessError> {
        let record =
            |directory: &UserDirectory, name: &Arc<str>| (name.clone(), directory.users.get(name).cloned());
        let name = self.change(USERS, |directory| directory.add_user(new, by, now.wall), record)?;
        self.user(&name)
    }

    /// Changes a user. A new password ends all sessions of the user except the session with the secret `except`. A new role
    /// applies to existing sessions at once.
    ///
    /// # Errors
    /// If there is no such user, the user is no longer at the `expected` version, a field is invalid, no admin would remain, or
    /// the disk fails.
    pub fn change_user(
        &self,
        name: &str,
        change: UserChange,
        expected: Option<u64>,
        (by, except): (&str, Option<&str>),
        now: Now,
    ) -> Result<User, AccessError> {
        let ends_sessions = change.password_hash.is_some();
        let key: Arc<str> = name.into();
        let changed = self.change(
            USERS,
            |directory| {
                directory.change_user(name, change, expected, by, now.wall)?;
                directory
                    .user(name)
                    .ok_or_else(|| AccessError::Missing { what: "user", name: name.to_owned() })
            },
            |directory, _| (key.clone(), directory.users.get(&key).cloned()),
        )?;
        if ends_sessions {
            self.sessions.close_all(&Principal::User(key), except);
        }
        Ok(changed)
    }

    /// Removes a user and ends all sessions of the user.
    ///
    /// # Errors
    /// As [`Access::change_user`].
    pub fn remove_user(&self, name: &str, expected: Option<u64>) -> Result<(), AccessError> {
        let key: Arc<str> = name.into();
        self.change(
            USERS,
            |directory| directory.remove_user(name, expected),
            |_, ()| (key.clone(), None::<UserRecord>),
        )?;
        self.sessions.close_all(&Principal::User(key), None);
        Ok(())
    }

    /// All tokens, sorted by name, including expired ones.
    #[must_use]
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.directory().all_tokens()
    }

    /// Creates a token and returns its secret. Only the SHA-256 of the secret is stored.
    ///
    /// # Errors
    /// If a field is invalid, the name is taken, or the disk fails.
    pub fn create_token(
        &self,
        new: TokenRequest,
        by: &str,
        now: Now,
    ) -> Result<(String, TokenInfo), AccessError> {
        let secret = format!("{TOKEN_PREFIX}{}", secret::generate()?);
        let hash = secret::hash(&secret);
        let (_, made) = self.change(
            TOKENS,
            |directory| {
                let name = directory.add_token(new, hash, by, now.wall)?;
                let missing = || AccessError::Missing { what: "token", name: name.to_string() };
                let made = directory.tokens.get(&name).map(|record| token_info(&name, record));
                Ok((name.clone(), made.ok_or_else(missing)?))
            },
            |directory, (name, _)| (name.clone(), directory.tokens.get(name).cloned()),
        )?;
        Ok((secret, made))
    }

    /// Removes a token and ends all sessions opened with it.
    ///
    /// # Errors
    /// If there is no such token, or the disk fails.
    pub fn remove_token(&self, name: &str) -> Result<(), AccessError> {
        let key: Arc<str> = name.into();
        self.change(
            TOKENS,
            |directory| directory.remove_token(name),
            |_, ()| (key.clone(), None::<TokenRecord>),
        )?;
        self.sessions.close_all(&Principal::Token(key), None);
        Ok(())
    }

    /// The principal and caller of a token secret. `None` if the secret is unknown, or the token has expired.
    #[must_use]
    pub fn bearer(&self, secret: &str, now: Now) -> Option<(Principal, Caller)> {
        let directory = self.directory();
        let name = directory.token_hashes.get(&secret::hash(secret))?;
        let caller = directory.bearer(name, now.wall)?;
        Some((Principal::Token(name.clone()), caller))
    }

    /// The expiry time of the principal's token. `None` if the principal is not a token, or the token does not expire.
    #[must_use]
    pub fn token_end(&self, principal: &Principal) -> Option<model::Timestamp> {
        match principal {
            Principal::Token(name) => self.directory().tokens.get(name).and_then(|record| record.until),
            _ => None,
        }
    }

    /// Opens a session for a principal that has just been authenticated. Returns `None` if the user's version is no longer
    /// `version`, or the token has expired.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn open_session(
        &self,
        principal: &Principal,
        version: Option<u64>,
        now: Now,
    ) -> Result<Option<(Caller, NewSession)>, AccessError> {
        let mut caller = None;
        let opened = self.sessions.open(principal.clone(), now, || {
            let directory = self.directory();
            let is_current = match principal {
                Principal::User(name) => directory.users.get(name).map(|record| record.version) == version,
                _ => true,
            };
            caller = self.caller(&directory, principal, now).filter(|_| is_current);
            caller.is_some()
        })?;
        Ok(caller.zip(opened))
    }

    /// The current caller of a principal. `None` if the user or token no longer exists or has expired.
    #[must_use]
    pub fn current_caller(&self, principal: &Principal, now: Now) -> Option<Caller> {
        self.caller(&self.directory(), principal, now)
    }

    fn caller(&self, directory: &UserDirectory, principal: &Principal, now: Now) -> Option<Caller> {
        match principal {
            Principal::RootToken => Some(Caller::root()),
            Principal::User(name) => directory.caller(name),
            Principal::Token(name) => directory.bearer(name, now.wall),
        }
    }

    /// The session of a secret; counts as a use of the session. The caller is looked up on every call.
    #[must_use]
    pub fn use_session(&self, secret: &str, now: Now) -> Option<Session> {
        self.find_session(secret, now, true)
    }

    /// Like [`Access::use_session`], but does not count as a use. For pages that refresh themselves: an idle session still
    /// expires.
    #[must_use]
    pub fn peek_session(&self, secret: &str, now: Now) -> Option<Session> {
        self.find_session(secret, now, false)
    }

    fn find_session(&self, secret: &str, now: Now, uses: bool) -> Option<Session> {
        let (principal, until, csrf) = self.sessions.find(secret, now, uses)?;
        let caller = self.caller(&self.directory(), &principal, now)?;
        Some(Session::new(principal, caller, until, csrf))
    }

    /// Ends a session. Returns whether it existed.
    pub fn close_session(&self, secret: &str) -> bool {
        self.sessions.close(secret)
    }

    /// Appends a record to the audit log and returns its serial. The record is durable on return.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn append_audit(&self, record: AuditRecord) -> Result<u64, AccessError> {
        self.audit.add(record)
    }

    /// The audit records after this serial, oldest first, at most `limit` records.
    ///
    /// # Errors
    /// If the disk fails, or a record is damaged.
    pub fn audit_after(&self, serial: u64, limit: usize) -> Result<Vec<AuditEntry>, AccessError> {
        self.audit.after(serial, limit)
    }

    /// A page of the audit log, newest first: only records of callers whose tenants are in the scope.
    ///
    /// # Errors
    /// If the disk fails, or a record is damaged.
    pub fn audit(&self, query: &AuditQuery, scope: &AccountScope) -> Result<AuditPage, AccessError> {
        self.audit.page(query, scope)
    }
}

/// Reads all users and tokens.
fn load(path: &Path, database: &Database) -> Result<UserDirectory, AccessError> {
    let mut directory = UserDirectory::default();
    let damaged = |what: String| AccessError::Damaged { path: path.to_owned(), what };
    for (name, record) in rows::<UserRecord>(path, database, USERS)? {
        directory.users.insert(name.into(), record);
    }
    for (name, record) in rows::<TokenRecord>(path, database, TOKENS)? {
        let name: Arc<str> = name.into();
        let hash = secret::stored_hash(&record.secret_hash);
        let hash = hash.ok_or_else(|| damaged(format!("the secret hash of the token {name:?}")))?;
        directory.token_hashes.insert(hash, name.clone());
        directory.tokens.insert(name, record);
    }
    Ok(directory)
}

fn octets(
    path: &Path,
    database: &Database,
    table: TableDefinition<&str, &[u8]>,
) -> Result<Vec<(String, Vec<u8>)>, AccessError> {
    let read = || -> Result<Vec<(String, Vec<u8>)>, redb::Error> {
        let rows = database.begin_read()?.open_table(table)?;
        rows.iter()?
            .map(|row| row.map(|(name, value)| (name.value().to_owned(), value.value().to_vec())))
            .collect::<Result<_, _>>()
            .map_err(Into::into)
    };
    read().map_err(|error| AccessError::Store { path: path.to_owned(), source: Arc::new(error) })
}

/// Reads all rows of a table.
fn rows<R: DeserializeOwned>(
    path: &Path,
    database: &Database,
    table: TableDefinition<&str, &[u8]>,
) -> Result<Vec<(String, R)>, AccessError> {
    let mut found = Vec::new();
    for (name, octets) in octets(path, database, table)? {
        let record = serde_json::from_slice(&octets).map_err(|error| AccessError::Damaged {
            path: path.to_owned(),
            what: format!("the record of {name:?}: {error}"),
        })?;
        found.push((name, record));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
