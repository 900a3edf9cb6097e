//! Sample nodes for demos: an operator's SGIP gateway, and a business system that receives pushes.

use anyhow::{Context, Result};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use sgip::{
    Bind, Deliver, HEADER_LENGTH, Header, LoginType, Pdu, Report, ResultCode, Sequence, SgipCommand, Submit,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// The node number of the sample gateway.
const NODE: u32 = 101_001;

/// A gateway that accepts every Submit and reports delivery immediately.
pub struct SampleGateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    submits: mpsc::Receiver<Submit>,
    runtime: Runtime,
}

struct Shared {
    /// Address of the SP's listener.
    sp: SocketAddr,
    counter: AtomicU32,
}

impl Shared {
    fn sequence(&self) -> Sequence {
        Sequence { node: NODE, time: 1_120_203_225, counter: self.counter.fetch_add(1, Relaxed) }
    }

    /// Logs in at the SP's listener, sends one command and unbinds.
    async fn send(&self, pdu: Pdu) -> Result<()> {
        let mut stream = TcpStream::connect(self.sp).await.context("the SP's listener")?;
        let bind = Bind {
            login_type: LoginType::GATEWAY,
            name: "smg".into(),
            password: "its".into(),
            reserve: [0; 8],
        };
        for pdu in [Pdu::Bind(bind), pdu, Pdu::Unbind] {
            stream.write_all(&pdu.to_bytes(self.sequence())).await?;
            let answer = receive(&mut stream).await?.context("the SP closed the connection")?.1;
            if let Pdu::Answer { result, .. } = answer
                && !result.is_ok()
            {
                anyhow::bail!("the SP answered {result}");
            }
        }
        Ok(())
    }
}

/// The next PDU; `None` at the end of the connection.
async fn receive(stream: &mut TcpStream) -> Result<Option<(Sequence, Pdu)>> {
    let mut head = [0; HEADER_LENGTH];
    if stream.read_exact(&mut head).await.is_err() {
        return Ok(None);
    }
    let header = Header::peek(&head).context("a header")?;
    let length = usize::try_from(header.length)?;
    anyhow::ensure!((HEADER_LENGTH..=4096).contains(&length), "a length of {length}");
    let mut body = vec![0; length - HEADER_LENGTH];
    stream.read_exact(&mut body).await?;
    Ok(Some((header.sequence, Pdu::decode(header.command, &body)?)))
}

impl SampleGateway {
    /// Starts a gateway that logs in to the SP's listener at `sp`.
    pub fn start(sp: SocketAddr) -> Result<Self> {
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { sp, counter: AtomicU32::new(0) });
        let (sender, submits) = mpsc::channel();
        let serving = shared.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, serving.clone(), sender.clone()));
            }
        });
        Ok(Self { address, shared, submits, runtime })
    }

    /// Address of the gateway.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Received Submits.
    pub fn submits(&self) -> &mpsc::Receiver<Submit> {
        &self.submits
    }

    /// Sends a subscriber's message to the SP.
    pub fn deliver(&self, user: &str, sp_number: &str, text: &str) -> Result<()> {
        let (coding, content) = sgip::text::encode(text);
        let deliver = Deliver {
            user: user.to_owned().into(),
            sp_number: sp_number.to_owned().into(),
            coding: coding.0,
            content,
            ..Deliver::default()
        };
        self.runtime.block_on(self.shared.send(Pdu::Deliver(deliver)))
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, submits: mpsc::Sender<Submit>) {
    while let Ok(Some((sequence, pdu))) = receive(&mut stream).await {
        let answer = match &pdu {
            Pdu::Bind(_) => Pdu::answer(SgipCommand::Bind, ResultCode::OK),
            Pdu::Submit(_) => Pdu::answer(SgipCommand::Submit, ResultCode::OK),
            Pdu::Unbind => Pdu::UnbindAnswer,
            _ => continue,
        };
        if stream.write_all(&answer.to_bytes(sequence)).await.is_err() {
            return;
        }
        if let Pdu::Submit(submit) = pdu {
            for user in submit.users.clone() {
                let report = Report { submit: sequence, user, ..Report::default() };
                let shared = shared.clone();
                tokio::spawn(async move { shared.send(Pdu::Report(report)).await });
            }
            let _ = submits.send(submit);
        }
    }
}

/// A business system that accepts every push with a correct signature.
pub struct SampleBusiness {
    url: String,
    pushes: mpsc::Receiver<serde_json::Value>,
    refuses: Arc<AtomicBool>,
    _runtime: Runtime,
}

impl SampleBusiness {
    /// Starts a business system with this secret.
    pub fn start(secret: &str) -> Result<Self> {
        let runtime = Runtime::new()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let url = format!("http://{}/sms", listener.local_addr()?);
        let (sender, pushes) = mpsc::channel();
        let secret = secret.to_owned();
        let refuses = Arc::new(AtomicBool::new(false));
        let down = refuses.clone();
        let take = move |headers: HeaderMap, body: String| {
            let (sender, secret, down) = (sender.clone(), secret.clone(), down.load(Relaxed));
            async move {
                if down {
                    return StatusCode::SERVICE_UNAVAILABLE;
                }
                let signed = headers.get(business::SIGNATURE_HEADER).and_then(|value| value.to_str().ok());
                let seconds = signed
                    .and_then(|value| value.strip_prefix("t=")?.split(',').next()?.parse().ok())
                    .unwrap_or(0);
                if signed != Some(&business::signature(&secret, seconds, body.as_bytes())) {
                    return StatusCode::UNAUTHORIZED;
                }
                let _ = sender.send(serde_json::from_str(&body).unwrap_or_default());
                StatusCode::NO_CONTENT
            }
        };
        let app = Router::new().route("/sms", post(take));
        runtime.spawn(async move { axum::serve(listener, app).await });
        Ok(Self { url, pushes, refuses, _runtime: runtime })
    }

    /// The URL for pushes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether to answer every push with 503.
    pub fn refuse(&self, refuse: bool) {
        self.refuses.store(refuse, Relaxed);
    }

    /// Received pushes.
    pub fn pushes(&self) -> &mpsc::Receiver<serde_json::Value> {
        &self.pushes
    }
}
