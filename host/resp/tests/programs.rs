//! What well-known programs send, word by word, and what they are told: recorded from redis-cli and redis-benchmark of
//! Debian 12 and from Python's redis 8.1.0.
#![allow(clippy::unwrap_used, clippy::panic)]

mod client;

use client::{Client, SUM, command, given, number, pool};
use model::PoolOperation;
use resp::Request;

/// Sends each line of words and looks at how its answer begins.
fn exchange(client: &mut Client, lines: &[(&str, &str)]) {
    for (line, answer) in lines {
        client.session.receive(&command(&line.split(' ').collect::<Vec<_>>()));
        let told = client.read();
        assert!(told.starts_with(answer), "{line}: {told:?}");
    }
}

#[test]
fn redis_cli_asks_for_the_documents_of_commands() {
    let mut client = Client::mapped();
    exchange(
        &mut client,
        &[("COMMAND DOCS", "*72\r\n"), ("PING", "+PONG\r\n"), ("GET x", "-ERR unknown command 'GET', with ")],
    );
    let mut client = Client::mapped();
    exchange(&mut client, &[("HELLO 3", "%7\r\n$6\r\nserver\r\n"), ("COMMAND DOCS", "%36\r\n")]);
}

#[test]
fn python_introduces_itself() {
    let own = [
        ("CLIENT SETNAME x", "+OK\r\n"),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n"),
        ("CLIENT SETINFO LIB-VER 8.1.0", "+OK\r\n"),
        ("PING", "+PONG\r\n"),
        ("CLIENT GETNAME", "$1\r\nx\r\n"),
    ];
    exchange(&mut Client::mapped(), &own);
    let mut client = Client::mapped();
    let refused = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n";
    exchange(
        &mut client,
        &[
            ("HELLO 3", "%7\r\n"),
            ("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-fqdn", refused),
        ],
    );
    exchange(&mut client, &own);
}

/// It calls by the sum first and loads the script when it hears `NOSCRIPT`.
#[test]
fn python_loads_a_script_that_is_not_known() {
    let mut client = Client::new(true, false);
    let call = ["EVALSHA", "156d7b452138ffa8a5997f412b13048442722a5a", "1", "{pool}", "reg", "55"];
    client.session.receive(&command(&call));
    assert!(client.read().starts_with("-NOSCRIPT "));
    client.session.receive(&command(&["SCRIPT", "LOAD", "return redis.call(\"x\")"]));
    assert_eq!(client.read(), "$40\r\n156d7b452138ffa8a5997f412b13048442722a5a\r\n");
    client.session.receive(&command(&call));
    let asked = client.request().1;
    let operation = PoolOperation::Reg { number: number("55") };
    assert_eq!(asked, Request::Operation { pool: pool("pool"), operation });
}

#[test]
fn redis_benchmark_asks_for_settings_and_then_calls_in_heaps() {
    let mut client = Client::mapped();
    let settings = [command(&["CONFIG", "GET", "save"]), command(&["CONFIG", "GET", "appendonly"])].concat();
    client.session.receive(&settings);
    assert_eq!(
        client.read(),
        "-ERR unknown command 'CONFIG', with args beginning with: 'GET' 'save' \r\n\
         -ERR unknown command 'CONFIG', with args beginning with: 'GET' 'appendonly' \r\n"
    );
    client.session.receive(b"PING\r\n");
    assert_eq!(client.read(), "+PONG\r\n");
    client.session.receive(&command(&["EVALSHA", SUM, "1", "{pool}", "call"]).repeat(16));
    let first = client.request().0;
    for after in 1..16 {
        assert_eq!(client.request().0, first.after(after));
    }
    client.session.answer_all(first, vec![given("123456", 1); 16]);
    assert_eq!(client.read(), "$6\r\n123456\r\n".repeat(16));
}
