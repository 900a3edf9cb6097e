//! The permission that each operation requires, whether users of tenants may use it, and which operations are audited. Operations
//! without a row are refused for everyone.

use TenantAccess::{Refused, Scoped};
use api::Permission;
use axum::http::Method;

/// Whether callers who belong to a tenant may use an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TenantAccess {
    /// Refused: the operation shows or changes things that belong to all tenants.
    Refused,
    /// Permitted, with the permission. The handler must take the caller's [`Scope`](crate::authz::Scope) and restrict
    /// itself to it; the answer of a handler that did not take it is withheld.
    Scoped,
}

/// Method, path, permission, access for tenants. `HEAD` counts as `GET`.
const PERMISSIONS: &[(Method, &str, Permission, TenantAccess)] = &[
    (Method::GET, "/v1/status", Permission::Read, Refused),
    (Method::GET, "/v1/attention", Permission::Read, Refused),
    (Method::GET, "/v1/metrics/recent", Permission::Read, Refused),
    (Method::GET, "/v1/queues", Permission::Read, Refused),
    (Method::GET, "/v1/pace-buckets", Permission::Read, Refused),
    (Method::GET, "/v1/traffic", Permission::Read, Refused),
    (Method::GET, "/v1/traffic/map", Permission::Read, Refused),
    (Method::GET, "/v1/metrics/history", Permission::Read, Refused),
    (Method::GET, "/v1/event-sinks", Permission::Read, Refused),
    (Method::GET, "/v1/links", Permission::Read, Scoped),
    (Method::GET, "/v1/links/summary", Permission::Read, Refused),
    (Method::GET, "/v1/messages", Permission::Own, Scoped),
    (Method::GET, "/v1/messages/{id}", Permission::Own, Scoped),
    (Method::POST, "/v1/messages/{id}/cancel", Permission::Operate, Scoped),
    (Method::POST, "/v1/messages/{id}/retry", Permission::Operate, Scoped),
    (Method::DELETE, "/v1/messages/{id}/content", Permission::Erase, Scoped),
    (Method::POST, "/v1/erasures", Permission::Erase, Refused),
    (Method::GET, "/v1/subscribers/{subscriber}", Permission::Read, Refused),
    (Method::POST, "/v1/subscribers/{subscriber}/wake", Permission::Operate, Refused),
    (Method::POST, "/v1/subscribers/{subscriber}/silent-sms", Permission::Operate, Refused),
    (Method::GET, "/v1/queue-actions", Permission::Read, Refused),
    (Method::POST, "/v1/queue-actions", Permission::Operate, Refused),
    (Method::POST, "/v1/queue-actions/preview", Permission::Operate, Refused),
    (Method::DELETE, "/v1/queue-actions/{id}", Permission::Operate, Refused),
    (Method::GET, "/v1/quarantine", Permission::Read, Refused),
    (Method::POST, "/v1/quarantine/release", Permission::Operate, Refused),
    (Method::POST, "/v1/quarantine/purge", Permission::Operate, Refused),
    (Method::GET, "/v1/uncertain", Permission::Read, Refused),
    (Method::POST, "/v1/uncertain/settle", Permission::Operate, Refused),
    (Method::POST, "/v1/messages/{id}/settle", Permission::Operate, Scoped),
    (Method::POST, "/v1/explain", Permission::Read, Refused),
    (Method::GET, "/v1/history", Permission::Own, Scoped),
    (Method::GET, "/v1/history/export", Permission::Read, Scoped),
    (Method::GET, "/v1/statistics", Permission::Own, Scoped),
    (Method::GET, "/v1/archive", Permission::Read, Refused),
    (Method::GET, "/v1/dlrs/orphans", Permission::Read, Refused),
    (Method::POST, "/v1/dlrs/resend", Permission::Operate, Refused),
    (Method::GET, "/v1/refusals", Permission::Read, Refused),
    (Method::GET, "/v1/opt-outs", Permission::Read, Refused),
    (Method::POST, "/v1/opt-outs", Permission::Operate, Refused),
    (Method::GET, "/v1/business", Permission::Read, Refused),
    (Method::GET, "/v1/plugin-peers", Permission::Read, Refused),
    (Method::GET, "/v1/gsm", Permission::Read, Refused),
    (Method::GET, "/metrics", Permission::Read, Refused),
    (Method::GET, "/v1/plugins", Permission::Read, Refused),
    (Method::GET, "/v1/plugins/sources", Permission::Read, Refused),
    (Method::GET, "/v1/plugins/sources/{source}/{plugin}/tags", Permission::ManagePlugins, Refused),
    (Method::POST, "/v1/plugins/pull", Permission::ManagePlugins, Refused),
    (Method::GET, "/v1/plugins/outdated", Permission::ManagePlugins, Refused),
    (Method::GET, "/v1/plugins/{name}/{version}/sbom", Permission::Read, Refused),
    (Method::PUT, "/v1/plugins/{name}/{version}/sbom", Permission::ManagePlugins, Refused),
    (Method::PUT, "/v1/plugins/{name}", Permission::ManagePlugins, Refused),
    (Method::PUT, "/v1/plugins/{name}/{version}/debug-info", Permission::ManagePlugins, Refused),
    (Method::GET, "/v1/plugins/{name}/{version}/policy-schema", Permission::Read, Refused),
    (Method::GET, "/v1/hooks", Permission::Read, Refused),
    (Method::GET, "/v1/hooks/{hook}", Permission::Read, Refused),
    (Method::GET, "/v1/hooks/{hook}/calls", Permission::Read, Refused),
    (Method::GET, "/v1/hooks/{hook}/faults/{id}/case", Permission::ReadBodies, Refused),
    (Method::DELETE, "/v1/hooks/{hook}", Permission::ManagePlugins, Refused),
    (Method::POST, "/v1/hooks/{hook}/activate", Permission::ManagePlugins, Refused),
    (Method::POST, "/v1/hooks/{hook}/rollback", Permission::ManagePlugins, Refused),
    (Method::POST, "/v1/hooks/{hook}/candidate", Permission::ManagePlugins, Refused),
    (Method::DELETE, "/v1/hooks/{hook}/candidate", Permission::ManagePlugins, Refused),
    (Method::POST, "/v1/hooks/{hook}/promote", Permission::ManagePlugins, Refused),
    (Method::POST, "/v1/hooks/{hook}/try", Permission::Operate, Refused),
    (Method::POST, "/v1/hooks/{hook}/cases", Permission::ReadBodies, Refused),
    (Method::GET, "/v1/replays", Permission::Read, Refused),
    (Method::POST, "/v1/replays", Permission::Operate, Refused),
    (Method::GET, "/v1/replays/{id}", Permission::Read, Refused),
    (Method::DELETE, "/v1/replays/{id}", Permission::Operate, Refused),
    (Method::GET, "/v1/tables", Permission::Read, Refused),
    (Method::GET, "/v1/tables/{name}", Permission::Read, Refused),
    (Method::PUT, "/v1/tables/{name}", Permission::Configure, Refused),
    (Method::DELETE, "/v1/tables/{name}", Permission::Configure, Refused),
    (Method::GET, "/v1/ledger", Permission::Read, Scoped),
    (Method::GET, "/v1/ledger/{account}", Permission::Read, Scoped),
    (Method::POST, "/v1/ledger/{account}", Permission::ManageMoney, Refused),
    (Method::GET, "/v1/ledger/{account}/operations", Permission::Read, Scoped),
    (Method::GET, "/v1/configuration", Permission::Read, Refused),
    (Method::PUT, "/v1/configuration", Permission::Configure, Refused),
    (Method::PATCH, "/v1/configuration", Permission::Configure, Refused),
    // It opens the files that the document names.
    (Method::POST, "/v1/configuration/validate", Permission::Configure, Refused),
    (Method::GET, "/v1/configuration/versions", Permission::Read, Refused),
    (Method::GET, "/v1/configuration/versions/{version}", Permission::Read, Refused),
    (Method::GET, "/v1/configuration/diff", Permission::Read, Refused),
    (Method::POST, "/v1/configuration/rollback", Permission::Configure, Refused),
    (Method::POST, "/v1/configuration/confirm", Permission::Configure, Refused),
    (Method::POST, "/v1/configuration/revert", Permission::Configure, Refused),
    (Method::GET, "/v1/configuration/schema", Permission::Read, Refused),
    (Method::GET, "/v1/configuration/file", Permission::Read, Refused),
    (Method::POST, "/v1/messages", Permission::Operate, Scoped),
    // The handler requires `operate` of callers without an account.
    (Method::POST, "/v1/conversions", Permission::Own, Scoped),
    (Method::GET, "/v1/peers/{name}/quality", Permission::Read, Refused),
    (Method::POST, "/v1/peers/{name}/test", Permission::Operate, Refused),
    (Method::POST, "/v1/peers/{name}/dial", Permission::Operate, Refused),
    (Method::GET, "/v1/backup", Permission::ManageBackups, Refused),
    (Method::GET, "/v1/cluster", Permission::Read, Refused),
    (Method::POST, "/v1/cluster/hand-over", Permission::Configure, Refused),
    (Method::DELETE, "/v1/cluster/nodes/{name}", Permission::Configure, Refused),
    (Method::GET, "/v1/appliance", Permission::Read, Refused),
    (Method::POST, "/v1/appliance/update", Permission::ManageAppliance, Refused),
    (Method::POST, "/v1/appliance/rollback", Permission::ManageAppliance, Refused),
    (Method::GET, "/v1/appliance/support-bundle", Permission::ManageAppliance, Refused),
    (Method::POST, "/v1/appliance/factory-reset", Permission::ManageAppliance, Refused),
    (Method::GET, "/v1/drain", Permission::Read, Refused),
    (Method::POST, "/v1/drain", Permission::Configure, Refused),
    (Method::DELETE, "/v1/drain", Permission::Configure, Refused),
    (Method::GET, "/v1/log", Permission::Read, Refused),
    (Method::PUT, "/v1/log", Permission::Configure, Refused),
    (Method::GET, "/v1/pools", Permission::Read, Refused),
    (Method::GET, "/v1/pools/{pool}", Permission::Read, Refused),
    (Method::PUT, "/v1/pools/{pool}", Permission::Operate, Refused),
    (Method::DELETE, "/v1/pools/{pool}", Permission::Operate, Refused),
    (Method::GET, "/v1/pools/{pool}/numbers", Permission::Read, Refused),
    (Method::GET, "/v1/pools/{pool}/numbers/{number}", Permission::Read, Refused),
    (Method::POST, "/v1/pools/{pool}/events", Permission::Operate, Refused),
    (Method::GET, "/v1/pools/{pool}/history", Permission::Read, Refused),
    (Method::GET, "/v1/pools/{pool}/watch", Permission::Read, Refused),
    (Method::POST, "/v1/pools/{pool}/import", Permission::Operate, Refused),
    (Method::GET, "/v1/pools/{pool}/export", Permission::Read, Refused),
    (Method::DELETE, "/v1/sessions/current", Permission::Own, Scoped),
    (Method::GET, "/v1/whoami", Permission::Own, Scoped),
    (Method::POST, "/v1/whoami/password", Permission::Own, Scoped),
    (Method::GET, "/v1/tenants", Permission::Read, Scoped),
    (Method::GET, "/v1/accounts", Permission::Read, Scoped),
    (Method::GET, "/v1/users", Permission::ManageUsers, Scoped),
    (Method::POST, "/v1/users", Permission::ManageUsers, Scoped),
    (Method::GET, "/v1/users/{name}", Permission::ManageUsers, Scoped),
    (Method::PATCH, "/v1/users/{name}", Permission::ManageUsers, Scoped),
    (Method::DELETE, "/v1/users/{name}", Permission::ManageUsers, Scoped),
    (Method::GET, "/v1/tokens", Permission::ManageUsers, Scoped),
    (Method::POST, "/v1/tokens", Permission::ManageUsers, Scoped),
    (Method::DELETE, "/v1/tokens/{name}", Permission::ManageUsers, Scoped),
    (Method::GET, "/v1/audit", Permission::ManageUsers, Scoped),
];

/// Operations with methods other than GET that are not audited. The first three change nothing. Pool events are
/// traffic; the journal of the pool records them.
const UNAUDITED: &[(Method, &str)] = &[
    (Method::POST, "/v1/explain"),
    (Method::POST, "/v1/queue-actions/preview"),
    (Method::POST, "/v1/hooks/{hook}/try"),
    (Method::POST, "/v1/pools/{pool}/events"),
];

/// Whether an operation is audited: operations that change something; backups, and cases of faults and of messages,
/// because they contain message texts; and support bundles. Requests for message texts are also audited; the parameter
/// `body` marks them.
pub(crate) fn is_audited(method: &Method, path: &str) -> bool {
    let changes = !method.is_safe() && !UNAUDITED.iter().any(|(row, route)| row == method && *route == path);
    changes
        || matches!(
            required_permission(method, path),
            Some(Permission::ManageBackups | Permission::ManageAppliance | Permission::ReadBodies)
        )
}

/// The permission that an operation requires; `None` if it is refused for everyone.
pub(crate) fn required_permission(method: &Method, path: &str) -> Option<Permission> {
    find(method, path).map(|(_, _, permission, _)| *permission)
}

/// Whether callers who belong to a tenant may use an operation.
pub(crate) fn tenant_access(method: &Method, path: &str) -> TenantAccess {
    find(method, path).map_or(Refused, |(.., access)| *access)
}

/// Whether a permission lets callers who belong to a tenant do anything.
pub(crate) fn is_for_tenants(permission: Permission) -> bool {
    let uses = |(.., required, access): &(Method, &str, Permission, TenantAccess)| {
        *access == Scoped && *required == permission
    };
    permission == Permission::ReadBodies || PERMISSIONS.iter().any(uses)
}

fn find(method: &Method, path: &str) -> Option<&'static (Method, &'static str, Permission, TenantAccess)> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    PERMISSIONS.iter().find(|(row, route, ..)| row == method && *route == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_permission_or_is_public() {
        let document = crate::document();
        let mut described = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
                let method: Method = method.to_uppercase().parse().unwrap();
                assert_eq!(required_permission(&method, path).is_none(), is_open, "{method} {path}");
                described.push((method, path.clone()));
            }
        }
        for (method, path, ..) in PERMISSIONS {
            assert!(described.contains(&(method.clone(), (*path).to_owned())), "{method} {path}");
        }
    }
}
