//! Connection commands, and the order of replies.

use crate::client::{Client, SUM, command, given, number, pool};
use model::{
    AcquireRequest, LeaseTicket, NumberState, PoolOperation, PoolOutcome, PoolRefusal, Strategy as Choice,
};
use proptest::prelude::*;
use redis_protocol::resp3::{
    decode::complete::decode,
    types::{FrameKind, OwnedFrame, Resp3Frame},
};
use resp::{Event, PoolRead, ReplyTicket, RespLimits, RespReply, RespRequest};
use std::time::Duration;

fn reply_to(words: &[&str]) -> String {
    let mut client = Client::mapped();
    client.session.receive(&command(words));
    client.read()
}

fn request_of(words: &[&str]) -> RespRequest {
    let mut client = Client::mapped();
    client.session.receive(&command(words));
    client.request().1
}

#[test]
fn connection_commands() {
    assert_eq!(reply_to(&["ping"]), "+PONG\r\n");
    assert_eq!(reply_to(&["PING", "hi"]), "$2\r\nhi\r\n");
    assert_eq!(reply_to(&["ECHO", "hi"]), "$2\r\nhi\r\n");
    assert_eq!(reply_to(&["SELECT", "0"]), "+OK\r\n");
    assert_eq!(reply_to(&["SELECT", "1"]), "-ERR DB index is out of range\r\n");
    assert_eq!(
        reply_to(&["CLIENT", "SETNAME", "a b"]),
        "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
    );
    assert_eq!(reply_to(&["CLIENT", "GETNAME"]), "$-1\r\n");
    assert_eq!(reply_to(&["CLIENT", "SETINFO", "LIB-NAME", "redis-py"]), "+OK\r\n");
    assert_eq!(reply_to(&["CLIENT", "ID"]), ":7\r\n");
    assert_eq!(reply_to(&["COMMAND", "COUNT"]), ":36\r\n");
    assert_eq!(reply_to(&["COMMAND", "INFO", "nothing"]), "*1\r\n$-1\r\n");
}

#[test]
fn errors_match_redis() {
    assert_eq!(reply_to(&["GET"]), "-ERR unknown command 'GET', with args beginning with: \r\n");
    assert_eq!(
        reply_to(&["SET", "a", "b\r\nc"]),
        "-ERR unknown command 'SET', with args beginning with: 'a' 'b  c' \r\n"
    );
    assert_eq!(reply_to(&["ECHO"]), "-ERR wrong number of arguments for 'echo' command\r\n");
    assert_eq!(reply_to(&["PING", "a", "b"]), "-ERR wrong number of arguments for 'ping' command\r\n");
    assert_eq!(
        reply_to(&["CLIENT", "ID", "x"]),
        "-ERR wrong number of arguments for 'client|id' command\r\n"
    );
    assert_eq!(reply_to(&["CLIENT", "KILL"]), "-ERR unknown subcommand 'KILL'. Try CLIENT HELP.\r\n");
    assert_eq!(
        reply_to(&["HGET", "{p}:idle:up", "1"]),
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
    );
    assert_eq!(reply_to(&["HGET", "other", "1"]), "$-1\r\n");
    assert_eq!(reply_to(&["LRANGE", "other", "0", "-1"]), "*0\r\n");
}

#[test]
fn pool_commands_become_requests() {
    let number = number("123");
    let asks = |operation| RespRequest::Operation { pool: pool("p"), operation };
    let read = |read| RespRequest::Read { pool: pool("p"), read };
    let hangup = |ticket| asks(PoolOperation::Hangup { number, ticket });
    let renew = |lease, ticket| asks(PoolOperation::Renew { number, ticket, lease });
    let ms = |ms| Some(Duration::from_millis(ms));
    let ticket = Some(LeaseTicket(7));
    assert_eq!(request_of(&["pool.add", "p", "123"]), asks(PoolOperation::Add { number, weight: None }));
    assert_eq!(
        request_of(&["pool.add", "p", "123", "WEIGHT", "16"]),
        asks(PoolOperation::Add { number, weight: Some(16) })
    );
    assert_eq!(request_of(&["POOL.REG", "p", "123"]), asks(PoolOperation::Reg { number }));
    assert_eq!(request_of(&["POOL.UNREG", "p", "123"]), asks(PoolOperation::Unreg { number }));
    assert_eq!(request_of(&["POOL.HANGUP", "{p}", "123"]), hangup(None));
    assert_eq!(request_of(&["POOL.HANGUP", "{p}", "123", "TICKET", "7"]), hangup(ticket));
    assert_eq!(request_of(&["POOL.RENEW", "p", "123", "500"]), renew(ms(500), None));
    assert_eq!(request_of(&["POOL.RENEW", "p", "123", "PERSIST", "TICKET", "7"]), renew(None, ticket));
    let call = AcquireRequest { lease: ms(9), holder: "me".into(), ..AcquireRequest::default() };
    let words = ["POOL.CALL", "p", "LEASE", "9", "holder", "me"];
    assert_eq!(request_of(&words), asks(PoolOperation::Call(call.clone())));
    let call = AcquireRequest { number: Some(number), callee: "+4930".into(), ..call };
    let words = ["POOL.CALL", "p", "123", "LEASE", "9", "TICKET", "holder", "me", "CALLEE", "+4930"];
    assert_eq!(request_of(&words), asks(PoolOperation::Call(call)));
    assert_eq!(request_of(&["POOL.LIST"]), RespRequest::Pools);
    assert_eq!(request_of(&["POOL.SHOW", "p"]), read(PoolRead::Show(None)));
    assert_eq!(request_of(&["POOL.SHOW", "p", "123"]), read(PoolRead::Show(Some(number))));
    assert_eq!(request_of(&["HGET", "{p}:numstate", "123"]), read(PoolRead::State(number)));
    assert_eq!(request_of(&["HGETALL", "{p}:numstate"]), read(PoolRead::States));
    assert_eq!(request_of(&["HLEN", "{p}:numstate"]), read(PoolRead::Count));
    assert_eq!(
        request_of(&["LRANGE", "{p}:idle:up", "0", "-1"]),
        read(PoolRead::Idle { start: 0, stop: -1 })
    );
    assert_eq!(request_of(&["LLEN", "{p}:idle:up"]), read(PoolRead::IdleCount));
    assert_eq!(
        request_of(&["INFO", "Server", "clients"]),
        RespRequest::Info(vec!["server".into(), "clients".into()])
    );
    let create = |strategy, quarantine| RespRequest::Create { pool: pool("p"), strategy, quarantine };
    assert_eq!(request_of(&["POOL.CREATE", "p"]), create(None, None));
    let words = ["POOL.CREATE", "p", "quarantine", "0", "STRATEGY", "Sticky"];
    assert_eq!(request_of(&words), create(Some(Choice::Sticky), ms(0)));
    let remove = |with_numbers| RespRequest::Remove { pool: pool("p"), with_numbers };
    assert_eq!(request_of(&["POOL.REMOVE", "p"]), remove(false));
    assert_eq!(request_of(&["POOL.REMOVE", "p", "FORCE"]), remove(true));
}

#[test]
fn invalid_numbers_pools_and_options_are_errors() {
    let table: [(&[&str], &str); 10] = [
        (&["POOL.ADD", "p", "12a"], "-ERR a number has 1 to 16 characters"),
        (&["POOL.ADD", "p", "1", "WEIGHT", "17"], "-ERR a weight must be 1 to 16"),
        (&["POOL.REG", "p", "1", "WEIGHT", "1"], "-ERR a number has 1 to 16 characters"),
        (&["POOL.ADD", "a b", "1"], "-ERR \"a b\" cannot be the name of a pool"),
        (&["POOL.CALL", "p", "LEASE"], "-ERR syntax error"),
        (&["POOL.CALL", "p", "LEASE", "0"], "-ERR a lease is a positive number"),
        (&["POOL.CALL", "p", "NUMBER", "1"], "-ERR syntax error"),
        (&["POOL.HANGUP", "p", "1", "TICKET", "-1"], "-ERR syntax error"),
        (&["POOL.CREATE", "p", "STRATEGY", "best"], "-ERR \"best\" is not a strategy"),
        (&["POOL.REMOVE", "p", "NOW"], "-ERR syntax error"),
    ];
    for (words, error) in table {
        let reply_to = reply_to(words);
        assert!(reply_to.starts_with(error), "{words:?}: {reply_to}");
    }
}

#[test]
fn pool_call_without_a_number_gives_the_reason() {
    let mut client = Client::mapped();
    client.session.receive(&command(&["POOL.CALL", "p"]));
    let (ticket, _) = client.request();
    let none = PoolRefusal::AllBusy { remaining: Some(Duration::from_millis(1200)) };
    client.session.answer(ticket, &RespReply::Outcome(PoolOutcome::Refused(none)));
    assert_eq!(
        client.read(),
        "-NONUMBER all numbers of the pool that are up are busy; the next one is ready in 1200 ms\r\n"
    );
}

#[test]
fn ticket_is_returned_on_request() {
    let mut client = Client::mapped();
    client.session.receive(&[command(&["POOL.CALL", "p"]), command(&["POOL.CALL", "p", "TICKET"])].concat());
    let first = client.request().0;
    client.session.answer_all(first, [given("123", 7), given("124", 8)]);
    assert_eq!(client.read(), "$3\r\n123\r\n*2\r\n$3\r\n124\r\n:8\r\n");
}

#[test]
fn several_numbers_are_one_request() {
    let mut client = Client::mapped();
    let (done, full) =
        (PoolOutcome::Done(Some(NumberState::IdleDown)), PoolOutcome::Refused(PoolRefusal::Full));
    let table = [
        (vec![done, done], ":2\r\n"),
        (
            vec![done, full],
            "-FAIL 1 of 2 succeeded; the limit of pool numbers is reached: \
                            raise `max-numbers`\r\n",
        ),
    ];
    for (outcomes, reply_to) in table {
        client.session.receive(&command(&["POOL.ADD", "{p}", "1", "2", "WEIGHT", "3"]));
        let (ticket, request) = client.request();
        let operations =
            ["1", "2"].map(|text| PoolOperation::Add { number: number(text), weight: Some(3) }).to_vec();
        assert_eq!(request, RespRequest::Operations { pool: pool("p"), operations });
        client.session.answer(ticket, &RespReply::Outcomes(outcomes));
        assert_eq!(client.read(), reply_to);
    }
}

#[test]
fn long_replies_match_the_protocol() {
    let states =
        RespReply::States(vec![(number("1"), NumberState::IdleUp), (number("22"), NumberState::BusyDown)]);
    let json = [r#"{"callstate":0,"regstate":1}"#, r#"{"callstate":1,"regstate":0}"#];
    for (hello, head, plain) in [("2", "*4\r\n", false), ("3", "%2\r\n", true)] {
        let (mut client, [up, down]) =
            if plain { (Client::plain(), ["idle+up", "busy+down"]) } else { (Client::mapped(), json) };
        let pairs = format!("$1\r\n1\r\n${}\r\n{up}\r\n$2\r\n22\r\n${}\r\n{down}\r\n", up.len(), down.len());
        client.session.receive(&[command(&["HELLO", hello]), command(&["HGETALL", "{p}:numstate"])].concat());
        client.read();
        let ticket = client.request().0;
        client.session.answer(ticket, &states);
        assert_eq!(client.read(), format!("{head}{pairs}"));
        client.session.receive(&command(&["LRANGE", "{p}:idle:up", "0", "5"]));
        let ticket = client.request().0;
        client.session.answer(ticket, &RespReply::Numbers(vec![number("+1"), number("*2#")]));
        assert_eq!(client.read(), "*2\r\n$2\r\n+1\r\n$3\r\n*2#\r\n");
    }
}

#[test]
fn unauthenticated_requests_are_refused() {
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
    client.session.finish_login(ticket, false);
    assert_eq!(
        client.read(),
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n-NOAUTH Authentication required.\r\n"
    );
    client
        .session
        .receive(&[command(&["HELLO", "3", "AUTH", "ann", "right"]), command(&["POOL.CALL", "p"])].concat());
    let Some(Event::Authenticate { ticket, .. }) = client.session.poll_event() else { panic!("no password") };
    assert_eq!(client.session.poll_event(), None);
    client.session.finish_login(ticket, true);
    let greeting = client.octets();
    assert_eq!(decode(&greeting).unwrap().unwrap().0.kind(), FrameKind::Map);
    assert!(matches!(client.request().1, RespRequest::Operation { .. }));
    client.session.receive(&command(&["RESET"]));
    assert_eq!(client.session.poll_event(), Some(Event::Reset));
}

#[test]
fn a_login_is_handed_over_as_it_was_received_with_what_follows() {
    let mut client = Client::new(false, true);
    let login = command(&["HELLO", "3", "AUTH", "ann", "right"]);
    client.session.receive(&[command(&["PING"]), login.clone(), command(&["PING"])].concat());
    let Some(Event::Authenticate { ticket, .. }) = client.session.poll_event() else { panic!("no password") };
    assert_eq!(client.session.login_request(), login);
    client.session.refuse_login(ticket, "TRYAGAIN later");
    let refused = "-NOAUTH Authentication required.\r\n";
    assert_eq!(client.read(), format!("{refused}-TRYAGAIN later\r\n{refused}"));
    assert_eq!(client.session.login_request(), b"");
    client.session.receive(b"AUTH ann right\r\nPING\r\nPI");
    let Some(Event::Authenticate { .. }) = client.session.poll_event() else { panic!("no password") };
    assert_eq!(client.session.login_request(), b"AUTH ann right\r\n");
    assert_eq!(client.session.take_unprocessed().as_ref(), b"PING\r\nPI");
    client.session.receive(b"NG\r\n");
    assert_eq!(client.read(), "");
}

#[test]
fn resp3_clients_get_resp3_types() {
    let mut client = Client::mapped();
    client.session.receive(&command(&["HELLO", "3"]));
    client.read();
    client.session.receive(&command(&["COMMAND", "DOCS"]));
    let docs = client.octets();
    let (frame, octets) = decode(&docs).unwrap().unwrap();
    assert_eq!(octets, docs.len());
    let OwnedFrame::Map { data, .. } = frame else { panic!("no map") };
    assert_eq!(data.len(), 36);
    client.session.receive(&command(&["EVALSHA", SUM, "1", "p", "call"]));
    let (ticket, _) = client.request();
    client.session.answer(ticket, &RespReply::Outcome(PoolOutcome::Refused(PoolRefusal::Empty)));
    assert_eq!(client.read(), "_\r\n");
}

#[test]
fn malformed_request_closes_the_connection() {
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
        assert!(client.session.is_finished());
        client.session.receive(b"PING\r\n");
        assert_eq!(client.read(), "");
    }
}

#[test]
fn unauthenticated_requests_are_size_limited() {
    for (octets, error) in
        [("*11\r\n", "unauthenticated multibulk length"), ("*1\r\n$16385\r\n", "unauthenticated bulk length")]
    {
        let mut client = Client::new(false, true);
        client.session.receive(octets.as_bytes());
        assert_eq!(client.read(), format!("-ERR Protocol error: {error}\r\n"));
    }
}

#[test]
fn reading_stops_at_the_pipeline_limit() {
    let limits = RespLimits { pipelined: 2, ..RespLimits::default() };
    let mut client = Client::with(false, false, limits);
    client.session.receive(&command(&["POOL.CALL", "p"]).repeat(3));
    let (first, second) = (client.request().0, client.request().0);
    assert_eq!(client.session.poll_event(), None);
    assert!(!client.session.wants_bytes());
    client.session.answer(second, &RespReply::Integer(2));
    assert_eq!(client.read(), "");
    client.session.answer(first, &RespReply::Integer(1));
    assert_eq!(client.read(), ":1\r\n:2\r\n");
    assert!(client.session.wants_bytes());
    client.request();
    // A ticket that was already answered.
    client.session.answer(first, &RespReply::Integer(1));
    assert_eq!(client.read(), "");
}

#[test]
fn queued_replies_count_as_unsent() {
    let limits = RespLimits { output_buffer: 100, ..RespLimits::default() };
    let mut client = Client::with(false, false, limits);
    let long = "x".repeat(60);
    client.session.receive(&[command(&["POOL.LIST"]), command(&["ECHO", &long]).repeat(3)].concat());
    assert!(!client.session.wants_bytes());
    let (ticket, _) = client.request();
    client.session.answer(ticket, &RespReply::Array(Vec::new()));
    // The third request is not processed while two are pending.
    assert_eq!(client.read().matches(&long).count(), 2);
    assert_eq!(client.read().matches(&long).count(), 1);
    assert!(client.session.wants_bytes());
}

#[test]
fn requests_before_quit_are_answered() {
    let mut client = Client::mapped();
    client.session.receive(&[command(&["POOL.LIST"]), command(&["QUIT"]), command(&["PING"])].concat());
    let (ticket, _) = client.request();
    assert!(!client.session.is_finished());
    client.session.answer(ticket, &RespReply::Array(Vec::new()));
    assert_eq!(client.read(), "*0\r\n+OK\r\n");
    assert!(client.session.is_finished());
}

/// Feeds octets in pieces; the owner answers each request with its number, newest first within a piece.
fn talk(octets: &[u8], cuts: &[usize]) -> (Vec<RespRequest>, Vec<u8>, bool) {
    let mut client = Client::with(true, false, RespLimits { octets: 4096, ..RespLimits::default() });
    let (mut requests, mut out) = (Vec::new(), Vec::new());
    let mut rest = octets;
    for cut in cuts.iter().copied().chain([usize::MAX]) {
        let (piece, more) = rest.split_at(cut.min(rest.len()));
        rest = more;
        client.session.receive(piece);
        let mut open: Vec<(ReplyTicket, i64)> = Vec::new();
        while let Some(event) = client.session.poll_event() {
            match event {
                Event::Request { ticket, request, .. } => {
                    requests.push(request);
                    open.push((ticket, i64::try_from(requests.len()).unwrap()));
                }
                Event::Authenticate { ticket, .. } => client.session.finish_login(ticket, true),
                Event::Reset => {}
            }
        }
        for (ticket, number) in open.into_iter().rev() {
            client.session.answer(ticket, &RespReply::Integer(number));
        }
        out.extend(client.octets());
    }
    (requests, out, client.session.is_finished())
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
    fn input_can_be_split_anywhere(parts in prop::collection::vec(words(), 0..20), cuts in prop::collection::vec(0_usize..40, 0..40)) {
        let octets = parts.concat();
        prop_assert_eq!(talk(&octets, &[]), talk(&octets, &cuts));
    }

    #[test]
    fn replies_keep_the_order_of_requests(order in Just((0..12_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let mut client = Client::mapped();
        client.session.receive(&command(&["POOL.CALL", "p"]).repeat(order.len()));
        let tickets: Vec<_> = order.iter().map(|_| client.request().0).collect();
        let mut out = String::new();
        for &at in &order {
            client.session.answer(tickets[at], &RespReply::Integer(i64::try_from(at).unwrap()));
            out += &client.read();
        }
        let expected: String = (0..order.len()).map(|at| format!(":{at}\r\n")).collect();
        prop_assert_eq!(out, expected);
    }
}
