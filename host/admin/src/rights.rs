//! Which right each operation needs, and which are written down. What has no row here is for nobody.

use access::Right;
use axum::http::Method;

/// Method, path, right. `HEAD` is as `GET`.
const TABLE: &[(Method, &str, Right)] = &[
    (Method::GET, "/v1/status", Right::Read),
    (Method::GET, "/v1/attention", Right::Read),
    (Method::GET, "/v1/pulse", Right::Read),
    (Method::GET, "/v1/queues", Right::Read),
    (Method::GET, "/v1/links", Right::Read),
    (Method::GET, "/v1/messages", Right::Own),
    (Method::GET, "/v1/messages/{id}", Right::Own),
    (Method::POST, "/v1/messages/{id}/cancel", Right::Operate),
    (Method::POST, "/v1/messages/{id}/retry", Right::Operate),
    (Method::GET, "/v1/subscribers/{subscriber}", Right::Read),
    (Method::POST, "/v1/subscribers/{subscriber}/wake", Right::Operate),
    (Method::POST, "/v1/subscribers/{subscriber}/silent-sms", Right::Operate),
    (Method::GET, "/v1/orders", Right::Read),
    (Method::POST, "/v1/orders", Right::Operate),
    (Method::POST, "/v1/orders/preview", Right::Operate),
    (Method::DELETE, "/v1/orders/{id}", Right::Operate),
    (Method::GET, "/v1/uncertain", Right::Read),
    (Method::POST, "/v1/uncertain/settle", Right::Operate),
    (Method::POST, "/v1/messages/{id}/settle", Right::Operate),
    (Method::POST, "/v1/explain", Right::Read),
    (Method::GET, "/v1/history", Right::Own),
    (Method::GET, "/v1/history/export", Right::Read),
    (Method::GET, "/v1/statistics", Right::Own),
    (Method::GET, "/v1/archive", Right::Read),
    (Method::GET, "/v1/reports/parked", Right::Read),
    (Method::POST, "/v1/reports/again", Right::Operate),
    (Method::GET, "/v1/refusals", Right::Read),
    (Method::GET, "/v1/opt-outs", Right::Read),
    (Method::POST, "/v1/opt-outs", Right::Operate),
    (Method::GET, "/v1/business", Right::Read),
    (Method::GET, "/v1/gsm", Right::Read),
    (Method::GET, "/metrics", Right::Read),
    (Method::GET, "/v1/plugins", Right::Read),
    (Method::PUT, "/v1/plugins/{name}", Right::ManagePlugins),
    (Method::GET, "/v1/hooks", Right::Read),
    (Method::GET, "/v1/hooks/{hook}", Right::Read),
    (Method::DELETE, "/v1/hooks/{hook}", Right::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/activate", Right::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/rollback", Right::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/candidate", Right::ManagePlugins),
    (Method::DELETE, "/v1/hooks/{hook}/candidate", Right::ManagePlugins),
    (Method::POST, "/v1/hooks/{hook}/promote", Right::ManagePlugins),
    (Method::GET, "/v1/replays", Right::Read),
    (Method::POST, "/v1/replays", Right::Operate),
    (Method::GET, "/v1/replays/{id}", Right::Read),
    (Method::DELETE, "/v1/replays/{id}", Right::Operate),
    (Method::GET, "/v1/tables", Right::Read),
    (Method::GET, "/v1/tables/{name}", Right::Read),
    (Method::PUT, "/v1/tables/{name}", Right::Configure),
    (Method::DELETE, "/v1/tables/{name}", Right::Configure),
    (Method::GET, "/v1/ledger", Right::Read),
    (Method::GET, "/v1/ledger/{account}", Right::Read),
    (Method::POST, "/v1/ledger/{account}", Right::ManageMoney),
    (Method::GET, "/v1/ledger/{account}/operations", Right::Read),
    (Method::GET, "/v1/configuration", Right::Read),
    (Method::PUT, "/v1/configuration", Right::Configure),
    (Method::PATCH, "/v1/configuration", Right::Configure),
    // It opens the files that the document names.
    (Method::POST, "/v1/configuration/validate", Right::Configure),
    (Method::GET, "/v1/configuration/versions", Right::Read),
    (Method::GET, "/v1/configuration/versions/{version}", Right::Read),
    (Method::GET, "/v1/configuration/diff", Right::Read),
    (Method::POST, "/v1/configuration/rollback", Right::Configure),
    (Method::POST, "/v1/configuration/confirm", Right::Configure),
    (Method::POST, "/v1/configuration/revert", Right::Configure),
    (Method::GET, "/v1/configuration/schema", Right::Read),
    (Method::GET, "/v1/configuration/file", Right::Read),
    (Method::POST, "/v1/messages", Right::Operate),
    (Method::POST, "/v1/peers/{name}/test", Right::Operate),
    (Method::POST, "/v1/peers/{name}/dial", Right::Operate),
    (Method::GET, "/v1/backup", Right::ManageBackups),
    (Method::GET, "/v1/appliance", Right::Read),
    (Method::POST, "/v1/appliance/update", Right::ManageMachine),
    (Method::POST, "/v1/appliance/rollback", Right::ManageMachine),
    (Method::GET, "/v1/appliance/support-bundle", Right::ManageMachine),
    (Method::POST, "/v1/appliance/factory-reset", Right::ManageMachine),
    (Method::GET, "/v1/drain", Right::Read),
    (Method::POST, "/v1/drain", Right::Configure),
    (Method::DELETE, "/v1/drain", Right::Configure),
    (Method::GET, "/v1/log", Right::Read),
    (Method::PUT, "/v1/log", Right::Configure),
    (Method::GET, "/v1/pools", Right::Read),
    (Method::GET, "/v1/pools/{pool}", Right::Read),
    (Method::PUT, "/v1/pools/{pool}", Right::Operate),
    (Method::DELETE, "/v1/pools/{pool}", Right::Operate),
    (Method::GET, "/v1/pools/{pool}/numbers", Right::Read),
    (Method::GET, "/v1/pools/{pool}/numbers/{number}", Right::Read),
    (Method::POST, "/v1/pools/{pool}/events", Right::Operate),
    (Method::GET, "/v1/pools/{pool}/history", Right::Read),
    (Method::GET, "/v1/pools/{pool}/watch", Right::Read),
    (Method::POST, "/v1/pools/{pool}/import", Right::Operate),
    (Method::GET, "/v1/pools/{pool}/export", Right::Read),
    (Method::DELETE, "/v1/sessions/current", Right::Own),
    (Method::GET, "/v1/whoami", Right::Own),
    (Method::POST, "/v1/whoami/password", Right::Own),
    (Method::GET, "/v1/users", Right::ManageUsers),
    (Method::POST, "/v1/users", Right::ManageUsers),
    (Method::GET, "/v1/users/{name}", Right::ManageUsers),
    (Method::PATCH, "/v1/users/{name}", Right::ManageUsers),
    (Method::DELETE, "/v1/users/{name}", Right::ManageUsers),
    (Method::GET, "/v1/tokens", Right::ManageUsers),
    (Method::POST, "/v1/tokens", Right::ManageUsers),
    (Method::DELETE, "/v1/tokens/{name}", Right::ManageUsers),
    (Method::GET, "/v1/audit", Right::ManageUsers),
];

/// Operations by other methods than GET that are not in the audit log: the first two only answer; what happens to the numbers
/// of a pool is traffic, and in the pool's own journal, of which no entry is ever changed either.
const NOT_NOTED: &[(Method, &str)] = &[
    (Method::POST, "/v1/explain"),
    (Method::POST, "/v1/orders/preview"),
    (Method::POST, "/v1/pools/{pool}/events"),
];

/// Whether an operation is written down in the audit log: all that change something, and what leaves the machine as a whole:
/// backups, which hold every text, and its journal.
/// Questions for texts of messages are as well; they are told by their parameters.
pub(crate) fn is_noted(method: &Method, path: &str) -> bool {
    let changes = !method.is_safe() && !NOT_NOTED.iter().any(|(row, place)| row == method && *place == path);
    changes || matches!(needed(method, path), Some(Right::ManageBackups | Right::ManageMachine))
}

/// The right that an operation needs; nothing where it is for nobody.
pub(crate) fn needed(method: &Method, path: &str) -> Option<Right> {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    TABLE.iter().find(|(row, place, _)| row == method && *place == path).map(|(_, _, right)| *right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_right_or_is_open_and_no_row_is_of_nothing() {
        let document = crate::document();
        let mut described = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
                let method: Method = method.to_uppercase().parse().unwrap();
                assert_eq!(needed(&method, path).is_none(), is_open, "{method} {path}");
                described.push((method, path.clone()));
            }
        }
        for (method, path, _) in TABLE {
            assert!(described.contains(&(method.clone(), (*path).to_owned())), "{method} {path}");
        }
    }
}
