//! The audit logs of the nodes of a cluster, in one table.

use crate::backend::Session;
use crate::error::Fault;
use crate::sql::{ColumnType, Dialect, Statement};
use api::{AuditEntry, AuditOutcome};

/// The audit log of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLog {
    /// The name of the node.
    pub node: String,
    /// Identifies the log: distinguishes it from a log that the node lost with its disk.
    pub log: String,
}

/// The newest serial of a log.
pub(crate) async fn newest(
    session: &mut dyn Session,
    dialect: Dialect,
    log: &AuditLog,
) -> Result<Option<u64>, Fault> {
    let mut newest = Statement::new(dialect, "SELECT max(serial) FROM audit WHERE node = ");
    newest.text(&log.node).push(" AND log = ").text(&log.log);
    let found = session.select(&newest, &[ColumnType::Big]).await?;
    Ok(found.first().and_then(|row| u64::try_from(row.first()?.number()?).ok()))
}

/// Inserts records of a log in one transaction.
pub(crate) async fn insert(
    session: &mut dyn Session,
    dialect: Dialect,
    log: &AuditLog,
    entries: &[AuditEntry],
) -> Result<(), Fault> {
    let mut insert = Statement::new(
        dialect,
        "INSERT INTO audit (node, log, serial, at, caller, operation, subject, detail, address, outcome, status) VALUES ",
    );
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for (index, AuditEntry { serial, record }) in entries.iter().enumerate() {
        insert.push(if index == 0 { "(" } else { ",(" });
        insert
            .text(&log.node)
            .push(",")
            .text(&log.log)
            .push(",")
            .number(number(*serial))
            .push(",")
            .number(number(record.at.0));
        let outcome = match record.outcome {
            AuditOutcome::Done => "done",
            AuditOutcome::Refused => "refused",
            AuditOutcome::Failed => "failed",
        };
        let detail = record.detail.as_deref().unwrap_or_default();
        let from = record.from.as_deref().unwrap_or_default();
        for text in [&record.by, &record.what, &record.subject, detail, from, outcome] {
            // PostgreSQL's text columns cannot contain NUL.
            insert.push(",").text(&text.replace('\0', "\u{fffd}"));
        }
        insert.push(",").number(record.status.into()).push(")");
    }
    if entries.is_empty() {
        return Ok(());
    }
    session.execute(&insert).await.map(drop)
}
