//! `replace_if_present`: finds the waiting messages that a submission replaces (SMPP 3.4 §5.2.18).

use crate::accept::service_hash;
use crate::engine::Engine;
use crate::slab::{Slot, flag};
use crate::{EngineCommand, Event, Output, ReplyTo};
use model::{Message, MessageId, Segment};

/// Maximum number of messages of a pair that are checked, newest first. A text has at most 255 segments, and the segments of
/// the new text may precede those of the previous one.
const MAX_CHECKED: usize = 512;

impl Engine {
    /// Loads the content of replaceable messages, which contains their segment numbers. Returns `None` while content is
    /// loading; the submission is then repeated.
    pub(crate) fn load_before_replacing(
        &mut self,
        message: Message,
        reply: ReplyTo,
        out: &mut Output,
    ) -> Option<Message> {
        let candidates = self.replaceable(&message);
        let missing = |slot: &Slot| self.slab[*slot].message.is_none();
        let missing: Vec<Slot> = candidates.into_iter().filter(missing).collect();
        let Some(first) = missing.first() else { return Some(message) };
        let first = self.slab[*first].id;
        let mut ids = Vec::new();
        for slot in missing {
            let entry = &mut self.slab[slot];
            if !entry.has(flag::LOADING) {
                entry.set(flag::LOADING, true);
                ids.push(entry.id);
            }
        }
        if !ids.is_empty() {
            out.commands.push(EngineCommand::Load { ids });
        }
        let again = Event::Accept { message: Box::new(message), reply };
        self.waiting_for_content.entry(first).or_default().push(again);
        None
    }

    /// The messages that a submission replaces: the newest previous text of the same origin, source, destination and
    /// service type, with all its waiting segments. The first segment of a concatenated text replaces for the whole
    /// text; another segment replaces only its own repetition. So no segment replaces another segment of the same text.
    pub(crate) fn replaced_by(&self, message: &Message) -> Vec<MessageId> {
        let candidates: Vec<(MessageId, Option<Segment>)> = self
            .replaceable(message)
            .into_iter()
            .map(|slot| {
                let segment = self.slab[slot].message.as_ref().and_then(|message| message.segment());
                (self.slab[slot].id, segment)
            })
            .collect();
        let own = message.segment();
        let previous = candidates.iter().find(|(_, segment)| match (own, segment) {
            (Some(own), Some(segment)) if segment.is_of_same_text(&own) => segment.number == own.number,
            (Some(own), _) => own.number == 1,
            (None, _) => true,
        });
        let Some((newest, text)) = previous else { return Vec::new() };
        match text {
            Some(text) if own.is_none_or(|own| !text.is_of_same_text(&own)) => {
                let of_text =
                    |segment: &Option<Segment>| segment.is_some_and(|one| one.is_of_same_text(text));
                candidates.iter().filter(|(_, segment)| of_text(segment)).map(|(id, _)| *id).collect()
            }
            _ => vec![*newest],
        }
    }

    /// Waiting messages with the origin, source, destination and service of the given one, newest first.
    fn replaceable(&self, message: &Message) -> Vec<Slot> {
        if !message.replace_if_present {
            return Vec::new();
        }
        let pair = self.pairs.key(message.origin, &message.source.value, &message.destination.value);
        let service = service_hash(&message.service_type);
        let mut waiting = self.pairs.all(&self.slab, pair);
        waiting.retain(|slot| {
            let entry = &self.slab[*slot];
            entry.state.waits() && entry.service == service && entry.origin == message.origin
        });
        waiting.sort_by_key(|slot| std::cmp::Reverse(self.slab[*slot].id));
        waiting.truncate(MAX_CHECKED);
        waiting
    }
}
