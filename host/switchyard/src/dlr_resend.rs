//! `POST /v1/dlrs/resend`: sends the DLRs of a time range again, for an account that lost them.
//!
//! Finished messages move from the store to the archive during the operation. Both are read in pages of descending ids,
//! the store first, so a message that moves between the reads is found at least once; duplicates are removed. The order
//! also makes the operation resumable: all ids at or above the cursor are done.

use crate::arguments::{Query, parse_id};
use crate::core_handle;
use crate::problems::{archive_problem, shutting_down_problem};
use crate::records::RecordService;
use admin::{Problem, ProblemKind};
use api::{ResendDlrsRequest, ResendDlrsResult};
use archive::ArchiveFilter;
use engine::{EngineAnswer, Event};
use model::{Direction, FinalRecord, FinalState, Message, MessageId, Refusal, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Finished messages read from the store per page.
const PAGE: usize = 500;

type FinishedById = BTreeMap<MessageId, (Message, FinalRecord)>;

impl RecordService {
    /// Sends the DLRs of a time range again, newest message first. The result contains the number of DLRs and, if an
    /// account's queue was full, `next`: the id below which to continue.
    ///
    /// # Errors
    /// The request is invalid, the archive cannot be read, or the daemon stops.
    pub(crate) fn resend_dlrs_in_range(
        &self,
        request: ResendDlrsRequest,
    ) -> Result<ResendDlrsResult, Problem> {
        let times = HashMap::from([("from".to_owned(), request.from), ("until".to_owned(), request.until)]);
        let mut query = Query::new(&times);
        let (Some(from), Some(until)) = (query.time("from")?, query.time("until")?) else {
            return Err(Problem::new(ProblemKind::BadRequest, "from and until: must both be given"));
        };
        let mut before = match request.before.as_deref() {
            Some(id) => parse_id(id)
                .map_err(|_| Problem::new(ProblemKind::BadRequest, "before: is not the `next` of a page"))?,
            None => MessageId(i64::MAX.unsigned_abs()),
        };
        let filter = ArchiveFilter {
            account: request.account,
            direction: Some(Direction::Mt),
            from: Some(from),
            until: Some(until),
            ..ArchiveFilter::default()
        };
        let mut made = 0_u64;
        loop {
            let (page, lowest) = self.dlr_page_before(&filter, &(from..until), before)?;
            for (id, (message, ended)) in page.into_iter().rev() {
                let (message, ended) = (Box::new(message), Box::new(ended));
                let event = |reply| Event::ResendDlr { message, ended, reply };
                match core_handle::request(&self.core, &self.links.registry(), event) {
                    Some(EngineAnswer::Done) => made += 1,
                    Some(EngineAnswer::Refused(Refusal::QueueFull)) => {
                        tracing::info!(made, "DLR resend stopped at a full queue");
                        let next = MessageId(id.0.saturating_add(1)).to_string();
                        return Ok(ResendDlrsResult { dlrs: made, next: Some(next) });
                    }
                    Some(_) => {}
                    None => return Err(shutting_down_problem()),
                }
            }
            match lowest {
                Some(lowest) => before = lowest,
                None => break,
            }
        }
        tracing::info!(made, "DLRs resent by admin");
        Ok(ResendDlrsResult { dlrs: made, next: None })
    }

    /// The next page of matching messages below `before`, and the lowest id that was searched; `None` at the end.
    fn dlr_page_before(
        &self,
        filter: &ArchiveFilter,
        times: &Range<Timestamp>,
        before: MessageId,
    ) -> Result<(FinishedById, Option<MessageId>), Problem> {
        let stored = self.store.finished_before(before, PAGE);
        let stored = stored.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        let mut page: FinishedById = stored
            .messages
            .into_iter()
            .filter(|(message, ended)| {
                let is_good = matches!(ended.state, FinalState::Delivered | FinalState::Relayed);
                (if is_good { message.dlr_request.on_success } else { message.dlr_request.on_failure })
                    && filter.account.as_ref().is_none_or(|name| **name == *self.name_of(message.origin))
                    && times.contains(&message.accepted_at)
            })
            .map(|(message, ended)| (message.id, (message, ended)))
            .collect();
        let mut lowest = stored.lowest;
        if let Some(history) = &self.history {
            let archived =
                history.dlr_page_before(filter, before).map_err(|error| archive_problem(&error))?;
            for (message, ended) in archived.messages {
                page.entry(message.id).or_insert((message, ended));
            }
            lowest = lowest.max(archived.lowest);
        }
        // Below the higher of the two limits, one side was not searched.
        if let Some(lowest) = lowest {
            page = page.split_off(&lowest);
        }
        Ok((page, lowest))
    }
}
