//! The report of a replay matches a plain comparison of all messages, whatever the threads and batches.

use crate::reference_model::expected;
use crate::strategies::pair;
use archive::ArchivedMessage;
use proptest::prelude::*;
use replay::{
    Candidate, CandidateDecision, MessageBatch, MessageSource, MessageSourceError, ReplayOptions,
    ReplayReport, Throughput,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A candidate with a prepared decision for each message.
struct PreparedCandidate(HashMap<u64, CandidateDecision>);

impl Candidate for PreparedCandidate {
    fn decide(&self, message: &ArchivedMessage) -> CandidateDecision {
        self.0[&message.id.0].clone()
    }
}

/// Messages in memory.
struct ReadySource(std::vec::IntoIter<Vec<ArchivedMessage>>);

impl MessageSource for ReadySource {
    fn next(&mut self) -> Result<Option<MessageBatch>, MessageSourceError> {
        Ok(self.0.next().map(MessageBatch::Ready))
    }
}

fn run_replay(
    options: ReplayOptions,
    batch: usize,
    pairs: &[(ArchivedMessage, CandidateDecision)],
) -> ReplayReport {
    let messages: Vec<_> = pairs.iter().map(|(message, _)| message.clone()).collect();
    let batches: Vec<_> = messages.chunks(batch).map(<[_]>::to_vec).collect();
    let answers = pairs.iter().map(|(message, decision)| (message.id.0, decision.clone())).collect();
    let candidate: Arc<dyn Candidate> = Arc::new(PreparedCandidate(answers));
    let report = options.start(ReadySource(batches.into_iter()), &candidate).unwrap().wait();
    ReplayReport { pace: Throughput::default(), ..ReplayReport::clone(&report) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_report_matches_a_reference_model(
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
        let options = ReplayOptions { threads, groups, examples, accounts };
        prop_assert_eq!(run_replay(options, batch, &pairs), expected(&options, &pairs));
    }
}
