//! Measures the engine's cost of a message, from acceptance to its end, for an ordinary peer and for a serial one.
//!
//! `cargo run --release -p engine --example dispatch_speed`; append `ordinary` for the ordinary peer only.
#![allow(clippy::print_stdout, reason = "this program prints its results")]

use bytes::Bytes;
use engine::{Engine, EngineCommand, Event, Output, PeerSettings, ReplyTo, Settings};
use model::{
    Address, Leg, LinkId, Message, MessageId, Moment, Now, Outcome, PeerId, PluginVersion, RoutingDecision,
    Text, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Instant;

const MESSAGES: u64 = 1_000_000;
const RUN: u64 = 256;
const ACCOUNT: PeerId = PeerId(0);
const PEER: PeerId = PeerId(1);

fn message(number: u64, by: &Arc<PluginVersion>) -> Message {
    Message::new(
        ACCOUNT,
        Address::new(0, 1, b"10655"),
        Address::international(&format!("4917{number:08}")),
        Text { octets: Bytes::from_static(b"hello"), ..Text::default() },
        Timestamp(1_795_000_000_000 + 86_400_000),
        RoutingDecision::new(Verdict::Forward(vec![Leg::to(PEER)]), by.clone()),
    )
}

/// Sends all messages to `numbers` destinations; returns nanoseconds per message.
fn run(change: impl Fn(&mut PeerSettings), numbers: u64) -> f64 {
    let by = Arc::new(PluginVersion { plugin: "example".to_owned(), version: "1".to_owned() });
    let now = Now { wall: Timestamp(1_795_000_000_000), mono: Moment(1_000_000) };
    let mut engine = Engine::new(Settings { body_cache: 1 << 30, ..Settings::default() });
    let mut out = Output::default();
    let mut peer = PeerSettings::new(PEER);
    peer.sends_dlrs = false;
    change(&mut peer);
    engine.apply(now, Event::Peer(PeerSettings::new(ACCOUNT)), &mut out);
    engine.apply(now, Event::Peer(peer), &mut out);
    engine.finish_recovery(MessageId::FIRST, 1, &[], &mut out);
    let link = LinkId(1);
    engine.apply(now, Event::LinkUp { link, peer: PEER, window: 1000 }, &mut out);
    let reply = ReplyTo { link: LinkId(2), token: 0 };
    let begin = Instant::now();
    let (mut given, mut ended) = (0, 0);
    let mut answers = Vec::new();
    while ended < MESSAGES {
        for _ in 0..RUN.min(MESSAGES - given) {
            let message = Box::new(message(given % numbers, &by));
            engine.apply(now, Event::Accept { message, reply }, &mut out);
            given += 1;
        }
        for id in answers.drain(..) {
            let outcome = Outcome::Accepted { ids: Vec::new() };
            engine.apply(now, Event::Outcome { link, id, outcome }, &mut out);
        }
        engine.advance(now, &mut out);
        engine.seal(&mut out);
        let Output { batch, commands, .. } = std::mem::take(&mut out);
        ended += batch.finished.len() as u64;
        for command in commands {
            if let EngineCommand::Send { message, .. } = command {
                answers.push(message.id);
            }
        }
    }
    begin.elapsed().as_secs_f64() * 1e9 / MESSAGES as f64
}

fn main() {
    for _ in 0..3 {
        println!("ordinary peer: {:.0} ns a message", run(|_| {}, 100_000));
    }
    if std::env::args().any(|word| word == "ordinary") {
        return;
    }
    for (numbers, what) in [(MESSAGES, "each to its own number"), (1000, "to 1,000 numbers"), (1, "to one")] {
        println!("serial peer, {what}: {:.0} ns a message", run(|peer| peer.serial = true, numbers));
    }
}
