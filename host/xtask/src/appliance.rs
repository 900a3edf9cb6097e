//! A real appliance in a folder of its own, on ports of its own: made, started, watched, asked, killed.

use anyhow::{Context, Result, bail, ensure};
use parking_lot::{Condvar, Mutex};
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Password of every account that [`Blueprint::account`] makes.
pub const PASSWORD: &str = "secret";

/// Its argon2id hash, with the cheapest parameters: these accounts protect nothing.
pub const HASH: &str =
    "$argon2id$v=19$m=64,t=1,p=1$85hrG3wk8kcb2sJTCOk1yg$vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c";

/// In front of a file that counts at each start, and not only at the first.
const FILE_COUNTS: &str = "[configuration]\nmode = \"file\"\n\n";

/// Lines of the log that are kept for the tests to look at.
const LINES: usize = 20_000;

/// Longest time that starting or stopping may take; recovery of millions of messages is in it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Longest time that an answer by HTTP may take: the appliance compiles at the lowest priority, so on a busy machine an
/// upload is answered when the machine has time for it.
const ANSWER: Duration = Duration::from_secs(180);
/// Octets of the longest answer that is read.
const LARGEST: u64 = 1 << 30;

/// A port of loopback that nobody has at the moment. It is below the range from which the system takes the ports of
/// outgoing connections, so that none of them takes it before it is used, and no port is given twice.
pub fn free_port() -> Result<u16> {
    /// The first port that is given, and how many there are: Linux's range for outgoing connections begins at 32768.
    const FIRST: u16 = 12_000;
    const COUNT: u32 = 20_000;
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time mostly have neighbouring numbers.
    let start = std::process::id().wrapping_mul(131);
    for _ in 0..COUNT {
        let place = start.wrapping_add(GIVEN.fetch_add(1, Relaxed)) % COUNT;
        let port = FIRST + u16::try_from(place)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!("no port of loopback from {FIRST} on is free")
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The log of the appliance that was started last.
static LAST_LOG: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The log of the appliance that this process started last, if the file is still there.
pub fn last_log() -> Option<PathBuf> {
    LAST_LOG.lock().clone().filter(|path| path.exists())
}

/// A configuration in the making.
#[derive(Debug, Clone)]
pub struct Blueprint {
    binary: PathBuf,
    folder: PathBuf,
    smpp: u16,
    http: u16,
    parts: Vec<String>,
    listener: String,
    door: String,
    router: String,
    archive: String,
    business: u16,
    sgip: u16,
    environment: Vec<(String, OsString)>,
}

impl Blueprint {
    /// One listener, the HTTP server, nothing else yet. All files go into `folder`.
    pub fn new(binary: &Path, folder: &Path) -> Result<Self> {
        Ok(Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            smpp: free_port()?,
            http: free_port()?,
            parts: Vec::new(),
            listener: String::new(),
            door: String::new(),
            router: String::new(),
            archive: "none".to_owned(),
            business: free_port()?,
            sgip: free_port()?,
            environment: Vec::new(),
        })
    }

    /// Adds a variable to its environment.
    pub fn environment(&mut self, name: &str, value: impl Into<OsString>) -> &mut Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Ports that people remember, instead of free ones.
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
    pub fn door(&mut self, keys: &str) -> &mut Self {
        self.door.push_str(keys);
        self.door.push('\n');
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

    /// Where finished messages go: an URL. Without it they stay in the store.
    pub fn archive(&mut self, url: &str) -> &mut Self {
        self.archive = url.to_owned();
        self
    }

    /// Where business systems call.
    pub fn business(&self) -> SocketAddr {
        loopback(self.business)
    }

    /// Where gateways and SPs log in.
    pub fn sgip(&self) -> SocketAddr {
        loopback(self.sgip)
    }

    /// Adds a gateway, to which we are the SP `us` with the password `pw`; it logs in to us as `smg` with `its`. Opens
    /// the SGIP listener for it.
    pub fn gateway(&mut self, name: &str, address: SocketAddr, keys: &str) -> &mut Self {
        let listener =
            format!("[[listener]]\nname = \"sgip\"\nprotocol = \"sgip\"\nlisten = \"{}\"\n", self.sgip());
        if !self.parts.contains(&listener) {
            self.parts.push(listener);
        }
        self.parts.push(format!(
            "[[gateway]]\nname = \"{name}\"\naddress = \"{address}\"\nnode = 3010012345\nlogin-name = \"us\"\n\
             login-password = \"pw\"\nits-name = \"smg\"\nits-password = \"its\"\n{keys}\n"
        ));
        self
    }

    /// Opens the door of business systems and adds an account with calls; `keys` are those of `[account.business]`.
    pub fn business_account(&mut self, name: &str, keys: &str, business: &str) -> &mut Self {
        let door = format!("[business]\nlisten = \"{}\"\n", self.business());
        if !self.parts.contains(&door) {
            self.parts.push(door);
        }
        self.account(name, &format!("{keys}\n[account.business]\n{business}"))
    }

    /// Adds tables as they are.
    pub fn tables(&mut self, text: &str) -> &mut Self {
        self.parts.push(text.to_owned());
        self
    }

    /// Everything goes to this peer, without a plugin.
    pub fn native(&mut self, peer: &str) -> &mut Self {
        self.router = format!("[router]\nnative = \"{peer}\"\n");
        self
    }

    /// The default router with this policy document.
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

    /// How long a message is held whose router failed; after [`Blueprint::router`].
    pub fn hold(&mut self, time: &str) -> &mut Self {
        self.router.push_str(&format!("hold = {time:?}\n"));
        self
    }

    /// Where the listener will be.
    pub fn smpp(&self) -> SocketAddr {
        loopback(self.smpp)
    }

    /// Where the HTTP server will be.
    pub fn http(&self) -> SocketAddr {
        loopback(self.http)
    }

    /// The folder of the data.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Writes the configuration file and tells where it is.
    pub fn write(&self) -> Result<PathBuf> {
        let mut text = format!(
            "[appliance]\ndata = {:?}\nfree-space-watermark = \"64MiB\"\n\n",
            self.data().display().to_string()
        );
        text.push_str(&format!("[http]\nlisten = \"{}\"\n{}\n", self.http(), self.door));
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
        // An appliance that has started once goes by what it was last told over the API. Whoever starts it with another file
        // wants that file to count.
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let started = self.data().join("configuration.redb").exists();
        let counts = before.starts_with(FILE_COUNTS) || (started && before != text);
        if counts && !text.contains("[configuration]") {
            text.insert_str(0, FILE_COUNTS);
        }
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// What `switchyard check` says: whether it is content, and its words.
    pub fn check(&self) -> Result<(bool, String)> {
        let output = Command::new(&self.binary).arg("check").arg("--config").arg(self.write()?).output()?;
        let words = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&words).into_owned()))
    }

    /// Starts it and waits until it is ready.
    pub fn start(&self) -> Result<Appliance> {
        self.launch()?.ready()
    }

    /// Starts it, and waits for nothing.
    pub fn launch(&self) -> Result<Appliance> {
        let config = self.write()?;
        let begun = Instant::now();
        let mut process = Command::new(&self.binary)
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
        Ok(Appliance { process, log, blueprint: self.clone(), begun, started_in: Duration::ZERO })
    }
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<String>,
    ended: bool,
}

/// What the appliance writes to its standard error.
#[derive(Debug, Default)]
struct Log {
    lines: Mutex<Lines>,
    changed: Condvar,
}

impl Log {
    fn copy(&self, from: impl std::io::Read, mut file: std::fs::File) {
        for line in BufReader::new(from).lines() {
            let Ok(line) = line else { break };
            // The copy in the file is for people; the one in memory is what counts.
            let _ = writeln!(file, "{line}");
            let mut lines = self.lines.lock();
            if lines.kept.len() == LINES {
                lines.kept.pop_front();
            }
            lines.kept.push_back(line);
            self.changed.notify_all();
        }
        self.lines.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits for such a line; `false` when the time is over or the log has ended without one.
    fn wait(&self, time: Duration, is_it: impl Fn(&str) -> bool) -> bool {
        let deadline = Instant::now() + time;
        let mut lines = self.lines.lock();
        loop {
            if lines.kept.iter().any(|line| is_it(line)) {
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
        let from = lines.kept.len().saturating_sub(count);
        lines.kept.range(from..).fold(String::new(), |all, line| all + line + "\n")
    }
}

/// A running appliance; killed when dropped.
#[derive(Debug)]
pub struct Appliance {
    process: Child,
    log: Arc<Log>,
    blueprint: Blueprint,
    begun: Instant,
    started_in: Duration,
}

impl Appliance {
    /// Waits until it takes connections.
    pub fn ready(mut self) -> Result<Self> {
        if !self.log.wait(PATIENCE, |line| line.contains(": ready ")) {
            bail!("the appliance did not come up; its last words:\n{}", self.log.last(20));
        }
        self.started_in = self.begun.elapsed();
        Ok(self)
    }

    /// From the start of the process until it was ready.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The configuration that it runs with.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// Where its listener is.
    pub fn smpp(&self) -> SocketAddr {
        self.blueprint.smpp()
    }

    /// The last lines of its log.
    pub fn log(&self, count: usize) -> String {
        self.log.last(count)
    }

    /// Waits for a line of the log.
    pub fn wait_for_line(&self, time: Duration, is_it: impl Fn(&str) -> bool) -> Result<()> {
        ensure!(
            self.log.wait(time, is_it),
            "no such line in the log within {time:?}; the last are:\n{}",
            self.log(20)
        );
        Ok(())
    }

    /// The first number after `key=` in the newest line that contains `words`, such as `messages=17`.
    pub fn logged(&self, words: &str, key: &str) -> Option<u64> {
        let lines = self.log.lines.lock();
        let line = lines.kept.iter().rev().find(|line| line.contains(words))?;
        let after = line.split_once(&format!("{key}="))?.1;
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(mut self) -> Result<Blueprint> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(self.blueprint.clone())
    }

    /// SIGTERM, and waits until it has ended by itself.
    pub fn stop(mut self) -> Result<(ExitStatus, Blueprint)> {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        ensure!(self.log.wait_for_end(PATIENCE), "it did not stop within {PATIENCE:?}:\n{}", self.log(20));
        Ok((self.process.wait()?, self.blueprint.clone()))
    }

    /// SIGHUP.
    pub fn hang_up(&self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.process);
        Ok(rustix::process::kill_process(id, rustix::process::Signal::HUP)?)
    }

    /// Waits until it ends by itself, for as long as that takes.
    pub fn wait_for_end(&self) {
        while !self.log.wait_for_end(Duration::from_secs(3600)) {}
    }

    /// Whether the process has ended, and how.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.process.try_wait()?)
    }

    /// The bearer token of its HTTP server.
    pub fn token(&self) -> Result<String> {
        let path = self.blueprint.data().join("token");
        let token = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok(token.trim().to_owned())
    }

    /// Asks its HTTP server: status and body.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Result<(u16, String)> {
        self.send(method, path, body, &[])
    }

    /// A balance operation on a ledger account, under a key of the caller's: status and body.
    pub fn ledger(&self, account: &str, key: &str, operation: &Value) -> Result<(u16, Value)> {
        let headers = [("idempotency-key", key)];
        let body = operation.to_string();
        let (status, text) =
            self.send("POST", &format!("/v1/ledger/{account}"), body.as_bytes(), &headers)?;
        Ok((status, serde_json::from_str(&text).with_context(|| format!("{status}: {text:.200}"))?))
    }

    /// The same with headers of the caller's; these take the place of the token and of the body's kind.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> Result<(u16, String)> {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER)).build();
        let agent = ureq::Agent::new_with_config(config);
        let kind = if body.starts_with(b"{") { "application/json" } else { "application/octet-stream" };
        let token = format!("Bearer {}", self.token()?);
        let usual = [("authorization", token.as_str()), ("content-type", kind)];
        let usual = usual.iter().filter(|(name, _)| headers.iter().all(|(other, _)| other != name));
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.blueprint.http()));
        for (name, value) in usual.chain(headers) {
            request = request.header(*name, *value);
        }
        let mut answer =
            agent.run(request.body(body.to_vec())?).with_context(|| format!("{method} {path}"))?;
        let text = answer.body_mut().with_config().limit(LARGEST).read_to_string()?;
        Ok((answer.status().as_u16(), text))
    }

    /// Like [`Appliance::request`]; anything but a JSON body and a status below 300 is an error.
    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Value> {
        let (status, text) = self.request(method, path, body)?;
        ensure!(status < 300, "{method} {path}: {status} {text}");
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("{method} {path} gave no JSON: {text:.200}"))
    }

    /// GET.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, &[])
    }

    /// Asks until the answer is to the taste of `content`, at most for so long.
    pub fn wait_until(&self, time: Duration, path: &str, content: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + time;
        let pause = crate::load::Stop::default();
        loop {
            let answer = self.get(path)?;
            if content(&answer) {
                return Ok(answer);
            }
            ensure!(
                Instant::now() < deadline,
                "GET {path} did not give what was waited for within {time:?}: {answer:#}"
            );
            pause.pause(Duration::from_millis(20));
        }
    }

    /// All metrics of one name, added up over their labels.
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

impl Drop for Appliance {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
