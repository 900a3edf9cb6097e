//! Users and tokens: what is kept of them, and the rules that they obey. Pure; [`crate::Access`] writes them down.

use crate::secret::Mark;
use crate::{AccessError, Caller, Role};
use model::Timestamp;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// Names that stand for no user in the audit log and in "who changed this".
const RESERVED: [&str; 5] = ["token", "file", "system", "switchyard", "unknown"];
/// Characters of the longest name.
const LONGEST_NAME: usize = 64;
/// Users and tokens, each.
const MOST: usize = 10_000;
/// Days of the longest life of a token that has an end.
const LONGEST_LIFE: u64 = 3650;

/// A user, as others see him.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct User {
    /// The name that he logs in with.
    pub name: String,
    /// What he may do.
    pub role: Role,
    /// The account that a [`Role::Account`] belongs to.
    #[schema(required)]
    pub account: Option<String>,
    /// Whether texts of messages may be read.
    pub bodies: bool,
    /// Whether he has a password; without one he cannot log in.
    pub password: bool,
    /// Grows with each change.
    pub version: u64,
    /// When he was made, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub made: Timestamp,
    /// When he was changed last.
    #[schema(value_type = u64)]
    pub changed: Timestamp,
    /// Who did that.
    pub by: String,
}

/// A user to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// 1 to 64 of the characters a-z, A-Z, 0-9, `.`, `_`, `-` and `@`.
    pub name: String,
    /// What he may do.
    pub role: Role,
    /// The account; for [`Role::Account`], and for no other role.
    pub account: Option<String>,
    /// Whether texts of messages may be read.
    pub bodies: bool,
    /// The hash of his password, in PHC form.
    pub password_hash: Option<String>,
}

/// What is to be other with a user; what is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserChange {
    /// What he may do.
    pub role: Option<Role>,
    /// The account, or none.
    pub account: Option<Option<String>>,
    /// Whether texts of messages may be read.
    pub bodies: Option<bool>,
    /// The hash of a new password. Ends his sessions.
    pub password_hash: Option<String>,
}

/// A token, as others see it: the word itself is told once, when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MadeToken {
    /// Its name. Whoever uses it is called `token:` and this name.
    pub name: String,
    /// What it may be used for.
    pub role: Role,
    /// The account that a [`Role::Account`] belongs to.
    #[schema(required)]
    pub account: Option<String>,
    /// Whether texts of messages may be read.
    pub bodies: bool,
    /// When it was made, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub made: Timestamp,
    /// Who made it.
    pub by: String,
    /// When it ends by itself; never, where there is none.
    #[schema(value_type = Option<u64>, required)]
    pub until: Option<Timestamp>,
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// As a user's.
    pub name: String,
    /// What it may be used for.
    pub role: Role,
    /// The account; for [`Role::Account`], and for no other role.
    pub account: Option<String>,
    /// Whether texts of messages may be read.
    pub bodies: bool,
    /// After how many days it ends by itself: 1 to 3650.
    pub days: Option<u64>,
}

/// On disk, table `users`, key: the name; value: JSON in UTF-8 of exactly these fields. Fields that are added later have a
/// default, so that an older file is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserRecord {
    pub(crate) role: Role,
    pub(crate) account: Option<Arc<str>>,
    pub(crate) bodies: bool,
    /// argon2id, in PHC form.
    pub(crate) password_hash: Option<String>,
    pub(crate) version: u64,
    pub(crate) made: Timestamp,
    pub(crate) changed: Timestamp,
    pub(crate) by: String,
}

/// On disk, table `tokens`, key: the name; value: JSON in UTF-8 of exactly these fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenRecord {
    pub(crate) role: Role,
    pub(crate) account: Option<Arc<str>>,
    pub(crate) bodies: bool,
    /// SHA-256 of the word, as 64 hexadecimal digits.
    pub(crate) mark: String,
    pub(crate) made: Timestamp,
    pub(crate) by: String,
    pub(crate) until: Option<Timestamp>,
}

/// All users and tokens at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct People {
    pub(crate) users: BTreeMap<Arc<str>, UserRecord>,
    pub(crate) tokens: BTreeMap<Arc<str>, TokenRecord>,
    /// By the marks of their words.
    pub(crate) marks: FxHashMap<Mark, Arc<str>>,
}

fn invalid(field: &'static str, what: impl Into<String>) -> AccessError {
    AccessError::Invalid { field, what: what.into() }
}

fn check_name(name: &str) -> Result<(), AccessError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
        return Err(invalid(
            "name",
            "must be 1 to 64 of the characters a-z, A-Z, 0-9, \".\", \"_\", \"-\" and \"@\"",
        ));
    }
    // A part of a path that clients take for "here" and "one up".
    if name.chars().all(|c| c == '.') {
        return Err(invalid("name", "must not be dots alone"));
    }
    if RESERVED.contains(&name) {
        return Err(invalid("name", format!("{name:?} is what the appliance itself uses; take another")));
    }
    Ok(())
}

fn check_account(role: Role, account: Option<&str>) -> Result<(), AccessError> {
    match (role, account) {
        (Role::Account, None) => {
            Err(invalid("account", "is missing: the role account belongs to one account, by its name"))
        }
        (Role::Account, Some(account)) if account.is_empty() || account.len() > 256 => {
            Err(invalid("account", "must be the name of an account"))
        }
        (Role::Account, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(invalid("account", "is for the role account only; leave it out")),
    }
}

fn missing(what: &'static str, name: &str) -> AccessError {
    AccessError::Missing { what, name: name.to_owned() }
}

impl People {
    pub(crate) fn user(&self, name: &str) -> Option<User> {
        self.users.get(name).map(|record| shown(name, record))
    }

    pub(crate) fn all_users(&self) -> Vec<User> {
        self.users.iter().map(|(name, record)| shown(name, record)).collect()
    }

    pub(crate) fn all_tokens(&self) -> Vec<MadeToken> {
        self.tokens.iter().map(|(name, record)| token_shown(name, record)).collect()
    }

    /// Who a user is as a caller.
    pub(crate) fn caller(&self, user: &str) -> Option<Caller> {
        let (name, record) = self.users.get_key_value(user)?;
        Some(Caller {
            name: name.clone(),
            role: record.role,
            account: record.account.clone(),
            bodies: record.bodies,
        })
    }

    /// Who has a token of this name as a caller; nobody once it has ended.
    pub(crate) fn bearer(&self, token: &str, wall: Timestamp) -> Option<Caller> {
        let record = self.tokens.get(token)?;
        if record.until.is_some_and(|until| until <= wall) {
            return None;
        }
        Some(Caller {
            name: format!("token:{token}").into(),
            role: record.role,
            account: record.account.clone(),
            bodies: record.bodies,
        })
    }

    pub(crate) fn add_user(
        &mut self,
        new: NewUser,
        by: &str,
        wall: Timestamp,
    ) -> Result<Arc<str>, AccessError> {
        check_name(&new.name)?;
        check_account(new.role, new.account.as_deref())?;
        if self.users.contains_key(new.name.as_str()) {
            return Err(AccessError::Taken { what: "user", name: new.name });
        }
        if self.users.len() >= MOST {
            return Err(invalid("name", format!("there are {MOST} users already, and no room for more")));
        }
        let record = UserRecord {
            role: new.role,
            account: new.account.map(Into::into),
            bodies: new.bodies,
            password_hash: new.password_hash,
            version: 1,
            made: wall,
            changed: wall,
            by: by.to_owned(),
        };
        let name: Arc<str> = new.name.into();
        self.users.insert(name.clone(), record);
        Ok(name)
    }

    /// `expected`: the version that the change was made for.
    pub(crate) fn change_user(
        &mut self,
        name: &str,
        change: UserChange,
        expected: Option<u64>,
        by: &str,
        wall: Timestamp,
    ) -> Result<(), AccessError> {
        let known = self.expect(name, expected)?;
        let mut record = known.clone();
        if let Some(role) = change.role {
            record.role = role;
            // Who leaves the role account leaves the account, unless told otherwise.
            if role != Role::Account && change.account.is_none() {
                record.account = None;
            }
        }
        if let Some(account) = change.account {
            record.account = account.map(Into::into);
        }
        check_account(record.role, record.account.as_deref())?;
        if record.role != Role::Admin {
            self.spare(name)?;
        }
        record.bodies = change.bodies.unwrap_or(record.bodies);
        record.password_hash = change.password_hash.or(record.password_hash);
        (record.version, record.changed, record.by) = (record.version + 1, wall, by.to_owned());
        self.users.insert(name.into(), record);
        Ok(())
    }

    pub(crate) fn remove_user(&mut self, name: &str, expected: Option<u64>) -> Result<(), AccessError> {
        self.expect(name, expected)?;
        self.spare(name)?;
        self.users.remove(name);
        Ok(())
    }

    fn expect(&self, name: &str, expected: Option<u64>) -> Result<&UserRecord, AccessError> {
        let known = self.users.get(name).ok_or_else(|| missing("user", name))?;
        match expected {
            Some(version) if version != known.version => {
                Err(AccessError::Outdated { name: name.to_owned(), version: known.version })
            }
            _ => Ok(known),
        }
    }

    /// # Errors
    /// When nobody else is admin.
    fn spare(&self, name: &str) -> Result<(), AccessError> {
        let is_admin = |record: &UserRecord| record.role == Role::Admin;
        let others = self.users.iter().any(|(other, record)| &**other != name && is_admin(record));
        match self.users.get(name) {
            Some(record) if is_admin(record) && !others => Err(AccessError::LastAdmin(name.to_owned())),
            _ => Ok(()),
        }
    }

    pub(crate) fn add_token(
        &mut self,
        new: NewToken,
        mark: Mark,
        by: &str,
        wall: Timestamp,
    ) -> Result<Arc<str>, AccessError> {
        check_name(&new.name)?;
        check_account(new.role, new.account.as_deref())?;
        if self.tokens.contains_key(new.name.as_str()) {
            return Err(AccessError::Taken { what: "token", name: new.name });
        }
        if self.tokens.len() >= MOST {
            return Err(invalid(
                "name",
                format!("there are {MOST} tokens already; remove those that have ended"),
            ));
        }
        let until = match new.days {
            None => None,
            Some(days) if (1..=LONGEST_LIFE).contains(&days) => Some(Timestamp(wall.0 + days * 86_400_000)),
            Some(days) => return Err(invalid("days", format!("is {days}, and must be 1 to {LONGEST_LIFE}"))),
        };
        let record = TokenRecord {
            role: new.role,
            account: new.account.map(Into::into),
            bodies: new.bodies,
            mark: crate::secret::hex(&mark),
            made: wall,
            by: by.to_owned(),
            until,
        };
        let name: Arc<str> = new.name.into();
        self.marks.insert(mark, name.clone());
        self.tokens.insert(name.clone(), record);
        Ok(name)
    }

    pub(crate) fn remove_token(&mut self, name: &str) -> Result<(), AccessError> {
        self.tokens.remove(name).ok_or_else(|| missing("token", name))?;
        self.marks.retain(|_, other| &**other != name);
        Ok(())
    }
}

fn shown(name: &str, record: &UserRecord) -> User {
    User {
        name: name.to_owned(),
        role: record.role,
        account: record.account.as_deref().map(str::to_owned),
        bodies: record.bodies,
        password: record.password_hash.is_some(),
        version: record.version,
        made: record.made,
        changed: record.changed,
        by: record.by.clone(),
    }
}

pub(crate) fn token_shown(name: &str, record: &TokenRecord) -> MadeToken {
    MadeToken {
        name: name.to_owned(),
        role: record.role,
        account: record.account.as_deref().map(str::to_owned),
        bodies: record.bodies,
        made: record.made,
        by: record.by.clone(),
        until: record.until,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, role: Role) -> NewUser {
        NewUser { name: name.to_owned(), role, account: None, bodies: false, password_hash: None }
    }

    const WALL: Timestamp = Timestamp(1_000);

    #[test]
    fn names_are_plain_and_none_of_the_house() {
        let mut people = People::default();
        for good in ["a", "Ann.Lee-2", "ops@example.com", &"x".repeat(64)] {
            people.add_user(new(good, Role::Viewer), "token", WALL).unwrap();
        }
        for bad in ["", "..", "a b", "a/b", "token:x", "é", "token", "file", &"x".repeat(65), "a\n"] {
            let error = people.add_user(new(bad, Role::Viewer), "token", WALL).unwrap_err();
            assert!(matches!(error, AccessError::Invalid { field: "name", .. }), "{bad:?}: {error}");
        }
        assert!(matches!(
            people.add_user(new("a", Role::Admin), "token", WALL),
            Err(AccessError::Taken { what: "user", .. })
        ));
    }

    #[test]
    fn an_account_is_for_its_role_and_leaves_with_it() {
        let mut people = People::default();
        let with = |account: Option<&str>, role| NewUser {
            account: account.map(str::to_owned),
            ..new("shop", role)
        };
        for wrong in
            [with(None, Role::Account), with(Some("acme"), Role::Admin), with(Some(""), Role::Account)]
        {
            let error = people.add_user(wrong, "token", WALL).unwrap_err();
            assert!(matches!(error, AccessError::Invalid { field: "account", .. }), "{error}");
        }
        people.add_user(with(Some("acme"), Role::Account), "token", WALL).unwrap();
        assert_eq!(people.caller("shop").unwrap().account.as_deref(), Some("acme"));
        let change = UserChange { role: Some(Role::Viewer), ..UserChange::default() };
        people.change_user("shop", change, None, "ann", WALL).unwrap();
        let caller = people.caller("shop").unwrap();
        assert_eq!((caller.role, caller.account), (Role::Viewer, None));
        let change = UserChange { role: Some(Role::Account), ..UserChange::default() };
        assert!(people.change_user("shop", change, None, "ann", WALL).is_err());
    }

    #[test]
    fn the_last_admin_stays_and_who_comes_second_is_told() {
        let mut people = People::default();
        people.add_user(new("ann", Role::Admin), "token", WALL).unwrap();
        people.add_user(new("bob", Role::Viewer), "ann", WALL).unwrap();
        let to = |role| UserChange { role: Some(role), ..UserChange::default() };
        assert!(matches!(people.remove_user("ann", None), Err(AccessError::LastAdmin(_))));
        assert!(matches!(
            people.change_user("ann", to(Role::Operator), None, "ann", WALL),
            Err(AccessError::LastAdmin(_))
        ));
        people
            .change_user(
                "ann",
                UserChange { bodies: Some(true), ..UserChange::default() },
                Some(1),
                "ann",
                WALL,
            )
            .unwrap();
        people.change_user("bob", to(Role::Admin), Some(1), "ann", WALL).unwrap();
        people.change_user("ann", to(Role::Operator), None, "bob", WALL).unwrap();
        assert!(matches!(people.remove_user("bob", None), Err(AccessError::LastAdmin(_))));
        assert!(matches!(
            people.change_user("bob", to(Role::Admin), Some(1), "ann", WALL),
            Err(AccessError::Outdated { version: 2, .. })
        ));
        assert!(matches!(people.remove_user("ann", Some(1)), Err(AccessError::Outdated { version: 3, .. })));
        people.remove_user("ann", Some(3)).unwrap();
        assert!(people.user("ann").is_none() && people.caller("ann").is_none());
    }

    #[test]
    fn a_token_ends_at_its_time() {
        let mut people = People::default();
        let token = |days| NewToken {
            name: "ci".to_owned(),
            role: Role::Operator,
            account: None,
            bodies: false,
            days,
        };
        for days in [0, 3651, u64::MAX] {
            assert!(people.add_token(token(Some(days)), [1; 32], "ann", WALL).is_err());
        }
        people.add_token(token(Some(1)), [1; 32], "ann", WALL).unwrap();
        let end = WALL.0 + 86_400_000;
        assert_eq!(&*people.bearer("ci", Timestamp(end - 1)).unwrap().name, "token:ci");
        assert_eq!(people.bearer("ci", Timestamp(end)), None);
        people.remove_token("ci").unwrap();
        assert!(people.marks.is_empty() && people.bearer("ci", WALL).is_none());
        assert!(matches!(people.remove_token("ci"), Err(AccessError::Missing { what: "token", .. })));
    }
}
