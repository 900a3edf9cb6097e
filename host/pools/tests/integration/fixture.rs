//! A Redis server with a real engine without a disk, and test clients.

use engine::{Engine, EngineCommand, Event, Output, Settings};
use model::{Moment, Now, Timestamp};
use parking_lot::Mutex;
use pools::{AcceptedScripts, RedisOptions, RedisServer};
use ports::{EventSink, LinkRegistry};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Maximum time to wait for a condition.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The configured SHA-1 sum of the script.
pub(crate) const SUM: &str = "0123456789abcdef0123456789abcdef01234567";

/// The password of all test accounts.
pub(crate) const PASSWORD: &str = "secret";

/// Its argon2id hash with minimal parameters, for tests only.
pub(crate) const HASH: &str =
    "$argon2id$v=19$m=64,t=1,p=1$85hrG3wk8kcb2sJTCOk1yg$vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c";

/// An engine that answers at once, or after a release.
pub(crate) struct TestEngine {
    inner: Mutex<(Engine, Vec<EngineCommand>)>,
    registry: Arc<LinkRegistry>,
    /// Whether answers are held back.
    held: Mutex<bool>,
}

impl TestEngine {
    /// Holds back all answers.
    pub(crate) fn hold(&self) {
        *self.held.lock() = true;
    }

    /// Sends the held answers, and answers at once from now on.
    pub(crate) fn release(&self) {
        *self.held.lock() = false;
        let commands = std::mem::take(&mut self.inner.lock().1);
        self.registry.dispatch(commands);
    }

    /// Waits until this many answers are held back.
    pub(crate) fn wait_for_answers(&self, count: usize) {
        wait_until(|| self.inner.lock().1.len() >= count);
    }
}

impl EventSink for TestEngine {
    fn push(&self, events: Vec<Event>) {
        let now = Now { wall: Timestamp(1_700_000_000_000), mono: Moment(3_600_000) };
        let mut inside = self.inner.lock();
        let (engine, waiting) = &mut *inside;
        let mut out = Output::default();
        for event in events {
            engine.apply(now, event, &mut out);
        }
        engine.advance(now, &mut out);
        engine.seal(&mut out);
        if *self.held.lock() {
            waiting.extend(out.commands);
        } else {
            self.registry.dispatch(out.commands);
        }
    }
}

/// Polls until a condition holds.
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + TIMEOUT;
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "in vain");
        std::thread::yield_now();
    }
}

pub(crate) struct Fixture {
    pub(crate) runtime: Runtime,
    pub(crate) server: Arc<RedisServer>,
    pub(crate) engine: Arc<TestEngine>,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) address: SocketAddr,
}

impl Fixture {
    pub(crate) fn open(options: RedisOptions) -> Self {
        Self::limited(options, Arc::default())
    }

    pub(crate) fn limited(options: RedisOptions, limiter: Arc<ports::LoginLimiter>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let registry = Arc::new(LinkRegistry::with_limiter(limiter, Arc::default()));
        let inner = Mutex::new((Engine::new(Settings::default()), Vec::new()));
        let engine = Arc::new(TestEngine { inner, registry: registry.clone(), held: Mutex::new(false) });
        let options = RedisOptions {
            scripts: AcceptedScripts::Listed(resp::ScriptSha1::parse(SUM.as_bytes()).into_iter().collect()),
            ..options
        };
        let server = Arc::new(RedisServer::new(options, engine.clone(), registry.clone()).unwrap());
        let address = runtime.block_on(server.listen(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        Self { runtime, server, engine, registry, address }
    }

    pub(crate) fn client(&self) -> RedisTestClient {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        RedisTestClient { socket, unread: Vec::new() }
    }
}

pub(crate) struct RedisTestClient {
    pub(crate) socket: TcpStream,
    unread: Vec<u8>,
}

impl RedisTestClient {
    /// Sends all commands, given as lines of words, in one write.
    pub(crate) fn send(&mut self, lines: &[&str]) {
        let mut octets = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            octets.extend(format!("*{}\r\n", words.len()).bytes());
            for word in words {
                octets.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
            }
        }
        self.socket.write_all(&octets).unwrap();
    }

    /// Closes the sending side.
    pub(crate) fn close_sending(&self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.unread.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8(self.unread[..end].to_vec()).unwrap();
                self.unread.drain(..end + 2);
                return line;
            }
            self.more();
        }
    }

    fn more(&mut self) {
        let mut buffer = [0; 65_536];
        let count = self.socket.read(&mut buffer).unwrap();
        assert!(count > 0, "closed, after {:?}", String::from_utf8_lossy(&self.unread));
        self.unread.extend(&buffer[..count]);
    }

    /// Reads the next answer in a flat form: texts and numbers as they are, `nil`, errors with a minus sign, lists in
    /// brackets.
    pub(crate) fn answer(&mut self) -> String {
        let line = self.line();
        let (kind, rest) = line.split_at(1);
        let count = || rest.parse::<i64>().unwrap();
        let items = match kind {
            "+" | ":" => return rest.to_owned(),
            "-" => return line,
            "_" => return "nil".to_owned(),
            "$" | "=" if count() < 0 => return "nil".to_owned(),
            "$" | "=" => {
                let length = usize::try_from(count()).unwrap();
                while self.unread.len() < length + 2 {
                    self.more();
                }
                let text = String::from_utf8(self.unread[..length].to_vec()).unwrap();
                self.unread.drain(..length + 2);
                return text;
            }
            "*" => count(),
            "%" => count() * 2,
            other => panic!("{other:?} is no kind of answer"),
        };
        let items: Vec<String> = (0..items).map(|_| self.answer()).collect();
        format!("[{}]", items.join(" "))
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(&[line]);
        self.answer()
    }

    /// Reads until the server closes the connection.
    pub(crate) fn until_closed(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.unread);
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        rest
    }
}
