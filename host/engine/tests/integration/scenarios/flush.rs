//! A flush: its answer comes after all messages that the engine sends on a link.

use crate::scenarios::fixture::{EngineFixture, FIRST, REPLY, message};
use engine::{EngineCommand, Event, Output, Settings};
use model::{Leg, LinkId};

const NUMBERS: [&str; 3] = ["4917100001", "4917100002", "4917100003"];

/// The links of the messages and flushes that leave with a batch.
fn sent_and_flushed(out: &Output) -> (usize, usize) {
    let count = |is: fn(&EngineCommand) -> bool| out.commands.iter().filter(|command| is(command)).count();
    (
        count(|command| matches!(command, EngineCommand::Send { .. })),
        count(|command| matches!(command, EngineCommand::Flushed { link } if link.0 == u64::from(FIRST.0))),
    )
}

#[test]
fn no_message_follows_the_answer_to_a_flush_of_a_paused_link() {
    let mut fixture = EngineFixture::new(Settings::default());
    let link = LinkId(FIRST.0.into());
    fixture.link_up(FIRST, 10);
    let submit = |number: &str| Event::Accept {
        message: Box::new(message(number, vec![Leg::to(FIRST)])),
        reply: REPLY,
    };
    let mut out = Output::default();
    fixture.engine.apply(fixture.now, submit(NUMBERS[0]), &mut out);
    fixture.engine.advance(fixture.now, &mut out);
    // One batch: the message that was sent precedes the answer.
    for event in [submit(NUMBERS[1]), Event::LinkPaused { link }, Event::Flush { link }, submit(NUMBERS[2])] {
        fixture.engine.apply(fixture.now, event, &mut out);
    }
    fixture.engine.advance(fixture.now, &mut out);
    fixture.engine.seal(&mut out);
    assert_eq!(sent_and_flushed(&out), (1, 1));
    let position = |is: fn(&EngineCommand) -> bool| out.commands.iter().position(is);
    let sent = position(|command| matches!(command, EngineCommand::Send { .. }));
    assert!(sent < position(|command| matches!(command, EngineCommand::Flushed { .. })));
}
