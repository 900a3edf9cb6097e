//! A sample gateway of CMPP or SMGP for demos: it accepts every Submit and reports its delivery at once.

use anyhow::{Context, Result};
use bytes::Bytes;
use model::Timestamp;
use parking_lot::Mutex;
use sp_session::{
    Content, Delivery, Event, Meaning, Session, SessionOptions, SpProtocol, SpStatusReport, Submission,
    wall_clock,
};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// The secret of the SP.
const SECRET: &[u8] = b"pw";
/// The code of the sample gateway.
const CODE: u32 = 101_001;

/// A running gateway.
pub struct SampleSpGateway<P: SpProtocol> {
    address: SocketAddr,
    shared: Arc<Shared>,
    submissions: mpsc::Receiver<Submission>,
    /// Ends the connections when it is dropped.
    _runtime: Runtime,
    protocol: PhantomData<P>,
}

#[derive(Default)]
struct Shared {
    /// Messages of subscribers that wait for a connection.
    deliveries: Mutex<VecDeque<Delivery>>,
    is_new: Notify,
    /// Number of ids that the gateway has assigned.
    counter: Mutex<u32>,
}

impl Shared {
    fn id<P: SpProtocol>(&self) -> Bytes {
        let mut counter = self.counter.lock();
        *counter += 1;
        P::message_id(Timestamp::now().0 / 1000, *counter, CODE)
    }
}

impl<P: SpProtocol> SampleSpGateway<P> {
    /// Starts a gateway on a free loopback port, for an SP with the password `pw`.
    pub fn start() -> Result<Self> {
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (sender, submissions) = mpsc::channel();
        let serving = shared.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve::<P>(stream, serving.clone(), sender.clone()));
            }
        });
        Ok(Self { address, shared, submissions, _runtime: runtime, protocol: PhantomData })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Received Submits.
    pub fn submissions(&self) -> &mpsc::Receiver<Submission> {
        &self.submissions
    }

    /// Sends a subscriber's message to the SP.
    pub fn deliver(&self, user: &str, sp_number: &str, text: &str) {
        let (coding, octets) = sgip::text::encode(text);
        let delivery = Delivery {
            id: self.shared.id::<P>(),
            source: user.to_owned().into(),
            destination: sp_number.to_owned().into(),
            content: Content { format: coding.0, octets, ..Content::default() },
            received: format!("20{}", wall_clock(Timestamp::now())).into(),
            ..Delivery::default()
        };
        self.shared.deliveries.lock().push_back(delivery);
        self.shared.is_new.notify_one();
    }
}

async fn serve<P: SpProtocol>(
    mut stream: TcpStream,
    shared: Arc<Shared>,
    submissions: mpsc::Sender<Submission>,
) -> Result<()> {
    let mut session = Session::<P>::gateway(Instant::now(), SessionOptions::default());
    loop {
        while let Some(event) = session.poll_event() {
            on_event(&mut session, event, &shared, &submissions).context("an event")?;
        }
        while session.window_free() > 0
            && let Some(delivery) = shared.deliveries.lock().pop_front()
        {
            session.send(Instant::now(), 0, &P::deliver(&delivery))?;
        }
        stream.write_all_buf(session.output()).await?;
        if session.is_closed() {
            return Ok(());
        }
        tokio::select! {
            read = stream.read_buf(session.input()) => if read? == 0 { return Ok(()) },
            () = shared.is_new.notified() => {}
        }
        session.process(Instant::now());
    }
}

fn on_event<P: SpProtocol>(
    session: &mut Session<P>,
    event: Event<P>,
    shared: &Shared,
    submissions: &mpsc::Sender<Submission>,
) -> Result<()> {
    match event {
        Event::Login(pdu) => {
            let Meaning::Login(login) = P::meaning(&pdu) else { return Ok(()) };
            let version = login.version;
            let is_right = P::AUTHENTICATOR.verify(login.authenticator, &login.name, SECRET, login.timestamp);
            let status = if is_right { 0 } else { P::STATUS.login_secret };
            let answer = P::login_answer(status, &login, version, SECRET);
            if is_right {
                session.accept_login(Instant::now(), &answer, version);
            } else {
                session.refuse_login(&answer, version, status);
            }
        }
        Event::Request { sequence, pdu } => {
            let Meaning::Submit(submission) = P::meaning(&pdu) else {
                session.refuse(sequence, P::STATUS.command, true);
                return Ok(());
            };
            let id = shared.id::<P>();
            session.respond(sequence, &P::submit_answer(&id, 0), true);
            let minute: Bytes = wall_clock(Timestamp::now()).get(..10).unwrap_or_default().to_owned().into();
            for subscriber in submission.destinations.iter().filter(|_| submission.wants_report == Some(true))
            {
                let report = SpStatusReport {
                    id: shared.id::<P>(),
                    submission: id.clone(),
                    subscriber: subscriber.clone(),
                    source: submission.source.clone(),
                    service: submission.fields.service.clone(),
                    word: Bytes::from_static(b"DELIVRD"),
                    error: 0,
                    submitted: minute.clone(),
                    done: minute.clone(),
                };
                session.send(Instant::now(), 0, &P::report(&report, session.version()))?;
            }
            let _ = submissions.send(submission);
        }
        _ => {}
    }
    Ok(())
}
