//! Questions to plugins that follow from what the engine did, each on a thread where it may take its time; the answers come
//! back as events.

use crate::core_loop::{CoreHandle, wall};
use crate::routing::HouseRouting;
use crossbeam_channel::{Receiver, Sender, unbounded};
use doors::{Core as _, Routing as _};
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
        answer("reroute", core, routing, to_route, |routing, message| Event::Rerouted {
            id: message.id,
            routed: routing.route(&message),
        })?;
        for _ in 0..resolver_threads.max(1) {
            answer("resolve", core, routing, to_resolve.clone(), |routing, msisdn: AddressBytes| {
                let resolution = routing.hooks.resolve(&String::from_utf8_lossy(&msisdn), wall());
                Event::Resolved { msisdn, resolution }
            })?;
        }
        answer("policy", core, routing, to_decide, |routing, (message, attempt)| Event::Decided {
            id: message.id,
            attempt: attempt.number,
            next: routing.hooks.next(&message, &attempt, wall()),
        })?;
        answer("settle", core, routing, to_settle, |routing, settlements: Vec<Settlement>| {
            let told = routing.hooks.settle(&settlements, wall());
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
    core: &CoreHandle,
    routing: &Arc<HouseRouting>,
    questions: Receiver<Q>,
    ask: impl Fn(&HouseRouting, Q) -> Event + Send + 'static,
) -> std::io::Result<()> {
    let (core, routing) = (core.clone(), routing.clone());
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        for question in questions {
            core.push(vec![ask(&routing, question)]);
        }
    })?;
    Ok(())
}
