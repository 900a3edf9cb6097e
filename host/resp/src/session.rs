use std::{collections::VecDeque, sync::Arc};

use bytes::{Buf, Bytes, BytesMut};
use redis_protocol::resp2::{decode, types::RangeFrame};
use smallvec::SmallVec;

use crate::{
    Event, Node, Options, ProtocolError, Reply, Request, Sum, Ticket,
    command::{self, arity, subcommand},
    connection::{self, Hello},
    gate::{Gate, Whole},
    inline,
    pool::{self, Asked, Names},
    reply::Manner,
    scripts::Standing,
    transaction::Transaction,
};

/// What an empty buffer may keep of its memory: connections that are idle are many.
const KEPT: usize = 64 << 10;

/// How a line of an HTTP request begins that a web page can have a browser send: such a page must not command us. There is
/// no command of these names.
const HTTP: [&[u8]; 2] = [b"post", b"host:"];

/// One connection of a Redis client, seen from our side of the socket.
///
/// Feed it bytes and answers; it has events for the owner and bytes for the peer. It never blocks and knows no clock.
#[derive(Debug)]
pub struct Session {
    options: Arc<Options>,
    id: i64,
    input: BytesMut,
    gate: Gate,
    events: VecDeque<Event>,
    /// Answers in the order of the requests; the first has the ticket `first`.
    slots: VecDeque<Slot>,
    first: u64,
    /// Octets of answers that wait behind others; they count as unsent.
    held: usize,
    out: BytesMut,
    state: State,
    /// Whether the peer has said who it is, or need not.
    known: bool,
    three: bool,
    name: Bytes,
    names: Names,
    node: Node,
    /// It speaks HTTP.
    http: bool,
    /// What was asked since `MULTI`.
    transaction: Option<Transaction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Requests are taken.
    Open,
    /// A password is being looked at; what follows depends on the answer.
    Judging,
    /// No more is taken; what is owed is still written.
    Closing,
}

/// The place of an answer.
#[derive(Debug)]
enum Slot {
    Ready(Bytes),
    Waiting { three: bool, manner: Manner },
    Judging { hello: Option<Hello> },
}

impl Session {
    /// A new connection. `id` is what `CLIENT ID` tells.
    #[must_use]
    pub fn new(options: Arc<Options>, id: i64) -> Self {
        Self {
            known: !options.accounts,
            options,
            id,
            input: BytesMut::new(),
            gate: Gate::default(),
            events: VecDeque::new(),
            slots: VecDeque::new(),
            first: 0,
            held: 0,
            out: BytesMut::new(),
            state: State::Open,
            three: false,
            name: Bytes::new(),
            names: Names::default(),
            node: Node { host: String::new(), port: 0 },
            http: false,
            transaction: None,
        }
    }

    /// Where the cluster's only node is told to be.
    #[must_use]
    pub fn at(mut self, node: Node) -> Self {
        self.node = node;
        self
    }

    /// Takes bytes as they came off the socket, in any split. After `QUIT` and after a mistake they are thrown away.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.state != State::Closing {
            self.input.extend_from_slice(bytes);
            self.advance();
        }
    }

    /// The next thing the owner must see to.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Answers a request. A ticket that waits for nothing is passed over.
    pub fn answer(&mut self, ticket: Ticket, reply: &Reply) {
        self.answer_later(ticket, reply);
        self.advance();
    }

    /// Answers requests of which the first has this ticket, and the others the ones after it.
    pub fn answer_all(&mut self, first: Ticket, replies: impl IntoIterator<Item = Reply>) {
        for (after, reply) in replies.into_iter().enumerate() {
            self.answer_later(first.after(after), &reply);
        }
        self.advance();
    }

    fn answer_later(&mut self, ticket: Ticket, reply: &Reply) {
        let first = self.first;
        let Some(slot) = self.slot(ticket) else { return };
        let Slot::Waiting { three, manner } = *slot else { return };
        if ticket.0 != first {
            let octets = written(reply, three, manner);
            let length = octets.len();
            *slot = Slot::Ready(octets);
            self.held += length;
            return;
        }
        // The usual case: answers come in the order of the requests.
        reply.write(three, manner, &mut self.out);
        self.slots.pop_front();
        self.first += 1;
        self.settle();
    }

    /// Says whether name and password of an `Event::Authenticate` belong together.
    pub fn judged(&mut self, ticket: Ticket, right: bool) {
        let Some(slot) = self.slot(ticket) else { return };
        let Slot::Judging { hello } = slot else { return };
        let hello = hello.take();
        let reply = if right {
            self.known = true;
            hello.map_or_else(Reply::ok, |hello| self.greet(hello))
        } else {
            Reply::error("WRONGPASS invalid username-password pair or user is disabled.")
        };
        let octets = written(&reply, self.three, Manner::Plain);
        let length = octets.len();
        if let Some(slot) = self.slot(ticket) {
            *slot = Slot::Ready(octets);
            self.held += length;
        }
        if self.state == State::Judging {
            self.state = State::Open;
        }
        self.settle();
        self.advance();
    }

    /// Bytes waiting to be written; empty if there are none.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.out
    }

    /// So many of [`Session::output`] are written.
    pub fn written(&mut self, octets: usize) {
        if octets < self.out.len() {
            self.out.advance(octets);
        } else if self.out.capacity() > KEPT {
            self.out = BytesMut::new();
        } else {
            self.out.clear();
        }
        self.advance();
    }

    /// Whether more should be read off the socket. What is given in spite of a no is kept, and not looked at yet.
    #[must_use]
    pub fn wants_bytes(&self) -> bool {
        self.ready_for_more() && self.input.len() < self.options.limits.octets
    }

    /// Whether all that was read is answered, but for a request that is not whole.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.events.is_empty()
    }

    /// Whether whoever sent this has said who they are, or need not.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Whether all is said: close the socket once all output is written.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Closing && self.slots.is_empty()
    }

    /// Whether the peer was cut off since it sent an HTTP request.
    #[must_use]
    pub fn is_http(&self) -> bool {
        self.http
    }

    fn ready_for_more(&self) -> bool {
        let limits = &self.options.limits;
        self.state == State::Open
            && self.slots.len() < limits.pipelined.max(1)
            && self.out.len() + self.held < limits.unsent.max(1)
    }

    /// Takes as many whole requests as the limits allow.
    fn advance(&mut self) {
        if self.input.is_empty() || !self.ready_for_more() {
            return;
        }
        // Aside while it is read, so that words need not be copied.
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        while self.ready_for_more() {
            let rest = input.get(at..).unwrap_or_default();
            match self.take(rest) {
                Ok(0) => break,
                Ok(octets) => at += octets,
                Err(error) => {
                    self.ready(&Reply::error(format!("ERR {error}")));
                    self.close();
                }
            }
        }
        if self.state == State::Closing || (at == input.len() && input.capacity() > KEPT) {
            input = BytesMut::new();
        } else if at == input.len() {
            input.clear();
        } else {
            input.advance(at);
        }
        self.input = input;
    }

    /// Serves the request at the head of the octets; says how long it is, 0 if it is not whole.
    fn take(&mut self, octets: &[u8]) -> Result<usize, ProtocolError> {
        let Some(whole) = self.gate.look(octets, &self.options.limits, !self.known)? else { return Ok(0) };
        match whole {
            Whole::Nothing(length) => Ok(length),
            Whole::Line(length) => {
                let words = inline::split(octets.get(..length).unwrap_or_default())?;
                let words: SmallVec<[&[u8]; 8]> = words.iter().map(Vec::as_slice).collect();
                if !words.is_empty() {
                    self.serve(&words);
                }
                Ok(length)
            }
            Whole::Array(length) => {
                let request = octets.get(..length).unwrap_or_default();
                let Ok(Some((RangeFrame::Array(frames), _))) = decode::decode_range(request) else {
                    return Err(ProtocolError::Elements);
                };
                let word = |frame: &RangeFrame| match frame {
                    RangeFrame::BulkString((from, to)) => request.get(*from..*to),
                    _ => None,
                };
                let words: Option<SmallVec<[&[u8]; 8]>> = frames.iter().map(word).collect();
                self.serve(&words.ok_or(ProtocolError::Length)?);
                Ok(length)
            }
        }
    }

    fn serve(&mut self, words: &[&[u8]]) {
        if words.first().is_some_and(|word| HTTP.iter().any(|http| word.eq_ignore_ascii_case(http))) {
            self.http = true;
            return self.close();
        }
        let command = match command::find(words) {
            Ok(command) => command,
            Err(error) => {
                if let Some(transaction) = &mut self.transaction {
                    transaction.fail();
                }
                return self.ready(&error);
            }
        };
        let arguments = words.get(1..).unwrap_or_default();
        if !self.known && !matches!(command.name, "auth" | "hello" | "quit" | "reset") {
            return self.ready(&Reply::error("NOAUTH Authentication required."));
        }
        if let Some(transaction) = &mut self.transaction
            && !matches!(command.name, "multi" | "exec" | "discard" | "quit" | "reset")
        {
            let reply = if matches!(command.name, "auth" | "hello") {
                transaction.fail();
                Reply::error("ERR Command not allowed inside a transaction")
            } else {
                transaction.keep(words, &self.options.limits)
            };
            return self.ready(&reply);
        }
        match (command.name, arguments) {
            ("multi", _) => self.begin(),
            ("exec", _) => self.execute(),
            ("discard", _) => {
                let reply = match self.transaction.take() {
                    Some(_) => Reply::ok(),
                    None => Reply::error("ERR DISCARD without MULTI"),
                };
                self.ready(&reply);
            }
            ("auth", arguments) => self.auth(arguments),
            ("hello", arguments) => self.hello(arguments),
            ("quit", _) => {
                self.ready(&Reply::ok());
                self.close();
            }
            ("reset", _) => self.reset(),
            ("ping", []) => self.ready(&Reply::Status("PONG".into())),
            ("ping" | "echo", [text, ..]) => self.ready(&Reply::Text(Bytes::copy_from_slice(text))),
            ("select", [index]) => {
                let reply = match *index {
                    b"0" => Reply::ok(),
                    digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
                        Reply::error("ERR DB index is out of range")
                    }
                    _ => Reply::error("ERR value is not an integer or out of range"),
                };
                self.ready(&reply);
            }
            ("asking" | "readonly" | "readwrite", _) => self.ready(&Reply::ok()),
            ("cluster", arguments) => match self.node.answer(arguments) {
                Ok(request) => self.ask(command.name, request, Manner::Plain),
                Err(reply) => self.ready(&reply),
            },
            ("client", arguments) => {
                let reply = connection::client(arguments, self.id, self.three, &mut self.name);
                self.ready(&reply);
            }
            ("command", arguments) => self.ready(&command::describe(arguments)),
            ("info", arguments) => {
                let section = |word: &&[u8]| String::from_utf8_lossy(word).to_ascii_lowercase();
                let sections = arguments.iter().map(section).collect();
                self.ask(command.name, Request::Info(sections), Manner::Plain);
            }
            ("script", arguments) => {
                let reply = self.script(arguments);
                self.ready(&reply);
            }
            ("eval", [text, rest @ ..]) => {
                let sum = Sum::of(text);
                self.options.scripts.load(sum);
                self.call_script(command.name, sum, rest);
            }
            ("evalsha", [sum, rest @ ..]) => match Sum::parse(sum) {
                Some(sum) => self.call_script(command.name, sum, rest),
                None => self.ready(&no_script()),
            },
            ("hget" | "hgetall" | "hlen" | "lrange" | "llen", [key, rest @ ..]) => {
                let asked = pool::read(&mut self.names, command.name, key, rest, self.options.plain_replies);
                self.ask_or_tell(command.name, asked);
            }
            (name, arguments) => {
                let asked = pool::plain(&mut self.names, name, arguments);
                self.ask_or_tell(name, asked);
            }
        }
    }

    fn begin(&mut self) {
        let reply = if self.transaction.is_some() {
            Reply::error("ERR MULTI calls can not be nested")
        } else {
            self.transaction = Some(Transaction::default());
            Reply::ok()
        };
        self.ready(&reply);
    }

    /// Carries out what was kept since `MULTI`, without looking at anything else in between: the owner finds the requests one
    /// behind the other. Their answers, one behind the other, are the elements of the answer.
    fn execute(&mut self) {
        let Some(transaction) = self.transaction.take() else {
            return self.ready(&Reply::error("ERR EXEC without MULTI"));
        };
        let Some(commands) = transaction.commands() else {
            let reply = Reply::error("EXECABORT Transaction discarded because of previous errors.");
            return self.ready(&reply);
        };
        self.ready_octets(format!("*{}\r\n", commands.len()).into());
        for words in commands {
            let words: SmallVec<[&[u8]; 8]> = words.iter().map(|word| &**word).collect();
            self.serve(&words);
        }
    }

    fn auth(&mut self, arguments: &[&[u8]]) {
        let (name, password) = match arguments {
            [password] => (Bytes::from_static(b"default"), Bytes::copy_from_slice(password)),
            [name, password] => (Bytes::copy_from_slice(name), Bytes::copy_from_slice(password)),
            _ => return self.ready(&Reply::error("ERR syntax error")),
        };
        if !self.options.accounts && arguments.len() == 1 {
            return self.ready(&Reply::error(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        self.judge(name, password, None);
    }

    fn hello(&mut self, arguments: &[&[u8]]) {
        match Hello::parse(arguments) {
            Err(error) => self.ready(&error),
            Ok(mut hello) => match hello.account.take() {
                Some((name, password)) => self.judge(name, password, Some(hello)),
                None if !self.known => self.ready(&Reply::error(
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                     <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                     the same time",
                )),
                None => {
                    let reply = self.greet(hello);
                    self.ready(&reply);
                }
            },
        }
    }

    fn greet(&mut self, hello: Hello) -> Reply {
        self.three = hello.three.unwrap_or(self.three);
        if let Some(name) = hello.client {
            self.name = name;
        }
        Hello::answer(&self.options.version, self.three, self.id)
    }

    fn judge(&mut self, name: Bytes, password: Bytes, hello: Option<Hello>) {
        let ticket = self.push(Slot::Judging { hello });
        self.state = State::Judging;
        self.events.push_back(Event::Authenticate { ticket, name, password });
    }

    fn reset(&mut self) {
        self.known = !self.options.accounts;
        self.three = false;
        self.name = Bytes::new();
        self.transaction = None;
        self.events.push_back(Event::Forgotten);
        self.ready(&Reply::Status("RESET".into()));
    }

    fn script(&self, arguments: &[&[u8]]) -> Reply {
        let scripts = &self.options.scripts;
        let Some((what, rest)) = arguments.split_first() else { return arity("script") };
        match (what.to_ascii_lowercase().as_slice(), rest) {
            (b"load", [text]) => {
                let sum = Sum::of(text);
                scripts.load(sum);
                Reply::text(&sum.to_string())
            }
            (b"exists", sums @ [_, ..]) => {
                let there = |sum: &&[u8]| {
                    Sum::parse(sum).is_some_and(|sum| scripts.standing(sum) != Standing::Unknown)
                };
                Reply::Array(sums.iter().map(|sum| Reply::Integer(i64::from(there(sum)))).collect())
            }
            (b"flush", [] | [_]) => {
                scripts.flush();
                Reply::ok()
            }
            (word @ (b"load" | b"exists" | b"flush"), _) => {
                arity(&format!("script|{}", String::from_utf8_lossy(word)))
            }
            _ => subcommand("script", what),
        }
    }

    /// `numkeys key… argument…`, behind the script or its sum.
    fn call_script(&mut self, command: &'static str, sum: Sum, words: &[&[u8]]) {
        match self.options.scripts.standing(sum) {
            Standing::Unknown => self.ready(&no_script()),
            Standing::Loaded => self.ready(&Reply::error(format!(
                "ERR no Lua is run here, and the script {sum} is not among those that stand for number pools"
            ))),
            Standing::Mapped => {
                let asked = script_request(&mut self.names, words, self.options.plain_replies);
                self.ask_or_tell(command, asked);
            }
        }
    }

    fn ask_or_tell(&mut self, command: &'static str, asked: Asked) {
        match asked {
            Ok((request, manner)) => self.ask(command, request, manner),
            Err(reply) => self.ready(&reply),
        }
    }

    fn ask(&mut self, command: &'static str, request: Request, manner: Manner) {
        let ticket = self.push(Slot::Waiting { three: self.three, manner });
        self.events.push_back(Event::Request { ticket, command, request });
    }

    /// Answers at once, in its turn.
    fn ready(&mut self, reply: &Reply) {
        if self.slots.is_empty() {
            reply.write(self.three, Manner::Plain, &mut self.out);
            self.first += 1;
        } else {
            self.ready_octets(written(reply, self.three, Manner::Plain));
        }
    }

    /// A part of an answer.
    fn ready_octets(&mut self, octets: Bytes) {
        if self.slots.is_empty() {
            self.out.extend_from_slice(&octets);
            self.first += 1;
        } else {
            self.held += octets.len();
            self.push(Slot::Ready(octets));
        }
    }

    fn close(&mut self) {
        self.state = State::Closing;
    }

    fn push(&mut self, slot: Slot) -> Ticket {
        let ticket = Ticket(self.first + self.slots.len() as u64);
        self.slots.push_back(slot);
        ticket
    }

    fn slot(&mut self, ticket: Ticket) -> Option<&mut Slot> {
        let at = usize::try_from(ticket.0.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(at)
    }

    /// Writes the answers that have become first.
    fn settle(&mut self) {
        while let Some(Slot::Ready(octets)) = self.slots.front() {
            self.out.extend_from_slice(octets);
            self.held -= octets.len();
            self.slots.pop_front();
            self.first += 1;
        }
    }
}

fn script_request(names: &mut Names, words: &[&[u8]], plain: bool) -> Asked {
    let (count, words) = words.split_first().ok_or_else(|| Reply::error("ERR syntax error"))?;
    let count: i64 = std::str::from_utf8(count)
        .ok()
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| Reply::error("ERR value is not an integer or out of range"))?;
    let count = usize::try_from(count).map_err(|_| Reply::error("ERR Number of keys can't be negative"))?;
    let (keys, arguments) = words
        .split_at_checked(count)
        .ok_or_else(|| Reply::error("ERR Number of keys can't be greater than number of args"))?;
    match keys {
        [key] => pool::script(names, key, arguments, plain),
        _ => Err(Reply::error("ERR the script takes one key, the pool")),
    }
}

fn no_script() -> Reply {
    Reply::error("NOSCRIPT No matching script. Please use EVAL.")
}

fn written(reply: &Reply, three: bool, manner: Manner) -> Bytes {
    let mut out = BytesMut::new();
    reply.write(three, manner, &mut out);
    out.freeze()
}
