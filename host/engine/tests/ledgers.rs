//! What is remembered beside messages: reports by part, opt-outs, reports once more, keys that are forgotten.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that fails is to stop here")]

use bytes::Bytes;
use engine::{Answer, Command, Engine, Event, Output, PeerSettings, ReplyTo, Settings};
use model::{
    Address, DecidedBy, Final, FinalState, Kind, Leg, LinkId, Message, MessageId, Moment, Now, Outcome,
    PeerId, PeerMessageId, Priority, Receipt, ReceiptRequest, ReceiptState, ReceiptText, Refusal,
    RejectReason, Routed, SubmissionKey, Text, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

const ACCOUNT: PeerId = PeerId(0);
const GATEWAY: PeerId = PeerId(1);
const REPLY: ReplyTo = ReplyTo { link: LinkId(9), token: 1 };

struct House {
    engine: Engine,
    now: Now,
}

impl House {
    fn new(change: impl FnOnce(&mut PeerSettings)) -> Self {
        let settings = Settings { country: "86".to_owned(), ..Settings::default() };
        let now = Now { wall: Timestamp(1_795_000_000_000), mono: Moment(1_000_000) };
        let mut house = Self { engine: Engine::new(settings), now };
        let mut account = PeerSettings::new(ACCOUNT);
        (account.addressee, account.receipts) = (true, false);
        change(&mut account);
        house.run(vec![
            Event::Peer(account),
            Event::Peer(PeerSettings::new(GATEWAY)),
            Event::LinkUp { link: LinkId(1), peer: GATEWAY, window: 10 },
            Event::LinkUp { link: LinkId(2), peer: ACCOUNT, window: 10 },
        ]);
        house
    }

    fn run(&mut self, events: Vec<Event>) -> Output {
        let mut out = Output::default();
        for event in events {
            self.engine.apply(self.now, event, &mut out);
        }
        self.engine.settle(self.now, &mut out);
        self.engine.seal(&mut out);
        out
    }

    fn submit(&mut self) -> Result<MessageId, Refusal> {
        let event = Event::Accept { message: Box::new(message()), reply: REPLY };
        match answers(&self.run(vec![event])).remove(0) {
            Answer::Accepted(id) => Ok(id),
            Answer::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }
}

fn answers(out: &Output) -> Vec<Answer> {
    let answer = |command: &Command| match command {
        Command::Answer { answer, .. } => Some(answer.clone()),
        _ => None,
    };
    out.commands.iter().filter_map(answer).collect()
}

/// Receipts of ours that are on their way to the account.
fn told(out: &Output) -> Vec<ReceiptText> {
    let receipt = |message: &Arc<Message>| match &message.kind {
        Kind::Receipt(text) => Some((**text).clone()),
        Kind::Text => None,
    };
    out.batch.accepted.iter().filter_map(receipt).collect()
}

fn message() -> Message {
    let by = Arc::new(DecidedBy { plugin: "test".to_owned(), version: "1".to_owned() });
    Message {
        id: MessageId(0),
        kind: Kind::Text,
        origin: ACCOUNT,
        source: Address::new(0, 1, b"10655"),
        destination: Address::international("8613012345678"),
        service_type: Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::default(),
        receipts: ReceiptRequest::FINAL,
        replace_if_present: false,
        submission: None,
        text: Text { octets: Bytes::from_static(b"text"), ..Text::default() },
        // A parameter that any peer may see, and one of the house's own.
        tlvs: Bytes::from_static(&[0x02, 0x04, 0, 1, 7, 0x15, 0x0E, 0, 2, b'o', b'k']),
        accepted_at: Timestamp(0),
        scheduled: None,
        expires_at: Timestamp(1_795_000_000_000 + 3_600_000),
        routed: Routed {
            verdict: Verdict::Forward(vec![Leg::to(GATEWAY)]),
            by,
            note: None,
            sender: None,
            quote: None,
            seen: None,
            faulted: None,
        },
    }
}

fn part(number: u8) -> PeerMessageId {
    PeerMessageId::new(&[b'p', number])
}

fn receipt(number: u8, state: ReceiptState) -> Event {
    let receipt = Receipt {
        id: part(number),
        state,
        intermediate: false,
        error: 7,
        network_error: None,
        done_at: None,
        from: Default::default(),
        to: Default::default(),
    };
    Event::Receipt { peer: GATEWAY, receipt, reply: REPLY }
}

fn taken(id: MessageId) -> Event {
    let outcome = Outcome::Accepted { ids: vec![part(1), part(2)] };
    Event::Outcome { link: LinkId(1), id, outcome }
}

#[test]
fn parts_are_reported_together_or_one_by_one() {
    for by_part in [false, true] {
        let mut house = House::new(|account| account.part_receipts = by_part);
        let id = house.submit().unwrap();
        house.run(vec![taken(id)]);
        let first = told(&house.run(vec![receipt(1, ReceiptState::Delivered)]));
        let second_out = house.run(vec![receipt(2, ReceiptState::Undeliverable)]);
        let second = told(&second_out);
        let ended: Vec<FinalState> = second_out.batch.finished.iter().map(|(_, ended)| ended.state).collect();
        assert_eq!(ended, [FinalState::Failed], "the message is the message, whatever is reported");
        let shown = |texts: &[ReceiptText]| -> Vec<(u16, ReceiptState)> {
            texts.iter().map(|text| (text.part, text.state)).collect()
        };
        if by_part {
            assert_eq!(shown(&first), [(1, ReceiptState::Delivered)]);
            assert_eq!(shown(&second), [(2, ReceiptState::Undeliverable)]);
        } else {
            assert_eq!(shown(&first), []);
            assert_eq!(shown(&second), [(0, ReceiptState::Undeliverable)]);
            assert_eq!(second[0].parts, (2, 1));
        }
        // A receipt carries on the house's own parameters and no other.
        let tlvs = &second_out.batch.accepted[0].tlvs;
        assert_eq!(tlvs[..], [0x15, 0x0E, 0, 2, b'o', b'k']);
    }
}

#[test]
fn who_has_said_stop_is_sent_nothing_until_start() {
    let mut house = House::new(|account| account.opt_out = true);
    let consent = |stop| Event::Consent {
        sender: model::AddressBytes::from_slice(b"10655"),
        // Another way to write the same subscriber.
        subscriber: model::AddressBytes::from_slice(b"13012345678"),
        stop,
        reply: Some(REPLY),
    };
    let out = house.run(vec![consent(true), consent(true)]);
    assert_eq!((out.batch.consents.len(), answers(&out)), (1, vec![Answer::Done, Answer::Done]));
    assert_eq!(house.submit(), Err(Refusal::Rejected(RejectReason::OptedOut)));
    house.run(vec![consent(false)]);
    assert!(house.submit().is_ok());
    // Switched off for an account, it holds nothing back.
    let mut house = House::new(|account| account.opt_out = false);
    house.run(vec![consent(true)]);
    assert!(house.submit().is_ok());
}

#[test]
fn a_report_is_made_once_more_within_the_accounts_limit() {
    let mut house = House::new(|account| account.queue_limit = 1);
    house.run(vec![Event::LinkDown { link: LinkId(2) }]);
    let ended = Final {
        state: FinalState::Delivered,
        at: house.now.wall,
        error: 0,
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: Vec::new(),
    };
    let mut of = message();
    of.id = MessageId(77);
    let again =
        || Event::ReportAgain { message: Box::new(of.clone()), ended: Box::new(ended.clone()), reply: REPLY };
    let out = house.run(vec![again()]);
    assert_eq!((told(&out)[0].of, answers(&out)), (MessageId(77), vec![Answer::Done]));
    assert_eq!(answers(&house.run(vec![again()])), [Answer::Refused(Refusal::QueueFull)]);
}

#[test]
fn a_receipt_that_matches_nothing_is_written_before_it_is_answered_and_found_later() {
    let mut house = House::new(|_| {});
    let out = house.run(vec![receipt(1, ReceiptState::Delivered)]);
    assert_eq!((out.batch.parked.len(), answers(&out)), (1, vec![Answer::ReceiptTaken]));
    // While something is on its way it may only have overtaken its answer: it waits, unwritten.
    let id = house.submit().unwrap();
    let out = house.run(vec![receipt(2, ReceiptState::Delivered)]);
    assert!(out.batch.parked.is_empty() && answers(&out).is_empty());
    let out = house.run(vec![taken(id)]);
    assert_eq!(out.batch.unparked.len(), 1);
    assert_eq!(out.batch.finished[0].1.state, FinalState::Delivered);
    assert_eq!(answers(&out), [Answer::ReceiptTaken]);
    // One that goes on waiting is written, and then answered.
    house.submit().unwrap();
    house.run(vec![receipt(5, ReceiptState::Delivered)]);
    house.now.mono = house.now.mono + Duration::from_secs(4);
    let out = house.run(Vec::new());
    assert_eq!((out.batch.parked.len(), answers(&out)), (1, vec![Answer::ReceiptTaken]));
}

#[test]
fn keys_are_forgotten_in_time() {
    let mut house = House::new(|_| {});
    let submit = || Event::AcceptMany {
        shared_id: false,
        messages: vec![message()],
        key: Some(SubmissionKey {
            octets: b"k".as_slice().into(),
            digest: 1,
            required: true,
            lifetime: None,
        }),
        reply: REPLY,
    };
    let first = answers(&house.run(vec![submit()]));
    assert_eq!(answers(&house.run(vec![submit()])), first);
    assert_eq!(house.engine.keys(), 1);
    let day = Duration::from_secs(86_401);
    house.now = Now { wall: house.now.wall + day, mono: house.now.mono + day };
    let out = house.run(Vec::new());
    assert_eq!((out.batch.keys_done, house.engine.keys()), (Some(1), 0));
}

#[test]
fn a_new_key_is_refused_when_the_accounts_memory_is_full_and_no_live_one_is_forgotten() {
    let mut house = House::new(|_| {});
    let mut settings = PeerSettings::new(message().origin);
    settings.key_memory = 1000;
    house.run(vec![Event::Peer(settings)]);
    let mut lasting = message();
    lasting.expires_at = lasting.expires_at + Duration::from_secs(200_000);
    let submit = |name: u32, required: bool| Event::AcceptMany {
        shared_id: false,
        messages: vec![lasting.clone()],
        key: Some(SubmissionKey {
            octets: name.to_be_bytes().as_slice().into(),
            digest: 1,
            required,
            lifetime: None,
        }),
        reply: REPLY,
    };
    let mut taken = Vec::new();
    let refused = (0..1000).find_map(|name| match answers(&house.run(vec![submit(name, true)])).as_slice() {
        [Answer::Refused(Refusal::KeysFull { retry_after })] => Some(*retry_after),
        answer => {
            taken.push(answer.to_vec());
            None
        }
    });
    // The oldest is forgotten after a day.
    assert_eq!(refused, Some(86_400));
    assert!(!taken.is_empty());
    for (name, answer) in (0..).zip(&taken) {
        assert_eq!(answers(&house.run(vec![submit(name, true)])), *answer, "a live key was forgotten");
    }
    let sequence = answers(&house.run(vec![submit(5000, false)]));
    assert!(
        matches!(sequence.as_slice(), [Answer::AcceptedMany(results)] if results[0].is_ok()),
        "{sequence:?}"
    );
    assert_eq!(
        house.engine.keys(),
        taken.len(),
        "a protocol's sequence number is accepted and not remembered"
    );
    let day = Duration::from_secs(86_401);
    house.now = Now { wall: house.now.wall + day, mono: house.now.mono + day };
    house.run(Vec::new());
    let again = answers(&house.run(vec![submit(5001, true)]));
    assert!(matches!(again.as_slice(), [Answer::AcceptedMany(results)] if results[0].is_ok()), "{again:?}");
}
