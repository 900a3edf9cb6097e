//! The user directory: users and tokens, and the rules for changing them. Pure; [`crate::Access`] persists it.

use crate::secret::SecretHash;
use crate::{AccessError, Caller};
use api::{Role, TokenInfo, TokenRequest, User};
use model::Timestamp;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names reserved for the `by` fields of the audit log and of versions.
const RESERVED: [&str; 5] = ["token", "file", "system", "switchyard", "unknown"];
/// Maximum characters of a name.
const MAX_NAME_CHARS: usize = 64;
/// Maximum number of users, and of tokens.
const MAX_ENTRIES: usize = 10_000;
/// Maximum number of users, and of tokens, of one tenant.
const MAX_ENTRIES_OF_TENANT: usize = 100;
/// Maximum lifetime of an expiring token, in days.
const MAX_TOKEN_DAYS: u64 = 3650;

/// A user to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// 1 to 64 of the characters a-z, A-Z, 0-9, `.`, `_`, `-` and `@`.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The account; required for [`Role::Account`], not allowed for other roles.
    pub account: Option<String>,
    /// The tenant; the name then ends with `@` and the tenant's name. It never changes.
    pub tenant: Option<String>,
    /// Whether the user may read message texts.
    pub bodies: bool,
    /// The password hash in PHC format.
    pub password_hash: Option<String>,
}

/// A change of a user. Fields that are `None` stay unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserChange {
    /// The role.
    pub role: Option<Role>,
    /// The account; `Some(None)` removes it.
    pub account: Option<Option<String>>,
    /// Whether the user may read message texts.
    pub bodies: Option<bool>,
    /// The hash of a new password. It ends the user's sessions.
    pub password_hash: Option<String>,
}

/// On disk, table `users`, key: the name; value: JSON in UTF-8 of exactly these fields. Fields added later need a default, so
/// that older files can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserRecord {
    pub(crate) role: Role,
    pub(crate) account: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) bodies: bool,
    /// argon2id hash in PHC format.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) bodies: bool,
    /// SHA-256 of the secret, as 64 hexadecimal digits.
    #[serde(rename = "mark")]
    pub(crate) secret_hash: String,
    pub(crate) made: Timestamp,
    pub(crate) by: String,
    pub(crate) until: Option<Timestamp>,
}

/// All users and tokens at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserDirectory {
    pub(crate) users: BTreeMap<Arc<str>, UserRecord>,
    pub(crate) tokens: BTreeMap<Arc<str>, TokenRecord>,
    /// Token names by the hashes of their secrets.
    pub(crate) token_hashes: FxHashMap<SecretHash, Arc<str>>,
}

fn invalid(field: &'static str, what: impl Into<String>) -> AccessError {
    AccessError::Invalid { field, what: what.into() }
}

fn check_name(name: &str) -> Result<(), AccessError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(fits) {
        return Err(invalid(
            "name",
            "must be 1 to 64 of the characters a-z, A-Z, 0-9, \".\", \"_\", \"-\" and \"@\"",
        ));
    }
    // Clients treat path segments of dots as relative.
    if name.chars().all(|c| c == '.') {
        return Err(invalid("name", "must not consist of dots only"));
    }
    if RESERVED.contains(&name) {
        return Err(invalid("name", format!("{name:?} is reserved; choose another name")));
    }
    Ok(())
}

fn check_account(role: Role, account: Option<&str>) -> Result<(), AccessError> {
    match (role, account) {
        (Role::Account, None) => {
            Err(invalid("account", "is missing: the role account requires the name of an account"))
        }
        (Role::Account, Some(account)) if account.is_empty() || account.len() > 256 => {
            Err(invalid("account", "must be the name of an account"))
        }
        (Role::Account, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(invalid("account", "is allowed for the role account only")),
    }
}

/// The names of a tenant's users must end with the tenant's name, so that a "name is taken" error does not reveal users of
/// other tenants.
fn check_tenant(name: &str, tenant: Option<&str>) -> Result<(), AccessError> {
    let Some(tenant) = tenant else { return Ok(()) };
    let own = name.strip_suffix(tenant).and_then(|name| name.strip_suffix('@'));
    match own {
        Some(own) if !own.is_empty() && !own.contains('@') => Ok(()),
        _ => Err(invalid("name", format!("must end with \"@{tenant}\", such as \"ann@{tenant}\""))),
    }
}

/// Limits the users, or tokens, of one tenant, so that a tenant cannot use up the names of all others. `tenants`: the
/// tenants of all users, or tokens.
fn check_tenant_limit<'a>(
    tenants: impl Iterator<Item = Option<&'a str>>,
    tenant: Option<&str>,
) -> Result<(), AccessError> {
    if tenant.is_none() || tenants.filter(|other| *other == tenant).count() < MAX_ENTRIES_OF_TENANT {
        return Ok(());
    }
    Err(invalid(
        "name",
        format!("the tenant's maximum of {MAX_ENTRIES_OF_TENANT} is reached; delete others first"),
    ))
}

fn missing(what: &'static str, name: &str) -> AccessError {
    AccessError::Missing { what, name: name.to_owned() }
}

impl UserDirectory {
    pub(crate) fn user(&self, name: &str) -> Option<User> {
        self.users.get(name).map(|record| user_info(name, record))
    }

    pub(crate) fn all_users(&self) -> Vec<User> {
        self.users.iter().map(|(name, record)| user_info(name, record)).collect()
    }

    pub(crate) fn all_tokens(&self) -> Vec<TokenInfo> {
        self.tokens.iter().map(|(name, record)| token_info(name, record)).collect()
    }

    /// The caller of a user.
    pub(crate) fn caller(&self, user: &str) -> Option<Caller> {
        let (name, record) = self.users.get_key_value(user)?;
        Some(Caller {
            name: name.clone(),
            role: record.role,
            account: record.account.clone(),
            tenant: record.tenant.clone(),
            bodies: record.bodies,
        })
    }

    /// The caller of a token. `None` if the token has expired.
    pub(crate) fn bearer(&self, token: &str, wall: Timestamp) -> Option<Caller> {
        let record = self.tokens.get(token)?;
        if record.until.is_some_and(|until| until <= wall) {
            return None;
        }
        Some(Caller {
            name: format!("token:{token}").into(),
            role: record.role,
            account: record.account.clone(),
            tenant: record.tenant.clone(),
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
        check_tenant(&new.name, new.tenant.as_deref())?;
        check_account(new.role, new.account.as_deref())?;
        let tenants = self.users.values().map(|user| user.tenant.as_deref());
        check_tenant_limit(tenants, new.tenant.as_deref())?;
        if self.users.contains_key(new.name.as_str()) {
            return Err(AccessError::NameInUse { what: "user", name: new.name });
        }
        if self.users.len() >= MAX_ENTRIES {
            return Err(invalid("name", format!("the maximum of {MAX_ENTRIES} users is reached")));
        }
        let record = UserRecord {
            role: new.role,
            account: new.account.map(Into::into),
            tenant: new.tenant.map(Into::into),
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

    /// Changes a user. `expected`: the version that the caller has read.
    pub(crate) fn change_user(
        &mut self,
        name: &str,
        change: UserChange,
        expected: Option<u64>,
        by: &str,
        wall: Timestamp,
    ) -> Result<(), AccessError> {
        let known = self.user_at_version(name, expected)?;
        let mut record = known.clone();
        if let Some(role) = change.role {
            record.role = role;
            // A user who leaves the role account leaves the account too, unless the change sets one.
            if role != Role::Account && change.account.is_none() {
                record.account = None;
            }
        }
        if let Some(account) = change.account {
            record.account = account.map(Into::into);
        }
        check_account(record.role, record.account.as_deref())?;
        if record.role != Role::Admin {
            self.ensure_other_admin(name)?;
        }
        record.bodies = change.bodies.unwrap_or(record.bodies);
        record.password_hash = change.password_hash.or(record.password_hash);
        (record.version, record.changed, record.by) = (record.version + 1, wall, by.to_owned());
        self.users.insert(name.into(), record);
        Ok(())
    }

    pub(crate) fn remove_user(&mut self, name: &str, expected: Option<u64>) -> Result<(), AccessError> {
        self.user_at_version(name, expected)?;
        self.ensure_other_admin(name)?;
        self.users.remove(name);
        Ok(())
    }

    fn user_at_version(&self, name: &str, expected: Option<u64>) -> Result<&UserRecord, AccessError> {
        let known = self.users.get(name).ok_or_else(|| missing("user", name))?;
        match expected {
            Some(version) if version != known.version => {
                Err(AccessError::Outdated { name: name.to_owned(), version: known.version })
            }
            _ => Ok(known),
        }
    }

    /// # Errors
    /// If no other user without a tenant has the role admin.
    fn ensure_other_admin(&self, name: &str) -> Result<(), AccessError> {
        let is_admin = |record: &UserRecord| record.role == Role::Admin && record.tenant.is_none();
        let others = self.users.iter().any(|(other, record)| &**other != name && is_admin(record));
        match self.users.get(name) {
            Some(record) if is_admin(record) && !others => Err(AccessError::LastAdmin(name.to_owned())),
            _ => Ok(()),
        }
    }

    pub(crate) fn add_token(
        &mut self,
        new: TokenRequest,
        hash: SecretHash,
        by: &str,
        wall: Timestamp,
    ) -> Result<Arc<str>, AccessError> {
        check_name(&new.name)?;
        check_tenant(&new.name, new.tenant.as_deref())?;
        check_account(new.role, new.account.as_deref())?;
        let tenants = self.tokens.values().map(|token| token.tenant.as_deref());
        check_tenant_limit(tenants, new.tenant.as_deref())?;
        if self.tokens.contains_key(new.name.as_str()) {
            return Err(AccessError::NameInUse { what: "token", name: new.name });
        }
        if self.tokens.len() >= MAX_ENTRIES {
            return Err(invalid(
                "name",
                format!("the maximum of {MAX_ENTRIES} tokens is reached; delete expired tokens"),
            ));
        }
        let until = match new.days {
            None => None,
            Some(days) if (1..=MAX_TOKEN_DAYS).contains(&days) => Some(Timestamp(wall.0 + days * 86_400_000)),
            Some(days) => {
                return Err(invalid("days", format!("is {days}, and must be 1 to {MAX_TOKEN_DAYS}")));
            }
        };
        let record = TokenRecord {
            role: new.role,
            account: new.account.map(Into::into),
            tenant: new.tenant.map(Into::into),
            bodies: new.bodies,
            secret_hash: model::hex(&hash),
            made: wall,
            by: by.to_owned(),
            until,
        };
        let name: Arc<str> = new.name.into();
        self.token_hashes.insert(hash, name.clone());
        self.tokens.insert(name.clone(), record);
        Ok(name)
    }

    pub(crate) fn remove_token(&mut self, name: &str) -> Result<(), AccessError> {
        self.tokens.remove(name).ok_or_else(|| missing("token", name))?;
        self.token_hashes.retain(|_, other| &**other != name);
        Ok(())
    }
}

fn user_info(name: &str, record: &UserRecord) -> User {
    User {
        name: name.to_owned(),
        role: record.role,
        account: record.account.as_deref().map(str::to_owned),
        tenant: record.tenant.as_deref().map(str::to_owned),
        bodies: record.bodies,
        password: record.password_hash.is_some(),
        version: record.version,
        made: record.made,
        changed: record.changed,
        by: record.by.clone(),
    }
}

pub(crate) fn token_info(name: &str, record: &TokenRecord) -> TokenInfo {
    TokenInfo {
        name: name.to_owned(),
        role: record.role,
        account: record.account.as_deref().map(str::to_owned),
        tenant: record.tenant.as_deref().map(str::to_owned),
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
        NewUser {
            name: name.to_owned(),
            role,
            account: None,
            tenant: None,
            bodies: false,
            password_hash: None,
        }
    }

    const WALL: Timestamp = Timestamp(1_000);

    #[test]
    fn user_names_are_plain_and_not_reserved() {
        let mut directory = UserDirectory::default();
        for good in ["a", "Ann.Lee-2", "ops@example.com", &"x".repeat(64)] {
            directory.add_user(new(good, Role::Viewer), "token", WALL).unwrap();
        }
        for bad in ["", "..", "a b", "a/b", "token:x", "é", "token", "file", &"x".repeat(65), "a\n"] {
            let error = directory.add_user(new(bad, Role::Viewer), "token", WALL).unwrap_err();
            assert!(matches!(error, AccessError::Invalid { field: "name", .. }), "{bad:?}: {error}");
        }
        assert!(matches!(
            directory.add_user(new("a", Role::Admin), "token", WALL),
            Err(AccessError::NameInUse { what: "user", .. })
        ));
    }

    #[test]
    fn account_belongs_to_role_account_only() {
        let mut directory = UserDirectory::default();
        let with = |account: Option<&str>, role| NewUser {
            account: account.map(str::to_owned),
            ..new("shop", role)
        };
        for wrong in
            [with(None, Role::Account), with(Some("acme"), Role::Admin), with(Some(""), Role::Account)]
        {
            let error = directory.add_user(wrong, "token", WALL).unwrap_err();
            assert!(matches!(error, AccessError::Invalid { field: "account", .. }), "{error}");
        }
        directory.add_user(with(Some("acme"), Role::Account), "token", WALL).unwrap();
        assert_eq!(directory.caller("shop").unwrap().account.as_deref(), Some("acme"));
        let change = UserChange { role: Some(Role::Viewer), ..UserChange::default() };
        directory.change_user("shop", change, None, "ann", WALL).unwrap();
        let caller = directory.caller("shop").unwrap();
        assert_eq!((caller.role, caller.account), (Role::Viewer, None));
        let change = UserChange { role: Some(Role::Account), ..UserChange::default() };
        assert!(directory.change_user("shop", change, None, "ann", WALL).is_err());
    }

    #[test]
    fn last_admin_stays_and_stale_version_is_refused() {
        let mut directory = UserDirectory::default();
        directory.add_user(new("ann", Role::Admin), "token", WALL).unwrap();
        directory.add_user(new("bob", Role::Viewer), "ann", WALL).unwrap();
        let to = |role| UserChange { role: Some(role), ..UserChange::default() };
        assert!(matches!(directory.remove_user("ann", None), Err(AccessError::LastAdmin(_))));
        assert!(matches!(
            directory.change_user("ann", to(Role::Operator), None, "ann", WALL),
            Err(AccessError::LastAdmin(_))
        ));
        directory
            .change_user(
                "ann",
                UserChange { bodies: Some(true), ..UserChange::default() },
                Some(1),
                "ann",
                WALL,
            )
            .unwrap();
        directory.change_user("bob", to(Role::Admin), Some(1), "ann", WALL).unwrap();
        directory.change_user("ann", to(Role::Operator), None, "bob", WALL).unwrap();
        assert!(matches!(directory.remove_user("bob", None), Err(AccessError::LastAdmin(_))));
        assert!(matches!(
            directory.change_user("bob", to(Role::Admin), Some(1), "ann", WALL),
            Err(AccessError::Outdated { version: 2, .. })
        ));
        assert!(matches!(
            directory.remove_user("ann", Some(1)),
            Err(AccessError::Outdated { version: 3, .. })
        ));
        directory.remove_user("ann", Some(3)).unwrap();
        assert!(directory.user("ann").is_none() && directory.caller("ann").is_none());
    }

    #[test]
    fn token_expires() {
        let mut directory = UserDirectory::default();
        let token = |days| TokenRequest {
            name: "ci".to_owned(),
            role: Role::Operator,
            account: None,
            tenant: None,
            bodies: false,
            days,
        };
        for days in [0, 3651, u64::MAX] {
            assert!(directory.add_token(token(Some(days)), [1; 32], "ann", WALL).is_err());
        }
        directory.add_token(token(Some(1)), [1; 32], "ann", WALL).unwrap();
        let end = WALL.0 + 86_400_000;
        assert_eq!(&*directory.bearer("ci", Timestamp(end - 1)).unwrap().name, "token:ci");
        assert_eq!(directory.bearer("ci", Timestamp(end)), None);
        directory.remove_token("ci").unwrap();
        assert!(directory.token_hashes.is_empty() && directory.bearer("ci", WALL).is_none());
        assert!(matches!(directory.remove_token("ci"), Err(AccessError::Missing { what: "token", .. })));
    }

    #[test]
    fn users_of_a_tenant_have_names_of_the_tenant_and_are_no_admins_of_the_appliance() {
        let mut directory = UserDirectory::default();
        let with = |name: &str, role| NewUser { tenant: Some("north".to_owned()), ..new(name, role) };
        for bad in ["ann", "@north", "ann@south", "ann@south@north", "annnorth"] {
            let error = directory.add_user(with(bad, Role::Viewer), "token", WALL).unwrap_err();
            assert!(matches!(error, AccessError::Invalid { field: "name", .. }), "{bad}: {error}");
        }
        directory.add_user(new("root", Role::Admin), "token", WALL).unwrap();
        directory.add_user(with("ann@north", Role::Admin), "token", WALL).unwrap();
        assert_eq!(directory.caller("ann@north").unwrap().tenant.as_deref(), Some("north"));
        assert!(matches!(directory.remove_user("root", None), Err(AccessError::LastAdmin(_))));
        directory.remove_user("ann@north", None).unwrap();
        for number in 0..MAX_ENTRIES_OF_TENANT {
            let name = format!("u{number}@north");
            directory.add_user(with(&name, Role::Viewer), "token", WALL).unwrap();
        }
        let error = directory.add_user(with("more@north", Role::Viewer), "token", WALL).unwrap_err();
        assert!(error.to_string().contains("maximum of 100"), "{error}");
        directory.add_user(new("carl", Role::Viewer), "token", WALL).unwrap();
    }

    #[test]
    fn records_from_before_tenants_belong_to_none() {
        let record = r#"{"role":"admin","account":null,"bodies":true,"password_hash":null,"version":1,"made":1,"changed":1,"by":"token"}"#;
        assert_eq!(serde_json::from_str::<UserRecord>(record).unwrap().tenant, None);
    }
}
