//! A door in front of a real engine that has no disk, and clients of it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use doors::{Core, Hub};
use engine::{Command, Engine, Event, Output, Settings};
use model::{Moment, Now, Timestamp};
use parking_lot::Mutex;
use pools::{Door, DoorOptions};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Longest time that a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// The sum of the script, as it is configured.
pub const SUM: &str = "0123456789abcdef0123456789abcdef01234567";

/// The password of all accounts here.
pub const PASSWORD: &str = "secret";

/// Its argon2id hash, with the cheapest parameters: these accounts protect nothing.
pub const HASH: &str =
    "$argon2id$v=19$m=64,t=1,p=1$85hrG3wk8kcb2sJTCOk1yg$vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c";

/// An engine that answers at once, or when it is told to.
pub struct Desk {
    engine: Mutex<(Engine, Vec<Command>)>,
    hub: Arc<Hub>,
    /// Answers wait.
    held: Mutex<bool>,
}

impl Desk {
    /// From now on nothing is answered.
    pub fn hold(&self) {
        *self.held.lock() = true;
    }

    /// Answers all that waits, and all that comes.
    pub fn release(&self) {
        *self.held.lock() = false;
        let commands = std::mem::take(&mut self.engine.lock().1);
        self.hub.dispatch(commands);
    }

    /// Waits until so many answers wait.
    pub fn until_waiting(&self, count: usize) {
        until(|| self.engine.lock().1.len() >= count);
    }
}

impl Core for Desk {
    fn push(&self, events: Vec<Event>) {
        let now = Now { wall: Timestamp(1_700_000_000_000), mono: Moment(3_600_000) };
        let mut inside = self.engine.lock();
        let (engine, waiting) = &mut *inside;
        let mut out = Output::default();
        for event in events {
            engine.apply(now, event, &mut out);
        }
        engine.settle(now, &mut out);
        engine.seal(&mut out);
        if *self.held.lock() {
            waiting.extend(out.commands);
        } else {
            self.hub.dispatch(out.commands);
        }
    }
}

/// Looks until the condition holds.
pub fn until(mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "in vain");
        std::thread::yield_now();
    }
}

pub struct House {
    pub runtime: Runtime,
    pub door: Arc<Door>,
    pub desk: Arc<Desk>,
    pub hub: Arc<Hub>,
    pub address: SocketAddr,
}

impl House {
    pub fn open(options: DoorOptions) -> Self {
        Self::limited(options, Arc::default())
    }

    pub fn limited(options: DoorOptions, limiter: Arc<doors::LoginLimiter>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let hub = Arc::new(Hub::new());
        let engine = Mutex::new((Engine::new(Settings::default()), Vec::new()));
        let desk = Arc::new(Desk { engine, hub: hub.clone(), held: Mutex::new(false) });
        let options =
            DoorOptions { scripts: resp::Sum::parse(SUM.as_bytes()).into_iter().collect(), ..options };
        let door = Arc::new(Door::new(options, limiter, desk.clone(), hub.clone()).unwrap());
        let address = runtime.block_on(door.listen(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        Self { runtime, door, desk, hub, address }
    }

    pub fn client(&self) -> Client {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { socket, unread: Vec::new() }
    }
}

pub struct Client {
    pub socket: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    /// Sends lines of words, all in one piece.
    pub fn send(&mut self, lines: &[&str]) {
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

    /// Nothing more will be sent.
    pub fn close_sending(&self) {
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

    /// The next answer, flat: texts and numbers as they are, `nil`, errors with their minus sign, lists in brackets.
    pub fn answer(&mut self) -> String {
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

    pub fn ask(&mut self, line: &str) -> String {
        self.send(&[line]);
        self.answer()
    }

    /// Reads to the end, which must come.
    pub fn until_closed(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.unread);
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        rest
    }
}
