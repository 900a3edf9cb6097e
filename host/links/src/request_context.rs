use crate::link_record::LinkRecord;
use crate::shared::Shared;
use engine::{Event, ReplyTo};
use model::{LinkId, Message, Timestamp};
use smpp::{CommandId, CommandStatus, Response, Session};
use std::time::Instant;

/// The state that the handling of one request may change.
pub(crate) struct RequestContext<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: &'a mut Session,
    pub(crate) record: &'a LinkRecord,
    pub(crate) events: &'a mut Vec<Event>,
    pub(crate) link: LinkId,
    pub(crate) now: Instant,
    pub(crate) wall: Timestamp,
}

impl RequestContext<'_> {
    pub(crate) fn reply(&self, token: u64) -> ReplyTo {
        ReplyTo { link: self.link, token }
    }

    pub(crate) fn routed(&self, mut message: Message) -> Message {
        message.routed = self.shared.routing.route(&message);
        message
    }

    /// Routes a message and passes it to the engine.
    pub(crate) fn accept(&mut self, message: Message, token: u64) {
        let message = Box::new(self.routed(message));
        let reply = self.reply(token);
        self.events.push(Event::Accept { message, reply });
    }

    pub(crate) fn respond(
        &mut self,
        command: CommandId,
        sequence: u32,
        status: CommandStatus,
        response: &Response,
    ) {
        self.record.outbound.count_answer(status);
        self.session.respond(command, sequence, status, response);
    }
}
