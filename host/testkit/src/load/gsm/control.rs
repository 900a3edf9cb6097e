//! The control interface of a simulated HLR.

use super::hlr::Shared;
use super::subscribers::Subscribers;
use super::wire;
use anyhow::{Result, ensure};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Counts of a control interface.
#[derive(Debug, Clone, Default)]
pub struct ControlReport {
    /// Queries of numbers, including unknown and unanswered ones.
    pub questions: u64,
    /// Queries per number. A query that an old HLR does not support, and that is repeated at once in another form,
    /// counts once.
    pub per_number: HashMap<String, u64>,
    /// Highest number of queries about one number that were unanswered at the same time.
    pub most_at_a_time: u64,
    /// Highest number of queries that were unanswered at the same time.
    pub most_open: u64,
    /// Connections made.
    pub connections: u64,
}

#[derive(Debug, Default)]
pub(super) struct Control {
    report: Mutex<ControlReport>,
    open: Mutex<HashMap<String, u64>>,
}

impl Control {
    pub(super) fn report(&self) -> ControlReport {
        self.report.lock().clone()
    }

    fn record_question(&self, number: &str) {
        let mut open = self.open.lock();
        let here = open.entry(number.to_owned()).or_default();
        *here += 1;
        let (here, all) = (*here, open.values().sum());
        let mut report = self.report.lock();
        report.questions += 1;
        *report.per_number.entry(number.to_owned()).or_default() += 1;
        report.most_at_a_time = report.most_at_a_time.max(here);
        report.most_open = report.most_open.max(all);
    }

    fn record_answer(&self, number: &str) {
        let mut open = self.open.lock();
        if let Some(here) = open.get_mut(number) {
            *here -= 1;
            if *here == 0 {
                open.remove(number);
            }
        }
    }
}

pub(super) async fn serve(mut stream: TcpStream, shared: &Shared, control: &Control) -> Result<()> {
    stream.set_nodelay(true)?;
    control.report.lock().connections += 1;
    let mut waiting = VecDeque::new();
    let outcome = drive(&mut stream, shared, control, &mut waiting).await;
    for (_, number, _) in waiting {
        control.record_answer(&number);
    }
    outcome
}

/// Scheduled answers: time, number, answer.
type Waiting = VecDeque<(Instant, String, Vec<u8>)>;

async fn drive(
    stream: &mut TcpStream,
    shared: &Shared,
    control: &Control,
    waiting: &mut Waiting,
) -> Result<()> {
    let (mut reader, mut writer) = stream.split();
    let mut input = Vec::with_capacity(1 << 16);
    loop {
        let mut output = Vec::new();
        let now = Instant::now();
        while let Some((_, number, frame)) = waiting.pop_front_if(|(due, _, _)| *due <= now) {
            control.record_answer(&number);
            output.extend_from_slice(&frame);
        }
        writer.write_all(&output).await?;
        let next = waiting.front().map(|(due, _, _)| *due);
        tokio::select! {
            count = reader.read_buf(&mut input) => {
                ensure!(count? > 0, "the connection was closed");
                let mut rest = &input[..];
                let mut output = Vec::new();
                while let Some((stream, payload)) = wire::next(&mut rest) {
                    if let (wire::OSMOCOM, [wire::CTRL, line @ ..]) = (stream, payload) {
                        ask(&String::from_utf8_lossy(line), shared, control, waiting, &mut output);
                    }
                }
                let left = rest.len();
                let read = input.len() - left;
                input.drain(..read);
                writer.write_all(&output).await?;
            }
            () = tokio::time::sleep_until(next.unwrap_or(now).into()), if next.is_some() => {}
        }
    }
}

fn ask(line: &str, shared: &Shared, control: &Control, waiting: &mut Waiting, output: &mut Vec<u8>) {
    let put = |output: &mut Vec<u8>, text: &str| {
        wire::frame(output, wire::OSMOCOM, |out| {
            out.push(wire::CTRL);
            out.extend_from_slice(text.as_bytes());
        });
    };
    let mut words = line.split(' ');
    let (Some("GET"), Some(id), Some(variable), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return put(output, "ERROR err Command parser error.");
    };
    let by_imsi = variable.strip_prefix("subscriber.by-imsi-").and_then(|rest| rest.split_once('.'));
    if let Some((imsi, "info")) = by_imsi {
        let subscribers = &shared.options.subscribers;
        let text = match imsi.parse().ok().and_then(|imsi| subscribers.by_imsi(imsi)) {
            None => format!("ERROR {id} No such subscriber."),
            Some(subscriber) => {
                let value = info(shared, subscriber, imsi, &subscribers.msisdn(subscriber));
                format!("GET_REPLY {id} {variable} {value}")
            }
        };
        return put(output, &text);
    }
    let question = variable.strip_prefix("subscriber.by-msisdn-").and_then(|rest| rest.split_once('.'));
    let old = shared.options.centre.is_none();
    let Some((number, what)) = question.filter(|(_, what)| *what == "info" || *what == "imsi" && !old) else {
        return put(output, &format!("ERROR {id} Command not found"));
    };
    control.record_question(number);
    let text = match shared.options.subscribers.by_msisdn(number) {
        None => format!("ERROR {id} No such subscriber."),
        Some(subscriber) => {
            let imsi = Subscribers::imsi_digits(subscriber);
            let value = if what == "imsi" { imsi } else { info(shared, subscriber, &imsi, number) };
            format!("GET_REPLY {id} {variable} {value}")
        }
    };
    let mut frame = Vec::new();
    put(&mut frame, &text);
    waiting.push_back((Instant::now() + shared.options.delay, number.to_owned(), frame));
}

fn info(shared: &Shared, subscriber: u64, imsi: &str, msisdn: &str) -> String {
    let mut lines =
        format!("\nid\t{}\nimsi\t{imsi}\nmsisdn\t{msisdn}\nnam_cs\ttrue\nnam_ps\ttrue\n", subscriber + 1);
    if let Some(name) = shared.location(subscriber) {
        lines.push_str(&format!("vlr_number\t{name}\n"));
    }
    lines.push_str("ms_purged_cs\tfalse\nms_purged_ps\tfalse\nlmsi\t00000000");
    lines
}
