//! `POST /v1/reports/again`: sends the DLRs of a time range once more, for an account that lost them.
//!
//! Finished messages move from the store to the archive while this runs. Both are read in pages of falling ids, the store
//! first, so that a message that moves between the two reads is found in both, never in neither; ids found twice are
//! taken once. The same order makes the work resumable: everything at or above an id is done, everything below is not.

use crate::appliance::{Switchyard, gone};
use crate::core_loop;
use crate::records::{Query, told};
use admin::{Kind, Problem};
use archive::{Direction, Filter};
use engine::{Answer, Event};
use model::{Final, FinalState, Message, MessageId, Refusal, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Finished messages of the store that are read at once.
const PAGE: usize = 500;

type Finished = BTreeMap<MessageId, (Message, Final)>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    account: Option<String>,
    from: String,
    until: String,
    before: Option<String>,
}

impl Switchyard {
    /// Sends the DLRs of a time range once more, newest message first. The answer has how many were made, and `next`: the
    /// id to go on below, where an account's queue was full before the end.
    ///
    /// # Errors
    /// When the request is wrong, the archive cannot be read, or the daemon stops.
    pub(crate) fn report_again(&self, request: Value) -> Result<Value, Problem> {
        let request: Request = serde_json::from_value(request).map_err(|error| {
            Problem::new(Kind::BadRequest, format!("the body is not as expected: {error}"))
        })?;
        let times = HashMap::from([("from".to_owned(), request.from), ("until".to_owned(), request.until)]);
        let mut query = Query::new(&times);
        let (Some(from), Some(until)) = (query.time("from")?, query.time("until")?) else {
            return Err(Problem::new(Kind::BadRequest, "from and until: must both be given"));
        };
        let mut before = match request.before.as_deref() {
            Some(id) => Self::parse_id(id)
                .map_err(|_| Problem::new(Kind::BadRequest, "before: is no answer's `next`"))?,
            None => MessageId(i64::MAX.unsigned_abs()),
        };
        let filter = Filter {
            account: request.account,
            direction: Some(Direction::Mt),
            from: Some(from),
            until: Some(until),
            ..Filter::default()
        };
        let mut made = 0_u64;
        loop {
            let (page, lowest) = self.reported_before(&filter, &(from..until), before)?;
            for (id, (message, ended)) in page.into_iter().rev() {
                let (message, ended) = (Box::new(message), Box::new(ended));
                let event = |reply| Event::ReportAgain { message, ended, reply };
                match core_loop::ask(&self.core, &self.links.hub(), event) {
                    Some(Answer::Done) => made += 1,
                    Some(Answer::Refused(Refusal::QueueFull)) => {
                        tracing::info!(made, "an admin's order for DLRs stopped at a full queue");
                        return Ok(
                            json!({ "reports": made, "next": MessageId(id.0.saturating_add(1)).to_string() }),
                        );
                    }
                    Some(_) => {}
                    None => return Err(gone()),
                }
            }
            match lowest {
                Some(lowest) => before = lowest,
                None => break,
            }
        }
        tracing::info!(made, "DLRs made once more by an admin");
        Ok(json!({ "reports": made, "next": null }))
    }

    /// The next page of messages below `before` whose DLRs are asked for, and the id below which nothing was looked at;
    /// `None` at the end.
    fn reported_before(
        &self,
        filter: &Filter,
        times: &Range<Timestamp>,
        before: MessageId,
    ) -> Result<(Finished, Option<MessageId>), Problem> {
        let stored = self.store.finished_before(before, PAGE);
        let stored = stored.map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        let mut page: Finished = stored
            .messages
            .into_iter()
            .filter(|(message, ended)| {
                let is_good = matches!(ended.state, FinalState::Delivered | FinalState::Relayed);
                (if is_good { message.receipts.on_success } else { message.receipts.on_failure })
                    && filter.account.as_ref().is_none_or(|name| **name == *self.name_of(message.origin))
                    && times.contains(&message.accepted_at)
            })
            .map(|(message, ended)| (message.id, (message, ended)))
            .collect();
        let mut lowest = stored.lowest;
        if let Some(history) = &self.history {
            let archived = history.reported_before(filter, before).map_err(|error| told(&error))?;
            for (message, ended) in archived.messages {
                page.entry(message.id).or_insert((message, ended));
            }
            lowest = lowest.max(archived.lowest);
        }
        // Below the higher of the two edges one side was not looked at.
        if let Some(lowest) = lowest {
            page = page.split_off(&lowest);
        }
        Ok((page, lowest))
    }
}
