//! Users, tokens, sessions and the audit log.

use model::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The role of a user or token. Each role except [`Role::Account`] includes all permissions of the roles before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Access to one account's own data only.
    Account,
    /// Reads everything except message texts and secrets; changes nothing.
    Viewer,
    /// Also operates traffic: queues, messages, pools, replays.
    Operator,
    /// All permissions except `read-bodies`.
    Admin,
}

/// A permission that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Data of the caller's own account. The handler restricts the answer to that account.
    Own,
    /// State, counts, traces without message texts, the configuration without secrets.
    Read,
    /// Message texts. No role includes it; it is granted to a user or token.
    ReadBodies,
    /// Operating messages, queues, pools, opt-outs, replays.
    Operate,
    /// Changing the configuration, tables, log level, drain mode.
    Configure,
    /// Uploading and activating plugins.
    ManagePlugins,
    /// Changing balances of the ledger.
    ManageMoney,
    /// Users, tokens, the audit log.
    ManageUsers,
    /// Backups. They contain everything, including message texts and secrets.
    ManageBackups,
    /// Erasing the content of messages, and all data of a number.
    Erase,
    /// The appliance image: updates, support bundle, factory reset.
    ManageAppliance,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 11] = [
        Self::Own,
        Self::Read,
        Self::ReadBodies,
        Self::Operate,
        Self::Configure,
        Self::ManagePlugins,
        Self::ManageMoney,
        Self::ManageUsers,
        Self::ManageBackups,
        Self::Erase,
        Self::ManageAppliance,
    ];
}

impl Role {
    /// Whether the role includes a permission.
    #[must_use]
    pub fn has(self, permission: Permission) -> bool {
        match permission {
            Permission::Own => true,
            Permission::ReadBodies => false,
            Permission::Read => self >= Self::Viewer,
            Permission::Operate => self >= Self::Operator,
            Permission::Configure
            | Permission::ManagePlugins
            | Permission::ManageMoney
            | Permission::ManageUsers
            | Permission::ManageBackups
            | Permission::Erase
            | Permission::ManageAppliance => self == Self::Admin,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Credentials: user and password, or a token.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginRequest {
    /// The user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// A token, instead of user and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl LoginRequest {
    /// Credentials of a user.
    #[must_use]
    pub fn with_password(user: String, password: String) -> Self {
        Self { user: Some(user), password: Some(password), token: None }
    }

    /// A token as credentials.
    #[must_use]
    pub fn with_token(token: String) -> Self {
        Self { token: Some(token), ..Self::default() }
    }
}

/// The caller's identity and permissions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = Whoami)]
pub struct WhoamiView {
    /// The user's name; `token` for the root token, `token:NAME` for a named token.
    pub user: String,
    /// The role.
    pub role: Role,
    /// The permissions.
    pub permissions: Vec<Permission>,
    /// Whether the caller may read message texts.
    pub bodies: bool,
    /// The account of a caller with the role `account`; null for all other roles.
    #[schema(required)]
    pub account: Option<String>,
    /// The tenant whose branch the caller is restricted to; null if there is no restriction.
    #[serde(default)]
    #[schema(required)]
    pub tenant: Option<String>,
    /// The CSRF token. Requests of a session that change something must send it in the header `Switchyard-CSRF`. Omitted
    /// without a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub csrf: Option<String>,
    /// Time of expiry of the session or token, milliseconds since the epoch. A session also expires after 30 minutes without
    /// use.
    #[schema(required)]
    pub until: Option<u64>,
}

/// A change of the caller's password.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordRequest {
    /// The current password.
    pub old: String,
    /// The new password, at least ten characters.
    pub new: String,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// The login name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The account of a user with [`Role::Account`]; null for all other roles.
    #[schema(required)]
    pub account: Option<String>,
    /// The tenant whose branch the user is restricted to; null if there is no restriction.
    #[serde(default)]
    #[schema(required)]
    pub tenant: Option<String>,
    /// Whether the user may read message texts.
    pub bodies: bool,
    /// Whether the user has a password. A user without a password cannot log in.
    pub password: bool,
    /// Version; each change increments it.
    pub version: u64,
    /// Time of creation, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub made: Timestamp,
    /// Time of the last change, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub changed: Timestamp,
    /// The author of the last change.
    pub by: String,
}

/// A user to create.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRequest {
    /// The name: 1 to 64 of the characters a-z, A-Z, 0-9, `.`, `_`, `-` and `@`.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The password, at least ten characters. A user without a password cannot log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The account; required for the role `account`, not allowed for other roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The tenant to whose branch the user is restricted; the name of such a user ends with `@` and the tenant's name. It
    /// cannot be changed. Default: the caller's own tenant, if the caller has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Whether the user may read message texts.
    #[serde(default)]
    pub bodies: bool,
}

/// A change of a user. Omitted fields stay unchanged.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserChange)]
pub struct UserChangeRequest {
    /// The role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// A new password. It ends the user's sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The account; null removes it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub account: Option<Option<String>>,
    /// Whether the user may read message texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bodies: Option<bool>,
}

/// Distinguishes null from an omitted field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A token without its secret. The secret is returned only when the token is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenInfo {
    /// The name. Callers with this token appear as `token:NAME`.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The account of a token with [`Role::Account`]; null for all other roles.
    #[schema(required)]
    pub account: Option<String>,
    /// The tenant whose branch the token is restricted to; null if there is no restriction.
    #[serde(default)]
    #[schema(required)]
    pub tenant: Option<String>,
    /// Whether the token may read message texts.
    pub bodies: bool,
    /// Time of creation, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub made: Timestamp,
    /// The creator.
    pub by: String,
    /// Time of expiry, milliseconds since the epoch; null if the token does not expire.
    #[schema(value_type = Option<u64>, required)]
    pub until: Option<Timestamp>,
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// The name; same rules as for users.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The account; required for the role `account`, not allowed for other roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The tenant to whose branch the token is restricted; as for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Whether the token may read message texts.
    #[serde(default)]
    pub bodies: bool,
    /// Lifetime in days, 1 to 3650. If omitted, the token does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3650)]
    pub days: Option<u64>,
}

/// A token that has just been created.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = CreatedToken)]
pub struct CreatedTokenView {
    /// The secret. No later answer contains it.
    pub token: String,
    /// The token.
    #[serde(flatten)]
    pub info: TokenInfo,
}

/// The outcome of an audited operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditOutcome {
    /// The operation succeeded.
    Done,
    /// The operation was refused: not permitted, or invalid.
    Refused,
    /// The operation failed because of a fault of the appliance.
    Failed,
}

impl fmt::Display for AuditOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// An audited operation.
///
/// On disk, table `audit`, value: JSON in UTF-8 of exactly these fields. Fields that are `None` are omitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// Time of the operation, milliseconds since the epoch.
    #[schema(value_type = u64)]
    pub at: Timestamp,
    /// The caller: a user's name, `token` for the root token, `token:NAME` for a named token.
    pub by: String,
    /// The tenant of the caller; omitted for callers without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tenant: Option<String>,
    /// The operation: method and route, such as `PATCH /v1/users/{name}`.
    pub what: String,
    /// The variable parts of the path. The number of a subscriber is masked unless the caller may read message texts.
    pub subject: String,
    /// Details of the operation. Never contains a secret or a message text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
    /// The IP address of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<String>,
    /// The outcome.
    pub outcome: AuditOutcome,
    /// The HTTP status.
    pub status: u16,
}

/// A record of the audit log with its serial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// The serial, counted from 1 without a gap. Serials of deleted records are not reused.
    pub serial: u64,
    /// The record.
    #[serde(flatten)]
    pub record: AuditRecord,
}

/// A page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The records.
    pub entries: Vec<AuditEntry>,
    /// The `before` of the next page; null on the last page. A page may be short or even empty and not be the last: the number
    /// of records scanned for one page is limited.
    #[schema(required)]
    pub next: Option<u64>,
}
