use std::{collections::VecDeque, sync::Arc};

use bytes::{Buf, Bytes, BytesMut};
use redis_protocol::resp2::{decode, types::RangeFrame};
use smallvec::SmallVec;

use crate::{
    ClusterNode, Event, ProtocolError, ReplyTicket, RespOptions, RespReply, RespRequest, ScriptSha1,
    client_commands::{self, Hello},
    inline,
    pool_commands::{self, ParsedRequest, PoolNameCache},
    redis_command::{self, unknown_subcommand, wrong_arity},
    request_scanner::{CompleteRequest, RequestScanner},
    resp_reply::ReplyFormat,
    scripts::ScriptStatus,
    transaction::Transaction,
};

/// Capacity that an empty buffer keeps; most connections are idle.
const RETAINED_CAPACITY: usize = 64 << 10;

/// First words of HTTP request lines that a web page can make a browser send. Such a page must not execute commands; no
/// Redis command has these names.
const HTTP_PREFIXES: [&[u8]; 2] = [b"post", b"host:"];

/// The server side of one Redis connection.
///
/// Feed it received octets and replies; it returns events for the owner and octets for the client. It does no I/O and
/// reads no clock.
#[derive(Debug)]
pub struct Session {
    options: Arc<RespOptions>,
    id: i64,
    input: BytesMut,
    scanner: RequestScanner,
    events: VecDeque<Event>,
    /// Replies in the order of the requests; the first one has the ticket `first_ticket`.
    replies: VecDeque<ReplySlot>,
    first_ticket: u64,
    /// Octets of replies queued behind others; they count as unsent.
    queued_octets: usize,
    output: BytesMut,
    state: State,
    /// The request of the pending login, as received.
    login_request: Bytes,
    /// Whether the client has logged in, or there are no accounts.
    authenticated: bool,
    resp3: bool,
    client_name: Bytes,
    pool_names: PoolNameCache,
    node: ClusterNode,
    /// Whether the client has sent an HTTP request.
    http: bool,
    /// Commands queued since `MULTI`.
    transaction: Option<Transaction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Requests are accepted.
    Open,
    /// A login is pending; later requests depend on its result.
    Authenticating,
    /// No request is accepted; pending replies are still sent.
    Closing,
}

/// The position of a reply.
#[derive(Debug)]
enum ReplySlot {
    Ready(Bytes),
    Pending { resp3: bool, format: ReplyFormat },
    Authenticating { hello: Option<Hello> },
}

impl Session {
    /// Creates a session. `id` is the reply to `CLIENT ID`.
    #[must_use]
    pub fn new(options: Arc<RespOptions>, id: i64) -> Self {
        Self {
            authenticated: !options.accounts,
            options,
            id,
            input: BytesMut::new(),
            scanner: RequestScanner::default(),
            events: VecDeque::new(),
            replies: VecDeque::new(),
            first_ticket: 0,
            queued_octets: 0,
            output: BytesMut::new(),
            state: State::Open,
            login_request: Bytes::new(),
            resp3: false,
            client_name: Bytes::new(),
            pool_names: PoolNameCache::default(),
            node: ClusterNode { host: String::new(), port: 0 },
            http: false,
            transaction: None,
        }
    }

    /// Sets the address of the only cluster node.
    #[must_use]
    pub fn with_node(mut self, node: ClusterNode) -> Self {
        self.node = node;
        self
    }

    /// Feeds received octets, split anywhere. After `QUIT` and after an error they are ignored.
    pub fn receive(&mut self, bytes: &[u8]) {
        if self.state != State::Closing {
            self.input.extend_from_slice(bytes);
            self.advance();
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Answers a request. A ticket without a pending request is ignored.
    pub fn answer(&mut self, ticket: ReplyTicket, reply: &RespReply) {
        self.store_reply(ticket, reply);
        self.advance();
    }

    /// Answers consecutive requests, starting with this ticket.
    pub fn answer_all(&mut self, first_ticket: ReplyTicket, replies: impl IntoIterator<Item = RespReply>) {
        for (after, reply) in replies.into_iter().enumerate() {
            self.store_reply(first_ticket.after(after), &reply);
        }
        self.advance();
    }

    fn store_reply(&mut self, ticket: ReplyTicket, reply: &RespReply) {
        let first_ticket = self.first_ticket;
        let Some(slot) = self.slot(ticket) else { return };
        let ReplySlot::Pending { resp3, format } = *slot else { return };
        if ticket.0 != first_ticket {
            let octets = encode_reply(reply, resp3, format);
            let length = octets.len();
            *slot = ReplySlot::Ready(octets);
            self.queued_octets += length;
            return;
        }
        // The usual case: replies in the order of the requests.
        reply.write(resp3, format, &mut self.output);
        self.replies.pop_front();
        self.first_ticket += 1;
        self.flush_ready();
    }

    /// Answers an `Event::Authenticate`.
    pub fn finish_login(&mut self, ticket: ReplyTicket, accepted: bool) {
        let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
        self.end_login(ticket, if accepted { Ok(()) } else { Err(wrong) });
    }

    /// Refuses the login of an `Event::Authenticate` with this error.
    pub fn refuse_login(&mut self, ticket: ReplyTicket, error: &str) {
        self.end_login(ticket, Err(error));
    }

    /// The request of the pending login, as received; empty if no login is pending.
    #[must_use]
    pub fn login_request(&self) -> &[u8] {
        &self.login_request
    }

    /// Ends the session, because another node serves the client. Returns the octets that were received and not processed: while a
    /// login is pending, all octets after the login.
    #[must_use]
    pub fn take_unprocessed(&mut self) -> BytesMut {
        self.start_closing();
        std::mem::take(&mut self.input)
    }

    fn end_login(&mut self, ticket: ReplyTicket, result: Result<(), &str>) {
        let Some(slot) = self.slot(ticket) else { return };
        let ReplySlot::Authenticating { hello } = slot else { return };
        let hello = hello.take();
        self.login_request = Bytes::new();
        let reply = match result {
            Ok(()) => {
                self.authenticated = true;
                hello.map_or_else(RespReply::ok, |hello| self.hello_reply(hello))
            }
            Err(error) => RespReply::error(error.to_owned()),
        };
        let octets = encode_reply(&reply, self.resp3, ReplyFormat::Plain);
        let length = octets.len();
        if let Some(slot) = self.slot(ticket) {
            *slot = ReplySlot::Ready(octets);
            self.queued_octets += length;
        }
        if self.state == State::Authenticating {
            self.state = State::Open;
        }
        self.flush_ready();
        self.advance();
    }

    /// Octets to write; empty if there are none.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Removes written octets from [`Session::output`].
    pub fn mark_written(&mut self, octets: usize) {
        if octets < self.output.len() {
            self.output.advance(octets);
        } else if self.output.capacity() > RETAINED_CAPACITY {
            self.output = BytesMut::new();
        } else {
            self.output.clear();
        }
        self.advance();
    }

    /// Whether the owner should read more. Octets fed despite `false` are kept, but not processed yet.
    #[must_use]
    pub fn wants_bytes(&self) -> bool {
        self.accepts_requests() && self.input.len() < self.options.limits.octets
    }

    /// Whether all complete requests are answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.replies.is_empty() && self.events.is_empty()
    }

    /// Whether the client has logged in, or there are no accounts.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Whether the session has ended: close the socket after all output is written.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state == State::Closing && self.replies.is_empty()
    }

    /// Whether the session ended because of an HTTP request.
    #[must_use]
    pub fn is_http(&self) -> bool {
        self.http
    }

    fn accepts_requests(&self) -> bool {
        let limits = &self.options.limits;
        self.state == State::Open
            && self.replies.len() < limits.pipelined.max(1)
            && self.output.len() + self.queued_octets < limits.output_buffer.max(1)
    }

    /// Processes complete requests within the limits.
    fn advance(&mut self) {
        if self.input.is_empty() || !self.accepts_requests() {
            return;
        }
        // The buffer is moved out so that words need not be copied.
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        while self.accepts_requests() {
            let rest = input.get(at..).unwrap_or_default();
            match self.parse_next(rest) {
                Ok(0) => break,
                Ok(octets) => at += octets,
                Err(error) => {
                    self.reply_now(&RespReply::error(format!("ERR {error}")));
                    self.start_closing();
                }
            }
        }
        if self.state == State::Closing || (at == input.len() && input.capacity() > RETAINED_CAPACITY) {
            input = BytesMut::new();
        } else if at == input.len() {
            input.clear();
        } else {
            input.advance(at);
        }
        self.input = input;
    }

    /// Processes the request at the start of the octets. Returns its length, or 0 if it is incomplete.
    fn parse_next(&mut self, octets: &[u8]) -> Result<usize, ProtocolError> {
        let Some(complete) = self.scanner.scan(octets, &self.options.limits, !self.authenticated)? else {
            return Ok(0);
        };
        match complete {
            CompleteRequest::Nothing(length) => Ok(length),
            CompleteRequest::Line(length) => {
                let words = inline::split(octets.get(..length).unwrap_or_default())?;
                let words: SmallVec<[&[u8]; 8]> = words.iter().map(Vec::as_slice).collect();
                if !words.is_empty() {
                    self.execute_command(&words);
                    self.buffer_login(octets, length);
                }
                Ok(length)
            }
            CompleteRequest::Array(length) => {
                let request = octets.get(..length).unwrap_or_default();
                let Ok(Some((RangeFrame::Array(frames), _))) = decode::decode_range(request) else {
                    return Err(ProtocolError::Elements);
                };
                let word = |frame: &RangeFrame| match frame {
                    RangeFrame::BulkString((from, to)) => request.get(*from..*to),
                    _ => None,
                };
                let words: Option<SmallVec<[&[u8]; 8]>> = frames.iter().map(word).collect();
                self.execute_command(&words.ok_or(ProtocolError::Length)?);
                self.buffer_login(octets, length);
                Ok(length)
            }
        }
    }

    /// Stores the request, which has this length, if it has begun a login.
    fn buffer_login(&mut self, octets: &[u8], length: usize) {
        if self.state == State::Authenticating {
            self.login_request = Bytes::copy_from_slice(octets.get(..length).unwrap_or_default());
        }
    }

    fn execute_command(&mut self, words: &[&[u8]]) {
        if words.first().is_some_and(|word| HTTP_PREFIXES.iter().any(|http| word.eq_ignore_ascii_case(http)))
        {
            self.http = true;
            return self.start_closing();
        }
        let command = match redis_command::find(words) {
            Ok(command) => command,
            Err(error) => {
                if let Some(transaction) = &mut self.transaction {
                    transaction.fail();
                }
                return self.reply_now(&error);
            }
        };
        let arguments = words.get(1..).unwrap_or_default();
        if !self.authenticated && !matches!(command.name, "auth" | "hello" | "quit" | "reset") {
            return self.reply_now(&RespReply::error("NOAUTH Authentication required."));
        }
        if let Some(transaction) = &mut self.transaction
            && !matches!(command.name, "multi" | "exec" | "discard" | "quit" | "reset")
        {
            let reply = if matches!(command.name, "auth" | "hello") {
                transaction.fail();
                RespReply::error("ERR Command not allowed inside a transaction")
            } else {
                transaction.queue(words, &self.options.limits)
            };
            return self.reply_now(&reply);
        }
        match (command.name, arguments) {
            ("multi", _) => self.begin_transaction(),
            ("exec", _) => self.execute_transaction(),
            ("discard", _) => {
                let reply = match self.transaction.take() {
                    Some(_) => RespReply::ok(),
                    None => RespReply::error("ERR DISCARD without MULTI"),
                };
                self.reply_now(&reply);
            }
            ("auth", arguments) => self.auth(arguments),
            ("hello", arguments) => self.hello(arguments),
            ("quit", _) => {
                self.reply_now(&RespReply::ok());
                self.start_closing();
            }
            ("reset", _) => self.reset(),
            ("ping", []) => self.reply_now(&RespReply::Status("PONG".into())),
            ("ping" | "echo", [text, ..]) => self.reply_now(&RespReply::Text(Bytes::copy_from_slice(text))),
            ("select", [index]) => {
                let reply = match *index {
                    b"0" => RespReply::ok(),
                    digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
                        RespReply::error("ERR DB index is out of range")
                    }
                    _ => RespReply::error("ERR value is not an integer or out of range"),
                };
                self.reply_now(&reply);
            }
            ("asking" | "readonly" | "readwrite", _) => self.reply_now(&RespReply::ok()),
            ("cluster", arguments) => match self.node.cluster_reply(arguments) {
                Ok(request) => self.emit_request(command.name, request, ReplyFormat::Plain),
                Err(reply) => self.reply_now(&reply),
            },
            ("client", arguments) => {
                let reply =
                    client_commands::client_reply(arguments, self.id, self.resp3, &mut self.client_name);
                self.reply_now(&reply);
            }
            ("command", arguments) => self.reply_now(&redis_command::command_reply(arguments)),
            ("info", arguments) => {
                let section = |word: &&[u8]| String::from_utf8_lossy(word).to_ascii_lowercase();
                let sections = arguments.iter().map(section).collect();
                self.emit_request(command.name, RespRequest::Info(sections), ReplyFormat::Plain);
            }
            ("script", arguments) => {
                let reply = self.script_reply(arguments);
                self.reply_now(&reply);
            }
            ("eval", [text, rest @ ..]) => {
                let sum = ScriptSha1::of(text);
                self.options.scripts.load(sum);
                self.call_script(command.name, sum, rest);
            }
            ("evalsha", [sum, rest @ ..]) => match ScriptSha1::parse(sum) {
                Some(sum) => self.call_script(command.name, sum, rest),
                None => self.reply_now(&no_script_error()),
            },
            ("hget" | "hgetall" | "hlen" | "lrange" | "llen", [key, rest @ ..]) => {
                let parsed = pool_commands::parse_key_read(
                    &mut self.pool_names,
                    command.name,
                    key,
                    rest,
                    self.options.plain_replies,
                );
                self.dispatch_parsed(command.name, parsed);
            }
            (name, arguments) => {
                let parsed = pool_commands::parse_pool_command(&mut self.pool_names, name, arguments);
                self.dispatch_parsed(name, parsed);
            }
        }
    }

    fn begin_transaction(&mut self) {
        let reply = if self.transaction.is_some() {
            RespReply::error("ERR MULTI calls can not be nested")
        } else {
            self.transaction = Some(Transaction::default());
            RespReply::ok()
        };
        self.reply_now(&reply);
    }

    /// Executes the commands queued since `MULTI`, without other requests in between. Their replies are the elements of
    /// the reply.
    fn execute_transaction(&mut self) {
        let Some(transaction) = self.transaction.take() else {
            return self.reply_now(&RespReply::error("ERR EXEC without MULTI"));
        };
        let Some(commands) = transaction.commands() else {
            let reply = RespReply::error("EXECABORT Transaction discarded because of previous errors.");
            return self.reply_now(&reply);
        };
        self.reply_octets(format!("*{}\r\n", commands.len()).into());
        for words in commands {
            let words: SmallVec<[&[u8]; 8]> = words.iter().map(|word| &**word).collect();
            self.execute_command(&words);
        }
    }

    fn auth(&mut self, arguments: &[&[u8]]) {
        let (name, password) = match arguments {
            [password] => (Bytes::from_static(b"default"), Bytes::copy_from_slice(password)),
            [name, password] => (Bytes::copy_from_slice(name), Bytes::copy_from_slice(password)),
            _ => return self.reply_now(&RespReply::error("ERR syntax error")),
        };
        if !self.options.accounts && arguments.len() == 1 {
            return self.reply_now(&RespReply::error(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        self.request_login(name, password, None);
    }

    fn hello(&mut self, arguments: &[&[u8]]) {
        match Hello::parse(arguments) {
            Err(error) => self.reply_now(&error),
            Ok(mut hello) => match hello.account.take() {
                Some((name, password)) => self.request_login(name, password, Some(hello)),
                None if !self.authenticated => self.reply_now(&RespReply::error(
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
                     <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
                     the same time",
                )),
                None => {
                    let reply = self.hello_reply(hello);
                    self.reply_now(&reply);
                }
            },
        }
    }

    fn hello_reply(&mut self, hello: Hello) -> RespReply {
        self.resp3 = hello.resp3.unwrap_or(self.resp3);
        if let Some(name) = hello.client {
            self.client_name = name;
        }
        Hello::reply(&self.options.version, self.resp3, self.id)
    }

    fn request_login(&mut self, name: Bytes, password: Bytes, hello: Option<Hello>) {
        let ticket = self.push_slot(ReplySlot::Authenticating { hello });
        self.state = State::Authenticating;
        self.events.push_back(Event::Authenticate { ticket, name, password });
    }

    fn reset(&mut self) {
        self.authenticated = !self.options.accounts;
        self.resp3 = false;
        self.client_name = Bytes::new();
        self.transaction = None;
        self.events.push_back(Event::Reset);
        self.reply_now(&RespReply::Status("RESET".into()));
    }

    fn script_reply(&self, arguments: &[&[u8]]) -> RespReply {
        let scripts = &self.options.scripts;
        let Some((what, rest)) = arguments.split_first() else { return wrong_arity("script") };
        match (what.to_ascii_lowercase().as_slice(), rest) {
            (b"load", [text]) => {
                let sum = ScriptSha1::of(text);
                scripts.load(sum);
                RespReply::text(&sum.to_string())
            }
            (b"exists", sums @ [_, ..]) => {
                let is_loaded = |sum: &&[u8]| {
                    ScriptSha1::parse(sum).is_some_and(|sum| scripts.status(sum) != ScriptStatus::Unknown)
                };
                RespReply::Array(
                    sums.iter().map(|sum| RespReply::Integer(i64::from(is_loaded(sum)))).collect(),
                )
            }
            (b"flush", [] | [_]) => {
                scripts.flush();
                RespReply::ok()
            }
            (word @ (b"load" | b"exists" | b"flush"), _) => {
                wrong_arity(&format!("script|{}", String::from_utf8_lossy(word)))
            }
            _ => unknown_subcommand("script", what),
        }
    }

    /// `numkeys key… argument…`, after the script or its SHA-1 sum.
    fn call_script(&mut self, command: &'static str, sum: ScriptSha1, words: &[&[u8]]) {
        match self.options.scripts.status(sum) {
            ScriptStatus::Unknown => self.reply_now(&no_script_error()),
            ScriptStatus::Loaded => self.reply_now(&RespReply::error(format!(
                "ERR Lua scripts are not executed, and the script {sum} is not mapped to number pools"
            ))),
            ScriptStatus::Mapped => {
                let parsed = parse_script_request(&mut self.pool_names, words, self.options.plain_replies);
                self.dispatch_parsed(command, parsed);
            }
        }
    }

    fn dispatch_parsed(&mut self, command: &'static str, parsed: ParsedRequest) {
        match parsed {
            Ok((request, format)) => self.emit_request(command, request, format),
            Err(reply) => self.reply_now(&reply),
        }
    }

    fn emit_request(&mut self, command: &'static str, request: RespRequest, format: ReplyFormat) {
        let ticket = self.push_slot(ReplySlot::Pending { resp3: self.resp3, format });
        self.events.push_back(Event::Request { ticket, command, request });
    }

    /// Replies immediately, in the order of the requests.
    fn reply_now(&mut self, reply: &RespReply) {
        if self.replies.is_empty() {
            reply.write(self.resp3, ReplyFormat::Plain, &mut self.output);
            self.first_ticket += 1;
        } else {
            self.reply_octets(encode_reply(reply, self.resp3, ReplyFormat::Plain));
        }
    }

    /// Queues a part of a reply.
    fn reply_octets(&mut self, octets: Bytes) {
        if self.replies.is_empty() {
            self.output.extend_from_slice(&octets);
            self.first_ticket += 1;
        } else {
            self.queued_octets += octets.len();
            self.push_slot(ReplySlot::Ready(octets));
        }
    }

    fn start_closing(&mut self) {
        self.state = State::Closing;
    }

    fn push_slot(&mut self, slot: ReplySlot) -> ReplyTicket {
        let ticket = ReplyTicket(self.first_ticket + self.replies.len() as u64);
        self.replies.push_back(slot);
        ticket
    }

    fn slot(&mut self, ticket: ReplyTicket) -> Option<&mut ReplySlot> {
        let at = usize::try_from(ticket.0.checked_sub(self.first_ticket)?).ok()?;
        self.replies.get_mut(at)
    }

    /// Writes the replies that are next in order.
    fn flush_ready(&mut self) {
        while let Some(ReplySlot::Ready(octets)) = self.replies.front() {
            self.output.extend_from_slice(octets);
            self.queued_octets -= octets.len();
            self.replies.pop_front();
            self.first_ticket += 1;
        }
    }
}

fn parse_script_request(pool_names: &mut PoolNameCache, words: &[&[u8]], plain: bool) -> ParsedRequest {
    let (count, words) = words.split_first().ok_or_else(|| RespReply::error("ERR syntax error"))?;
    let count: i64 = std::str::from_utf8(count)
        .ok()
        .and_then(|count| count.parse().ok())
        .ok_or_else(|| RespReply::error("ERR value is not an integer or out of range"))?;
    let count =
        usize::try_from(count).map_err(|_| RespReply::error("ERR Number of keys can't be negative"))?;
    let (keys, arguments) = words
        .split_at_checked(count)
        .ok_or_else(|| RespReply::error("ERR Number of keys can't be greater than number of args"))?;
    match keys {
        [key] => pool_commands::parse_script_call(pool_names, key, arguments, plain),
        _ => Err(RespReply::error("ERR the script takes one key, the pool")),
    }
}

fn no_script_error() -> RespReply {
    RespReply::error("NOSCRIPT No matching script. Please use EVAL.")
}

fn encode_reply(reply: &RespReply, resp3: bool, format: ReplyFormat) -> Bytes {
    let mut output = BytesMut::new();
    reply.write(resp3, format, &mut output);
    output.freeze()
}
