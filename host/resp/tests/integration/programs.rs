//! Recorded sessions of redis-cli and redis-benchmark of Debian 12, and of redis-py 8.1.0.

use crate::client::{Client, SUM, command, given, number, pool};
use model::PoolOperation;
use resp::RespRequest;

/// Sends each line and checks the beginning of its reply.
fn exchange(client: &mut Client, lines: &[(&str, &str)]) {
    for (line, answer) in lines {
        client.session.receive(&command(&line.split(' ').collect::<Vec<_>>()));
        let reply_to = client.read();
        assert!(reply_to.starts_with(answer), "{line}: {reply_to:?}");
    }
}

#[test]
fn redis_cli_requests_command_docs() {
    let mut client = Client::mapped();
    exchange(
        &mut client,
        &[("COMMAND DOCS", "*72\r\n"), ("PING", "+PONG\r\n"), ("GET x", "-ERR unknown command 'GET', with ")],
    );
    let mut client = Client::mapped();
    exchange(&mut client, &[("HELLO 3", "%7\r\n$6\r\nserver\r\n"), ("COMMAND DOCS", "%36\r\n")]);
}

#[test]
fn redis_py_handshake() {
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

/// It calls by SHA-1 first, and loads the script after `NOSCRIPT`.
#[test]
fn redis_py_loads_an_unknown_script() {
    let mut client = Client::new(true, false);
    let call = ["EVALSHA", "156d7b452138ffa8a5997f412b13048442722a5a", "1", "{pool}", "reg", "55"];
    client.session.receive(&command(&call));
    assert!(client.read().starts_with("-NOSCRIPT "));
    client.session.receive(&command(&["SCRIPT", "LOAD", "return redis.call(\"x\")"]));
    assert_eq!(client.read(), "$40\r\n156d7b452138ffa8a5997f412b13048442722a5a\r\n");
    client.session.receive(&command(&call));
    let request_of = client.request().1;
    let operation = PoolOperation::Reg { number: number("55") };
    assert_eq!(request_of, RespRequest::Operation { pool: pool("pool"), operation });
}

#[test]
fn redis_benchmark_reads_settings_and_pipelines() {
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
