//! Transactions.

use crate::client::{Client, SUM, command, given, number};
use model::{NumberState, PoolOperation, PoolOutcome};
use resp::{RespLimits, RespReply, RespRequest};

fn exchange(client: &mut Client, words: &[&str]) -> String {
    client.session.receive(&command(words));
    client.read()
}

#[test]
fn transaction_is_executed_and_answered_as_one() {
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
    assert!(client.session.poll_event().is_none(), "no query before EXEC");
    client.session.receive(last);
    let (call, _) = client.request();
    let (hangup, request) = client.request();
    let is_hangup = |operation: &PoolOperation| matches!(operation, PoolOperation::Hangup { number: one, ticket: None } if *one == number("1"));
    assert!(matches!(request, RespRequest::Operation { operation, .. } if is_hangup(&operation)));
    let done = RespReply::Outcome(PoolOutcome::Done(Some(NumberState::IdleUp)));
    client.session.answer(hangup, &done);
    client.session.answer(call, &given("1", 5));
    assert_eq!(client.read(), "", "answers keep their order");
    client.session.answer(before, &done);
    let queued = "+QUEUED\r\n".repeat(4);
    let answer = "*4\r\n$1\r\n1\r\n+PONG\r\n:1\r\n*0\r\n";
    assert_eq!(client.read(), format!(":1\r\n+OK\r\n{queued}{answer}$5\r\nafter\r\n"));
}

#[test]
fn error_aborts_the_transaction() {
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for wrong in [&["SET", "a", "b"][..], &["ECHO"], &["AUTH", "x", "y"], &["HELLO", "3"]] {
        let mut client = Client::mapped();
        assert_eq!(exchange(&mut client, &["MULTI"]), "+OK\r\n");
        assert_eq!(exchange(&mut client, &["POOL.REG", "p", "1"]), "+QUEUED\r\n");
        assert!(exchange(&mut client, wrong).starts_with("-ERR "), "{wrong:?}");
        assert_eq!(exchange(&mut client, &["POOL.REG", "p", "2"]), "+QUEUED\r\n");
        assert_eq!(exchange(&mut client, &["EXEC"]), aborted);
        assert!(client.session.poll_event().is_none());
        assert_eq!(exchange(&mut client, &["PING"]), "+PONG\r\n");
    }
    // An error at execution is an element of the reply.
    let mut client = Client::mapped();
    client.session.receive(&command(&["MULTI"]));
    client.session.receive(&command(&["POOL.REG", "p", "no number"]));
    client.session.receive(&command(&["PING"]));
    client.read();
    let reply_to = exchange(&mut client, &["EXEC"]);
    assert!(reply_to.starts_with("*2\r\n-ERR ") && reply_to.ends_with("\r\n+PONG\r\n"), "{reply_to}");
}

#[test]
fn nested_multi_exec_without_multi_and_discard() {
    let mut client = Client::mapped();
    assert_eq!(exchange(&mut client, &["EXEC"]), "-ERR EXEC without MULTI\r\n");
    assert_eq!(exchange(&mut client, &["DISCARD"]), "-ERR DISCARD without MULTI\r\n");
    assert_eq!(exchange(&mut client, &["MULTI"]), "+OK\r\n");
    assert_eq!(exchange(&mut client, &["MULTI"]), "-ERR MULTI calls can not be nested\r\n");
    assert_eq!(exchange(&mut client, &["PING"]), "+QUEUED\r\n");
    assert_eq!(exchange(&mut client, &["DISCARD"]), "+OK\r\n");
    assert_eq!(exchange(&mut client, &["MULTI"]), "+OK\r\n");
    assert_eq!(exchange(&mut client, &["EXEC"]), "*0\r\n");
    assert_eq!(exchange(&mut client, &["MULTI"]), "+OK\r\n");
    assert_eq!(exchange(&mut client, &["RESET"]), "+RESET\r\n");
    assert_eq!(exchange(&mut client, &["EXEC"]), "-ERR EXEC without MULTI\r\n");
}

#[test]
fn transaction_size_is_limited() {
    let limits = RespLimits { pipelined: 3, ..RespLimits::default() };
    let mut client = Client::with(false, false, limits);
    exchange(&mut client, &["MULTI"]);
    for _ in 0..3 {
        assert_eq!(exchange(&mut client, &["PING"]), "+QUEUED\r\n");
    }
    assert_eq!(exchange(&mut client, &["PING"]), "-ERR the transaction exceeds the limits\r\n");
    assert!(exchange(&mut client, &["EXEC"]).starts_with("-EXECABORT "));
    // Each word counts 32 octets more than its length: 98 for each command.
    let limits = RespLimits { octets: 128, ..RespLimits::default() };
    let mut client = Client::with(false, false, limits);
    exchange(&mut client, &["MULTI"]);
    let word = "x".repeat(30);
    assert_eq!(exchange(&mut client, &["ECHO", &word]), "+QUEUED\r\n");
    assert_eq!(exchange(&mut client, &["ECHO", &word]), "-ERR the transaction exceeds the limits\r\n");
}
