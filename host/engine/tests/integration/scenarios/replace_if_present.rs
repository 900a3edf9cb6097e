//! `replace_if_present`: a submission replaces one previous message, and no segment of the same text.

use crate::scenarios::fixture::{EngineFixture, FIRST, message};
use bytes::Bytes;
use engine::Settings;
use model::{FinalState, Leg, Message, MessageId, Text};

/// No link is up: everything waits.
fn submit(fixture: &mut EngineFixture, message: Message) -> MessageId {
    fixture.submit(message).unwrap()
}

fn alone() -> Message {
    message("491700000001", vec![Leg::to(FIRST)])
}

fn replacing(message: Message) -> Message {
    Message { replace_if_present: true, ..message }
}

fn segment(reference: u8, total: u8, number: u8) -> Message {
    let octets = Bytes::copy_from_slice(&[5, 0, 3, reference, total, number, b'x']);
    Message { text: Text { octets, udhi: true, ..Text::default() }, ..alone() }
}

fn replaced(fixture: &EngineFixture) -> Vec<MessageId> {
    let cancelled = fixture.finished.iter().filter(|(_, ended)| ended.state == FinalState::Cancelled);
    cancelled.map(|(id, _)| *id).collect()
}

/// With all content cached, and with none.
fn fixtures() -> [EngineFixture; 2] {
    [64 << 20, 0].map(|body_cache| EngineFixture::new(Settings { body_cache, ..Settings::default() }))
}

#[test]
fn one_previous_message_is_replaced_the_newest() {
    for mut fixture in fixtures() {
        let _older = submit(&mut fixture, alone());
        let newer = submit(&mut fixture, alone());
        let other_service = Message { service_type: Bytes::from_static(b"VMA"), ..alone() };
        submit(&mut fixture, other_service);
        let other_source = Message { source: model::Address::new(0, 1, b"10656"), ..alone() };
        submit(&mut fixture, other_source);
        submit(&mut fixture, replacing(alone()));
        assert_eq!(replaced(&fixture), [newer]);
    }
}

#[test]
fn segments_do_not_replace_segments_of_their_own_text() {
    for mut fixture in fixtures() {
        for number in 1..=3 {
            submit(&mut fixture, replacing(segment(7, 3, number)));
        }
        // In another order, too.
        for number in [2, 1, 3] {
            submit(&mut fixture, replacing(segment(8, 3, number)));
        }
        assert_eq!(replaced(&fixture).len(), 3, "the second text replaces the first one");
        assert_eq!(fixture.engine.live(), 3);
        fixture.link_up(FIRST, 10);
        let numbers: Vec<u8> = fixture.sent.iter().map(|(_, message, _)| message.text.octets[5]).collect();
        assert_eq!(numbers, [2, 1, 3]);
        assert!(fixture.sent.iter().all(|(_, message, _)| message.text.octets[3] == 8));
    }
}

#[test]
fn a_concatenated_text_replaces_one_message_and_not_one_with_each_segment() {
    for mut fixture in fixtures() {
        let _older = submit(&mut fixture, alone());
        let newer = submit(&mut fixture, alone());
        for number in 1..=2 {
            submit(&mut fixture, replacing(segment(7, 2, number)));
        }
        assert_eq!(replaced(&fixture), [newer]);
    }
}

#[test]
fn a_message_replaces_a_concatenated_text_as_a_whole() {
    for mut fixture in fixtures() {
        let _older = submit(&mut fixture, alone());
        let text: Vec<_> = (1..=3).map(|number| submit(&mut fixture, segment(7, 3, number))).collect();
        submit(&mut fixture, replacing(alone()));
        assert_eq!(replaced(&fixture), text);
    }
}

#[test]
fn under_the_same_reference_each_segment_replaces_its_predecessor() {
    for mut fixture in fixtures() {
        let text: Vec<_> =
            (1..=3).map(|number| submit(&mut fixture, replacing(segment(1, 3, number)))).collect();
        for number in 1..=3 {
            submit(&mut fixture, replacing(segment(1, 3, number)));
            assert_eq!(replaced(&fixture), text[..usize::from(number)]);
        }
    }
}
