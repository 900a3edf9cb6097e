use crate::resp_reply::RespReply;

/// A supported command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RedisCommand {
    /// The name in lower case.
    pub(crate) name: &'static str,
    /// Number of words including the name; a minimum if negative.
    arity: i64,
    flags: &'static [&'static str],
    /// Position of the first and last key; 0 for none.
    key: i64,
    summary: &'static str,
}

const fn command(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    key: i64,
    summary: &'static str,
) -> RedisCommand {
    RedisCommand { name, arity, flags, key, summary }
}

const FAST: &[&str] = &["fast"];
const OPEN: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];
const READ: &[&str] = &["readonly"];
const WRITE: &[&str] = &["write", "fast"];

/// All commands, by name.
static COMMANDS: [RedisCommand; 36] = [
    command("asking", 1, FAST, 0, "Accepted for cluster clients, no effect"),
    command("auth", -2, OPEN, 0, "Authenticates the connection"),
    command("client", -2, FAST, 0, "Names the connection and shows information about it"),
    command("cluster", -2, FAST, 0, "Shows information about the cluster, which has one node"),
    command("command", -1, FAST, 0, "Shows the supported commands"),
    command("discard", 1, FAST, 0, "Discards the transaction"),
    command("echo", 2, FAST, 0, "Returns the text"),
    command("eval", -3, &[], 0, "Triggers a pool event by the text of a known script"),
    command("evalsha", -3, &[], 0, "Triggers a pool event by the SHA-1 sum of a known script"),
    command("exec", 1, FAST, 0, "Executes the transaction as one"),
    command("hello", -1, OPEN, 0, "Selects the protocol version and optionally authenticates"),
    command("hget", 3, READ, 1, "Returns the state of a number"),
    command("hgetall", 2, READ, 1, "Returns the states of all numbers of a pool"),
    command("hlen", 2, READ, 1, "Returns the count of numbers in a pool"),
    command("info", -1, FAST, 0, "Shows information about the server"),
    command("llen", 2, READ, 1, "Returns the count of idle numbers of a pool that are up"),
    command("lrange", 4, READ, 1, "Returns idle numbers of a pool that are up, longest idle first"),
    command("multi", 1, FAST, 0, "Starts a transaction"),
    command("ping", -1, FAST, 0, "Checks the connection"),
    command("pool.add", -3, WRITE, 1, "Adds numbers to a pool"),
    command("pool.call", -2, WRITE, 1, "Leases a number of a pool"),
    command("pool.create", -2, WRITE, 1, "Creates a pool or changes its settings"),
    command("pool.del", -3, WRITE, 1, "Removes numbers from a pool"),
    command("pool.hangup", -3, WRITE, 1, "Releases a number"),
    command("pool.list", 1, READ, 0, "Lists all pools"),
    command("pool.reg", -3, WRITE, 1, "Sets numbers up"),
    command("pool.remove", -2, WRITE, 1, "Removes a pool"),
    command("pool.renew", -4, WRITE, 1, "Renews the lease of a number"),
    command("pool.show", -2, READ, 1, "Shows a pool or a number"),
    command("pool.unreg", -3, WRITE, 1, "Sets numbers down"),
    command("quit", -1, OPEN, 0, "Closes the connection"),
    command("readonly", 1, FAST, 0, "Accepted for cluster clients, no effect"),
    command("readwrite", 1, FAST, 0, "Accepted for cluster clients, no effect"),
    command("reset", 1, OPEN, 0, "Resets the connection"),
    command("script", -2, FAST, 0, "Shows and loads SHA-1 sums of scripts"),
    command("select", 2, FAST, 0, "Selects database 0, the only one"),
];

/// Finds a command and checks its number of words; `Err` is Redis's own error.
pub(crate) fn find(words: &[&[u8]]) -> Result<&'static RedisCommand, RespReply> {
    let name = words.first().copied().unwrap_or_default();
    let Some(found) = lookup(name) else { return Err(unknown(name, words)) };
    let count = i64::try_from(words.len()).unwrap_or(i64::MAX);
    let exact = found.arity > 0 && count == found.arity;
    let enough = found.arity < 0 && count >= -found.arity;
    let most = match found.name {
        "ping" => 2,
        "pool.show" | "pool.remove" => 3,
        _ => i64::MAX,
    };
    if (exact || enough) && count <= most { Ok(found) } else { Err(wrong_arity(found.name)) }
}

fn lookup(name: &[u8]) -> Option<&'static RedisCommand> {
    COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

pub(crate) fn wrong_arity(name: &str) -> RespReply {
    RespReply::error(format!("ERR wrong number of arguments for '{name}' command"))
}

pub(crate) fn unknown_subcommand(of: &str, word: &[u8]) -> RespReply {
    let word = String::from_utf8_lossy(word.get(..128).unwrap_or(word));
    RespReply::error(format!("ERR unknown subcommand '{word}'. Try {} HELP.", of.to_ascii_uppercase()))
}

/// As in Redis, shows at most 128 octets of command and arguments.
fn unknown(name: &[u8], words: &[&[u8]]) -> RespReply {
    let shown = |octets: &[u8], most: usize| {
        String::from_utf8_lossy(octets.get(..most).unwrap_or(octets)).into_owned()
    };
    let mut arguments = String::new();
    for word in words.iter().skip(1) {
        if arguments.len() >= 128 {
            break;
        }
        arguments.push_str(&format!("'{}' ", shown(word, 128 - arguments.len())));
    }
    RespReply::error(format!(
        "ERR unknown command '{}', with args beginning with: {arguments}",
        shown(name, 128)
    ))
}

/// `COMMAND` and its subcommands.
pub(crate) fn command_reply(arguments: &[&[u8]]) -> RespReply {
    let Some((what, names)) = arguments.split_first() else {
        return RespReply::Array(COMMANDS.iter().map(RedisCommand::entry).collect());
    };
    match what.to_ascii_lowercase().as_slice() {
        b"count" if names.is_empty() => RespReply::Integer(i64::try_from(COMMANDS.len()).unwrap_or(i64::MAX)),
        b"count" => wrong_arity("command|count"),
        b"list" if names.is_empty() => {
            RespReply::Array(COMMANDS.iter().map(|command| RespReply::text(command.name)).collect())
        }
        b"list" => RespReply::error("ERR syntax error"),
        b"info" if names.is_empty() => RespReply::Array(COMMANDS.iter().map(RedisCommand::entry).collect()),
        b"info" => RespReply::Array(
            names.iter().map(|name| lookup(name).map_or(RespReply::Null, RedisCommand::entry)).collect(),
        ),
        b"docs" if names.is_empty() => RespReply::Map(COMMANDS.iter().map(RedisCommand::docs).collect()),
        b"docs" => {
            RespReply::Map(names.iter().filter_map(|name| lookup(name)).map(RedisCommand::docs).collect())
        }
        _ => unknown_subcommand("command", what),
    }
}

impl RedisCommand {
    fn entry(&self) -> RespReply {
        let flags = self.flags.iter().map(|&flag| RespReply::Status(flag.into())).collect();
        RespReply::Array(vec![
            RespReply::text(self.name),
            RespReply::Integer(self.arity),
            RespReply::Array(flags),
            RespReply::Integer(self.key),
            RespReply::Integer(self.key),
            RespReply::Integer(self.key),
            // Categories, hints, key specifications and subcommands: newer clients expect them, and they may be empty.
            RespReply::Array(Vec::new()),
            RespReply::Array(Vec::new()),
            RespReply::Array(Vec::new()),
            RespReply::Array(Vec::new()),
        ])
    }

    fn docs(&self) -> (RespReply, RespReply) {
        let group = if self.name.starts_with("pool.") { "module" } else { "generic" };
        let docs = vec![
            (RespReply::text("summary"), RespReply::text(self.summary)),
            (RespReply::text("group"), RespReply::text(group)),
        ];
        (RespReply::text(self.name), RespReply::Map(docs))
    }
}
