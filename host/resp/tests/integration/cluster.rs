//! `CLUSTER` commands of client libraries, and HTTP requests.

use crate::client::{self, Client};
use resp::{ClusterNode, RespLimits, RespOptions, RespReply, RespRequest, Scripts, Session};
use std::sync::Arc;

fn client() -> Client {
    let scripts = Arc::new(Scripts::new([], false));
    let options = RespOptions {
        limits: RespLimits::default(),
        accounts: false,
        scripts,
        plain_replies: false,
        version: "7.2.0".into(),
    };
    let node = ClusterNode { host: "10.0.0.5".into(), port: 6379 };
    Client { session: Session::new(Arc::new(options), 1).with_node(node) }
}

fn ask(client: &mut Client, line: &str) -> String {
    client.session.receive(format!("{line}\r\n").as_bytes());
    client.read()
}

#[test]
fn one_node_owns_all_slots() {
    let mut client = client();
    let id = ask(&mut client, "CLUSTER MYID").lines().nth(1).unwrap().to_owned();
    assert_eq!(id.len(), 40);
    assert_eq!(
        ask(&mut client, "cluster slots"),
        format!("*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$8\r\n10.0.0.5\r\n:6379\r\n$40\r\n{id}\r\n*0\r\n")
    );
    let nodes = ask(&mut client, "CLUSTER NODES");
    assert!(nodes.contains(&format!("{id} 10.0.0.5:6379@0 myself,master - 0 0 1 connected 0-16383\n")));
    let shards = ask(&mut client, "CLUSTER SHARDS");
    assert!(shards.contains("$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n") && shards.contains(&id), "{shards}");
    assert!(ask(&mut client, "CLUSTER INFO").contains("cluster_state:ok\r\n"));
    for line in ["READONLY", "READWRITE", "ASKING"] {
        assert_eq!(ask(&mut client, line), "+OK\r\n");
    }
    assert_eq!(ask(&mut client, "CLUSTER MEET 1 2"), "-ERR unknown subcommand 'MEET'. Try CLUSTER HELP.\r\n");
    assert!(ask(&mut client, "CLUSTER KEYSLOT").starts_with("-ERR wrong number of arguments"));
}

#[test]
fn key_slot_uses_the_hash_tag() {
    let mut client = client();
    // The example of the Redis Cluster specification, and the same with a hash tag.
    assert_eq!(ask(&mut client, "CLUSTER KEYSLOT 123456789"), ":12739\r\n");
    assert_eq!(ask(&mut client, "CLUSTER KEYSLOT {123456789}:numstate"), ":12739\r\n");
    assert_eq!(RespRequest::slot_of(&client::pool("123456789")), 12739);
    client.session.receive(b"CLUSTER COUNTKEYSINSLOT 12739\r\n");
    let (ticket, request) = client.request();
    assert_eq!(request, RespRequest::KeysInSlot(12739));
    client.session.answer(ticket, &RespReply::Integer(2));
    assert_eq!(client.read(), ":2\r\n");
    assert_eq!(ask(&mut client, "CLUSTER COUNTKEYSINSLOT 16384"), "-ERR Invalid slot\r\n");
}

#[test]
fn http_request_closes_the_connection() {
    for request in [
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n\r\nPOOL.CALL p\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\n\r\nPOOL.CALL p\r\n",
    ] {
        let mut client = client();
        client.session.receive(request.as_bytes());
        assert!(client.session.is_http() && client.session.is_finished());
        assert_eq!(client.session.poll_event(), None);
        client.session.receive(b"POOL.CALL p\r\n");
        assert_eq!(client.session.poll_event(), None);
    }
}

#[test]
fn transaction_size_counts_each_word() {
    let mut client = client();
    // 4,000 commands of ten one-octet words: 40,000 octets sent, about 20 times as many in memory.
    assert_eq!(ask(&mut client, "MULTI"), "+OK\r\n");
    let line = format!("POOL.DEL p{}\r\n", " 1".repeat(8));
    client.session.receive(line.repeat(4000).as_bytes());
    let reply_to = client.read();
    assert!(
        reply_to.starts_with("+QUEUED") && reply_to.contains("-ERR the transaction exceeds the limits\r\n")
    );
    assert!(ask(&mut client, "EXEC").starts_with("-EXECABORT"));
}
