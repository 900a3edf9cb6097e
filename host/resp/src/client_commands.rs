use bytes::Bytes;

use crate::{
    redis_command::{unknown_subcommand, wrong_arity},
    resp_reply::RespReply,
};

/// The arguments of `HELLO`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Whether the client selects RESP3; `None` keeps the version.
    pub(crate) resp3: Option<bool>,
    pub(crate) account: Option<(Bytes, Bytes)>,
    pub(crate) client: Option<Bytes>,
}

impl Hello {
    pub(crate) fn parse(arguments: &[&[u8]]) -> Result<Self, RespReply> {
        let mut hello = Self { resp3: None, account: None, client: None };
        let Some((version, mut rest)) = arguments.split_first() else { return Ok(hello) };
        hello.resp3 = Some(match *version {
            b"2" => false,
            b"3" => true,
            digits if digits.iter().all(u8::is_ascii_digit) && !digits.is_empty() => {
                return Err(RespReply::error("NOPROTO unsupported protocol version"));
            }
            _ => return Err(RespReply::error("ERR Protocol version is not an integer or out of range")),
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
                    return Err(RespReply::error(format!("ERR Syntax error in HELLO option '{option}'")));
                }
            };
        }
        Ok(hello)
    }

    pub(crate) fn reply(version: &str, resp3: bool, id: i64) -> RespReply {
        let pair = |key: &str, value: RespReply| (RespReply::text(key), value);
        RespReply::Map(vec![
            pair("server", RespReply::text("switchyard")),
            pair("version", RespReply::text(version)),
            pair("proto", RespReply::Integer(if resp3 { 3 } else { 2 })),
            pair("id", RespReply::Integer(id)),
            pair("mode", RespReply::text("cluster")),
            pair("role", RespReply::text("master")),
            pair("modules", RespReply::Array(Vec::new())),
        ])
    }
}

/// `CLIENT` and its subcommands. `name` is the connection's name.
pub(crate) fn client_reply(arguments: &[&[u8]], id: i64, resp3: bool, name: &mut Bytes) -> RespReply {
    let Some((what, rest)) = arguments.split_first() else { return wrong_arity("client") };
    match (what.to_ascii_lowercase().as_slice(), rest) {
        (b"setname", [new]) => match client_name(new) {
            Ok(new) => {
                *name = new;
                RespReply::ok()
            }
            Err(error) => error,
        },
        (b"getname", []) if name.is_empty() => RespReply::Null,
        (b"getname", []) => RespReply::Text(name.clone()),
        // Client libraries send their name and version; both are ignored.
        (b"setinfo", [_, _]) => RespReply::ok(),
        (b"id", []) => RespReply::Integer(id),
        (b"info", []) => {
            let resp = if resp3 { 3 } else { 2 };
            RespReply::Verbatim(
                format!("id={id} name={} db=0 resp={resp}\n", String::from_utf8_lossy(name)).into(),
            )
        }
        (word @ (b"setname" | b"getname" | b"setinfo" | b"id" | b"info"), _) => {
            wrong_arity(&format!("client|{}", String::from_utf8_lossy(word)))
        }
        _ => unknown_subcommand("client", what),
    }
}

fn client_name(name: &[u8]) -> Result<Bytes, RespReply> {
    if name.len() <= 128 && name.iter().all(u8::is_ascii_graphic) {
        return Ok(Bytes::copy_from_slice(name));
    }
    Err(RespReply::error("ERR Client names cannot contain spaces, newlines or special characters."))
}
