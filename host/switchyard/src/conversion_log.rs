//! Recently reported conversions of messages: each message counts once.

use model::{MessageId, Timestamp};
use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// Time for which a repeated report is recognised: the longest window.
const RETENTION: Duration = Duration::from_secs(86_400);
/// Maximum number of remembered messages; beyond it, the oldest are forgotten.
const MAX_REMEMBERED: usize = 1_000_000;

/// Messages with a recently reported conversion.
#[derive(Debug, Default)]
pub(crate) struct ConversionLog(Mutex<ReportedConversions>);

#[derive(Debug, Default)]
struct ReportedConversions {
    ids: HashSet<MessageId>,
    /// Messages in the order of their reports.
    order: VecDeque<(Timestamp, MessageId)>,
}

impl ConversionLog {
    /// Records a report. Returns whether it is the first one for the message.
    pub(crate) fn insert(&self, id: MessageId, now: Timestamp) -> bool {
        let mut reported = self.0.lock();
        while let Some((at, oldest)) = reported.order.front().copied()
            && (reported.order.len() >= MAX_REMEMBERED || at + RETENTION <= now)
        {
            reported.order.pop_front();
            reported.ids.remove(&oldest);
        }
        let is_first = reported.ids.insert(id);
        if is_first {
            reported.order.push_back((now, id));
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_report_is_recognised_for_a_day() {
        let log = ConversionLog::default();
        let at = |seconds| Timestamp(1_000_000) + Duration::from_secs(seconds);
        assert!(log.insert(MessageId(1), at(0)) && log.insert(MessageId(2), at(10)));
        assert!(!log.insert(MessageId(1), at(86_399)));
        assert!(log.insert(MessageId(1), at(86_400)));
        assert!(!log.insert(MessageId(2), at(86_400)));
        assert_eq!(log.0.lock().ids.len(), 2);
    }
}
