//! The screen hook: whether a message may pass.

use super::changes::{convert_changes, reject_reason};
use super::message_batch::MessageBatch;
use super::{
    MessageTexts, PROBE_DESTINATION, World, accepted_id, canary_bucket, masked_route, message_record, probe,
};
use crate::bindings::guest::exports::switchyard::hooks::screening as wit;
use crate::bindings::guest::switchyard::hooks::types;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Procedure, Signature};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::text_limits::truncate_note;
use model::{Directory, DroppedAs, Hook, Message, MessageChanges, MessageId, ScreenVerdict, Text};
use std::fmt::{self, Display, Formatter};

pub(crate) struct Screen;

/// A screen's decision, in host types.
#[derive(Debug, Clone)]
pub struct ScreenDecision {
    /// The verdict.
    pub verdict: ScreenVerdict,
    /// The changes to the message, if any.
    pub changes: Option<Box<MessageChanges>>,
    /// The new text of the message, if a screen replaced it.
    pub text: Option<Text>,
    /// The reason.
    pub note: Option<Box<str>>,
}

impl Display for ScreenDecision {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        if self.text.is_some() {
            f.write_str(", text replaced")?;
        }
        self.changes.as_ref().map_or(Ok(()), |changes| write!(f, ", {changes}"))
    }
}

pub(crate) struct ScreenMessage;

impl Signature for ScreenMessage {
    const NAME: &'static str = "screen";
    type Arguments<'a> = (wit::Message<'a>,);
    type Answer = wit::Decision;
}

pub(crate) struct Load;

impl Procedure for Load {
    const NAME: &'static str = "load";
    type Arguments<'a> = (types::MessageBatch<'a>,);
}

pub(crate) struct ScreenLoaded;

impl Signature for ScreenLoaded {
    const NAME: &'static str = "screen-loaded";
    type Arguments<'a> = (u32,);
    type Answer = wit::Decision;
}

/// `batch-screening`.
struct BatchScreening {
    load: GuestFunction<Load>,
    screen_loaded: GuestFunction<ScreenLoaded>,
}

impl BatchScreening {
    fn find(exports: &mut Exports<'_>) -> wasmtime::Result<Option<Self>> {
        let Some(mut exports) = exports.optional("batch-screening") else { return Ok(None) };
        let load = GuestFunction::find_procedure(&mut exports)?;
        Ok(Some(Self { load, screen_loaded: GuestFunction::find(&mut exports)? }))
    }
}

/// `screening`, and `batch-screening` if the plugin has it.
pub(crate) struct ScreenGuest {
    screen: GuestFunction<ScreenMessage>,
    batch: Option<BatchScreening>,
}

impl World for Screen {
    const HOOK: Hook = Hook::Screen;
    const INTERFACE: &'static str = "screening";
    const PASSING_IS_AN_ANSWER: bool = true;
    type Guest = ScreenGuest;
    type Question<'a> = &'a Message;
    type Owned = Message;
    type Answer = ScreenDecision;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        Ok(ScreenGuest { screen: GuestFunction::find(exports)?, batch: BatchScreening::find(exports)? })
    }

    fn check(instance: &mut Instance<Self>) -> wasmtime::Result<()> {
        instance.store.data_mut().destination = Digits::of(PROBE_DESTINATION.as_bytes());
        instance.guest.screen.call(&mut instance.store, (probe(),)).map(drop)
    }

    fn prepare(state: &mut InstanceState, message: &Message, earlier: Option<&ScreenDecision>) {
        state.set_message(message, earlier.and_then(|earlier| earlier.changes.as_deref()));
        if let Some(text) = earlier.and_then(|earlier| earlier.text.as_ref()) {
            state.message.text = text.clone();
        }
    }

    fn ask(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        message: &Message,
    ) -> wasmtime::Result<Result<ScreenDecision, Fault>> {
        let directory = generation.environment.directory.load();
        let texts = MessageTexts::of(message, &directory);
        let mut question = message_record(message, &texts);
        // An earlier screen of the chain may have replaced it.
        let text = &instance.store.data().message.text;
        question.data_coding = text.data_coding;
        question.length = u32::try_from(text.octets.len()).unwrap_or(u32::MAX);
        question.parts = text.segment_count();
        let decision = instance.guest.screen.call(&mut instance.store, (question,))?;
        Ok(decode_answer(instance.store.data(), &directory, decision))
    }

    fn accepts_batches(guest: &ScreenGuest) -> bool {
        guest.batch.is_some()
    }

    fn load(
        generation: &Generation<Self>,
        Instance { store, guest }: &mut Instance<Self>,
        messages: &[(&Message, Option<&ScreenDecision>)],
    ) -> wasmtime::Result<()> {
        let Some(screening) = &guest.batch else { return Ok(()) };
        let directory = generation.environment.directory.load();
        let mut batch = MessageBatch::with_capacity(messages.len());
        for (message, earlier) in messages {
            let text = earlier.and_then(|earlier| earlier.text.as_ref()).unwrap_or(&message.text);
            batch.push(message, text, &directory);
        }
        screening.load.run(store, (batch.argument(),))
    }

    fn ask_loaded(
        generation: &Generation<Self>,
        instance: &mut Instance<Self>,
        index: u32,
        message: &Message,
    ) -> wasmtime::Result<Result<ScreenDecision, Fault>> {
        let Instance { store, guest } = &mut *instance;
        let Some(screening) = &guest.batch else { return Self::ask(generation, instance, message) };
        let decision = screening.screen_loaded.call(store, (index,))?;
        let directory = generation.environment.directory.load();
        Ok(decode_answer(store.data(), &directory, decision))
    }

    fn to_owned_question(message: &Message) -> Message {
        message.clone()
    }

    fn borrow_question(message: &Message) -> &Message {
        message
    }

    fn canary_bucket(message: &Message) -> u16 {
        canary_bucket(&message.destination.value)
    }

    fn decides(decision: &ScreenDecision) -> bool {
        decision.verdict != ScreenVerdict::Pass
    }

    fn after(earlier: Option<ScreenDecision>, mut answer: ScreenDecision) -> ScreenDecision {
        let Some(earlier) = earlier else { return answer };
        if let Some(mut changes) = earlier.changes {
            if let Some(own) = answer.changes.take() {
                changes.extend(*own);
            }
            answer.changes = Some(changes);
        }
        answer.text = answer.text.or(earlier.text);
        answer.note = answer.note.or(earlier.note);
        answer
    }

    fn is_same_answer(one: &ScreenDecision, other: &ScreenDecision) -> bool {
        one.verdict == other.verdict && one.changes == other.changes && one.text == other.text
    }

    fn describe_answer(decision: &ScreenDecision, _: &Directory) -> String {
        decision.to_string()
    }

    fn message_id(message: &Message) -> Option<MessageId> {
        accepted_id(message)
    }

    fn failed_question(message: &Message) -> FailedQuestion {
        FailedQuestion::Screen(Box::new(message.clone()))
    }

    fn describe_question(message: &Message, directory: &Directory) -> String {
        masked_route(message, directory)
    }
}

fn decode_answer(
    state: &InstanceState,
    directory: &Directory,
    decision: wit::Decision,
) -> Result<ScreenDecision, Fault> {
    let verdict = match decision.verdict {
        wit::Verdict::Pass => ScreenVerdict::Pass,
        wit::Verdict::Reject(reason) => ScreenVerdict::Reject(reject_reason(reason)),
        wit::Verdict::Quarantine => ScreenVerdict::Quarantine,
        wit::Verdict::Drop(shown) => ScreenVerdict::Drop(match shown {
            wit::DroppedAs::Delivered => DroppedAs::Delivered,
            wit::DroppedAs::Undeliverable => DroppedAs::Undeliverable,
            wit::DroppedAs::Rejected => DroppedAs::Rejected,
        }),
    };
    let changes = convert_changes(decision.changes, directory)?;
    let text = match decision.text {
        None => None,
        Some(characters) => {
            let replaced = (state.services.replace_text)(&state.message.text, &characters);
            Some(replaced.map_err(|why| Fault::verdict(format!("the new text {why}")))?)
        }
    };
    Ok(ScreenDecision { verdict, changes, text, note: truncate_note(decision.note) })
}
