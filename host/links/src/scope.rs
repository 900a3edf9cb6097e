use crate::shared::Shared;
use crate::state::LinkRecord;
use engine::{Event, ReplyTo};
use model::{LinkId, Message, Timestamp};
use smpp::{CommandId, Response, Session, Status};
use std::time::Instant;

/// What the handling of one request may touch.
pub(crate) struct Scope<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) record: &'a LinkRecord,
    pub(crate) events: &'a mut Vec<Event>,
    pub(crate) link: LinkId,
    pub(crate) now: Instant,
    pub(crate) wall: Timestamp,
}

impl Scope<'_> {
    pub(crate) fn reply(&self, token: u64) -> ReplyTo {
        ReplyTo { link: self.link, token }
    }

    pub(crate) fn routed(&self, mut message: Message) -> Message {
        message.routed = self.shared.routing.route(&message);
        message
    }

    /// Routes a message and gives it to the engine.
    pub(crate) fn accept(&mut self, message: Message, token: u64) {
        let message = Box::new(self.routed(message));
        let reply = self.reply(token);
        self.events.push(Event::Accept { message, reply });
    }

    pub(crate) fn respond(&mut self, command: CommandId, sequence: u32, status: Status, response: &Response) {
        self.record.outbound.answer(status);
        self.session.respond(command, sequence, status, response);
    }
}
