//! Cases of messages for plugin authors: questions to screens and routers, with the host's answers and the decisions.

use crate::api_backend::Switchyard;
use crate::plugins::{chain, hook_problem};
use crate::policy_try::{Question, TIME_LIMIT, busy, questions};
use admin::{Problem, ProblemKind};
use api::{MessageCase, PolicyTryRequest};
use hooks::{Binding, DryRun};
use model::{Hook, NumberDisplay, PluginVersion};
use std::time::Instant;
use workbench::DecidedMessage;

impl Switchyard {
    /// Lets the requested chain decide the messages, as a try does, and makes a case of each.
    pub(crate) fn make_message_cases(
        &self,
        hook: Hook,
        request: PolicyTryRequest,
    ) -> Result<Vec<MessageCase>, Problem> {
        if !matches!(hook, Hook::Screen | Hook::Router) {
            let what = format!(
                "cases are made of decisions of the hooks screen and router, not of {}; \
                 GET /v1/hooks/{{hook}}/faults/{{id}}/case makes one of a fault",
                hook.name()
            );
            return Err(Problem::new(ProblemKind::Unprocessable, what));
        }
        let PolicyTryRequest { messages, last, activation } = request;
        let hooks = &self.routing.hooks;
        let tried_chain = chain(activation, &hooks.status(hook).live.chain)?;
        let Some(_turn) = self.replays.trying.try_lock_for(TIME_LIMIT) else { return Err(busy()) };
        let dry_run = hooks.try_run(hook, &tried_chain).map_err(|error| hook_problem(&error))?;
        let questions =
            questions(self, hook, (messages, last), &[&tried_chain], (NumberDisplay::Whole, true))?;
        let started = Instant::now();
        let in_time = |_: &Question| started.elapsed() <= TIME_LIMIT;
        let made = questions.into_iter().take_while(in_time);
        Ok(made.filter_map(|question| self.make_case(hook, &dry_run, &tried_chain, question)).collect())
    }

    /// `None`: the chain is empty.
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
        let binding_of = |by: Option<&PluginVersion>| {
            let is_by = |binding: &&Binding| {
                by.is_some_and(|by| binding.plugin == by.plugin && binding.version == by.version)
            };
            tried_chain.iter().find(is_by).or(tried_chain.first())
        };
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
