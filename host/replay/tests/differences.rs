//! What a replay reports is what a plain comparison of all messages finds, whatever the threads and batches.

#![allow(clippy::unwrap_used, reason = "the ground that tests stand on")]

mod oracle;
mod strategies;

use archive::ArchivedMessage;
use oracle::expected;
use proptest::prelude::*;
use replay::{Batch, BoxError, Candidate, Judged, Pace, Replay, Report, Source};
use std::collections::HashMap;
use std::sync::Arc;
use strategies::pair;

/// Says of each message what it was told to say.
struct Prepared(HashMap<u64, Judged>);

impl Candidate for Prepared {
    fn judge(&self, message: &ArchivedMessage) -> Judged {
        self.0[&message.id.0].clone()
    }
}

/// Messages in memory.
struct Ready(std::vec::IntoIter<Vec<ArchivedMessage>>);

impl Source for Ready {
    fn next(&mut self) -> Result<Option<Batch>, BoxError> {
        Ok(self.0.next().map(Batch::Ready))
    }
}

fn replayed(how: Replay, batch: usize, pairs: &[(ArchivedMessage, Judged)]) -> Report {
    let messages: Vec<_> = pairs.iter().map(|(message, _)| message.clone()).collect();
    let batches: Vec<_> = messages.chunks(batch).map(<[_]>::to_vec).collect();
    let answers = pairs.iter().map(|(message, judged)| (message.id.0, judged.clone())).collect();
    let candidate: Arc<dyn Candidate> = Arc::new(Prepared(answers));
    let report = how.start(Ready(batches.into_iter()), &candidate).unwrap().wait();
    Report { pace: Pace::default(), ..Report::clone(&report) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_report_is_what_a_plain_comparison_finds(
        mut pairs in prop::collection::vec(pair(), 0..120),
        threads in 1..5usize,
        batch in 1..40usize,
        groups in prop_oneof![Just(1000), 0..6usize],
        examples in 0..4usize,
        accounts in prop_oneof![Just(20), 0..3usize],
    ) {
        for (n, (message, _)) in pairs.iter_mut().enumerate() {
            message.id.0 = 1_000_000_000 + 7 * n as u64;
        }
        let how = Replay { threads, groups, examples, accounts };
        prop_assert_eq!(replayed(how, batch, &pairs), expected(&how, &pairs));
    }
}
