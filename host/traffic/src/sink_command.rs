//! `switchyard sink`: a sample SMSC. It accepts every message and sends the delivery receipt that was requested.

use crate::connection::{Connection, Wakeup};
use crate::{TrafficError, finish, runtime};
use bytes::Bytes;
use model::{DlrContent, DlrState, MessageId, PeerMessageId, Timestamp};
use ports::{Acceptor, ConnectionLimiter, ConnectionLimits, ConnectionPermit};
use smpp::{BindMode, CommandStatus, Event, InterfaceVersion, Request, Response, Session, Sm};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::LocalSet;

/// Run a sample SMSC: it accepts every bind and every message, prints each message and sends its delivery receipt.
#[derive(Debug, Clone, clap::Args)]
pub struct SinkCommand {
    /// The address and port to listen on.
    #[arg(long, default_value = "127.0.0.1:2776")]
    listen: String,
    /// The state in delivery receipts; `none` sends no receipts.
    #[arg(long, value_enum, default_value_t = SinkDlr::Delivered)]
    dlr: SinkDlr,
    /// Maximum messages per second; further ones are throttled (command status 0x58). Default: no limit.
    #[arg(long)]
    rate: Option<u32>,
    /// End after this many messages.
    #[arg(long)]
    count: Option<u64>,
    /// Print only the sums at the end.
    #[arg(long)]
    quiet: bool,
}

/// The state in delivery receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SinkDlr {
    /// DELIVRD.
    Delivered,
    /// UNDELIV.
    Undeliverable,
    /// EXPIRED.
    Expired,
    /// REJECTD.
    Rejected,
    /// No receipts.
    None,
}

impl SinkDlr {
    fn state(self) -> Option<DlrState> {
        Some(match self {
            Self::Delivered => DlrState::Delivered,
            Self::Undeliverable => DlrState::Undeliverable,
            Self::Expired => DlrState::Expired,
            Self::Rejected => DlrState::Rejected,
            Self::None => return None,
        })
    }
}

/// Messages per second, counted in whole seconds, as many operators do.
#[derive(Debug)]
struct RateLimit {
    per_second: u32,
    second: u64,
    taken: u32,
}

impl RateLimit {
    /// Whether one more message may pass, `elapsed_seconds` after the start.
    fn allow(&mut self, elapsed_seconds: u64) -> bool {
        if self.second != elapsed_seconds {
            (self.second, self.taken) = (elapsed_seconds, 0);
        }
        let allowed = self.taken < self.per_second;
        self.taken += u32::from(allowed);
        allowed
    }
}

/// State that all connections share.
struct Smsc {
    options: SinkCommand,
    began: Instant,
    limit: RefCell<Option<RateLimit>>,
    /// Sessions that can receive receipts.
    receivers: RefCell<Vec<UnboundedSender<Sm>>>,
    messages: RefCell<u64>,
    /// Finished messages: they are answered, and so is their receipt.
    finished: watch::Sender<u64>,
    throttled: RefCell<u64>,
    receipts: RefCell<u64>,
}

/// Concurrent connections: an appliance under trial has few links.
const CONNECTIONS: usize = 256;

impl SinkCommand {
    /// Runs until Ctrl-C, or until `--count` messages have come.
    #[must_use]
    pub fn run(self) -> ExitCode {
        finish(runtime().and_then(|runtime| LocalSet::new().block_on(&runtime, self.serve())))
    }

    async fn serve(self) -> Result<ExitCode, TrafficError> {
        if self.rate == Some(0) {
            return Err(TrafficError::Option { option: "--rate", expected: "at least 1" });
        }
        let failed = |source| TrafficError::Listen { address: self.listen.clone(), source };
        let listener = TcpListener::bind(&self.listen).await.map_err(failed)?;
        println!(
            "sink: an SMSC listens on {}; every bind is accepted",
            listener.local_addr().map_err(failed)?
        );
        let limiter = ConnectionLimiter::new(ConnectionLimits::new(CONNECTIONS, CONNECTIONS), Arc::default());
        let acceptor = Acceptor::new("sink", Arc::new(listener), limiter);
        let count = self.count;
        let limit = self.rate.map(|per_second| RateLimit { per_second, second: 0, taken: 0 });
        let (finished, mut seen) = watch::channel(0);
        let smsc = Rc::new(Smsc {
            options: self,
            began: Instant::now(),
            limit: RefCell::new(limit),
            receivers: RefCell::default(),
            messages: RefCell::default(),
            finished,
            throttled: RefCell::default(),
            receipts: RefCell::default(),
        });
        let count_reached = async {
            match count {
                // The sender lives as long as this function.
                Some(count) => drop(seen.wait_for(|finished| *finished >= count).await),
                None => std::future::pending().await,
            }
        };
        let accept = async {
            loop {
                let (stream, _, permit) = acceptor.accept().await;
                let smsc = smsc.clone();
                tokio::task::spawn_local(async move {
                    if let Err(error) = smsc.run_connection(stream, permit).await {
                        println!("sink: {error}");
                    }
                });
            }
        };
        tokio::select! {
            () = count_reached => {}
            () = accept => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        println!(
            "sink: {} messages, {} throttled, {} delivery receipts",
            *smsc.messages.borrow(),
            smsc.throttled.borrow(),
            smsc.receipts.borrow()
        );
        Ok(ExitCode::SUCCESS)
    }
}

impl Smsc {
    async fn run_connection(&self, stream: TcpStream, permit: ConnectionPermit) -> Result<(), TrafficError> {
        let options =
            smpp::SmppOptions { system_id: Bytes::from_static(b"SINK"), ..smpp::SmppOptions::default() };
        let mut connection = Connection::new(Session::server(Instant::now(), options), stream);
        let (sender, mut receipts) = unbounded_channel();
        let mut waiting = VecDeque::new();
        let outcome = tokio::select! {
            outcome = self.session(&mut connection, &permit, &sender, &mut receipts, &mut waiting) => outcome,
            () = permit.displaced() => Ok(()),
        };
        self.receivers.borrow_mut().retain(|receiver| !receiver.same_channel(&sender));
        outcome
    }

    async fn session(
        &self,
        connection: &mut Connection,
        permit: &ConnectionPermit,
        sender: &UnboundedSender<Sm>,
        receipts: &mut UnboundedReceiver<Sm>,
        waiting: &mut VecDeque<Sm>,
    ) -> Result<(), TrafficError> {
        let mut answered = 0;
        loop {
            while let Some(event) = connection.session.poll_event() {
                match event {
                    Event::Bind(bind) => {
                        println!(
                            "sink: {} has bound as {}",
                            String::from_utf8_lossy(&bind.system_id),
                            bind.mode.name()
                        );
                        permit.identify();
                        connection
                            .session
                            .accept_bind(Instant::now(), InterfaceVersion(bind.interface_version));
                        if bind.mode.receives() {
                            self.receivers.borrow_mut().push(sender.clone());
                        }
                    }
                    Event::Request { sequence, request } => {
                        answered += self.answer(&mut connection.session, sequence, &request, sender);
                    }
                    Event::Answer { late: false, .. } | Event::Unanswered { .. } => answered += 1,
                    Event::Closing(_) => return connection.flush().await,
                    _ => {}
                }
            }
            while connection.session.window_free() > 0
                && let Some(receipt) = waiting.pop_front()
            {
                // If the session cannot carry the receipt any more, the receipt is lost with it, as at a real SMSC.
                let _ = connection.session.request(Instant::now(), 0, &Request::DeliverSm(receipt));
            }
            connection.flush().await?;
            self.finished.send_modify(|finished| *finished += std::mem::take(&mut answered));
            let mut came = None;
            let wakeup = connection.wait(async { came = receipts.recv().await }).await?;
            waiting.extend(came);
            if wakeup == Wakeup::Closed {
                return Ok(());
            }
        }
    }

    /// Answers a request. Returns the number of messages that this finishes, 0 or 1.
    fn answer(
        &self,
        session: &mut Session,
        sequence: u32,
        request: &Request,
        own: &UnboundedSender<Sm>,
    ) -> u64 {
        let command = request.command();
        let Request::SubmitSm(sm) = request else {
            session.respond(command, sequence, CommandStatus::RINVCMDID, &Response::Empty);
            return 0;
        };
        let elapsed = self.began.elapsed().as_secs();
        if self.limit.borrow_mut().as_mut().is_some_and(|limit| !limit.allow(elapsed)) {
            *self.throttled.borrow_mut() += 1;
            session.respond(command, sequence, CommandStatus::RTHROTTLED, &Response::Empty);
            return 0;
        }
        let number = *self.messages.borrow() + 1;
        *self.messages.borrow_mut() = number;
        let id = number.to_string();
        if !self.options.quiet {
            println!(
                "{} -> {}: {}",
                sm.source.text(),
                sm.destination.text(),
                smpp::text::decode(sm.data_coding, &sm.text())
            );
        }
        session.respond(command, sequence, CommandStatus::ROK, &Response::id(id.clone()));
        let state = self.options.dlr.state().filter(|_| sm.registered_delivery & 1 == 1);
        let sent = state
            .is_some_and(|state| self.send_receipt(session.bound_as(), own, receipt(sm, &id, number, state)));
        u64::from(!sent)
    }

    /// Sends a receipt over the message's own session if that receives, otherwise over any that does. Returns whether
    /// there is one.
    fn send_receipt(&self, mode: Option<BindMode>, own: &UnboundedSender<Sm>, receipt: Sm) -> bool {
        let receivers = self.receivers.borrow();
        let to = match mode {
            Some(mode) if mode.receives() => Some(own),
            _ => receivers.first(),
        };
        let sent = to.is_some_and(|to| to.send(receipt).is_ok());
        *self.receipts.borrow_mut() += u64::from(sent);
        sent
    }
}

/// Makes the receipt of a message, from its destination to its source.
fn receipt(of: &Sm, id: &str, number: u64, state: DlrState) -> Sm {
    let now = Timestamp::now();
    let text = DlrContent {
        of: MessageId(number),
        state,
        intermediate: false,
        error: u16::from(state != DlrState::Delivered),
        network_error: None,
        submitted_at: now,
        done_at: now,
        segments: (1, u16::from(state == DlrState::Delivered)),
        segment: 0,
        peer_id: PeerMessageId::default(),
    };
    let mut sm = Sm { source: of.destination.clone(), destination: of.source.clone(), ..Sm::default() };
    let beginning = smpp::text::decode(of.data_coding, &of.text());
    smpp::delivery_receipt::write(&mut sm, &text, id, &beginning, true);
    sm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_in_whole_seconds() {
        let mut limit = RateLimit { per_second: 2, second: 0, taken: 0 };
        assert_eq!(
            [0, 0, 0, 1, 1, 1].map(|second| limit.allow(second)),
            [true, true, false, true, true, false]
        );
    }
}
