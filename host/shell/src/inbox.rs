//! The link that takes what is for an inbox. An inbox holds nothing of its own: a message that is delivered here ends, and its
//! final record, in the store and then in the archive, is what its reader reads.

use crate::{Number, ShellOptions};
use doors::{Core, Delivery, Hub, take_leave};
use engine::Event;
use model::{ErrorClass, Kind, Message, Outcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Messages that may be on their way to the inbox at a time.
const WINDOW: u32 = 256;
/// The mark of the question that shows that nothing more is on its way.
const LEAVE: u64 = 1;
/// SMPP's "invalid destination address".
const NO_SUCH_INBOX: u32 = 0x0b;

/// Takes messages until it is told to stop.
pub(crate) async fn run(
    core: Arc<dyn Core>,
    hub: Arc<Hub>,
    options: Arc<ShellOptions>,
    mut stop: watch::Receiver<bool>,
) {
    let (link, mut deliveries) = hub.add();
    core.push(vec![Event::LinkUp { link, peer: options.peer, window: WINDOW }]);
    loop {
        let batch = tokio::select! {
            batch = deliveries.recv() => batch,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Some(batch) = batch else { break };
        let outcomes = batch.into_iter().filter_map(|delivery| match delivery {
            Delivery::Send { message, .. } => {
                Some(Event::Outcome { link, id: message.id, outcome: taken(&options, &message) })
            }
            _ => None,
        });
        core.push(outcomes.collect());
    }
    take_leave(&*core, &hub, link, LEAVE, deliveries, Vec::new(), Duration::from_secs(5)).await;
}

/// What becomes of a message. A route may lead here what nobody could read: that is refused, and not lost.
fn taken(options: &ShellOptions, message: &Message) -> Outcome {
    let has_reader = match message.kind {
        // Of a submission from here; the log has its state from its record.
        Kind::Receipt(_) => true,
        Kind::Text => {
            Number::digits_of(&message.destination).is_some_and(|digits| options.has_reader(digits))
        }
    };
    if has_reader {
        Outcome::Accepted { ids: Vec::new() }
    } else {
        tracing::warn!(id = message.id.0, "a route leads to the shell, and nobody may act as the addressee");
        Outcome::Refused { class: ErrorClass::Permanent, code: NO_SUCH_INBOX, taken: Vec::new() }
    }
}
