//! Trying a peer: an extra connection, as the configuration says, that goes as far as a bind and then takes its leave.
//!
//! It takes no part in traffic: nothing is sent over it, and what the peer sends meanwhile is told to come again. The links
//! that are there, if there are any, are not touched.

use crate::client::client_options;
use crate::sgip::GatewayOptions;
use crate::socket::Socket;
use crate::{Links, PeerOptions, clock, tls};
use bytes::BytesMut;
use sgip::{LoginType, ResultCode, Sequence};
use smpp::{Response, Status};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One step of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeStep {
    /// `resolve`, `connect`, `tls`, `bind` or `unbind`.
    pub what: &'static str,
    /// Whether it succeeded; the first that does not is the last.
    pub ok: bool,
    /// How long it took.
    pub took: Duration,
    /// What came of it: addresses, what the peer calls itself, or what is wrong.
    pub detail: Option<String>,
}

/// How long a peer has for its answer to our leave.
const LEAVE: Duration = Duration::from_secs(2);

/// The steps so far.
#[derive(Default)]
struct Trial {
    steps: Vec<ProbeStep>,
}

impl Trial {
    /// Does one step, within a time; nothing when it fails.
    async fn step<T>(
        &mut self,
        what: &'static str,
        within: Duration,
        step: impl Future<Output = Result<(T, Option<String>), String>>,
    ) -> Option<T> {
        let begun = clock::now();
        let ended = tokio::time::timeout(within, step).await;
        let ended = ended.unwrap_or_else(|_| Err(format!("no answer within {} s", within.as_secs_f32())));
        let took = clock::now().saturating_duration_since(begun);
        let (ok, detail, result) = match ended {
            Ok((result, detail)) => (true, detail, Some(result)),
            Err(why) => (false, Some(why), None),
        };
        self.steps.push(ProbeStep { what, ok, took, detail });
        result
    }

    /// From a host and a port to a connection.
    async fn connect(&mut self, address: &str, within: Duration) -> Option<TcpStream> {
        let found = async {
            let found = tokio::net::lookup_host(address).await.map_err(|error| error.to_string())?;
            let found: Vec<_> = found.collect();
            let words: Vec<_> = found.iter().map(|found| found.ip().to_string()).collect();
            if found.is_empty() {
                Err("the name has no address".to_owned())
            } else {
                Ok((found, Some(words.join(", "))))
            }
        };
        let found = self.step("resolve", within, found).await?;
        let connected = async {
            let stream = TcpStream::connect(&found[..]).await.map_err(|error| error.to_string())?;
            let remote = stream.peer_addr().ok().map(|remote| remote.to_string());
            let _ = stream.set_nodelay(true);
            Ok((stream, remote))
        };
        self.step("connect", within, connected).await
    }
}

impl Links {
    /// Tries a peer or a gateway of that name; `None` when there is none. Must be called inside a tokio runtime.
    pub async fn probe(&self, name: &str) -> Option<Vec<ProbeStep>> {
        let peer = self.peer_options(name);
        if let Some(options) = peer {
            return Some(self.probe_smpp(&options).await);
        }
        let gateway = self.gateway_options(name)?;
        Some(probe_sgip(&gateway).await)
    }

    async fn probe_smpp(&self, options: &PeerOptions) -> Vec<ProbeStep> {
        let mut trial = Trial::default();
        let _ = self.try_smpp(options, &mut trial).await;
        trial.steps
    }

    async fn try_smpp(&self, options: &PeerOptions, trial: &mut Trial) -> Option<()> {
        let within = options.bind_timeout;
        let stream = trial.connect(&options.address, within).await?;
        let mut socket = match &options.tls {
            None => Socket::Plain(stream),
            Some(files) => {
                let host = options.address.rsplit_once(':').map_or("", |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let shaken = async {
                    let (connector, name) = tls::connector(files, host).map_err(|error| error.to_string())?;
                    let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
                    let version = stream.get_ref().1.protocol_version().map(|version| format!("{version:?}"));
                    Ok((Socket::Tls(Box::new(stream.into())), version))
                };
                trial.step("tls", within, shaken).await?
            }
        };
        let mut session = smpp::Session::client(clock::now(), client_options(self.system_id(), options));
        trial.step("bind", within, bind_smpp(&mut socket, &mut session, options)).await?;
        session.unbind(clock::now());
        trial.step("unbind", LEAVE, leave_smpp(&mut socket, &mut session)).await
    }
}

async fn write(socket: &mut Socket, output: &mut BytesMut) -> Result<(), String> {
    let written = async {
        socket.write_all_buf(output).await?;
        socket.flush().await
    };
    written.await.map_err(|error: std::io::Error| error.to_string())
}

async fn read(socket: &mut Socket, input: &mut BytesMut) -> Result<(), String> {
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
                        version.map_or("not told".to_owned(), |version| format!("0x{:02X}", version.0));
                    let mode = options.bind.name();
                    return Ok(((), Some(format!("as {mode}; it calls itself {name:?}, version {version}"))));
                }
                smpp::Event::BindRefused(status) => return Err(refused(status)),
                smpp::Event::Closing(reason) => return Err(reason.name().to_owned()),
                event => put_off(session, event),
            }
        }
    }
}

/// A refusal, and what mostly is behind it.
fn refused(status: Status) -> String {
    match status {
        Status::RINVPASWD | Status::RINVSYSID => {
            format!("bind refused: {status} Check system-id, password and system-type")
        }
        Status::RALYBND | Status::RBINDFAIL => {
            format!("bind refused: {status} Where links are up, the peer may allow no further one")
        }
        status => format!("bind refused: {status}"),
    }
}

/// What the peer brings is to come again, on a link that takes it.
fn put_off(session: &mut smpp::Session, event: smpp::Event) {
    if let smpp::Event::Request { sequence, request } = event {
        session.respond(request.command(), sequence, Status::RX_T_APPN, &Response::Empty);
    }
}

async fn leave_smpp(
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
                    // Our answer to an unbind of its own, should they have crossed.
                    let _ = write(socket, session.output()).await;
                    return Ok(((), None));
                }
                event => put_off(session, event),
            }
        }
    }
}

async fn probe_sgip(options: &Arc<GatewayOptions>) -> Vec<ProbeStep> {
    let mut trial = Trial::default();
    let _ = try_sgip(options, &mut trial).await;
    trial.steps
}

async fn try_sgip(options: &GatewayOptions, trial: &mut Trial) -> Option<()> {
    let within = options.bind_timeout;
    let mut socket = Socket::Plain(trial.connect(&options.address, within).await?);
    let bind = sgip::Bind {
        login_type: LoginType::SP,
        name: options.login_name.clone(),
        password: options.login_password.0.clone(),
        reserve: [0; 8],
    };
    let settings = sgip::Options {
        bind_timeout: within,
        limit: options.habits.limit,
        loose_match: options.habits.loose_match,
        ..sgip::Options::default()
    };
    // Far from where the counters of the connections' own logins begin.
    let sequence = |counter| Sequence::new(options.node, clock::wall(), u32::MAX - counter);
    let mut session = sgip::Session::connector(clock::now(), settings, &bind, sequence(1));
    trial.step("bind", within, talk_sgip(&mut socket, &mut session, true)).await?;
    session.unbind(clock::now(), sequence(0));
    trial.step("unbind", LEAVE, talk_sgip(&mut socket, &mut session, false)).await
}

/// Talks until the login is through, or the leave.
async fn talk_sgip(
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
