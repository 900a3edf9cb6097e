use super::*;
use api::{AuditOutcome, Role};
use model::{Moment, Timestamp};

const EVERYTHING: &AccountScope = &AccountScope::Everything;

fn at(minutes: u64) -> Now {
    Now { wall: Timestamp(1_000_000 + minutes * 60_000), mono: Moment(minutes * 60_000) }
}

fn user(name: &str, role: Role) -> NewUser {
    NewUser {
        name: name.to_owned(),
        role,
        account: None,
        tenant: None,
        bodies: false,
        password_hash: Some("$hash".to_owned()),
    }
}

fn record(by: &str, what: &str, subject: &str) -> AuditRecord {
    AuditRecord {
        at: Timestamp(1),
        by: by.to_owned(),
        tenant: None,
        what: what.to_owned(),
        subject: subject.to_owned(),
        detail: None,
        from: None,
        outcome: AuditOutcome::Done,
        status: 200,
    }
}

#[test]
fn users_tokens_and_audit_log_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.redb");
    let access = Access::open(&path).unwrap();
    access.add_user(user("ann", Role::Admin), "token", at(0)).unwrap();
    access.add_user(user("bob", Role::Viewer), "ann", at(1)).unwrap();
    let change = UserChange { bodies: Some(true), ..UserChange::default() };
    access.change_user("bob", change, Some(1), ("ann", None), at(2)).unwrap();
    let new = TokenRequest {
        name: "ci".to_owned(),
        role: Role::Operator,
        account: None,
        tenant: None,
        bodies: false,
        days: Some(1),
    };
    let (secret, token) = access.create_token(new, "ann", at(3)).unwrap();
    assert_eq!(access.append_audit(record("ann", "POST /v1/tokens", "ci")).unwrap(), 1);
    let (_, session) = access.open_session(&Principal::User("ann".into()), Some(1), at(3)).unwrap().unwrap();
    assert!(access.use_session(&session.secret, at(4)).is_some());
    drop(access);

    let octets = std::fs::read(&path).unwrap();
    assert!(!octets.windows(secret.len()).any(|window| window == secret.as_bytes()), "the token is on disk");

    let access = Access::open(&path).unwrap();
    assert!(access.use_session(&session.secret, at(4)).is_none());
    let bob = access.user("bob").unwrap();
    assert_eq!((bob.role, bob.bodies, bob.version, bob.by.as_str()), (Role::Viewer, true, 2, "ann"));
    assert_eq!(access.users().len(), 2);
    assert_eq!(access.tokens(), [token]);
    let (principal, caller) = access.bearer(&secret, at(4)).unwrap();
    assert_eq!((&*caller.name, caller.role), ("token:ci", Role::Operator));
    assert_eq!(access.token_end(&principal), Some(Timestamp(at(3).wall.0 + 86_400_000)));
    assert!(access.bearer(&secret, at(3 + 24 * 60)).is_none());
    assert!(access.bearer("swyd_0", at(4)).is_none());
    assert_eq!(access.append_audit(record("ann", "DELETE /v1/tokens/{name}", "ci")).unwrap(), 2);
    access.remove_token("ci").unwrap();
    assert!(access.bearer(&secret, at(4)).is_none());
    access.remove_user("bob", None).unwrap();
    drop(access);
    let access = Access::open(&path).unwrap();
    assert_eq!((access.users().len(), access.tokens().len()), (1, 0));
}

#[test]
fn session_follows_user_changes_and_ends_with_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let access = Access::open(&folder.path().join("access.redb")).unwrap();
    access.add_user(user("ann", Role::Admin), "token", at(0)).unwrap();
    access.add_user(user("bob", Role::Operator), "token", at(0)).unwrap();
    let open = |version| access.open_session(&Principal::User("bob".into()), Some(version), at(0)).unwrap();
    let (caller, new_session) = open(1).unwrap();
    assert_eq!(caller.role, Role::Operator);
    let session = access.use_session(&new_session.secret, at(1)).unwrap();
    assert!(
        session.csrf_matches(&new_session.csrf)
            && !session.csrf_matches("")
            && !session.csrf_matches(&new_session.secret)
    );

    let change = UserChange { role: Some(Role::Viewer), ..UserChange::default() };
    access.change_user("bob", change, None, ("ann", None), at(1)).unwrap();
    assert_eq!(access.use_session(&new_session.secret, at(1)).unwrap().caller.role, Role::Viewer);

    assert!(open(1).is_none(), "the password was verified before the user changed");
    let change = UserChange { password_hash: Some("$other".to_owned()), ..UserChange::default() };
    access.change_user("bob", change, None, ("bob", None), at(2)).unwrap();
    assert!(access.use_session(&new_session.secret, at(2)).is_none());

    let (_, new_session) = open(3).unwrap();
    access.remove_user("bob", None).unwrap();
    assert!(access.use_session(&new_session.secret, at(2)).is_none());
    assert!(open(3).is_none());
    let (_, root) = access.open_session(&Principal::RootToken, None, at(2)).unwrap().unwrap();
    assert_eq!(access.use_session(&root.secret, at(2)).unwrap().caller, Caller::root());
    assert!(access.close_session(&root.secret) && access.use_session(&root.secret, at(2)).is_none());
}

#[test]
fn refused_change_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let access = Access::open(&folder.path().join("access.redb")).unwrap();
    access.add_user(user("ann", Role::Admin), "token", at(0)).unwrap();
    let before = access.users();
    let change = UserChange {
        role: Some(Role::Viewer),
        password_hash: Some("$other".to_owned()),
        ..UserChange::default()
    };
    assert!(matches!(
        access.change_user("ann", change, None, ("ann", None), at(1)),
        Err(AccessError::LastAdmin(_))
    ));
    assert!(access.add_user(user("ann", Role::Viewer), "ann", at(1)).is_err());
    assert_eq!(access.users(), before);
    assert_eq!(access.password_hash("ann"), Some(("$hash".to_owned(), 1)));
    assert_eq!(access.password_hash("nobody"), None);
}

#[test]
fn expired_audit_records_go_and_serials_are_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.redb");
    let access = Access::open(&path).unwrap();
    access.set_audit_retention(Duration::from_millis(1000));
    let append = |access: &Access, at: u64| {
        access.append_audit(AuditRecord { at: Timestamp(at), ..record("ann", "x", "y") })
    };
    let serials = |access: &Access| -> Vec<u64> {
        let page = access.audit(&AuditQuery { limit: 1000, ..AuditQuery::default() }, EVERYTHING).unwrap();
        page.entries.iter().rev().map(|entry| entry.serial).collect()
    };
    // The second record has a timestamp from a clock that was ahead. Later records wait for it.
    for at in [100, 900, 200, 1100] {
        append(&access, at).unwrap();
    }
    assert_eq!(serials(&access), [1, 2, 3, 4], "a record of exactly the retention stays");
    append(&access, 1101).unwrap();
    assert_eq!(serials(&access), [2, 3, 4, 5]);
    append(&access, 10_000).unwrap();
    assert_eq!(serials(&access), [6], "the newest record stays");
    drop(access);
    let access = Access::open(&path).unwrap();
    access.set_audit_retention(Duration::from_millis(1000));
    assert_eq!(append(&access, 20_000).unwrap(), 7);
    assert_eq!(serials(&access), [6, 7], "the clock is not trusted: today is long after 1970");
    assert!(!access.trims_audit_log());
}

#[test]
fn clock_jump_removes_no_audit_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.redb");
    let now = Timestamp::now().0;
    let jumped = now + 500 * 86_400_000;
    for (start, times) in [[now, jumped], [now, jumped]].iter().enumerate() {
        let access = Access::open(&path).unwrap();
        assert!(access.trims_audit_log());
        for at in times.iter().chain([&now]) {
            access.append_audit(AuditRecord { at: Timestamp(*at), ..record("ann", "x", "y") }).unwrap();
        }
        let page = access.audit(&AuditQuery { limit: 1000, ..AuditQuery::default() }, EVERYTHING).unwrap();
        assert_eq!(page.entries.len(), (start + 1) * 3);
    }
}

#[test]
fn concurrent_audit_writes_leave_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let access = Access::open(&folder.path().join("access.redb")).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let access = &access;
            scope.spawn(move || {
                for turn in 0..25 {
                    let by = if writer % 2 == 0 { "ann" } else { "bob" };
                    access
                        .append_audit(record(by, "PUT /v1/tables/{name}", &format!("{writer}-{turn}")))
                        .unwrap();
                }
            });
        }
    });
    let all = AuditQuery { limit: 1000, ..AuditQuery::default() };
    let page = access.audit(&all, EVERYTHING).unwrap();
    let serials: Vec<u64> = page.entries.iter().map(|entry| entry.serial).collect();
    assert_eq!(serials, (1..=200).rev().collect::<Vec<_>>());
    assert_eq!(page.next, None);

    let mut query = AuditQuery { limit: 30, by: Some("bob".to_owned()), ..AuditQuery::default() };
    let mut found = Vec::new();
    loop {
        let page = access.audit(&query, EVERYTHING).unwrap();
        assert!(page.entries.len() <= 30);
        found.extend(page.entries);
        match page.next {
            Some(next) => query.before = Some(next),
            None => break,
        }
    }
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|entry| entry.record.by == "bob"));
    assert!(found.windows(2).all(|pair| pair[0].serial > pair[1].serial));

    let one =
        AuditQuery { subject: Some("3-7".to_owned()), what: Some("/v1/tables".to_owned()), ..all.clone() };
    assert_eq!(access.audit(&one, EVERYTHING).unwrap().entries.len(), 1);
    let none = AuditQuery { what: Some("/v1/users".to_owned()), ..all };
    assert_eq!(access.audit(&none, EVERYTHING).unwrap().entries.len(), 0);

    let long = "é".repeat(5_000);
    access.append_audit(record("ann", "x", &long)).unwrap();
    let page = access.audit(&AuditQuery { limit: 1, ..AuditQuery::default() }, EVERYTHING).unwrap();
    assert_eq!(page.entries[0].record.subject.chars().count(), 1025);
}

#[test]
fn a_tenant_reads_the_audit_records_of_its_branch_only() {
    let folder = tempfile::tempdir().unwrap();
    let access = Access::open(&folder.path().join("access.redb")).unwrap();
    let of = |tenant: Option<&str>| AuditRecord {
        tenant: tenant.map(str::to_owned),
        ..record("ann", "GET /v1/messages/{id}?body=1", "7")
    };
    for tenant in [Some("north"), Some("south"), None, Some("north")] {
        access.append_audit(of(tenant)).unwrap();
    }
    let tree = model::TenantTree::new([("north".into(), None), ("south".into(), None)], [], []);
    let north = AccountScope::Branch(tree.branch("north"));
    let page = access.audit(&AuditQuery { limit: 10, ..AuditQuery::default() }, &north).unwrap();
    let serials: Vec<_> = page.entries.iter().map(|entry| entry.serial).collect();
    assert_eq!(serials, [4, 1]);
}
