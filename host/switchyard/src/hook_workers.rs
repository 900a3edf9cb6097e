//! Worker threads that call hooks on behalf of the engine. Results are sent back as events.

use crate::config::PluginKeys;
use crate::core_handle::CoreHandle;
use crate::critical_thread;
use crate::routing::ApplianceRouting;
use crossbeam_channel::{Receiver, Sender, unbounded};
use engine::{EngineCommand, Event};
use model::{
    AcceptedSubmission, AddressBytes, Attempt, Hook, LookupNumber, Message, ReceiptEvent, Settlement,
    Timestamp,
};
use ports::{EventSink, Routing as _};
use std::sync::Arc;

/// The channels to the workers.
pub(crate) struct HookWorkers {
    routes: Sender<Arc<Message>>,
    numbers: Sender<AddressBytes>,
    lookups: Sender<LookupNumber>,
    attempts: Sender<(Arc<Message>, Attempt)>,
    receipts: Sender<ReceiptCall>,
    charges: Sender<Vec<Settlement>>,
}

/// A call of the receipt policies.
struct ReceiptCall {
    message: Arc<Message>,
    question: u64,
    submission: AcceptedSubmission,
    event: ReceiptEvent,
}

impl HookWorkers {
    /// Starts the workers. They are not joined at shutdown, because a resolver or biller may never return. Pending
    /// calls are repeated after the next start.
    pub(crate) fn start(
        core: &CoreHandle,
        routing: &Arc<ApplianceRouting>,
        plugins: &PluginKeys,
    ) -> std::io::Result<Self> {
        let (routes, to_route) = unbounded::<Arc<Message>>();
        let (numbers, to_resolve) = unbounded::<AddressBytes>();
        let (lookups, to_look_up) = unbounded::<LookupNumber>();
        let (attempts, to_decide) = unbounded::<(Arc<Message>, Attempt)>();
        let (receipts, to_decide_receipts) = unbounded::<ReceiptCall>();
        let (charges, to_settle) = unbounded::<Vec<Settlement>>();
        let handles = || (core.clone(), routing.clone());
        let (to, run) = handles();
        spawn_worker("reroute", to_route, to, move |message: Arc<Message>| {
            let mut routed = Message::clone(&message);
            run.route(&mut routed);
            let screened_now = message.routed.screening.is_none();
            let screening = routed.routed.screening.as_deref().filter(|_| screened_now);
            let has_new_text = screening.is_some_and(|screening| screening.submitted_text.is_some());
            vec![Event::Rerouted {
                id: message.id,
                text: has_new_text.then_some(routed.text),
                routed: routed.routed,
            }]
        })?;
        for _ in 0..plugins.lookup_threads.max(1) {
            let (to, run) = handles();
            spawn_worker("lookup", to_look_up.clone(), to, move |number: LookupNumber| {
                let lookup = run.ask_lookups(&number);
                vec![Event::LookedUp { number, lookup }]
            })?;
        }
        for _ in 0..plugins.resolver_threads.max(1) {
            let (to, run) = handles();
            spawn_worker("resolve", to_resolve.clone(), to, move |msisdn: AddressBytes| {
                let resolution = run.hooks.resolve(&String::from_utf8_lossy(&msisdn), Timestamp::now());
                vec![Event::Resolved { msisdn, resolution }]
            })?;
        }
        let (to, run) = handles();
        spawn_worker("policy", to_decide, to, move |(message, attempt)| {
            let next = run.hooks.next(&message, &attempt, Timestamp::now());
            vec![Event::Decided { id: message.id, attempt: attempt.number, next }]
        })?;
        let (to, run) = handles();
        spawn_worker("receipt", to_decide_receipts, to, move |call: ReceiptCall| {
            let ReceiptCall { message, question, submission, event } = call;
            let (decision, record) =
                run.hooks.decide_receipt_recorded(&message, submission, event, Timestamp::now());
            let id = message.id;
            // Sent before the decision, which writes the message.
            let record = record.map(|record| Event::CallRecorded { id, hook: Hook::Receipt, record });
            record.into_iter().chain([Event::ReceiptDecided { id, question, decision }]).collect()
        })?;
        let (to, run) = handles();
        spawn_worker("settle", to_settle, to, move |settlements: Vec<Settlement>| {
            let result = run.hooks.settle(&settlements, Timestamp::now());
            if let Err(why) = &result {
                tracing::warn!(
                    why,
                    charges = settlements.len(),
                    "settlements not reported to the biller; retried"
                );
            }
            let upto = settlements.last().map_or(0, |settlement| settlement.serial);
            vec![Event::BillerNotified { upto, ok: result.is_ok() }]
        })?;
        Ok(Self { routes, numbers, lookups, attempts, receipts, charges })
    }

    /// Passes a command to its worker, or returns it if it is not for a worker.
    pub(crate) fn dispatch(&self, command: EngineCommand) -> Option<EngineCommand> {
        // If a worker has ended, the process is exiting.
        match command {
            EngineCommand::Reroute { message } => drop(self.routes.send(message)),
            EngineCommand::AskLookup { number } => drop(self.lookups.send(number)),
            EngineCommand::Resolve { msisdn } => drop(self.numbers.send(msisdn)),
            EngineCommand::Decide { message, attempt } => drop(self.attempts.send((message, attempt))),
            EngineCommand::AskReceipt { message, question, submission, event } => {
                drop(self.receipts.send(ReceiptCall { message, question, submission, event }));
            }
            EngineCommand::NotifyBiller { settlements } => drop(self.charges.send(settlements)),
            other => return Some(other),
        }
        None
    }
}

/// Starts a worker. Each result is sent at once, because the next call may take long.
fn spawn_worker<Q: Send + 'static>(
    name: &str,
    calls: Receiver<Q>,
    to: impl EventSink + 'static,
    run: impl Fn(Q) -> Vec<Event> + Send + 'static,
) -> std::io::Result<()> {
    critical_thread::spawn(name, move || {
        for call in calls {
            to.push(run(call));
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::MessageId;
    use std::time::Duration;

    struct RecordingSink(Sender<Event>);

    impl EventSink for RecordingSink {
        fn push(&self, events: Vec<Event>) {
            events.into_iter().for_each(|event| drop(self.0.send(event)));
        }
    }

    #[test]
    fn an_answer_does_not_wait_for_another_call() {
        let (run, calls) = unbounded::<u64>();
        let (result, answers) = unbounded();
        let (open, gate) = unbounded::<()>();
        // The second call is queued before the first returns, and returns after the first result is received.
        run.send(1).unwrap();
        run.send(2).unwrap();
        for _ in 0..2 {
            let gate = gate.clone();
            spawn_worker("test", calls.clone(), RecordingSink(result.clone()), move |call| {
                if call == 2 {
                    let _ = gate.recv_timeout(Duration::from_secs(20));
                }
                vec![Event::Loaded { id: MessageId(call), message: None }]
            })
            .unwrap();
        }
        let first = answers.recv_timeout(Duration::from_secs(10));
        assert!(matches!(first, Ok(Event::Loaded { id: MessageId(1), .. })), "{first:?}");
        open.send(()).unwrap();
        assert!(answers.recv_timeout(Duration::from_secs(10)).is_ok());
    }
}
