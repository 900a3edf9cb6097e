//! TLS and limits of the HTTP listeners for admins and business systems.

use anyhow::{Context, Result, ensure};
use behaviour_tests::test_daemon::{TestDaemon, TestDaemonConfig};
use behaviour_tests::{AdminClient, Fixture, RawConnection, TIMEOUT, until};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use ureq::tls::{Certificate, ClientCert, PrivateKey};

fn config(fixture: &Fixture) -> Result<TestDaemonConfig> {
    let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
    let nowhere = behaviour_tests::test_daemon::free_port()?;
    config.peer("upstream", ([127, 0, 0, 1], nowhere).into(), "").native("upstream");
    Ok(config)
}

/// A self-signed certificate and its key, in PEM form.
fn self_signed() -> Result<(String, String)> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

fn hang_up(appliance: &TestDaemon) -> Result<()> {
    let id = rustix::process::Pid::from_raw(i32::try_from(appliance.id())?).context("no process")?;
    Ok(rustix::process::kill_process(id, rustix::process::Signal::HUP)?)
}

/// Whether a client that trusts only this certificate is answered.
fn is_trusted(appliance: &TestDaemon, certificate: &str) -> Result<bool> {
    let caller = AdminClient::over_tls(appliance, certificate.as_bytes(), None)?;
    Ok(caller.ask("GET", "/v1/health", None).is_ok_and(|reply| reply.status == 200))
}

#[test]
fn the_self_signed_certificate_is_generated_once() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    let appliance = config.http_keys("tls = \"own\"").start()?;
    let path = config.data().join("tls/certificate.pem");
    let certificate = std::fs::read_to_string(&path)?;
    let caller = AdminClient::over_tls(&appliance, certificate.as_bytes(), None)?;
    let token = json!({ "token": appliance.token()? });
    let reply = caller.ask("POST", "/v1/sessions", Some(&token))?;
    ensure!(reply.status == 200 && reply.header("set-cookie")?.ends_with("; Secure"), "{reply:?}");
    let session = caller.with_session(&token)?;
    assert_eq!(session.ask("GET", "/v1/whoami", None)?.json()?["user"], "token");
    // Plain HTTP is refused.
    ensure!(AdminClient::anonymous(&appliance).ask("GET", "/v1/health", None).is_err());
    ensure!(!is_trusted(&appliance, &self_signed()?.0)?, "anybody's certificate would do");

    let appliance = appliance.kill()?.start()?;
    assert_eq!(std::fs::read_to_string(&path)?, certificate);
    ensure!(is_trusted(&appliance, &certificate)?);
    Ok(())
}

#[test]
fn a_new_certificate_is_used_without_a_restart_and_an_invalid_one_is_ignored() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    let place = |name: &str| fixture.folder().join(name);
    let put = |(certificate, key): &(String, String)| -> Result<()> {
        std::fs::write(place("server.key"), key)?;
        Ok(std::fs::write(place("server.pem"), certificate)?)
    };
    let (first, second) = (self_signed()?, self_signed()?);
    put(&first)?;
    let key = |path: &Path| format!("{:?}", path.display().to_string());
    config.http_keys(&format!(
        "tls = {{ certificate = {}, key = {} }}",
        key(&place("server.pem")),
        key(&place("server.key"))
    ));
    let appliance = config.start()?;
    ensure!(is_trusted(&appliance, &first.0)? && !is_trusted(&appliance, &second.0)?);
    // Open connections continue.
    let open = AdminClient::over_tls(&appliance, first.0.as_bytes(), None)?;
    assert_eq!(open.ask("GET", "/v1/health", None)?.status, 200);

    put(&second)?;
    hang_up(&appliance)?;
    until("the second certificate", || is_trusted(&appliance, &second.0))?;
    ensure!(!is_trusted(&appliance, &first.0)?);
    assert_eq!(open.ask("GET", "/v1/health", None)?.status, 200);

    std::fs::write(place("server.pem"), "no certificate")?;
    hang_up(&appliance)?;
    appliance.wait_for_line(TIMEOUT, |line| line.contains("not reloaded") && line.contains("server.pem"))?;
    ensure!(is_trusted(&appliance, &second.0)?);
    put(&first)?;
    hang_up(&appliance)?;
    until("the first certificate again", || is_trusted(&appliance, &first.0))
}

#[test]
fn client_certificates_are_required_if_configured() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(params, authority_key);
    let path = fixture.folder().join("clients.pem");
    std::fs::write(&path, &authority)?;
    let (certificate, key) = self_signed()?;
    std::fs::write(fixture.folder().join("server.pem"), &certificate)?;
    std::fs::write(fixture.folder().join("server.key"), &key)?;
    let word = |name: &str| format!("{:?}", fixture.folder().join(name).display().to_string());
    config.http_keys(&format!(
        "tls = {{ certificate = {}, key = {}, client-ca = {} }}",
        word("server.pem"),
        word("server.key"),
        word("clients.pem")
    ));
    let appliance = config.start()?;

    let own_key = KeyPair::generate()?;
    let own = CertificateParams::new(vec!["ann".to_owned()])?.signed_by(&own_key, &issuer)?;
    let shows = |certificate: &str, key: &str| -> Result<ClientCert> {
        let certificate = Certificate::from_pem(certificate.as_bytes())?;
        Ok(ClientCert::new_with_certs(&[certificate], PrivateKey::from_pem(key.as_bytes())?))
    };
    let known = shows(&own.pem(), &own_key.serialize_pem())?;
    let known = AdminClient::over_tls(&appliance, certificate.as_bytes(), Some(known))?;
    assert_eq!(known.ask("GET", "/v1/health", None)?.status, 200);
    // A client certificate is required in addition to credentials, not instead of them.
    assert_eq!(known.ask("GET", "/v1/status", None)?.status, 401);
    assert_eq!(known.with_token(&appliance.token()?).ask("GET", "/v1/status", None)?.status, 200);

    ensure!(!is_trusted(&appliance, &certificate)?, "a client without a certificate was accepted");
    let (strange, strange_key) = self_signed()?;
    let other_ca = shows(&strange, &strange_key)?;
    let untrusted = AdminClient::over_tls(&appliance, certificate.as_bytes(), Some(other_ca))?;
    ensure!(untrusted.ask("GET", "/v1/health", None).is_err(), "anybody's certificate would do");
    Ok(())
}

#[test]
fn a_hanging_handshake_delays_nobody_and_times_out() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    let appliance = config.http_keys("tls = \"own\"").start()?;
    let certificate = std::fs::read_to_string(config.data().join("tls/certificate.pem"))?;
    let mut hanging = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(config.http())?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        // The beginning of a TLS record that never continues.
        stream.write_all(&[22, 3, 1])?;
        hanging.push(stream);
    }
    ensure!(is_trusted(&appliance, &certificate)?);
    for mut stream in hanging {
        let mut octets = [0; 64];
        // An alert may precede the end.
        while stream.read(&mut octets).context("it is still open")? > 0 {}
    }
    ensure!(is_trusted(&appliance, &certificate)?);
    Ok(())
}

#[test]
fn tls_configuration_errors_are_reported_before_the_start() -> Result<()> {
    let fixture = Fixture::new()?;
    for (keys, words) in [
        ("tls = \"mine\"", "must be one of: own"),
        ("tls = { certificate = \"nothing.pem\", key = \"nothing.key\" }", "nothing.pem"),
        ("tls = { certificate = \"nothing.pem\" }", "http.tls.key: is missing"),
        ("tls = \"own\"\nunencrypted = true", "remove one of them"),
        ("tls = { colour = \"red\" }", "colour"),
    ] {
        let mut config = config(&fixture)?;
        let (is_content, reply) = config.http_keys(keys).check()?;
        ensure!(!is_content && reply.contains(words), "{keys}: {reply}");
    }
    Ok(())
}

/// Few connections, and timeouts that do not expire during the test.
const FEW: &str =
    "connections = 20\nconnections-per-address = 20\nunauthenticated-connections = 5\nhead-timeout = \"10m\"";

/// The beginning of a request.
const BEGIN: &[u8] = b"GET /v1/ready HTTP/1.1\r\nhost: x\r\nx-";

/// Opens 100 connections that send only this; the first 90 of them are closed in favour of later ones.
fn drip(address: SocketAddr, octets: &[u8]) -> Result<Vec<RawConnection>> {
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let mut one = RawConnection::connect(address)?;
        // A connection that is closed already has no reader.
        let _ = one.send(octets);
        crowd.push(one);
    }
    for one in crowd.iter_mut().take(90) {
        one.until_closed()?;
    }
    Ok(crowd)
}

#[test]
fn slow_connections_of_one_address_block_neither_readiness_nor_admins() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.http_keys(FEW).start()?;
    let session = AdminClient::anonymous(&appliance).with_session(&json!({ "token": appliance.token()? }))?;
    let crowd = drip(appliance.config().http(), BEGIN)?;
    assert_eq!(AdminClient::anonymous(&appliance).ask("GET", "/v1/ready", None)?.status, 200);
    assert_eq!(session.ask("GET", "/v1/whoami", None)?.status, 200);
    ensure!(appliance.metric("switchyard_http_connections_turned_away_total")? >= 90.0);
    drop(crowd);
    Ok(())
}

#[test]
fn at_the_connection_limit_readiness_and_sessions_are_answered_and_others_get_retry_after() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance = config(&fixture)?.http_keys(FEW).start()?;
    let token = appliance.token()?;
    let mut taken = Vec::new();
    // Some connections belong to the test's own clients until they are dropped.
    for _ in 0..20 {
        let mut one = RawConnection::connect(appliance.config().http())?;
        one.send(
            format!("GET /v1/whoami HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n").as_bytes(),
        )?;
        ensure!(one.head()?.starts_with("HTTP/1.1 200"));
        taken.push(one);
    }
    let ask = |path: &str, shown: &str| -> Result<String> {
        let mut one = RawConnection::connect(appliance.config().http())?;
        one.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{shown}connection: close\r\n\r\n").as_bytes())?;
        Ok(String::from_utf8_lossy(&one.until_closed()?).to_lowercase())
    };
    let refused = ask("/v1/openapi.json", "")?;
    ensure!(refused.starts_with("http/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    ensure!(ask("/v1/ready", "")?.starts_with("http/1.1 200"));
    ensure!(ask("/v1/health", "")?.starts_with("http/1.1 200"));
    ensure!(ask("/v1/whoami", &format!("authorization: Bearer {token}\r\n"))?.starts_with("http/1.1 200"));
    drop(taken);
    Ok(())
}

#[test]
fn incomplete_requests_time_out() -> Result<()> {
    let fixture = Fixture::new()?;
    let appliance =
        config(&fixture)?.http_keys("head-timeout = \"300ms\"\nbody-timeout = \"300ms\"").start()?;
    let mut head = RawConnection::connect(appliance.config().http())?;
    head.send(b"GET /v1/ready HTTP/1.1\r\nx-")?;
    head.until_closed()?;
    let mut body = RawConnection::connect(appliance.config().http())?;
    body.send(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")?;
    let answer = String::from_utf8_lossy(&body.until_closed()?).into_owned();
    ensure!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    Ok(())
}

#[test]
fn the_business_listener_has_tls_and_limits_and_authenticates_before_it_reads_the_body() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut config = config(&fixture)?;
    config.business_account("shop", "", "");
    let address = config.business();
    let tls = format!("[business]\nlisten = \"{address}\"\n");
    let appliance = config.start()?;
    let mut unauthenticated = RawConnection::connect(address)?;
    unauthenticated.send(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Basic c2hvcDp3cm9uZw==\r\ncontent-length: 4000000\r\n\r\n")?;
    ensure!(unauthenticated.head()?.starts_with("HTTP/1.1 401"), "the body was waited for");
    drop((unauthenticated, appliance));

    let mut config = self::config(&fixture)?;
    config.account("shop", "[account.business]").tables(&format!("{tls}{FEW}\ntls = \"own\"\n"));
    let appliance = config.start()?;
    let crowd = drip(address, b"")?;
    let certificate = std::fs::read(config.data().join("tls/certificate.pem"))?;
    let shop = AdminClient::over_tls_at(address, &certificate, None)?
        .with_header("authorization", "Basic c2hvcDpzZWNyZXQ=");
    assert_eq!(shop.ask("GET", "/v1/inbox", None)?.status, 200);
    ensure!(appliance.metric("switchyard_http_connections_turned_away_total")? >= 90.0);
    drop(crowd);
    Ok(())
}
