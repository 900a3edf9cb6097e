//! `replace_if_present`: a submission replaces one previous message, and nothing of its own text.

use crate::house::{FIRST, House, message};
use bytes::Bytes;
use engine::Settings;
use model::{FinalState, Leg, Message, MessageId, Text};

/// No link is up: everything waits.
fn submit(house: &mut House, message: Message) -> MessageId {
    house.submit(message).unwrap()
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

fn replaced(house: &House) -> Vec<MessageId> {
    let cancelled = house.finished.iter().filter(|(_, ended)| ended.state == FinalState::Cancelled);
    cancelled.map(|(id, _)| *id).collect()
}

/// With all content in memory, and with none.
fn houses() -> [House; 2] {
    [64 << 20, 0].map(|body_cache| House::new(Settings { body_cache, ..Settings::default() }))
}

#[test]
fn one_previous_message_is_replaced_the_newest() {
    for mut house in houses() {
        let _older = submit(&mut house, alone());
        let newer = submit(&mut house, alone());
        let other_service = Message { service_type: Bytes::from_static(b"VMA"), ..alone() };
        submit(&mut house, other_service);
        let other_source = Message { source: model::Address::new(0, 1, b"10656"), ..alone() };
        submit(&mut house, other_source);
        submit(&mut house, replacing(alone()));
        assert_eq!(replaced(&house), [newer]);
    }
}

#[test]
fn segments_that_replace_leave_their_own_text_whole() {
    for mut house in houses() {
        for number in 1..=3 {
            submit(&mut house, replacing(segment(7, 3, number)));
        }
        // In another order, too.
        for number in [2, 1, 3] {
            submit(&mut house, replacing(segment(8, 3, number)));
        }
        assert_eq!(replaced(&house).len(), 3, "the second text replaces the first one");
        assert_eq!(house.engine.live(), 3);
        house.link_up(FIRST, 10);
        let numbers: Vec<u8> = house.sent.iter().map(|(_, message, _)| message.text.octets[5]).collect();
        assert_eq!(numbers, [2, 1, 3]);
        assert!(house.sent.iter().all(|(_, message, _)| message.text.octets[3] == 8));
    }
}

#[test]
fn a_concatenated_text_replaces_one_message_and_not_one_with_each_segment() {
    for mut house in houses() {
        let _older = submit(&mut house, alone());
        let newer = submit(&mut house, alone());
        for number in 1..=2 {
            submit(&mut house, replacing(segment(7, 2, number)));
        }
        assert_eq!(replaced(&house), [newer]);
    }
}

#[test]
fn a_message_replaces_a_concatenated_text_as_a_whole() {
    for mut house in houses() {
        let _older = submit(&mut house, alone());
        let text: Vec<_> = (1..=3).map(|number| submit(&mut house, segment(7, 3, number))).collect();
        submit(&mut house, replacing(alone()));
        assert_eq!(replaced(&house), text);
    }
}

#[test]
fn under_the_same_reference_each_segment_replaces_its_predecessor() {
    for mut house in houses() {
        let text: Vec<_> =
            (1..=3).map(|number| submit(&mut house, replacing(segment(1, 3, number)))).collect();
        for number in 1..=3 {
            submit(&mut house, replacing(segment(1, 3, number)));
            assert_eq!(replaced(&house), text[..usize::from(number)]);
        }
    }
}
