//! Two sessions, one in each role, over a line that splits the stream anywhere.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use smpp::{
    Bind, BindMode, CommandId, CommandStatus, Event, InterfaceVersion, Request, Response, Session,
    SessionState, Sm, SmppClientOptions, SmppOptions, WindowFullPolicy,
};
use std::collections::BTreeMap;
use std::time::Instant;

/// One end of the line and the state of its owner.
struct End {
    session: Session,
    /// The peer's requests that wait for an answer: number, command, text.
    requests: Vec<(u32, CommandId, Bytes)>,
    /// Our tokens, with the id of the response once there is one.
    responses: BTreeMap<u64, Option<Bytes>>,
    refused: usize,
}

impl End {
    fn new(session: Session) -> Self {
        Self { session, requests: Vec::new(), responses: BTreeMap::new(), refused: 0 }
    }

    fn listen(&mut self, now: Instant) {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Bind(bind) => self.session.accept_bind(now, InterfaceVersion(bind.interface_version)),
                Event::Bound { .. } | Event::Anomaly(_) | Event::Closing(_) => {}
                Event::Request { sequence, request } => {
                    let command = request.command();
                    let (Request::SubmitSm(sm) | Request::DeliverSm(sm)) = request else { panic!() };
                    self.requests.push((sequence, command, sm.short_message));
                }
                Event::Answer { token, status, response, late } => {
                    assert!(!late);
                    let id = Bytes::copy_from_slice(response.message_id());
                    self.refused += usize::from(status == CommandStatus::RTHROTTLED);
                    assert_eq!(
                        self.responses.insert(token, Some(id)),
                        Some(None),
                        "{token} was answered before"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn ask(&mut self, now: Instant, token: u64, server: bool) {
        let sm = Sm { short_message: Bytes::from(token.to_string()), ..Sm::default() };
        let request = if server { Request::DeliverSm(sm) } else { Request::SubmitSm(sm) };
        if self.session.request(now, token, &request).is_ok() {
            self.responses.insert(token, None);
        }
    }

    /// Answers one of the waiting requests, with its text as the id.
    fn answer(&mut self, now: Instant, which: usize) {
        if !self.requests.is_empty() {
            let (sequence, command, text) = self.requests.swap_remove(which % self.requests.len());
            self.session.respond(command, sequence, CommandStatus::ROK, &Response::id(text));
            self.session.process(now);
        }
    }
}

/// Carries at most this many octets, if the other end wants input.
fn carry(now: Instant, from: &mut End, to: &mut End, most: usize) {
    if to.session.wants_input() {
        let output = from.session.output();
        let octets = output.split_to(most.min(output.len()));
        to.session.receive(now, &octets);
    }
    to.listen(now);
    to.session.process(now);
    to.listen(now);
}

proptest! {
    #[test]
    fn every_request_has_its_own_answer_once(
        window_in in 1..6_usize,
        window_out in 1..12_usize,
        backlog in 1..400_usize,
        throttle in any::<bool>(),
        steps in vec((0..6_u8, 0..200_usize), 1..300),
    ) {
        let now = Instant::now();
        let window_full_policy = if throttle { WindowFullPolicy::Throttle } else { WindowFullPolicy::Wait };
        let options = SmppOptions { window_in, window_out, backlog, window_full_policy, ..SmppOptions::default() };
        let bind = Bind {
            mode: BindMode::Transceiver,
            system_id: Bytes::from_static(b"esme"),
            password: Bytes::new(),
            system_type: Bytes::new(),
            interface_version: 0x34,
            addr_ton: 0,
            addr_npi: 0,
            address_range: Bytes::new(),
        };
        let mut smsc = End::new(Session::server(now, options.clone()));
        let mut esme = End::new(Session::client(now, SmppClientOptions { options, bind, await_outbind: None }));
        for (token, (what, much)) in (0..).zip(steps) {
            match what {
                0 => esme.ask(now, token, false),
                1 => smsc.ask(now, token, true),
                2 => carry(now, &mut esme, &mut smsc, much),
                3 => carry(now, &mut smsc, &mut esme, much),
                4 => esme.answer(now, much),
                _ => smsc.answer(now, much),
            }
        }
        // Then everything is completed, and the client unbinds.
        for _ in 0..2_000 {
            carry(now, &mut esme, &mut smsc, 10_000);
            carry(now, &mut smsc, &mut esme, 10_000);
            esme.answer(now, 0);
            smsc.answer(now, 0);
        }
        prop_assert!(esme.session.bound_as().is_some() && smsc.session.bound_as().is_some());
        for end in [&esme, &smsc] {
            prop_assert_eq!(end.session.in_flight(), 0);
            prop_assert_eq!(end.session.unanswered_in(), 0);
            prop_assert!(throttle || end.refused == 0);
        }
        // deliver_sm_resp has no id; submit_sm_resp has the id of its own request.
        for (token, id) in &esme.responses {
            let id = id.as_ref().unwrap();
            prop_assert!(*id == token.to_string() || (throttle && id.is_empty()), "{} {:?}", token, id);
        }
        prop_assert!(smsc.responses.values().all(|id| id.as_ref().is_some_and(Bytes::is_empty)));
        esme.session.unbind(now);
        carry(now, &mut esme, &mut smsc, 10_000);
        carry(now, &mut smsc, &mut esme, 10_000);
        for end in [&mut esme, &mut smsc] {
            prop_assert!(matches!(end.session.state(), SessionState::Closed(_)));
            prop_assert!(end.session.close().is_empty());
        }
    }
}
