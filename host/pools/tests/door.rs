//! What clients of the door see, over sockets.
#![allow(clippy::unwrap_used, clippy::panic)]

mod house;

use house::{HASH, House, PASSWORD, SUM, until};
use pools::{AccountOptions, DoorOptions, Rights};
use resp::Limits;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// The older system's texts of states.
const IDLE_UP: &str = r#"{"callstate":0,"regstate":1}"#;
const IDLE_DOWN: &str = r#"{"callstate":0,"regstate":0}"#;
const BUSY_UP: &str = r#"{"callstate":1,"regstate":1}"#;

fn open() -> House {
    House::open(DoorOptions::default())
}

fn account(name: &str, pools: &[&str], rights: Rights) -> AccountOptions {
    AccountOptions {
        name: name.to_owned(),
        password_hash: HASH.to_owned(),
        pools: pools.iter().map(ToString::to_string).collect(),
        rights,
        networks: Vec::new(),
    }
}

#[test]
fn the_older_system_s_calls() {
    let house = open();
    for hello in ["HELLO 2", "HELLO 3"] {
        let mut client = house.client();
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
fn answers_of_a_heap_of_requests_keep_their_order() {
    let house = open();
    let mut client = house.client();
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
fn tickets_hold_their_own_number_only() {
    let house = open();
    let mut client = house.client();
    client.send(&["POOL.ADD p 1", "POOL.REG p 1", "POOL.CALL p TICKET HOLDER ann REASON sale LEASE 60000"]);
    let answers = [client.answer(), client.answer(), client.answer()];
    let ticket = answers[2].trim_matches(['[', ']']).split_once(' ').unwrap().1.to_owned();
    let other = format!("{ticket}9");
    let refused = "-FAIL the number is held under another ticket: this one's lease has ended";
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
fn pools_are_made_changed_shown_and_removed() {
    let house = open();
    let mut client = house.client();
    assert_eq!(client.ask("POOL.SHOW p"), "nil");
    assert_eq!(client.ask("POOL.CREATE p STRATEGY sticky"), "OK");
    assert_eq!(client.ask("POOL.CREATE p QUARANTINE 5000"), "OK");
    // Behind a request of two steps, and all the same in its turn.
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
        "-FAIL the pool has numbers: with FORCE they go with it, whoever has them"
    );
    assert_eq!(client.ask("POOL.REMOVE p FORCE"), "1");
    assert_eq!(client.ask("POOL.LIST"), "[]");
    assert_eq!([client.ask("HLEN {p}:numstate"), client.ask("LLEN {p}:idle:up")], ["0", "0"]);
    assert_eq!([client.ask("HGETALL {p}:numstate"), client.ask("LRANGE {p}:idle:up 0 9")], ["[]", "[]"]);
}

#[test]
fn a_pool_of_many_parts_comes_whole_and_what_is_behind_it_waits() {
    const MOST: usize = 45_000;
    let house = open();
    let mut client = house.client();
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
fn ranges_are_those_of_redis() {
    let house = open();
    let mut client = house.client();
    client.ask("POOL.ADD p 0 1 2 3 4");
    client.ask("POOL.REG p 0 1 2 3 4");
    for start in -7_i64..8 {
        for stop in -7_i64..8 {
            let place = |at: i64| if at < 0 { at + 5 } else { at };
            let (first, last) = (place(start).max(0), place(stop).min(4));
            let expected: Vec<String> = (first..=last).map(|number| number.to_string()).collect();
            let found = client.ask(&format!("LRANGE {{p}}:idle:up {start} {stop}"));
            assert_eq!(found, format!("[{}]", expected.join(" ")), "{start} {stop}");
        }
    }
    let widest = format!("LRANGE {{p}}:idle:up {} {}", i64::MIN, i64::MAX);
    assert_eq!(client.ask(&widest), "[0 1 2 3 4]");
}

#[test]
fn info_tells_of_the_server_and_the_pools() {
    let house = open();
    let mut client = house.client();
    client.ask("POOL.ADD p:1 7");
    let all = client.ask("INFO");
    let port = house.address.port();
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
fn accounts_do_what_they_may_and_see_what_they_may() {
    let (read, call) =
        (Rights { read: true, ..Rights::default() }, Rights { call: true, ..Rights::default() });
    let accounts = vec![
        account("default", &["*"], Rights::ALL),
        account("ann", &["support*"], Rights { read: true, call: true, manage: false }),
        account("caller", &["*"], call),
        account("viewer", &["support*"], read),
    ];
    let house = House::open(DoorOptions { accounts, ..DoorOptions::default() });
    let mut client = house.client();
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

    // What is asked behind the password belongs to whom it names.
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

    let mut caller = house.client();
    caller.ask(&format!("AUTH caller {PASSWORD}"));
    assert_eq!(caller.ask("POOL.CALL support-1"), "2");
    assert_eq!(
        caller.ask("HGET {support-1}:numstate 2"),
        "-NOPERM User caller has no permissions to run the 'hget' command"
    );
    assert_eq!(caller.ask("POOL.LIST"), "[]");
    assert!(caller.ask("INFO").contains("pools:0\r\n"));

    let mut viewer = house.client();
    viewer.ask(&format!("AUTH viewer {PASSWORD}"));
    assert_eq!(viewer.ask("HGET {support-1}:numstate 2"), BUSY_UP);
    assert_eq!(
        viewer.ask("POOL.HANGUP support-1 2"),
        "-NOPERM User viewer has no permissions to run the 'pool.hangup' command"
    );
    // A wrong password changes nothing, a reset all.
    assert!(viewer.ask("AUTH ann wrong").starts_with("-WRONGPASS"));
    assert_eq!(viewer.ask("HGET {support-1}:numstate 2"), BUSY_UP);
    assert_eq!(viewer.ask("RESET"), "RESET");
    assert_eq!(viewer.ask("HGET {support-1}:numstate 2"), "-NOAUTH Authentication required.");
    let state = house.door.state();
    assert_eq!((state.open, state.wrong_passwords, state.denied), (3, 3, 5));
}

#[test]
fn an_account_comes_from_where_it_may() {
    let elsewhere = AccountOptions {
        networks: vec!["192.0.2.0/24".parse().unwrap()],
        ..account("a", &["*"], Rights::ALL)
    };
    let here = AccountOptions {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        ..account("b", &["*"], Rights::ALL)
    };
    let house = House::open(DoorOptions { accounts: vec![elsewhere, here], ..DoorOptions::default() });
    let mut client = house.client();
    assert!(client.ask(&format!("AUTH a {PASSWORD}")).starts_with("-WRONGPASS"));
    assert_eq!(client.ask(&format!("AUTH b {PASSWORD}")), "OK");
}

#[test]
fn without_accounts_there_is_nobody_to_be() {
    let house = open();
    let mut client = house.client();
    assert!(client.ask("AUTH x").starts_with("-ERR AUTH <password> called without any password configured"));
    assert_eq!(client.ask("AUTH default x"), "OK");
    assert!(client.ask("AUTH ann x").starts_with("-WRONGPASS"));
    assert_eq!(client.ask("POOL.ADD p 1"), "1");
}

#[test]
fn too_many_wrong_passwords_shut_an_account_out_and_no_other() {
    let accounts = vec![account("default", &["*"], Rights::ALL), account("other", &["*"], Rights::ALL)];
    let options = DoorOptions { accounts, ..DoorOptions::default() };
    let limits = doors::LoginLimits { account: 2, ..doors::LoginLimits::default() };
    let house = House::limited(options, Arc::new(doors::LoginLimiter::new(limits)));
    let mut client = house.client();
    for password in ["x", "y", PASSWORD] {
        assert!(client.ask(&format!("AUTH {password}")).starts_with("-WRONGPASS"), "{password}");
    }
    assert_eq!(client.ask(&format!("AUTH other {PASSWORD}")), "OK");
}

#[test]
fn what_a_client_asked_before_it_went_is_done() {
    let house = open();
    let mut other = house.client();
    other.ask("POOL.ADD p 1 2");
    house.desk.hold();
    let mut client = house.client();
    // Behind the request of several steps, the last ones wait for it.
    client.send(&["POOL.REG p 1", "HGETALL {p}:numstate", "POOL.REG p 2"]);
    house.desk.until_waiting(2);
    drop(client);
    house.desk.release();
    until(|| house.door.state().open == 1);
    assert_eq!(other.ask("LRANGE {p}:idle:up 0 -1"), "[1 2]");
    assert_eq!(house.hub.len(), 1);
}

#[test]
fn a_client_that_says_nothing_more_hears_its_answers() {
    let house = open();
    let mut client = house.client();
    client.send(&["POOL.ADD p 1", "HGETALL {p}:numstate", "POOL.LIST"]);
    client.close_sending();
    let wanted = format!(":1\r\n*2\r\n$1\r\n1\r\n${}\r\n{IDLE_DOWN}\r\n*1\r\n$1\r\np\r\n", IDLE_DOWN.len());
    assert_eq!(client.until_closed(), wanted.as_bytes());
}

#[test]
fn at_the_end_what_was_asked_is_answered() {
    let house = open();
    let mut client = house.client();
    let mut idle = house.client();
    assert_eq!(idle.ask("PING"), "PONG");
    house.desk.hold();
    client.send(&["POOL.ADD p 1", "POOL.REG p 1"]);
    house.desk.until_waiting(1);
    let door = house.door.clone();
    let stopping = house.runtime.spawn(async move { door.shutdown(Duration::from_secs(30)).await });
    assert_eq!(idle.until_closed(), b"");
    house.desk.release();
    assert!(client.until_closed().starts_with(b":1\r\n"));
    house.runtime.block_on(stopping).unwrap();
    assert_eq!(house.door.state().open, 0);
    assert!(TcpStream::connect(house.address).is_err());
}

#[test]
fn the_end_comes_also_where_no_answer_does() {
    let house = open();
    house.desk.hold();
    let mut client = house.client();
    client.send(&["POOL.ADD p 1"]);
    house.desk.until_waiting(1);
    house.runtime.block_on(house.door.shutdown(Duration::from_millis(50)));
    assert_eq!(client.until_closed(), b"");
    until(|| house.door.state().open == 0);
}

#[test]
fn one_connection_too_many_is_turned_away() {
    let house = House::open(DoorOptions { connections_per_address: 2, ..DoorOptions::default() });
    let mut first = house.client();
    let mut second = house.client();
    assert_eq!([first.ask("PING"), second.ask("PING")], ["PONG", "PONG"]);
    assert_eq!(house.client().until_closed(), b"-ERR max number of clients reached\r\n");
    drop(first);
    until(|| house.door.state().open == 1);
    assert_eq!(house.client().ask("PING"), "PONG");
    assert_eq!(house.door.state().turned_away, 1);
}

#[test]
fn who_never_says_who_it_is_is_cut_off() {
    let options = DoorOptions {
        accounts: vec![account("default", &["*"], Rights::ALL)],
        login_timeout: Duration::from_millis(50),
        ..DoorOptions::default()
    };
    let house = House::open(options);
    let mut stranger = house.client();
    assert_eq!(stranger.until_closed(), b"");
}

#[test]
fn who_takes_no_answers_is_read_no_further_and_cut_off() {
    let options = DoorOptions {
        limits: Limits { unsent: 10_000, ..Limits::default() },
        stall_timeout: Duration::from_millis(200),
        ..DoorOptions::default()
    };
    let house = House::open(options);
    let mut client = house.client();
    client.socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    let echo = format!("*2\r\n$4\r\nECHO\r\n$4000\r\n{}\r\n", "x".repeat(4000));
    // It ends, since the door reads no more than it may answer, and closes at last.
    while client.socket.write_all(echo.as_bytes()).is_ok() {}
    until(|| house.door.state().open == 0);
    // Nobody else is troubled.
    assert_eq!(house.client().ask("PING"), "PONG");
}

#[test]
fn a_mistake_in_the_protocol_ends_the_connection_after_what_was_asked_before() {
    let house = open();
    let mut client = house.client();
    client.socket.write_all(b"*3\r\n$8\r\nPOOL.ADD\r\n$1\r\np\r\n$1\r\n1\r\n*1\r\n:1\r\n").unwrap();
    let mut told = Vec::new();
    client.socket.read_to_end(&mut told).unwrap();
    assert_eq!(told, b":1\r\n-ERR Protocol error: expected '$', got ':'\r\n");
}
