//! The appliance between nodes of CMPP and SMGP that use only Python's standard library and were written from the
//! protocols' tables alone.

use crate::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use crate::{Fixture, Peer, TIMEOUT};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;
use testkit::sample::SampleBusiness;
use testkit::test_daemon::free_port;

/// The secret for the signatures of pushes.
const SECRET: &str = "a-secret";

/// A protocol and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// CMPP 2.0.
    Cmpp2,
    /// CMPP 3.0.
    Cmpp3,
    /// SMGP 3.0.
    Smgp,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 3] = [Self::Cmpp2, Self::Cmpp3, Self::Smgp];

    /// The protocol's name in the configuration.
    pub fn protocol(self) -> &'static str {
        match self {
            Self::Cmpp2 | Self::Cmpp3 => "cmpp",
            Self::Smgp => "smgp",
        }
    }

    /// The version in the configuration.
    pub fn version(self) -> &'static str {
        match self {
            Self::Cmpp2 => "2.0",
            Self::Cmpp3 | Self::Smgp => "3.0",
        }
    }

    /// The status of flow control.
    pub fn throttled(self) -> u32 {
        match self {
            Self::Cmpp2 | Self::Cmpp3 => 8,
            Self::Smgp => 1,
        }
    }

    /// `china.py` in a role, with the login `901234` and the password `1234`.
    pub fn peer(self, role: &str, options: &Value) -> Result<Peer> {
        let version = if self == Self::Cmpp2 { 0x20 } else { 0x30 };
        let mut all = json!({
            "role": role, "protocol": self.protocol(), "version": version, "name": "901234", "password": "1234" });
        if let (Some(all), Some(options)) = (all.as_object_mut(), options.as_object()) {
            all.extend(options.clone());
        }
        Peer::plain_python("china.py", &all)
    }

    /// A gateway in Python, and its address.
    pub fn gateway(self, options: &Value) -> Result<(Peer, SocketAddr)> {
        let mut gateway = self.peer("gateway", options)?;
        let port = gateway.expect("listening")?["port"].as_u64().context("no port")?;
        Ok((gateway, SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?))))
    }

    /// The `[[gateway]]` of a gateway in Python; `keys` are further keys.
    pub fn gateway_section(self, name: &str, address: SocketAddr, keys: &str) -> String {
        format!(
            "[[gateway]]\nname = \"{name}\"\nprotocol = \"{}\"\nversion = \"{}\"\naddress = \"{address}\"\n\
             login-name = \"901234\"\nlogin-password = \"1234\"\n{keys}\n",
            self.protocol(),
            self.version()
        )
    }
}

/// A gateway and a business system with the appliance between them: the appliance is the gateway's SP.
///
/// The business system is the account `shop`; all messages go to the gateway `mobile`.
pub struct ChinaSpFixture {
    /// The folder and the programs.
    pub fixture: Fixture,
    /// `china.py` as a gateway.
    pub gateway: Peer,
    /// The configuration.
    pub config: TestDaemonConfig,
    business: SampleBusiness,
    /// Received pushes that no test step has taken yet.
    pushes: Vec<Value>,
}

impl ChinaSpFixture {
    /// Starts the peers, but not the appliance. `options` are the gateway's own, `keys` our configuration for it.
    pub fn new(dialect: Dialect, options: &Value, keys: &str) -> Result<Self> {
        let fixture = Fixture::new()?;
        let (gateway, address) = dialect.gateway(options)?;
        let business = SampleBusiness::start(SECRET)?;
        let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
        let push = format!("push = {{ url = {:?}, secret = {SECRET:?} }}", business.url());
        let keys = format!("default-account = \"shop\"\nretry = [\"1s\"]\n{keys}");
        config
            .business_account("shop", "source = { default = \"10655\" }", &push)
            .tables(&dialect.gateway_section("mobile", address, &keys))
            .native("mobile");
        Ok(Self { fixture, gateway, config, business, pushes: Vec::new() })
    }

    /// Starts the appliance, and waits until it has logged in.
    pub fn start(&mut self) -> Result<TestDaemon> {
        let appliance = self.config.start()?;
        let login = self.gateway.expect("login")?;
        ensure!(login["status"] == 0, "{login}");
        Ok(appliance)
    }

    /// Submits one text; returns its id.
    pub fn submit(&self, to: &str, text: &str) -> Result<String> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let url = format!("http://shop:{PASSWORD}@{}/v1/messages", self.config.business());
        let mut response = agent.post(url).send(json!({ "to": to, "text": text }).to_string())?;
        let answer = response.body_mut().read_to_string()?;
        let answer: Value = serde_json::from_str(&answer).with_context(|| answer.clone())?;
        Ok(answer["messages"][0]["id"].as_str().with_context(|| format!("{answer}"))?.to_owned())
    }

    /// The next push that satisfies the condition; others are kept.
    pub fn pushed(&mut self, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        if let Some(place) = self.pushes.iter().position(&fits) {
            return Ok(self.pushes.remove(place));
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.business.pushes().recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(push) if fits(&push) => return Ok(push),
                Ok(push) => self.pushes.push(push),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    anyhow::bail!("no such push; received: {:#?}", self.pushes)
                }
            }
        }
    }

    /// The final DLR of a message.
    pub fn dlr(&mut self, id: &str) -> Result<Value> {
        self.pushed(|push| push["type"] == "dlr" && push["final"] == true && push["message_id"] == id)
    }
}

/// An SP with the appliance as its gateway. The test adds the peer of the messages.
#[derive(Debug)]
pub struct ChinaGatewayFixture {
    /// The folder and the programs.
    pub fixture: Fixture,
    /// `china.py` as an SP: the account `sp`.
    pub sp: Peer,
    /// The configuration; it has no peer yet.
    pub config: TestDaemonConfig,
    /// The port for SPs.
    pub port: u16,
}

impl ChinaGatewayFixture {
    /// Makes the SP and the configuration. `keys` are those of the account, `section` those of `[account.cmpp]` or
    /// `[account.smgp]`.
    pub fn new(dialect: Dialect, keys: &str, section: &str) -> Result<Self> {
        let fixture = Fixture::new()?;
        let sp = dialect.peer("sp", &json!({ "source": "10655" }))?;
        let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
        let (port, protocol) = (free_port()?, dialect.protocol());
        config
            .tables(&format!(
                "[[listener]]\nname = \"china\"\nprotocol = \"{protocol}\"\nlisten = \"127.0.0.1:{port}\"\n"
            ))
            .account(
                "sp",
                &format!(
                    "{keys}\n[account.{protocol}]\ninbound-login-name = \"901234\"\n\
                     inbound-password = \"1234\"\n{section}\n"
                ),
            );
        Ok(Self { fixture, sp, config, port })
    }

    /// Lets the SP log in; `options` are further options of the login. Returns the answer.
    pub fn log_in(&mut self, options: &Value) -> Result<Value> {
        let mut connect = json!({ "port": self.port });
        if let (Some(connect), Some(options)) = (connect.as_object_mut(), options.as_object()) {
            connect.extend(options.clone());
        }
        self.sp.send_action(&json!({ "connect": connect }))?;
        self.sp.expect("logged_in")
    }
}
