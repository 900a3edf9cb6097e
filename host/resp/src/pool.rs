use model::{ParsePoolNameError, PoolCall, PoolName, PoolNumber, PoolOperation, PoolTicket, Strategy};
use std::{str::FromStr, time::Duration};

use crate::{
    reply::{Manner, Reply},
    request::{Read, Request},
};

/// What a command asks, and how it wants to be told.
pub(crate) type Asked = Result<(Request, Manner), Reply>;

/// Names of pools, read once: a client's requests mostly are for the same.
#[derive(Debug, Default)]
pub(crate) struct Names(Option<PoolName>);

impl Names {
    /// The braces are Redis Cluster's way to keep keys together and not part of the name.
    fn read(&mut self, key: &[u8]) -> Result<PoolName, Reply> {
        let name = key.strip_prefix(b"{").and_then(|key| key.strip_suffix(b"}")).unwrap_or(key);
        if let Some(last) = &self.0
            && last.as_str().as_bytes() == name
        {
            return Ok(last.clone());
        }
        let read = match std::str::from_utf8(name) {
            Ok(name) => name.parse(),
            Err(_) => Err(ParsePoolNameError(String::from_utf8_lossy(name).chars().take(100).collect())),
        };
        let read: PoolName = read.map_err(|error| Reply::error(format!("ERR {error}")))?;
        self.0 = Some(read.clone());
        Ok(read)
    }
}

/// The older script's arguments: one key, an event, perhaps a number.
pub(crate) fn script(names: &mut Names, key: &[u8], arguments: &[&[u8]], plain: bool) -> Asked {
    let pool = names.read(key)?;
    let (event, number) = match arguments {
        [event] => (*event, None),
        [event, number] => (*event, Some(self::number(number)?)),
        _ => return Err(Reply::error("ERR the script takes an event and at most one number")),
    };
    let is = |name: &[u8]| event.eq_ignore_ascii_case(name);
    if is(b"call") {
        let operation = PoolOperation::Call(PoolCall { number, ..PoolCall::default() });
        return Ok((Request::Operation { pool, operation }, Manner::Call));
    }
    let changes = ["add", "del", "reg", "unreg", "hangup"];
    let Some(change) = changes.into_iter().find(|name| is(name.as_bytes())) else {
        return Err(Reply::error("ERR unknown event; known are add, del, reg, unreg, call and hangup"));
    };
    let Some(number) = number else { return Err(Reply::error("ERR this event needs a number")) };
    let operation = self::change(change, number, None, None);
    Ok((Request::Operation { pool, operation }, if plain { Manner::Change } else { Manner::Older }))
}

fn change(name: &str, number: PoolNumber, weight: Option<u8>, ticket: Option<PoolTicket>) -> PoolOperation {
    match name {
        "add" => PoolOperation::Add { number, weight },
        "del" => PoolOperation::Del { number },
        "reg" => PoolOperation::Reg { number },
        "unreg" => PoolOperation::Unreg { number },
        _ => PoolOperation::Hangup { number, ticket },
    }
}

/// `POOL.…`; `name` in lower case, the number of arguments already looked at.
pub(crate) fn plain(names: &mut Names, name: &str, arguments: &[&[u8]]) -> Asked {
    let Some((key, rest)) = arguments.split_first() else {
        return if name == "pool.list" { Ok((Request::Pools, Manner::Plain)) } else { Err(syntax()) };
    };
    let pool = names.read(key)?;
    let mut manner = Manner::Plain;
    let operation = match (name, rest) {
        ("pool.add", _) => return several(pool, "add", rest),
        ("pool.del", _) => return several(pool, "del", rest),
        ("pool.reg", _) => return several(pool, "reg", rest),
        ("pool.unreg", _) => return several(pool, "unreg", rest),
        ("pool.hangup", [number, options @ ..]) => {
            change("hangup", self::number(number)?, None, ticket(options)?)
        }
        ("pool.call", options) => {
            let (call, with_ticket) = call(options)?;
            if with_ticket {
                manner = Manner::Ticket;
            }
            PoolOperation::Call(call)
        }
        ("pool.renew", [number, lease, options @ ..]) => {
            let lease = if lease.eq_ignore_ascii_case(b"persist") { None } else { Some(self::lease(lease)?) };
            PoolOperation::Renew { number: self::number(number)?, ticket: ticket(options)?, lease }
        }
        ("pool.create", options) => return create(pool, options),
        ("pool.remove", []) => return Ok((Request::Remove { pool, with_numbers: false }, manner)),
        ("pool.remove", [force]) if force.eq_ignore_ascii_case(b"force") => {
            return Ok((Request::Remove { pool, with_numbers: true }, manner));
        }
        ("pool.show", []) => return Ok((Request::Read { pool, read: Read::Show(None) }, manner)),
        ("pool.show", [number]) => {
            let read = Read::Show(Some(self::number(number)?));
            return Ok((Request::Read { pool, read }, manner));
        }
        _ => return Err(syntax()),
    };
    Ok((Request::Operation { pool, operation }, manner))
}

/// `number [number …]`, and `WEIGHT n` behind those that are added.
fn several(pool: PoolName, event: &str, arguments: &[&[u8]]) -> Asked {
    let (numbers, weight) = match arguments {
        [numbers @ .., word, weight] if event == "add" && word.eq_ignore_ascii_case(b"weight") => {
            match integer(weight)? {
                weight @ 1..=16 => (numbers, Some(weight as u8)),
                _ => return Err(Reply::error("ERR a weight is a number of 1 to 16")),
            }
        }
        numbers => (numbers, None),
    };
    let operation = |number: &&[u8]| Ok(change(event, self::number(number)?, weight, None));
    let request = match numbers {
        [] => return Err(syntax()),
        [number] => Request::Operation { pool, operation: operation(number)? },
        numbers => {
            let operations = numbers.iter().map(operation).collect::<Result<_, Reply>>()?;
            Request::Operations { pool, operations }
        }
    };
    Ok((request, Manner::Plain))
}

/// `[number] [LEASE ms] [HOLDER text] [REASON text] [USER text] [CALLEE text] [TICKET]`; says also whether the ticket is
/// wanted.
fn call(arguments: &[&[u8]]) -> Result<(PoolCall, bool), Reply> {
    let mut call = PoolCall::default();
    let mut with_ticket = false;
    let mut rest = arguments;
    // No option is written in what numbers are made of.
    if let [first, options @ ..] = rest
        && !first.first().is_some_and(u8::is_ascii_alphabetic)
    {
        call.number = Some(number(first)?);
        rest = options;
    }
    while let [option, more @ ..] = rest {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        if is(b"ticket") {
            with_ticket = true;
            rest = more;
            continue;
        }
        let [value, more @ ..] = more else { return Err(syntax()) };
        rest = more;
        if is(b"lease") {
            call.lease = Some(lease(value)?);
        } else if is(b"holder") {
            call.holder = word(value)?;
        } else if is(b"reason") {
            call.reason = word(value)?;
        } else if is(b"user") {
            call.user = word(value)?;
        } else if is(b"callee") {
            call.callee = word(value)?;
        } else {
            return Err(syntax());
        }
    }
    Ok((call, with_ticket))
}

/// `[TICKET n]`.
fn ticket(options: &[&[u8]]) -> Result<Option<PoolTicket>, Reply> {
    match options {
        [] => Ok(None),
        [word, ticket] if word.eq_ignore_ascii_case(b"ticket") => {
            let ticket = u64::try_from(integer(ticket)?).map_err(|_| syntax())?;
            Ok(Some(PoolTicket(ticket)))
        }
        _ => Err(syntax()),
    }
}

/// `[STRATEGY s] [QUARANTINE ms]`.
fn create(pool: PoolName, options: &[&[u8]]) -> Asked {
    let (mut strategy, mut quarantine) = (None, None);
    let (pairs, rest) = options.as_chunks::<2>();
    for [option, value] in pairs {
        if option.eq_ignore_ascii_case(b"strategy") {
            let text = String::from_utf8_lossy(value).to_ascii_lowercase();
            let read = Strategy::from_str(&text).map_err(|error| Reply::error(format!("ERR {error}")))?;
            strategy = Some(read);
        } else if option.eq_ignore_ascii_case(b"quarantine") {
            let time = u64::try_from(integer(value)?);
            let wrong = |_| Reply::error("ERR a quarantine is a number of milliseconds, 0 for none");
            quarantine = Some(Duration::from_millis(time.map_err(wrong)?));
        } else {
            return Err(syntax());
        }
    }
    if !rest.is_empty() {
        return Err(syntax());
    }
    Ok((Request::Create { pool, strategy, quarantine }, Manner::Plain))
}

/// The commands that look into the older system's two keys. `Err` is the answer for any other key, the one that Redis has for
/// a key that does not exist.
pub(crate) fn read(names: &mut Names, name: &str, key: &[u8], arguments: &[&[u8]], plain: bool) -> Asked {
    let (states, pool) = if let Some(pool) = key.strip_suffix(b":numstate") {
        (true, pool)
    } else if let Some(pool) = key.strip_suffix(b":idle:up") {
        (false, pool)
    } else {
        return Err(absent(name));
    };
    let Ok(pool) = names.read(pool) else { return Err(absent(name)) };
    let read = match (name, states, arguments) {
        ("hget", true, [field]) => match self::number(field) {
            Ok(number) => Read::State(number),
            Err(_) => return Err(Reply::Null),
        },
        ("hgetall", true, []) => Read::States,
        ("hlen", true, []) => Read::Count,
        ("lrange", false, [start, stop]) => Read::Idle { start: integer(start)?, stop: integer(stop)? },
        ("llen", false, []) => Read::IdleCount,
        _ => return Err(Reply::error("WRONGTYPE Operation against a key holding the wrong kind of value")),
    };
    Ok((Request::Read { pool, read }, if plain { Manner::Plain } else { Manner::Older }))
}

fn absent(name: &str) -> Reply {
    match name {
        "hget" => Reply::Null,
        "hgetall" => Reply::Map(Vec::new()),
        "lrange" => Reply::Array(Vec::new()),
        _ => Reply::Integer(0),
    }
}

fn number(text: &[u8]) -> Result<PoolNumber, Reply> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Reply::error("ERR a number has 1 to 16 characters of 0-9, +, * and #"))
}

fn word(text: &[u8]) -> Result<Box<str>, Reply> {
    match std::str::from_utf8(text) {
        Ok(text) if text.len() <= PoolCall::LONGEST_TEXT && !text.chars().any(char::is_control) => {
            Ok(text.into())
        }
        _ => Err(Reply::error("ERR a text has at most 255 octets of UTF-8 without control characters")),
    }
}

pub(crate) fn integer(text: &[u8]) -> Result<i64, Reply> {
    let digits = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    digits
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Reply::error("ERR value is not an integer or out of range"))
}

fn lease(text: &[u8]) -> Result<Duration, Reply> {
    match u64::try_from(integer(text)?) {
        Ok(lease) if lease > 0 => Ok(Duration::from_millis(lease)),
        _ => Err(Reply::error("ERR a lease is a positive number of milliseconds")),
    }
}

fn syntax() -> Reply {
    Reply::error("ERR syntax error")
}
