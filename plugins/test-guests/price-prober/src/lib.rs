//! A test guest: a biller that makes the host call in its document for each price and settlement. A price's note has the
//! result; a settlement succeeds if the call does.
//!
//! | document | host call |
//! |---|---|
//! | a URL | sends a request to another system; succeeds with status 200 |
//! | `set KEY OCTETS` | sets a value |
//! | `read-forever KEY` | in `price`: reads a value, again and again |

use switchyard_sdk::{Biller, FirstLeg, Message, Quote, Settlement, free, http, kv};

enum Guest {
    Fetch(String),
    Set { key: String, octets: usize },
    ReadForever { key: String },
}

fn fetch(url: &str) -> Result<u16, String> {
    let request = http::Request {
        method: "POST".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    http::fetch(&request).map(|response| response.status).map_err(|failure| format!("{failure:?}"))
}

fn set(key: &str, octets: usize) -> Result<(), String> {
    kv::set(key, &vec![b'x'; octets])
}

impl Biller for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        let words: Vec<&str> = document.split_ascii_whitespace().collect();
        Ok(match words[..] {
            ["set", key, octets] => {
                let octets = octets.parse().map_err(|_| format!("{octets:?} is not a number"))?;
                Self::Set { key: key.to_owned(), octets }
            }
            ["read-forever", key] => Self::ReadForever { key: key.to_owned() },
            _ => Self::Fetch(document.trim().to_owned()),
        })
    }

    fn price(&self, message: &Message, _leg: Option<&FirstLeg>) -> Quote {
        free().because(match self {
            Self::Fetch(url) => format!("{:?}", fetch(url)),
            Self::Set { key, octets } => format!("{:?}", set(key, *octets)),
            Self::ReadForever { .. } if message.origin == "self-check" => String::new(),
            Self::ReadForever { key } => loop {
                kv::get(key);
            },
        })
    }

    fn settle(&self, _settlements: &[Settlement]) -> Result<(), String> {
        match self {
            Self::Fetch(url) => match fetch(url)? {
                200 => Ok(()),
                status => Err(format!("status {status}")),
            },
            Self::Set { key, octets } => set(key, *octets),
            Self::ReadForever { .. } => Ok(()),
        }
    }
}

switchyard_sdk::export_biller!(Guest);
