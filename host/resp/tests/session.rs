//! What a connection does by itself, and the order of answers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod client;

use client::{Client, SUM, command};
use proptest::prelude::*;
use redis_protocol::resp3::{
    decode::complete::decode,
    types::{FrameKind, OwnedFrame, Resp3Frame},
};
use resp::{Call, Event, Limits, Operation, Outcome, Read, Reply, Request, Ticket};

fn told(words: &[&str]) -> String {
    let mut client = Client::mapped();
    client.session.receive(&command(words));
    client.read()
}

fn asked(words: &[&str]) -> Request {
    let mut client = Client::mapped();
    client.session.receive(&command(words));
    client.request().1
}

#[test]
fn small_talk() {
    assert_eq!(told(&["ping"]), "+PONG\r\n");
    assert_eq!(told(&["PING", "hi"]), "$2\r\nhi\r\n");
    assert_eq!(told(&["ECHO", "hi"]), "$2\r\nhi\r\n");
    assert_eq!(told(&["SELECT", "0"]), "+OK\r\n");
    assert_eq!(told(&["SELECT", "1"]), "-ERR DB index is out of range\r\n");
    assert_eq!(
        told(&["CLIENT", "SETNAME", "a b"]),
        "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
    );
    assert_eq!(told(&["CLIENT", "GETNAME"]), "$-1\r\n");
    assert_eq!(told(&["CLIENT", "SETINFO", "LIB-NAME", "redis-py"]), "+OK\r\n");
    assert_eq!(told(&["CLIENT", "ID"]), ":7\r\n");
    assert_eq!(told(&["COMMAND", "COUNT"]), ":27\r\n");
    assert_eq!(told(&["COMMAND", "INFO", "nothing"]), "*1\r\n$-1\r\n");
}

#[test]
fn mistakes_are_told_in_the_words_of_redis() {
    assert_eq!(told(&["GET"]), "-ERR unknown command 'GET', with args beginning with: \r\n");
    assert_eq!(
        told(&["SET", "a", "b\r\nc"]),
        "-ERR unknown command 'SET', with args beginning with: 'a' 'b  c' \r\n"
    );
    assert_eq!(told(&["ECHO"]), "-ERR wrong number of arguments for 'echo' command\r\n");
    assert_eq!(told(&["PING", "a", "b"]), "-ERR wrong number of arguments for 'ping' command\r\n");
    assert_eq!(told(&["CLIENT", "ID", "x"]), "-ERR wrong number of arguments for 'client|id' command\r\n");
    assert_eq!(told(&["CLIENT", "KILL"]), "-ERR unknown subcommand 'KILL'. Try CLIENT HELP.\r\n");
    assert_eq!(
        told(&["HGET", "{p}:idle:up", "1"]),
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
    );
    assert_eq!(told(&["HGET", "other", "1"]), "$-1\r\n");
    assert_eq!(told(&["LRANGE", "other", "0", "-1"]), "*0\r\n");
}

#[test]
fn plain_commands_become_requests() {
    let number = || "123".to_owned();
    let pool = |operation| Request::Pool { pool: "p".into(), operation };
    let read = |read| Request::Read { pool: "p".into(), read };
    assert_eq!(asked(&["pool.add", "p", "123"]), pool(Operation::Add(number())));
    assert_eq!(asked(&["POOL.HANGUP", "{p}", "123"]), pool(Operation::Hangup(number())));
    assert_eq!(
        asked(&["POOL.RENEW", "p", "123", "500"]),
        pool(Operation::Renew { number: number(), lease_ms: 500 })
    );
    let call = Call { lease_ms: Some(9), holder: Some("me".into()), ..Call::default() };
    assert_eq!(asked(&["POOL.CALL", "p", "LEASE", "9", "holder", "me"]), pool(Operation::Call(call.clone())));
    let call = Call { number: Some(number()), ..call };
    assert_eq!(asked(&["POOL.CALL", "p", "123", "LEASE", "9", "holder", "me"]), pool(Operation::Call(call)));
    assert_eq!(asked(&["POOL.LIST"]), Request::Pools);
    assert_eq!(asked(&["POOL.SHOW", "p"]), read(Read::Show(None)));
    assert_eq!(asked(&["HGET", "{p}:numstate", "123"]), read(Read::State(number())));
    assert_eq!(asked(&["HGETALL", "{p}:numstate"]), read(Read::States));
    assert_eq!(asked(&["HLEN", "{p}:numstate"]), read(Read::Count));
    assert_eq!(asked(&["LRANGE", "{p}:idle:up", "0", "-1"]), read(Read::Idle { start: 0, stop: -1 }));
    assert_eq!(asked(&["LLEN", "{p}:idle:up"]), read(Read::IdleCount));
}

#[test]
fn a_plain_call_without_a_number_says_why() {
    let mut client = Client::mapped();
    client.session.receive(&command(&["POOL.CALL", "p"]));
    let (ticket, _) = client.request();
    let none = Outcome::NoNumber { why: "all 3 numbers are busy".into(), next_ms: Some(1200) };
    client.session.answer(ticket, Reply::Pool(none));
    assert_eq!(client.read(), "-NONUMBER all 3 numbers are busy; the next lease ends in 1200 ms\r\n");
}

#[test]
fn nobody_asks_before_saying_who_they_are() {
    let mut client = Client::new(false, true);
    client.session.receive(&command(&["PING"]));
    assert_eq!(client.read(), "-NOAUTH Authentication required.\r\n");
    client.session.receive(&command(&["HELLO", "3"]));
    assert!(client.read().starts_with("-NOAUTH HELLO must be called"));
    client.session.receive(&command(&["AUTH", "ann", "wrong"]));
    client.session.receive(&command(&["PING"]));
    let Some(Event::Authenticate { ticket, name, password }) = client.session.poll_event() else {
        panic!("no password")
    };
    assert_eq!((name.as_ref(), password.as_ref()), (b"ann".as_slice(), b"wrong".as_slice()));
    assert_eq!(client.read(), "");
    client.session.judged(ticket, false);
    assert_eq!(
        client.read(),
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n-NOAUTH Authentication required.\r\n"
    );
    client
        .session
        .receive(&[command(&["HELLO", "3", "AUTH", "ann", "right"]), command(&["POOL.CALL", "p"])].concat());
    let Some(Event::Authenticate { ticket, .. }) = client.session.poll_event() else { panic!("no password") };
    assert_eq!(client.session.poll_event(), None);
    client.session.judged(ticket, true);
    let greeting = client.session.transmit();
    assert_eq!(decode(&greeting).unwrap().unwrap().0.kind(), FrameKind::Map);
    assert!(matches!(client.request().1, Request::Pool { .. }));
    client.session.receive(&command(&["RESET"]));
    assert_eq!(client.session.poll_event(), Some(Event::Forgotten));
}

#[test]
fn a_newer_client_gets_newer_shapes() {
    let mut client = Client::mapped();
    client.session.receive(&command(&["HELLO", "3"]));
    client.read();
    client.session.receive(&command(&["COMMAND", "DOCS"]));
    let docs = client.session.transmit();
    let (frame, octets) = decode(&docs).unwrap().unwrap();
    assert_eq!(octets, docs.len());
    let OwnedFrame::Map { data, .. } = frame else { panic!("no map") };
    assert_eq!(data.len(), 27);
    client.session.receive(&command(&["EVALSHA", SUM, "1", "p", "call"]));
    let (ticket, _) = client.request();
    client.session.answer(ticket, Reply::Pool(Outcome::NoNumber { why: String::new(), next_ms: None }));
    assert_eq!(client.read(), "_\r\n");
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let table = [
        ("*x\r\n", "invalid multibulk length"),
        ("*99999\r\n", "invalid multibulk length"),
        ("*1\r\n*1\r\n", "expected '$', got '*'"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$99999999999\r\n", "invalid bulk length"),
        ("*1\r\n$9223372036854775807\r\n", "invalid bulk length"),
        ("*1\r\n$4\r\nPINGxx", "invalid bulk length"),
        ("*11111111111111111111111111111111111", "too big mbulk count string"),
        ("PING \"a\r\n", "unbalanced quotes in request"),
    ];
    for (octets, error) in table {
        let mut client = Client::mapped();
        client.session.receive(octets.as_bytes());
        assert_eq!(client.read(), format!("-ERR Protocol error: {error}\r\n"), "{octets:?}");
        assert!(client.session.is_over());
        client.session.receive(b"PING\r\n");
        assert_eq!(client.read(), "");
    }
}

#[test]
fn a_stranger_may_say_little() {
    for (octets, error) in
        [("*11\r\n", "unauthenticated multibulk length"), ("*1\r\n$16385\r\n", "unauthenticated bulk length")]
    {
        let mut client = Client::new(false, true);
        client.session.receive(octets.as_bytes());
        assert_eq!(client.read(), format!("-ERR Protocol error: {error}\r\n"));
    }
}

#[test]
fn no_more_is_read_than_may_wait() {
    let limits = Limits { pipelined: 2, ..Limits::default() };
    let mut client = Client::with(false, false, limits);
    client.session.receive(&command(&["POOL.CALL", "p"]).repeat(3));
    let (first, second) = (client.request().0, client.request().0);
    assert_eq!(client.session.poll_event(), None);
    assert!(!client.session.wants_bytes());
    client.session.answer(second, Reply::Integer(2));
    assert_eq!(client.read(), "");
    client.session.answer(first, Reply::Integer(1));
    assert_eq!(client.read(), ":1\r\n:2\r\n");
    assert!(client.session.wants_bytes());
    client.request();
    // A ticket that is answered already.
    client.session.answer(first, Reply::Integer(1));
    assert_eq!(client.read(), "");
}

#[test]
fn answers_that_wait_behind_another_count_as_unsent() {
    let limits = Limits { unsent: 100, ..Limits::default() };
    let mut client = Client::with(false, false, limits);
    let long = "x".repeat(60);
    client.session.receive(&[command(&["POOL.LIST"]), command(&["ECHO", &long]).repeat(3)].concat());
    assert!(!client.session.wants_bytes());
    let (ticket, _) = client.request();
    client.session.answer(ticket, Reply::Array(Vec::new()));
    // The third was not looked at while two of them waited.
    assert_eq!(client.read().matches(&long).count(), 2);
    assert_eq!(client.read().matches(&long).count(), 1);
    assert!(client.session.wants_bytes());
}

#[test]
fn what_was_asked_before_quit_is_answered() {
    let mut client = Client::mapped();
    client.session.receive(&[command(&["POOL.LIST"]), command(&["QUIT"]), command(&["PING"])].concat());
    let (ticket, _) = client.request();
    assert!(!client.session.is_over());
    client.session.answer(ticket, Reply::Array(Vec::new()));
    assert_eq!(client.read(), "*0\r\n+OK\r\n");
    assert!(client.session.is_over());
}

/// Feeds the octets in pieces; the owner answers each request by its number, newest first within a piece.
fn talk(octets: &[u8], cuts: &[usize]) -> (Vec<Request>, Vec<u8>, bool) {
    let mut client = Client::with(true, false, Limits { octets: 4096, ..Limits::default() });
    let (mut requests, mut out) = (Vec::new(), Vec::new());
    let mut rest = octets;
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (piece, more) = rest.split_at(cut.min(rest.len()));
        rest = more;
        client.session.receive(piece);
        let mut open: Vec<(Ticket, i64)> = Vec::new();
        while let Some(event) = client.session.poll_event() {
            match event {
                Event::Request { ticket, request } => {
                    requests.push(request);
                    open.push((ticket, i64::try_from(requests.len()).unwrap()));
                }
                Event::Authenticate { ticket, .. } => client.session.judged(ticket, true),
                Event::Forgotten => {}
            }
        }
        for (ticket, number) in open.into_iter().rev() {
            client.session.answer(ticket, Reply::Integer(number));
        }
        out.extend(client.session.transmit());
    }
    (requests, out, client.session.is_over())
}

fn words() -> impl Strategy<Value = Vec<u8>> {
    let of = |words: &[&str]| Just(command(words));
    prop_oneof![
        of(&["PING"]),
        of(&["POOL.CALL", "p"]),
        of(&["EVALSHA", SUM, "1", "{p}", "add", "123456"]),
        of(&["AUTH", "a", "b"]),
        of(&["HELLO", "3"]),
        of(&["RESET"]),
        of(&["HGETALL", "{p}:numstate"]),
        of(&["NOTHING", "x"]),
        Just(b"PING inline\r\n".to_vec()),
        Just(b"*0\r\n".to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ]
}

proptest! {
    #[test]
    fn any_split_gives_the_same(parts in prop::collection::vec(words(), 0..20), cuts in prop::collection::vec(0_usize..40, 0..40)) {
        let octets = parts.concat();
        prop_assert_eq!(talk(&octets, &[]), talk(&octets, &cuts));
    }

    #[test]
    fn answers_keep_the_order_of_requests(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let mut client = Client::mapped();
        client.session.receive(&command(&["POOL.CALL", "p"]).repeat(order.len()));
        let tickets: Vec<_> = order.iter().map(|_| client.request().0).collect();
        let mut out = String::new();
        for &at in &order {
            client.session.answer(tickets[at], Reply::Integer(i64::try_from(at).unwrap()));
            out += &client.read();
        }
        let expected: String = (0..order.len()).map(|at| format!(":{at}\r\n")).collect();
        prop_assert_eq!(out, expected);
    }
}
