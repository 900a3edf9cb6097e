use bytes::Bytes;

use crate::{
    command::{arity, subcommand},
    reply::Reply,
};

/// What `HELLO` asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Whether RESP3; `None` if the version stays.
    pub(crate) three: Option<bool>,
    pub(crate) account: Option<(Bytes, Bytes)>,
    pub(crate) client: Option<Bytes>,
}

impl Hello {
    pub(crate) fn parse(arguments: &[&[u8]]) -> Result<Self, Reply> {
        let mut hello = Self { three: None, account: None, client: None };
        let Some((version, mut rest)) = arguments.split_first() else { return Ok(hello) };
        hello.three = Some(match *version {
            b"2" => false,
            b"3" => true,
            digits if digits.iter().all(u8::is_ascii_digit) && !digits.is_empty() => {
                return Err(Reply::error("NOPROTO unsupported protocol version"));
            }
            _ => return Err(Reply::error("ERR Protocol version is not an integer or out of range")),
        });
        while let Some((option, more)) = rest.split_first() {
            rest = match (option.to_ascii_lowercase().as_slice(), more) {
                (b"auth", [name, password, more @ ..]) => {
                    hello.account = Some((Bytes::copy_from_slice(name), Bytes::copy_from_slice(password)));
                    more
                }
                (b"setname", [name, more @ ..]) => {
                    hello.client = Some(client_name(name)?);
                    more
                }
                _ => {
                    let option = String::from_utf8_lossy(option.get(..128).unwrap_or(option));
                    return Err(Reply::error(format!("ERR Syntax error in HELLO option '{option}'")));
                }
            };
        }
        Ok(hello)
    }

    pub(crate) fn answer(version: &str, three: bool, id: i64) -> Reply {
        let pair = |key: &str, value: Reply| (Reply::text(key), value);
        Reply::Map(vec![
            pair("server", Reply::text("switchyard")),
            pair("version", Reply::text(version)),
            pair("proto", Reply::Integer(if three { 3 } else { 2 })),
            pair("id", Reply::Integer(id)),
            pair("mode", Reply::text("cluster")),
            pair("role", Reply::text("master")),
            pair("modules", Reply::Array(Vec::new())),
        ])
    }
}

/// `CLIENT` and what follows it. `name` is the connection's.
pub(crate) fn client(arguments: &[&[u8]], id: i64, three: bool, name: &mut Bytes) -> Reply {
    let Some((what, rest)) = arguments.split_first() else { return arity("client") };
    match (what.to_ascii_lowercase().as_slice(), rest) {
        (b"setname", [new]) => match client_name(new) {
            Ok(new) => {
                *name = new;
                Reply::ok()
            }
            Err(error) => error,
        },
        (b"getname", []) if name.is_empty() => Reply::Null,
        (b"getname", []) => Reply::Text(name.clone()),
        // Libraries tell their name and version; nobody here asks for them.
        (b"setinfo", [_, _]) => Reply::ok(),
        (b"id", []) => Reply::Integer(id),
        (b"info", []) => {
            let resp = if three { 3 } else { 2 };
            Reply::Prose(format!("id={id} name={} db=0 resp={resp}\n", String::from_utf8_lossy(name)).into())
        }
        (word @ (b"setname" | b"getname" | b"setinfo" | b"id" | b"info"), _) => {
            arity(&format!("client|{}", String::from_utf8_lossy(word)))
        }
        _ => subcommand("client", what),
    }
}

fn client_name(name: &[u8]) -> Result<Bytes, Reply> {
    if name.len() <= 128 && name.iter().all(u8::is_ascii_graphic) {
        return Ok(Bytes::copy_from_slice(name));
    }
    Err(Reply::error("ERR Client names cannot contain spaces, newlines or special characters."))
}
