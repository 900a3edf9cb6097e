//! Peers that misbehave, TLS, and the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails is to stop here"
)]

mod support;

use bytes::Bytes;
use engine::{Answer, Event};
use links::BindMode::{Transceiver, Transmitter};
use links::{ClientTls, Leftover, LinksOptions, ListenerOptions, PeerOptions, Phase, ServerTls};
use model::{MessageId, Outcome};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::ServerName;
use rustls_pki_types::pem::PemObject;
use smpp::{Request, Response, Sm, Status, Tlvs, tag};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use support::{
    Raw, account, bind, bound_peer, hello, house, house_with, listener, message, open_house, within,
};
use tokio::net::TcpStream;

#[tokio::test]
async fn check_004_005_028_silence_before_the_bind_and_inside_a_pdu() {
    let house = house().await;
    house.links.set_account(account()).unwrap();
    let mut options = listener();
    options.bind_timeout = Duration::from_millis(60);
    options.partial_timeout = Duration::from_millis(60);
    let address = house.links.listen(options).await.unwrap();
    let mut other = Raw::bound(address, Transmitter).await;
    let mut silent = Raw::connect(address).await;
    let mut three = Raw::connect(address).await;
    three.write(&[0, 0, 0]).await;
    let mut half = Raw::bound(address, Transmitter).await;
    half.write(&[0, 0, 0, 62, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2]).await;
    for raw in [&mut silent, &mut three, &mut half] {
        raw.closed().await;
    }
    assert_eq!(other.ask(&support::enquire()).await.0.status, Status::ROK);
}

#[tokio::test]
async fn check_006_009_garbage_closes_its_own_connection_only() {
    let (_house, address) = open_house().await;
    let mut other = Raw::bound(address, Transmitter).await;
    let mut http = Raw::connect(address).await;
    http.write(b"GET / HTTP/1.1\r\n\r\n").await;
    let (header, _) = http.receive().await.unwrap();
    assert_eq!((support::is_nack(header), header.status), (true, Status::RINVCMDLEN));
    http.closed().await;
    assert_eq!(other.ask(&support::enquire()).await.0.status, Status::ROK);
}

#[tokio::test]
async fn check_059_shutdown_answers_what_is_owed_and_unbinds_all() {
    let (house, address) = open_house().await;
    let mut raw = Raw::bound(address, Transceiver).await;
    let (link, ..) = house.link_up().await;
    let submitted = raw.request(&Request::SubmitSm(hello())).await;
    let (_, reply) = house.accept().await;
    let house = Arc::new(house);
    let end = tokio::spawn({
        let house = house.clone();
        async move { house.links.shutdown(Duration::from_secs(10)).await }
    });
    assert!(matches!(house.event().await, Event::LinkPaused { link: paused } if paused == link));
    within(async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    house.answer(reply, Answer::Accepted(MessageId::FIRST));
    let (header, _) = raw.answer().await;
    assert_eq!((header.sequence, header.status), (submitted, Status::ROK));
    let (header, request) = raw.asked().await;
    assert_eq!(request, Request::Unbind);
    raw.respond(header, Status::ROK, &Response::Empty).await;
    raw.closed().await;
    drop(raw);
    assert_eq!(within(end).await.unwrap(), Leftover::default());
}

#[tokio::test]
async fn check_059_shutdown_does_not_wait_for_ever() {
    let (house, _smsc, mut raw, link) = bound_peer(|_| {}).await;
    house.send(link, message(1, b"x"));
    raw.sm().await;
    let left = within(house.links.shutdown(Duration::from_millis(200))).await;
    assert_eq!(left, Leftover::default(), "the link was closed, and what was on it is accounted for");
    assert_eq!(raw.asked().await.1, Request::Unbind);
    loop {
        match house.event().await {
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
async fn a_fault_of_ours_costs_one_link_and_the_engine_hears_of_it() {
    let (house, address) = open_house().await;
    let mut other = Raw::bound(address, Transmitter).await;
    let mut raw = Raw::bound(address, Transceiver).await;
    let (link, ..) = house.link_up().await;
    let fault = Request::SubmitSm(Sm { short_message: Bytes::from_static(support::FAULT), ..hello() });
    raw.request(&fault).await;
    assert!(matches!(house.event().await, Event::LinkDown { link: down } if down == link));
    raw.closed().await;
    assert_eq!(other.ask(&support::enquire()).await.0.status, Status::ROK);
    // On a link of ours: the peer is dialled again.
    let (house, smsc, mut raw, _) = bound_peer(|_| {}).await;
    let Request::SubmitSm(sm) = fault else { unreachable!() };
    raw.request(&Request::DeliverSm(sm)).await;
    assert!(matches!(house.event().await, Event::LinkDown { .. }));
    smsc.accept().await.take_bind().await;
    house.link_up().await;
}

#[tokio::test]
async fn check_092_a_client_that_does_not_read_is_dropped_and_others_do_not_notice() {
    let house =
        house_with(LinksOptions { write_timeout: Duration::from_millis(200), ..LinksOptions::default() })
            .await;
    house.links.set_account(links::AccountOptions { deliver_window: 2000, ..account() }).unwrap();
    let address = house.links.listen(listener()).await.unwrap();
    let stuck = Raw::bound(address, Transceiver).await;
    let (link, ..) = house.link_up().await;
    let mut other = Raw::bound(address, Transmitter).await;
    // More than any socket buffer holds, in messages of 60 kB.
    let text = vec![b'a'; 60_000];
    for number in 1..=300 {
        house.send(link, message(number, &text));
    }
    assert_eq!(other.ask(&support::enquire()).await.0.status, Status::ROK);
    let (mut unanswered, mut not_sent) = (0, 0);
    loop {
        match house.event().await {
            Event::Outcome { outcome: Outcome::Unanswered { .. }, .. } => unanswered += 1,
            Event::Outcome { outcome: Outcome::NotSent, .. } => not_sent += 1,
            Event::LinkDown { .. } => break,
            _ => {}
        }
    }
    assert_eq!(unanswered + not_sent, 300);
    assert!(unanswered > 0 && not_sent > 0, "{unanswered} {not_sent}");
    assert_eq!(other.ask(&support::enquire()).await.0.status, Status::ROK);
    drop(stuck);
}

#[tokio::test]
async fn check_011_a_payload_of_65535_octets() {
    let (house, address) = open_house().await;
    let mut raw = Raw::bound(address, Transmitter).await;
    let tlvs = Tlvs::default().with(tag::MESSAGE_PAYLOAD, &vec![b'A'; 65_535]);
    raw.request(&Request::SubmitSm(Sm { short_message: Bytes::new(), tlvs, ..hello() })).await;
    assert_eq!(house.accept().await.0.text.octets.len(), 65_535);
}

#[tokio::test]
async fn check_143_idle_connections_are_limited_by_address_and_in_total() {
    let house = house().await;
    house.links.set_account(account()).unwrap();
    let per_address = ListenerOptions { connections_per_address: 3, ..listener() };
    let in_total = ListenerOptions { connections: 2, name: "small".into(), ..listener() };
    for (options, limit) in [(per_address, 3), (in_total, 2)] {
        let name = options.name.clone();
        let address = house.links.listen(options).await.unwrap();
        let mut open = Vec::new();
        for _ in 1..limit {
            open.push(Raw::bound(address, Transmitter).await);
        }
        // Of those that are not bound, the oldest gives way to a new one.
        let mut unbound = Raw::connect(address).await;
        // An answer shows that it is in.
        assert_eq!(unbound.ask(&support::enquire()).await.0.status, Status::ROK);
        let last = Raw::bound(address, Transmitter).await;
        unbound.closed().await;
        open.push(last);
        // Those that are bound give way to nobody.
        Raw::connect(address).await.closed().await;
        assert_eq!(open[0].ask(&support::enquire()).await.0.status, Status::ROK);
        drop(open);
        // Places are free again once their tasks have seen the end.
        within(async {
            loop {
                let mut raw = Raw::connect(address).await;
                raw.request(&support::enquire()).await;
                if raw.receive().await.is_some() {
                    break;
                }
            }
        })
        .await;
        house.links.close_listener(&name);
    }
    assert!(house.links.doors().turned_away >= 2);
}

#[tokio::test]
async fn check_144_too_many_wrong_binds_shut_an_account_out_and_no_other() {
    let house = house().await;
    house.links.set_account(account()).unwrap();
    let mut other = account();
    (other.name, other.system_id) = ("other".to_owned(), Bytes::from_static(b"other"));
    house.links.set_account(other).unwrap();
    let address = house.links.listen(listener()).await.unwrap();
    let guess =
        |number: u32| smpp::Bind { password: Bytes::from(format!("guess{number}")), ..bind(Transmitter) };
    for number in 0..10 {
        let mut raw = Raw::connect(address).await;
        assert_eq!(raw.bind(guess(number)).await.0.status, Status::RINVPASWD);
    }
    let mut raw = Raw::connect(address).await;
    assert_eq!(raw.bind(guess(10)).await.0.status, Status::RBINDFAIL);
    let mut raw = Raw::connect(address).await;
    let right = smpp::Bind { system_id: Bytes::from_static(b"other"), ..bind(Transmitter) };
    assert_eq!(raw.bind(right).await.0.status, Status::ROK);
}

/// An authority and a certificate of its making for localhost, as files.
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

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn trusting(ca: &Path) -> tokio_rustls::TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls_pki_types::CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider())
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
    let house = house().await;
    house.links.set_account(account()).unwrap();
    let tls = ServerTls { certificate: files.chain.clone(), key: files.key.clone(), client_ca: None };
    let address = house.links.listen(ListenerOptions { tls: Some(tls.clone()), ..listener() }).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let stream = within(trusting(&files.ca).connect(name.clone(), stream)).await.unwrap();
    let mut raw = Raw::over(stream);
    assert_eq!(raw.bind(bind(Transceiver)).await.0.status, Status::ROK);
    let (link, ..) = house.link_up().await;
    house.send(link, message(1, &vec![b'a'; 60_000]));
    assert_eq!(raw.sm().await.1.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap().len(), 60_000);
    assert!(house.state(|state| state.phase == Phase::Bound).await.tls);

    // A listener that demands certificates does not take a client without one.
    let strict = ServerTls { client_ca: Some(files.ca.clone()), ..tls };
    let options = ListenerOptions { tls: Some(strict), name: "strict".into(), ..listener() };
    let address = house.links.listen(options).await.unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    // In TLS 1.3 the client learns of it with its first read.
    if let Ok(stream) = within(trusting(&files.ca).connect(name, stream)).await {
        let mut raw = Raw::over(stream);
        assert!(raw.receive().await.is_none());
    }
    within(async {
        while house.links.doors().handshakes_failed == 0 {
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
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![rustls_pki_types::CertificateDer::from_pem_file(&files.chain).unwrap()],
                rustls_pki_types::PrivateKeyDer::from_pem_file(&files.key).unwrap(),
            )
            .unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let house = house().await;
        let smsc = support::Smsc::open().await;
        let tls = ClientTls {
            ca: Some(files.ca.clone()),
            server_name: Some("localhost".into()),
            certificate: None,
        };
        house.links.set_peer(PeerOptions { tls: Some(tls), ..smsc.options() }).unwrap();
        let accepted = within(acceptor.accept(smsc.accept().await.stream)).await;
        if expired {
            let state = house.state(|state| state.phase == Phase::BackingOff).await;
            let error = state.last_error.unwrap();
            assert!(error.contains("certificate") && error.contains("xpired"), "{error}");
        } else {
            let mut raw = Raw::over(accepted.unwrap());
            raw.take_bind().await;
            house.link_up().await;
        }
    }
}

#[tokio::test]
async fn tls_files_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let files = certificates(directory.path(), false);
    let house = house().await;
    let wrong = ServerTls { certificate: files.key.clone(), key: files.key.clone(), client_ca: None };
    let error = house.links.listen(ListenerOptions { tls: Some(wrong), ..listener() }).await.unwrap_err();
    assert!(error.to_string().contains("key.pem"), "{error}");
    let missing =
        ServerTls { certificate: files.chain, key: directory.path().join("no.pem"), client_ca: None };
    let error = house.links.listen(ListenerOptions { tls: Some(missing), ..listener() }).await.unwrap_err();
    assert!(error.to_string().contains("no.pem"), "{error}");
}
