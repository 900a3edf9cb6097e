//! A connection to a simulated HLR.

use super::hlr::{NAME, Route, Shared};
use super::wire::{self, Message};
use anyhow::{Result, bail, ensure};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

const NO_SUCH_SUBSCRIBER: u8 = 2;
const NOT_ATTACHED: u8 = 10;
/// RP causes.
const UNASSIGNED_NUMBER: u8 = 1;
const SEMANTICALLY_INCORRECT: u8 = 95;

pub(super) async fn serve(mut stream: TcpStream, shared: &Arc<Shared>) -> Result<()> {
    stream.set_nodelay(true)?;
    let (frames, mut routed) = mpsc::unbounded_channel();
    let mut link = Link {
        shared,
        route: Arc::new(Route { frames }),
        name: None,
        output: Vec::with_capacity(1 << 16),
        inserting: HashSet::new(),
    };
    wire::id_request(&mut link.output);
    link.drive(&mut stream, &mut routed).await
}

struct Link<'a> {
    shared: &'a Shared,
    route: Arc<Route>,
    /// The registered name, if any.
    name: Option<String>,
    output: Vec<u8>,
    /// Subscribers whose data is being inserted at the MSC.
    inserting: HashSet<u64>,
}

/// Unregisters the name however the connection ends: a name without a connection would swallow messages.
impl Drop for Link<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.shared.unregister(name, &self.route);
        }
    }
}

impl Link<'_> {
    async fn drive(
        &mut self,
        stream: &mut TcpStream,
        routed: &mut mpsc::UnboundedReceiver<Vec<u8>>,
    ) -> Result<()> {
        let (mut reader, mut writer) = stream.split();
        let mut input = Vec::with_capacity(1 << 17);
        let mut written = 0;
        loop {
            tokio::select! {
                count = reader.read_buf(&mut input), if self.output.len() - written < 1 << 20 => {
                    ensure!(count? > 0, "the connection was closed");
                    let mut rest = &input[..];
                    while let Some((stream, payload)) = wire::next(&mut rest) {
                        self.handle(stream, payload)?;
                    }
                    let left = rest.len();
                    let read = input.len() - left;
                    input.drain(..read);
                }
                count = writer.write(&self.output[written..]), if written < self.output.len() => {
                    written += count?;
                    if written == self.output.len() {
                        self.output.clear();
                        written = 0;
                    }
                }
                frame = routed.recv() => {
                    self.output.extend(frame.into_iter().flatten());
                    while let Ok(more) = routed.try_recv() {
                        self.output.extend_from_slice(&more);
                    }
                }
            }
        }
    }

    fn handle(&mut self, stream: u8, payload: &[u8]) -> Result<()> {
        match (stream, payload) {
            (wire::CCM, [wire::PING]) => wire::word(&mut self.output, wire::PONG),
            (wire::CCM, [wire::ID_RESPONSE, items @ ..]) => return self.identity(items),
            (wire::OSMOCOM, payload) => {
                // Unknown messages are dropped silently, as OsmoHLR does.
                if let Some(message) = Message::read(payload) {
                    self.shared.messages.fetch_add(1, Relaxed);
                    self.message(&message, payload);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn identity(&mut self, items: &[u8]) -> Result<()> {
        if wire::identity(items, 8).is_none_or(<[u8]>::is_empty) {
            self.shared.refused.fetch_add(1, Relaxed);
            bail!("identity response without unit id");
        }
        let serial = wire::identity(items, 0).and_then(|name| name.strip_suffix(b"\0"));
        let name = serial.and_then(|name| std::str::from_utf8(name).ok());
        match name.filter(|name| self.shared.register(name, &self.route)) {
            Some(name) => self.name = Some(name.to_owned()),
            // The connection stays open and gets nothing, as with OsmoHLR.
            None => {
                self.shared.refused.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    }

    fn message(&mut self, message: &Message<'_>, payload: &[u8]) {
        let (shared, imsi) = (self.shared, message.imsi);
        let subscriber = shared.options.subscribers.by_imsi(imsi);
        match (message.kind, subscriber) {
            (wire::UPDATE_LOCATION | wire::SEND_AUTH_INFO | wire::PURGE, None) => {
                let kind = message.kind + wire::ERROR;
                wire::message(&mut self.output, kind, imsi, &[(wire::CAUSE, &[NO_SUCH_SUBSCRIBER])]);
            }
            (wire::UPDATE_LOCATION, Some(subscriber)) => {
                let digits = wire::digits(&shared.options.subscribers.msisdn(subscriber));
                let msisdn = [&[digits.len() as u8][..], &digits].concat();
                let elements: [(u8, &[u8]); 3] =
                    [(wire::MSISDN, &msisdn), (wire::CN_DOMAIN, &[2]), (wire::CLASS, &[1])];
                wire::message(&mut self.output, wire::INSERT_DATA, imsi, &elements);
                self.inserting.insert(imsi);
            }
            (kind, Some(subscriber)) if kind == wire::INSERT_DATA + wire::RESULT => {
                if self.inserting.remove(&imsi) {
                    if let Some(name) = &self.name {
                        shared.set_location(subscriber, name);
                    }
                    shared.located.fetch_add(1, Relaxed);
                    let kind = wire::UPDATE_LOCATION + wire::RESULT;
                    wire::message(&mut self.output, kind, imsi, &[(wire::CLASS, &[1])]);
                }
            }
            (wire::PURGE, Some(_)) => {
                wire::message(&mut self.output, wire::PURGE + wire::RESULT, imsi, &[(wire::CLASS, &[1])]);
            }
            (wire::SEND_AUTH_INFO, Some(_)) => {
                // Five vectors for a SIM: random number, signed response, key.
                const TUPLE: [u8; 34] = [
                    0x20, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x21, 4, 1, 2, 3, 4,
                    0x22, 8, 1, 2, 3, 4, 5, 6, 7, 8,
                ];
                let elements = [(wire::AUTH_TUPLE, &TUPLE[..]); 5];
                wire::message(&mut self.output, wire::SEND_AUTH_INFO + wire::RESULT, imsi, &elements);
            }
            _ => self.short_message(message, payload),
        }
    }

    /// Routes messages about short messages.
    fn short_message(&mut self, message: &Message<'_>, payload: &[u8]) {
        let shared = self.shared;
        match message.kind {
            // A message with a destination name is routed by that name in every version.
            _ if message.name(wire::DESTINATION).is_some_and(|name| name != NAME) => {
                if let Some(name) = message.name(wire::DESTINATION) {
                    self.forward(message, payload, name);
                }
            }
            wire::MO_FORWARD | wire::MT_FORWARD | wire::READY if shared.options.centre.is_none() => {}
            wire::MO_FORWARD => {
                let Some(centre) = &shared.options.centre else { return };
                match message.get(wire::RP_DA) {
                    Some([3, 0x91, _, ..]) => self.forward(message, payload, centre),
                    Some([3, ..]) => self.refuse(message, wire::RP_CAUSE, UNASSIGNED_NUMBER),
                    _ => self.refuse(message, wire::RP_CAUSE, SEMANTICALLY_INCORRECT),
                }
            }
            wire::MT_FORWARD => match shared.options.subscribers.by_imsi(message.imsi) {
                None => self.refuse(message, wire::CAUSE, NO_SUCH_SUBSCRIBER),
                Some(subscriber) => match shared.location(subscriber) {
                    None => self.refuse(message, wire::CAUSE, NOT_ATTACHED),
                    Some(name) => self.forward(message, payload, &name),
                },
            },
            wire::READY => {
                let reference = message.get(wire::RP_MR).unwrap_or(&[0]);
                let elements: [(u8, &[u8]); 2] = [(wire::RP_MR, reference), (wire::CLASS, &[2])];
                wire::message(&mut self.output, wire::READY + wire::RESULT, message.imsi, &elements);
                let reason = message.get(wire::ALERT_REASON).unwrap_or(&[2]);
                let own = wire::name(NAME);
                let elements: [(u8, &[u8]); 4] = [
                    (wire::RP_MR, reference),
                    (wire::ALERT_REASON, reason),
                    (wire::CLASS, &[2]),
                    (wire::SOURCE, &own),
                ];
                let mut frame = Vec::new();
                wire::message(&mut frame, wire::READY, message.imsi, &elements);
                let centre = shared.options.centre.as_deref().and_then(|name| shared.route(name));
                if let Some(route) = centre {
                    // A node that is disconnecting misses the message.
                    let _ = route.frames.send(frame);
                }
            }
            _ => {}
        }
    }

    fn forward(&mut self, message: &Message<'_>, payload: &[u8], name: &str) {
        let Some(route) = self.shared.route(name) else {
            self.shared.unrouted.fetch_add(1, Relaxed);
            let reference = message.get(wire::RP_MR).unwrap_or(&[0]);
            let elements: [(u8, &[u8]); 2] = [(wire::RP_MR, reference), (wire::CLASS, &[2])];
            return wire::message(&mut self.output, wire::ROUTING_ERROR, message.imsi, &elements);
        };
        let mut frame = Vec::with_capacity(payload.len() + 40);
        match (&self.name, message.get(wire::SOURCE)) {
            (Some(own), None) => wire::forwarded(&mut frame, payload, wire::SOURCE, &wire::name(own)),
            _ => wire::frame(&mut frame, wire::OSMOCOM, |out| out.extend_from_slice(payload)),
        }
        let _ = route.frames.send(frame);
    }

    fn refuse(&mut self, message: &Message<'_>, tag: u8, cause: u8) {
        let reference = message.get(wire::RP_MR).unwrap_or(&[0]);
        let cause = [cause];
        let mut elements: Vec<(u8, &[u8])> =
            vec![(wire::RP_MR, reference), (tag, &cause), (wire::CLASS, &[2])];
        if tag == wire::CAUSE {
            elements.swap(0, 1);
        }
        wire::message(&mut self.output, message.kind + wire::ERROR, message.imsi, &elements);
    }
}
