//! The HLR as the `hlr` capability of plugins sees it: what was learnt, and questions on its CTRL interface.

use crate::client::connect;
use crate::desk::Shared;
use crate::options::GsmOptions;
use bytes::{Buf, BytesMut};
use capabilities::{Hlr, HlrFailure, HlrSubscriber};
use gsup::Imsi;
use gsup::ctrl::{Answer, Ask, Client, Event, Msisdn, Subject, Subscriber};
use model::AddressBytes;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// Questions that may wait; there are far fewer threads that ask.
const OPEN: usize = 4096;

/// How long after a failed connection the next is tried; questions until one works fail at once.
const REST: Duration = Duration::from_secs(1);

/// What the HLR says of a subscriber.
pub(crate) type Located = Result<Subscriber, HlrFailure>;

struct Question {
    subject: Subject,
    to: oneshot::Sender<Located>,
}

/// What the core network knows of its subscribers.
pub(crate) struct Register {
    name: String,
    shared: Arc<Shared>,
    ctrl: Option<Sender<Question>>,
}

impl Register {
    /// Begins to ask on the CTRL interface, where there is one. To be called inside a tokio runtime.
    pub(crate) fn new(options: &Arc<GsmOptions>, shared: &Arc<Shared>) -> Self {
        let ctrl = options.ctrl.clone().map(|address| {
            let (to, questions) = channel(OPEN);
            tokio::spawn(run(options.clone(), address, shared.clone(), questions));
            to
        });
        Self { name: options.name.clone(), shared: shared.clone(), ctrl }
    }

    /// Asks on the CTRL interface about a subscriber; `None` when that is not possible.
    pub(crate) fn ask(&self, subject: Subject) -> Option<oneshot::Receiver<Located>> {
        let (to, answer) = oneshot::channel();
        self.ctrl.as_ref()?.try_send(Question { subject, to }).is_ok().then_some(answer)
    }
}

impl Hlr for Register {
    /// The HLR's own word counts more than what passed by, and tells where the subscriber was last; without one, what passed
    /// by is all there is.
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let digits = msisdn.strip_prefix('+').unwrap_or(msisdn);
        let subscriber =
            |imsi: Imsi| HlrSubscriber { imsi: imsi.as_str().to_owned(), serving: Some(self.name.clone()) };
        let learnt = || self.shared.subscribers.imsi_of(digits.as_bytes()).map(subscriber);
        if self.ctrl.is_none() {
            return learnt().ok_or(HlrFailure::Unreachable);
        }
        let Ok(msisdn) = Msisdn::new(digits) else { return Err(HlrFailure::Unknown) };
        let answer = self.ask(msisdn.into()).and_then(|answer| answer.blocking_recv().ok());
        match answer.unwrap_or(Err(HlrFailure::Unreachable)) {
            Ok(found) => Ok(subscriber(found.imsi)),
            Err(HlrFailure::Unreachable) => learnt().ok_or(HlrFailure::Unreachable),
            Err(HlrFailure::Unknown) => Err(HlrFailure::Unknown),
        }
    }
}

async fn run(
    options: Arc<GsmOptions>,
    address: String,
    shared: Arc<Shared>,
    mut questions: Receiver<Question>,
) {
    while let Some(first) = questions.recv().await {
        match serve(&options, &address, &shared, first, &mut questions).await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(network = options.name, address, %error, "the HLR's CTRL interface");
                shared.counts.error(format!("HLR CTRL {address}: {error}"));
                shared.counts.ctrl_up.store(false, Relaxed);
                shared.counts.ctrl_failed.store(true, Relaxed);
            }
        }
        // Whoever asks meanwhile is told at once. It is tried without a question too: there may be none for long, and an
        // admin has to see that it is back.
        let back = async {
            loop {
                tokio::time::sleep(REST).await;
                if connect(&address, options.connect_timeout).await.is_ok() {
                    break;
                }
            }
        };
        tokio::pin!(back);
        loop {
            tokio::select! {
                () = &mut back => break,
                question = questions.recv() => match question {
                    Some(question) => fail(&shared, question.to),
                    None => return,
                },
            }
        }
        shared.counts.ctrl_failed.store(false, Relaxed);
    }
}

fn fail(shared: &Shared, to: oneshot::Sender<Located>) {
    shared.counts.questions.fetch_add(1, Relaxed);
    shared.counts.unanswered_questions.fetch_add(1, Relaxed);
    let _ = to.send(Err(HlrFailure::Unreachable));
}

/// Asks over one connection until it breaks, or nobody asks any more.
async fn serve(
    options: &GsmOptions,
    address: &str,
    shared: &Shared,
    first: Question,
    questions: &mut Receiver<Question>,
) -> io::Result<()> {
    let mut stream = match connect(address, options.connect_timeout).await {
        Ok(stream) => stream,
        Err(error) => {
            fail(shared, first.to);
            return Err(error);
        }
    };
    let begun = Instant::now();
    let now = || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let patience = u64::try_from(options.ctrl_timeout.as_millis()).unwrap_or(u64::MAX);
    let mut asking = Asking {
        client: Client::new(Ask::Everything, patience),
        open: HashMap::new(),
        next: 0,
        shared,
        network: &options.name,
        misses: 0,
    };
    asking.ask(now(), first);
    let mut input = BytesMut::with_capacity(16 << 10);
    let mut output = BytesMut::new();
    let (mut read, mut write) = stream.split();
    let ended = loop {
        output.extend_from_slice(asking.client.output());
        asking.client.output().clear();
        let tick = async {
            match asking.client.next_tick() {
                Some(at) => tokio::time::sleep(Duration::from_millis(at.saturating_sub(now()))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            taken = read.read_buf(&mut input) => match taken {
                Ok(0) => break Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed the connection")),
                Ok(_) => {
                    asking.client.receive(&input);
                    input.clear();
                }
                Err(error) => break Err(error),
            },
            written = write.write(&output), if !output.is_empty() => match written {
                Ok(octets) => output.advance(octets),
                Err(error) => break Err(error),
            },
            question = questions.recv() => match question {
                Some(question) => asking.ask(now(), question),
                None => break Ok(()),
            },
            () = tick => asking.client.tick(now()),
        }
        if let Err(error) = asking.answers() {
            break Err(error);
        }
    };
    for (_, to) in asking.open.drain() {
        shared.counts.unanswered_questions.fetch_add(1, Relaxed);
        let _ = to.send(Err(HlrFailure::Unreachable));
    }
    ended
}

struct Asking<'a> {
    client: Client,
    open: HashMap<u64, oneshot::Sender<Located>>,
    next: u64,
    shared: &'a Shared,
    network: &'a str,
    /// Unanswered questions in a row.
    misses: u32,
}

impl Asking<'_> {
    /// So many, and a connection is given up for a new one.
    const MISSES: u32 = 3;

    fn ask(&mut self, now: u64, question: Question) {
        self.shared.counts.questions.fetch_add(1, Relaxed);
        self.next += 1;
        self.open.insert(self.next, question.to);
        self.client.look_up(now, self.next, question.subject);
    }

    fn answers(&mut self) -> io::Result<()> {
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Answer { token, answer } => {
                    let looked = self.looked(answer);
                    if let Some(to) = self.open.remove(&token) {
                        let _ = to.send(looked);
                    }
                }
                Event::Lost(error) => return Err(io::Error::other(error.to_string())),
            }
        }
        if self.misses >= Self::MISSES {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"));
        }
        Ok(())
    }

    fn looked(&mut self, answer: Answer) -> Located {
        let counts = &self.shared.counts;
        if answer == Answer::Late {
            self.misses += 1;
            counts.unanswered_questions.fetch_add(1, Relaxed);
            return Err(HlrFailure::Unreachable);
        }
        self.misses = 0;
        counts.ctrl_up.store(true, Relaxed);
        match answer {
            Answer::Found(found) => {
                let known = &self.shared.subscribers;
                if let Some(msisdn) = &found.msisdn {
                    known.numbered(&found.imsi, &AddressBytes::from_slice(msisdn.as_bytes()));
                }
                if let Some(msc) = &found.vlr_number
                    && known.msc_of(&found.imsi).is_none()
                {
                    known.at(&found.imsi, &msc.as_str().into(), None);
                }
                Ok(found)
            }
            Answer::Unknown => Err(HlrFailure::Unknown),
            Answer::Failed(words) => {
                tracing::warn!(network = self.network, %words, "the HLR could not tell");
                counts.error(format!("HLR CTRL: {words}"));
                Err(HlrFailure::Unreachable)
            }
            Answer::Late => Err(HlrFailure::Unreachable),
        }
    }
}
