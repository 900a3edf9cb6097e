//! A test guest: a resolver that makes the host calls in its document, one per line, and notes the results. It never finds
//! a subscriber. `@` is replaced by the number.
//!
//! | line | host call |
//! |---|---|
//! | `open TABLE` | in `configure`: opens a table; refuses the document if there is none |
//! | `get N KEY`, `prefix N KEY` | looks up a key in the Nth opened table, from 0 |
//! | `set KEY OCTETS`, `read KEY`, `delete KEY` | kv; notes the length of a value |
//! | `count NAME`, `sum NAME` | a counter with a window of a minute |
//! | `fetch METHOD URL` | HTTP; notes status and length of the response |
//! | `hlr KEY` | the home location register |
//! | `log LINES` | writes this number of lines |

use switchyard_sdk::{Resolved, Resolver, counters, hlr, http, kv, log, tables, try_later};

/// The window of its counters, in milliseconds.
const WINDOW: u64 = 60_000;

struct Guest {
    tables: Vec<u32>,
    lines: Vec<Vec<String>>,
}

fn number(word: &str) -> u32 {
    word.parse().unwrap_or_default()
}

fn text(found: Option<String>) -> String {
    found.unwrap_or_else(|| "nothing".to_owned())
}

fn fetch(method: &str, url: &str) -> String {
    let request = http::Request {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    match http::fetch(&request) {
        Ok(response) => format!("{} {}", response.status, response.body.len()),
        Err(failure) => format!("{failure:?}"),
    }
}

impl Guest {
    fn table(&self, word: &str) -> u32 {
        self.tables.get(number(word) as usize).copied().unwrap_or(u32::MAX)
    }

    fn step(&self, line: &[&str]) -> String {
        match *line {
            ["get", table, key] => text(tables::get(self.table(table), key)),
            ["prefix", table, key] => {
                let found = tables::get_prefix(self.table(table), key);
                text(found.map(|found| format!("{} of {}", found.value, found.length)))
            }
            ["set", key, octets] => match kv::set(key, &vec![b'x'; number(octets) as usize]) {
                Ok(()) => "set".to_owned(),
                Err(why) => why,
            },
            ["read", key] => text(kv::get(key).map(|value| value.len().to_string())),
            ["delete", key] => kv::delete(key).to_string(),
            ["count", name] => counters::add(name, "key", 1, WINDOW).to_string(),
            ["sum", name] => counters::sum(name, "key", WINDOW).to_string(),
            ["fetch", method, url] => fetch(method, url),
            ["hlr", key] => match hlr::look_up(key) {
                Ok(found) => format!("{} at {}", found.imsi, text(found.serving)),
                Err(hlr::Failure::Unknown) => "unknown".to_owned(),
                Err(hlr::Failure::Unreachable) => "unreachable".to_owned(),
            },
            ["log", lines] => {
                for line in 0..number(lines) {
                    log::write(log::Level::Info, &format!("line {line} {}", "x".repeat(5_000)));
                }
                "logged".to_owned()
            }
            _ => format!("{line:?}?"),
        }
    }
}

impl Resolver for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        let mut guest = Self { tables: Vec::new(), lines: Vec::new() };
        for line in document.lines() {
            let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
            match &words[..] {
                [open, table] if open == "open" => guest.tables.push(tables::open(table)?),
                _ => guest.lines.push(words),
            }
        }
        Ok(guest)
    }

    fn resolve(&self, msisdn: &str) -> Resolved {
        let notes: Vec<String> = self
            .lines
            .iter()
            .map(|line| {
                let words: Vec<&str> =
                    line.iter().map(|word| if word == "@" { msisdn } else { word }).collect();
                self.step(&words)
            })
            .collect();
        try_later(None).because(notes.join("; "))
    }
}

switchyard_sdk::export_resolver!(Guest);
