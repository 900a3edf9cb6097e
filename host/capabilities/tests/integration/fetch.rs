//! Requests of plugins to misbehaving servers on real sockets.

use capabilities::{
    Fetch, FetchFailure, FetchLimits, FetchRequest, FetchResponse, Fetcher, FetcherOptions, HttpGrant,
    HttpGrants,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn fetcher(runtime: &Runtime) -> Fetcher {
    Fetcher::new(runtime.handle().clone(), &FetcherOptions::default()).unwrap()
}

/// A server that calls `serve` for each connection, with the lines of the request and the connection.
fn server(serve: impl Fn(&[String], &mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || {
                let mut connection = connection.unwrap();
                let mut reader = BufReader::new(connection.try_clone().unwrap());
                let mut lines: Vec<String> = Vec::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    lines.push(line.trim_end().to_owned());
                }
                let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                reader.read_exact(&mut body).unwrap();
                lines.push(String::from_utf8(body).unwrap());
                serve(&lines, &mut connection);
            });
        }
    });
    address
}

/// A server that sends `answer` and then leaves the connection idle.
fn fixed_server(answer: &'static str) -> SocketAddr {
    server(move |_, connection| {
        let _ = connection.write_all(answer.as_bytes());
        wait_for_the_end(connection);
    })
}

fn wait_for_the_end(connection: &mut TcpStream) {
    let _ = connection.read(&mut [0]);
}

fn grants(address: SocketAddr, limits: FetchLimits) -> HttpGrants {
    HttpGrants { prefixes: vec![HttpGrant::parse(&format!("http://{address}/v1")).unwrap()], limits }
}

/// Long enough for a busy machine; for tests that do not depend on time.
fn long_timeouts() -> FetchLimits {
    FetchLimits { timeout: Duration::from_secs(60), ..FetchLimits::default() }
}

fn short_timeouts() -> FetchLimits {
    FetchLimits { timeout: Duration::from_millis(200), ..FetchLimits::default() }
}

fn get(address: SocketAddr, path: &str) -> FetchRequest {
    FetchRequest { method: "GET".into(), url: format!("http://{address}{path}"), ..FetchRequest::default() }
}

fn ask(address: SocketAddr, limits: FetchLimits) -> Result<FetchResponse, FetchFailure> {
    let runtime = runtime();
    fetcher(&runtime).fetch("p", &grants(address, limits), get(address, "/v1"))
}

#[test]
fn a_request_and_its_response_arrive_unchanged() {
    let address = server(|lines, connection| {
        let seen = lines.join("|");
        write!(connection, "HTTP/1.1 404 No\r\nX-Seen: Yes\r\ncontent-length: {}\r\n\r\n{seen}", seen.len())
            .unwrap();
    });
    let runtime = runtime();
    let fetcher = fetcher(&runtime);
    let request = FetchRequest {
        method: "POST".into(),
        url: format!("http://{address}/v1/imsi?number=49"),
        headers: vec![("X-Key".into(), "secret".into()), ("User-Agent".into(), "mine".into())],
        body: b"{}".to_vec(),
    };
    let response = fetcher.fetch("p", &grants(address, long_timeouts()), request).unwrap();
    assert_eq!(response.status, 404);
    assert!(response.headers.contains(&("x-seen".into(), "Yes".into())));
    let seen = String::from_utf8(response.body).unwrap();
    assert!(seen.starts_with("POST /v1/imsi?number=49 HTTP/1.1|"), "{seen}");
    assert!(seen.contains("|x-key: secret|") && seen.contains("|user-agent: mine|"), "{seen}");
    assert!(seen.ends_with("|{}") && !seen.contains("accept-encoding"), "{seen}");
    let (_, metrics) = &fetcher.metrics()[0];
    assert_eq!((metrics.answered, metrics.octets, metrics.in_flight), (1, seen.len() as u64, 0));
}

#[test]
fn a_hanging_server_times_out() {
    assert_eq!(ask(fixed_server(""), short_timeouts()), Err(FetchFailure::TimedOut));
    assert_eq!(ask(fixed_server("HTTP/1.1 200 OK\r\n"), short_timeouts()), Err(FetchFailure::TimedOut));
    assert_eq!(
        ask(fixed_server("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"), short_timeouts()),
        Err(FetchFailure::TimedOut)
    );
}

#[test]
fn a_trickling_server_times_out() {
    let address = server(|_, connection| {
        connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        let (_keep, never) = mpsc::channel::<()>();
        // An octet now and then, until the reader is gone.
        while connection.write_all(b"x").is_ok() {
            let _ = never.recv_timeout(Duration::from_millis(10));
        }
    });
    assert_eq!(ask(address, short_timeouts()), Err(FetchFailure::TimedOut));
}

#[test]
fn reading_stops_at_the_response_limit() {
    let (sent, total) = mpsc::channel();
    let address = server(move |_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n");
        let piece = vec![b'x'; 64 * 1024];
        let pieces = (0..16 * 1024).take_while(|_| connection.write_all(&piece).is_ok()).count();
        sent.send(pieces * piece.len()).unwrap();
    });
    assert_eq!(ask(address, long_timeouts()), Err(FetchFailure::TooLarge));
    let sent = total.recv().unwrap();
    assert!(sent < 64 << 20, "{sent} octets went into the connection before it was closed");
}

#[test]
fn an_answer_that_never_ends_is_too_large() {
    let address = server(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        while connection.write_all(b"10\r\n0123456789abcdef\r\n").is_ok() {}
    });
    assert_eq!(ask(address, long_timeouts()), Err(FetchFailure::TooLarge));
}

#[test]
fn headers_count_towards_the_response_limit() {
    let address = fixed_server("HTTP/1.1 200 OK\r\nx-long: 0123456789\r\ncontent-length: 4\r\n\r\nbody");
    // Two headers of 6+10 and 14+1 octets, and a body of 4.
    let limits = |response| FetchLimits { response, ..long_timeouts() };
    assert_eq!(ask(address, limits(35)).unwrap().body, b"body");
    assert_eq!(ask(address, limits(34)), Err(FetchFailure::TooLarge));
    assert_eq!(ask(address, limits(30)), Err(FetchFailure::TooLarge));
}

#[test]
fn endless_headers_make_an_invalid_response() {
    let address = server(|_, connection| {
        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n");
        while connection.write_all(b"x-more: and more\r\n").is_ok() {}
    });
    assert!(matches!(ask(address, long_timeouts()), Err(FetchFailure::Unreachable(_))));
}

#[test]
fn a_compressed_response_is_not_expanded() {
    let address = fixed_server("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nbomb");
    assert_eq!(ask(address, long_timeouts()).unwrap().body, b"bomb");
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = server(|_, _| panic!("this URL is not granted"));
    let address = server(move |_, connection| {
        write!(
            connection,
            "HTTP/1.1 302 Found\r\nlocation: http://{elsewhere}/\r\ncontent-length: 0\r\n\r\n"
        )
        .unwrap();
    });
    let response = ask(address, long_timeouts()).unwrap();
    assert_eq!(response.status, 302);
    assert!(response.headers.contains(&("location".into(), format!("http://{elsewhere}/"))));
}

#[test]
fn requests_without_a_grant_are_never_sent() {
    let address = server(|_, _| panic!("this request is not granted"));
    let runtime = runtime();
    let fetcher = fetcher(&runtime);
    let grants = grants(address, FetchLimits { request: 1_000, ..long_timeouts() });
    let header = |name: &str, value: &str| FetchRequest {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..get(address, "/v1")
    };
    let large = FetchRequest { body: vec![0; 1_000], ..get(address, "/v1") };
    let strange = FetchRequest { method: "CONNECT".into(), ..get(address, "/v1") };
    for (request, why) in [
        (get(address, "/v10"), "does not grant"),
        (get(address, "/v1/%2e%2e/admin"), "does not grant"),
        (get(address, "/v1/..%2fadmin"), "encodes a slash"),
        (header("Host", "elsewhere"), "plugins may not set the header host"),
        (header("content-length", "0"), "plugins may not set the header content-length"),
        (header("x", "1\r\n\r\nGET / HTTP/1.1"), "has an invalid character"),
        (strange, "method"),
        (large, "exceeds the 1000"),
    ] {
        let refused = fetcher.fetch("p", &grants, request).unwrap_err();
        assert!(matches!(&refused, FetchFailure::NotAllowed(text) if text.contains(why)), "{refused}");
    }
    assert!(matches!(
        fetcher.fetch("p", &HttpGrants::default(), get(address, "/v1")),
        Err(FetchFailure::NotAllowed(_))
    ));
    assert_eq!(fetcher.metrics()[0].1.not_allowed, 9);
}

#[test]
fn closed_ports_and_unknown_hosts_are_unreachable() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    assert!(matches!(ask(nobody, long_timeouts()), Err(FetchFailure::NotConnected(_))));
    let closes = server(|_, _| ());
    assert!(matches!(ask(closes, long_timeouts()), Err(FetchFailure::Unreachable(_))));
    assert!(matches!(
        ask(fixed_server("nonsense\r\n\r\n"), long_timeouts()),
        Err(FetchFailure::Unreachable(_))
    ));

    let runtime = runtime();
    let nowhere = HttpGrant::parse("http://nowhere.invalid").unwrap();
    let grants = HttpGrants { prefixes: vec![nowhere], limits: long_timeouts() };
    let request = FetchRequest {
        method: "GET".into(),
        url: "http://nowhere.invalid/".into(),
        ..FetchRequest::default()
    };
    let failure = fetcher(&runtime).fetch("p", &grants, request).unwrap_err();
    assert!(matches!(&failure, FetchFailure::NotConnected(why) if why.contains("dns")), "{failure}");
}

#[test]
fn a_request_over_the_limit_fails_at_once_for_this_plugin_only() {
    let (arrived, waiting) = mpsc::channel();
    let address = server(move |_, connection| {
        arrived.send(()).unwrap();
        wait_for_the_end(connection);
    });
    let answers = fixed_server("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let runtime = runtime();
    let fetcher = fetcher(&runtime);
    let limits = FetchLimits { timeout: Duration::from_secs(3), max_in_flight: 2, ..FetchLimits::default() };
    std::thread::scope(|scope| {
        let hanging: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| fetcher.fetch("p", &grants(address, limits), get(address, "/v1"))))
            .collect();
        waiting.recv().unwrap();
        waiting.recv().unwrap();
        let third = fetcher.fetch("p", &grants(answers, limits), get(answers, "/v1"));
        assert_eq!(third, Err(FetchFailure::NotConnected("busy".into())));
        assert!(fetcher.fetch("q", &grants(answers, long_timeouts()), get(answers, "/v1")).is_ok());
        for hanging in hanging {
            assert_eq!(hanging.join().unwrap(), Err(FetchFailure::TimedOut));
        }
    });
    assert!(
        fetcher
            .fetch(
                "p",
                &grants(answers, FetchLimits { max_in_flight: 2, ..long_timeouts() }),
                get(answers, "/v1")
            )
            .is_ok()
    );
    let metrics = fetcher.metrics().into_iter().find(|(plugin, _)| plugin == "p").unwrap().1;
    assert_eq!((metrics.busy, metrics.timed_out, metrics.answered, metrics.in_flight), (1, 2, 1, 0));
}

#[test]
fn a_call_on_a_runtime_thread_returns() {
    let address = fixed_server("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fetcher = Fetcher::new(runtime.handle().clone(), &FetcherOptions::default()).unwrap();
    let result = runtime
        .block_on(async { fetcher.fetch("p", &grants(address, short_timeouts()), get(address, "/v1")) });
    assert_eq!(result, Err(FetchFailure::TimedOut), "the call times out instead of hanging");
}

#[test]
fn a_configured_authority_is_trusted() {
    let authority = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let pem = authority.cert.pem().into_bytes();
    let key = tokio_rustls::rustls::pki_types::PrivateKeyDer::try_from(authority.signing_key.serialize_der())
        .unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = tokio_rustls::rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![authority.cert.der().clone()], key)
        .unwrap();
    let runtime = runtime();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    runtime.spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            let Ok(mut connection) = acceptor.accept(connection).await else { continue };
            let _ = connection.read(&mut [0; 1024]).await;
            let _ = connection.write_all(b"HTTP/1.1 204 No\r\n\r\n").await;
            let _ = connection.flush().await;
        }
    });
    let grant = HttpGrant::parse(&format!("https://localhost:{port}")).unwrap();
    let grants = HttpGrants { prefixes: vec![grant], limits: long_timeouts() };
    let request = || FetchRequest {
        method: "GET".into(),
        url: format!("https://localhost:{port}/"),
        ..FetchRequest::default()
    };
    let stranger = fetcher(&runtime).fetch("p", &grants, request()).unwrap_err();
    assert!(
        matches!(&stranger, FetchFailure::NotConnected(why) if why.contains("certificate")),
        "{stranger}"
    );
    let options = FetcherOptions { authorities: vec![pem] };
    let trusting = Fetcher::new(runtime.handle().clone(), &options).unwrap();
    assert_eq!(trusting.fetch("p", &grants, request()).unwrap().status, 204);
    assert!(
        Fetcher::new(runtime.handle().clone(), &FetcherOptions { authorities: vec![b"x".to_vec()] }).is_err()
    );
}
