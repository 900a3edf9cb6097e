use crate::audit::{AUDIT, Audit};
use crate::people::{People, TokenRecord, UserRecord, token_shown};
use crate::secret;
use crate::session::Sessions;
use crate::{
    AccessError, AuditPage, AuditQuery, Caller, Deed, MadeToken, NewToken, NewUser, Opened, Session, User,
    UserChange, Who,
};
use model::Now;
use parking_lot::{Mutex, RwLock};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;
use snapshot::{Snapshot, SnapshotError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Name to the JSON of a [`UserRecord`].
const USERS: TableDefinition<&str, &[u8]> = TableDefinition::new("users");
/// Name to the JSON of a [`TokenRecord`].
const TOKENS: TableDefinition<&str, &[u8]> = TableDefinition::new("tokens");

/// What words of tokens begin with, so that one that has got into a text where it does not belong is found there.
const PREFIX: &str = "swyd_";

/// Users, tokens, sessions and the audit log, in a redb file of their own beside the store of messages.
///
/// Users and tokens are in memory as well: a request asks no disk who makes it. Methods that change them, and those of the
/// audit log, wait for the disk.
#[derive(Debug)]
pub struct Access {
    path: PathBuf,
    database: Arc<Database>,
    people: RwLock<Arc<People>>,
    /// Held while a change is made and written.
    changing: Mutex<()>,
    sessions: Sessions,
    audit: Audit,
}

impl Access {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// When it cannot be opened, made or read, or a record in it is damaged.
    pub fn open(path: &Path) -> Result<Self, AccessError> {
        let failed =
            |error: redb::Error| AccessError::Store { path: path.to_owned(), source: Arc::new(error) };
        // A few people beside millions of messages.
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
        let mut people = People::default();
        let damaged = |what: String| AccessError::Damaged { path: path.to_owned(), what };
        for (name, record) in rows::<UserRecord>(path, &database, USERS)? {
            people.users.insert(name.into(), record);
        }
        for (name, record) in rows::<TokenRecord>(path, &database, TOKENS)? {
            let name: Arc<str> = name.into();
            let mark = secret::from_hex(&record.mark);
            let mark = mark.ok_or_else(|| damaged(format!("the mark of the token {name:?}")))?;
            people.marks.insert(mark, name.clone());
            people.tokens.insert(name, record);
        }
        Ok(Self {
            path: path.to_owned(),
            audit: Audit::new(path, database.clone())?,
            database,
            people: RwLock::new(Arc::new(people)),
            changing: Mutex::default(),
            sessions: Sessions::default(),
        })
    }

    /// How long lines of the audit log are kept; [`AUDIT_KEPT`](crate::AUDIT_KEPT) unless this is called.
    #[must_use]
    pub fn keeping(mut self, audit: Duration) -> Self {
        self.audit.keep(audit);
        self
    }

    /// Whether old lines of the audit log are deleted: not if the clock stood more than 30 days after the newest line when the
    /// file was opened. It is right after the next start, or never was.
    #[must_use]
    pub fn lets_old_lines_go(&self) -> bool {
        self.audit.lets_go()
    }

    /// The file with all of it, for backups: whoever reads the database while it is open needs a transaction of this one.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The file as it stands now, for a backup. Changes go on beside it.
    ///
    /// # Errors
    /// When the file fails.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::take(&self.path, &self.database, |copier| {
            copier.table(USERS)?;
            copier.table(TOKENS)?;
            copier.table(AUDIT)
        })
    }

    fn people(&self) -> Arc<People> {
        self.people.read().clone()
    }

    /// Changes a copy of the people, writes one record of it, and only then lets others see it.
    fn change<T, R: Serialize>(
        &self,
        table: TableDefinition<&str, &[u8]>,
        change: impl FnOnce(&mut People) -> Result<T, AccessError>,
        written: impl FnOnce(&People, &T) -> (Arc<str>, Option<R>),
    ) -> Result<T, AccessError> {
        let _changing = self.changing.lock();
        let mut people = People::clone(&self.people());
        let made = change(&mut people)?;
        let (name, record) = written(&people, &made);
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
        *self.people.write() = Arc::new(people);
        Ok(made)
    }

    /// All users, by name.
    #[must_use]
    pub fn users(&self) -> Vec<User> {
        self.people().all_users()
    }

    /// A user.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn user(&self, name: &str) -> Result<User, AccessError> {
        let missing = || AccessError::Missing { what: "user", name: name.to_owned() };
        self.people().user(name).ok_or_else(missing)
    }

    /// The hash of a user's password and the user's version, to look at a password with.
    #[must_use]
    pub fn password_hash(&self, name: &str) -> Option<(String, u64)> {
        let people = self.people();
        let record = people.users.get(name)?;
        record.password_hash.clone().map(|hash| (hash, record.version))
    }

    /// Makes a user.
    ///
    /// # Errors
    /// When something about him is wrong, the name is taken, or the disk fails.
    pub fn add_user(&self, new: NewUser, by: &str, now: Now) -> Result<User, AccessError> {
        let record = |people: &People, name: &Arc<str>| (name.clone(), people.users.get(name).cloned());
        let name = self.change(USERS, |people| people.add_user(new, by, now.wall), record)?;
        self.user(&name)
    }

    /// Changes a user. A new password ends his sessions but the one of the word `but`; another role counts for those that he
    /// has.
    ///
    /// # Errors
    /// When there is no such user, he is not at the `expected` version any more, the change is wrong or takes away the last
    /// admin, or the disk fails.
    pub fn change_user(
        &self,
        name: &str,
        change: UserChange,
        expected: Option<u64>,
        (by, but): (&str, Option<&str>),
        now: Now,
    ) -> Result<User, AccessError> {
        let ends = change.password_hash.is_some();
        let key: Arc<str> = name.into();
        let changed = self.change(
            USERS,
            |people| {
                people.change_user(name, change, expected, by, now.wall)?;
                people.user(name).ok_or_else(|| AccessError::Missing { what: "user", name: name.to_owned() })
            },
            |people, _| (key.clone(), people.users.get(&key).cloned()),
        )?;
        if ends {
            self.sessions.close_all_of(&Who::User(key), but);
        }
        Ok(changed)
    }

    /// Removes a user, and ends his sessions.
    ///
    /// # Errors
    /// As [`Access::change_user`].
    pub fn remove_user(&self, name: &str, expected: Option<u64>) -> Result<(), AccessError> {
        let key: Arc<str> = name.into();
        self.change(
            USERS,
            |people| people.remove_user(name, expected),
            |_, ()| (key.clone(), None::<UserRecord>),
        )?;
        self.sessions.close_all_of(&Who::User(key), None);
        Ok(())
    }

    /// All tokens, by name, those that have ended among them.
    #[must_use]
    pub fn tokens(&self) -> Vec<MadeToken> {
        self.people().all_tokens()
    }

    /// Makes a token, and tells its word: only its SHA-256 is kept.
    ///
    /// # Errors
    /// When something about it is wrong, the name is taken, or the disk fails.
    pub fn make_token(&self, new: NewToken, by: &str, now: Now) -> Result<(String, MadeToken), AccessError> {
        let word = format!("{PREFIX}{}", secret::make()?);
        let mark = secret::mark(&word);
        let (_, made) = self.change(
            TOKENS,
            |people| {
                let name = people.add_token(new, mark, by, now.wall)?;
                let missing = || AccessError::Missing { what: "token", name: name.to_string() };
                let made = people.tokens.get(&name).map(|record| token_shown(&name, record));
                Ok((name.clone(), made.ok_or_else(missing)?))
            },
            |people, (name, _)| (name.clone(), people.tokens.get(name).cloned()),
        )?;
        Ok((word, made))
    }

    /// Removes a token, and ends the sessions that were opened with it.
    ///
    /// # Errors
    /// When there is none of this name, or the disk fails.
    pub fn remove_token(&self, name: &str) -> Result<(), AccessError> {
        let key: Arc<str> = name.into();
        self.change(TOKENS, |people| people.remove_token(name), |_, ()| (key.clone(), None::<TokenRecord>))?;
        self.sessions.close_all_of(&Who::Token(key), None);
        Ok(())
    }

    /// Who shows the word of a token; nobody if it is none, or has ended.
    #[must_use]
    pub fn bearer(&self, word: &str, now: Now) -> Option<(Who, Caller)> {
        let people = self.people();
        let name = people.marks.get(&secret::mark(word))?;
        let caller = people.bearer(name, now.wall)?;
        Some((Who::Token(name.clone()), caller))
    }

    /// When the token of a caller ends by itself.
    #[must_use]
    pub fn token_end(&self, who: &Who) -> Option<model::Timestamp> {
        match who {
            Who::Token(name) => self.people().tokens.get(name).and_then(|record| record.until),
            _ => None,
        }
    }

    /// Opens a session for somebody whose password was right at this `version` of him, or whose token is; nothing if that is
    /// not so any more.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn open_session(
        &self,
        who: &Who,
        version: Option<u64>,
        now: Now,
    ) -> Result<Option<(Caller, Opened)>, AccessError> {
        let mut caller = None;
        let opened = self.sessions.open(who.clone(), now, || {
            let people = self.people();
            let is_current = match who {
                Who::User(name) => people.users.get(name).map(|record| record.version) == version,
                _ => true,
            };
            caller = self.caller(&people, who, now).filter(|_| is_current);
            caller.is_some()
        })?;
        Ok(caller.zip(opened))
    }

    /// Who somebody is now that has come in before; nothing if he is nobody any more.
    #[must_use]
    pub fn standing(&self, who: &Who, now: Now) -> Option<Caller> {
        self.caller(&self.people(), who, now)
    }

    fn caller(&self, people: &People, who: &Who, now: Now) -> Option<Caller> {
        match who {
            Who::House => Some(Caller::house()),
            Who::User(name) => people.caller(name),
            Who::Token(name) => people.bearer(name, now.wall),
        }
    }

    /// The session of a word, if it is one, which is used by this. Who he is is looked up anew each time.
    #[must_use]
    pub fn session(&self, word: &str, now: Now) -> Option<Session> {
        self.find_session(word, now, true)
    }

    /// The same for somebody whose page only goes on showing what it shows: a session that nobody uses ends all the same.
    #[must_use]
    pub fn watched_session(&self, word: &str, now: Now) -> Option<Session> {
        self.find_session(word, now, false)
    }

    fn find_session(&self, word: &str, now: Now, uses: bool) -> Option<Session> {
        let (who, until, csrf) = self.sessions.find(word, now, uses)?;
        let caller = self.caller(&self.people(), &who, now)?;
        Some(Session::new(who, caller, until, csrf))
    }

    /// Ends a session; says whether there was one.
    pub fn close_session(&self, word: &str) -> bool {
        self.sessions.close(word)
    }

    /// Adds a line to the audit log; it is durable when this returns. Gives back its serial.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn note(&self, deed: Deed) -> Result<u64, AccessError> {
        self.audit.add(deed)
    }

    /// A page of the audit log, newest first.
    ///
    /// # Errors
    /// When the disk fails, or a line is damaged.
    pub fn audit(&self, query: &AuditQuery) -> Result<AuditPage, AccessError> {
        self.audit.page(query)
    }
}

/// All rows of a table, read.
fn rows<R: DeserializeOwned>(
    path: &Path,
    database: &Database,
    table: TableDefinition<&str, &[u8]>,
) -> Result<Vec<(String, R)>, AccessError> {
    let read = || -> Result<Vec<(String, Vec<u8>)>, redb::Error> {
        let rows = database.begin_read()?.open_table(table)?;
        rows.iter()?
            .map(|row| row.map(|(name, value)| (name.value().to_owned(), value.value().to_vec())))
            .collect::<Result<_, _>>()
            .map_err(Into::into)
    };
    let read =
        read().map_err(|error| AccessError::Store { path: path.to_owned(), source: Arc::new(error) })?;
    let mut found = Vec::with_capacity(read.len());
    for (name, octets) in read {
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
