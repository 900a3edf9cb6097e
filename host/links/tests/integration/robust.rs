//! Misbehaving peers, TLS, and shutdown.

use crate::support::{
    self, RawPeer, account, bind, bound_peer, fixture, fixture_with, hello, listener, message, open_fixture,
    within,
};
use bytes::Bytes;
use engine::{EngineAnswer, Event};
use links::BindMode::{Transceiver, Transmitter};
use links::{
    ClientTls, LinkPhase, LinksOptions, ListenerOptions, PeerOptions, ServerTlsFiles, ShutdownLeftover,
};
use model::{MessageId, Outcome};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::ServerName;
use rustls_pki_types::pem::PemObject;
use smpp::{CommandStatus, Request, Response, Sm, Tlvs, tag};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

#[tokio::test]
async fn check_004_005_028_silence_before_the_bind_and_inside_a_pdu() {
    let fixture = fixture().await;
    fixture.links.set_account(account()).unwrap();
    let mut options = listener();
    options.bind_timeout = Duration::from_millis(60);
    options.partial_timeout = Duration::from_millis(60);
    let address = fixture.links.listen(options).await.unwrap();
    let mut other = RawPeer::bound(address, Transmitter).await;
    let mut silent = RawPeer::connect(address).await;
    let mut three = RawPeer::connect(address).await;
    three.write(&[0, 0, 0]).await;
    let mut half = RawPeer::bound(address, Transmitter).await;
    half.write(&[0, 0, 0, 62, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2]).await;
    for raw in [&mut silent, &mut three, &mut half] {
        raw.closed().await;
    }
    assert_eq!(other.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
}

#[tokio::test]
async fn check_006_009_garbage_closes_its_own_connection_only() {
    let (_fixture, address) = open_fixture().await;
    let mut other = RawPeer::bound(address, Transmitter).await;
    let mut http = RawPeer::connect(address).await;
    http.write(b"GET / HTTP/1.1\r\n\r\n").await;
    let (header, _) = http.receive().await.unwrap();
    assert_eq!((support::is_nack(header), header.status), (true, CommandStatus::RINVCMDLEN));
    http.closed().await;
    assert_eq!(other.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
}

#[tokio::test]
async fn check_059_shutdown_answers_open_requests_and_unbinds_all() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transceiver).await;
    let (link, ..) = fixture.link_up().await;
    let submitted = raw.request(&Request::SubmitSm(hello())).await;
    let (_, reply) = fixture.accept().await;
    let fixture = Arc::new(fixture);
    let end = tokio::spawn({
        let fixture = fixture.clone();
        async move { fixture.links.shutdown(Duration::from_secs(10)).await }
    });
    assert!(matches!(fixture.event().await, Event::LinkPaused { link: paused } if paused == link));
    within(async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    fixture.answer(reply, EngineAnswer::Accepted(MessageId::FIRST));
    let (header, _) = raw.answer().await;
    assert_eq!((header.sequence, header.status), (submitted, CommandStatus::ROK));
    let (header, request) = raw.next_request().await;
    assert_eq!(request, Request::Unbind);
    raw.respond(header, CommandStatus::ROK, &Response::Empty).await;
    raw.closed().await;
    drop(raw);
    assert_eq!(within(end).await.unwrap(), ShutdownLeftover::default());
}

#[tokio::test]
async fn check_059_shutdown_times_out() {
    let (fixture, _smsc, mut raw, link) = bound_peer(|_| {}).await;
    fixture.send(link, message(1, b"x"));
    raw.sm().await;
    let left = within(fixture.links.shutdown(Duration::from_millis(200))).await;
    assert_eq!(left, ShutdownLeftover::default(), "the link was closed, and what was on it is accounted for");
    assert_eq!(raw.next_request().await.1, Request::Unbind);
    loop {
        match fixture.event().await {
            Event::Outcome { id, outcome, .. } => {
                assert_eq!(
                    (id, outcome),
                    (MessageId(1), Outcome::Unanswered { taken: Vec::new(), known: Vec::new() })
                );
            }
            Event::LinkDown { .. } => break,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_panic_costs_one_link_and_is_reported_to_the_engine() {
    let (fixture, address) = open_fixture().await;
    let mut other = RawPeer::bound(address, Transmitter).await;
    let mut raw = RawPeer::bound(address, Transceiver).await;
    let (link, ..) = fixture.link_up().await;
    let fault = Request::SubmitSm(Sm { short_message: Bytes::from_static(support::FAULT), ..hello() });
    raw.request(&fault).await;
    assert!(matches!(fixture.event().await, Event::LinkDown { link: down } if down == link));
    raw.closed().await;
    assert_eq!(other.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
    // On an outgoing link: the peer is dialed again.
    let (fixture, smsc, mut raw, _) = bound_peer(|_| {}).await;
    let Request::SubmitSm(sm) = fault else { unreachable!() };
    raw.request(&Request::DeliverSm(sm)).await;
    assert!(matches!(fixture.event().await, Event::LinkDown { .. }));
    smsc.accept().await.take_bind().await;
    fixture.link_up().await;
}

#[tokio::test]
async fn check_092_a_client_that_does_not_read_is_closed_and_others_are_not_affected() {
    let fixture =
        fixture_with(LinksOptions { write_timeout: Duration::from_millis(200), ..LinksOptions::default() })
            .await;
    fixture.links.set_account(links::LinkAccountOptions { deliver_window: 2000, ..account() }).unwrap();
    let address = fixture.links.listen(listener()).await.unwrap();
    let stuck = RawPeer::bound(address, Transceiver).await;
    let (link, ..) = fixture.link_up().await;
    let mut other = RawPeer::bound(address, Transmitter).await;
    // More than any socket buffer can hold, in messages of 60 kB.
    let text = vec![b'a'; 60_000];
    for number in 1..=300 {
        fixture.send(link, message(number, &text));
    }
    assert_eq!(other.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
    let (mut unanswered, mut not_sent) = (0, 0);
    loop {
        match fixture.event().await {
            Event::Outcome { outcome: Outcome::Unanswered { .. }, .. } => unanswered += 1,
            Event::Outcome { outcome: Outcome::NotSent, .. } => not_sent += 1,
            Event::LinkDown { .. } => break,
            _ => {}
        }
    }
    assert_eq!(unanswered + not_sent, 300);
    assert!(unanswered > 0 && not_sent > 0, "{unanswered} {not_sent}");
    assert_eq!(other.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
    drop(stuck);
}

#[tokio::test]
async fn check_011_a_payload_of_65535_octets() {
    let (fixture, address) = open_fixture().await;
    let mut raw = RawPeer::bound(address, Transmitter).await;
    let tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, &vec![b'A'; 65_535]);
    raw.request(&Request::SubmitSm(Sm { short_message: Bytes::new(), tlvs, ..hello() })).await;
    assert_eq!(fixture.accept().await.0.text.octets.len(), 65_535);
}

#[tokio::test]
async fn check_143_idle_connections_are_limited_by_address_and_in_total() {
    let fixture = fixture().await;
    fixture.links.set_account(account()).unwrap();
    let per_address = ListenerOptions { connections_per_address: 3, ..listener() };
    let in_total = ListenerOptions { connections: 2, name: "small".into(), ..listener() };
    for (options, limit) in [(per_address, 3), (in_total, 2)] {
        let name = options.name.clone();
        let address = fixture.links.listen(options).await.unwrap();
        let mut open = Vec::new();
        for _ in 1..limit {
            open.push(RawPeer::bound(address, Transmitter).await);
        }
        // The oldest unbound connection is displaced by a new one.
        let mut unbound = RawPeer::connect(address).await;
        // An answer shows that the connection has its permit.
        assert_eq!(unbound.ask(&support::enquire()).await.0.status, CommandStatus::ROK);
        let last = RawPeer::bound(address, Transmitter).await;
        unbound.closed().await;
        open.push(last);
        // Bound connections are not displaced.
        RawPeer::connect(address).await.closed().await;
        assert_eq!(open[0].ask(&support::enquire()).await.0.status, CommandStatus::ROK);
        drop(open);
        // A permit is released when the connection's task has seen the end.
        within(async {
            loop {
                let mut raw = RawPeer::connect(address).await;
                raw.request(&support::enquire()).await;
                if raw.receive().await.is_some() {
                    break;
                }
            }
        })
        .await;
        fixture.links.close_listener(&name);
    }
    assert!(fixture.links.listener_counts().turned_away >= 2);
}

#[tokio::test]
async fn check_144_too_many_wrong_binds_block_one_account_only() {
    let fixture = fixture().await;
    fixture.links.set_account(account()).unwrap();
    let mut other = account();
    (other.name, other.system_id) = ("other".to_owned(), Bytes::from_static(b"other"));
    other.peer = model::PeerId(3);
    fixture.links.set_account(other).unwrap();
    let address = fixture.links.listen(listener()).await.unwrap();
    let guess =
        |number: u32| smpp::Bind { password: Bytes::from(format!("guess{number}")), ..bind(Transmitter) };
    for number in 0..10 {
        let mut raw = RawPeer::connect(address).await;
        assert_eq!(raw.bind(guess(number)).await.0.status, CommandStatus::RINVPASWD);
    }
    let mut raw = RawPeer::connect(address).await;
    assert_eq!(raw.bind(guess(10)).await.0.status, CommandStatus::RBINDFAIL);
    let mut raw = RawPeer::connect(address).await;
    let right = smpp::Bind { system_id: Bytes::from_static(b"other"), ..bind(Transmitter) };
    assert_eq!(raw.bind(right).await.0.status, CommandStatus::ROK);
}

/// A root certificate, and a certificate for localhost signed by it, as files.
struct Certificates {
    ca: PathBuf,
    chain: PathBuf,
    key: PathBuf,
}

fn certificates(directory: &Path, expired: bool) -> Certificates {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    if expired {
        leaf.not_before = rcgen::date_time_ymd(2020, 1, 1);
        leaf.not_after = rcgen::date_time_ymd(2021, 1, 1);
    }
    let leaf_key = KeyPair::generate().unwrap();
    let certificate = leaf.signed_by(&leaf_key, &issuer).unwrap();
    let file = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    Certificates {
        ca: file("ca.pem", root.pem()),
        chain: file("chain.pem", certificate.pem()),
        key: file("key.pem", leaf_key.serialize_pem()),
    }
}

fn crypto_provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn trusting(ca: &Path) -> tokio_rustls::TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls_pki_types::CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tokio_rustls::TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn tls_towards_esmes_with_and_without_their_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let files = certificates(directory.path(), false);
    let fixture = fixture().await;
    fixture.links.set_account(account()).unwrap();
    let tls = ServerTlsFiles { certificate: files.chain.clone(), key: files.key.clone(), client_ca: None };
    let address =
        fixture.links.listen(ListenerOptions { tls: Some(tls.clone()), ..listener() }).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let stream = within(trusting(&files.ca).connect(name.clone(), stream)).await.unwrap();
    let mut raw = RawPeer::over(stream);
    assert_eq!(raw.bind(bind(Transceiver)).await.0.status, CommandStatus::ROK);
    let (link, ..) = fixture.link_up().await;
    fixture.send(link, message(1, &vec![b'a'; 60_000]));
    assert_eq!(raw.sm().await.1.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap().len(), 60_000);
    assert!(fixture.state(|state| state.phase == LinkPhase::Bound).await.tls);

    // A listener that requires certificates refuses a client without one.
    let strict = ServerTlsFiles { client_ca: Some(files.ca.clone()), ..tls };
    let options = ListenerOptions { tls: Some(strict), name: "strict".into(), ..listener() };
    let address = fixture.links.listen(options).await.unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    // In TLS 1.3 the client learns of it with its first read.
    if let Ok(stream) = within(trusting(&files.ca).connect(name, stream)).await {
        let mut raw = RawPeer::over(stream);
        assert!(raw.receive().await.is_none());
    }
    within(async {
        while fixture.links.listener_counts().handshakes_failed == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn check_148_tls_towards_peers_and_an_expired_certificate() {
    for expired in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let files = certificates(directory.path(), expired);
        let config = rustls::ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![rustls_pki_types::CertificateDer::from_pem_file(&files.chain).unwrap()],
                rustls_pki_types::PrivateKeyDer::from_pem_file(&files.key).unwrap(),
            )
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let fixture = fixture().await;
        let smsc = support::Smsc::open().await;
        let tls = ClientTls {
            ca: Some(files.ca.clone()),
            server_name: Some("localhost".into()),
            ..ClientTls::default()
        };
        fixture.links.set_peer(PeerOptions { tls: Some(tls), ..smsc.options() }).unwrap();
        let accepted = within(acceptor.accept(smsc.accept().await.stream)).await;
        if expired {
            let state = fixture.state(|state| state.phase == LinkPhase::BackingOff).await;
            let error = state.last_error.unwrap();
            assert!(error.contains("certificate") && error.contains("xpired"), "{error}");
        } else {
            let mut raw = RawPeer::over(accepted.unwrap());
            raw.take_bind().await;
            fixture.link_up().await;
        }
    }
}

#[tokio::test]
async fn tls_files_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let files = certificates(directory.path(), false);
    let fixture = fixture().await;
    let wrong = ServerTlsFiles { certificate: files.key.clone(), key: files.key.clone(), client_ca: None };
    let error = fixture.links.listen(ListenerOptions { tls: Some(wrong), ..listener() }).await.unwrap_err();
    assert!(error.to_string().contains("key.pem"), "{error}");
    let missing =
        ServerTlsFiles { certificate: files.chain, key: directory.path().join("no.pem"), client_ca: None };
    let error = fixture.links.listen(ListenerOptions { tls: Some(missing), ..listener() }).await.unwrap_err();
    assert!(error.to_string().contains("no.pem"), "{error}");
}
