//! The bind probe: an extra connection to a peer, with the configured options, that binds and then unbinds.
//!
//! It carries no traffic: no message is sent over it, and the peer's messages are refused with a temporary status.
//! The existing links are not affected.

use crate::gateway_kind::GatewayKind;
use crate::sgip::GatewayOptions;
use crate::smpp_link::session_options;
use crate::{Links, PeerOptions, sp};
use api::{TestStepKind, TestStepView};
use bytes::BytesMut;
use cmpp::Cmpp;
use model::Timestamp;
use ports::link::ClientTls;
use ports::{Socket, clock};
use sgip::{LoginType, ResultCode, Sequence};
use smgp::Smgp;
use smpp::{CommandStatus, Response};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Maximum time for the peer's answer to our unbind.
pub(crate) const UNBIND_TIMEOUT: Duration = Duration::from_secs(2);

/// Results of the steps so far.
#[derive(Default)]
pub(crate) struct ProbeRun {
    steps: Vec<TestStepView>,
}

impl ProbeRun {
    /// Runs one step, within a time limit; `None` if it fails.
    pub(crate) async fn step<T>(
        &mut self,
        what: TestStepKind,
        within: Duration,
        step: impl Future<Output = Result<(T, Option<String>), String>>,
    ) -> Option<T> {
        let started = clock::now();
        let ended = tokio::time::timeout(within, step).await;
        let ended = ended.unwrap_or_else(|_| Err(format!("no answer within {} s", within.as_secs_f32())));
        let took = clock::now().saturating_duration_since(started).as_millis();
        let (ok, detail, result) = match ended {
            Ok((result, detail)) => (true, detail, Some(result)),
            Err(why) => (false, Some(why), None),
        };
        self.steps.push(TestStepView { what, ok, ms: u64::try_from(took).unwrap_or(u64::MAX), detail });
        result
    }

    /// Resolves a host and port, and connects.
    async fn connect(&mut self, address: &str, within: Duration) -> Option<TcpStream> {
        let found = async {
            let found = tokio::net::lookup_host(address).await.map_err(|error| error.to_string())?;
            let found: Vec<_> = found.collect();
            let addresses: Vec<_> = found.iter().map(|found| found.ip().to_string()).collect();
            if found.is_empty() {
                Err("the name has no address".to_owned())
            } else {
                Ok((found, Some(addresses.join(", "))))
            }
        };
        let found = self.step(TestStepKind::Resolve, within, found).await?;
        let connected = async {
            let stream = TcpStream::connect(&found[..]).await.map_err(|error| error.to_string())?;
            let remote = stream.peer_addr().ok().map(|remote| remote.to_string());
            let _ = stream.set_nodelay(true);
            Ok((stream, remote))
        };
        self.step(TestStepKind::Connect, within, connected).await
    }

    /// Connects, with TLS if there are options for it.
    pub(crate) async fn connect_tls(
        &mut self,
        address: &str,
        tls: Option<&ClientTls>,
        within: Duration,
    ) -> Option<Socket> {
        let stream = self.connect(address, within).await?;
        let Some(files) = tls else { return Some(Socket::Plain(stream)) };
        let host = address.rsplit_once(':').map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let handshake = async {
            let (connector, name) = files.connector(host).map_err(|error| error.to_string())?;
            let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
            let version = stream.get_ref().1.protocol_version().map(|version| format!("{version:?}"));
            Ok((Socket::Tls(Box::new(stream.into())), version))
        };
        self.step(TestStepKind::Tls, within, handshake).await
    }

    pub(crate) fn into_steps(self) -> Vec<TestStepView> {
        self.steps
    }
}

impl Links {
    /// Probes the peer or gateway of that name; `None` if there is none. Must be called inside a tokio runtime.
    pub async fn probe(&self, name: &str) -> Option<Vec<TestStepView>> {
        let peer = self.peer_options(name);
        if let Some(options) = peer {
            return Some(self.probe_smpp(&options).await);
        }
        Some(match self.gateway_options(name)? {
            GatewayKind::Sgip(options) => probe_sgip(&options).await,
            GatewayKind::Cmpp(options) => sp::probe::<Cmpp>(&options).await,
            GatewayKind::Smgp(options) => sp::probe::<Smgp>(&options).await,
        })
    }

    async fn probe_smpp(&self, options: &PeerOptions) -> Vec<TestStepView> {
        let mut run = ProbeRun::default();
        let _ = self.try_smpp(options, &mut run).await;
        run.steps
    }

    async fn try_smpp(&self, options: &PeerOptions, run: &mut ProbeRun) -> Option<()> {
        let within = options.bind_timeout;
        let mut socket = run.connect_tls(&options.address, options.tls.as_ref(), within).await?;
        let mut session = smpp::Session::client(clock::now(), session_options(self.system_id(), options));
        run.step(TestStepKind::Bind, within, bind_smpp(&mut socket, &mut session, options)).await?;
        session.unbind(clock::now());
        run.step(TestStepKind::Unbind, UNBIND_TIMEOUT, unbind_smpp(&mut socket, &mut session)).await
    }
}

pub(crate) async fn write(socket: &mut Socket, output: &mut BytesMut) -> Result<(), String> {
    let written = async {
        socket.write_all_buf(output).await?;
        socket.flush().await
    };
    written.await.map_err(|error: std::io::Error| error.to_string())
}

pub(crate) async fn read(socket: &mut Socket, input: &mut BytesMut) -> Result<(), String> {
    match socket.read_buf(input).await {
        Ok(0) => Err("the peer closed the connection".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

async fn bind_smpp(
    socket: &mut Socket,
    session: &mut smpp::Session,
    options: &PeerOptions,
) -> Result<((), Option<String>), String> {
    loop {
        write(socket, session.output()).await?;
        read(socket, session.input()).await?;
        session.process(clock::now());
        while let Some(event) = session.poll_event() {
            match event {
                smpp::Event::Bound { system_id, version } => {
                    let name = String::from_utf8_lossy(&system_id).into_owned();
                    let version =
                        version.map_or("unknown".to_owned(), |version| format!("0x{:02X}", version.0));
                    let mode = options.bind.name();
                    return Ok((
                        (),
                        Some(format!("bound as {mode}; system_id of the peer {name:?}, version {version}")),
                    ));
                }
                smpp::Event::BindRefused(status) => return Err(refused(status)),
                smpp::Event::Closing(reason) => return Err(reason.name().to_owned()),
                event => refuse_for_now(session, event),
            }
        }
    }
}

/// Describes a refused bind and its usual cause.
fn refused(status: CommandStatus) -> String {
    match status {
        CommandStatus::RINVPASWD | CommandStatus::RINVSYSID => {
            format!("bind refused: {status} Check system-id, password and system-type")
        }
        CommandStatus::RALYBND | CommandStatus::RBINDFAIL => {
            format!("bind refused: {status} If links are up, the peer may allow no further link")
        }
        status => format!("bind refused: {status}"),
    }
}

/// Refuses a request of the peer with a temporary status; the peer repeats it on another link.
fn refuse_for_now(session: &mut smpp::Session, event: smpp::Event) {
    if let smpp::Event::Request { sequence, request } = event {
        session.respond(request.command(), sequence, CommandStatus::RX_T_APPN, &Response::Empty);
    }
}

async fn unbind_smpp(
    socket: &mut Socket,
    session: &mut smpp::Session,
) -> Result<((), Option<String>), String> {
    loop {
        write(socket, session.output()).await?;
        read(socket, session.input()).await?;
        session.process(clock::now());
        while let Some(event) = session.poll_event() {
            match event {
                smpp::Event::Closing(_) => {
                    // If both ends unbind at the same time, this is our answer to the peer's unbind.
                    let _ = write(socket, session.output()).await;
                    return Ok(((), None));
                }
                event => refuse_for_now(session, event),
            }
        }
    }
}

async fn probe_sgip(options: &GatewayOptions) -> Vec<TestStepView> {
    let mut run = ProbeRun::default();
    let _ = try_sgip(options, &mut run).await;
    run.steps
}

async fn try_sgip(options: &GatewayOptions, run: &mut ProbeRun) -> Option<()> {
    let within = options.bind_timeout;
    let mut socket = Socket::Plain(run.connect(&options.address, within).await?);
    let bind = sgip::Bind {
        login_type: LoginType::SP,
        name: options.node.login_name.clone(),
        password: options.node.login_password.0.clone(),
        reserve: [0; 8],
    };
    let settings = sgip::SgipOptions {
        bind_timeout: within,
        limit: options.node.quirks.limit,
        loose_match: options.node.quirks.loose_match,
        ..sgip::SgipOptions::default()
    };
    // A counter far from those of regular logins.
    let sequence = |counter| Sequence::new(options.node.node, Timestamp::now(), u32::MAX - counter);
    let mut session = sgip::Session::connector(clock::now(), settings, &bind, sequence(1));
    run.step(TestStepKind::Bind, within, exchange_sgip(&mut socket, &mut session, true)).await?;
    session.unbind(clock::now(), sequence(0));
    run.step(TestStepKind::Unbind, UNBIND_TIMEOUT, exchange_sgip(&mut socket, &mut session, false)).await
}

/// Exchanges PDUs until the login or the unbind is complete.
async fn exchange_sgip(
    socket: &mut Socket,
    session: &mut sgip::Session,
    until_bound: bool,
) -> Result<((), Option<String>), String> {
    loop {
        write(socket, session.output()).await?;
        let mut input = BytesMut::new();
        read(socket, &mut input).await?;
        session.receive(clock::now(), &input);
        while let Some(event) = session.poll_event() {
            match event {
                sgip::Event::Bound if until_bound => return Ok(((), None)),
                sgip::Event::BindRefused(code) => return Err(format!("login refused: {code}")),
                sgip::Event::Closing(_) if !until_bound => {
                    let _ = write(socket, session.output()).await;
                    return Ok(((), None));
                }
                sgip::Event::Closing(reason) => return Err(format!("{reason:?}")),
                sgip::Event::Command { number, .. } => session.respond(number, ResultCode::BUSY),
                _ => {}
            }
        }
    }
}
