use crate::reply::Reply;

/// A command that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    /// In lower case.
    pub(crate) name: &'static str,
    /// Words with the name; at least so many if negative.
    arity: i64,
    flags: &'static [&'static str],
    /// Where its first and last key stand; 0 for none.
    key: i64,
    summary: &'static str,
}

const fn command(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    key: i64,
    summary: &'static str,
) -> Command {
    Command { name, arity, flags, key, summary }
}

const FAST: &[&str] = &["fast"];
const OPEN: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth"];
const READ: &[&str] = &["readonly"];
const WRITE: &[&str] = &["write", "fast"];

/// All of them, by name.
static COMMANDS: [Command; 36] = [
    command("asking", 1, FAST, 0, "Taken for what cluster clients say; changes nothing"),
    command("auth", -2, OPEN, 0, "Says who the connection belongs to"),
    command("client", -2, FAST, 0, "Names the connection and tells about it"),
    command("cluster", -2, FAST, 0, "Tells about the cluster, which is this node alone"),
    command("command", -1, FAST, 0, "Tells which commands there are"),
    command("discard", 1, FAST, 0, "Forgets the transaction that was begun"),
    command("echo", 2, FAST, 0, "Returns the text"),
    command("eval", -3, &[], 0, "A pool's event, by the text of a known script"),
    command("evalsha", -3, &[], 0, "A pool's event, by the sum of a known script"),
    command("exec", 1, FAST, 0, "Carries the transaction out, in one piece"),
    command("hello", -1, OPEN, 0, "Chooses the protocol's version, may say who it is"),
    command("hget", 3, READ, 1, "The state of a number"),
    command("hgetall", 2, READ, 1, "The states of all numbers of a pool"),
    command("hlen", 2, READ, 1, "How many numbers a pool has"),
    command("info", -1, FAST, 0, "Tells about the server"),
    command("llen", 2, READ, 1, "How many numbers of a pool are idle and up"),
    command("lrange", 4, READ, 1, "Numbers of a pool that are idle and up, longest first"),
    command("multi", 1, FAST, 0, "Begins a transaction"),
    command("ping", -1, FAST, 0, "Shows that the connection lives"),
    command("pool.add", -3, WRITE, 1, "Numbers join a pool"),
    command("pool.call", -2, WRITE, 1, "Takes a number of a pool"),
    command("pool.create", -2, WRITE, 1, "Makes a pool, or changes how it behaves"),
    command("pool.del", -3, WRITE, 1, "Numbers leave a pool"),
    command("pool.hangup", -3, WRITE, 1, "A number is free again"),
    command("pool.list", 1, READ, 0, "The names of all pools"),
    command("pool.reg", -3, WRITE, 1, "Numbers are up"),
    command("pool.remove", -2, WRITE, 1, "Takes a pool away"),
    command("pool.renew", -4, WRITE, 1, "A busy number is held for longer"),
    command("pool.show", -2, READ, 1, "All there is to say of a pool or a number"),
    command("pool.unreg", -3, WRITE, 1, "Numbers are down"),
    command("quit", -1, OPEN, 0, "Closes the connection"),
    command("readonly", 1, FAST, 0, "Taken for what cluster clients say; changes nothing"),
    command("readwrite", 1, FAST, 0, "Taken for what cluster clients say; changes nothing"),
    command("reset", 1, OPEN, 0, "Makes the connection as new"),
    command("script", -2, FAST, 0, "Tells the sums of scripts"),
    command("select", 2, FAST, 0, "There is one data base, 0"),
];

/// Finds a command and sees to the number of its words; `Err` is Redis's own answer.
pub(crate) fn find(words: &[&[u8]]) -> Result<&'static Command, Reply> {
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
    if (exact || enough) && count <= most { Ok(found) } else { Err(arity(found.name)) }
}

fn lookup(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

pub(crate) fn arity(name: &str) -> Reply {
    Reply::error(format!("ERR wrong number of arguments for '{name}' command"))
}

pub(crate) fn subcommand(of: &str, word: &[u8]) -> Reply {
    let word = String::from_utf8_lossy(word.get(..128).unwrap_or(word));
    Reply::error(format!("ERR unknown subcommand '{word}'. Try {} HELP.", of.to_ascii_uppercase()))
}

/// Names at most 128 octets of command and arguments, as Redis does.
fn unknown(name: &[u8], words: &[&[u8]]) -> Reply {
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
    Reply::error(format!("ERR unknown command '{}', with args beginning with: {arguments}", shown(name, 128)))
}

/// `COMMAND` and what may follow it.
pub(crate) fn describe(arguments: &[&[u8]]) -> Reply {
    let Some((what, names)) = arguments.split_first() else {
        return Reply::Array(COMMANDS.iter().map(Command::entry).collect());
    };
    match what.to_ascii_lowercase().as_slice() {
        b"count" if names.is_empty() => Reply::Integer(i64::try_from(COMMANDS.len()).unwrap_or(i64::MAX)),
        b"count" => arity("command|count"),
        b"list" if names.is_empty() => {
            Reply::Array(COMMANDS.iter().map(|command| Reply::text(command.name)).collect())
        }
        b"list" => Reply::error("ERR syntax error"),
        b"info" if names.is_empty() => Reply::Array(COMMANDS.iter().map(Command::entry).collect()),
        b"info" => {
            Reply::Array(names.iter().map(|name| lookup(name).map_or(Reply::Null, Command::entry)).collect())
        }
        b"docs" if names.is_empty() => Reply::Map(COMMANDS.iter().map(Command::docs).collect()),
        b"docs" => Reply::Map(names.iter().filter_map(|name| lookup(name)).map(Command::docs).collect()),
        _ => subcommand("command", what),
    }
}

impl Command {
    fn entry(&self) -> Reply {
        let flags = self.flags.iter().map(|&flag| Reply::Status(flag.into())).collect();
        Reply::Array(vec![
            Reply::text(self.name),
            Reply::Integer(self.arity),
            Reply::Array(flags),
            Reply::Integer(self.key),
            Reply::Integer(self.key),
            Reply::Integer(self.key),
            // Categories, hints, key specifications and subcommands, which newer clients expect and may be empty.
            Reply::Array(Vec::new()),
            Reply::Array(Vec::new()),
            Reply::Array(Vec::new()),
            Reply::Array(Vec::new()),
        ])
    }

    fn docs(&self) -> (Reply, Reply) {
        let group = if self.name.starts_with("pool.") { "module" } else { "generic" };
        let docs = vec![
            (Reply::text("summary"), Reply::text(self.summary)),
            (Reply::text("group"), Reply::text(group)),
        ];
        (Reply::text(self.name), Reply::Map(docs))
    }
}
