//! DLRs per segment, resent DLRs, orphan DLRs, opt-outs and expiring idempotency keys.

use bytes::Bytes;
use engine::{Engine, EngineAnswer, EngineCommand, Event, Output, PeerSettings, ReplyTo, Settings};
use model::{
    Address, Dlr, DlrContent, DlrRequest, DlrState, ErrorClass, FinalRecord, FinalState, IdempotencyKey, Leg,
    LinkId, Message, MessageId, MessageKind, Moment, Now, ObservationKind, Outcome, PeerId, PeerMessageId,
    PluginVersion, Refusal, RejectReason, RoutingDecision, Text, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

const ACCOUNT: PeerId = PeerId(0);
const GATEWAY: PeerId = PeerId(1);
const REPLY: ReplyTo = ReplyTo { link: LinkId(9), token: 1 };

struct EngineFixture {
    engine: Engine,
    now: Now,
}

impl EngineFixture {
    fn new(change: impl FnOnce(&mut PeerSettings)) -> Self {
        let settings = Settings { country: "86".to_owned(), ..Settings::default() };
        let now = Now { wall: Timestamp(1_795_000_000_000), mono: Moment(1_000_000) };
        let mut fixture = Self { engine: Engine::new(settings), now };
        let mut account = PeerSettings::new(ACCOUNT);
        (account.addressee, account.sends_dlrs) = (true, false);
        change(&mut account);
        fixture.run(vec![
            Event::Peer(account),
            Event::Peer(PeerSettings::new(GATEWAY)),
            Event::LinkUp { link: LinkId(1), peer: GATEWAY, window: 10 },
            Event::LinkUp { link: LinkId(2), peer: ACCOUNT, window: 10 },
        ]);
        fixture
    }

    fn run(&mut self, events: Vec<Event>) -> Output {
        let mut out = Output::default();
        for event in events {
            self.engine.apply(self.now, event, &mut out);
        }
        self.engine.advance(self.now, &mut out);
        self.engine.seal(&mut out);
        out
    }

    fn submit(&mut self) -> Result<MessageId, Refusal> {
        let event = Event::Accept { message: Box::new(message()), reply: REPLY };
        match answers(&self.run(vec![event])).remove(0) {
            EngineAnswer::Accepted(id) => Ok(id),
            EngineAnswer::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }
}

fn answers(out: &Output) -> Vec<EngineAnswer> {
    let answer = |command: &EngineCommand| match command {
        EngineCommand::Answer { answer, .. } => Some(answer.clone()),
        _ => None,
    };
    out.commands.iter().filter_map(answer).collect()
}

/// The DLRs on their way to the account.
fn dlrs_in(out: &Output) -> Vec<DlrContent> {
    let dlr = |message: &Arc<Message>| match &message.kind {
        MessageKind::Dlr(text) => Some((**text).clone()),
        MessageKind::Text => None,
    };
    out.batch.accepted.iter().filter_map(dlr).collect()
}

fn message() -> Message {
    let by = Arc::new(PluginVersion { plugin: "test".to_owned(), version: "1".to_owned() });
    Message {
        dlr_request: DlrRequest::FINAL, // One public TLV, and a private one.
        tlvs: Bytes::from_static(&[0x02, 0x04, 0, 1, 7]),
        protocol_fields: Bytes::from_static(&[0x15, 0x0E, 0, 2, b'o', b'k']),
        ..Message::new(
            ACCOUNT,
            Address::new(0, 1, b"10655"),
            Address::international("8613012345678"),
            Text { octets: Bytes::from_static(b"text"), ..Text::default() },
            Timestamp(1_795_000_000_000 + 3_600_000),
            RoutingDecision::new(Verdict::Forward(vec![Leg::to(GATEWAY)]), by),
        )
    }
}

fn part(number: u8) -> PeerMessageId {
    PeerMessageId::new(&[b'p', number])
}

fn dlr(number: u8, state: DlrState) -> Event {
    let dlr = Dlr {
        id: part(number),
        state,
        intermediate: false,
        error: 7,
        network_error: None,
        done_at: None,
        from: Default::default(),
        to: Default::default(),
    };
    Event::Dlr { peer: GATEWAY, dlr, reply: REPLY }
}

fn taken(id: MessageId) -> Event {
    let outcome = Outcome::Accepted { ids: vec![part(1), part(2)] };
    Event::Outcome { link: LinkId(1), id, outcome }
}

#[test]
fn dlrs_merged_or_per_segment() {
    for per_segment in [false, true] {
        let mut fixture = EngineFixture::new(|account| account.segment_dlrs = per_segment);
        let id = fixture.submit().unwrap();
        fixture.run(vec![taken(id)]);
        let first = dlrs_in(&fixture.run(vec![dlr(1, DlrState::Delivered)]));
        let second_out = fixture.run(vec![dlr(2, DlrState::Undeliverable)]);
        let second = dlrs_in(&second_out);
        let ended: Vec<FinalState> = second_out.batch.finished.iter().map(|(_, ended)| ended.state).collect();
        assert_eq!(ended, [FinalState::Failed], "the kind of DLRs does not change the message");
        let shown = |texts: &[DlrContent]| -> Vec<(u16, DlrState)> {
            texts.iter().map(|text| (text.segment, text.state)).collect()
        };
        if per_segment {
            assert_eq!(shown(&first), [(1, DlrState::Delivered)]);
            assert_eq!(shown(&second), [(2, DlrState::Undeliverable)]);
        } else {
            assert_eq!(shown(&first), []);
            assert_eq!(shown(&second), [(0, DlrState::Undeliverable)]);
            assert_eq!(second[0].segments, (2, 1));
        }
        // A DLR inherits private TLVs only.
        let tlvs = &second_out.batch.accepted[0].protocol_fields;
        assert_eq!(tlvs[..], [0x15, 0x0E, 0, 2, b'o', b'k']);
    }
}

#[test]
fn opted_out_subscribers_get_nothing_until_start() {
    let mut fixture = EngineFixture::new(|account| account.opt_out = true);
    let opt_out = |stop| Event::OptOut {
        sender: model::AddressBytes::from_slice(b"10655"),
        // Another spelling of the same subscriber.
        subscriber: model::AddressBytes::from_slice(b"13012345678"),
        stop,
        reply: Some(REPLY),
    };
    let out = fixture.run(vec![opt_out(true), opt_out(true)]);
    assert_eq!((out.batch.opt_outs.len(), answers(&out)), (1, vec![EngineAnswer::Done, EngineAnswer::Done]));
    assert_eq!(fixture.submit(), Err(Refusal::Rejected(RejectReason::OptedOut)));
    fixture.run(vec![opt_out(false)]);
    assert!(fixture.submit().is_ok());
    // Without the setting, opt-outs refuse nothing.
    let mut fixture = EngineFixture::new(|account| account.opt_out = false);
    fixture.run(vec![opt_out(true)]);
    assert!(fixture.submit().is_ok());
}

#[test]
fn a_dlr_is_resent_within_the_accounts_queue_limit() {
    let mut fixture = EngineFixture::new(|account| account.queue_limit = 1);
    fixture.run(vec![Event::LinkDown { link: LinkId(2) }]);
    let ended = FinalRecord {
        state: FinalState::Delivered,
        at: fixture.now.wall,
        error: 0,
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: Vec::new(),
    };
    let mut of = message();
    of.id = MessageId(77);
    let again =
        || Event::ResendDlr { message: Box::new(of.clone()), ended: Box::new(ended.clone()), reply: REPLY };
    let out = fixture.run(vec![again()]);
    assert_eq!((dlrs_in(&out)[0].of, answers(&out)), (MessageId(77), vec![EngineAnswer::Done]));
    assert_eq!(answers(&fixture.run(vec![again()])), [EngineAnswer::Refused(Refusal::QueueFull)]);
}

#[test]
fn an_orphan_dlr_is_stored_before_its_answer_and_matched_later() {
    let mut fixture = EngineFixture::new(|_| {});
    let out = fixture.run(vec![dlr(1, DlrState::Delivered)]);
    assert_eq!((out.batch.orphan_dlrs.len(), answers(&out)), (1, vec![EngineAnswer::DlrRecorded]));
    // While an attempt is unanswered, the DLR may have overtaken the response: it waits and is not stored.
    let id = fixture.submit().unwrap();
    let out = fixture.run(vec![dlr(2, DlrState::Delivered)]);
    assert!(out.batch.orphan_dlrs.is_empty() && answers(&out).is_empty());
    let out = fixture.run(vec![taken(id)]);
    assert_eq!(out.batch.orphan_dlrs_done.len(), 1);
    assert_eq!(out.batch.finished[0].1.state, FinalState::Delivered);
    assert_eq!(answers(&out), [EngineAnswer::DlrRecorded]);
    // If it still waits later, it is stored and then answered.
    fixture.submit().unwrap();
    fixture.run(vec![dlr(5, DlrState::Delivered)]);
    fixture.now.mono = fixture.now.mono + Duration::from_secs(4);
    let out = fixture.run(Vec::new());
    assert_eq!((out.batch.orphan_dlrs.len(), answers(&out)), (1, vec![EngineAnswer::DlrRecorded]));
}

#[test]
fn orphan_dlrs_leave_room_in_the_window_of_their_link() {
    // Submit responses are behind the DLRs on the link: if it is not read, they never come.
    let mut fixture = EngineFixture::new(|_| {});
    let id = fixture.submit().unwrap();
    let many = (10..62).map(|number| dlr(number, DlrState::Delivered));
    let out = fixture.run(many.collect());
    assert_eq!(out.batch.orphan_dlrs.len(), 2, "the oldest are stored");
    assert_eq!(answers(&out), [EngineAnswer::DlrRecorded, EngineAnswer::DlrRecorded]);
    // The DLR of the message in flight waits for the response, as before.
    let out = fixture.run(vec![dlr(1, DlrState::Delivered), dlr(2, DlrState::Delivered), taken(id)]);
    assert_eq!(out.batch.finished[0].1.state, FinalState::Delivered);
}

#[test]
fn keys_are_forgotten_in_time() {
    let mut fixture = EngineFixture::new(|_| {});
    let submit = || Event::AcceptMany {
        shared_id: false,
        messages: vec![message()],
        key: Some(IdempotencyKey {
            octets: b"k".as_slice().into(),
            digest: 1,
            required: true,
            lifetime: None,
        }),
        reply: REPLY,
    };
    let first = answers(&fixture.run(vec![submit()]));
    assert_eq!(answers(&fixture.run(vec![submit()])), first);
    assert_eq!(fixture.engine.idempotency_key_count(), 1);
    let day = Duration::from_secs(86_401);
    fixture.now = Now { wall: fixture.now.wall + day, mono: fixture.now.mono + day };
    let out = fixture.run(Vec::new());
    assert_eq!((out.batch.idempotency_keys_done, fixture.engine.idempotency_key_count()), (Some(1), 0));
}

#[test]
fn a_new_key_is_refused_when_the_accounts_memory_is_full_and_no_live_one_is_forgotten() {
    let mut fixture = EngineFixture::new(|_| {});
    let mut settings = PeerSettings::new(message().origin);
    settings.idempotency_key_memory = 1000;
    fixture.run(vec![Event::Peer(settings)]);
    let mut lasting = message();
    lasting.expires_at = lasting.expires_at + Duration::from_secs(200_000);
    let submit = |name: u32, required: bool| Event::AcceptMany {
        shared_id: false,
        messages: vec![lasting.clone()],
        key: Some(IdempotencyKey {
            octets: name.to_be_bytes().as_slice().into(),
            digest: 1,
            required,
            lifetime: None,
        }),
        reply: REPLY,
    };
    let mut taken = Vec::new();
    let refused =
        (0..1000).find_map(|name| match answers(&fixture.run(vec![submit(name, true)])).as_slice() {
            [EngineAnswer::Refused(Refusal::KeysFull { retry_after })] => Some(*retry_after),
            answer => {
                taken.push(answer.to_vec());
                None
            }
        });
    // The oldest key expires after a day.
    assert_eq!(refused, Some(86_400));
    assert!(!taken.is_empty());
    for (name, answer) in (0..).zip(&taken) {
        assert_eq!(answers(&fixture.run(vec![submit(name, true)])), *answer, "a live key was forgotten");
    }
    let sequence = answers(&fixture.run(vec![submit(5000, false)]));
    assert!(
        matches!(sequence.as_slice(), [EngineAnswer::AcceptedMany(results)] if results[0].is_ok()),
        "{sequence:?}"
    );
    assert_eq!(
        fixture.engine.idempotency_key_count(),
        taken.len(),
        "a protocol's sequence number is accepted and not remembered"
    );
    let day = Duration::from_secs(86_401);
    fixture.now = Now { wall: fixture.now.wall + day, mono: fixture.now.mono + day };
    fixture.run(Vec::new());
    let again = answers(&fixture.run(vec![submit(5001, true)]));
    assert!(
        matches!(again.as_slice(), [EngineAnswer::AcceptedMany(results)] if results[0].is_ok()),
        "{again:?}"
    );
}

/// For each observation: its kind, and whether it contains its message.
fn observed(out: &Output) -> Vec<(ObservationKind, bool)> {
    assert!(out.observations.iter().all(|one| one.peer == GATEWAY), "{:?}", out.observations);
    out.observations.iter().map(|one| (one.kind, one.message.is_some())).collect()
}

#[test]
fn outcomes_and_dlrs_are_observed() {
    let mut fixture = EngineFixture::new(|_| {});
    let outcome = |id, outcome| Event::Outcome { link: LinkId(1), id, outcome };
    let refused = fixture.submit().unwrap();
    let class = ErrorClass::Permanent;
    let out = fixture.run(vec![outcome(refused, Outcome::Refused { class, code: 0x0b, taken: Vec::new() })]);
    assert_eq!(observed(&out), [(ObservationKind::Refused(class), true)]);

    for (state, delivered) in [(DlrState::Delivered, true), (DlrState::Undeliverable, false)] {
        let id = fixture.submit().unwrap();
        let peer_id = PeerMessageId::new(format!("{}", id.0).as_bytes());
        let out = fixture.run(vec![outcome(id, Outcome::Accepted { ids: vec![peer_id.clone()] })]);
        assert_eq!(observed(&out), [(ObservationKind::Accepted, true)]);
        let after = Duration::from_secs(3);
        fixture.now = Now { wall: fixture.now.wall + after, mono: fixture.now.mono + after };
        let dlr = Dlr {
            id: peer_id,
            state,
            intermediate: false,
            error: 0,
            network_error: None,
            done_at: None,
            from: model::AddressBytes::new(),
            to: model::AddressBytes::new(),
        };
        let out = fixture.run(vec![Event::Dlr { peer: GATEWAY, dlr, reply: REPLY }]);
        let expected = if delivered {
            ObservationKind::Delivered { after }
        } else {
            ObservationKind::Failed { after: Some(after) }
        };
        assert_eq!(observed(&out), [(expected, true)]);
    }

    fixture.submit().unwrap();
    let out = fixture.run(vec![Event::LinkDown { link: LinkId(1) }]);
    assert_eq!(observed(&out), [(ObservationKind::Unanswered, true)]);
}

#[test]
fn a_dlr_that_does_not_come_in_time_is_observed_as_a_failure() {
    let mut fixture = EngineFixture::new(|_| {});
    let id = fixture.submit().unwrap();
    let ids = vec![PeerMessageId::new(b"1")];
    fixture.run(vec![Event::Outcome { link: LinkId(1), id, outcome: Outcome::Accepted { ids } }]);
    let mut seen = Vec::new();
    for _ in 0..100 {
        let hour = Duration::from_secs(3_600);
        fixture.now = Now { wall: fixture.now.wall + hour, mono: fixture.now.mono + hour };
        seen.extend(observed(&fixture.run(Vec::new())).into_iter().map(|(kind, _)| kind));
    }
    assert_eq!(seen, [ObservationKind::Failed { after: None }]);
}
