//! Clients whose account has its pools in another partition of a cluster. Two servers are the leaders.

use crate::fixture::{Fixture, PASSWORD, RedisTestClient, wait_until};
use crate::redis_server::account;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use pools::{RedisOptions, RedisPermissions, RedisServer};
use ports::{LoginInterface, PassOn, PassedApi, PassedConnection, PassedInterface, Passing, Socket};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Partition 0, beside partition 1 with the account `far` and the pool `p`.
#[derive(Debug)]
struct Neighbours {
    leader: Leader,
    connections: AtomicUsize,
}

/// The leader of partition 1.
enum Leader {
    None,
    Silent,
    Serves(Arc<RedisServer>),
}

impl std::fmt::Debug for Leader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Leader")
    }
}

impl PassOn for Neighbours {
    fn partition(&self) -> u8 {
        0
    }

    fn other_partitions(&self) -> Vec<u8> {
        vec![1]
    }

    fn elsewhere(&self, interface: LoginInterface, name: &[u8]) -> Option<u8> {
        (interface == LoginInterface::Redis && name == b"far").then_some(1)
    }

    fn pool_elsewhere(&self, pool: &str) -> Option<u8> {
        (pool == "p").then_some(1)
    }

    fn callbacks_elsewhere(&self, _: &str) -> Option<u8> {
        None
    }

    fn leader(&self, _: u8) -> Option<String> {
        matches!(self.leader, Leader::Serves(_)).then(|| "b (http://b)".to_owned())
    }

    fn connect(&self, partition: u8, connection: PassedConnection) -> Passing<Socket> {
        assert_eq!((partition, connection.interface), (1, PassedInterface::Login(LoginInterface::Redis)));
        self.connections.fetch_add(1, Relaxed);
        let (near, far) = tokio::io::duplex(64);
        let taken = match &self.leader {
            Leader::None => Err(io::Error::other("no node leads the partition at the moment")),
            Leader::Silent => {
                // It stays open, and nobody reads it.
                std::mem::forget(far);
                Ok(())
            }
            Leader::Serves(server) => {
                server.accept_passed(Socket::Passed(Box::new(far)), &connection).map_err(io::Error::other)
            }
        };
        Box::pin(async move { taken.map(|()| Socket::Passed(Box::new(near))) })
    }

    fn request(&self, _: u8, _: PassedApi, _: SocketAddr, _: Request<Bytes>) -> Passing<Response<Body>> {
        Box::pin(async { Err(io::Error::other("no request is passed on")) })
    }
}

fn options() -> RedisOptions {
    let accounts = ["far", "near"].map(|name| account(name, &["*"], RedisPermissions::ALL)).into();
    RedisOptions { accounts, ..RedisOptions::default() }
}

/// The leader of partition 0 with these options.
fn entrance(options: RedisOptions, leader: Leader) -> (Fixture, Arc<Neighbours>) {
    let fixture = Fixture::open(options);
    let neighbours = Arc::new(Neighbours { leader, connections: AtomicUsize::new(0) });
    fixture.registry.set_pass_on(neighbours.clone());
    (fixture, neighbours)
}

fn answers<const N: usize>(client: &mut RedisTestClient) -> [String; N] {
    std::array::from_fn(|_| client.answer())
}

#[test]
fn requests_after_a_login_go_to_the_leader_in_order() {
    let there = Fixture::open(options());
    let (here, neighbours) = entrance(options(), Leader::Serves(there.server.clone()));
    let mut client = here.client();
    let numbers: Vec<String> = (100..1100).map(|number| number.to_string()).collect();
    let numbers = numbers.join(" ");
    client.send(&[
        "POOL.LIST",
        &format!("AUTH far {PASSWORD}"),
        &format!("POOL.ADD p {numbers}"),
        &format!("POOL.REG p {numbers}"),
        "POOL.CALL p",
        "POOL.LIST",
    ]);
    let expected = ["-NOAUTH Authentication required.", "OK", "1000", "1000", "100", "[p]"];
    assert_eq!(answers(&mut client), expected);
    assert_eq!(client.ask("LRANGE {p}:idle:up 0 -1").len(), numbers.len() - "100 ".len() + "[]".len());
    assert_eq!((here.server.state().open, there.server.state().open), (1, 1));
    // A half-closed client gets its answers, and both ends are closed.
    client.send(&["POOL.HANGUP p 100"]);
    client.close_sending();
    assert_eq!(client.until_closed(), b":1\r\n");
    wait_until(|| here.server.state().open == 0 && there.server.state().open == 0);
    // HELLO logs in, too.
    let mut client = here.client();
    client.send(&[&format!("HELLO 3 AUTH far {PASSWORD} SETNAME crm"), "CLIENT GETNAME"]);
    assert!(client.answer().starts_with("[server switchyard version "));
    assert_eq!(client.answer(), "crm");
    assert_eq!(neighbours.connections.load(Relaxed), 2);
}

#[test]
fn a_login_that_the_leader_refuses_is_answered_and_can_be_repeated() {
    let there = Fixture::open(options());
    let (here, _) = entrance(options(), Leader::Serves(there.server.clone()));
    let mut client = here.client();
    client.send(&["AUTH far wrong", "POOL.LIST", &format!("AUTH far {PASSWORD}"), "POOL.ADD p 1"]);
    let [wrong, refused, accepted, added] = answers(&mut client);
    assert_eq!(wrong, "-WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!([refused, accepted, added], ["-NOAUTH Authentication required.", "OK", "1"]);
    assert_eq!((here.server.state().wrong_passwords, there.server.state().wrong_passwords), (0, 1));
}

#[test]
fn a_pool_of_another_partition_is_named_with_its_leader() {
    let there = Fixture::open(options());
    let (here, neighbours) = entrance(options(), Leader::Serves(there.server.clone()));
    let mut client = here.client();
    assert_eq!(client.ask(&format!("AUTH near {PASSWORD}")), "OK");
    let elsewhere = "-ERR the pool p is in partition 1 of the cluster, led by b (http://b): use an account whose pools are all in that \
                     partition, or connect to the Redis listener there";
    for command in ["POOL.ADD p 1", "POOL.CREATE p", "HGETALL {p}:numstate", "POOL.REMOVE p"] {
        assert_eq!(client.ask(command), elsewhere, "{command}");
    }
    client.send(&["MULTI", "POOL.ADD q 1", "POOL.CALL p", "EXEC"]);
    let [_, _, _, both] = answers(&mut client);
    assert_eq!(both, format!("[1 {elsewhere}]"));
    // A client that is logged in stays.
    assert_eq!(client.ask(&format!("AUTH far {PASSWORD}")), "OK");
    assert_eq!(client.ask("POOL.LIST"), "[q]");
    assert_eq!(neighbours.connections.load(Relaxed), 0);
    // After a RESET it is a new one.
    client.send(&["RESET", &format!("AUTH far {PASSWORD}"), "POOL.LIST"]);
    assert_eq!(answers(&mut client), ["RESET", "OK", "[]"]);
    assert_eq!(neighbours.connections.load(Relaxed), 1);
}

#[test]
fn without_a_leader_a_client_is_told_to_try_again() {
    let (here, _) = entrance(options(), Leader::None);
    let mut client = here.client();
    let login = format!("AUTH far {PASSWORD}");
    for _ in 0..2 {
        let answer = client.ask(&login);
        assert!(answer.starts_with("-TRYAGAIN the leader of partition 1"), "{answer}");
    }
    assert_eq!(client.ask(&format!("AUTH near {PASSWORD}")), "OK");
    let answer = client.ask("POOL.CALL p");
    assert!(answer.contains("which has no leader at the moment"), "{answer}");
}

#[test]
fn a_client_waits_for_a_silent_leader_no_longer_than_for_a_login() {
    let options = RedisOptions { login_timeout: Duration::from_millis(50), ..options() };
    let (here, _) = entrance(options, Leader::Silent);
    let mut client = here.client();
    client.send(&[&format!("AUTH far {PASSWORD}")]);
    let answer = String::from_utf8(client.until_closed()).unwrap();
    assert!(answer.starts_with("-TRYAGAIN the leader of partition 1") || answer.is_empty(), "{answer}");
}

#[test]
fn a_passed_on_client_counts_at_both_leaders() {
    let there = Fixture::open(RedisOptions { connections_per_address: 1, ..options() });
    let (here, _) = entrance(
        RedisOptions { unauthenticated_connections: 1, ..options() },
        Leader::Serves(there.server.clone()),
    );
    let login = format!("AUTH far {PASSWORD}");
    let mut first = here.client();
    assert_eq!(first.ask(&login), "OK");
    // The leader counts it for the address of the client.
    let answer = here.client().ask(&login);
    assert!(answer.starts_with("-TRYAGAIN"), "{answer}");
    assert_eq!(there.client().until_closed(), b"-ERR max number of clients reached\r\n");
    // It is logged in here, too: clients that are not displace each other only.
    let _others: Vec<_> = (0..3).map(|_| here.client()).collect();
    wait_until(|| here.server.state().turned_away > 0);
    assert_eq!(first.ask("PING"), "PONG");
}
