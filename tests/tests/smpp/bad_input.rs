//! Invalid input gets the protocol's own error or a closed connection, and does not affect others.

use anyhow::{Result, ensure};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon};
use behaviour_tests::{Fixture, RawConnection, TIMEOUT};
use std::sync::Arc;

const SUBMIT_SM: u32 = 4;
const ENQUIRE_LINK: u32 = 0x15;
const GENERIC_NACK: u32 = 0x8000_0000;

/// A daemon with an account, a peer, and a well-behaved ESME.
struct SmppFixture {
    appliance: TestDaemon,
    sink: Sink,
    tally: Arc<Tally>,
    good: Probe,
    submitted: u64,
}

impl SmppFixture {
    fn open(fixture: &Fixture, listener: &str) -> Result<Self> {
        let tally = Arc::new(Tally::new(1_000_000));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let mut config = fixture.config()?;
        config.listener(listener).account("good", "").account("bad", "window = 50\nsessions = 100");
        config.peer("upstream", sink.address(), "dlrs = false");
        let appliance = config.start()?;
        let good = Probe::bind(appliance.smpp(), "good", PASSWORD, "861", false)?;
        Ok(Self { appliance, sink, tally, good, submitted: 0 })
    }

    /// The well-behaved ESME is still served.
    fn check_others_unaffected(&mut self) -> Result<()> {
        let answer = self.good.submit(self.submitted)?;
        ensure!(answer.is_ok(), "a good submission was refused: {answer:?}");
        self.submitted += 1;
        Ok(())
    }

    /// All accepted messages arrive, and the daemon stops in an orderly way.
    fn close(mut self) -> Result<()> {
        self.check_others_unaffected()?;
        let pause = behaviour_tests::load::StopFlag::default();
        let deadline = std::time::Instant::now() + TIMEOUT;
        while self.tally.arrived_count() < self.submitted {
            ensure!(
                std::time::Instant::now() < deadline,
                "{} of {} arrived",
                self.tally.arrived_count(),
                self.submitted
            );
            pause.pause(std::time::Duration::from_millis(10));
        }
        ensure!(self.appliance.ended()?.is_none(), "the daemon has died:\n{}", self.appliance.log(20));
        let (status, _) = self.appliance.stop()?;
        ensure!(status.success(), "the stop ended with {status}");
        self.sink.stop()?;
        Ok(())
    }
}

/// The body of a submit_sm with this source, destination and text.
fn submit_body(source: &[u8], destination: &[u8], text: &[u8]) -> Vec<u8> {
    [&[0, 1, 1], source, &[0, 1, 1], destination, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, text.len() as u8], text]
        .concat()
}

#[test]
fn garbage_http_and_impossible_lengths_close_only_that_connection() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = SmppFixture::open(&fixture, "")?;
    let garbage: Vec<u8> =
        (0..4096_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let inputs: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &garbage,
        // Shorter than a header; empty; four gigabytes; negative.
        &[0, 0, 0, 15, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0; 64],
        &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x80, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1],
    ];
    for input in inputs {
        let mut raw = RawConnection::connect(setup.appliance.smpp())?;
        raw.send(input)?;
        raw.until_closed()?;
        setup.check_others_unaffected()?;
    }
    setup.close()
}

#[test]
fn a_bound_session_survives_malformed_and_unknown_pdus() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = SmppFixture::open(&fixture, "")?;
    let mut raw = RawConnection::connect(setup.appliance.smpp())?;
    assert_eq!(raw.bind("bad", PASSWORD)?, 0);
    // An unknown command: generic_nack RINVCMDID with its sequence number.
    raw.send_pdu(0x0001_0abc, 2, b"whatever")?;
    let (id, status, sequence, _) = raw.receive()?;
    assert_eq!((id, status, sequence), (GENERIC_NACK, 3, 2));
    // A submit_sm whose body ends within the address: an error with its sequence number.
    raw.send_pdu(SUBMIT_SM, 3, b"\0\x01\x01123")?;
    let (id, status, sequence, _) = raw.receive()?;
    assert_eq!((id, sequence), (SUBMIT_SM | GENERIC_NACK, 3));
    assert_ne!(status, 0);
    // A source address longer than its field.
    raw.send_pdu(SUBMIT_SM, 4, &submit_body(&[b'1'; 60], b"8613800000000", b"text"))?;
    let (id, status, sequence, _) = raw.receive()?;
    assert_eq!((id, sequence), (SUBMIT_SM | GENERIC_NACK, 4));
    assert_ne!(status, 0);
    // A second bind: RALYBND.
    raw.send_pdu(9, 5, b"bad\0secret\0\0\x34\0\0\0")?;
    let (id, status, sequence, _) = raw.receive()?;
    assert_eq!((id, status, sequence), (0x8000_0009, 5, 5));
    // An unexpected answer is ignored; an enquire_link with a body is answered by a bare header.
    raw.send_pdu(GENERIC_NACK, 77, b"")?;
    raw.send_pdu(ENQUIRE_LINK, 6, b"body")?;
    assert_eq!(raw.receive()?, (ENQUIRE_LINK | GENERIC_NACK, 0, 6, Vec::new()));
    // A valid one is accepted.
    raw.send_pdu(SUBMIT_SM, 7, &submit_body(b"10655", b"8613800000000", b"n=0000900000 c=001 good"))?;
    let (id, status, sequence, body) = raw.receive()?;
    assert_eq!((id, status, sequence), (SUBMIT_SM | GENERIC_NACK, 0, 7));
    assert!(body.len() > 1, "no id");
    setup.submitted += 1;
    setup.close()
}

#[test]
fn commands_before_the_bind_and_wrong_passwords_get_the_protocols_error() -> Result<()> {
    let fixture = Fixture::new()?;
    let setup = SmppFixture::open(&fixture, "")?;
    let mut raw = RawConnection::connect(setup.appliance.smpp())?;
    // enquire_link is allowed before the bind; submit_sm is not: RINVBNDSTS.
    raw.send_pdu(ENQUIRE_LINK, 1, b"")?;
    assert_eq!(raw.receive()?, (ENQUIRE_LINK | GENERIC_NACK, 0, 1, Vec::new()));
    raw.send_pdu(SUBMIT_SM, 2, &submit_body(b"10655", b"8613800000000", b"early"))?;
    let (id, status, sequence, _) = raw.receive()?;
    assert_eq!((id, status, sequence), (SUBMIT_SM | GENERIC_NACK, 4, 2));
    for (system_id, password) in [("bad", "wrong"), ("nobody", PASSWORD), ("bad", "")] {
        let status = RawConnection::connect(setup.appliance.smpp())?.bind(system_id, password)?;
        assert!([0x0d, 0x0e, 0x0f].contains(&status), "{system_id}: status {status:#x}");
    }
    let log = setup.appliance.log(200);
    assert!(!log.contains(PASSWORD) && !log.contains("wrong\""), "a password is in the log:\n{log}");
    setup.close()
}

#[test]
fn half_open_and_silent_connections_are_closed_by_timer() -> Result<()> {
    let fixture = Fixture::new()?;
    let listener = "bind-timeout = \"300ms\"\npartial-timeout = \"300ms\"";
    let mut setup = SmppFixture::open(&fixture, listener)?;
    let mut silent = RawConnection::connect(setup.appliance.smpp())?;
    let mut half = RawConnection::connect(setup.appliance.smpp())?;
    half.send(&[0, 0, 0, 40, 0, 0, 0, 9])?;
    let mut bound = RawConnection::connect(setup.appliance.smpp())?;
    assert_eq!(bound.bind("bad", PASSWORD)?, 0);
    bound.send(&[0, 0, 0, 90, 0, 0, 0, 4, 0, 0])?;
    for raw in [&mut silent, &mut half, &mut bound] {
        raw.until_closed()?;
    }
    setup.check_others_unaffected()?;
    setup.close()
}

#[test]
fn the_oldest_unbound_connection_of_an_address_is_closed_at_the_limit() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = SmppFixture::open(&fixture, "connections-per-address = 20")?;
    let mut crowd = Vec::new();
    for _ in 0..60 {
        crowd.push(RawConnection::connect(setup.appliance.smpp())?);
    }
    // The oldest connections beyond the limit are closed.
    for one in crowd.iter_mut().take(20) {
        one.until_closed()?;
    }
    let mut last = RawConnection::connect(setup.appliance.smpp())?;
    assert_eq!(last.bind("bad", PASSWORD)?, 0, "a valid bind was refused");
    setup.check_others_unaffected()?;
    drop((crowd, last));
    setup.close()
}

#[test]
fn connections_that_never_bind_do_not_fill_a_listener() -> Result<()> {
    let fixture = Fixture::new()?;
    let limits =
        "connections = 30\nconnections-per-address = 30\nunbound-connections = 5\nbind-timeout = \"10m\"";
    let mut setup = SmppFixture::open(&fixture, limits)?;
    let mut bound = RawConnection::connect(setup.appliance.smpp())?;
    assert_eq!(bound.bind("bad", PASSWORD)?, 0);
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(RawConnection::connect(setup.appliance.smpp())?);
    }
    let mut late = RawConnection::connect(setup.appliance.smpp())?;
    assert_eq!(late.bind("bad", PASSWORD)?, 0, "a valid bind was refused");
    for one in crowd.iter_mut().take(90) {
        one.until_closed()?;
    }
    for raw in [&mut bound, &mut late] {
        raw.send_pdu(ENQUIRE_LINK, 77, &[])?;
        assert_eq!(raw.receive()?.2, 77, "a bound session was displaced");
    }
    assert!(setup.appliance.metric("switchyard_connections_turned_away_total")? >= 90.0);
    setup.check_others_unaffected()?;
    drop((crowd, bound, late));
    setup.close()
}

#[test]
fn a_flood_beyond_the_window_is_answered_or_throttled_and_loses_nothing() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = SmppFixture::open(&fixture, "")?;
    let mut raw = RawConnection::connect(setup.appliance.smpp())?;
    assert_eq!(raw.bind("bad", PASSWORD)?, 0);
    let count = 2000_u32;
    let mut accepted = 0;
    for number in 0..count {
        let text = format!("n={:010} c=001 flood", 100_000 + number);
        raw.send_pdu(SUBMIT_SM, 10 + number, &submit_body(b"10655", b"8613800000000", text.as_bytes()))?;
    }
    let mut sequences = Vec::new();
    for _ in 0..count {
        let (id, status, sequence, _) = raw.receive()?;
        assert_eq!(id, SUBMIT_SM | GENERIC_NACK);
        assert!([0, 0x58].contains(&status), "status {status:#x}");
        accepted += u64::from(status == 0);
        sequences.push(sequence);
    }
    sequences.sort_unstable();
    assert_eq!(sequences, (10..10 + count).collect::<Vec<_>>());
    assert!(accepted > 0);
    setup.submitted += accepted;
    setup.check_others_unaffected()?;
    setup.close()
}

#[test]
fn a_peer_that_never_reads_is_disconnected_and_costs_little_memory() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut setup = SmppFixture::open(&fixture, "")?;
    let mut raw = RawConnection::connect(setup.appliance.smpp())?;
    assert_eq!(raw.bind("bad", PASSWORD)?, 0);
    let before = behaviour_tests::load::resident_memory(setup.appliance.id()).unwrap_or(0);
    // Millions of enquiries without reading an answer: the daemon stops reading, or closes the connection.
    let mut enquiries = Vec::new();
    for sequence in 1..=4096_u32 {
        enquiries.extend_from_slice(&[0, 0, 0, 16, 0, 0, 0, 0x15, 0, 0, 0, 0]);
        enquiries.extend_from_slice(&sequence.to_be_bytes());
    }
    let most = 256 << 20;
    let taken = raw.flood(&enquiries, most)?;
    assert!(taken < most, "all {taken} octets were accepted from a peer that reads nothing");
    let after = behaviour_tests::load::resident_memory(setup.appliance.id()).unwrap_or(0);
    let grown = after.saturating_sub(before);
    assert!(grown < 64 << 20, "one connection made the daemon grow by {grown} octets");
    setup.check_others_unaffected()?;
    setup.close()
}
