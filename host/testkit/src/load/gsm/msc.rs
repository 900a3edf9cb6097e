//! A simulated MSC with phones that behave as configured.

use super::super::tally::Tally;
use super::msc_link::{self, MscCommand, Shared};
use super::msc_report::MscReport;
use super::subscribers::Subscribers;
use super::text;
use super::wire;
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Reasons for which a short message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalCause {
    /// By the handset, with an RP cause.
    Handset(u8),
    /// By the MSC, with an RP cause of the network.
    Network(u8),
}

/// Behaviour of handsets on a short message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MtBehaviour {
    /// They accept it.
    #[default]
    Accept,
    /// They never answer.
    Never,
    /// They accept it and answer twice.
    Twice,
    /// Memory is full at the first message; after this time the phones report that memory is available.
    Full(Duration),
    /// They refuse the first messages with these causes, one after the other, and accept the next one.
    Refuse(Vec<RefusalCause>),
}

/// Options of an MSC.
#[derive(Debug, Clone)]
pub struct MscOptions {
    /// Address of the HLR or of the proxy before it.
    pub hlr: SocketAddr,
    /// The MSC's name.
    pub name: String,
    /// Whether it adds source and destination names to its messages, as OsmoMSC does since 1.12.
    pub names: bool,
    /// Subscribers that are located here as soon as the connection is up.
    pub range: Range<u64>,
    /// Behaviour of the phones.
    pub answers: MtBehaviour,
    /// Delay of the answers.
    pub delay: Duration,
    /// Delay before it reconnects; `None`: it does not reconnect.
    pub reconnect: Option<Duration>,
    /// Whether to keep the TPDUs.
    pub keep: bool,
    /// The tally that records accepted messages.
    pub tally: Option<Arc<Tally>>,
}

impl MscOptions {
    /// Default options: no subscribers, phones accept everything immediately.
    pub fn new(hlr: SocketAddr, name: &str) -> Self {
        Self {
            hlr,
            name: name.to_owned(),
            names: false,
            range: 0..0,
            answers: MtBehaviour::Accept,
            delay: Duration::ZERO,
            reconnect: Some(Duration::from_millis(100)),
            keep: false,
            tally: None,
        }
    }
}

/// Result of a mobile-originated message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoAnswer {
    /// Accepted.
    Accepted,
    /// Refused, with an RP cause if there was one. Without a cause the phone gets no answer.
    Refused(Option<u8>),
    /// No route to an SMSC.
    NoRoute,
    /// No answer in time, or the connection was lost.
    NoAnswer,
}

/// A running MSC.
#[derive(Debug)]
pub struct SimulatedMsc {
    shared: Arc<Shared>,
    runtime: Runtime,
}

impl SimulatedMsc {
    /// Starts the MSC. It connects as soon as it can.
    pub fn start(options: MscOptions) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stand-in-msc")
            .enable_all()
            .build()?;
        let (shared, commands) = Shared::new(options);
        runtime.spawn(msc_link::run(Arc::clone(&shared), commands));
        Ok(Self { shared, runtime })
    }

    /// Changes the behaviour of its phones.
    pub fn behave(&self, answers: MtBehaviour, delay: Duration) {
        self.shared.behave(answers, delay);
    }

    /// Waits until this many subscribers have been located here, on this connection and earlier ones.
    pub fn wait_for_located(&self, count: u64, time: Duration) -> Result<()> {
        self.wait(time, |report| report.located >= count)
            .with_context(|| format!("{count} located subscribers"))
    }

    /// Waits until this many short messages have arrived.
    pub fn wait_for_arrivals(&self, count: usize, time: Duration) -> Result<()> {
        self.wait(time, |report| report.arrivals.len() >= count)
            .with_context(|| format!("{count} short messages"))
    }

    /// Waits until this many short messages have been accepted.
    pub fn wait_for_accepted(&self, count: usize, time: Duration) -> Result<()> {
        // Cheap check first: it fails most of the time.
        self.wait(time, |report| report.arrivals.len() >= count && report.accepted_count() >= count)
            .with_context(|| format!("{count} taken short messages"))
    }

    /// Waits until the report satisfies the condition.
    pub fn wait(&self, time: Duration, is_it: impl Fn(&MscReport) -> bool) -> Result<()> {
        self.shared.wait(Instant::now() + time, is_it)
    }

    /// The results so far.
    pub fn report(&self) -> MscReport {
        self.shared.report()
    }

    /// Attaches a phone: sends a location update.
    pub fn locate(&self, subscriber: u64) {
        self.shared.send_command(MscCommand::Locate(subscriber..subscriber + 1));
    }

    /// Detaches a phone.
    pub fn purge(&self, subscriber: u64) {
        let mut frame = Vec::new();
        wire::message(&mut frame, wire::PURGE, Subscribers::imsi(subscriber), &[(wire::CN_DOMAIN, &[2])]);
        self.shared.send_command(MscCommand::Write(frame));
    }

    /// A phone reports that memory is available.
    pub fn ready(&self, subscriber: u64) {
        self.shared.send_command(MscCommand::Ready(Subscribers::imsi(subscriber)));
    }

    /// Drops the connection; the MSC reconnects.
    pub fn drop_link(&self) {
        self.shared.send_command(MscCommand::Drop);
    }

    /// Sends a short message from a phone and waits for the answer.
    pub fn submit(&self, from: &MoSender<'_>, to: &str, text: &str, time: Duration) -> MoAnswer {
        let tpdu = text::submit(from.reference, to, text, from.report);
        self.submit_tpdu(from, &tpdu, time)
    }

    /// Sends this TPDU from a phone and waits for the answer.
    pub fn submit_tpdu(&self, from: &MoSender<'_>, tpdu: &[u8], time: Duration) -> MoAnswer {
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
        self.shared.send_command(MscCommand::Write(frame));
        let answer = self.runtime.block_on(async { tokio::time::timeout(time, answer).await });
        answer.ok().and_then(Result::ok).unwrap_or(MoAnswer::NoAnswer)
    }
}

/// The sender of a short message.
#[derive(Debug, Clone, Copy)]
pub struct MoSender<'a> {
    /// The subscriber.
    pub subscriber: u64,
    /// Its MSISDN, without a plus sign.
    pub number: &'a str,
    /// The service centre's number.
    pub centre: &'a str,
    /// The message reference, of the relay layer and in the TPDU.
    pub reference: u8,
    /// Whether to request a status report.
    pub report: bool,
}
