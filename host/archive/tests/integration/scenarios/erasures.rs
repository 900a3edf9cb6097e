//! Contents that are erased.

use super::messages::{Finished, TestSource, finished};
use super::{fill, open, runtime};
use archive::{DecisionDecoder, FinishedSource, MissingData, PeerDirectory, ReplayRange, SourceError};
use model::{ContentErasure, MessageId, PeerId, ScreenVerdict, Screening, StepKind, Text, Timestamp};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

pub fn erasure(n: u64) -> ContentErasure {
    ContentErasure { id: MessageId(MessageId::FIRST.0 + n), at: Timestamp(77), by: "ada".into() }
}

/// A message whose text a screen replaced.
pub fn screened(n: u64) -> Finished {
    let (mut message, ended) = finished(n);
    message.routed.screening = Some(Box::new(Screening {
        verdict: ScreenVerdict::Pass,
        by: message.routed.by.clone(),
        note: None,
        changes: None,
        submitted_text: Some(Text {
            octets: format!("Submitted as {n}").into_bytes().into(),
            ..Text::default()
        }),
        host_calls: Some(Box::from(&b"asked about Message number"[..])),
    }));
    (message, ended)
}

/// The contents of some messages are erased, once; everything else stays.
pub fn erased_contents_are_gone(url: &str) {
    let (archive, source) = (open(url), Arc::new(TestSource::default()));
    source.put((0..300).map(screened));
    fill(&archive, &source);
    let some: Vec<_> = (0..300).filter(|n| n % 3 == 0).map(erasure).collect();
    let unknown = erasure(9_999);
    let all = some.iter().cloned().chain([unknown]).collect();
    assert_eq!(runtime().block_on(archive.erase_content(all)).unwrap(), 100);
    for n in 0..300 {
        let record = runtime().block_on(archive.get(MessageId(MessageId::FIRST.0 + n))).unwrap().unwrap();
        let (message, ended) = screened(n);
        let trace = record.decoded_trace().unwrap();
        assert_eq!(record.destination.as_bytes(), &*message.destination.value);
        let submitted = trace.screening.unwrap().submitted_text.unwrap();
        if n % 3 == 0 {
            assert_eq!((record.body, record.content_erased_at), (Some(Vec::new()), Some(Timestamp(77))));
            assert!(submitted.octets.is_empty() && trace.steps.len() == ended.steps.len() + 1);
            assert!(
                matches!(&trace.steps.last().unwrap().kind, StepKind::ContentErased { by } if **by == *"ada")
            );
        } else {
            assert_eq!((record.body, record.content_erased_at), (Some(message.text.octets.to_vec()), None));
            assert_eq!(submitted.octets, message.routed.screening.unwrap().submitted_text.unwrap().octets);
        }
    }
    let again = some.into_iter().map(|one| ContentErasure { at: Timestamp(99), ..one }).collect();
    assert_eq!(runtime().block_on(archive.erase_content(again)).unwrap(), 0, "it was done before");
    let record = runtime().block_on(archive.get(MessageId::FIRST)).unwrap().unwrap();
    assert_eq!(record.content_erased_at, Some(Timestamp(77)));
    let mut replay = archive.replay_source(ReplayRange { body: true, ..ReplayRange::default() });
    let mut missing = 0;
    while let Some(batch) = runtime().block_on(replay.next()).unwrap() {
        for message in batch.decode(&mut DecisionDecoder::new()) {
            missing += usize::from(message.unwrap().missing == Some(MissingData::ContentErased));
        }
    }
    assert_eq!(missing, 100);
}

/// A source that waits between reading a batch and passing it to the pump.
struct PausingSource {
    source: Arc<TestSource>,
    has_read: Sender<()>,
    may_go_on: parking_lot::Mutex<Receiver<()>>,
}

impl PeerDirectory for PausingSource {
    fn name(&self, id: PeerId) -> Arc<str> {
        self.source.name(id)
    }

    fn is_account(&self, id: PeerId) -> bool {
        self.source.is_account(id)
    }
}

impl FinishedSource for PausingSource {
    fn read(&self, after: MessageId, most: usize) -> Result<Vec<Finished>, SourceError> {
        let read = self.source.read(after, most)?;
        // The test may have ended.
        let _ = self.has_read.send(());
        let _ = self.may_go_on.lock().recv();
        Ok(read)
    }

    fn remove(&self, ids: Vec<MessageId>) -> Result<(), SourceError> {
        self.source.remove(ids)
    }

    fn backlog(&self) -> u64 {
        self.source.backlog()
    }
}

/// A message is archived without its content if that is erased after the pump has read it.
pub fn a_content_erased_on_its_way_is_not_archived(url: &str) {
    let archive = open(url);
    let ((has_read, read), (go_on, may_go_on)) = (channel(), channel());
    let source = TestSource::with([1, 2]);
    let may_go_on = parking_lot::Mutex::new(may_go_on);
    let pump = archive.pump(Arc::new(PausingSource { source: source.clone(), has_read, may_go_on }));
    let pump = pump.start().unwrap();
    read.recv().unwrap();
    assert_eq!(runtime().block_on(archive.erase_content(vec![erasure(1)])).unwrap(), 0, "it has no row yet");
    drop(go_on);
    source.wait_for(0);
    pump.stop();
    let get = |n| runtime().block_on(archive.get(erasure(n).id)).unwrap().unwrap();
    let (erased, whole) = (get(1), get(2));
    assert_eq!((erased.body.as_deref(), erased.content_erased_at), (Some(&b""[..]), Some(Timestamp(77))));
    assert_eq!((whole.body.unwrap(), whole.content_erased_at), (finished(2).0.text.octets.to_vec(), None));
}
