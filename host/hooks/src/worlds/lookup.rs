//! The lookup hook: facts about a number.

use super::{World, canary_bucket};
use crate::bindings::guest::exports::switchyard::hooks::number_lookup as wit;
use crate::fault::Fault;
use crate::fault_examples::FailedQuestion;
use crate::generation::{Generation, Instance};
use crate::guest_function::{Exports, GuestFunction, Signature};
use crate::host_calls::InstanceState;
use crate::host_calls::tables::Digits;
use crate::text_limits::truncate_note;
use crate::worlds::clamped_duration;
use model::{Address, Directory, Hook, LookupNumber, LookupResult, MessageChanges, MessageId};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

pub(crate) struct Lookup;

/// The answer of a lookup plugin, or of a chain of lookups, about a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberAnswer {
    /// The result of the lookup; `Failed` means that it should be repeated later.
    pub result: LookupResult,
    /// The attributes, if the number is known.
    pub attributes: Vec<(Box<str>, Box<str>)>,
    /// How long the answer is valid; zero if the lookup failed.
    pub lifetime: Duration,
    /// The reason.
    pub note: Option<Box<str>>,
}

impl Display for NumberAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.result {
            LookupResult::Found => "found",
            LookupResult::Unknown => "unknown",
            LookupResult::Failed => "try later",
        })?;
        for (index, (name, value)) in self.attributes.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

pub(crate) struct LookUp;

impl Signature for LookUp {
    const NAME: &'static str = "look-up";
    type Arguments<'a> = (wit::Number<'a>,);
    type Answer = wit::LookedUp;
}

impl World for Lookup {
    const HOOK: Hook = Hook::Lookup;
    const INTERFACE: &'static str = "number-lookup";
    const PASSING_IS_AN_ANSWER: bool = true;
    type Guest = GuestFunction<LookUp>;
    type Question<'a> = &'a LookupNumber;
    type Owned = LookupNumber;
    type Answer = NumberAnswer;

    fn guest(exports: &mut Exports<'_>) -> wasmtime::Result<Self::Guest> {
        GuestFunction::find(exports)
    }

    /// No self-check: a question may query other systems.
    fn check(_: &mut Instance<Self>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn prepare(state: &mut InstanceState, number: &LookupNumber, _: Option<&NumberAnswer>) {
        state.destination = Digits::of(&number.digits);
        state.may_fetch = true;
    }

    fn ask(
        _: &Generation<Self>,
        instance: &mut Instance<Self>,
        number: &LookupNumber,
    ) -> wasmtime::Result<Result<NumberAnswer, Fault>> {
        let question = wit::Number { digits: number.text(), international: number.international };
        Ok(decode_answer(instance.guest.call(&mut instance.store, (question,))?))
    }

    fn to_owned_question(number: &LookupNumber) -> LookupNumber {
        number.clone()
    }

    fn borrow_question(number: &LookupNumber) -> &LookupNumber {
        number
    }

    fn canary_bucket(number: &LookupNumber) -> u16 {
        canary_bucket(&number.digits)
    }

    fn decides(answer: &NumberAnswer) -> bool {
        answer.result == LookupResult::Found
    }

    /// The number is unknown only if no plugin of the chain failed: a failed plugin may find it later.
    fn after(earlier: Option<NumberAnswer>, answer: NumberAnswer) -> NumberAnswer {
        match (earlier, answer.result) {
            (None, _) | (_, LookupResult::Found) => answer,
            (Some(earlier), LookupResult::Unknown) if earlier.result == LookupResult::Failed => earlier,
            (Some(_), LookupResult::Failed) => answer,
            (Some(earlier), LookupResult::Unknown) => NumberAnswer {
                lifetime: answer.lifetime.min(earlier.lifetime),
                note: answer.note.or(earlier.note),
                ..answer
            },
        }
    }

    fn is_same_answer(one: &NumberAnswer, other: &NumberAnswer) -> bool {
        one.result == other.result && one.attributes == other.attributes
    }

    fn describe_answer(answer: &NumberAnswer, _: &Directory) -> String {
        answer.to_string()
    }

    fn message_id(_: &LookupNumber) -> Option<MessageId> {
        None
    }

    fn failed_question(number: &LookupNumber) -> FailedQuestion {
        FailedQuestion::LookUp(number.clone())
    }

    fn describe_question(number: &LookupNumber, _: &Directory) -> String {
        Address::international(number.text()).masked()
    }
}

fn decode_answer(looked_up: wit::LookedUp) -> Result<NumberAnswer, Fault> {
    let note = truncate_note(looked_up.note);
    let (result, attributes, lifetime) = match looked_up.answer {
        wit::Answer::Found(known) => {
            let mut found = MessageChanges::default();
            for attribute in known.attributes {
                super::changes::add_attribute(&mut found, attribute)?;
                if found.len() > MessageChanges::MAX {
                    let most = MessageChanges::MAX;
                    return Err(Fault::verdict(format!("more than {most} attributes of a number")));
                }
            }
            (LookupResult::Found, found.attributes, clamped_duration(known.lifetime))
        }
        wit::Answer::Unknown(lifetime) => (LookupResult::Unknown, Vec::new(), clamped_duration(lifetime)),
        wit::Answer::TryLater => (LookupResult::Failed, Vec::new(), Duration::ZERO),
    };
    Ok(NumberAnswer { result, attributes, lifetime, note })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: LookupResult, seconds: u64) -> NumberAnswer {
        NumberAnswer { result, attributes: Vec::new(), lifetime: Duration::from_secs(seconds), note: None }
    }

    #[test]
    fn a_chain_knows_nothing_only_if_every_plugin_says_so() {
        use LookupResult::{Failed, Found, Unknown};
        let chain = |answers: &[(LookupResult, u64)]| {
            let mut earlier = None;
            for (result, seconds) in answers {
                earlier = Some(Lookup::after(earlier.take(), answer(*result, *seconds)));
            }
            earlier.map(|answer| (answer.result, answer.lifetime.as_secs()))
        };
        assert_eq!(chain(&[(Unknown, 60), (Unknown, 10), (Unknown, 30)]), Some((Unknown, 10)));
        assert_eq!(chain(&[(Failed, 0), (Unknown, 60)]), Some((Failed, 0)));
        assert_eq!(chain(&[(Unknown, 60), (Failed, 0)]), Some((Failed, 0)));
        assert_eq!(chain(&[(Failed, 0), (Found, 60)]), Some((Found, 60)));
    }
}
