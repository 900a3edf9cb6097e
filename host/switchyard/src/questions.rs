//! Questions to plugins that follow from what the engine did, each on a thread where it may take its time; the answers come
//! back as events.

use crate::core_loop::{CoreHandle, wall};
use crate::routing::HouseRouting;
use crate::vital;
use crossbeam_channel::{Receiver, Sender, unbounded};
use doors::{Core, Routing as _};
use engine::{Command, Event};
use model::{AddressBytes, Attempt, Message, Settlement};
use std::sync::Arc;

/// The ways to the threads that ask.
pub(crate) struct Questions {
    routes: Sender<Arc<Message>>,
    numbers: Sender<AddressBytes>,
    attempts: Sender<(Arc<Message>, Attempt)>,
    charges: Sender<Vec<Settlement>>,
}

impl Questions {
    /// Starts the threads. They are not waited for at the end: what a resolver or a biller waits for may never come, and
    /// whatever is unanswered then is asked again after the next start.
    pub(crate) fn start(
        core: &CoreHandle,
        routing: &Arc<HouseRouting>,
        resolver_threads: usize,
    ) -> std::io::Result<Self> {
        let (routes, to_route) = unbounded::<Arc<Message>>();
        let (numbers, to_resolve) = unbounded::<AddressBytes>();
        let (attempts, to_decide) = unbounded::<(Arc<Message>, Attempt)>();
        let (charges, to_settle) = unbounded::<Vec<Settlement>>();
        let house = || (core.clone(), routing.clone());
        let (to, ask) = house();
        answer("reroute", to_route, to, move |message| Event::Rerouted {
            id: message.id,
            routed: ask.route(&message),
        })?;
        for _ in 0..resolver_threads.max(1) {
            let (to, ask) = house();
            answer("resolve", to_resolve.clone(), to, move |msisdn: AddressBytes| {
                let resolution = ask.hooks.resolve(&String::from_utf8_lossy(&msisdn), wall());
                Event::Resolved { msisdn, resolution }
            })?;
        }
        let (to, ask) = house();
        answer("policy", to_decide, to, move |(message, attempt)| Event::Decided {
            id: message.id,
            attempt: attempt.number,
            next: ask.hooks.next(&message, &attempt, wall()),
        })?;
        let (to, ask) = house();
        answer("settle", to_settle, to, move |settlements: Vec<Settlement>| {
            let told = ask.hooks.settle(&settlements, wall());
            if let Err(why) = &told {
                tracing::warn!(why, charges = settlements.len(), "the biller was not told; it is told again");
            }
            let upto = settlements.last().map_or(0, |settlement| settlement.serial);
            Event::Settled { upto, ok: told.is_ok() }
        })?;
        Ok(Self { routes, numbers, attempts, charges })
    }

    /// Takes a command that asks; gives back one that does not.
    pub(crate) fn take(&self, command: Command) -> Option<Command> {
        // A thread that is gone has left the process with it.
        match command {
            Command::Reroute { message } => drop(self.routes.send(message)),
            Command::Resolve { msisdn } => drop(self.numbers.send(msisdn)),
            Command::Decide { message, attempt } => drop(self.attempts.send((message, attempt))),
            Command::Settle { settlements } => drop(self.charges.send(settlements)),
            other => return Some(other),
        }
        None
    }
}

/// A thread that answers questions. An answer goes at once: it must not wait for the next question, which may take long, or
/// be another thread's.
fn answer<Q: Send + 'static>(
    name: &str,
    questions: Receiver<Q>,
    to: impl Core + 'static,
    ask: impl Fn(Q) -> Event + Send + 'static,
) -> std::io::Result<()> {
    vital::spawn(name, move || {
        for question in questions {
            to.push(vec![ask(question)]);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::MessageId;
    use std::time::Duration;

    struct Told(Sender<Event>);

    impl Core for Told {
        fn push(&self, events: Vec<Event>) {
            events.into_iter().for_each(|event| drop(self.0.send(event)));
        }
    }

    #[test]
    fn an_answer_waits_for_no_other_question() {
        let (ask, questions) = unbounded::<u64>();
        let (told, answers) = unbounded();
        let (open, gate) = unbounded::<()>();
        // The second question is there before the first is answered, and is not answered before the first is told.
        ask.send(1).unwrap();
        ask.send(2).unwrap();
        for _ in 0..2 {
            let gate = gate.clone();
            answer("test", questions.clone(), Told(told.clone()), move |question| {
                if question == 2 {
                    let _ = gate.recv_timeout(Duration::from_secs(20));
                }
                Event::Loaded { id: MessageId(question), message: None }
            })
            .unwrap();
        }
        let first = answers.recv_timeout(Duration::from_secs(10));
        assert!(matches!(first, Ok(Event::Loaded { id: MessageId(1), .. })), "{first:?}");
        open.send(()).unwrap();
        assert!(answers.recv_timeout(Duration::from_secs(10)).is_ok());
    }
}
