//! `switchyard sink`: an SMSC for trying things out. It takes every message and sends the delivery receipt that was asked
//! for.

use crate::connection::{Connection, Turn};
use crate::{TrafficError, finish, runtime};
use bytes::Bytes;
use doors::{Acceptor, ConnectionLimits, Place, Places};
use model::{MessageId, PeerMessageId, ReceiptState, ReceiptText, Timestamp};
use smpp::{BindMode, Event, Request, Response, Session, Sm, Status, Version};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::LocalSet;

/// Run a sample SMSC: it takes every bind and every message, prints each message and sends its delivery receipt.
#[derive(Debug, Clone, clap::Args)]
pub struct SinkCommand {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:2776")]
    listen: String,
    /// The state in delivery receipts; `none` sends no receipts.
    #[arg(long, value_enum, default_value_t = Dlr::Delivered)]
    dlr: Dlr,
    /// Messages a second that it takes; more are throttled (command status 0x58). No limit if left out.
    #[arg(long)]
    rate: Option<u32>,
    /// End after this many messages.
    #[arg(long)]
    count: Option<u64>,
    /// Print only the sums at the end.
    #[arg(long)]
    quiet: bool,
}

/// What a delivery receipt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Dlr {
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

impl Dlr {
    fn state(self) -> Option<ReceiptState> {
        Some(match self {
            Self::Delivered => ReceiptState::Delivered,
            Self::Undeliverable => ReceiptState::Undeliverable,
            Self::Expired => ReceiptState::Expired,
            Self::Rejected => ReceiptState::Rejected,
            Self::None => return None,
        })
    }
}

/// Messages a second, counted in whole seconds as many carriers do.
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

/// What all connections share.
struct Smsc {
    options: SinkCommand,
    began: Instant,
    limit: RefCell<Option<RateLimit>>,
    /// Sessions that take receipts.
    receivers: RefCell<Vec<UnboundedSender<Sm>>>,
    messages: RefCell<u64>,
    /// Messages of which nothing is left to be written: they are answered, and so is their receipt.
    finished: watch::Sender<u64>,
    throttled: RefCell<u64>,
    receipts: RefCell<u64>,
}

/// Connections at a time: an appliance under trial has few links.
const CONNECTIONS: usize = 256;

impl SinkCommand {
    /// Runs until Ctrl-C, or until `--count` messages have come.
    #[must_use]
    pub fn run(self) -> ExitCode {
        finish(runtime().and_then(|runtime| LocalSet::new().block_on(&runtime, self.serve())))
    }

    async fn serve(self) -> Result<ExitCode, TrafficError> {
        if self.rate == Some(0) {
            return Err(TrafficError::Option { option: "--rate", wanted: "at least 1" });
        }
        let failed = |source| TrafficError::Listen { address: self.listen.clone(), source };
        let listener = TcpListener::bind(&self.listen).await.map_err(failed)?;
        println!(
            "sink: an SMSC listens on {}; every bind is accepted",
            listener.local_addr().map_err(failed)?
        );
        let places = Places::new(ConnectionLimits::new(CONNECTIONS, CONNECTIONS), Arc::default());
        let acceptor = Acceptor::new("sink", Arc::new(listener), places);
        let wanted = self.count;
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
        let enough = async {
            match wanted {
                // The sender lives as long as this function.
                Some(wanted) => drop(seen.wait_for(|count| *count >= wanted).await),
                None => std::future::pending().await,
            }
        };
        let accept = async {
            loop {
                let (stream, _, place) = acceptor.accept().await;
                let smsc = smsc.clone();
                tokio::task::spawn_local(async move {
                    if let Err(error) = smsc.talk(stream, place).await {
                        println!("sink: {error}");
                    }
                });
            }
        };
        tokio::select! {
            () = enough => {}
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
    async fn talk(&self, stream: TcpStream, place: Place) -> Result<(), TrafficError> {
        let options = smpp::Options { system_id: Bytes::from_static(b"SINK"), ..smpp::Options::default() };
        let mut connection = Connection::new(Session::server(Instant::now(), options), stream);
        let (sender, mut receipts) = unbounded_channel();
        let mut waiting = VecDeque::new();
        let outcome = tokio::select! {
            outcome = self.session(&mut connection, &place, &sender, &mut receipts, &mut waiting) => outcome,
            () = place.displaced() => Ok(()),
        };
        self.receivers.borrow_mut().retain(|receiver| !receiver.same_channel(&sender));
        outcome
    }

    async fn session(
        &self,
        connection: &mut Connection,
        place: &Place,
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
                        place.identify();
                        connection.session.accept_bind(Instant::now(), Version(bind.interface_version));
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
                // A receipt that this session cannot carry any more is lost with it, as at a real SMSC under test.
                let _ = connection.session.request(Instant::now(), 0, &Request::DeliverSm(receipt));
            }
            connection.flush().await?;
            self.finished.send_modify(|finished| *finished += std::mem::take(&mut answered));
            let mut came = None;
            let turn = connection.turn(async { came = receipts.recv().await }).await?;
            waiting.extend(came);
            if turn == Turn::Closed {
                return Ok(());
            }
        }
    }

    /// Answers a request; how many messages are finished with that, 0 or 1.
    fn answer(
        &self,
        session: &mut Session,
        sequence: u32,
        request: &Request,
        own: &UnboundedSender<Sm>,
    ) -> u64 {
        let command = request.command();
        let Request::SubmitSm(sm) = request else {
            session.respond(command, sequence, Status::RINVCMDID, &Response::Empty);
            return 0;
        };
        let elapsed = self.began.elapsed().as_secs();
        if self.limit.borrow_mut().as_mut().is_some_and(|limit| !limit.allow(elapsed)) {
            *self.throttled.borrow_mut() += 1;
            session.respond(command, sequence, Status::RTHROTTLED, &Response::Empty);
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
        session.respond(command, sequence, Status::ROK, &Response::id(id.clone()));
        let state = self.options.dlr.state().filter(|_| sm.registered_delivery & 1 == 1);
        let sent = state
            .is_some_and(|state| self.send_receipt(session.bound_as(), own, receipt(sm, &id, number, state)));
        u64::from(!sent)
    }

    /// By the message's own session if it receives, else by any that does; whether there is one.
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

/// The receipt of a message, from its destination to its source.
fn receipt(of: &Sm, id: &str, number: u64, state: ReceiptState) -> Sm {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    let text = ReceiptText {
        of: MessageId(number),
        state,
        intermediate: false,
        error: u16::from(state != ReceiptState::Delivered),
        network_error: None,
        submitted_at: now,
        done_at: now,
        parts: (1, u16::from(state == ReceiptState::Delivered)),
        part: 0,
        peer_id: PeerMessageId::default(),
    };
    let mut sm = Sm { source: of.destination.clone(), destination: of.source.clone(), ..Sm::default() };
    let beginning = smpp::text::decode(of.data_coding, &of.text());
    smpp::receipt::write(&mut sm, &text, id, &beginning, true);
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
