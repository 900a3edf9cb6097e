//! The log and the shared state of a cluster, against real etcd servers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use api::{ClusterRole, RecordFormats};
use cluster::{
    Cluster, ClusterError, ClusterOptions, DegradedPolicy, EtcdJournal, LogCopy, ReplicationState,
    SharedContent, SharedFile, SharedScope,
};
use journal::{Entry, Journal, JournalError, JournalHold, NodeId, Seq, Writer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use testkit::etcd::{EtcdServers, EtcdTls};
use tokio::runtime::Runtime;

const VERSION: (&str, RecordFormats) = ("1", RecordFormats { oldest: 1, newest: 1 });
const NONE: Duration = Duration::ZERO;
const QUOTA_OCTETS: usize = 64 << 20;

struct ClusterFixture {
    runtime: Runtime,
    servers: EtcdServers,
    folder: TempDir,
}

fn fixture(members: usize) -> ClusterFixture {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    ClusterFixture { runtime, servers: EtcdServers::start(folder.path(), members, None).unwrap(), folder }
}

fn options(node: &str, endpoints: Vec<String>) -> ClusterOptions {
    ClusterOptions {
        node: node.to_owned(),
        endpoints,
        partition: 0,
        prefix: "/switchyard".to_owned(),
        address: None,
        listen: ([127, 0, 0, 1], 0).into(),
        own_sections: Vec::new(),
        ca: None,
        certificate: None,
        key: None,
        user: String::new(),
        password: String::new(),
        degraded: DegradedPolicy::GoOn,
        slots: 1024,
        compress: true,
    }
}

impl ClusterFixture {
    fn join_with(&self, options: ClusterOptions) -> Arc<Cluster> {
        let handle = self.runtime.handle().clone();
        self.runtime.block_on(Cluster::join(options, "http://192.0.2.1", VERSION, handle)).unwrap()
    }

    fn node(&self, name: &str) -> (Arc<Cluster>, EtcdJournal) {
        let cluster = self.join_with(options(name, self.servers.endpoints()));
        let journal = cluster.journal(Seq(0));
        (cluster, journal)
    }
}

fn payloads(journal: &mut EtcdJournal, from: Seq) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut from = from;
    loop {
        let records = journal.read(from, QUOTA_OCTETS, NONE).unwrap();
        let Some(last) = records.last() else { return found };
        from = last.seq.next();
        found.extend(records.into_iter().filter_map(|record| match record.entry {
            Entry::Payload(payload) => Some(payload),
            Entry::Claim { .. } => None,
        }));
    }
}

fn append(journal: &mut EtcdJournal, writer: &mut Writer, payload: &[u8]) -> Seq {
    journal.append(writer, payload).unwrap()
}

#[test]
fn two_nodes_share_a_log_and_the_newer_claim_fences_the_older() {
    let fixture = fixture(1);
    let (a, mut leading) = fixture.node("a");
    let (b, mut following) = fixture.node("b");
    assert_eq!(a.number(), b.number());
    assert_eq!(payloads(&mut following, Seq(1)), Vec::<Vec<u8>>::new());
    assert!(!leading.lease().holds());
    let mut writer = leading.claim(NodeId(1)).unwrap();
    assert!(leading.lease().holds());
    // Incompressible octets, in several pieces.
    let long: Vec<u8> = (0..2_500_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for payload in [b"one".as_slice(), &long, b"", b"four"] {
        append(&mut leading, &mut writer, payload);
    }
    assert_eq!(writer.last(), Seq(5));
    let want = vec![b"one".to_vec(), long, Vec::new(), b"four".to_vec()];
    assert_eq!(payloads(&mut following, Seq(1)), want);
    assert_eq!(payloads(&mut following, Seq(5)), [b"four".to_vec()]);
    let tail = following.follow(Seq(6), QUOTA_OCTETS).unwrap();
    assert_eq!((tail.head, tail.records.len()), (Some(writer.head()), 0));
    assert_eq!(tail.leader.unwrap().node, "a");

    let mut newer = following.claim(NodeId(2)).unwrap();
    assert_eq!((newer.term().0, newer.last()), (2, Seq(6)));
    append(&mut following, &mut newer, b"of b");
    let fenced = leading.append(&mut writer, b"too late").unwrap_err();
    assert!(matches!(fenced, JournalError::Fenced { by } if by == newer.term()), "{fenced}");
    assert_eq!(payloads(&mut leading, Seq(5)), [b"four".to_vec(), b"of b".to_vec()]);
    following.resign(&newer).unwrap();
    assert!(leading.follow(Seq(8), QUOTA_OCTETS).unwrap().leader.unwrap().resigned);
}

fn value(octets: impl Into<Vec<u8>>) -> SharedContent {
    SharedContent::Value(octets.into())
}

#[test]
fn a_claim_that_was_decided_before_another_node_s_claim_is_refused() {
    let fixture = fixture(1);
    let (_a, mut one) = fixture.node("a");
    let (_b, mut other) = fixture.node("b");
    for journal in [&mut one, &mut other] {
        assert_eq!(payloads(journal, Seq(1)), Vec::<Vec<u8>>::new());
    }
    let mut writer = one.claim(NodeId(1)).unwrap();
    let refused = other.claim(NodeId(2)).unwrap_err();
    assert!(matches!(refused, JournalError::Fenced { by } if by == writer.term()), "{refused}");
    append(&mut one, &mut writer, b"not fenced");
    // When it has seen the claim, it may decide again.
    assert_eq!(payloads(&mut other, Seq(2)), [b"not fenced".to_vec()]);
    other.claim(NodeId(2)).unwrap();
}

#[test]
fn the_leader_s_shared_state_is_read_in_parts_and_as_changes() {
    let fixture = fixture(1);
    let (a, mut leading) = fixture.node("a");
    let (b, mut following) = fixture.node("b");
    let one = [("users/ann".to_owned(), value("{}"))];
    assert!(matches!(a.write_shared(&one), Err(ClusterError::NotLeader)));
    leading.claim(NodeId(1)).unwrap();
    assert_eq!(b.shared_since(SharedScope::Partition, 0).unwrap().entries, []);
    // More than one answer or one transaction can hold.
    let many: Vec<_> = (0..450).map(|n| (format!("n/{n:03}"), value(vec![7; n * 10]))).collect();
    let revision = a.write_shared(&many).unwrap();
    let read = b.shared_since(SharedScope::Partition, 0).unwrap();
    assert_eq!((read.revision, &read.entries), (revision, &many));
    let file = SharedFile { sha256: "0a".repeat(32), octets: 7 };
    let offered = a.offer_files(std::slice::from_ref(&file)).unwrap();
    assert_eq!(b.shared_since(SharedScope::Partition, revision).unwrap().offers, std::slice::from_ref(&file));
    a.end_offers(std::slice::from_ref(&file)).unwrap();
    let changes = [("n/003".to_owned(), SharedContent::Removed), ("t".to_owned(), SharedContent::File(file))];
    let last = a.write_shared(&changes).unwrap();
    assert!(last > offered);
    let read = b.shared_since(SharedScope::Partition, offered).unwrap();
    assert_eq!((read.entries.as_slice(), read.offers.len()), (changes.as_slice(), 0));
    assert_eq!(b.shared_since(SharedScope::Partition, last).unwrap().entries, []);
    // A node that has lost the log cannot write.
    following.claim(NodeId(2)).unwrap();
    assert!(matches!(a.write_shared(&one), Err(ClusterError::NotLeader)));
    assert_eq!(b.shared_since(SharedScope::Partition, last).unwrap().entries, []);
    b.write_shared(&one).unwrap();
}

#[test]
fn removals_are_deleted_when_all_nodes_have_applied_them() {
    let fixture = fixture(1);
    let (a, mut leading) = fixture.node("a");
    let (b, _following) = fixture.node("b");
    leading.claim(NodeId(1)).unwrap();
    let name = "users/ann".to_owned();
    a.write_shared(&[(name.clone(), value("{}"))]).unwrap();
    let removed = a.write_shared(&[(name.clone(), SharedContent::Removed)]).unwrap();
    while a.replication_state(removed) == ReplicationState::NoOtherNode {
        a.wait(Duration::from_millis(20));
    }
    assert_eq!(a.replication_state(removed), ReplicationState::Pending);
    a.forget_removed().unwrap();
    assert_eq!(b.shared_since(SharedScope::Partition, 0).unwrap().entries, [(name, SharedContent::Removed)]);
    b.set_shared(SharedScope::Partition, removed, None);
    while a.replication_state(removed) != ReplicationState::Replicated {
        a.wait(Duration::from_millis(20));
    }
    a.forget_removed().unwrap();
    assert_eq!(b.shared_since(SharedScope::Partition, 0).unwrap().entries, []);
}

#[test]
fn partitions_have_logs_of_their_own_and_share_what_partition_0_writes() {
    let fixture = fixture(1);
    let (zero, mut log_of_zero) = fixture.node("a");
    let partition = |name: &str, partition| {
        let options = ClusterOptions { partition, ..options(name, fixture.servers.endpoints()) };
        let cluster = fixture.join_with(options);
        let journal = cluster.journal(Seq(0));
        (cluster, journal)
    };
    let (one, mut log_of_one) = partition("a", 1);
    let (other, _) = partition("b", 1);
    assert_ne!(zero.number(), one.number(), "tables of one partition follow no other");
    assert_eq!(one.number(), other.number());
    let mut writer_of_zero = log_of_zero.claim(NodeId(1)).unwrap();
    let mut writer_of_one = log_of_one.claim(NodeId(2)).unwrap();
    append(&mut log_of_zero, &mut writer_of_zero, b"zero");
    append(&mut log_of_one, &mut writer_of_one, b"one");
    append(&mut log_of_zero, &mut writer_of_zero, b"zero again");
    assert_eq!(payloads(&mut log_of_one, Seq(2)), [b"one".to_vec()]);

    let name = "users/ann".to_owned();
    let revision = zero.write_shared(&[(name.clone(), value("{}"))]).unwrap();
    one.write_shared(&[("values/x".to_owned(), value("own"))]).unwrap();
    let read = |scope| other.shared_since(scope, 0).unwrap().entries;
    assert_eq!(read(SharedScope::Cluster), [(name.clone(), value("{}"))]);
    assert_eq!(read(SharedScope::Partition), [("values/x".to_owned(), value("own"))]);
    assert_eq!(zero.shared_since(SharedScope::Cluster, 0).unwrap().entries, [(name.clone(), value("{}"))]);

    // Each partition sees the other's leader, and reports the missing parts of both scopes.
    zero.set_role(ClusterRole::Leader);
    one.set_role(ClusterRole::Leader);
    let leaders = |cluster: &Cluster| -> Vec<(u8, String)> {
        let leaders = cluster.partition_leaders().into_iter();
        leaders.map(|leader| (leader.partition, leader.node)).collect()
    };
    while leaders(&zero).len() < 2 || leaders(&other).len() < 2 {
        zero.wait(Duration::from_millis(20));
    }
    assert_eq!(leaders(&zero), [(0, "a".to_owned()), (1, "a".to_owned())]);
    assert_eq!(
        zero.status().partitions.iter().map(|one| (one.partition, one.nodes)).collect::<Vec<_>>(),
        [(0, 1), (1, 2)]
    );
    assert!(other.lacks().is_some());
    other.set_shared(SharedScope::Partition, revision, None);
    assert!(other.lacks().is_some(), "what all share is not read yet");
    other.set_shared(SharedScope::Cluster, revision, None);
    assert_eq!(other.lacks(), None);

    // A removed name stays as a mark until the nodes of all partitions have seen it.
    let removed = zero.write_shared(&[(name.clone(), SharedContent::Removed)]).unwrap();
    zero.forget_removed().unwrap();
    assert_eq!(read(SharedScope::Cluster), [(name, SharedContent::Removed)]);
    one.set_shared(SharedScope::Cluster, removed, None);
    other.set_shared(SharedScope::Cluster, removed, None);
    while !read(SharedScope::Cluster).is_empty() {
        zero.wait(Duration::from_millis(20));
        zero.forget_removed().unwrap();
    }
}

#[test]
fn a_reader_waits_for_the_next_record() {
    let fixture = fixture(1);
    let (_a, mut leading) = fixture.node("a");
    let (_b, mut following) = fixture.node("b");
    let mut writer = leading.claim(NodeId(1)).unwrap();
    let reader =
        std::thread::spawn(move || following.read(Seq(2), QUOTA_OCTETS, Duration::from_secs(60)).unwrap());
    append(&mut leading, &mut writer, b"next");
    assert_eq!(reader.join().unwrap().len(), 1);
}

#[test]
fn of_two_claims_at_once_one_succeeds() {
    let fixture = fixture(1);
    let nodes: Vec<_> = ["a", "b", "c"].iter().map(|name| fixture.node(name).1).collect();
    let threads: Vec<_> = (0..)
        .zip(nodes)
        .map(|(number, mut journal)| {
            std::thread::spawn(move || {
                let mut claims = 0;
                for _ in 0..20 {
                    match journal.claim(NodeId(number)) {
                        Ok(mut writer) => {
                            claims += 1;
                            let done = journal.append(&mut writer, b"x");
                            assert!(matches!(done, Ok(_) | Err(JournalError::Fenced { .. })), "{done:?}");
                        }
                        Err(error) => assert!(matches!(error, JournalError::Fenced { .. }), "{error}"),
                    }
                }
                claims
            })
        })
        .collect();
    let claims: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let (_, mut reader) = fixture.node("reader");
    let tail = reader.follow(Seq(1), QUOTA_OCTETS).unwrap();
    assert_eq!(tail.head.unwrap().term.0, claims, "each claim that succeeded began a term");
}

#[test]
fn appends_whose_outcome_is_unknown_are_in_the_log_once() {
    let mut fixture = fixture(3);
    let (_cluster, mut journal) = fixture.node("a");
    let mut writer = journal.claim(NodeId(1)).unwrap();
    let (mut number, mut unknown) = (0_u64, Vec::new());
    let mut write = |journal: &mut EtcdJournal, count| {
        for _ in 0..count {
            number += 1;
            match journal.append(&mut writer, &number.to_le_bytes()) {
                Ok(_) => {}
                // On a busy machine, etcd's election takes longer than an append waits: the daemon would restart and claim.
                Err(JournalError::Unknown) => {
                    unknown.push(number);
                    writer = claim(journal);
                }
                Err(error) => panic!("{error}"),
            }
        }
    };
    for member in 0..3 {
        write(&mut journal, 20);
        // The member accepts requests and answers none; it may be etcd's leader.
        fixture.servers.pause(member, true).unwrap();
        write(&mut journal, 20);
        fixture.servers.pause(member, false).unwrap();
        write(&mut journal, 20);
        fixture.servers.kill(member);
        write(&mut journal, 20);
        fixture.servers.restart(member).unwrap();
    }
    let found = payloads(&mut journal, Seq(1));
    let found: Vec<_> =
        found.into_iter().map(|payload| u64::from_le_bytes(payload.try_into().unwrap())).collect();
    assert!(found.is_sorted_by(|a, b| a < b), "in order, and none twice: {found:?}");
    let missing: Vec<_> = (1..=number).filter(|number| !found.contains(number)).collect();
    assert!(
        missing.iter().all(|number| unknown.contains(number)),
        "{missing:?}, of these unknown: {unknown:?}"
    );
}

/// Claims until etcd answers.
fn claim(journal: &mut EtcdJournal) -> Writer {
    loop {
        match journal.claim(NodeId(1)) {
            Ok(writer) => return writer,
            Err(JournalError::Unknown | JournalError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn without_a_majority_nothing_is_written_and_the_lease_ends() {
    let mut fixture = fixture(3);
    let (_cluster, mut journal) = fixture.node("a");
    let mut writer = journal.claim(NodeId(1)).unwrap();
    append(&mut journal, &mut writer, b"durable");
    fixture.servers.kill(0);
    fixture.servers.kill(1);
    let unknown = journal.append(&mut writer, b"unknown").unwrap_err();
    assert!(matches!(unknown, JournalError::Unknown), "{unknown}");
    assert!(!journal.lease().holds());
}

#[test]
fn unresponsive_members_are_skipped() {
    let fixture = fixture(1);
    // The kernel accepts connections and no process reads: like a stopped member, or one behind a network partition.
    let silent = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let mut endpoints: Vec<_> =
        silent.iter().map(|silent| format!("http://{}", silent.local_addr().unwrap())).collect();
    endpoints.extend(fixture.servers.endpoints());
    let cluster = fixture.join_with(options("a", endpoints));
    let mut journal = cluster.journal(Seq(0));
    let mut writer = claim(&mut journal);
    append(&mut journal, &mut writer, b"one");
    assert_eq!(payloads(&mut journal, Seq(1)), [b"one"]);
}

#[test]
fn the_ring_keeps_what_a_live_node_lacks() {
    let fixture = fixture(1);
    let (a, mut leading) = fixture.node("a");
    let (b, mut following) = fixture.node("b");
    let mut writer = leading.claim(NodeId(1)).unwrap();
    let slots = leading.capacity().unwrap();
    while writer.last().0 < slots {
        append(&mut leading, &mut writer, b"x");
    }
    let (told, done) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        append(&mut leading, &mut writer, b"over the first");
        told.send(()).unwrap();
        (leading, writer)
    });
    assert!(done.recv_timeout(Duration::from_millis(700)).is_err(), "b lives and lacks the first record");
    assert_eq!(following.read(Seq(3), QUOTA_OCTETS, NONE).unwrap().first().unwrap().seq, Seq(3));
    b.set_applied(Seq(1));
    let (mut leading, mut writer) = thread.join().unwrap();
    assert!(!b.status().degraded);
    // Nobody waits for a node that is gone.
    drop((b, following));
    append(&mut leading, &mut writer, b"over the second");
    assert!(a.remove_node("b").unwrap());
    assert!(!a.remove_node("b").unwrap());
    assert!(a.status().nodes.iter().all(|node| node.name == "a"));
    let (_c, mut late) = fixture.node("c");
    let behind = late.read(Seq(1), QUOTA_OCTETS, NONE).unwrap_err();
    assert!(matches!(behind, JournalError::Behind { oldest } if oldest == Seq(4)), "{behind}");
    assert_eq!(late.read(Seq(4), QUOTA_OCTETS, NONE).unwrap().first().unwrap().seq, Seq(4));
}

#[test]
fn a_foreign_or_damaged_value_is_refused() {
    let fixture = fixture(1);
    let (_cluster, mut journal) = fixture.node("a");
    let mut writer = journal.claim(NodeId(1)).unwrap();
    append(&mut journal, &mut writer, b"one");
    fixture.servers.control(&["put", "/switchyard/ring/0002", "nonsense"]).unwrap();
    let damaged = journal.read(Seq(1), QUOTA_OCTETS, NONE).unwrap_err();
    assert!(damaged.to_string().contains("/switchyard/ring/0002"), "{damaged}");
    fixture.servers.control(&["del", "/switchyard/head"]).unwrap();
    let refused = journal.append(&mut writer, b"two").unwrap_err();
    assert!(refused.to_string().contains("something else"), "{refused}");
    fixture.servers.control(&["put", "/switchyard/id", "{\"format\":9}"]).unwrap();
    let handle = fixture.runtime.handle().clone();
    let other = Cluster::join(options("b", fixture.servers.endpoints()), "", VERSION, handle);
    let error = fixture.runtime.block_on(other).unwrap_err();
    assert!(error.to_string().contains("format 9"), "{error}");
}

#[test]
fn users_of_etcd_are_used() {
    let fixture = fixture(1);
    for command in [
        "user add root:secret",
        "user grant-role root root",
        "user add switchyard:hush",
        "role add switchyard",
        "role grant-permission switchyard --prefix=true readwrite /switchyard/",
        "user grant-role switchyard switchyard",
        "auth enable",
    ] {
        fixture.servers.control(&command.split(' ').collect::<Vec<_>>()).unwrap();
    }
    let with = |password: &str, prefix: &str| ClusterOptions {
        user: "switchyard".to_owned(),
        password: password.to_owned(),
        prefix: prefix.to_owned(),
        ..options("a", fixture.servers.endpoints())
    };
    let cluster = fixture.join_with(with("hush", "/switchyard"));
    let mut journal = cluster.journal(Seq(0));
    let mut writer = journal.claim(NodeId(1)).unwrap();
    append(&mut journal, &mut writer, b"one");
    // The permission is revoked while the leader works.
    let control = |words: &str| {
        let words: Vec<_> = ["--user", "root:secret"].into_iter().chain(words.split(' ')).collect();
        fixture.servers.control(&words).unwrap();
    };
    control("role revoke-permission switchyard --prefix=true /switchyard/");
    let refused = journal.append(&mut writer, b"two").unwrap_err();
    assert!(refused.to_string().contains("permission denied"), "{refused}");
    control("role grant-permission switchyard --prefix=true readwrite /switchyard/");
    append(&mut journal, &mut writer, b"two");
    for (password, prefix) in [("wrong", "/switchyard"), ("hush", "/other")] {
        let handle = fixture.runtime.handle().clone();
        let error =
            fixture.runtime.block_on(Cluster::join(with(password, prefix), "", VERSION, handle)).unwrap_err();
        assert!(!error.to_string().contains(password), "{error}");
    }
}

/// A certificate authority and a certificate for 127.0.0.1 that server and client share.
fn certificates(folder: &Path) -> EtcdTls {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    let tls = EtcdTls {
        ca: folder.join("ca.pem"),
        certificate: folder.join("etcd.pem"),
        key: folder.join("etcd.key"),
    };
    std::fs::write(&tls.ca, authority.pem()).unwrap();
    std::fs::write(&tls.certificate, leaf.pem()).unwrap();
    std::fs::write(&tls.key, key.serialize_pem()).unwrap();
    tls
}

#[test]
fn etcd_is_spoken_to_over_tls_with_a_client_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let tls = certificates(folder.path());
    let servers = EtcdServers::start(folder.path(), 1, Some(tls.clone())).unwrap();
    let fixture = ClusterFixture { runtime: Runtime::new().unwrap(), servers, folder };
    let endpoints = fixture.servers.endpoints();
    let with = |certificate, key| ClusterOptions {
        ca: Some(tls.ca.clone()),
        certificate,
        key,
        ..options("a", endpoints.clone())
    };
    let cluster = fixture.join_with(with(Some(tls.certificate.clone()), Some(tls.key.clone())));
    let mut journal = cluster.journal(Seq(7));
    let mut writer = journal.claim(NodeId(1)).unwrap();
    assert_eq!(append(&mut journal, &mut writer, b"one"), Seq(9), "the log begins after the tables");
    let handle = fixture.runtime.handle().clone();
    let error = fixture.runtime.block_on(Cluster::join(with(None, None), "", VERSION, handle)).unwrap_err();
    assert!(error.to_string().contains("etcd at https://127.0.0.1"), "{error}");
    assert!(fixture.folder.path().exists());
}

#[test]
fn only_the_leader_stores_positions_and_none_goes_back() {
    let fixture = fixture(1);
    let ((a, mut journal), (b, mut other)) = (fixture.node("a"), fixture.node("b"));
    let refused = |cluster: &Cluster, previous: Option<&[u8]>, next: &[u8]| {
        matches!(cluster.write_position("crm.cursor", previous, next), Err(ClusterError::NotLeader))
    };
    assert!(refused(&a, None, b"1"), "nobody leads yet");
    journal.claim(NodeId(1)).unwrap();
    assert_eq!(b.position("crm.cursor").unwrap(), None);
    a.write_position("crm.cursor", None, b"1").unwrap();
    a.write_position("crm.cursor", Some(b"1"), b"2").unwrap();
    // A repetition of the stored position, and a late request.
    a.write_position("crm.cursor", Some(b"1"), b"2").unwrap();
    assert!(refused(&a, None, b"1") && refused(&a, Some(b"1"), b"3"));
    other.claim(NodeId(2)).unwrap();
    assert!(refused(&a, Some(b"2"), b"3"), "it is replaced");
    assert_eq!(b.position("crm.cursor").unwrap().as_deref(), Some(&b"2"[..]));
    b.write_position("crm.cursor", Some(b"2"), b"3").unwrap();
    assert_eq!(a.position("crm.cursor").unwrap().as_deref(), Some(&b"3"[..]));
}

#[test]
fn both_nodes_have_the_same_copy_of_the_log() {
    let fixture = fixture(1);
    let ((a, mut leader), (_b, mut follower)) = (fixture.node("a"), fixture.node("b"));
    let hold = || Arc::new(JournalHold::new(Seq(0), 1 << 30));
    let folders = ["copy-a", "copy-b"].map(|name| fixture.folder.path().join(name));
    let copies = folders.each_ref().map(|folder| LogCopy::open(folder, a.number(), hold(), Seq(0)).unwrap());
    let readers = copies.each_ref().map(LogCopy::reader);
    let [first, second] = copies;
    leader.set_copy(Some(first));
    let mut writer = leader.claim(NodeId(1)).unwrap();
    // As at a start: the claim comes with the records that the tables lack.
    leader.read(Seq(1), QUOTA_OCTETS, NONE).unwrap();
    for number in 0..20_u8 {
        append(&mut leader, &mut writer, &[number; 100]);
    }
    follower.set_copy(Some(second));
    assert_eq!(follower.follow(Seq(1), QUOTA_OCTETS).unwrap().records.len(), 21);
    assert_eq!((leader.copied(), follower.copied()), (Some(Seq(21)), Some(Seq(21))));
    let found = readers.map(|mut reader| {
        let mut found = Vec::new();
        while found.len() < 21 {
            let from = Seq(1 + found.len() as u64);
            found.extend(reader.read(from, QUOTA_OCTETS, Duration::from_secs(10)).unwrap());
        }
        found
    });
    assert_eq!(found[0], found[1]);
}

fn until(fixture: &ClusterFixture, what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        fixture.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(20)).await });
    }
}

#[test]
fn the_leader_writes_what_all_known_nodes_read() {
    let fixture = fixture(1);
    let join = |name: &str, oldest, newest| {
        let formats = RecordFormats { oldest, newest };
        let options = options(name, fixture.servers.endpoints());
        let joined = Cluster::join(options, "", ("2", formats), fixture.runtime.handle().clone());
        fixture.runtime.block_on(joined).unwrap()
    };
    let a = join("a", 1, 3);
    let mut leading = a.journal(Seq(0));
    let mut writer = leading.claim(NodeId(1)).unwrap();
    assert_eq!(leading.payload_format(), Some(3));
    let b = join("b", 1, 2);
    until(&fixture, "b is known", || leading.payload_format() == Some(2));
    // A node of an older version whose record does not name its formats; it is dead.
    let older = "{\"role\":\"follower\",\"address\":\"\",\"version\":\"1\",\"applied\":0,\"renewal\":1}";
    fixture.servers.control(&["put", "/switchyard/node/c", older]).unwrap();
    until(&fixture, "c is known", || leading.payload_format() == Some(1));
    until(&fixture, "b knows it, too", || b.status().format == 1);
    let formats: Vec<_> = a.status().nodes.iter().map(|node| node.formats.newest).collect();
    assert_eq!(formats, [3, 2, 1]);
    assert!(a.remove_node("c").unwrap());
    assert_eq!(leading.payload_format(), Some(2));
    append(&mut leading, &mut writer, b"one");
}

#[test]
fn a_node_that_cannot_read_the_log_says_so_and_is_not_waited_for() {
    let fixture = fixture(1);
    let small = |node| ClusterOptions { slots: 16, ..options(node, fixture.servers.endpoints()) };
    let a = fixture.join_with(small("a"));
    let mut leading = a.journal(Seq(0));
    let mut writer = leading.claim(NodeId(1)).unwrap();
    let b = fixture.join_with(small("b"));
    b.set_shared(SharedScope::Partition, 1, None);
    let said = |what: Option<&str>| {
        until(&fixture, "b has said it", || {
            let nodes = a.status().nodes;
            nodes.iter().any(|node| node.name == "b" && node.lacks.as_deref() == what)
        });
    };
    said(None);
    b.set_unreadable(Some("the records from 2 on".to_owned()));
    assert_eq!(b.lacks().as_deref(), Some("the records from 2 on"));
    said(Some("the records from 2 on"));
    // More than the ring holds: the leader would wait for a follower.
    for _ in 0..40 {
        append(&mut leading, &mut writer, b"one");
    }
    assert!(a.status().degraded);
    b.set_unreadable(None);
    said(None);
}

#[test]
fn a_record_in_an_encoding_of_a_newer_version_is_no_damage() {
    let fixture = fixture(1);
    let (_cluster, mut journal) = fixture.node("a");
    let mut writer = journal.claim(NodeId(1)).unwrap();
    append(&mut journal, &mut writer, b"one");
    let endpoint = fixture.servers.endpoints().remove(0);
    let put = format!(
        "printf '\\007\\002\\000\\000\\000xy' | etcdctl --endpoints {endpoint} put /switchyard/ring/0002"
    );
    let mut shell = std::process::Command::new("sh");
    assert!(shell.env("ETCDCTL_API", "3").args(["-c", &put]).status().unwrap().success());
    // The records before it are read.
    let tail = journal.follow(Seq(1), QUOTA_OCTETS).unwrap();
    assert_eq!(tail.records.len(), 1);
    let error = journal.follow(Seq(2), QUOTA_OCTETS).unwrap_err();
    assert!(matches!(error, JournalError::UnknownContent { .. }), "{error}");
    assert!(error.to_string().contains("the unknown encoding 7"), "{error}");
}

#[test]
fn a_log_that_begins_after_an_appliance_s_records_has_none_of_them() {
    let fixture = fixture(1);
    let a = fixture.join_with(options("a", fixture.servers.endpoints()));
    let mut leading = a.journal(Seq(20));
    let mut writer = leading.claim(NodeId(1)).unwrap();
    assert_eq!(append(&mut leading, &mut writer, b"one"), Seq(22));
    let (_b, mut following) = fixture.node("b");
    // Fewer records than the ring has slots, but they were never written.
    let behind = following.follow(Seq(1), QUOTA_OCTETS).unwrap_err();
    assert!(matches!(behind, JournalError::Behind { oldest: Seq(21) }), "{behind}");
    assert_eq!(payloads(&mut following, Seq(21)), [b"one".to_vec()]);
}
