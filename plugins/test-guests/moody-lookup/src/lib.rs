//! A test guest: a lookup whose document sets its behaviour on numbers that begin with 666 (the first line), and its answers
//! about other numbers.
//!
//! | line | action |
//! |---|---|
//! | `MOOD` | the misbehaviour |
//! | `NAME VALUE` | knows this attribute of every number |
//! | `unknown SECONDS` | knows no number; the answer is valid for this time |
//! | `try-later` | cannot answer now |
//! | `http URL`, `dns NAME` | the note is the answer from there |

use std::time::Duration;
use switchyard_sdk::lookup::{LookedUp, Number, found, try_later, unknown};
use switchyard_sdk::{Lookup, clock, dns, http};
use test_mood::{Document, Mood, bad_utf8, is_bad};

const HOUR: Duration = Duration::from_secs(3_600);

struct Guest {
    mood: Mood,
    lines: Vec<Vec<String>>,
}

fn fetched(url: &str) -> String {
    let method = "GET".to_owned();
    let request = http::Request { method, url: url.to_owned(), headers: Vec::new(), body: Vec::new() };
    format!("{:?}", http::fetch(&request).map(|response| response.status))
}

impl Lookup for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let lines = document.lines().skip(1).map(words).collect();
        Ok(Self { mood: Document::read(document)?.mood, lines })
    }

    fn look_up(&self, number: &Number) -> LookedUp {
        let mood = self.mood;
        if mood == Mood::Ok || !is_bad("", &number.digits) {
            let mut answer = found(HOUR);
            for line in &self.lines {
                let words: Vec<&str> = line.iter().map(String::as_str).collect();
                answer = match words[..] {
                    ["unknown", seconds] => unknown(Duration::from_secs(seconds.parse().unwrap_or(0))),
                    ["try-later"] => try_later(),
                    ["http", url] => answer.because(fetched(url)),
                    ["dns", name] => {
                        answer.because(format!("{:?}", dns::query_txt(name).map(|found| found.records)))
                    }
                    [name, value] => answer.with(name, value),
                    _ => answer,
                };
            }
            return answer;
        }
        mood.act(|| {
            clock::now();
        });
        let mut answer = match mood {
            Mood::ManyLegs => (0..100_000).fold(found(HOUR), |answer, _| answer.with("n", "v")),
            Mood::BadUtf8Peer => found(HOUR).with("n", &bad_utf8()),
            Mood::TryLater => try_later(),
            Mood::Absurd => found(Duration::MAX).with("n", &"x".repeat(300)),
            Mood::UnknownPeer => found(HOUR).with("Not a name", "v"),
            Mood::Giant => found(HOUR).with("n", &test_mood::giant()),
            _ => unknown(HOUR),
        };
        answer.note = mood.note();
        answer
    }
}

switchyard_sdk::export_lookup!(Guest);
