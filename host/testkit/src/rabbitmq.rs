//! A private AMQP broker: RabbitMQ from Debian's package, with its management plugin.

use crate::program::Program;
use crate::test_daemon::free_port;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The server without Debian's wrapper, which changes the user.
const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// The node registers with the user's own port mapper, which would outlive it; this port mapper is private.
const PORT_MAPPER: &str = "epmd";

/// A start takes ten seconds on a processor of its own.
const START_TIMEOUT: Duration = Duration::from_secs(180);

/// TLS of the broker, PEM.
#[derive(Debug, Clone)]
pub struct RabbitMqTls {
    /// The certificate authority.
    pub ca: PathBuf,
    /// The certificate of the broker, for 127.0.0.1.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The broker; killed when dropped.
#[derive(Debug)]
pub struct RabbitMqServer {
    folder: PathBuf,
    plain: SocketAddr,
    secure: SocketAddr,
    management: SocketAddr,
    distribution: u16,
    mapper_port: u16,
    /// The requests that created exchanges, queues and bindings: method, path and body.
    created: Vec<(&'static str, String, Value)>,
    /// `None` while it is dead.
    program: Option<Program>,
    _mapper: Program,
}

/// A message in a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedMessage {
    /// Its routing key.
    pub routing_key: String,
    /// Its properties, for example `message_id` and `delivery_mode`.
    pub properties: Value,
    /// Its payload.
    pub payload: Value,
}

impl RabbitMqServer {
    /// Starts a broker without exchanges and queues of its own, whose clients are `guest` with the password `guest`.
    ///
    /// # Errors
    /// If it is not installed or does not start; the error contains its log.
    pub fn start(folder: &Path, tls: &RabbitMqTls) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let address = || Ok::<_, anyhow::Error>(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
        let (plain, secure, management) = (address()?, address()?, address()?);
        let mapper_port = free_port()?;
        let mut command = Command::new(PORT_MAPPER);
        command.args(["-port", &mapper_port.to_string(), "-address", "127.0.0.1"]);
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, mapper_port));
        let mapper = Program::start(PORT_MAPPER, &folder, &mut command, &[at])?;
        let mut config = String::new();
        writeln!(config, "listeners.tcp.1 = {plain}\nlisteners.ssl.1 = {secure}\nlog.console = true")?;
        writeln!(config, "management.tcp.ip = {}", management.ip())?;
        writeln!(config, "management.tcp.port = {}", management.port())?;
        writeln!(config, "ssl_options.cacertfile = {}", tls.ca.display())?;
        writeln!(config, "ssl_options.certfile = {}", tls.certificate.display())?;
        writeln!(config, "ssl_options.keyfile = {}", tls.key.display())?;
        std::fs::write(folder.join("rabbitmq.conf"), config)?;
        std::fs::write(folder.join("enabled_plugins"), "[rabbitmq_management].\n")?;
        let distribution = free_port()?;
        let mut server = Self {
            folder,
            plain,
            secure,
            management,
            distribution,
            mapper_port,
            created: Vec::new(),
            program: None,
            _mapper: mapper,
        };
        server.restart()?;
        Ok(server)
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("amqp://{}", self.plain)
    }

    /// The URL for clients with TLS.
    pub fn secure_url(&self) -> String {
        format!("amqps://{}", self.secure)
    }

    /// Kills the broker.
    pub fn kill(&mut self) {
        self.program = None;
    }

    /// The end of its log; empty while it is dead.
    pub fn log(&self) -> String {
        self.program.as_ref().map(Program::log).unwrap_or_default()
    }

    /// Restarts the broker with its durable queues. It creates the bindings again: a broker that is killed can lose a binding
    /// that it has confirmed just before.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<()> {
        self.kill();
        let mut command = Command::new(SERVER);
        let at = |name: &str| self.folder.join(name);
        command
            .env("HOME", &self.folder)
            .env("ERL_EPMD_PORT", self.mapper_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            // So that the process is the broker, and not a shell that waits for it.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("RABBITMQ_NODENAME", format!("switchyard-{}@localhost", self.distribution))
            .env("RABBITMQ_DIST_PORT", self.distribution.to_string())
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            .env("RABBITMQ_BASE", &self.folder)
            .env("RABBITMQ_MNESIA_BASE", at("mnesia"))
            .env("RABBITMQ_LOG_BASE", at("log"))
            .env("RABBITMQ_CONFIG_FILE", at("rabbitmq.conf"))
            .env("RABBITMQ_CONF_ENV_FILE", at("no-environment"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", at("enabled_plugins"))
            .env("RABBITMQ_PID_FILE", at("pid"));
        let listens = [self.plain, self.secure, self.management];
        let mut program = Program::launch("rabbitmq-server", &self.folder, &mut command)?;
        program.wait_within(&listens, START_TIMEOUT)?;
        self.program = Some(program);
        self.created.iter().try_for_each(|(method, path, body)| self.ask(method, path, body).map(drop))
    }

    fn create(&mut self, method: &'static str, path: String, body: Value) -> Result<()> {
        self.ask(method, &path, &body)?;
        self.created.push((method, path, body));
        Ok(())
    }

    /// Makes a durable topic exchange.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn make_exchange(&mut self, name: &str) -> Result<()> {
        let exchange = json!({ "type": "topic", "durable": true });
        self.create("PUT", format!("/api/exchanges/%2F/{name}"), exchange)
    }

    /// Creates a durable queue for the messages of an exchange with these routing keys.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn make_queue(&mut self, name: &str, exchange: &str, routing_key: &str) -> Result<()> {
        self.create("PUT", format!("/api/queues/%2F/{name}"), json!({ "durable": true }))?;
        let path = format!("/api/bindings/%2F/e/{exchange}/q/{name}");
        self.create("POST", path, json!({ "routing_key": routing_key }))
    }

    /// All messages of a queue, in order. They stay.
    ///
    /// # Errors
    /// If the broker does not answer.
    pub fn messages(&self, queue: &str) -> Result<Vec<QueuedMessage>> {
        let request = json!({ "count": 100_000, "ackmode": "ack_requeue_true", "encoding": "auto" });
        let found = self.ask("POST", &format!("/api/queues/%2F/{queue}/get"), &request)?;
        let found = found.as_array().context("no list of messages")?;
        let message = |message: &Value| {
            Ok(QueuedMessage {
                routing_key: message["routing_key"].as_str().unwrap_or_default().to_owned(),
                properties: message["properties"].clone(),
                payload: serde_json::from_str(message["payload"].as_str().context("no payload")?)?,
            })
        };
        found.iter().map(message).collect()
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.management))
            .header("authorization", format!("Basic {}", STANDARD.encode("guest:guest")))
            .header("content-type", "application/json");
        let mut answer = agent.run(request.body(body.to_string())?)?;
        let text = answer.body_mut().read_to_string()?;
        ensure!(answer.status().is_success(), "{method} {path}: {} {text}", answer.status());
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}
