//! Messages in quarantine, in the admin API.

use crate::arguments::parse_id;
use crate::message_service::MessageService;
use crate::problems::{field_problem, shutting_down_problem};
use crate::queue_actions::MessagePage;
use admin::{Problem, QuarantineDecision};
use engine::AdminAction;
use model::{MessageId, NumberDisplay};

impl admin::Quarantine for MessageService {
    fn quarantine(
        &self,
        origin: Option<&str>,
        after: Option<&str>,
        limit: usize,
        numbers: NumberDisplay,
    ) -> Result<api::QuarantinePageView, Problem> {
        let of = self.parse_peer("/origin", origin)?;
        let MessagePage { messages, next, now } =
            self.message_page(after, limit, move |engine, after, most| engine.quarantined(of, after, most))?;
        let shown = messages.into_iter().map(|(status, message)| {
            let by = &message.routed.by;
            api::QuarantinedView {
                id: status.id.to_string(),
                origin: self.name_of(status.origin),
                source: numbers.address(&message.source),
                destination: numbers.address(&message.destination),
                at: message.accepted_at.0,
                until: now.wall_of(status.expires).0,
                by: format!("{} {}", by.plugin, by.version),
                note: message.routed.note.as_deref().map(str::to_owned),
                length: message.text.octets.len(),
            }
        });
        Ok(api::QuarantinePageView { messages: shown.collect(), next })
    }

    fn leave_quarantine(
        &self,
        selection: api::QuarantineSelection,
        decision: QuarantineDecision,
        by: &str,
    ) -> Result<api::QuarantineResult, Problem> {
        let action = match decision {
            QuarantineDecision::Release => AdminAction::Release,
            QuarantineDecision::Purge => AdminAction::Purge,
        };
        let ids = match (selection.origin, selection.ids) {
            (None, Some(ids)) if ids.len() <= 1000 => {
                ids.iter().map(|id| parse_id(id)).collect::<Result<Vec<_>, _>>()?
            }
            (None, Some(_)) => return Err(field_problem("/ids", "are too many", Some("at most 1000"))),
            (Some(name), None) => {
                let of = self.parse_peer("/origin", Some(&name))?;
                let all = self.core.query(move |engine, _| engine.quarantined(of, MessageId(0), usize::MAX));
                all.ok_or_else(shutting_down_problem)?
            }
            _ => return Err(field_problem("", "selects no messages", Some("either `origin` or `ids`"))),
        };
        let (done, skipped) = self.act_on_all(&ids, action, &by.into())?;
        tracing::info!(by, done, ?decision, "messages left quarantine by admin");
        Ok(api::QuarantineResult { done, skipped })
    }
}
