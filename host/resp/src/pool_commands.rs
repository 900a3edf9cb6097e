use model::{AcquireRequest, LeaseTicket, ParsePoolNameError, PoolName, PoolNumber, PoolOperation, Strategy};
use std::{str::FromStr, time::Duration};

use crate::{
    resp_reply::{ReplyFormat, RespReply},
    resp_request::{PoolRead, RespRequest},
};

/// A parsed request with its reply format, or an immediate reply.
pub(crate) type ParsedRequest = Result<(RespRequest, ReplyFormat), RespReply>;

/// The last parsed pool name: most requests of a client use the same pool.
#[derive(Debug, Default)]
pub(crate) struct PoolNameCache(Option<PoolName>);

impl PoolNameCache {
    /// Braces are the hash tag of Redis Cluster and not part of the name.
    fn parse(&mut self, key: &[u8]) -> Result<PoolName, RespReply> {
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
        let read: PoolName = read.map_err(|error| RespReply::error(format!("ERR {error}")))?;
        self.0 = Some(read.clone());
        Ok(read)
    }
}

/// Parses a legacy script call: one key, an event, and optionally a number.
pub(crate) fn parse_script_call(
    names: &mut PoolNameCache,
    key: &[u8],
    arguments: &[&[u8]],
    plain: bool,
) -> ParsedRequest {
    let pool = names.parse(key)?;
    let (event, number) = match arguments {
        [event] => (*event, None),
        [event, number] => (*event, Some(parse_number(number)?)),
        _ => return Err(RespReply::error("ERR the script takes an event and at most one number")),
    };
    let is = |name: &[u8]| event.eq_ignore_ascii_case(name);
    if is(b"call") {
        let operation = PoolOperation::Call(AcquireRequest { number, ..AcquireRequest::default() });
        return Ok((RespRequest::Operation { pool, operation }, ReplyFormat::LegacyCall));
    }
    let changes = ["add", "del", "reg", "unreg", "hangup"];
    let Some(change) = changes.into_iter().find(|name| is(name.as_bytes())) else {
        return Err(RespReply::error("ERR unknown event; known are add, del, reg, unreg, call and hangup"));
    };
    let Some(number) = number else { return Err(RespReply::error("ERR this event needs a number")) };
    let operation = operation_for(change, number, None, None);
    Ok((
        RespRequest::Operation { pool, operation },
        if plain { ReplyFormat::LegacyInteger } else { ReplyFormat::LegacyText },
    ))
}

fn operation_for(
    name: &str,
    number: PoolNumber,
    weight: Option<u8>,
    ticket: Option<LeaseTicket>,
) -> PoolOperation {
    match name {
        "add" => PoolOperation::Add { number, weight },
        "del" => PoolOperation::Del { number },
        "reg" => PoolOperation::Reg { number },
        "unreg" => PoolOperation::Unreg { number },
        _ => PoolOperation::Hangup { number, ticket },
    }
}

/// Parses a `POOL.…` command; `name` is in lower case, and the number of arguments was checked.
pub(crate) fn parse_pool_command(
    names: &mut PoolNameCache,
    name: &str,
    arguments: &[&[u8]],
) -> ParsedRequest {
    let Some((key, rest)) = arguments.split_first() else {
        return if name == "pool.list" {
            Ok((RespRequest::Pools, ReplyFormat::Plain))
        } else {
            Err(syntax_error())
        };
    };
    let pool = names.parse(key)?;
    let mut format = ReplyFormat::Plain;
    let operation = match (name, rest) {
        ("pool.add", _) => return parse_numbers(pool, "add", rest),
        ("pool.del", _) => return parse_numbers(pool, "del", rest),
        ("pool.reg", _) => return parse_numbers(pool, "reg", rest),
        ("pool.unreg", _) => return parse_numbers(pool, "unreg", rest),
        ("pool.hangup", [number, options @ ..]) => {
            operation_for("hangup", parse_number(number)?, None, parse_ticket(options)?)
        }
        ("pool.call", options) => {
            let (call, with_ticket) = parse_call(options)?;
            if with_ticket {
                format = ReplyFormat::WithTicket;
            }
            PoolOperation::Call(call)
        }
        ("pool.renew", [number, lease, options @ ..]) => {
            let lease = if lease.eq_ignore_ascii_case(b"persist") { None } else { Some(parse_lease(lease)?) };
            PoolOperation::Renew { number: parse_number(number)?, ticket: parse_ticket(options)?, lease }
        }
        ("pool.create", options) => return parse_create(pool, options),
        ("pool.remove", []) => return Ok((RespRequest::Remove { pool, with_numbers: false }, format)),
        ("pool.remove", [force]) if force.eq_ignore_ascii_case(b"force") => {
            return Ok((RespRequest::Remove { pool, with_numbers: true }, format));
        }
        ("pool.show", []) => return Ok((RespRequest::Read { pool, read: PoolRead::Show(None) }, format)),
        ("pool.show", [number]) => {
            let read = PoolRead::Show(Some(parse_number(number)?));
            return Ok((RespRequest::Read { pool, read }, format));
        }
        _ => return Err(syntax_error()),
    };
    Ok((RespRequest::Operation { pool, operation }, format))
}

/// `number [number …]`, and `WEIGHT n` for `POOL.ADD`.
fn parse_numbers(pool: PoolName, event: &str, arguments: &[&[u8]]) -> ParsedRequest {
    let (numbers, weight) = match arguments {
        [numbers @ .., word, weight] if event == "add" && word.eq_ignore_ascii_case(b"weight") => {
            match parse_integer(weight)? {
                weight @ 1..=16 => (numbers, Some(weight as u8)),
                _ => return Err(RespReply::error("ERR a weight must be 1 to 16")),
            }
        }
        numbers => (numbers, None),
    };
    let operation = |number: &&[u8]| Ok(operation_for(event, parse_number(number)?, weight, None));
    let request = match numbers {
        [] => return Err(syntax_error()),
        [number] => RespRequest::Operation { pool, operation: operation(number)? },
        numbers => {
            let operations = numbers.iter().map(operation).collect::<Result<_, RespReply>>()?;
            RespRequest::Operations { pool, operations }
        }
    };
    Ok((request, ReplyFormat::Plain))
}

/// `[number] [LEASE ms] [HOLDER text] [REASON text] [USER text] [CALLEE text] [TICKET]`. Returns also whether the
/// ticket is requested.
fn parse_call(arguments: &[&[u8]]) -> Result<(AcquireRequest, bool), RespReply> {
    let mut call = AcquireRequest::default();
    let mut with_ticket = false;
    let mut rest = arguments;
    // Option names start with a letter, numbers do not.
    if let [first, options @ ..] = rest
        && !first.first().is_some_and(u8::is_ascii_alphabetic)
    {
        call.number = Some(parse_number(first)?);
        rest = options;
    }
    while let [option, more @ ..] = rest {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        if is(b"ticket") {
            with_ticket = true;
            rest = more;
            continue;
        }
        let [value, more @ ..] = more else { return Err(syntax_error()) };
        rest = more;
        if is(b"lease") {
            call.lease = Some(parse_lease(value)?);
        } else if is(b"holder") {
            call.holder = parse_text(value)?;
        } else if is(b"reason") {
            call.reason = parse_text(value)?;
        } else if is(b"user") {
            call.user = parse_text(value)?;
        } else if is(b"callee") {
            call.callee = parse_text(value)?;
        } else {
            return Err(syntax_error());
        }
    }
    Ok((call, with_ticket))
}

/// `[TICKET n]`.
fn parse_ticket(options: &[&[u8]]) -> Result<Option<LeaseTicket>, RespReply> {
    match options {
        [] => Ok(None),
        [word, ticket] if word.eq_ignore_ascii_case(b"ticket") => {
            let ticket = u64::try_from(parse_integer(ticket)?).map_err(|_| syntax_error())?;
            Ok(Some(LeaseTicket(ticket)))
        }
        _ => Err(syntax_error()),
    }
}

/// `[STRATEGY s] [QUARANTINE ms]`.
fn parse_create(pool: PoolName, options: &[&[u8]]) -> ParsedRequest {
    let (mut strategy, mut quarantine) = (None, None);
    let (pairs, rest) = options.as_chunks::<2>();
    for [option, value] in pairs {
        if option.eq_ignore_ascii_case(b"strategy") {
            let text = String::from_utf8_lossy(value).to_ascii_lowercase();
            let read = Strategy::from_str(&text).map_err(|error| RespReply::error(format!("ERR {error}")))?;
            strategy = Some(read);
        } else if option.eq_ignore_ascii_case(b"quarantine") {
            let time = u64::try_from(parse_integer(value)?);
            let wrong = |_| RespReply::error("ERR a quarantine must be a number of milliseconds, 0 for none");
            quarantine = Some(Duration::from_millis(time.map_err(wrong)?));
        } else {
            return Err(syntax_error());
        }
    }
    if !rest.is_empty() {
        return Err(syntax_error());
    }
    Ok((RespRequest::Create { pool, strategy, quarantine }, ReplyFormat::Plain))
}

/// Parses the commands that read the two keys of the legacy system. `Err` is the reply for any other key, as Redis
/// gives for a missing key.
pub(crate) fn parse_key_read(
    names: &mut PoolNameCache,
    name: &str,
    key: &[u8],
    arguments: &[&[u8]],
    plain: bool,
) -> ParsedRequest {
    let (states, pool) = if let Some(pool) = key.strip_suffix(b":numstate") {
        (true, pool)
    } else if let Some(pool) = key.strip_suffix(b":idle:up") {
        (false, pool)
    } else {
        return Err(missing_key_reply(name));
    };
    let Ok(pool) = names.parse(pool) else { return Err(missing_key_reply(name)) };
    let read = match (name, states, arguments) {
        ("hget", true, [field]) => match parse_number(field) {
            Ok(number) => PoolRead::State(number),
            Err(_) => return Err(RespReply::Null),
        },
        ("hgetall", true, []) => PoolRead::States,
        ("hlen", true, []) => PoolRead::Count,
        ("lrange", false, [start, stop]) => {
            PoolRead::Idle { start: parse_integer(start)?, stop: parse_integer(stop)? }
        }
        ("llen", false, []) => PoolRead::IdleCount,
        _ => {
            return Err(RespReply::error(
                "WRONGTYPE Operation against a key holding the wrong kind of value",
            ));
        }
    };
    Ok((RespRequest::Read { pool, read }, if plain { ReplyFormat::Plain } else { ReplyFormat::LegacyText }))
}

fn missing_key_reply(name: &str) -> RespReply {
    match name {
        "hget" => RespReply::Null,
        "hgetall" => RespReply::Map(Vec::new()),
        "lrange" => RespReply::Array(Vec::new()),
        _ => RespReply::Integer(0),
    }
}

fn parse_number(text: &[u8]) -> Result<PoolNumber, RespReply> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| RespReply::error("ERR a number has 1 to 16 characters of 0-9, +, * and #"))
}

fn parse_text(text: &[u8]) -> Result<Box<str>, RespReply> {
    match std::str::from_utf8(text) {
        Ok(text) if text.len() <= AcquireRequest::MAX_TEXT && !text.chars().any(char::is_control) => {
            Ok(text.into())
        }
        _ => Err(RespReply::error("ERR a text has at most 255 octets of UTF-8 without control characters")),
    }
}

pub(crate) fn parse_integer(text: &[u8]) -> Result<i64, RespReply> {
    let digits = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    digits
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| RespReply::error("ERR value is not an integer or out of range"))
}

fn parse_lease(text: &[u8]) -> Result<Duration, RespReply> {
    match u64::try_from(parse_integer(text)?) {
        Ok(lease) if lease > 0 => Ok(Duration::from_millis(lease)),
        _ => Err(RespReply::error("ERR a lease is a positive number of milliseconds")),
    }
}

fn syntax_error() -> RespReply {
    RespReply::error("ERR syntax error")
}
