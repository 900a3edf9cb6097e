//! TLS and limits at the listeners for HTTP: the admin's and the business systems'.

use anyhow::{Context, Result, ensure};
use behaviour_tests::appliance::{Appliance, Blueprint};
use behaviour_tests::{PATIENCE, Raw, Stage, Visitor, until};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use ureq::tls::{Certificate, ClientCert, PrivateKey};

fn blueprint(stage: &Stage) -> Result<Blueprint> {
    let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
    let nowhere = behaviour_tests::appliance::free_port()?;
    blueprint.peer("upstream", ([127, 0, 0, 1], nowhere).into(), "").native("upstream");
    Ok(blueprint)
}

/// A certificate that signs itself, and its key, in PEM form.
fn self_signed() -> Result<(String, String)> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

fn hang_up(appliance: &Appliance) -> Result<()> {
    let id = rustix::process::Pid::from_raw(i32::try_from(appliance.id())?).context("no process")?;
    Ok(rustix::process::kill_process(id, rustix::process::Signal::HUP)?)
}

/// Whether somebody who trusts this certificate alone is answered.
fn is_trusted(appliance: &Appliance, certificate: &str) -> Result<bool> {
    let visitor = Visitor::trusting(appliance, certificate.as_bytes(), None)?;
    Ok(visitor.ask("GET", "/v1/health", None).is_ok_and(|told| told.status == 200))
}

#[test]
fn the_own_certificate_is_made_at_the_first_start_and_kept() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut blueprint = blueprint(&stage)?;
    let appliance = blueprint.door("tls = \"own\"").start()?;
    let path = blueprint.data().join("tls/certificate.pem");
    let certificate = std::fs::read_to_string(&path)?;
    let visitor = Visitor::trusting(&appliance, certificate.as_bytes(), None)?;
    let token = json!({ "token": appliance.token()? });
    let told = visitor.ask("POST", "/v1/sessions", Some(&token))?;
    ensure!(told.status == 200 && told.header("set-cookie")?.ends_with("; Secure"), "{told:?}");
    let session = visitor.logged_in(&token)?;
    assert_eq!(session.ask("GET", "/v1/whoami", None)?.json()?["user"], "token");
    // Without TLS there is nothing to be had.
    ensure!(Visitor::nobody(&appliance).ask("GET", "/v1/health", None).is_err());
    ensure!(!is_trusted(&appliance, &self_signed()?.0)?, "anybody's certificate would do");

    let appliance = appliance.kill()?.start()?;
    assert_eq!(std::fs::read_to_string(&path)?, certificate);
    ensure!(is_trusted(&appliance, &certificate)?);
    Ok(())
}

#[test]
fn another_certificate_counts_without_a_restart_and_a_bad_one_never() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut blueprint = blueprint(&stage)?;
    let place = |name: &str| stage.folder().join(name);
    let put = |(certificate, key): &(String, String)| -> Result<()> {
        std::fs::write(place("door.key"), key)?;
        Ok(std::fs::write(place("door.pem"), certificate)?)
    };
    let (first, second) = (self_signed()?, self_signed()?);
    put(&first)?;
    let key = |path: &Path| format!("{:?}", path.display().to_string());
    blueprint.door(&format!(
        "tls = {{ certificate = {}, key = {} }}",
        key(&place("door.pem")),
        key(&place("door.key"))
    ));
    let appliance = blueprint.start()?;
    ensure!(is_trusted(&appliance, &first.0)? && !is_trusted(&appliance, &second.0)?);
    // A connection that is open goes on.
    let open = Visitor::trusting(&appliance, first.0.as_bytes(), None)?;
    assert_eq!(open.ask("GET", "/v1/health", None)?.status, 200);

    put(&second)?;
    hang_up(&appliance)?;
    until("the second certificate", || is_trusted(&appliance, &second.0))?;
    ensure!(!is_trusted(&appliance, &first.0)?);
    assert_eq!(open.ask("GET", "/v1/health", None)?.status, 200);

    std::fs::write(place("door.pem"), "no certificate")?;
    hang_up(&appliance)?;
    appliance.wait_for_line(PATIENCE, |line| line.contains("not read again") && line.contains("door.pem"))?;
    ensure!(is_trusted(&appliance, &second.0)?);
    put(&first)?;
    hang_up(&appliance)?;
    until("the first certificate again", || is_trusted(&appliance, &first.0))
}

#[test]
fn where_certificates_of_clients_are_asked_for_nobody_comes_in_without_one() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut blueprint = blueprint(&stage)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    let authority = params.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(params, authority_key);
    let path = stage.folder().join("clients.pem");
    std::fs::write(&path, &authority)?;
    let (certificate, key) = self_signed()?;
    std::fs::write(stage.folder().join("door.pem"), &certificate)?;
    std::fs::write(stage.folder().join("door.key"), &key)?;
    let word = |name: &str| format!("{:?}", stage.folder().join(name).display().to_string());
    blueprint.door(&format!(
        "tls = {{ certificate = {}, key = {}, client-ca = {} }}",
        word("door.pem"),
        word("door.key"),
        word("clients.pem")
    ));
    let appliance = blueprint.start()?;

    let own_key = KeyPair::generate()?;
    let own = CertificateParams::new(vec!["ann".to_owned()])?.signed_by(&own_key, &issuer)?;
    let shows = |certificate: &str, key: &str| -> Result<ClientCert> {
        let certificate = Certificate::from_pem(certificate.as_bytes())?;
        Ok(ClientCert::new_with_certs(&[certificate], PrivateKey::from_pem(key.as_bytes())?))
    };
    let known = shows(&own.pem(), &own_key.serialize_pem())?;
    let known = Visitor::trusting(&appliance, certificate.as_bytes(), Some(known))?;
    assert_eq!(known.ask("GET", "/v1/health", None)?.status, 200);
    // It is a lock more, and not a key to anything.
    assert_eq!(known.ask("GET", "/v1/status", None)?.status, 401);
    assert_eq!(known.with_token(&appliance.token()?).ask("GET", "/v1/status", None)?.status, 200);

    ensure!(!is_trusted(&appliance, &certificate)?, "somebody without a certificate came in");
    let (strange, strange_key) = self_signed()?;
    let stranger = shows(&strange, &strange_key)?;
    let stranger = Visitor::trusting(&appliance, certificate.as_bytes(), Some(stranger))?;
    ensure!(stranger.ask("GET", "/v1/health", None).is_err(), "anybody's certificate would do");
    Ok(())
}

#[test]
fn a_handshake_that_hangs_keeps_nobody_waiting_and_is_ended() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut blueprint = blueprint(&stage)?;
    let appliance = blueprint.door("tls = \"own\"").start()?;
    let certificate = std::fs::read_to_string(blueprint.data().join("tls/certificate.pem"))?;
    let mut hanging = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(blueprint.http())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // The beginning of a record that never goes on.
        stream.write_all(&[22, 3, 1])?;
        hanging.push(stream);
    }
    ensure!(is_trusted(&appliance, &certificate)?);
    for mut stream in hanging {
        let mut octets = [0; 64];
        // An alert may come first; then the end.
        while stream.read(&mut octets).context("it is still open")? > 0 {}
    }
    ensure!(is_trusted(&appliance, &certificate)?);
    Ok(())
}

#[test]
fn what_is_wrong_with_the_lock_is_told_before_the_start() -> Result<()> {
    let stage = Stage::without_guests()?;
    for (keys, words) in [
        ("tls = \"mine\"", "must be one of: own"),
        ("tls = { certificate = \"nothing.pem\", key = \"nothing.key\" }", "nothing.pem"),
        ("tls = { certificate = \"nothing.pem\" }", "http.tls.key: is missing"),
        ("tls = \"own\"\nunencrypted = true", "take one of them away"),
        ("tls = { colour = \"red\" }", "colour"),
    ] {
        let mut blueprint = blueprint(&stage)?;
        let (is_content, told) = blueprint.door(keys).check()?;
        ensure!(!is_content && told.contains(words), "{keys}: {told}");
    }
    Ok(())
}

/// Few connections, and time-outs that do not end them.
const FEW: &str =
    "connections = 20\nconnections-per-address = 20\nunauthenticated-connections = 5\nhead-timeout = \"10m\"";

/// The begin of a request.
const BEGIN: &[u8] = b"GET /v1/ready HTTP/1.1\r\nhost: x\r\nx-";

/// Opens 100 connections that send this and nothing more; the first 90 of them are closed for the others.
fn drip(address: SocketAddr, octets: &[u8]) -> Result<Vec<Raw>> {
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let mut one = Raw::connect(address)?;
        // One that is closed already has no reader any more.
        let _ = one.send(octets);
        crowd.push(one);
    }
    for one in crowd.iter_mut().take(90) {
        one.until_closed()?;
    }
    Ok(crowd)
}

#[test]
fn dripping_connections_of_one_address_shut_neither_readiness_nor_admins_out() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.door(FEW).start()?;
    let session = Visitor::nobody(&appliance).logged_in(&json!({ "token": appliance.token()? }))?;
    let crowd = drip(appliance.blueprint().http(), BEGIN)?;
    assert_eq!(Visitor::nobody(&appliance).ask("GET", "/v1/ready", None)?.status, 200);
    assert_eq!(session.ask("GET", "/v1/whoami", None)?.status, 200);
    ensure!(appliance.metric("switchyard_http_connections_turned_away_total")? >= 90.0);
    drop(crowd);
    Ok(())
}

#[test]
fn when_all_places_are_taken_readiness_and_sessions_are_answered_and_others_are_told_to_wait() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.door(FEW).start()?;
    let token = appliance.token()?;
    let mut taken = Vec::new();
    // Some of the places are the appliance's own clients', until they are gone.
    for _ in 0..20 {
        let mut one = Raw::connect(appliance.blueprint().http())?;
        one.send(
            format!("GET /v1/whoami HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n").as_bytes(),
        )?;
        ensure!(one.head()?.starts_with("HTTP/1.1 200"));
        taken.push(one);
    }
    let ask = |path: &str, shown: &str| -> Result<String> {
        let mut one = Raw::connect(appliance.blueprint().http())?;
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
fn heads_and_bodies_that_do_not_come_end_their_connection() -> Result<()> {
    let stage = Stage::without_guests()?;
    let appliance = blueprint(&stage)?.door("head-timeout = \"300ms\"\nbody-timeout = \"300ms\"").start()?;
    let mut head = Raw::connect(appliance.blueprint().http())?;
    head.send(b"GET /v1/ready HTTP/1.1\r\nx-")?;
    head.until_closed()?;
    let mut body = Raw::connect(appliance.blueprint().http())?;
    body.send(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")?;
    let answer = String::from_utf8_lossy(&body.until_closed()?).into_owned();
    ensure!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    Ok(())
}

#[test]
fn the_business_listener_has_tls_and_limits_and_looks_who_calls_before_it_reads() -> Result<()> {
    let stage = Stage::without_guests()?;
    let mut blueprint = blueprint(&stage)?;
    blueprint.business_account("shop", "", "");
    let address = blueprint.business();
    let tls = format!("[business]\nlisten = \"{address}\"\n");
    let appliance = blueprint.start()?;
    let mut stranger = Raw::connect(address)?;
    stranger.send(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nauthorization: Basic c2hvcDp3cm9uZw==\r\ncontent-length: 4000000\r\n\r\n")?;
    ensure!(stranger.head()?.starts_with("HTTP/1.1 401"), "the body was waited for");
    drop((stranger, appliance));

    let mut blueprint = self::blueprint(&stage)?;
    blueprint.account("shop", "[account.business]").tables(&format!("{tls}{FEW}\ntls = \"own\"\n"));
    let appliance = blueprint.start()?;
    let crowd = drip(address, b"")?;
    let certificate = std::fs::read(blueprint.data().join("tls/certificate.pem"))?;
    let shop =
        Visitor::trusting_at(address, &certificate, None)?.showing("authorization", "Basic c2hvcDpzZWNyZXQ=");
    assert_eq!(shop.ask("GET", "/v1/inbox", None)?.status, 200);
    ensure!(appliance.metric("switchyard_http_connections_turned_away_total")? >= 90.0);
    drop(crowd);
    Ok(())
}
