use super::{Answer, CallerOptions, Callers, Client, Holders};
use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A pool that is too simple to be wrong, but for those mistakes that it is told to make.
#[derive(Default)]
struct Simple {
    idle: VecDeque<String>,
    busy: BTreeSet<String>,
    /// Every so many calls the number that the call before got is given once more.
    double_every: Option<u64>,
    calls: u64,
    last: Option<String>,
}

impl Simple {
    fn answer(&mut self, event: &str, number: Option<&String>) -> String {
        match (event, number) {
            ("call", None) => {
                self.calls += 1;
                let again = self.double_every.is_some_and(|every| self.calls.is_multiple_of(every));
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

fn serve(simple: &Mutex<Simple>, socket: TcpStream) -> std::io::Result<()> {
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
        let answer = simple.lock().unwrap().answer(&words[4], words.get(5));
        output.write_all(answer.as_bytes())?;
    }
}

/// Where it listens. The threads end with their connections, or with the test.
fn start(simple: Simple) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let simple = Arc::new(Mutex::new(simple));
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let simple = Arc::clone(&simple);
            // A client that goes away is no mistake.
            std::thread::spawn(move || serve(&simple, socket.unwrap()).ok());
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
fn a_pool_that_is_right_is_found_right() {
    let options = options(start(Simple::default()));
    let holders = Arc::new(Holders::new(100));
    Callers::fill(&options, &holders).unwrap();
    let report = Callers::run(&options, &holders).unwrap();
    report.clean().unwrap();
    assert_eq!(holders.held(), 0);
    assert!(report.times.count() > 0 && report.rate > 0.0, "{report:?}");
    let mut client = Client::connect(options.address).unwrap();
    let answer = client.ask(&["EVALSHA", "", "1", "", "hangup", &holders.number(0)]).unwrap();
    assert_eq!(answer, Answer::Text("0".to_owned()), "everything was given back");
}

#[test]
fn a_number_that_is_given_twice_is_seen() {
    let address = start(Simple { double_every: Some(4), ..Simple::default() });
    // The fourth call of each batch is given what the third one got. Among several connections, whose batches mix, the one
    // that has the number may be about to hang up, which is no double that a caller can tell.
    let options = CallerOptions { connections: 1, threads: 1, ..options(address) };
    let holders = Arc::new(Holders::new(100));
    Callers::fill(&options, &holders).unwrap();
    let report = Callers::run(&options, &holders).unwrap();
    assert!(report.doubles > 0, "{report:?}");
    assert!(report.clean().is_err());
}

#[test]
fn calls_that_get_nothing_are_counted() {
    let options = options(start(Simple::default()));
    let holders = Arc::new(Holders::new(3));
    Callers::fill(&options, &holders).unwrap();
    let report = Callers::run(&options, &holders).unwrap();
    assert!(report.empty > 0, "{report:?}");
    assert_eq!((report.doubles, report.strangers, report.wrong), (0, 0, 0), "{report:?}");
}
