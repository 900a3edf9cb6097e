//! The permission that each operation requires, and which operations are audited. Operations without a row are refused for
//! everyone.

use api::Permission;
use axum::http::Method;

/// Method, path, permission. `HEAD` counts as `GET`.
const PERMISSIONS: &[(Method, &str, Permission)] = &[
    (Method::GET, "/v1/status", Permission::Read),
    (Method::GET, "/v1/attention", Permission::Read),
    (Method::GET, "/v1/metrics/recent", Permission::Read),
    (Method::GET, "/v1/queues", Permission::Read),
    (Method::GET, "/v1/pace-buckets", Permission::Read),
    (Method::GET, "/v1/traffic", Permission::Read),
    (Method::GET, "/v1/traffic/map", Permission::Read),
    (Method::GET, "/v1/metrics/history", Permission::Read),
    (Method::GET, "/v1/event-sinks", Permission::Read),
    (Method::GET, "/v1/links", Permission::Read),
    (Method::GET, "/v1/links/summary", Permission::Read),
    (Method::GET, "/v1/messages", Permission::Own),
    (Method::GET, "/v1/messages/{id}", Permission::Own),
    (Method::POST, "/v1/messages/{id}/cancel", Permission::Operate),
    (Method::POST, "/v1/messages/{id}/retry", Permission::Operate),
    (Method::DELETE, "/v1/messages/{id}/content", Permission::Erase),
    (Method::POST, "/v1/erasures", Permission::Erase),
    (Method::GET, "/v1/subscribers/{subscriber}", Permission::Read),
    (Method::POST, "/v1/subscribers/{subscriber}/wake", Permission::Operate),
    (Method::POST, "/v1/subscribers/{subscriber}/silent-sms", Permission::Operate),
    (Method::GET, "/v1/queue-actions", Permission::Read),
    (Method::POST, "/v1/queue-actions", Permission::Operate),
    (Method::POST, "/v1/queue-actions/preview", Permission::Operate),
    (Method::DELETE, "/v1/queue-actions/{id}", Permission::Operate),
    (Method::GET, "/v1/quarantine", Permission::Read),
    (Method::POST, "/v1/quarantine/release", Permission::Operate),
    (Method::POST, "/v1/quarantine/purge", Permission::Operate),
    (Method::GET, "/v1/uncertain", Permission::Read),
    (Method::POST, "/v1/uncertain/settle", Permission::Operate),
    (Method::POST, "/v1/messages/{id}/settle", Permission::Operate),
    (Method::POST, "/v1/explain", Permission::Read),
    (Method::GET, "/v1/history", Permission::Own),
    (Method::GET, "/v1/history/export", Permission::Read),
    (Method::GET, "/v1/statistics", Permission::Own),
    (Method::GET, "/v1/archive", Permission::Read),
    (Method::GET, "/v1/dlrs/orphans", Permission::Read),
    (Method::POST, "/v1/dlrs/resend", Permission::Operate),
    (Method::GET, "/v1/refusals", Permission::Read),
    (Method::GET, "/v1/opt-outs", Permission::Read),
    (Method::POST, "/v1/opt-outs", Permission::Operate),
    (Method::GET, "/v1/business", Permission::Read),
    (Method::GET, "/v1/plugin-peers", Permission::Read),
    (Method::GET, "/v1/gsm", Permission::Read),
    (Method::GET, "/metrics", Permission::Read),
    (Method::GET, "/v1/plugins", Permission::Read),
    (Method::GET, "/v1/plugins/sources", Permission::Read),
    (Method::GET, "/v1/plugins/sources/{source}/{plugin}/tags", Permission::ManagePlugins),
    (Method::POST, "/v1/plugins/pull", Permission::ManagePlugins),
    (Method::GET, "/v1/plugins/outdated", Permission::ManagePlugins),
    (Method::GET, "/v1/plugins/{name}/{version}/sbom", Permission::Read),
    (Method::PUT, "/v1/plugins/{name}/{version}/sbom", Permission::ManagePlugins),
    (Method::PUT, "/v1/plugins/{name}", Permission::ManagePlugins),
    (Method::PUT, "/v1/plugins/{name}/{version}/debug-info", Permission::ManagePlugins),
    (Method::GET, "/v1/plugins/{name}/{version}/policy-schema", Permission::Read),
    (Method::GET, "/v1/hooks", Permission::Read),
    (Method::GET, "/v1/hooks/{hook}", Permission::Read),
    (Method::GET, "/v1/hooks/{hook}/calls", Permission::Read),
    (Method::GET, "/v1/hooks/{hook}/faults/{id}/case", Permission::ReadBodies),
    (Method::DELETE, "/v1/hooks/{hook}", Permission::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/activate", Permission::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/rollback", Permission::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/candidate", Permission::ManagePlugins),
    (Method::DELETE, "/v1/hooks/{hook}/candidate", Permission::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/promote", Permission::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/try", Permission::Operate),
    (Method::POST, "/v1/hooks/{hook}/cases", Permission::ReadBodies),
    (Method::GET, "/v1/replays", Permission::Read),
    (Method::POST, "/v1/replays", Permission::Operate),
    (Method::GET, "/v1/replays/{id}", Permission::Read),
    (Method::DELETE, "/v1/replays/{id}", Permission::Operate),
    (Method::GET, "/v1/tables", Permission::Read),
    (Method::GET, "/v1/tables/{name}", Permission::Read),
    (Method::PUT, "/v1/tables/{name}", Permission::Configure),
    (Method::DELETE, "/v1/tables/{name}", Permission::Configure),
    (Method::GET, "/v1/ledger", Permission::Read),
    (Method::GET, "/v1/ledger/{account}", Permission::Read),
    (Method::POST, "/v1/ledger/{account}", Permission::ManageMoney),
    (Method::GET, "/v1/ledger/{account}/operations", Permission::Read),
    (Method::GET, "/v1/configuration", Permission::Read),
    (Method::PUT, "/v1/configuration", Permission::Configure),
    (Method::PATCH, "/v1/configuration", Permission::Configure),
    // It opens the files that the document names.
    (Method::POST, "/v1/configuration/validate", Permission::Configure),
    (Method::GET, "/v1/configuration/versions", Permission::Read),
    (Method::GET, "/v1/configuration/versions/{version}", Permission::Read),
    (Method::GET, "/v1/configuration/diff", Permission::Read),
    (Method::POST, "/v1/configuration/rollback", Permission::Configure),
    (Method::POST, "/v1/configuration/confirm", Permission::Configure),
    (Method::POST, "/v1/configuration/revert", Permission::Configure),
    (Method::GET, "/v1/configuration/schema", Permission::Read),
    (Method::GET, "/v1/configuration/file", Permission::Read),
    (Method::POST, "/v1/messages", Permission::Operate),
    // The handler requires `operate` of callers without an account.
    (Method::POST, "/v1/conversions", Permission::Own),
    (Method::GET, "/v1/peers/{name}/quality", Permission::Read),
    (Method::POST, "/v1/peers/{name}/test", Permission::Operate),
    (Method::POST, "/v1/peers/{name}/dial", Permission::Operate),
    (Method::GET, "/v1/backup", Permission::ManageBackups),
    (Method::GET, "/v1/cluster", Permission::Read),
    (Method::POST, "/v1/cluster/hand-over", Permission::Configure),
    (Method::DELETE, "/v1/cluster/nodes/{name}", Permission::Configure),
    (Method::GET, "/v1/appliance", Permission::Read),
    (Method::POST, "/v1/appliance/update", Permission::ManageAppliance),
    (Method::POST, "/v1/appliance/rollback", Permission::ManageAppliance),
    (Method::GET, "/v1/appliance/support-bundle", Permission::ManageAppliance),
    (Method::POST, "/v1/appliance/factory-reset", Permission::ManageAppliance),
    (Method::GET, "/v1/drain", Permission::Read),
    (Method::POST, "/v1/drain", Permission::Configure),
    (Method::DELETE, "/v1/drain", Permission::Configure),
    (Method::GET, "/v1/log", Permission::Read),
    (Method::PUT, "/v1/log", Permission::Configure),
    (Method::GET, "/v1/pools", Permission::Read),
    (Method::GET, "/v1/pools/{pool}", Permission::Read),
    (Method::PUT, "/v1/pools/{pool}", Permission::Operate),
    (Method::DELETE, "/v1/pools/{pool}", Permission::Operate),
    (Method::GET, "/v1/pools/{pool}/numbers", Permission::Read),
    (Method::GET, "/v1/pools/{pool}/numbers/{number}", Permission::Read),
    (Method::POST, "/v1/pools/{pool}/events", Permission::Operate),
    (Method::GET, "/v1/pools/{pool}/history", Permission::Read),
    (Method::GET, "/v1/pools/{pool}/watch", Permission::Read),
    (Method::POST, "/v1/pools/{pool}/import", Permission::Operate),
    (Method::GET, "/v1/pools/{pool}/export", Permission::Read),
    (Method::DELETE, "/v1/sessions/current", Permission::Own),
    (Method::GET, "/v1/whoami", Permission::Own),
    (Method::POST, "/v1/whoami/password", Permission::Own),
    (Method::GET, "/v1/users", Permission::ManageUsers),
    (Method::POST, "/v1/users", Permission::ManageUsers),
    (Method::GET, "/v1/users/{name}", Permission::ManageUsers),
    (Method::PATCH, "/v1/users/{name}", Permission::ManageUsers),
    (Method::DELETE, "/v1/users/{name}", Permission::ManageUsers),
    (Method::GET, "/v1/tokens", Permission::ManageUsers),
    (Method::POST, "/v1/tokens", Permission::ManageUsers),
    (Method::DELETE, "/v1/tokens/{name}", Permission::ManageUsers),
    (Method::GET, "/v1/audit", Permission::ManageUsers),
];

/// Operations with methods other than GET that are not audited. The first three change nothing. Pool events are traffic, and the
/// pool's own journal records them.
const UNAUDITED: &[(Method, &str)] = &[
    (Method::POST, "/v1/explain"),
    (Method::POST, "/v1/queue-actions/preview"),
    (Method::POST, "/v1/hooks/{hook}/try"),
    (Method::POST, "/v1/pools/{pool}/events"),
];

/// Whether an operation is audited: all operations that change something, backups (they contain message texts), support
/// bundles, and cases of faults and of messages (they contain message texts). Requests for message texts are audited too; the parameter `body` marks them.
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
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    PERMISSIONS
        .iter()
        .find(|(row, route, _)| row == method && *route == path)
        .map(|(_, _, permission)| *permission)
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
        for (method, path, _) in PERMISSIONS {
            assert!(described.contains(&(method.clone(), (*path).to_owned())), "{method} {path}");
        }
    }
}
