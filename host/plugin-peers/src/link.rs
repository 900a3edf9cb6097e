//! The link of one peer: receives messages from the engine, and lets the plugin submit them.

use crate::counts::PeerCounts;
use crate::options::PluginPeerOptions;
use crate::plugins::PeerPlugins;
use crate::workers::Workers;
use engine::Event;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hooks::{PeerSubmission, Submitted};
use model::{CallRecord, Hook, LinkId, MessageId, Outcome, Timestamp};
use ports::{EventSink, LinkCommand, LinkHandle, LinkRegistry, LogLimiter, Protocol};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Interval at which a peer without a plugin looks for one.
const PLUGIN_INTERVAL: Duration = Duration::from_millis(500);
/// Timeout of the engine's answer when a link closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The deadline for the end of the link; `None` while it runs.
pub(crate) type StopSignal = watch::Receiver<Option<Instant>>;

pub(crate) struct PeerLink {
    pub(crate) core: Arc<dyn EventSink>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) plugins: Arc<dyn PeerPlugins>,
    pub(crate) options: Arc<PluginPeerOptions>,
    pub(crate) name: Arc<str>,
    pub(crate) workers: Workers,
    pub(crate) log: LogLimiter,
    pub(crate) counts: Arc<PeerCounts>,
}

/// The reason why the link went down.
#[derive(Debug, PartialEq, Eq)]
enum SessionEnd {
    Stopped,
    /// Nothing is submitted to the peer for this time.
    Paused(Duration),
}

impl PeerLink {
    /// Serves the peer until it is stopped.
    pub(crate) async fn run(self, mut stop: StopSignal) {
        loop {
            let end = if self.plugins.serves(&self.name) {
                self.session(&mut stop).await
            } else {
                SessionEnd::Paused(PLUGIN_INTERVAL)
            };
            let SessionEnd::Paused(pause) = end else { return };
            if is_stopped_within(&mut stop, pause).await {
                return;
            }
        }
    }

    async fn session(&self, stop: &mut StopSignal) -> SessionEnd {
        let mut handle = LinkHandle::register(self.core.clone(), self.registry.clone(), Protocol::Http);
        let (link, mut events) = (handle.link(), Vec::new());
        handle.announce(self.options.peer, self.options.window, &mut events);
        self.core.push(events);
        let mut calls = FuturesUnordered::new();
        let (mut pause, mut until): (Option<Duration>, Option<Instant>) = (None, None);
        loop {
            let is_ending = until.is_some() || pause.is_some();
            if is_ending && calls.is_empty() {
                break;
            }
            let time_is_up = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                batch = handle.recv() => {
                    let mut unsent = Vec::new();
                    for submission in batch.into_iter().filter_map(|command| self.submission(command)) {
                        if is_ending {
                            unsent.push(outcome(link, submission.message.id, Outcome::NotSent));
                        } else {
                            calls.push(self.submit(submission));
                        }
                    }
                    if !unsent.is_empty() {
                        self.core.push(unsent);
                    }
                }
                Some((id, submitted, record)) = calls.next(), if !calls.is_empty() => {
                    self.log_failure(id, &submitted);
                    let mut events = Vec::new();
                    let wanted = match &submitted.outcome {
                        // The plugin was unbound while the message was on its way.
                        Outcome::NotSent => Some(PLUGIN_INTERVAL),
                        _ => submitted.pause,
                    };
                    if let Some(wanted) = wanted {
                        pause = Some(pause.map_or(wanted, |known| known.max(wanted)));
                        handle.pause(&mut events);
                    }
                    events.extend(record.map(|record| Event::CallRecorded { id, hook: Hook::Peer, record }));
                    events.push(outcome(link, id, submitted.outcome));
                    self.core.push(events);
                }
                changed = stop.changed(), if until.is_none() => {
                    let deadline = if changed.is_ok() { *stop.borrow() } else { None };
                    until = Some(deadline.unwrap_or_else(Instant::now));
                    let mut events = Vec::new();
                    handle.pause(&mut events);
                    self.core.push(events);
                }
                () = time_is_up => break,
            }
        }
        // Aborted calls may have sent their messages, which become uncertain once the link is down.
        drop(calls);
        handle.close(Vec::new(), CLOSE_TIMEOUT).await;
        match (until, pause) {
            (None, Some(pause)) => SessionEnd::Paused(pause),
            _ => SessionEnd::Stopped,
        }
    }

    fn submission(&self, command: LinkCommand) -> Option<PeerSubmission> {
        let LinkCommand::Send { message, leg, want_dlr, ticket, .. } = command else { return None };
        Some(PeerSubmission { peer: self.name.clone(), message, leg, ticket, want_dlr })
    }

    async fn submit(&self, submission: PeerSubmission) -> (MessageId, Submitted, Option<CallRecord>) {
        let (id, plugins) = (submission.message.id, self.plugins.clone());
        let is_sample = self.options.is_sample(id);
        let (_in_flight, started) = (self.counts.begin(), Instant::now());
        let submitted = self.workers.call(move || plugins.submit(&submission, is_sample)).await;
        let (submitted, record) = submitted.unwrap_or_else(|_| {
            let submitted = Submitted {
                outcome: Outcome::Unanswered { taken: Vec::new(), known: Vec::new() },
                pause: None,
                note: Some("the call did not return".into()),
            };
            (submitted, None)
        });
        self.counts.submitted(&submitted, started.elapsed(), Timestamp::now());
        (id, submitted, record)
    }

    fn log_failure(&self, id: MessageId, submitted: &Submitted) {
        let what = match &submitted.outcome {
            Outcome::Accepted { .. } => return,
            Outcome::Refused { class, code, .. } => format!("refused ({class:?}, code {code})"),
            Outcome::NotSent => "not sent".to_owned(),
            Outcome::Unanswered { .. } => "uncertain".to_owned(),
        };
        if let Some(suppressed) = self.log.take(Instant::now()) {
            let note = submitted.note.as_deref().unwrap_or_default();
            tracing::warn!(peer = &*self.name, message = %id, outcome = what, note, suppressed, "message not accepted");
        }
    }
}

fn outcome(link: LinkId, id: MessageId, outcome: Outcome) -> Event {
    Event::Outcome { link, id, outcome }
}

/// Waits, and returns whether the link is stopped meanwhile.
async fn is_stopped_within(stop: &mut StopSignal, time: Duration) -> bool {
    if stop.borrow().is_some() {
        return true;
    }
    tokio::time::timeout(time, stop.changed()).await.is_ok()
}
