use super::{CallerOptions, Callers, Holders, RedisClient, RedisReply};
use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A pool that is simple enough to be correct, except for the errors that it is configured to make.
#[derive(Default)]
struct SimplePoolServer {
    idle: VecDeque<String>,
    busy: BTreeSet<String>,
    /// After this number of calls, it leases the number of the previous call once more.
    duplicate_interval: Option<u64>,
    calls: u64,
    last: Option<String>,
}

impl SimplePoolServer {
    fn answer(&mut self, event: &str, number: Option<&String>) -> String {
        match (event, number) {
            ("call", None) => {
                self.calls += 1;
                let again = self.duplicate_interval.is_some_and(|every| self.calls.is_multiple_of(every));
                let given = if again { self.last.clone() } else { self.idle.pop_front() };
                let Some(number) = given else { return "$-1\r\n".to_owned() };
                self.busy.insert(number.clone());
                self.last = Some(number.clone());
                format!("${}\r\n{number}\r\n", number.len())
            }
            ("hangup", Some(number)) => {
                let held = self.busy.remove(number);
                if held {
                    self.idle.push_back(number.clone());
                }
                format!("$1\r\n{}\r\n", u8::from(held))
            }
            ("reg", Some(number)) => {
                self.idle.push_back(number.clone());
                "$1\r\n1\r\n".to_owned()
            }
            ("add", Some(_)) => "$1\r\n1\r\n".to_owned(),
            _ => "-ERR what?\r\n".to_owned(),
        }
    }
}

fn serve(server: &Mutex<SimplePoolServer>, socket: TcpStream) -> std::io::Result<()> {
    let mut input = BufReader::new(socket.try_clone()?);
    let mut output = socket;
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let count: usize = line[1..].trim().parse().unwrap();
        let words: Vec<_> = (0..count)
            .map(|_| {
                line.clear();
                input.read_line(&mut line).unwrap();
                let mut word = vec![0; line[1..].trim().parse::<usize>().unwrap() + 2];
                input.read_exact(&mut word).unwrap();
                String::from_utf8(word[..word.len() - 2].to_vec()).unwrap()
            })
            .collect();
        let answer = server.lock().unwrap().answer(&words[4], words.get(5));
        output.write_all(answer.as_bytes())?;
    }
}

/// The listening address. The threads end with their connections, or with the test.
fn start(server: SimplePoolServer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = Arc::new(Mutex::new(server));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let server = Arc::clone(&server);
            // A client that disconnects is not an error.
            std::thread::spawn(move || serve(&server, socket.unwrap()).ok());
        }
    });
    address
}

fn options(address: SocketAddr) -> CallerOptions {
    CallerOptions {
        address,
        pool: "{pool}".to_owned(),
        script: "0".repeat(40),
        connections: 8,
        batch: 4,
        threads: 2,
        warm_up: Duration::ZERO,
        time: Duration::from_millis(100),
    }
}

#[test]
fn a_correct_pool_passes() {
    let options = options(start(SimplePoolServer::default()));
    let holders = Arc::new(Holders::new(100));
    Callers::fill(&options, &holders).unwrap();
    let report = Callers::run(&options, &holders).unwrap();
    report.clean().unwrap();
    assert_eq!(holders.held(), 0);
    assert!(report.times.count() > 0 && report.rate > 0.0, "{report:?}");
    let mut client = RedisClient::connect(options.address).unwrap();
    let answer = client.ask(&["EVALSHA", "", "1", "", "hangup", &holders.number(0)]).unwrap();
    assert_eq!(answer, RedisReply::Text("0".to_owned()), "everything was given back");
}

#[test]
fn a_number_leased_twice_is_detected() {
    let address = start(SimplePoolServer { duplicate_interval: Some(4), ..SimplePoolServer::default() });
    // The fourth call of each batch gets the number of the third one. Among several connections, whose batches interleave, the holder
    // may be about to hang up; a caller cannot detect such a double lease.
    let options = CallerOptions { connections: 1, threads: 1, ..options(address) };
    let holders = Arc::new(Holders::new(100));
    Callers::fill(&options, &holders).unwrap();
    let report = Callers::run(&options, &holders).unwrap();
    assert!(report.doubles > 0, "{report:?}");
    assert!(report.clean().is_err());
}

#[test]
fn calls_without_a_number_are_counted() {
    let options = options(start(SimplePoolServer::default()));
    let holders = Arc::new(Holders::new(3));
    Callers::fill(&options, &holders).unwrap();
    let report = Callers::run(&options, &holders).unwrap();
    assert!(report.empty > 0, "{report:?}");
    assert_eq!((report.doubles, report.unknown, report.wrong), (0, 0, 0), "{report:?}");
}
