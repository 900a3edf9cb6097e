//! HLR lookups: the `hlr` capability of plugins. Uses subscribers learnt from signalling and queries on the CTRL
//! interface.

use crate::hlr_connection::connect;
use crate::options::GsmOptions;
use crate::state::Shared;
use bytes::{Buf, BytesMut};
use capabilities::{Hlr, HlrFailure, HlrSubscriber};
use gsup::GsupImsi;
use gsup::ctrl::{CtrlClient, CtrlSubscriber, Event, LookupAnswer, LookupDetail, LookupSubject, Msisdn};
use model::AddressBytes;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// Maximum number of queued queries.
const MAX_QUEUED: usize = 4096;

/// Time between connection attempts. Until one succeeds, queries fail at once.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The result of an HLR lookup.
pub(crate) type HlrLookupResult = Result<CtrlSubscriber, HlrFailure>;

struct HlrQuery {
    subject: LookupSubject,
    to: oneshot::Sender<HlrLookupResult>,
}

/// The HLR lookup of one core network.
pub(crate) struct HlrLookup {
    name: String,
    shared: Arc<Shared>,
    ctrl: Option<Sender<HlrQuery>>,
}

impl HlrLookup {
    /// Starts the CTRL client if an address is configured. Must be called within a tokio runtime.
    pub(crate) fn new(options: &Arc<GsmOptions>, shared: &Arc<Shared>) -> Self {
        let ctrl = options.ctrl.clone().map(|address| {
            let (to, questions) = channel(MAX_QUEUED);
            tokio::spawn(run(options.clone(), address, shared.clone(), questions));
            to
        });
        Self { name: options.name.clone(), shared: shared.clone(), ctrl }
    }

    /// Queries a subscriber on the CTRL interface; `None` if there is no interface or the queue is full.
    pub(crate) fn query(&self, subject: LookupSubject) -> Option<oneshot::Receiver<HlrLookupResult>> {
        let (to, answer) = oneshot::channel();
        self.ctrl.as_ref()?.try_send(HlrQuery { subject, to }).is_ok().then_some(answer)
    }
}

impl Hlr for HlrLookup {
    /// The HLR's answer takes precedence over learnt subscribers, which are used if the HLR does not answer.
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let digits = msisdn.strip_prefix('+').unwrap_or(msisdn);
        let subscriber = |imsi: GsupImsi| HlrSubscriber {
            imsi: imsi.as_str().to_owned(),
            serving: Some(self.name.clone()),
        };
        let observed = || self.shared.subscribers.imsi_of(digits.as_bytes()).map(subscriber);
        if self.ctrl.is_none() {
            return observed().ok_or(HlrFailure::Unreachable);
        }
        let Ok(msisdn) = Msisdn::new(digits) else { return Err(HlrFailure::Unknown) };
        let answer = self.query(msisdn.into()).and_then(|answer| answer.blocking_recv().ok());
        match answer.unwrap_or(Err(HlrFailure::Unreachable)) {
            Ok(record) => Ok(subscriber(record.imsi)),
            Err(HlrFailure::Unreachable) => observed().ok_or(HlrFailure::Unreachable),
            Err(HlrFailure::Unknown) => Err(HlrFailure::Unknown),
        }
    }
}

async fn run(
    options: Arc<GsmOptions>,
    address: String,
    shared: Arc<Shared>,
    mut questions: Receiver<HlrQuery>,
) {
    while let Some(first) = questions.recv().await {
        match serve(&options, &address, &shared, first, &mut questions).await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(network = options.name, address, %error, "hlr ctrl interface failed");
                shared.counts.error(format!("HLR CTRL {address}: {error}"));
                shared.counts.ctrl_up.store(false, Relaxed);
                shared.counts.ctrl_failed.store(true, Relaxed);
            }
        }
        // Meanwhile queries fail at once. Reconnect even without a query, so that the state shows when the interface is
        // available again.
        let reconnected = async {
            loop {
                tokio::time::sleep(RETRY_INTERVAL).await;
                if connect(&address, options.connect_timeout).await.is_ok() {
                    break;
                }
            }
        };
        tokio::pin!(reconnected);
        loop {
            tokio::select! {
                () = &mut reconnected => break,
                question = questions.recv() => match question {
                    Some(question) => fail_query(&shared, question.to),
                    None => return,
                },
            }
        }
        shared.counts.ctrl_failed.store(false, Relaxed);
    }
}

fn fail_query(shared: &Shared, to: oneshot::Sender<HlrLookupResult>) {
    shared.counts.questions.fetch_add(1, Relaxed);
    shared.counts.unanswered_questions.fetch_add(1, Relaxed);
    let _ = to.send(Err(HlrFailure::Unreachable));
}

/// Runs queries over one connection until it fails or the network is dropped.
async fn serve(
    options: &GsmOptions,
    address: &str,
    shared: &Shared,
    first: HlrQuery,
    questions: &mut Receiver<HlrQuery>,
) -> io::Result<()> {
    let mut stream = match connect(address, options.connect_timeout).await {
        Ok(stream) => stream,
        Err(error) => {
            fail_query(shared, first.to);
            return Err(error);
        }
    };
    let started = Instant::now();
    let now = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let timeout = u64::try_from(options.ctrl_timeout.as_millis()).unwrap_or(u64::MAX);
    let mut session = CtrlSession {
        client: CtrlClient::new(LookupDetail::Full, timeout),
        open: HashMap::new(),
        next: 0,
        shared,
        network: &options.name,
        misses: 0,
    };
    session.query(now(), first);
    let mut input = BytesMut::with_capacity(16 << 10);
    let mut output = BytesMut::new();
    let (mut read, mut write) = stream.split();
    let ended = loop {
        output.extend_from_slice(session.client.output());
        session.client.output().clear();
        let tick = async {
            match session.client.next_tick() {
                Some(at) => tokio::time::sleep(Duration::from_millis(at.saturating_sub(now()))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            taken = read.read_buf(&mut input) => match taken {
                Ok(0) => break Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the HLR")),
                Ok(_) => {
                    session.client.receive(&input);
                    input.clear();
                }
                Err(error) => break Err(error),
            },
            written = write.write(&output), if !output.is_empty() => match written {
                Ok(octets) => output.advance(octets),
                Err(error) => break Err(error),
            },
            question = questions.recv() => match question {
                Some(question) => session.query(now(), question),
                None => break Ok(()),
            },
            () = tick => session.client.tick(now()),
        }
        if let Err(error) = session.handle_events() {
            break Err(error);
        }
    };
    for (_, to) in session.open.drain() {
        shared.counts.unanswered_questions.fetch_add(1, Relaxed);
        let _ = to.send(Err(HlrFailure::Unreachable));
    }
    ended
}

struct CtrlSession<'a> {
    client: CtrlClient,
    open: HashMap<u64, oneshot::Sender<HlrLookupResult>>,
    next: u64,
    shared: &'a Shared,
    network: &'a str,
    /// Consecutive unanswered queries.
    misses: u32,
}

impl CtrlSession<'_> {
    /// Consecutive unanswered queries after which the connection is replaced.
    const MAX_MISSES: u32 = 3;

    fn query(&mut self, now: u64, question: HlrQuery) {
        self.shared.counts.questions.fetch_add(1, Relaxed);
        self.next += 1;
        self.open.insert(self.next, question.to);
        self.client.look_up(now, self.next, question.subject);
    }

    fn handle_events(&mut self) -> io::Result<()> {
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Answer { token, answer } => {
                    let result = self.handle_answer(answer);
                    if let Some(to) = self.open.remove(&token) {
                        let _ = to.send(result);
                    }
                }
                Event::Lost(error) => return Err(io::Error::other(error.to_string())),
            }
        }
        if self.misses >= Self::MAX_MISSES {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
        }
        Ok(())
    }

    fn handle_answer(&mut self, answer: LookupAnswer) -> HlrLookupResult {
        let counts = &self.shared.counts;
        if answer == LookupAnswer::TimedOut {
            self.misses += 1;
            counts.unanswered_questions.fetch_add(1, Relaxed);
            return Err(HlrFailure::Unreachable);
        }
        self.misses = 0;
        counts.ctrl_up.store(true, Relaxed);
        match answer {
            LookupAnswer::Found(record) => {
                let subscribers = &self.shared.subscribers;
                if let Some(msisdn) = &record.msisdn {
                    subscribers.set_msisdn(&record.imsi, &AddressBytes::from_slice(msisdn.as_bytes()));
                }
                if let Some(msc) = &record.vlr_number
                    && subscribers.msc_of(&record.imsi).is_none()
                {
                    subscribers.set_msc(&record.imsi, &msc.as_str().into(), None);
                }
                Ok(record)
            }
            LookupAnswer::Unknown => Err(HlrFailure::Unknown),
            LookupAnswer::Failed(text) => {
                tracing::warn!(network = self.network, %text, "hlr lookup failed");
                counts.error(format!("HLR CTRL: {text}"));
                Err(HlrFailure::Unreachable)
            }
            LookupAnswer::TimedOut => Err(HlrFailure::Unreachable),
        }
    }
}
