//! `switchyard send`: a sample ESME. It submits messages at a rate and prints how they were answered.

use crate::connection::{Connection, Wakeup};
use crate::{TrafficError, finish, runtime};
use bytes::Bytes;
use model::Address;
use smpp::{
    Bind, BindMode, CommandStatus, Event, Request, Response, Session, Sm, SmppClientOptions,
    delivery_receipt, text,
};
use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Submit messages to an SMPP listener, as an ESME does, and print how they were answered.
///
/// The password comes from standard input or from `--password-file`. Exit status 0: every message was accepted; 2: some were
/// not; 1: the connection or the bind failed.
#[derive(Debug, Clone, clap::Args)]
pub struct SendCommand {
    /// The destination number. With `--spread`, the first of several.
    number: String,
    /// The text.
    #[arg(required = true)]
    text: Vec<String>,
    /// The SMPP listener.
    #[arg(long, default_value = "127.0.0.1:2775")]
    to: String,
    /// The account's system_id.
    #[arg(long)]
    system_id: String,
    /// A file with the password; default: standard input.
    #[arg(long)]
    password_file: Option<PathBuf>,
    /// The source address; by default empty, so that the account's default applies.
    #[arg(long, default_value = "")]
    from: String,
    /// Messages to submit.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Messages per second; default: as fast as they are answered.
    #[arg(long)]
    rate: Option<f64>,
    /// Unanswered submissions at a time.
    #[arg(long, default_value_t = 10)]
    window: usize,
    /// Submit to this many consecutive numbers, in rotation.
    #[arg(long, default_value_t = 1)]
    spread: u64,
    /// Request delivery receipts and wait for them, at most for `--wait` seconds after the last answer.
    #[arg(long)]
    receipts: bool,
    /// Seconds to wait for delivery receipts.
    #[arg(long, default_value_t = 30)]
    wait: u64,
}

/// Maximum number of messages per run: each costs a few octets of memory for its answer time.
const MAX_COUNT: u64 = 10_000_000;

/// The result of the submissions.
#[derive(Debug, Default)]
struct SubmitTally {
    submitted: u64,
    accepted: u64,
    /// Refusals by command status.
    refused: BTreeMap<u32, u64>,
    unanswered: u64,
    /// Answer times in microseconds.
    times: Vec<u32>,
    /// Delivery receipts by state.
    receipts: BTreeMap<String, u64>,
    receipts_total: u64,
}

impl SubmitTally {
    fn answered(&self) -> u64 {
        self.accepted + self.refused.values().sum::<u64>() + self.unanswered
    }

    /// The summary. The line about receipts is left out if none were requested.
    fn summary(&mut self, took: Duration, receipts: bool) -> String {
        let refused: u64 = self.refused.values().sum();
        let mut lines = format!(
            "{} submitted in {:.1} s: {} accepted, {refused} refused, {} unanswered\n",
            self.submitted,
            took.as_secs_f64(),
            self.accepted,
            self.unanswered
        );
        for (status, count) in &self.refused {
            lines.push_str(&format!("  {count} refused with {}\n", CommandStatus(*status)));
        }
        self.times.sort_unstable();
        let at = |share: f64| {
            let index = (self.times.len().saturating_sub(1) as f64 * share).round() as usize;
            f64::from(self.times.get(index).copied().unwrap_or_default()) / 1e3
        };
        if !self.times.is_empty() {
            lines.push_str(&format!(
                "answers: p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms\n",
                at(0.5),
                at(0.99),
                at(1.0)
            ));
        }
        if receipts {
            let states: Vec<_> =
                self.receipts.iter().map(|(state, count)| format!("{count} {state}")).collect();
            let states = if states.is_empty() { "none".to_owned() } else { states.join(", ") };
            lines.push_str(&format!("delivery receipts: {states}\n"));
        }
        lines
    }
}

impl SendCommand {
    /// Submits all messages.
    #[must_use]
    pub fn run(self) -> ExitCode {
        finish(
            self.check().and_then(|(message, password)| runtime()?.block_on(self.submit(&message, password))),
        )
    }

    /// Checks the options. Returns the message without its destination, and the password.
    fn check(&self) -> Result<(Sm, Bytes), TrafficError> {
        let wrong = |option, expected| Err(TrafficError::Option { option, expected });
        if !(1..=MAX_COUNT).contains(&self.count) {
            return wrong("--count", "between 1 and 10000000");
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e6)) {
            return wrong("--rate", "above 0, and 1000000 at most");
        }
        if !(1..=10_000).contains(&self.window) {
            return wrong("--window", "between 1 and 10000");
        }
        if self.spread == 0 || (self.spread > 1 && self.number.parse::<u64>().is_err()) {
            return wrong("--spread", "at least 1, and the number must be digits only");
        }
        let words = self.text.join(" ");
        let (data_coding, octets) = match text::encode_gsm(&words) {
            Some(octets) => (0, octets),
            None => (8, words.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        };
        let most = if data_coding == 0 { 160 } else { 140 };
        if octets.len() > most {
            return Err(TrafficError::Message("the text is longer than one segment; use a shorter one"));
        }
        if self.number.len() > 20 || self.from.len() > 20 {
            return Err(TrafficError::Message("an address has 20 characters at most"));
        }
        let message = Sm {
            source: address(&self.from),
            registered_delivery: u8::from(self.receipts),
            data_coding,
            short_message: Bytes::from(octets),
            ..Sm::default()
        };
        Ok((message, self.password()?))
    }

    fn password(&self) -> Result<Bytes, TrafficError> {
        let text = match &self.password_file {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|source| TrafficError::PasswordFile { path: path.clone(), source })?,
            None => {
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).map_err(|_| TrafficError::NoPassword)?;
                line
            }
        };
        let password = text.lines().next().unwrap_or_default();
        if password.is_empty() {
            return Err(TrafficError::NoPassword);
        }
        Ok(Bytes::copy_from_slice(password.as_bytes()))
    }

    async fn submit(&self, message: &Sm, password: Bytes) -> Result<ExitCode, TrafficError> {
        let failed = |source| TrafficError::Connect { address: self.to.clone(), source };
        let stream = TcpStream::connect(&self.to).await.map_err(failed)?;
        let mut connection = Connection::new(self.session(password), stream);
        self.bind(&mut connection).await?;
        let began = Instant::now();
        let mut tally = SubmitTally::default();
        let mut sent = Vec::new();
        while tally.answered() < self.count {
            self.submit_due(&mut connection, message, began, &mut tally, &mut sent);
            let due = self.due(tally.submitted).map(|after| began + after);
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            // If the window is full, only an answer matters.
            let wakeup = if connection.session.window_free() == 0 {
                connection.wait(std::future::pending()).await?
            } else {
                connection.wait(wake).await?
            };
            self.handle_events(&mut connection, wakeup, &mut tally, &sent)?;
        }
        let took = began.elapsed();
        if self.receipts {
            self.await_receipts(&mut connection, &mut tally, &sent).await?;
        }
        connection.session.unbind(Instant::now());
        // The connection is closed whether or not the unbind is answered.
        let _ = connection.wait(std::future::pending()).await;
        print!("{}", tally.summary(took, self.receipts));
        Ok(if tally.accepted == self.count { ExitCode::SUCCESS } else { ExitCode::from(2) })
    }

    fn session(&self, password: Bytes) -> Session {
        let bind = Bind {
            mode: BindMode::Transceiver,
            system_id: Bytes::copy_from_slice(self.system_id.as_bytes()),
            password,
            system_type: Bytes::new(),
            interface_version: 0x34,
            addr_ton: 0,
            addr_npi: 0,
            address_range: Bytes::new(),
        };
        let options = smpp::SmppOptions { window_out: self.window, ..smpp::SmppOptions::default() };
        Session::client(Instant::now(), SmppClientOptions { options, bind, await_outbind: None })
    }

    async fn bind(&self, connection: &mut Connection) -> Result<(), TrafficError> {
        loop {
            while let Some(event) = connection.session.poll_event() {
                match event {
                    Event::Bound { .. } => return Ok(()),
                    Event::BindRefused(status) => return Err(TrafficError::BindRefused(status)),
                    Event::Closing(reason) => return Err(TrafficError::SessionEnded(reason.name())),
                    _ => {}
                }
            }
            if connection.wait(std::future::pending()).await? == Wakeup::Closed {
                return Err(TrafficError::SessionEnded(
                    "the SMSC closed the connection before it answered the bind",
                ));
            }
        }
    }

    /// The time of the next message, from the start; `None` once all are submitted.
    fn due(&self, submitted: u64) -> Option<Duration> {
        let rate = self.rate.unwrap_or(f64::INFINITY);
        (submitted < self.count).then(|| Duration::from_secs_f64(submitted as f64 / rate))
    }

    /// Submits the messages that are due, as far as the window allows.
    fn submit_due(
        &self,
        connection: &mut Connection,
        message: &Sm,
        began: Instant,
        tally: &mut SubmitTally,
        sent: &mut Vec<Instant>,
    ) {
        while connection.session.window_free() > 0
            && self.due(tally.submitted).is_some_and(|due| due <= began.elapsed())
        {
            let request =
                Request::SubmitSm(Sm { destination: self.destination(tally.submitted), ..message.clone() });
            if connection.session.request(Instant::now(), tally.submitted, &request).is_err() {
                // The session has ended; its last event has the reason.
                return;
            }
            sent.push(Instant::now());
            tally.submitted += 1;
        }
    }

    /// The destination of the message with this index.
    fn destination(&self, index: u64) -> Address {
        match self.number.parse::<u64>() {
            Ok(first) if self.spread > 1 => {
                let width = self.number.len();
                address(&format!("{:0width$}", first.saturating_add(index % self.spread)))
            }
            _ => address(&self.number),
        }
    }

    /// Counts answers and receipts.
    fn handle_events(
        &self,
        connection: &mut Connection,
        wakeup: Wakeup,
        tally: &mut SubmitTally,
        sent: &[Instant],
    ) -> Result<(), TrafficError> {
        while let Some(event) = connection.session.poll_event() {
            match event {
                Event::Answer { token, status, late: false, .. } => {
                    match status {
                        CommandStatus::ROK => tally.accepted += 1,
                        status => *tally.refused.entry(status.0).or_default() += 1,
                    }
                    let index = usize::try_from(token).unwrap_or(usize::MAX);
                    if let Some(at) = sent.get(index) {
                        tally.times.push(u32::try_from(at.elapsed().as_micros()).unwrap_or(u32::MAX));
                    }
                }
                Event::Unanswered { .. } => tally.unanswered += 1,
                Event::Request { sequence, request } => {
                    if let Request::DeliverSm(sm) = &request
                        && delivery_receipt::is_receipt(sm.esm_class)
                    {
                        let state = delivery_receipt::parse_text(&sm.text()).state;
                        let word = state.map_or_else(
                            || "of unknown state".to_owned(),
                            |state| format!("{state:?}").to_lowercase(),
                        );
                        *tally.receipts.entry(word).or_default() += 1;
                        tally.receipts_total += 1;
                    }
                    connection.session.respond(
                        request.command(),
                        sequence,
                        CommandStatus::ROK,
                        &Response::id(""),
                    );
                }
                Event::Closing(reason) => return Err(TrafficError::SessionEnded(reason.name())),
                _ => {}
            }
        }
        if wakeup == Wakeup::Closed {
            return Err(TrafficError::SessionEnded("the SMSC closed the connection"));
        }
        Ok(())
    }

    async fn await_receipts(
        &self,
        connection: &mut Connection,
        tally: &mut SubmitTally,
        sent: &[Instant],
    ) -> Result<(), TrafficError> {
        let until = Instant::now() + Duration::from_secs(self.wait);
        while tally.receipts_total < tally.accepted {
            let wakeup = connection.wait(tokio::time::sleep_until(until.into())).await?;
            self.handle_events(connection, wakeup, tally, sent)?;
            if wakeup == Wakeup::Woken {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Digits are an international number, anything else is alphanumeric (SMPP 3.4 §5.2.5).
fn address(text: &str) -> Address {
    let digits = text.strip_prefix('+').unwrap_or(text);
    match digits {
        "" => Address::default(),
        digits if digits.bytes().all(|octet| octet.is_ascii_digit()) => Address::international(digits),
        _ => Address::new(5, 0, text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_each_refusal_and_each_state() {
        let mut tally = SubmitTally {
            submitted: 4,
            accepted: 2,
            unanswered: 1,
            times: vec![3000, 1000],
            ..SubmitTally::default()
        };
        tally.refused.insert(0x58, 1);
        tally.receipts.insert("delivered".to_owned(), 2);
        let text = tally.summary(Duration::from_millis(1500), true);
        assert!(text.starts_with("4 submitted in 1.5 s: 2 accepted, 1 refused, 1 unanswered\n"), "{text}");
        assert!(text.contains("1 refused with 0x58"), "{text}");
        assert!(text.ends_with("longest 3.0 ms\ndelivery receipts: 2 delivered\n"), "{text}");
    }

    #[test]
    fn an_address_is_a_number_or_a_name() {
        assert_eq!((address("+4179").ton, address("4179").npi, address("ACME").ton), (1, 1, 5));
        assert!(address("").is_empty());
    }
}
