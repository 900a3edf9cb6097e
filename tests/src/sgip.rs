//! The appliance between SGIP nodes and a business system that use only Python's standard library.

use crate::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use crate::{Fixture, Peer, TIMEOUT};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};

/// The secret of the signatures of pushes.
const SECRET: &str = "a-secret";

/// The listening address of a peer, from its first event.
fn address(peer: &mut Peer) -> Result<SocketAddr> {
    let port = peer.expect("listening")?["port"].as_u64().context("no port")?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?)))
}

/// Starts `sgip.py` as a gateway, with these options; returns its address, too.
pub fn start_gateway(options: &Value) -> Result<(Peer, SocketAddr)> {
    let role = json!({ "role": "gateway", "node": 101_001, "name": "us", "password": "pw", "retry": 0.05 });
    let mut gateway = Peer::plain_python("sgip.py", &with(role, options))?;
    let address = address(&mut gateway)?;
    Ok((gateway, address))
}

/// Starts `sgip.py` as an SP; returns our configuration for its account, too.
pub fn start_sp() -> Result<(Peer, String)> {
    let role = json!({
        "role": "sp", "node": 3_075_512_345_u32, "name": "gate", "password": "gatepw", "retry": 0.05 });
    let mut sp = Peer::plain_python("sgip.py", &role)?;
    let keys = format!(
        "[account.sgip]\nnode = 205502\naddress = \"{}\"\nlogin-name = \"gate\"\nlogin-password = \"gatepw\"\n",
        address(&mut sp)?
    );
    Ok((sp, keys))
}

/// Lets a peer log in at this port; the login must succeed.
pub fn log_in(peer: &mut Peer, port: u16, name: &str, password: &str) -> Result<()> {
    peer.send_action(&json!({ "dial": { "port": port, "name": name, "password": password } }))?;
    let bound = peer.expect("dialled")?;
    ensure!(bound["result"] == 0, "the login of {name} was answered by {bound}");
    Ok(())
}

/// Adds keys to a JSON object.
fn with(mut options: Value, more: &Value) -> Value {
    if let (Some(options), Some(more)) = (options.as_object_mut(), more.as_object()) {
        options.extend(more.clone());
    }
    options
}

/// A gateway and a business system with the appliance between them.
///
/// The business system is the account `shop`; all messages go to the gateway `unicom`.
#[derive(Debug)]
pub struct SpFixture {
    /// The folder and the programs.
    pub fixture: Fixture,
    /// `sgip.py` as a gateway.
    pub gateway: Peer,
    /// `business.py`.
    pub business: Peer,
    /// The configuration.
    pub config: TestDaemonConfig,
}

impl SpFixture {
    /// Starts the two peers, but not the appliance. `options` are the gateway's own, `keys` our configuration for it, and `push` more
    /// keys of the account's push.
    pub fn new(options: &Value, keys: &str, push: &str) -> Result<Self> {
        let fixture = Fixture::new()?;
        let (gateway, unicom) = start_gateway(options)?;
        let mut business = Peer::plain_python("business.py", &json!({ "secret": SECRET }))?;
        let shop = address(&mut business)?;
        let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
        let push = format!("push = {{ url = \"http://{shop}/in\", secret = {SECRET:?}, {push} }}");
        config
            .business_account("shop", "source = { default = \"10655\" }", &push)
            .gateway("unicom", unicom, &format!("default-account = \"shop\"\n{keys}"))
            .native("unicom");
        Ok(Self { fixture, gateway, business, config })
    }

    /// Starts the appliance, and gives the gateway the address for its login.
    pub fn start(&mut self) -> Result<TestDaemon> {
        let appliance = self.config.start()?;
        let port = self.config.sgip().port();
        self.gateway.send_action(&json!({ "dial": { "port": port, "name": "smg", "password": "its" } }))?;
        Ok(appliance)
    }

    /// A call with Python's `xmlrpc.client`.
    pub fn call(&mut self, method: &str, arguments: &Value) -> Result<Value> {
        let url = format!("http://shop:{PASSWORD}@{}/xmlrpc", self.config.business());
        self.business.send_action(&json!({ "rpc": { "url": url, "method": method, "args": arguments } }))?;
        self.business.expect("rpc")
    }

    /// Submits one message by XML-RPC; returns its id.
    pub fn submit(&mut self, message: &Value) -> Result<String> {
        let answer = self.call("sms.submit", &json!([message]))?;
        Ok(answer["result"][0]["id"].as_str().with_context(|| format!("{answer}"))?.to_owned())
    }

    /// The next push that satisfies the condition; its signature must be valid.
    pub fn pushed(&mut self, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let push = self.business.expect_matching("push", |push| fits(&push["body"]))?;
        ensure!(push["signature"] == "good", "{push}");
        Ok(push["body"].clone())
    }

    /// The next Submit that the gateway accepts.
    pub fn submitted(&mut self) -> Result<Value> {
        self.gateway.expect_matching("taken", |event| event["command"] == "submit")
    }

    /// Makes the gateway send a Report for one user of a Submit.
    pub fn report(&mut self, submit: &Value, state: u8, error: u8) -> Result<()> {
        self.gateway.send_action(&json!({ "report": {
            "sequence": submit["sequence"], "user": submit["user_numbers"][0], "state": state, "error": error } }))
    }
}

/// A gateway and an SP with the appliance between them: it is the gateway's SP and the SP's gateway.
#[derive(Debug)]
pub struct GatewayFixture {
    /// The folder and the programs.
    pub fixture: Fixture,
    /// `sgip.py` as the upstream gateway.
    pub gateway: Peer,
    /// `sgip.py` as our SP, the account `corp`.
    pub sp: Peer,
    /// The configuration.
    pub config: TestDaemonConfig,
}

impl GatewayFixture {
    /// Starts the two peers, but not the appliance. `options` are the gateway's, `keys` our configuration for the SP.
    pub fn new(options: &Value, keys: &str) -> Result<Self> {
        let fixture = Fixture::new()?;
        let (gateway, unicom) = start_gateway(options)?;
        let (sp, corp) = start_sp()?;
        let mut config = TestDaemonConfig::new(fixture.binary(), &fixture.folder().join("appliance"))?;
        config
            .gateway("unicom", unicom, "default-account = \"corp\"")
            .account("corp", &format!("{corp}{keys}\n"))
            .native("unicom");
        Ok(Self { fixture, gateway, sp, config })
    }

    /// Starts the appliance, and gives both peers the address for their login.
    pub fn start(&mut self) -> Result<TestDaemon> {
        let appliance = self.config.start()?;
        let port = self.config.sgip().port();
        self.gateway.send_action(&json!({ "dial": { "port": port, "name": "smg", "password": "its" } }))?;
        log_in(&mut self.sp, port, "corp", PASSWORD)?;
        Ok(appliance)
    }
}

/// A bare connection to the appliance's SGIP listener.
pub fn raw(config: &TestDaemonConfig) -> Result<Peer> {
    let mut raw = Peer::plain_python("sgip.py", &json!({ "role": "raw", "port": config.sgip().port() }))?;
    raw.expect("connected").with_context(|| format!("no connection within {TIMEOUT:?}"))?;
    Ok(raw)
}
