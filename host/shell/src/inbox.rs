//! The inbox link: accepts messages for inboxes. An inbox stores nothing: a delivered message ends, and the subscriber
//! reads its final record in the store or the archive.

use crate::{ShellOptions, SubscriberNumber};
use engine::Event;
use model::{ErrorClass, Message, MessageKind, Outcome};
use ports::{EventSink, LinkCommand, LinkHandle, LinkRegistry, Protocol};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum number of messages in flight to the inbox.
const WINDOW: usize = 256;
/// The SMPP error "invalid destination address".
const NO_SUCH_INBOX: u32 = 0x0b;

/// Accepts messages until stopped.
pub(crate) async fn run(
    core: Arc<dyn EventSink>,
    registry: Arc<LinkRegistry>,
    options: Arc<ShellOptions>,
    mut stop: watch::Receiver<bool>,
) {
    let mut handle = LinkHandle::register(core.clone(), registry, Protocol::Internal);
    let (link, mut announcement) = (handle.link(), Vec::new());
    handle.announce(options.peer, WINDOW, &mut announcement);
    core.push(announcement);
    loop {
        let batch = tokio::select! {
            batch = handle.recv() => batch,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let outcomes = batch.into_iter().filter_map(|command| match command {
            LinkCommand::Send { message, .. } => {
                Some(Event::Outcome { link, id: message.id, outcome: outcome_for(&options, &message) })
            }
            _ => None,
        });
        core.push(outcomes.collect());
    }
    handle.close(Vec::new(), Duration::from_secs(5)).await;
}

/// The outcome of a message. A message without a reader is refused, not lost; a wrong route can cause it.
fn outcome_for(options: &ShellOptions, message: &Message) -> Outcome {
    let has_reader = match message.kind {
        // A DLR for a submission from the shell; the log takes the state from the record.
        MessageKind::Dlr(_) => true,
        MessageKind::Text => {
            SubscriberNumber::digits_of(&message.destination).is_some_and(|digits| options.has_reader(digits))
        }
    };
    if has_reader {
        Outcome::Accepted { ids: Vec::new() }
    } else {
        tracing::warn!(id = message.id.0, "message routed to the shell without a reader");
        Outcome::Refused { class: ErrorClass::Permanent, code: NO_SUCH_INBOX, taken: Vec::new() }
    }
}
