//! An MSC with phones that do as they are told.

use super::super::tally::Tally;
use super::msc_link::{self, Order, Shared};
use super::record::MscReport;
use super::subscribers::Subscribers;
use super::text;
use super::wire;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Why a short message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// By the phone: a cause of the relay layer.
    Phone(u8),
    /// By the MSC: a cause of the network.
    Network(u8),
}

/// What phones do with a short message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answers {
    /// They take it.
    #[default]
    Take,
    /// Nothing.
    Never,
    /// They take it, and the answer comes twice.
    Twice,
    /// They are full at the first one; so long after that they have room, and say so.
    Full(Duration),
    /// They refuse the first ones for these causes, one after the other, and take the next.
    Refuse(Vec<Cause>),
}

/// How an MSC works.
#[derive(Debug, Clone)]
pub struct MscOptions {
    /// Where the HLR listens, or who stands in front of it.
    pub hlr: SocketAddr,
    /// Its name.
    pub name: String,
    /// Whether it writes names into its messages, as OsmoMSC does from 1.12 on.
    pub names: bool,
    /// Which subscribers are located here as soon as there is a connection.
    pub range: Range<u64>,
    /// What phones do.
    pub answers: Answers,
    /// How long after a message its answer comes.
    pub delay: Duration,
    /// How long it waits before it connects again; `None`: not at all.
    pub reconnect: Option<Duration>,
    /// Whether it keeps the TPDUs.
    pub keep: bool,
    /// The books in which taken messages are entered.
    pub tally: Option<Arc<Tally>>,
}

impl MscOptions {
    /// A plain one without subscribers, whose phones take everything at once.
    pub fn new(hlr: SocketAddr, name: &str) -> Self {
        Self {
            hlr,
            name: name.to_owned(),
            names: false,
            range: 0..0,
            answers: Answers::Take,
            delay: Duration::ZERO,
            reconnect: Some(Duration::from_millis(100)),
            keep: false,
            tally: None,
        }
    }
}

/// What became of a phone's short message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoAnswer {
    /// It was taken.
    Taken,
    /// It was refused, with a cause of the relay layer if there was one. Without one a phone gets no answer.
    Refused(Option<u8>),
    /// Nobody is there who could take it.
    Nowhere,
    /// Nothing came in time, or the connection went away.
    Silence,
}

/// A running MSC.
#[derive(Debug)]
pub struct StandInMsc {
    shared: Arc<Shared>,
    runtime: Runtime,
}

impl StandInMsc {
    /// Starts it. It connects as soon as it can.
    pub fn start(options: MscOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stand-in-msc")
            .enable_all()
            .build()?;
        let (shared, orders) = Shared::new(options);
        runtime.spawn(msc_link::run(Arc::clone(&shared), orders));
        Ok(Self { shared, runtime })
    }

    /// From now on its phones do this.
    pub fn behave(&self, answers: Answers, delay: Duration) {
        self.shared.behave(answers, delay);
    }

    /// Waits until so many subscribers have been located here, on this connection and earlier ones.
    pub fn wait_for_located(&self, count: u64, time: Duration) -> Result<()> {
        self.wait(time, |report| report.located >= count)
            .with_context(|| format!("{count} located subscribers"))
    }

    /// Waits until so many short messages have come.
    pub fn wait_for_arrivals(&self, count: usize, time: Duration) -> Result<()> {
        self.wait(time, |report| report.arrivals.len() >= count)
            .with_context(|| format!("{count} short messages"))
    }

    /// Waits until so many short messages have been taken.
    pub fn wait_for_taken(&self, count: usize, time: Duration) -> Result<()> {
        // Most of the time the first is enough to see that it is not so yet.
        self.wait(time, |report| report.arrivals.len() >= count && report.taken() >= count)
            .with_context(|| format!("{count} taken short messages"))
    }

    /// Waits until its record is like this.
    pub fn wait(&self, time: Duration, is_it: impl Fn(&MscReport) -> bool) -> Result<()> {
        self.shared.wait(Instant::now() + time, is_it)
    }

    /// What it has seen.
    pub fn report(&self) -> MscReport {
        self.shared.report()
    }

    /// A phone moves here: its location is updated.
    pub fn locate(&self, subscriber: u64) {
        self.shared.order(Order::Locate(subscriber..subscriber + 1));
    }

    /// A phone goes.
    pub fn purge(&self, subscriber: u64) {
        let mut frame = Vec::new();
        wire::message(&mut frame, wire::PURGE, Subscribers::imsi(subscriber), &[(wire::CN_DOMAIN, &[2])]);
        self.shared.order(Order::Write(frame));
    }

    /// A phone has room again, and says so.
    pub fn ready(&self, subscriber: u64) {
        self.shared.order(Order::Ready(Subscribers::imsi(subscriber)));
    }

    /// Cuts the connection; a new one is made.
    pub fn drop_link(&self) {
        self.shared.order(Order::Drop);
    }

    /// A phone sends a short message by way of this service centre, and waits for the answer.
    pub fn submit(&self, from: &Phone<'_>, to: &str, text: &str, time: Duration) -> MoAnswer {
        let tpdu = text::submit(from.reference, to, text, from.report);
        self.submit_tpdu(from, &tpdu, time)
    }

    /// The same, with a TPDU as it stands.
    pub fn submit_tpdu(&self, from: &Phone<'_>, tpdu: &[u8], time: Duration) -> MoAnswer {
        let (imsi, answer) = (Subscribers::imsi(from.subscriber), self.shared.expect(from));
        let number = |kind: u8, number: &str| [&[kind, 0x91][..], &wire::digits(number)].concat();
        let (centre, own) = (number(3, from.centre), number(2, from.number));
        let own_name = wire::name(&self.shared.options.name);
        let mut elements: Vec<(u8, &[u8])> = vec![
            (wire::RP_MR, std::slice::from_ref(&from.reference)),
            (wire::RP_DA, &centre),
            (wire::RP_OA, &own),
            (wire::RP_UI, tpdu),
            (wire::CLASS, &[2]),
        ];
        if self.shared.options.names {
            elements.push((wire::SOURCE, &own_name));
        }
        let mut frame = Vec::new();
        wire::message(&mut frame, wire::MO_FORWARD, imsi, &elements);
        self.shared.order(Order::Write(frame));
        let answer = self.runtime.block_on(async { tokio::time::timeout(time, answer).await });
        answer.ok().and_then(Result::ok).unwrap_or(MoAnswer::Silence)
    }
}

/// Who sends a short message, and how.
#[derive(Debug, Clone, Copy)]
pub struct Phone<'a> {
    /// Who.
    pub subscriber: u64,
    /// Its number, without a plus sign.
    pub number: &'a str,
    /// The service centre's number.
    pub centre: &'a str,
    /// The message's reference, on the relay layer and in the TPDU.
    pub reference: u8,
    /// Whether a status report is wanted.
    pub report: bool,
}
