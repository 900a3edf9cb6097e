use super::messages::START;
use super::{open, runtime};
use api::{AuditEntry, AuditOutcome, AuditRecord};
use archive::AuditLog;
use model::Timestamp;

pub fn audit_logs_of_nodes_are_kept_apart(url: &str) {
    let archive = open(url);
    let log = |node: &str, log: &str| AuditLog { node: node.to_owned(), log: log.to_owned() };
    let entry = |serial, detail: Option<&str>| AuditEntry {
        serial,
        record: AuditRecord {
            at: Timestamp(START + serial),
            by: "ann".to_owned(),
            tenant: None,
            what: "PATCH /v1/users/{name}".to_owned(),
            subject: "a\0b".to_owned(),
            detail: detail.map(str::to_owned),
            from: None,
            outcome: AuditOutcome::Done,
            status: 200,
        },
    };
    runtime().block_on(async {
        let (a, b, anew) = (log("a", "1"), log("b", "1"), log("a", "2"));
        assert_eq!(archive.newest_audit_record(&a).await.unwrap(), None);
        let many: Vec<_> = (1..=100).map(|serial| entry(serial, Some(&"ж".repeat(1024)))).collect();
        archive.add_audit_records(&a, &many).await.unwrap();
        archive.add_audit_records(&b, &[entry(7, None)]).await.unwrap();
        archive.add_audit_records(&anew, &[]).await.unwrap();
        assert_eq!(archive.newest_audit_record(&a).await.unwrap(), Some(100));
        assert_eq!(archive.newest_audit_record(&b).await.unwrap(), Some(7));
        assert_eq!(archive.newest_audit_record(&anew).await.unwrap(), None);
        assert!(archive.add_audit_records(&a, &[entry(101, None), entry(100, None)]).await.is_err());
        assert_eq!(archive.newest_audit_record(&a).await.unwrap(), Some(100), "all or none");
    });
}
