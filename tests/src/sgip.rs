//! The appliance between ends of SGIP and a business system that are made of Python's standard library alone.

use crate::appliance::{Appliance, Blueprint, PASSWORD};
use crate::{PATIENCE, Peer, Stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};

/// The key of the signatures of pushes.
const SECRET: &str = "a-secret";

/// Where a peer listens, from its first event.
fn address(peer: &mut Peer) -> Result<SocketAddr> {
    let port = peer.expect("listening")?["port"].as_u64().context("no port")?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, u16::try_from(port)?)))
}

/// Puts more keys into a JSON object.
fn with(mut options: Value, more: &Value) -> Value {
    if let (Some(options), Some(more)) = (options.as_object_mut(), more.as_object()) {
        options.extend(more.clone());
    }
    options
}

/// A gateway and a business system, with the appliance between them.
///
/// The business system is the account `shop`; everything goes to the gateway `unicom`.
#[derive(Debug)]
pub struct Platform {
    /// The folder and the programs.
    pub stage: Stage,
    /// `sgip.py` as a gateway.
    pub gateway: Peer,
    /// `business.py`.
    pub business: Peer,
    /// The configuration.
    pub blueprint: Blueprint,
}

impl Platform {
    /// Nothing runs yet but the two peers. `options` are the gateway's own, `keys` ours for it, and `push` more keys of the
    /// account's push.
    pub fn new(options: &Value, keys: &str, push: &str) -> Result<Self> {
        let stage = Stage::new()?;
        let role =
            json!({ "role": "gateway", "node": 101_001, "name": "us", "password": "pw", "retry": 0.05 });
        let mut gateway = Peer::plain_python("sgip.py", &with(role, options))?;
        let unicom = address(&mut gateway)?;
        let mut business = Peer::plain_python("business.py", &json!({ "secret": SECRET }))?;
        let shop = address(&mut business)?;
        let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
        let push = format!("push = {{ url = \"http://{shop}/in\", secret = {SECRET:?}, {push} }}");
        blueprint
            .business_account("shop", "source = { default = \"10655\" }", &push)
            .gateway("unicom", unicom, &format!("default-account = \"shop\"\n{keys}"))
            .native("unicom");
        Ok(Self { stage, gateway, business, blueprint })
    }

    /// Starts the appliance, and tells the gateway where to log in.
    pub fn start(&mut self) -> Result<Appliance> {
        let appliance = self.blueprint.start()?;
        let port = self.blueprint.sgip().port();
        self.gateway.tell(&json!({ "dial": { "port": port, "name": "smg", "password": "its" } }))?;
        Ok(appliance)
    }

    /// A call with Python's `xmlrpc.client`.
    pub fn call(&mut self, method: &str, arguments: &Value) -> Result<Value> {
        let url = format!("http://shop:{PASSWORD}@{}/xmlrpc", self.blueprint.business());
        self.business.tell(&json!({ "rpc": { "url": url, "method": method, "args": arguments } }))?;
        self.business.expect("rpc")
    }

    /// Submits one message by XML-RPC, and gives its id.
    pub fn submit(&mut self, message: &Value) -> Result<String> {
        let answer = self.call("sms.submit", &json!([message]))?;
        Ok(answer["result"][0]["id"].as_str().with_context(|| format!("{answer}"))?.to_owned())
    }

    /// The next push for which the condition holds; its signature must be good.
    pub fn pushed(&mut self, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let push = self.business.expect_such("push", |push| fits(&push["body"]))?;
        ensure!(push["signature"] == "good", "{push}");
        Ok(push["body"].clone())
    }

    /// The next Submit that the gateway takes.
    pub fn submitted(&mut self) -> Result<Value> {
        self.gateway.expect_such("taken", |event| event["command"] == "submit")
    }

    /// Has the gateway report on a Submit of one user.
    pub fn report(&mut self, submit: &Value, state: u8, error: u8) -> Result<()> {
        self.gateway.tell(&json!({ "report": {
            "sequence": submit["sequence"], "user": submit["user_numbers"][0], "state": state, "error": error } }))
    }
}

/// A gateway and an SP, with the appliance between them: the gateway's SP, and the SP's gateway.
#[derive(Debug)]
pub struct Relay {
    /// The folder and the programs.
    pub stage: Stage,
    /// `sgip.py` as the gateway behind us.
    pub gateway: Peer,
    /// `sgip.py` as our SP, the account `corp`.
    pub sp: Peer,
    /// The configuration.
    pub blueprint: Blueprint,
}

impl Relay {
    /// Nothing runs yet but the two peers. `options` are the gateway's, `keys` ours for the SP.
    pub fn new(options: &Value, keys: &str) -> Result<Self> {
        let stage = Stage::new()?;
        let role =
            json!({ "role": "gateway", "node": 101_001, "name": "us", "password": "pw", "retry": 0.05 });
        let mut gateway = Peer::plain_python("sgip.py", &with(role, options))?;
        let unicom = address(&mut gateway)?;
        let role = json!({
            "role": "sp", "node": 3_075_512_345_u32, "name": "gate", "password": "gatepw", "retry": 0.05 });
        let mut sp = Peer::plain_python("sgip.py", &role)?;
        let corp = address(&mut sp)?;
        let mut blueprint = Blueprint::new(stage.binary(), &stage.folder().join("appliance"))?;
        blueprint
            .gateway("unicom", unicom, "default-account = \"corp\"")
            .account(
                "corp",
                &format!(
                    "[account.sgip]\nnode = 205502\naddress = \"{corp}\"\nlogin-name = \"gate\"\n\
                     login-password = \"gatepw\"\n{keys}\n"
                ),
            )
            .native("unicom");
        Ok(Self { stage, gateway, sp, blueprint })
    }

    /// Starts the appliance, and tells both where to log in.
    pub fn start(&mut self) -> Result<Appliance> {
        let appliance = self.blueprint.start()?;
        let port = self.blueprint.sgip().port();
        self.gateway.tell(&json!({ "dial": { "port": port, "name": "smg", "password": "its" } }))?;
        self.sp.tell(&json!({ "dial": { "port": port, "name": "corp", "password": PASSWORD } }))?;
        let bound = self.sp.expect("dialled")?;
        ensure!(bound["result"] == 0, "the SP's login was answered by {bound}");
        Ok(appliance)
    }
}

/// A bare connection to the appliance's SGIP listener.
pub fn raw(blueprint: &Blueprint) -> Result<Peer> {
    let mut raw = Peer::plain_python("sgip.py", &json!({ "role": "raw", "port": blueprint.sgip().port() }))?;
    raw.expect("connected").with_context(|| format!("no connection within {PATIENCE:?}"))?;
    Ok(raw)
}
