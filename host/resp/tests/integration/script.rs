//! Legacy script calls.

use crate::client::{self, Client, SUM, command, given, number};
use model::{AcquireRequest, NumberState, PoolOperation, PoolOutcome, PoolRefusal};
use resp::{RespReply, RespRequest};
use std::time::Duration;

fn pool(operation: PoolOperation) -> RespRequest {
    RespRequest::Operation { pool: client::pool("sales"), operation }
}

fn done(state: Option<NumberState>) -> RespReply {
    RespReply::Outcome(PoolOutcome::Done(state))
}

fn refused(why: PoolRefusal) -> RespReply {
    RespReply::Outcome(PoolOutcome::Refused(why))
}

#[test]
fn script_events_return_the_legacy_replies() {
    let number = number("123456");
    let failed = || refused(PoolRefusal::NotInPool);
    let busy = || refused(PoolRefusal::AllBusy { remaining: Some(Duration::from_millis(5)) });
    let named = || PoolOperation::Call(AcquireRequest { number: Some(number), ..AcquireRequest::default() });
    let any = || PoolOperation::Call(AcquireRequest::default());
    let hangup = || PoolOperation::Hangup { number, ticket: None };
    let table = [
        (
            vec!["add", "123456"],
            PoolOperation::Add { number, weight: None },
            done(Some(NumberState::IdleDown)),
            "$1\r\n1\r\n",
        ),
        (vec!["add", "123456"], PoolOperation::Add { number, weight: None }, failed(), "$1\r\n0\r\n"),
        (vec!["del", "123456"], PoolOperation::Del { number }, done(None), "$1\r\n1\r\n"),
        (vec!["reg", "123456"], PoolOperation::Reg { number }, failed(), "$1\r\n0\r\n"),
        (
            vec!["unreg", "123456"],
            PoolOperation::Unreg { number },
            done(Some(NumberState::BusyDown)),
            "$1\r\n1\r\n",
        ),
        (
            vec!["hangup", "123456"],
            hangup(),
            refused(PoolRefusal::WrongState(NumberState::IdleUp)),
            "$1\r\n0\r\n",
        ),
        (vec!["call"], any(), given("123456", 9), "$6\r\n123456\r\n"),
        (vec!["CALL"], any(), busy(), "$-1\r\n"),
        (vec!["call", "123456"], named(), given("123456", 9), "$6\r\n123456\r\n"),
        (vec!["call", "123456"], named(), refused(PoolRefusal::WrongState(NumberState::BusyUp)), "$-1\r\n"),
        (vec!["call", "123456"], named(), failed(), "$-1\r\n"),
    ];
    for key in ["{sales}", "sales"] {
        for (arguments, operation, outcome, returned) in &table {
            let mut client = Client::mapped();
            let mut words = vec!["EVALSHA", SUM, "1", key];
            words.extend(arguments);
            client.session.receive(&command(&words));
            let (ticket, request) = client.request();
            assert_eq!(request, pool(operation.clone()));
            assert_eq!(client.read(), "");
            client.session.answer(ticket, outcome);
            assert_eq!(client.read(), *returned, "{arguments:?}");
        }
    }
}

#[test]
fn new_refusals_are_errors_in_script_calls() {
    let mut client = Client::mapped();
    client.session.receive(&command(&["EVALSHA", SUM, "1", "{sales}", "add", "1"]));
    let (ticket, _) = client.request();
    client.session.answer(ticket, &refused(PoolRefusal::Full));
    assert!(client.read().starts_with("-FAIL the limit of pool numbers is reached"));
}

#[test]
fn unknown_sha1_is_noscript() {
    let mut client = Client::mapped();
    let other = "a".repeat(40);
    for sum in [other.as_str(), "short"] {
        client.session.receive(&command(&["evalsha", sum, "1", "p", "call"]));
        assert_eq!(client.read(), "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    }
}

#[test]
fn loaded_script_is_mapped_only_if_configured() {
    // The SHA-1 sum of `return 1` from Redis's documentation and sha1sum.
    let sum = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    for any in [false, true] {
        let mut client = Client::new(any, false);
        client.session.receive(&command(&["SCRIPT", "LOAD", "return 1"]));
        assert_eq!(client.read(), format!("$40\r\n{sum}\r\n"));
        client.session.receive(&command(&["SCRIPT", "EXISTS", sum, SUM, &"b".repeat(40)]));
        assert_eq!(client.read(), "*3\r\n:1\r\n:1\r\n:0\r\n");
        client.session.receive(&command(&["EVALSHA", sum, "1", "{sales}", "call"]));
        if any {
            assert_eq!(client.request().1, pool(PoolOperation::Call(AcquireRequest::default())));
        } else {
            assert!(client.read().starts_with("-ERR Lua scripts are not executed"));
        }
    }
}

#[test]
fn invalid_script_calls_are_errors() {
    let table: [(&[&str], &str); 7] = [
        (&["x", "{p}", "call"], "-ERR value is not an integer or out of range"),
        (&["-1", "{p}", "call"], "-ERR Number of keys can't be negative"),
        (&["3", "{p}", "call"], "-ERR Number of keys can't be greater than number of args"),
        (&["0", "call"], "-ERR the script takes one key, the pool"),
        (&["1", "{p}", "add"], "-ERR this event needs a number"),
        (&["1", "{p}", "sell"], "-ERR unknown event; known are add, del, reg, unreg, call and hangup"),
        (&["1", "{p}", "call", "1", "2"], "-ERR the script takes an event and at most one number"),
    ];
    for (rest, error) in table {
        let mut client = Client::mapped();
        let mut words = vec!["EVALSHA", SUM];
        words.extend(rest);
        client.session.receive(&command(&words));
        assert_eq!(client.read(), format!("{error}\r\n"));
    }
}

#[test]
fn plain_replies_are_integers_and_words() {
    for (outcome, returned) in [(done(None), ":1\r\n"), (refused(PoolRefusal::NotInPool), ":0\r\n")] {
        let mut client = Client::plain();
        client.session.receive(&command(&["EVALSHA", SUM, "1", "{p}", "del", "1"]));
        let (ticket, _) = client.request();
        client.session.answer(ticket, &outcome);
        assert_eq!(client.read(), returned);
    }
    let mut client = Client::plain();
    client.session.receive(&command(&["HGET", "{p}:numstate", "1"]));
    let (ticket, _) = client.request();
    client.session.answer(ticket, &RespReply::State(NumberState::BusyUp));
    assert_eq!(client.read(), "$7\r\nbusy+up\r\n");
}
