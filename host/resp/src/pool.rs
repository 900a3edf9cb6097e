use bytes::Bytes;

use crate::{
    reply::Reply,
    request::{Call, Operation, Read, Request},
};

/// The longest name of a pool, holder and so on, in octets.
const LONGEST: usize = 128;
/// The longest number: fifteen digits and room for whatever a plan puts around them.
const LONGEST_NUMBER: usize = 32;

/// The older script's arguments: one key, an event, perhaps a number.
pub(crate) fn script(key: &[u8], arguments: &[Bytes]) -> Result<Request, Reply> {
    let pool = pool(key)?;
    let (event, number) = match arguments {
        [event] => (event, None),
        [event, number] => (event, Some(self::number(number)?)),
        _ => return Err(Reply::error("ERR the script takes an event and at most one number")),
    };
    let event = event.to_ascii_lowercase();
    let operation = match (event.as_slice(), number) {
        (b"call", number) => Operation::Call(Call { number, ..Call::default() }),
        (b"add", Some(number)) => Operation::Add(number),
        (b"del", Some(number)) => Operation::Del(number),
        (b"reg", Some(number)) => Operation::Reg(number),
        (b"unreg", Some(number)) => Operation::Unreg(number),
        (b"hangup", Some(number)) => Operation::Hangup(number),
        (b"add" | b"del" | b"reg" | b"unreg" | b"hangup", None) => {
            return Err(Reply::error("ERR this event needs a number"));
        }
        _ => return Err(Reply::error("ERR unknown event; known are add, del, reg, unreg, call and hangup")),
    };
    Ok(Request::Pool { pool, operation })
}

/// `POOL.…`; `name` in lower case, the number of arguments already looked at.
pub(crate) fn plain(name: &str, arguments: &[Bytes]) -> Result<Request, Reply> {
    let (first, rest) = match arguments.split_first() {
        Some((first, rest)) => (first, rest),
        None if name == "pool.list" => return Ok(Request::Pools),
        None => return Err(syntax()),
    };
    let pool = pool(first)?;
    let one = || match rest {
        [number] => self::number(number),
        _ => Err(syntax()),
    };
    let operation = match name {
        "pool.add" => Operation::Add(one()?),
        "pool.del" => Operation::Del(one()?),
        "pool.reg" => Operation::Reg(one()?),
        "pool.unreg" => Operation::Unreg(one()?),
        "pool.hangup" => Operation::Hangup(one()?),
        "pool.call" => Operation::Call(call(rest)?),
        "pool.renew" => match rest {
            [number, lease] => {
                Operation::Renew { number: self::number(number)?, lease_ms: milliseconds(lease)? }
            }
            _ => return Err(syntax()),
        },
        "pool.show" => {
            let number = rest.first().map(|number| self::number(number)).transpose()?;
            return Ok(Request::Read { pool, read: Read::Show(number) });
        }
        _ => return Err(syntax()),
    };
    Ok(Request::Pool { pool, operation })
}

/// `[number] [LEASE ms] [HOLDER text] [REASON text] [USER text] [CALLEE number]`.
fn call(arguments: &[Bytes]) -> Result<Call, Reply> {
    let mut call = Call::default();
    let mut options = arguments;
    // Options come in pairs, so an odd number of words begins with a number.
    if arguments.len() % 2 == 1
        && let Some((first, rest)) = arguments.split_first()
    {
        call.number = Some(number(first)?);
        options = rest;
    }
    for pair in options.chunks_exact(2) {
        let [option, value] = pair else { return Err(syntax()) };
        match option.to_ascii_lowercase().as_slice() {
            b"lease" => call.lease_ms = Some(milliseconds(value)?),
            b"holder" => call.holder = Some(word(value)?),
            b"reason" => call.reason = Some(word(value)?),
            b"user" => call.user = Some(word(value)?),
            b"callee" => call.callee = Some(number(value)?),
            _ => return Err(syntax()),
        }
    }
    Ok(call)
}

/// The commands that look into the older system's two keys. `Err` is the answer for any other key, the one that Redis has for
/// a key that does not exist.
pub(crate) fn read(name: &str, key: &[u8], arguments: &[Bytes]) -> Result<Request, Reply> {
    let (states, pool) = if let Some(pool) = key.strip_suffix(b":numstate") {
        (true, pool)
    } else if let Some(pool) = key.strip_suffix(b":idle:up") {
        (false, pool)
    } else {
        return Err(absent(name));
    };
    let Ok(pool) = self::pool(pool) else { return Err(absent(name)) };
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
    Ok(Request::Read { pool, read })
}

fn absent(name: &str) -> Reply {
    match name {
        "hget" => Reply::Null,
        "hgetall" => Reply::Map(Vec::new()),
        "lrange" => Reply::Array(Vec::new()),
        _ => Reply::Integer(0),
    }
}

/// A pool's name; the braces are Redis Cluster's way to keep keys together and not part of it.
fn pool(key: &[u8]) -> Result<String, Reply> {
    let name = key.strip_prefix(b"{").and_then(|key| key.strip_suffix(b"}")).unwrap_or(key);
    word(name).map_err(|_| {
        Reply::error("ERR a pool's name has 1 to 128 octets of UTF-8 without control characters")
    })
}

fn number(text: &[u8]) -> Result<String, Reply> {
    if (1..=LONGEST_NUMBER).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic) {
        return word(text);
    }
    Err(Reply::error("ERR a number has 1 to 32 printable ASCII characters without spaces"))
}

fn word(text: &[u8]) -> Result<String, Reply> {
    match std::str::from_utf8(text) {
        Ok(text) if (1..=LONGEST).contains(&text.len()) && !text.chars().any(char::is_control) => {
            Ok(text.to_owned())
        }
        _ => Err(Reply::error("ERR a text has 1 to 128 octets of UTF-8 without control characters")),
    }
}

fn integer(text: &[u8]) -> Result<i64, Reply> {
    let digits = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    digits
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Reply::error("ERR value is not an integer or out of range"))
}

fn milliseconds(text: &[u8]) -> Result<u64, Reply> {
    match u64::try_from(integer(text)?) {
        Ok(lease) if lease > 0 => Ok(lease),
        _ => Err(Reply::error("ERR a lease is a positive number of milliseconds")),
    }
}

fn syntax() -> Reply {
    Reply::error("ERR syntax error")
}
