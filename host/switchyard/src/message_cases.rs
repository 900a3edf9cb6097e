//! Message cases for plugin authors: calls of screens and routers, with the host's answers and the decisions.

use crate::binding_requests::chain;
use crate::hook_service::HookService;
use crate::policy_try::{Question, TIME_LIMIT, archived_by_id, busy, questions};
use crate::problems::hook_problem;
use crate::replays::{UNKNOWN_PEER, routed_message};
use admin::{Problem, ProblemKind};
use api::{MessageCase, PolicyTryRequest};
use archive::ArchivedMessage;
use hooks::{Binding, DryRun};
use model::{AcceptedSubmission, Hook, NumberDisplay, PluginVersion};
use std::sync::Arc;
use std::time::Instant;
use workbench::DecidedMessage;

/// The binding of a plugin version; the first binding of the chain if the version is unknown.
fn binding_of<'a>(chain: &'a [Binding], by: Option<&PluginVersion>) -> Option<&'a Binding> {
    let is_by = |binding: &&Binding| {
        by.is_some_and(|by| binding.plugin == by.plugin && binding.version == by.version)
    };
    chain.iter().find(is_by).or(chain.first())
}

impl HookService {
    /// Makes a case of each recorded receipt policy call about a message, with the decision of the chain.
    fn make_receipt_cases(
        &self,
        archived: &ArchivedMessage,
        dry_run: &DryRun,
        chain: &[Binding],
    ) -> Vec<MessageCase> {
        let unknown_version = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
        let directory = self.directory.load();
        let (message, is_origin_unknown) = routed_message(archived, &directory, &unknown_version);
        let records = archived.calls.iter().filter(|(hook, _)| *hook == Hook::Receipt);
        let calls = records.filter_map(|(_, record)| codec::decode_receipt_call(record).ok());
        let made = calls.enumerate().filter_map(|(index, call)| {
            let submission = AcceptedSubmission {
                attempts: call.attempts,
                leg: call.leg,
                peer: directory.id(&call.peer).unwrap_or(UNKNOWN_PEER),
                age: call.age,
                left: call.left,
            };
            let host_calls = call.host_calls.as_deref().unwrap_or_default();
            let traced = dry_run.trace_receipt_again(&message, submission, call.event, call.at, host_calls);
            let binding = binding_of(chain, traced.by.as_deref())?;
            let name = format!("message {}, call {}", archived.id, index + 1);
            let decided = DecidedMessage {
                name: &name,
                binding,
                at: call.at,
                message: &message,
                host_answers: &traced.host_answers,
                directory: &directory,
            };
            let missing = traced.outcome.missing.map(str::to_owned);
            let unknown = is_origin_unknown.then(|| "an unknown account or peer".to_owned());
            Some(MessageCase {
                id: Some(archived.id.to_string()),
                plugin: binding.plugin.clone(),
                version: binding.version.clone(),
                case: decided.receipt_case(submission, call.event, traced.outcome),
                inexact: unknown.or(missing),
            })
        });
        made.collect()
    }

    /// Lets the requested chain decide about the messages, as a try does, and makes a case of each.
    pub(crate) fn make_message_cases(
        &self,
        hook: Hook,
        request: PolicyTryRequest,
    ) -> Result<Vec<MessageCase>, Problem> {
        if !matches!(hook, Hook::Screen | Hook::Router | Hook::Receipt) {
            let what = format!(
                "cases are made of decisions of the hooks screen, router and receipt, not of {}; \
                 GET /v1/hooks/{{hook}}/faults/{{id}}/case makes one of a fault",
                hook.name()
            );
            return Err(Problem::new(ProblemKind::Unprocessable, what));
        }
        let PolicyTryRequest { messages, last, message, activation } = request;
        let hooks = &self.routing.hooks;
        let tried_chain = chain(activation, &hooks.status(hook).live.chain)?;
        let Some(_turn) = self.replays.trying.try_lock_for(TIME_LIMIT) else { return Err(busy()) };
        let dry_run = hooks.try_run(hook, &tried_chain).map_err(|error| hook_problem(&error))?;
        if hook == Hook::Receipt {
            let (None, None, Some(id)) = (messages, last, message) else {
                let what = "cases of the hook receipt are made of calls that were recorded with a message: \
                            set `message` to the id of an archived one, and nothing else";
                return Err(Problem::new(ProblemKind::Unprocessable, what));
            };
            return Ok(self.make_receipt_cases(&archived_by_id(self, &id)?, &dry_run, &tried_chain));
        }
        let questions =
            questions(self, hook, (messages, last, message), &[&tried_chain], (NumberDisplay::Whole, true))?;
        let started = Instant::now();
        let in_time = |_: &Question| started.elapsed() <= TIME_LIMIT;
        let made = questions.into_iter().take_while(in_time);
        Ok(made.filter_map(|question| self.make_case(hook, &dry_run, &tried_chain, question)).collect())
    }

    /// Makes a case of one message; `None` if the chain is empty.
    fn make_case(
        &self,
        hook: Hook,
        dry_run: &DryRun,
        tried_chain: &[Binding],
        mut question: Question,
    ) -> Option<MessageCase> {
        let is_archived = question.host_calls.is_some();
        if !is_archived && hook != Hook::Screen {
            self.routing.preview_lookup(&mut question.message);
        }
        let Question { message, origin, at, host_calls, inexact } = question;
        let directory = self.directory.load();
        let name = if is_archived {
            format!("message {}", message.id)
        } else {
            format!("{origin} to {}", message.destination.text())
        };
        let binding_of = |by: Option<&PluginVersion>| binding_of(tried_chain, by);
        let decided = |binding, host_answers| DecidedMessage {
            name: &name,
            binding,
            at,
            message: &message,
            host_answers,
            directory: &directory,
        };
        let (binding, case, missing) = if hook == Hook::Screen {
            let traced = dry_run.trace_screen(&message, at, host_calls.as_deref());
            let (binding, missing) = (binding_of(traced.by.as_deref())?, traced.outcome.missing);
            (binding, decided(binding, &traced.host_answers).screening_case(traced.outcome), missing)
        } else {
            let traced = dry_run.trace_route(&message, at, host_calls.as_deref());
            let (binding, missing) = (binding_of(traced.by.as_deref())?, traced.outcome.missing);
            (binding, decided(binding, &traced.host_answers).routing_case(traced.outcome), missing)
        };
        Some(MessageCase {
            id: is_archived.then(|| message.id.to_string()),
            plugin: binding.plugin.clone(),
            version: binding.version.clone(),
            case,
            inexact: inexact.or(missing.map(str::to_owned)),
        })
    }
}
