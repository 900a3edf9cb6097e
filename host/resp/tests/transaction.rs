//! What stands between `MULTI` and `EXEC`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod client;

use client::{Client, SUM, command, given, number};
use model::{NumberState, PoolOperation, PoolOutcome};
use resp::{Limits, Reply, Request};

fn say(client: &mut Client, words: &[&str]) -> String {
    client.session.receive(&command(words));
    client.read()
}

#[test]
fn what_was_kept_is_asked_in_one_piece_and_answered_in_one() {
    let mut client = Client::mapped();
    client.session.receive(&command(&["POOL.REG", "p", "1"]));
    let (before, _) = client.request();
    let mut all = Vec::new();
    for words in [
        &["MULTI"][..],
        &["EVALSHA", SUM, "1", "{p}", "call"],
        &["ping"],
        &["pool.hangup", "p", "1"],
        &["lrange", "other", "0", "-1"],
        &["EXEC"],
        &["ECHO", "after"],
    ] {
        all.extend(command(words));
    }
    let (first, last) = all.split_at(all.len() / 2);
    client.session.receive(first);
    assert!(client.session.poll_event().is_none(), "nothing is asked before EXEC");
    client.session.receive(last);
    let (call, _) = client.request();
    let (hangup, request) = client.request();
    let is_hangup = |operation: &PoolOperation| matches!(operation, PoolOperation::Hangup { number: one, ticket: None } if *one == number("1"));
    assert!(matches!(request, Request::Operation { operation, .. } if is_hangup(&operation)));
    let done = Reply::Outcome(PoolOutcome::Done(Some(NumberState::IdleUp)));
    client.session.answer(hangup, &done);
    client.session.answer(call, &given("1", 5));
    assert_eq!(client.read(), "", "answers keep their order");
    client.session.answer(before, &done);
    let queued = "+QUEUED\r\n".repeat(4);
    let answer = "*4\r\n$1\r\n1\r\n+PONG\r\n:1\r\n*0\r\n";
    assert_eq!(client.read(), format!(":1\r\n+OK\r\n{queued}{answer}$5\r\nafter\r\n"));
}

#[test]
fn one_mistake_forgets_it_all() {
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for wrong in [&["SET", "a", "b"][..], &["ECHO"], &["AUTH", "x", "y"], &["HELLO", "3"]] {
        let mut client = Client::mapped();
        assert_eq!(say(&mut client, &["MULTI"]), "+OK\r\n");
        assert_eq!(say(&mut client, &["POOL.REG", "p", "1"]), "+QUEUED\r\n");
        assert!(say(&mut client, wrong).starts_with("-ERR "), "{wrong:?}");
        assert_eq!(say(&mut client, &["POOL.REG", "p", "2"]), "+QUEUED\r\n");
        assert_eq!(say(&mut client, &["EXEC"]), aborted);
        assert!(client.session.poll_event().is_none());
        assert_eq!(say(&mut client, &["PING"]), "+PONG\r\n");
    }
    // What is wrong only when it is carried out is an element like any other.
    let mut client = Client::mapped();
    client.session.receive(&command(&["MULTI"]));
    client.session.receive(&command(&["POOL.REG", "p", "no number"]));
    client.session.receive(&command(&["PING"]));
    client.read();
    let told = say(&mut client, &["EXEC"]);
    assert!(told.starts_with("*2\r\n-ERR ") && told.ends_with("\r\n+PONG\r\n"), "{told}");
}

#[test]
fn begun_twice_ended_without_a_beginning_and_forgotten() {
    let mut client = Client::mapped();
    assert_eq!(say(&mut client, &["EXEC"]), "-ERR EXEC without MULTI\r\n");
    assert_eq!(say(&mut client, &["DISCARD"]), "-ERR DISCARD without MULTI\r\n");
    assert_eq!(say(&mut client, &["MULTI"]), "+OK\r\n");
    assert_eq!(say(&mut client, &["MULTI"]), "-ERR MULTI calls can not be nested\r\n");
    assert_eq!(say(&mut client, &["PING"]), "+QUEUED\r\n");
    assert_eq!(say(&mut client, &["DISCARD"]), "+OK\r\n");
    assert_eq!(say(&mut client, &["MULTI"]), "+OK\r\n");
    assert_eq!(say(&mut client, &["EXEC"]), "*0\r\n");
    assert_eq!(say(&mut client, &["MULTI"]), "+OK\r\n");
    assert_eq!(say(&mut client, &["RESET"]), "+RESET\r\n");
    assert_eq!(say(&mut client, &["EXEC"]), "-ERR EXEC without MULTI\r\n");
}

#[test]
fn a_transaction_has_an_end() {
    let limits = Limits { pipelined: 3, ..Limits::default() };
    let mut client = Client::with(false, false, limits);
    say(&mut client, &["MULTI"]);
    for _ in 0..3 {
        assert_eq!(say(&mut client, &["PING"]), "+QUEUED\r\n");
    }
    assert_eq!(say(&mut client, &["PING"]), "-ERR too much for one transaction\r\n");
    assert!(say(&mut client, &["EXEC"]).starts_with("-EXECABORT "));
    // A word counts 32 octets more than it has: 98 for each of the two commands.
    let limits = Limits { octets: 128, ..Limits::default() };
    let mut client = Client::with(false, false, limits);
    say(&mut client, &["MULTI"]);
    let word = "x".repeat(30);
    assert_eq!(say(&mut client, &["ECHO", &word]), "+QUEUED\r\n");
    assert_eq!(say(&mut client, &["ECHO", &word]), "-ERR too much for one transaction\r\n");
}
