//! What bad input gets: the protocol's own error or a closed connection, and nobody else notices.

use anyhow::{Result, ensure};
use behaviour_tests::appliance::{Appliance, PASSWORD};
use behaviour_tests::load::{Probe, Sink, SinkOptions, Tally};
use behaviour_tests::{PATIENCE, Raw, Stage};
use std::sync::Arc;

const SUBMIT_SM: u32 = 4;
const ENQUIRE_LINK: u32 = 0x15;
const GENERIC_NACK: u32 = 0x8000_0000;

/// An appliance with an account, a peer, and an ESME that behaves.
struct House {
    appliance: Appliance,
    sink: Sink,
    tally: Arc<Tally>,
    good: Probe,
    submitted: u64,
}

impl House {
    fn open(stage: &Stage, listener: &str) -> Result<Self> {
        let tally = Arc::new(Tally::new(1_000_000));
        let sink = Sink::start(SinkOptions::default(), &tally)?;
        let mut blueprint = stage.blueprint()?;
        blueprint.listener(listener).account("good", "").account("bad", "window = 50\nsessions = 100");
        blueprint.peer("upstream", sink.address(), "receipts = false");
        let appliance = blueprint.start()?;
        let good = Probe::bind(appliance.smpp(), "good", PASSWORD, "861", false)?;
        Ok(Self { appliance, sink, tally, good, submitted: 0 })
    }

    /// The ESME that behaves is served as ever.
    fn others_do_not_notice(&mut self) -> Result<()> {
        let answer = self.good.submit(self.submitted)?;
        ensure!(answer.is_ok(), "a good submission was refused: {answer:?}");
        self.submitted += 1;
        Ok(())
    }

    /// All that was accepted arrives, and the daemon stops in good order.
    fn close(mut self) -> Result<()> {
        self.others_do_not_notice()?;
        let pause = behaviour_tests::load::Stop::default();
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.tally.arrived_so_far() < self.submitted {
            ensure!(
                std::time::Instant::now() < deadline,
                "{} of {} arrived",
                self.tally.arrived_so_far(),
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
fn garbage_http_and_impossible_lengths_close_that_connection_only() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "")?;
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
        let mut raw = Raw::connect(house.appliance.smpp())?;
        raw.send(input)?;
        raw.until_closed()?;
        house.others_do_not_notice()?;
    }
    house.close()
}

#[test]
fn a_bound_session_survives_broken_and_unknown_pdus_and_loses_no_step() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "")?;
    let mut raw = Raw::connect(house.appliance.smpp())?;
    assert_eq!(raw.bind("bad", PASSWORD)?, 0);
    // An unknown command: generic_nack RINVCMDID with its sequence number.
    raw.send_pdu(0x0001_0abc, 2, b"whatever")?;
    let (id, status, sequence, _) = raw.receive()?;
    assert_eq!((id, status, sequence), (GENERIC_NACK, 3, 2));
    // A submit_sm whose body ends in the middle of the address: an error with its sequence number.
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
    // An answer to nothing is ignored; an enquire_link with a body is answered by a bare header.
    raw.send_pdu(GENERIC_NACK, 77, b"")?;
    raw.send_pdu(ENQUIRE_LINK, 6, b"body")?;
    assert_eq!(raw.receive()?, (ENQUIRE_LINK | GENERIC_NACK, 0, 6, Vec::new()));
    // And a good one is taken.
    raw.send_pdu(SUBMIT_SM, 7, &submit_body(b"10655", b"8613800000000", b"n=0000900000 c=001 good"))?;
    let (id, status, sequence, body) = raw.receive()?;
    assert_eq!((id, status, sequence), (SUBMIT_SM | GENERIC_NACK, 0, 7));
    assert!(body.len() > 1, "no id");
    house.submitted += 1;
    house.close()
}

#[test]
fn commands_before_the_bind_and_wrong_passwords_get_the_protocols_error() -> Result<()> {
    let stage = Stage::new()?;
    let house = House::open(&stage, "")?;
    let mut raw = Raw::connect(house.appliance.smpp())?;
    // enquire_link is allowed before the bind; submit_sm is not: RINVBNDSTS.
    raw.send_pdu(ENQUIRE_LINK, 1, b"")?;
    assert_eq!(raw.receive()?, (ENQUIRE_LINK | GENERIC_NACK, 0, 1, Vec::new()));
    raw.send_pdu(SUBMIT_SM, 2, &submit_body(b"10655", b"8613800000000", b"early"))?;
    let (id, status, sequence, _) = raw.receive()?;
    assert_eq!((id, status, sequence), (SUBMIT_SM | GENERIC_NACK, 4, 2));
    for (system_id, password) in [("bad", "wrong"), ("nobody", PASSWORD), ("bad", "")] {
        let status = Raw::connect(house.appliance.smpp())?.bind(system_id, password)?;
        assert!([0x0d, 0x0e, 0x0f].contains(&status), "{system_id}: status {status:#x}");
    }
    let log = house.appliance.log(200);
    assert!(!log.contains(PASSWORD) && !log.contains("wrong\""), "a password is in the log:\n{log}");
    house.close()
}

#[test]
fn half_open_and_silent_connections_are_closed_by_timer() -> Result<()> {
    let stage = Stage::new()?;
    let listener = "bind-timeout = \"300ms\"\npartial-timeout = \"300ms\"";
    let mut house = House::open(&stage, listener)?;
    let mut silent = Raw::connect(house.appliance.smpp())?;
    let mut half = Raw::connect(house.appliance.smpp())?;
    half.send(&[0, 0, 0, 40, 0, 0, 0, 9])?;
    let mut bound = Raw::connect(house.appliance.smpp())?;
    assert_eq!(bound.bind("bad", PASSWORD)?, 0);
    bound.send(&[0, 0, 0, 90, 0, 0, 0, 4, 0, 0])?;
    for raw in [&mut silent, &mut half, &mut bound] {
        raw.until_closed()?;
    }
    house.others_do_not_notice()?;
    house.close()
}

#[test]
fn the_oldest_unbound_connection_of_an_address_gives_way_when_there_are_too_many() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "connections-per-address = 20")?;
    let mut crowd = Vec::new();
    for _ in 0..60 {
        crowd.push(Raw::connect(house.appliance.smpp())?);
    }
    // As many of the oldest are closed as there are too many.
    for one in crowd.iter_mut().take(20) {
        one.until_closed()?;
    }
    let mut last = Raw::connect(house.appliance.smpp())?;
    assert_eq!(last.bind("bad", PASSWORD)?, 0, "there is no place for a right bind");
    house.others_do_not_notice()?;
    drop((crowd, last));
    house.close()
}

#[test]
fn connections_that_never_bind_do_not_fill_a_listener() -> Result<()> {
    let stage = Stage::new()?;
    let limits =
        "connections = 30\nconnections-per-address = 30\nunbound-connections = 5\nbind-timeout = \"10m\"";
    let mut house = House::open(&stage, limits)?;
    let mut bound = Raw::connect(house.appliance.smpp())?;
    assert_eq!(bound.bind("bad", PASSWORD)?, 0);
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(Raw::connect(house.appliance.smpp())?);
    }
    let mut late = Raw::connect(house.appliance.smpp())?;
    assert_eq!(late.bind("bad", PASSWORD)?, 0, "there is no place for a right bind");
    for one in crowd.iter_mut().take(90) {
        one.until_closed()?;
    }
    for raw in [&mut bound, &mut late] {
        raw.send_pdu(ENQUIRE_LINK, 77, &[])?;
        assert_eq!(raw.receive()?.2, 77, "a bound session was displaced");
    }
    assert!(house.appliance.metric("switchyard_connections_turned_away_total")? >= 90.0);
    house.others_do_not_notice()?;
    drop((crowd, bound, late));
    house.close()
}

#[test]
fn a_flood_beyond_the_window_is_answered_or_held_back_and_loses_nothing() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "")?;
    let mut raw = Raw::connect(house.appliance.smpp())?;
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
    house.submitted += accepted;
    house.others_do_not_notice()?;
    house.close()
}

#[test]
fn one_that_never_reads_is_cut_off_and_costs_little_memory() -> Result<()> {
    let stage = Stage::new()?;
    let mut house = House::open(&stage, "")?;
    let mut raw = Raw::connect(house.appliance.smpp())?;
    assert_eq!(raw.bind("bad", PASSWORD)?, 0);
    let before = behaviour_tests::load::resident(house.appliance.id()).unwrap_or(0);
    // Enquiries by the million, and not one answer read: reading stops, or the connection is closed.
    let mut enquiries = Vec::new();
    for sequence in 1..=4096_u32 {
        enquiries.extend_from_slice(&[0, 0, 0, 16, 0, 0, 0, 0x15, 0, 0, 0, 0]);
        enquiries.extend_from_slice(&sequence.to_be_bytes());
    }
    let most = 256 << 20;
    let taken = raw.flood(&enquiries, most)?;
    assert!(taken < most, "all {taken} octets were taken from one that reads nothing");
    let after = behaviour_tests::load::resident(house.appliance.id()).unwrap_or(0);
    let grown = after.saturating_sub(before);
    assert!(grown < 64 << 20, "one connection made the daemon grow by {grown} octets");
    house.others_do_not_notice()?;
    house.close()
}
