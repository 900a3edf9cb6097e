//! Screens and their quarantine in the simulation.

use crate::simulation::Random;
use engine::{AdminAction, Engine, Event, MessageState, ReplyTo};
use model::{
    DroppedAs, LinkId, Message, MessageId, MessageKind, PluginVersion, RoutingDecision, ScreenVerdict,
    Screening,
};
use std::collections::HashSet;
use std::sync::Arc;

/// Checks that messages stopped by a screen are not sent.
#[derive(Default)]
pub(crate) struct Witness {
    /// Messages that an admin has released.
    released: HashSet<MessageId>,
}

fn screening(verdict: ScreenVerdict) -> Box<Screening> {
    Box::new(Screening {
        verdict,
        by: Arc::new(PluginVersion { plugin: "screen".to_owned(), version: "1".to_owned() }),
        note: None,
        changes: None,
        submitted_text: None,
        host_calls: None,
    })
}

/// Screens a message that has no screening yet.
pub(crate) fn screen(random: &mut Random, message: &Message, routed: RoutingDecision) -> RoutingDecision {
    if message.routed.screening.is_some() {
        return RoutingDecision { screening: message.routed.screening.clone(), ..routed };
    }
    let verdict = match random.below(100) {
        0..15 => ScreenVerdict::Quarantine,
        15..18 => ScreenVerdict::Drop(DroppedAs::Delivered),
        18..20 => ScreenVerdict::Drop(DroppedAs::Rejected),
        20..60 => ScreenVerdict::Pass,
        // No screen is bound.
        _ => return routed,
    };
    let screening = Some(screening(verdict));
    match verdict.verdict_without_routing() {
        None => RoutingDecision { screening, ..routed },
        Some(verdict) => RoutingDecision { screening, ..RoutingDecision::new(verdict, routed.by) },
    }
}

/// An admin's decision on a message, mostly one in quarantine.
pub(crate) fn random_event(random: &mut Random, engine: &Engine) -> Event {
    let action = if random.chance(70) { AdminAction::Release } else { AdminAction::Purge };
    let listed = engine.quarantined(None, MessageId(0), 10);
    let any = MessageId(MessageId::FIRST.0 + random.below(200) as u64);
    let id = listed.get(random.below(12)).copied().unwrap_or(any);
    Event::AdminAction { id, action, by: "ada".into(), reply: ReplyTo { link: LinkId(0), token: 0 } }
}

/// Releases everything.
pub(crate) fn release_all(engine: &Engine) -> Vec<Event> {
    let release = |id| Event::AdminAction {
        id,
        action: AdminAction::Release,
        by: "ada".into(),
        reply: ReplyTo { link: LinkId(0), token: 0 },
    };
    engine.quarantined(None, MessageId(0), usize::MAX).into_iter().map(release).collect()
}

impl Witness {
    /// Notes an event before it is applied.
    pub(crate) fn note(&mut self, engine: &Engine, event: &Event) {
        if let Event::AdminAction { id, action: AdminAction::Release, .. } = event {
            let status = engine.message(*id);
            if status.is_some_and(|status| status.state == MessageState::Quarantined) {
                self.released.insert(*id);
            }
        }
    }

    /// Checks a message that is sent.
    pub(crate) fn sent(&self, message: &Message) {
        let Some(screening) = &message.routed.screening else { return };
        let may_pass = match screening.verdict {
            ScreenVerdict::Pass => true,
            ScreenVerdict::Quarantine => self.released.contains(&message.id),
            ScreenVerdict::Reject(_) | ScreenVerdict::Drop(_) => false,
        };
        assert!(message.kind != MessageKind::Text || may_pass, "{:?} was sent: {screening:?}", message.id);
    }
}
