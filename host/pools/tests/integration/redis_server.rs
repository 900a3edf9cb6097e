//! Tests of the Redis server over sockets.

use crate::fixture::{Fixture, HASH, PASSWORD, SUM, wait_until};
use pools::{RedisAccountOptions, RedisOptions, RedisPermissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// The legacy JSON states.
const IDLE_UP: &str = r#"{"callstate":0,"regstate":1}"#;
const IDLE_DOWN: &str = r#"{"callstate":0,"regstate":0}"#;
const BUSY_UP: &str = r#"{"callstate":1,"regstate":1}"#;

fn open() -> Fixture {
    Fixture::open(RedisOptions::default())
}

pub(crate) fn account(name: &str, pools: &[&str], permissions: RedisPermissions) -> RedisAccountOptions {
    RedisAccountOptions {
        name: name.to_owned(),
        password_hash: HASH.to_owned(),
        pools: pools.iter().map(ToString::to_string).collect(),
        permissions,
        networks: Vec::new(),
    }
}

#[test]
fn legacy_script_calls() {
    let fixture = open();
    for hello in ["HELLO 2", "HELLO 3"] {
        let mut client = fixture.client();
        client.ask(hello);
        let mut script = |event: &str| client.ask(&format!("EVALSHA {SUM} 1 {{sales}} {event}"));
        assert_eq!(script("call"), "nil");
        assert_eq!(script("add 123456"), "1");
        assert_eq!(script("call"), "nil", "it is down");
        assert_eq!(script("reg 123456"), "1");
        assert_eq!(script("call"), "123456");
        assert_eq!(script("call 123456"), "nil", "it is busy");
        assert_eq!(script("hangup 123456"), "1");
        assert_eq!(script("hangup 123456"), "0");
        assert_eq!(client.ask("HGET {sales}:numstate 123456"), IDLE_UP);
        assert_eq!(client.ask("LRANGE {sales}:idle:up 0 -1"), "[123456]");
        let mut script = |event: &str| client.ask(&format!("EVALSHA {SUM} 1 {{sales}} {event}"));
        assert_eq!(script("call 123456"), "123456");
        assert_eq!(script("unreg 123456"), "1");
        assert_eq!(script("del 123456"), "1");
        assert_eq!(script("reg 123456"), "0");
        assert_eq!(client.ask("HGET {sales}:numstate 123456"), "nil");
    }
}

#[test]
fn pipelined_answers_keep_their_order() {
    let fixture = open();
    let mut client = fixture.client();
    let mut lines = vec![
        "POOL.ADD p 1 2 3".to_owned(),
        "POOL.REG p 1 2 3".to_owned(),
        "PING".to_owned(),
        "POOL.ADD q 9".to_owned(),
        "NOTHING".to_owned(),
    ];
    lines.extend((0..4).map(|_| "POOL.CALL p".to_owned()));
    lines.extend(["ECHO x".to_owned(), "POOL.HANGUP p 2".to_owned(), "POOL.CALL p TICKET".to_owned()]);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    client.send(&lines);
    let answers: Vec<String> = lines.iter().map(|_| client.answer()).collect();
    assert_eq!(
        answers,
        [
            "3",
            "3",
            "PONG",
            "1",
            "-ERR unknown command 'NOTHING', with args beginning with: ",
            "1",
            "2",
            "3",
            "-NONUMBER all numbers of the pool that are up are busy; no lease has an end",
            "x",
            "1",
            answers[11].as_str(),
        ]
    );
    assert!(answers[11].starts_with("[2 "), "{}", answers[11]);
}

#[test]
fn lease_ticket_is_valid_for_its_number_only() {
    let fixture = open();
    let mut client = fixture.client();
    client.send(&["POOL.ADD p 1", "POOL.REG p 1", "POOL.CALL p TICKET HOLDER ann REASON sale LEASE 60000"]);
    let answers = [client.answer(), client.answer(), client.answer()];
    let ticket = answers[2].trim_matches(['[', ']']).split_once(' ').unwrap().1.to_owned();
    let other = format!("{ticket}9");
    let refused = "-FAIL the number is leased under another ticket: this lease has expired";
    assert_eq!(client.ask(&format!("POOL.RENEW p 1 500 TICKET {other}")), refused);
    assert_eq!(client.ask(&format!("POOL.RENEW p 1 PERSIST TICKET {ticket}")), "1");
    let shown = client.ask("POOL.SHOW p 1");
    let expected = format!(
        "[number 1 state busy+up since_ms 1700000000000 holder ann reason sale ticket {ticket} lease_left_ms nil \
         rest_left_ms nil message nil weight 1 calls 1 held_s 0 lapsed 0]"
    );
    assert_eq!(shown, expected);
    assert_eq!(client.ask(&format!("POOL.HANGUP p 1 TICKET {other}")), refused);
    assert_eq!(client.ask(&format!("POOL.HANGUP p 1 TICKET {ticket}")), "1");
    assert_eq!(client.ask("POOL.SHOW p 2"), "nil");
    assert_eq!(client.ask("POOL.HANGUP p 2"), "-FAIL the number is not in the pool: add it first");
}

#[test]
fn pools_are_created_changed_shown_and_removed() {
    let fixture = open();
    let mut client = fixture.client();
    assert_eq!(client.ask("POOL.SHOW p"), "nil");
    assert_eq!(client.ask("POOL.CREATE p STRATEGY sticky"), "OK");
    assert_eq!(client.ask("POOL.CREATE p QUARANTINE 5000"), "OK");
    // The answer keeps its position after a request that takes two steps.
    client.send(&["POOL.CREATE p STRATEGY nearest", "POOL.ADD p 1", "POOL.SHOW p"]);
    assert_eq!([client.answer(), client.answer()], ["OK", "1"]);
    assert_eq!(
        client.answer(),
        "[name p strategy nearest quarantine_ms 5000 numbers 1 idle+up 0 idle+down 1 busy+up 0 busy+down 0 ready 0 \
         next_ms nil entries 1 given 0 none 0 lapsed 0]"
    );
    assert_eq!(client.ask("POOL.CREATE q STRATEGY random QUARANTINE 0"), "OK");
    assert_eq!(client.ask("POOL.LIST"), "[p q]");
    assert_eq!([client.ask("HLEN {p}:numstate"), client.ask("LLEN {p}:idle:up")], ["1", "0"]);
    assert_eq!(client.ask("POOL.REMOVE q"), "1");
    assert_eq!(client.ask("POOL.REMOVE q"), "0");
    assert_eq!(
        client.ask("POOL.REMOVE p"),
        "-FAIL the pool has numbers: FORCE removes them, even if they are leased"
    );
    assert_eq!(client.ask("POOL.REMOVE p FORCE"), "1");
    assert_eq!(client.ask("POOL.LIST"), "[]");
    assert_eq!([client.ask("HLEN {p}:numstate"), client.ask("LLEN {p}:idle:up")], ["0", "0"]);
    assert_eq!([client.ask("HGETALL {p}:numstate"), client.ask("LRANGE {p}:idle:up 0 9")], ["[]", "[]"]);
}

#[test]
fn large_pool_is_read_completely_before_later_requests() {
    const MOST: usize = 45_000;
    let fixture = open();
    let mut client = fixture.client();
    let numbers: Vec<String> = (0..MOST).map(|number| (1_000_000 + number).to_string()).collect();
    for part in numbers.chunks(1000) {
        assert_eq!(client.ask(&format!("POOL.ADD p {}", part.join(" "))), part.len().to_string());
    }
    client.send(&[
        "HGETALL {p}:numstate",
        "POOL.DEL p 1000000",
        "HGET {p}:numstate 1000000",
        "HLEN {p}:numstate",
    ]);
    let all = client.answer();
    let mut words: Vec<&str> = all.trim_matches(['[', ']']).split(' ').collect();
    assert_eq!(words.len(), 2 * MOST);
    assert!(words.iter().skip(1).step_by(2).all(|state| *state == IDLE_DOWN));
    words.retain(|word| *word != IDLE_DOWN);
    words.sort_unstable();
    assert!(words.iter().zip(&numbers).all(|(found, number)| found == number));
    assert_eq!([client.answer(), client.answer(), client.answer()], ["1", "nil", "44999"]);
}

#[test]
fn lrange_indexes_match_redis() {
    let fixture = open();
    let mut client = fixture.client();
    client.ask("POOL.ADD p 0 1 2 3 4");
    client.ask("POOL.REG p 0 1 2 3 4");
    for start in -7_i64..8 {
        for stop in -7_i64..8 {
            let position = |at: i64| if at < 0 { at + 5 } else { at };
            let (first, last) = (position(start).max(0), position(stop).min(4));
            let expected: Vec<String> = (first..=last).map(|number| number.to_string()).collect();
            let found = client.ask(&format!("LRANGE {{p}}:idle:up {start} {stop}"));
            assert_eq!(found, format!("[{}]", expected.join(" ")), "{start} {stop}");
        }
    }
    let widest = format!("LRANGE {{p}}:idle:up {} {}", i64::MIN, i64::MAX);
    assert_eq!(client.ask(&widest), "[0 1 2 3 4]");
}

#[test]
fn info_shows_the_server_and_the_pools() {
    let fixture = open();
    let mut client = fixture.client();
    client.ask("POOL.ADD p:1 7");
    let all = client.ask("INFO");
    let port = fixture.address.port();
    for line in [
        "# Server",
        "redis_version:7.2.0",
        &format!("tcp_port:{port}"),
        "# Clients",
        "connected_clients:1",
        "# Stats",
        "total_commands_processed:2",
        "# Pools",
        "pools:1",
        "numbers:1",
        "pool0:numbers=1,idle_up=0,idle_down=1,busy_up=0,busy_down=0,ready=0,name=p:1",
    ] {
        assert!(all.contains(&format!("{line}\r\n")), "{line} in {all}");
    }
    let one = client.ask("INFO clients");
    assert!(one.starts_with("# Clients") && !one.contains("# Server"), "{one}");
}

#[test]
fn account_permissions_and_pool_patterns_are_enforced() {
    let (read, lease) = (
        RedisPermissions { read: true, ..RedisPermissions::default() },
        RedisPermissions { lease: true, ..RedisPermissions::default() },
    );
    let accounts = vec![
        account("default", &["*"], RedisPermissions::ALL),
        account("ann", &["support*"], RedisPermissions { read: true, lease: true, manage: false }),
        account("caller", &["*"], lease),
        account("viewer", &["support*"], read),
    ];
    let fixture = Fixture::open(RedisOptions { accounts, ..RedisOptions::default() });
    let mut client = fixture.client();
    assert_eq!(client.ask("POOL.LIST"), "-NOAUTH Authentication required.");
    assert_eq!(client.ask("AUTH wrong"), "-WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(
        client.ask("AUTH nobody secret"),
        "-WRONGPASS invalid username-password pair or user is disabled."
    );
    assert_eq!(client.ask("POOL.LIST"), "-NOAUTH Authentication required.");
    assert_eq!(client.ask(&format!("AUTH {PASSWORD}")), "OK");
    client.send(&["POOL.ADD support-1 1 2", "POOL.REG support-1 1 2", "POOL.ADD sales 3", "POOL.LIST"]);
    let answers: Vec<String> = (0..4).map(|_| client.answer()).collect();
    assert_eq!(answers, ["2", "2", "1", "[sales support-1]"]);

    // Requests after a login belong to the new account.
    client.send(&[
        &format!("HELLO 3 AUTH ann {PASSWORD}"),
        "POOL.CALL support-1",
        "POOL.CALL sales",
        "POOL.ADD sales 4",
    ]);
    assert!(client.answer().starts_with("[server switchyard "));
    assert_eq!(client.answer(), "1");
    assert_eq!(client.answer(), "-NOPERM No permissions to access a key");
    assert_eq!(client.answer(), "-NOPERM User ann has no permissions to run the 'pool.add' command");
    assert_eq!(client.ask("POOL.LIST"), "[support-1]");
    let shown = client.ask(&format!("EVALSHA {SUM} 1 {{support-1}} reg 1"));
    assert_eq!(shown, "-NOPERM User ann has no permissions to run the 'evalsha' command");

    let mut caller = fixture.client();
    caller.ask(&format!("AUTH caller {PASSWORD}"));
    assert_eq!(caller.ask("POOL.CALL support-1"), "2");
    assert_eq!(
        caller.ask("HGET {support-1}:numstate 2"),
        "-NOPERM User caller has no permissions to run the 'hget' command"
    );
    assert_eq!(caller.ask("POOL.LIST"), "[]");
    assert!(caller.ask("INFO").contains("pools:0\r\n"));

    let mut viewer = fixture.client();
    viewer.ask(&format!("AUTH viewer {PASSWORD}"));
    assert_eq!(viewer.ask("HGET {support-1}:numstate 2"), BUSY_UP);
    assert_eq!(
        viewer.ask("POOL.HANGUP support-1 2"),
        "-NOPERM User viewer has no permissions to run the 'pool.hangup' command"
    );
    // A wrong password changes nothing; RESET logs out.
    assert!(viewer.ask("AUTH ann wrong").starts_with("-WRONGPASS"));
    assert_eq!(viewer.ask("HGET {support-1}:numstate 2"), BUSY_UP);
    assert_eq!(viewer.ask("RESET"), "RESET");
    assert_eq!(viewer.ask("HGET {support-1}:numstate 2"), "-NOAUTH Authentication required.");
    let state = fixture.server.state();
    assert_eq!((state.open, state.wrong_passwords, state.denied), (3, 3, 5));
}

#[test]
fn account_networks_are_enforced() {
    let elsewhere = RedisAccountOptions {
        networks: vec!["192.0.2.0/24".parse().unwrap()],
        ..account("a", &["*"], RedisPermissions::ALL)
    };
    let here = RedisAccountOptions {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..account("b", &["*"], RedisPermissions::ALL)
    };
    let fixture = Fixture::open(RedisOptions { accounts: vec![elsewhere, here], ..RedisOptions::default() });
    let mut client = fixture.client();
    assert!(client.ask(&format!("AUTH a {PASSWORD}")).starts_with("-WRONGPASS"));
    assert_eq!(client.ask(&format!("AUTH b {PASSWORD}")), "OK");
}

#[test]
fn auth_without_configured_accounts() {
    let fixture = open();
    let mut client = fixture.client();
    assert!(client.ask("AUTH x").starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(client.ask("AUTH default x"), "OK");
    assert!(client.ask("AUTH ann x").starts_with("-WRONGPASS"));
    assert_eq!(client.ask("POOL.ADD p 1"), "1");
}

#[test]
fn wrong_passwords_lock_only_that_account() {
    let accounts = vec![
        account("default", &["*"], RedisPermissions::ALL),
        account("other", &["*"], RedisPermissions::ALL),
    ];
    let options = RedisOptions { accounts, ..RedisOptions::default() };
    let limits = ports::LoginLimits { account: 2, ..ports::LoginLimits::default() };
    let fixture = Fixture::limited(options, Arc::new(ports::LoginLimiter::new(limits)));
    let mut client = fixture.client();
    for password in ["x", "y", PASSWORD] {
        assert!(client.ask(&format!("AUTH {password}")).starts_with("-WRONGPASS"), "{password}");
    }
    assert_eq!(client.ask(&format!("AUTH other {PASSWORD}")), "OK");
}

#[test]
fn requests_of_a_disconnected_client_are_completed() {
    let fixture = open();
    let mut other = fixture.client();
    other.ask("POOL.ADD p 1 2");
    fixture.engine.hold();
    let mut client = fixture.client();
    // The later requests wait for the request of several steps.
    client.send(&["POOL.REG p 1", "HGETALL {p}:numstate", "POOL.REG p 2"]);
    fixture.engine.wait_for_answers(2);
    drop(client);
    fixture.engine.release();
    wait_until(|| fixture.server.state().open == 1);
    assert_eq!(other.ask("LRANGE {p}:idle:up 0 -1"), "[1 2]");
    assert_eq!(fixture.registry.len(), 1);
}

#[test]
fn half_closed_client_receives_its_answers() {
    let fixture = open();
    let mut client = fixture.client();
    client.send(&["POOL.ADD p 1", "HGETALL {p}:numstate", "POOL.LIST"]);
    client.close_sending();
    let wanted = format!(":1\r\n*2\r\n$1\r\n1\r\n${}\r\n{IDLE_DOWN}\r\n*1\r\n$1\r\np\r\n", IDLE_DOWN.len());
    assert_eq!(client.until_closed(), wanted.as_bytes());
}

#[test]
fn shutdown_answers_pending_requests() {
    let fixture = open();
    let mut client = fixture.client();
    let mut idle = fixture.client();
    assert_eq!(idle.ask("PING"), "PONG");
    fixture.engine.hold();
    client.send(&["POOL.ADD p 1", "POOL.REG p 1"]);
    fixture.engine.wait_for_answers(1);
    let server = fixture.server.clone();
    let stopping = fixture.runtime.spawn(async move { server.shutdown(Duration::from_secs(30)).await });
    assert_eq!(idle.until_closed(), b"");
    fixture.engine.release();
    assert!(client.until_closed().starts_with(b":1\r\n"));
    fixture.runtime.block_on(stopping).unwrap();
    assert_eq!(fixture.server.state().open, 0);
    assert!(TcpStream::connect(fixture.address).is_err());
}

#[test]
fn shutdown_ends_at_the_deadline_without_answers() {
    let fixture = open();
    fixture.engine.hold();
    let mut client = fixture.client();
    client.send(&["POOL.ADD p 1"]);
    fixture.engine.wait_for_answers(1);
    fixture.runtime.block_on(fixture.server.shutdown(Duration::from_millis(50)));
    assert_eq!(client.until_closed(), b"");
    wait_until(|| fixture.server.state().open == 0);
}

#[test]
fn connection_over_the_limit_is_turned_away() {
    let fixture = Fixture::open(RedisOptions { connections_per_address: 2, ..RedisOptions::default() });
    let mut first = fixture.client();
    let mut second = fixture.client();
    assert_eq!([first.ask("PING"), second.ask("PING")], ["PONG", "PONG"]);
    assert_eq!(fixture.client().until_closed(), b"-ERR max number of clients reached\r\n");
    drop(first);
    wait_until(|| fixture.server.state().open == 1);
    assert_eq!(fixture.client().ask("PING"), "PONG");
    assert_eq!(fixture.server.state().turned_away, 1);
}

#[test]
fn unauthenticated_client_is_disconnected() {
    let options = RedisOptions {
        accounts: vec![account("default", &["*"], RedisPermissions::ALL)],
        login_timeout: Duration::from_millis(50),
        ..RedisOptions::default()
    };
    let fixture = Fixture::open(options);
    let mut unauthenticated = fixture.client();
    assert_eq!(unauthenticated.until_closed(), b"");
}

#[test]
fn stalled_client_is_disconnected() {
    let options = RedisOptions {
        output_buffer: 10_000,
        stall_timeout: Duration::from_millis(200),
        ..RedisOptions::default()
    };
    let fixture = Fixture::open(options);
    let mut client = fixture.client();
    client.socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    let echo = format!("*2\r\n$4\r\nECHO\r\n$4000\r\n{}\r\n", "x".repeat(4000));
    // The loop ends, since the server stops reading and finally disconnects the client.
    while client.socket.write_all(echo.as_bytes()).is_ok() {}
    wait_until(|| fixture.server.state().open == 0);
    // Other clients are not affected.
    assert_eq!(fixture.client().ask("PING"), "PONG");
}

#[test]
fn protocol_error_closes_the_connection_after_earlier_answers() {
    let fixture = open();
    let mut client = fixture.client();
    client.socket.write_all(b"*3\r\n$8\r\nPOOL.ADD\r\n$1\r\np\r\n$1\r\n1\r\n*1\r\n:1\r\n").unwrap();
    let mut output = Vec::new();
    client.socket.read_to_end(&mut output).unwrap();
    assert_eq!(output, b":1\r\n-ERR Protocol error: expected '$', got ':'\r\n");
}
