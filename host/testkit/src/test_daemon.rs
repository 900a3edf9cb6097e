//! A real daemon in its own folder, on its own ports, for tests and measurements.

use crate::etcd::EtcdServers;
use crate::shared_artefacts;
use anyhow::{Context, Result, bail, ensure};
use api::ClusterView;
use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Password of every account that [`TestDaemonConfig::account`] adds.
pub const PASSWORD: &str = "secret";

/// The argon2id hash of the password with the cheapest parameters, since these accounts protect nothing.
pub const HASH: &str =
    "$argon2id$v=19$m=64,t=1,p=1$85hrG3wk8kcb2sJTCOk1yg$vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c";

/// Prepended to a configuration file that is read at each start, not only at the first.
const FILE_MODE: &str = "[configuration]\nmode = \"file\"\n\n";

/// Number of log lines that are kept in memory.
const MAX_LINES: usize = 20_000;

/// Maximum time for a start or a stop; includes the recovery of millions of messages.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Maximum time for an HTTP answer. The appliance compiles plugins at the lowest priority, so on a busy machine an upload may
/// take long.
const HTTP_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum length of an answer, in octets.
const MAX_ANSWER: u64 = 1 << 30;

/// Returns a free loopback port. It is below the range of ephemeral ports, so that no outgoing connection takes it before it is
/// used, and no port is returned twice.
pub fn free_port() -> Result<u16> {
    static BLOCK: Mutex<Option<PortBlock>> = Mutex::new(None);
    let mut block = BLOCK.lock();
    loop {
        if let Some(port) = block.as_mut().and_then(PortBlock::next) {
            return Ok(port);
        }
        let next = PortBlock::claim()?;
        *block = Some(next);
    }
}

/// Ports that are reserved for this process. No other process may take a port that a test leaves closed on purpose, or
/// whose daemon is restarted.
#[derive(Debug)]
struct PortBlock {
    /// Listens on the first port: the block is taken.
    _claim: TcpListener,
    ports: std::ops::Range<u16>,
}

impl PortBlock {
    /// The first port, the number of blocks and the ports in each: Linux's ephemeral range begins at 32768.
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 80;
    const PORTS: u16 = 250;

    fn claim() -> Result<Self> {
        let start = u16::try_from(std::process::id() % u32::from(Self::COUNT))?;
        for number in 0..Self::COUNT {
            let first = Self::FIRST + (start + number) % Self::COUNT * Self::PORTS;
            if let Ok(claim) = TcpListener::bind((Ipv4Addr::LOCALHOST, first)) {
                return Ok(Self { _claim: claim, ports: first + 1..first + Self::PORTS });
            }
        }
        bail!("no free block of loopback ports from {} on", Self::FIRST)
    }

    fn next(&mut self) -> Option<u16> {
        self.ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The log of the daemon that was started last.
static LAST_LOG: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The log of the daemon that this process started last, if the file still exists.
pub fn last_log() -> Option<PathBuf> {
    LAST_LOG.lock().clone().filter(|path| path.exists())
}

/// A configuration for a test daemon.
#[derive(Debug, Clone)]
pub struct TestDaemonConfig {
    binary: PathBuf,
    folder: PathBuf,
    host: IpAddr,
    namespace: Option<String>,
    smpp: u16,
    http: u16,
    parts: Vec<String>,
    listener: String,
    http_keys: String,
    router: String,
    archive: String,
    business: u16,
    sgip: u16,
    environment: Vec<(String, OsString)>,
}

impl TestDaemonConfig {
    /// A configuration with one SMPP listener and the HTTP server. All files go into `folder`.
    pub fn new(binary: &Path, folder: &Path) -> Result<Self> {
        Ok(Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            host: Ipv4Addr::LOCALHOST.into(),
            namespace: None,
            smpp: free_port()?,
            http: free_port()?,
            parts: Vec::new(),
            listener: String::new(),
            http_keys: String::new(),
            router: String::new(),
            archive: "none".to_owned(),
            business: free_port()?,
            sgip: free_port()?,
            environment: Vec::new(),
        })
    }

    /// Runs the daemon in this network namespace, at this address.
    pub fn in_namespace(&mut self, namespace: &str, host: IpAddr) -> &mut Self {
        (self.namespace, self.host) = (Some(namespace.to_owned()), host);
        self.http_keys("unencrypted = true")
    }

    /// Adds an environment variable.
    pub fn environment(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Uses these well-known ports instead of free ones.
    pub fn ports(&mut self, smpp: u16, http: u16) -> &mut Self {
        (self.smpp, self.http) = (smpp, http);
        self
    }

    /// Adds keys to the listener.
    pub fn listener(&mut self, keys: &str) -> &mut Self {
        self.listener.push_str(keys);
        self.listener.push('\n');
        self
    }

    /// Adds keys to `[http]`.
    pub fn http_keys(&mut self, keys: &str) -> &mut Self {
        self.http_keys.push_str(keys);
        self.http_keys.push('\n');
        self
    }

    /// Adds an account whose system_id is its name and whose password is [`PASSWORD`].
    pub fn account(&mut self, name: &str, keys: &str) -> &mut Self {
        self.parts.push(format!("[[account]]\nname = \"{name}\"\npassword-hash = \"{HASH}\"\n{keys}\n"));
        self
    }

    /// Adds a peer.
    pub fn peer(&mut self, name: &str, address: SocketAddr, keys: &str) -> &mut Self {
        self.parts.push(format!(
            "[[peer]]\nname = \"{name}\"\naddress = \"{address}\"\nsystem-id = \"switchyard\"\npassword = \"{PASSWORD}\"\n{keys}\n"
        ));
        self
    }

    /// URL of the archive. By default, finished messages stay in the store.
    pub fn archive(&mut self, url: &str) -> &mut Self {
        self.archive = url.to_owned();
        self
    }

    /// Address of the listener for business systems.
    pub fn business(&self) -> SocketAddr {
        loopback(self.business)
    }

    /// Address of the SGIP listener.
    pub fn sgip(&self) -> SocketAddr {
        loopback(self.sgip)
    }

    /// Uses another daemon from the next start on.
    pub fn binary(&mut self, binary: &Path) -> &mut Self {
        binary.clone_into(&mut self.binary);
        self
    }

    /// Adds a gateway: we log in as the SP `us` with the password `pw`; it logs in to us as `smg` with `its`. Also adds
    /// the SGIP listener.
    pub fn gateway(&mut self, name: &str, address: SocketAddr, keys: &str) -> &mut Self {
        let listener =
            format!("[[listener]]\nname = \"sgip\"\nprotocol = \"sgip\"\nlisten = \"{}\"\n", self.sgip());
        if !self.parts.contains(&listener) {
            self.parts.push(listener);
        }
        self.parts.push(format!(
            "[[gateway]]\nname = \"{name}\"\naddress = \"{address}\"\nnode = 3010012345\nlogin-name = \"us\"\n\
             login-password = \"pw\"\ninbound-login-name = \"smg\"\ninbound-login-password = \"its\"\n{keys}\n"
        ));
        self
    }

    /// Adds the listener for business systems, and an account that may use it; `keys` are those of
    /// `[account.business]`.
    pub fn business_account(&mut self, name: &str, keys: &str, business: &str) -> &mut Self {
        let section = format!("[business]\nlisten = \"{}\"\n", self.business());
        if !self.parts.contains(&section) {
            self.parts.push(section);
        }
        self.account(name, &format!("{keys}\n[account.business]\n{business}"))
    }

    /// Adds raw TOML.
    pub fn tables(&mut self, text: &str) -> &mut Self {
        self.parts.push(text.to_owned());
        self
    }

    /// Routes all messages to this peer, without a plugin.
    pub fn native(&mut self, peer: &str) -> &mut Self {
        self.router = format!("[router]\nstatic-peer = \"{peer}\"\n");
        self
    }

    /// Uses the default router with this policy document.
    pub fn router(&mut self, component: &Path, policy: &str) -> Result<&mut Self> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join("routes.toml");
        std::fs::write(&path, policy)?;
        self.router = format!(
            "[router]\nplugin = \"prefix-router\"\ncomponent = {:?}\npolicy = {:?}\n",
            component.display().to_string(),
            path.display().to_string()
        );
        Ok(self)
    }

    /// Sets how long a message is held after its router failed. Call it after [`TestDaemonConfig::router`].
    pub fn hold(&mut self, time: &str) -> &mut Self {
        self.router.push_str(&format!("hold = {time:?}\n"));
        self
    }

    /// Address of the SMPP listener.
    pub fn smpp(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.smpp)
    }

    /// Address of the HTTP server.
    pub fn http(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.http)
    }

    /// The data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Writes the configuration file and returns its path.
    pub fn write(&self) -> Result<PathBuf> {
        let mut text = format!(
            "[appliance]\ndata = {:?}\nfree-space-watermark = \"64MiB\"\n\n",
            self.data().display().to_string()
        );
        text.push_str(&format!("[http]\nlisten = \"{}\"\n{}\n", self.http(), self.http_keys));
        text.push_str(&format!("[archive]\nurl = {:?}\n\n", self.archive));
        text.push_str(&format!(
            "[[listener]]\nname = \"smpp\"\nlisten = \"{}\"\n{}\n",
            self.smpp(),
            self.listener
        ));
        for part in &self.parts {
            text.push_str(part);
            text.push('\n');
        }
        text.push_str(&self.router);
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join("switchyard.toml");
        // A daemon that has started once uses the configuration that was last set over the API. If the file has changed since, the test
        // means the file.
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let started = self.data().join("configuration.redb").exists();
        let counts = before.starts_with(FILE_MODE) || (started && before != text);
        if counts && !text.contains("[configuration]") {
            text.insert_str(0, FILE_MODE);
        }
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Runs `switchyard check`; returns whether it succeeded, and its output.
    pub fn check(&self) -> Result<(bool, String)> {
        let output = Command::new(&self.binary).arg("check").arg("--config").arg(self.write()?).output()?;
        let words = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
    }

    /// Starts the daemon and waits until it is ready.
    pub fn start(&self) -> Result<TestDaemon> {
        self.launch()?.ready()
    }

    /// Makes the daemon a node of the cluster in this etcd; `keys` are further keys of `[cluster]`.
    pub fn cluster(&mut self, node: &str, servers: &EtcdServers, keys: &str) -> &mut Self {
        self.cluster_at(node, &servers.endpoints(), keys)
    }

    /// Like [`TestDaemonConfig::cluster`]; the member of etcd that is asked first comes first.
    pub fn cluster_at(&mut self, node: &str, endpoints: &[String], keys: &str) -> &mut Self {
        let listen = format!("listen = \"{}\"", SocketAddr::new(self.host, 0));
        self.tables(&format!("[cluster]\nnode = {node:?}\nendpoints = {endpoints:?}\n{listen}\n{keys}\n"))
    }

    /// Starts a node of a cluster that has a leader, and waits until it follows and has all that a leader needs.
    pub fn follow(&self) -> Result<TestDaemon> {
        let node = self.follow_incomplete()?;
        let (deadline, pause) = (Instant::now() + TIMEOUT, crate::load::StopFlag::default());
        let is_complete = |view: &ClusterView| {
            view.nodes.iter().any(|one| one.name == view.node && one.alive && one.lacks.is_none())
        };
        // A node closes its listener for a moment when it applies a configuration.
        while !node.read::<ClusterView>("/v1/cluster").is_ok_and(|view| is_complete(&view)) {
            ensure!(Instant::now() < deadline, "the node is not complete:\n{}", node.log(20));
            pause.pause(Duration::from_millis(20));
        }
        Ok(node)
    }

    /// Starts a node of a cluster, and waits until it follows, whatever it lacks.
    pub fn follow_incomplete(&self) -> Result<TestDaemon> {
        let node = self.launch()?;
        node.wait_for_line(TIMEOUT, |line| line.contains(": following "))?;
        Ok(node)
    }

    /// Starts the daemon without waiting.
    pub fn launch(&self) -> Result<TestDaemon> {
        let config = self.write()?;
        shared_artefacts::link_into(&self.data())?;
        let begun = Instant::now();
        let mut process = match &self.namespace {
            Some(namespace) => crate::namespace::command(namespace, &self.binary),
            None => Command::new(&self.binary),
        };
        let mut process = process
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .env("NO_COLOR", "1")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", self.binary.display()))?;
        let log = Arc::new(Log::default());
        let errors = process.stderr.take().context("no standard error")?;
        let path = self.folder.join("switchyard.log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
        *LAST_LOG.lock() = Some(path);
        let reader = Arc::clone(&log);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || reader.copy(errors, file))?;
        Ok(TestDaemon { process, log, config: self.clone(), begun, started_in: Duration::ZERO })
    }
}

#[derive(Debug, Default)]
struct LogLines {
    recent: VecDeque<String>,
    ended: bool,
}

/// The daemon's standard error.
#[derive(Debug, Default)]
struct Log {
    lines: Mutex<LogLines>,
    changed: Condvar,
}

impl Log {
    fn copy(&self, from: impl std::io::Read, mut file: std::fs::File) {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { break };
            // The copy in the file is for people; tests use the one in memory.
            let _ = writeln!(file, "{line}");
            let mut lines = self.lines.lock();
            if lines.recent.len() == MAX_LINES {
                lines.recent.pop_front();
            }
            lines.recent.push_back(line);
            self.changed.notify_all();
        }
        self.lines.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for such a line; `false` at the timeout or the end of the log.
    fn wait(&self, time: Duration, is_it: impl Fn(&str) -> bool) -> bool {
        let deadline = Instant::now() + time;
        let mut lines = self.lines.lock();
        loop {
            if lines.recent.iter().any(|line| is_it(line)) {
                return true;
            }
            if lines.ended || self.changed.wait_until(&mut lines, deadline).timed_out() {
                return false;
            }
        }
    }

    fn wait_for_end(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut lines = self.lines.lock();
        while !lines.ended {
            if self.changed.wait_until(&mut lines, deadline).timed_out() {
                break;
            }
        }
        lines.ended
    }

    fn last(&self, count: usize) -> String {
        let lines = self.lines.lock();
        let from = lines.recent.len().saturating_sub(count);
        lines.recent.range(from..).fold(String::new(), |all, line| all + line + "\n")
    }
}

/// A running daemon; killed when dropped.
#[derive(Debug)]
pub struct TestDaemon {
    process: Child,
    log: Arc<Log>,
    config: TestDaemonConfig,
    begun: Instant,
    started_in: Duration,
}

impl TestDaemon {
    /// Waits until it accepts connections.
    pub fn ready(mut self) -> Result<Self> {
        if !self.log.wait(TIMEOUT, |line| line.contains(": ready ")) {
            bail!("the daemon did not start; end of its log:\n{}", self.log.last(20));
        }
        self.started_in = self.begun.elapsed();
        Ok(self)
    }

    /// Time from the start of the process until it was ready.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Its configuration.
    pub fn config(&self) -> &TestDaemonConfig {
        &self.config
    }

    /// Address of its SMPP listener.
    pub fn smpp(&self) -> SocketAddr {
        self.config.smpp()
    }

    /// The last lines of its log.
    pub fn log(&self, count: usize) -> String {
        self.log.last(count)
    }

    /// Waits for a log line.
    pub fn wait_for_line(&self, time: Duration, is_it: impl Fn(&str) -> bool) -> Result<()> {
        ensure!(
            self.log.wait(time, is_it),
            "no such log line within {time:?}; end of the log:\n{}",
            self.log(20)
        );
        Ok(())
    }

    /// The first number after `key=` in the newest log line that contains `words`: for example 17 for `messages=17`.
    pub fn logged(&self, words: &str, key: &str) -> Option<u64> {
        let lines = self.log.lines.lock();
        let line = lines.recent.iter().rev().find(|line| line.contains(words))?;
        let after = line.split_once(&format!("{key}="))?.1;
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(mut self) -> Result<TestDaemonConfig> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.config.clone())
    }

    /// Sends SIGTERM and waits until it has ended.
    pub fn stop(mut self) -> Result<(ExitStatus, TestDaemonConfig)> {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        ensure!(self.log.wait_for_end(TIMEOUT), "it did not stop within {TIMEOUT:?}:\n{}", self.log(20));
        Ok((self.process.wait()?, self.config.clone()))
    }

    /// Sends SIGHUP.
    pub fn hang_up(&self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.process);
        Ok(rustix::process::kill_process(id, rustix::process::Signal::HUP)?)
    }

    /// Waits until it ends by itself, without a timeout.
    pub fn wait_for_end(&self) {
        while !self.log.wait_for_end(Duration::from_secs(3600)) {}
    }

    /// The exit status, if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.process.try_wait()?)
    }

    /// The bearer token of its HTTP server.
    pub fn token(&self) -> Result<String> {
        let path = self.config.data().join("token");
        let token = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok(token.trim().to_owned())
    }

    /// Sends an HTTP request; returns status and body.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Result<(u16, String)> {
        self.send(method, path, body, &[])
    }

    /// Sends a balance operation for a ledger account with this idempotency key; returns status and body.
    pub fn ledger(&self, account: &str, key: &str, operation: &impl Serialize) -> Result<(u16, Value)> {
        let headers = [("idempotency-key", key)];
        let body = serde_json::to_vec(operation)?;
        let (status, text) = self.send("POST", &format!("/v1/ledger/{account}"), &body, &headers)?;
        Ok((status, serde_json::from_str(&text).with_context(|| format!("{status}: {text:.200}"))?))
    }

    /// Sends an HTTP request with these headers, which replace the default token and content type.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> Result<(u16, String)> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(HTTP_TIMEOUT))
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let kind = if body.starts_with(b"{") { "application/json" } else { "application/octet-stream" };
        let token = format!("Bearer {}", self.token()?);
        let usual = [("authorization", token.as_str()), ("content-type", kind)];
        let usual = usual.iter().filter(|(name, _)| headers.iter().all(|(other, _)| other != name));
        let mut request =
            ureq::http::Request::builder().method(method).uri(format!("http://{}{path}", self.config.http()));
        for (name, value) in usual.chain(headers) {
            request = request.header(*name, *value);
        }
        let mut answer =
            agent.run(request.body(body.to_vec())?).with_context(|| format!("{method} {path}"))?;
        let text = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string()?;
        Ok((answer.status().as_u16(), text))
    }

    /// Like [`TestDaemon::request`]; a status of 300 or above and a body that is not JSON are errors.
    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Value> {
        let (status, text) = self.request(method, path, body)?;
        ensure!(status < 300, "{method} {path}: {status} {text}");
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("{method} {path} gave no JSON: {text:.200}"))
    }

    /// Sends a GET request.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, &[])
    }

    /// Like [`TestDaemon::ask`], and reads the answer as its type.
    pub fn upload<T: DeserializeOwned>(&self, method: &str, path: &str, body: &[u8]) -> Result<T> {
        typed(path, &self.ask(method, path, body)?)
    }

    /// Sends a request with a JSON body and reads the answer as its type.
    pub fn call<T: DeserializeOwned>(&self, method: &str, path: &str, body: &impl Serialize) -> Result<T> {
        self.upload(method, path, &serde_json::to_vec(body)?)
    }

    /// Sends a GET request and reads the answer as its type.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.upload("GET", path, &[])
    }

    /// Polls until the answer satisfies `content`, at most for this time.
    pub fn wait_until(&self, time: Duration, path: &str, content: impl Fn(&Value) -> bool) -> Result<Value> {
        self.read_until(time, path, content)
    }

    /// Like [`TestDaemon::wait_until`], and reads the answer as its type.
    pub fn read_until<T: DeserializeOwned>(
        &self,
        time: Duration,
        path: &str,
        content: impl Fn(&T) -> bool,
    ) -> Result<T> {
        let deadline = Instant::now() + time;
        let pause = crate::load::StopFlag::default();
        loop {
            let answer = self.get(path)?;
            let read = typed(path, &answer)?;
            if content(&read) {
                return Ok(read);
            }
            ensure!(
                Instant::now() < deadline,
                "GET {path} did not give the expected answer within {time:?}: {answer:#}"
            );
            pause.pause(Duration::from_millis(20));
        }
    }

    /// Waits until the leader sees `nodes` live and complete nodes.
    pub fn wait_for_nodes(&self, nodes: usize) -> Result<ClusterView> {
        self.read_until(TIMEOUT, "/v1/cluster", |view: &ClusterView| {
            view.nodes.iter().filter(|node| node.alive && node.lacks.is_none()).count() == nodes
        })
    }

    /// Sum of a metric over its labels.
    pub fn metric(&self, name: &str) -> Result<f64> {
        Ok(self
            .metrics()?
            .iter()
            .filter(|(key, _)| key.split('{').next() == Some(name))
            .map(|(_, value)| value)
            .sum())
    }

    /// All metrics: name with labels, value.
    pub fn metrics(&self) -> Result<Vec<(String, f64)>> {
        let (status, text) = self.request("GET", "/metrics", &[])?;
        ensure!(status == 200, "GET /metrics: {status} {text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Ok(lines
            .filter_map(|line| {
                let (key, value) = line.rsplit_once(' ')?;
                Some((key.to_owned(), value.parse().ok()?))
            })
            .collect())
    }
}

/// Reads an answer as its type.
fn typed<T: DeserializeOwned>(path: &str, answer: &Value) -> Result<T> {
    T::deserialize(answer).with_context(|| format!("{path} gave an answer of another type: {answer:#}"))
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The test may have removed the folder. Artefacts that are not collected are compiled again.
        let _ = shared_artefacts::collect(&self.config.data());
    }
}
