"""SGIP nodes in plain Python: a gateway, an SP, a bare socket, and the codec alone.

Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
Start: python3 sgip.py '{"role": "gateway" | "sp" | "raw" | "codec", …}'

A gateway listens for login type 1 (Submit, Trace) and dials the SP with type 2 (Deliver, Report, UserRpt); an SP does it
the other way round. Both are made of the same two halves, `Listener` and `Dialler`, whose options are described there.
Received and pending commands survive a connection.

Actions for both:
  {"set": {options}}            changes options of the running peer
  {"send": {PDU}, "tag": any}   a command on our outbound connection; without "sequence" it gets the next one.
                                "times": n sends the same octets n times; "now": true ignores the window
  {"answer": "forwards" | "backwards" | n}   sends held answers ("hold"); n: that many, in order
  {"dial": {"port": n, …}}      the address to dial; dials even if there is nothing to send
  {"drop": "dialled" | "taken" | "all"}  cuts connections
  {"unbind": true}              unbinds; the next command dials again
  {"count": true}               event "counts"
Actions of a gateway: {"report": {"sequence": […], "user": "86…", "state": 0, "error": 0}, …as of send},
  {"deliver": {fields, "text": "…"}, …as of send} (long texts become parts).
Actions of an SP: {"submit": {fields, "text": "…"}, …as of send} (long texts become parts, each its own sequence).

Events: {"event": "listening", "port"}; of the listener "bound" {"by", "login_type", "result"}, "taken" {the PDU as in
`sgip_codec`, "result", "duplicate", "conflict", "unanswered"}, "unbound", "closed", "broken" {"text", "hex"}, "unasked";
of the dialler "dialled" {"result"}, "unreachable", "sent" {the PDU}, "answered" {"command", "sequence", "result", "tag",
"times"}, "resent" {"sequence"}, "violation", "hung-up".
"""

import asyncio
import collections
import datetime
import json
import sys

import sgip_codec as codec

BEIJING = datetime.timezone(datetime.timedelta(hours=8))


def tell(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


def background(tasks, coroutine):
    """Runs a coroutine as a task; keeps a reference, since an unreferenced task may be collected and its failure lost."""
    task = asyncio.get_running_loop().create_task(coroutine)
    tasks.add(task)

    def ended(task):
        tasks.discard(task)
        if not task.cancelled() and task.exception():
            tell("error", text=repr(task.exception()))

    task.add_done_callback(ended)
    return task


async def read_pdu(reader):
    """The next PDU, or None at the end of the connection."""
    try:
        start = await reader.readexactly(4)
        return start + await reader.readexactly(codec.length(start) - 4)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


class Sequences:
    """Node, MMDDhhmmss of Beijing, counter."""

    def __init__(self, options):
        self.node = options.get("node", 101001)
        self.counter = options.get("counter", 0)

    def next(self):
        now = datetime.datetime.now(BEIJING)
        sequence = (self.node, int(now.strftime("%m%d%H%M%S")), self.counter)
        self.counter = (self.counter + 1) & 0xFFFF_FFFF
        return sequence


class Listener:
    """Accepts connections and answers commands.

    Options: "port" (0 = any), "name" and "password" of who may bind, "any_login": true (no check of the type), "links"
    (most connections, default 60), "bind_result"; "result" of what is taken; "refuse_after": n with "refusal" (88) from
    the n-th new command on; "delay" (seconds before the answer); "silent": n (the next n are taken and never answered),
    "cut": n (the next n are taken, and the connection is closed instead of an answer), "unseen": n (the same, as if it had
    never come), "hold": true (answers wait for the action "answer"); "quiet": true (no event "taken", only counts).
    """

    def __init__(self, options, login_type, handles, tasks):
        self.options, self.login_type, self.handles, self.tasks = options, login_type, handles, tasks
        self.connections = {}
        #: sequence → (body, result)
        self.seen = {}
        self.held = collections.deque()
        self.counts = collections.Counter()
        self.taken = None

    async def listen(self):
        server = await asyncio.start_server(self.connection, "127.0.0.1", self.options.get("port", 0), backlog=100)
        tell("listening", port=server.sockets[0].getsockname()[1])

    def drop(self):
        for writer in list(self.connections):
            writer.transport.abort()

    def once(self, name):
        left = self.options.get(name, 0)
        if left:
            self.options[name] = left - 1
        return left > 0

    async def connection(self, reader, writer):
        self.connections[writer] = 0
        bound = False
        try:
            while (octets := await read_pdu(reader)) is not None:
                pdu = codec.decode(octets)
                if pdu["command"].endswith("_resp"):
                    tell("unasked", **pdu)
                elif pdu["command"] == "bind":
                    result = 2 if bound else self.authenticate(pdu)
                    bound = bound or result == 0
                    tell("bound", by=pdu["name"], login_type=pdu["login_type"], result=result)
                    self.answer(writer, pdu, result)
                    if not bound:
                        break
                elif not bound:
                    tell("broken", text="a command before the bind", **pdu)
                    break
                elif pdu["command"] == "unbind":
                    self.send(writer, {"command": "unbind_resp", "sequence": pdu["sequence"]})
                    tell("unbound")
                    break
                elif not await self.command(writer, octets, pdu):
                    break
        except codec.Broken as broken:
            tell("broken", text=str(broken))
        await self.leave(writer)
        tell("closed", bound=bound)

    async def leave(self, writer):
        self.connections.pop(writer, None)
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            pass

    def authenticate(self, bind):
        if "bind_result" in self.options:
            return self.options["bind_result"]
        wanted = (self.options.get("name"), self.options.get("password"))
        if None not in wanted and (bind["name"], bind["password"]) != wanted:
            return 1
        if len(self.connections) > self.options.get("links", 60):
            return 3
        right = bind["login_type"] == self.login_type or self.options.get("any_login")
        return 0 if right else 4

    def send(self, writer, pdu):
        if not writer.is_closing():
            writer.write(codec.encode(pdu))

    def answer(self, writer, pdu, result):
        if pdu["command"] == "trace":
            now = datetime.datetime.now(BEIJING).strftime("%y%m%d%H%M%S")
            entry = {"result": result, "node_id": "101001", "receive_time": now, "send_time": now}
            body = {"entries": [entry], "version": self.options.get("version", "1.2")}
        else:
            body = {"result": result}
        self.send(writer, {"command": pdu["command"] + "_resp", "sequence": pdu["sequence"], **body})

    async def command(self, writer, octets, pdu):
        """Handles a command; False if the connection must be closed."""
        if pdu["command"] not in self.handles:
            tell("taken", **pdu, result=5, foreign=True)
            self.answer(writer, pdu, 5)
            return True
        if self.once("unseen"):
            tell("unseen", **pdu)
            return False
        self.connections[writer] += 1
        key, body = octets[8:20], octets[20:]
        before = self.seen.get(key)
        more = {}
        if before is None:
            result = self.result()
            self.seen[key] = (body, result)
            self.counts[pdu["command"]] += 1
            self.counts["refused"] += result != 0
        elif before[0] == body:
            result, more = before[1], {"duplicate": True}
            self.counts["duplicates"] += 1
        else:
            result, more = 9, {"conflict": True}
            self.counts["conflicts"] += 1
        silent, cut = self.once("silent"), self.once("cut")
        if not self.options.get("quiet"):
            unanswered = self.connections[writer]
            tell("taken", **pdu, result=result, unanswered=unanswered, **more)
        self.counts["most_unanswered"] = max(self.counts["most_unanswered"], self.connections[writer])
        new = result == 0 and before is None
        if new and self.taken:
            await self.taken(pdu, "before")
        if cut:
            return False
        if not silent:
            self.finish(writer, pdu, result)
        if new and self.taken:
            await self.taken(pdu, "after")
        return True

    def result(self):
        after = self.options.get("refuse_after")
        if after is not None and sum(self.counts[each] for each in self.handles) >= after:
            return self.options.get("refusal", 88)
        return self.options.get("result", 0)

    def finish(self, writer, pdu, result):
        def now():
            if writer in self.connections:
                self.connections[writer] -= 1
                self.answer(writer, pdu, result)

        if self.options.get("hold"):
            self.held.append(now)
        elif self.options.get("delay"):
            asyncio.get_running_loop().call_later(self.options["delay"], now)
        else:
            now()

    def release(self, how):
        count = how if isinstance(how, int) else len(self.held)
        for _ in range(min(count, len(self.held))):
            (self.held.pop if how == "backwards" else self.held.popleft)()()


class Command:
    """A command that we send: its octets and the number of outstanding answers."""

    def __init__(self, pdu, tag, times):
        self.pdu, self.tag = pdu, tag
        self.octets = codec.encode(pdu)
        self.times = self.left = times
        self.timer = None


class Dialler:
    """Connects, binds, sends commands and waits for their answers.

    Options: "dial": {"port", "host", "name", "password"} (unset = no dialling yet), "login_type" to bind with (default by
    role), "window" (32), "timeout" (30 s until a command is sent again with its sequence), "resend": false (never sent
    again, neither after the time nor on a new connection), "retry" (0.2 s between attempts to connect), "always": true
    (stays connected also with nothing to send), "duplex": true (takes commands on this connection too).
    """

    def __init__(self, options, login_type, sequences, tasks):
        self.options, self.login_type, self.sequences, self.tasks = options, login_type, sequences, tasks
        self.waiting = collections.deque()
        #: sequence octets → commands, in the order in which they were sent
        self.unanswered = collections.defaultdict(collections.deque)
        self.flying = 0
        self.wake = asyncio.Event()
        self.wanted = bool(options.get("always"))
        self.writer = None
        self.listener = None
        self.counts = collections.Counter()
        background(tasks, self.run())

    def queue(self, pdu, tag=None, times=1, now=False):
        pdu = {"sequence": self.sequences.next(), **pdu}
        command = Command(pdu, tag, times)
        if now and self.writer:
            self.emit(command)
        else:
            self.waiting.append(command)
            self.wake.set()
        return command

    def dial(self, where):
        self.options["dial"] = {**self.options.get("dial", {}), **where}
        self.wanted = True
        self.wake.set()

    def drop(self):
        if self.writer:
            self.writer.transport.abort()

    def owed(self):
        return len(self.waiting) + sum(len(each) for each in self.unanswered.values())

    async def run(self):
        unreachable = False
        while True:
            if not self.options.get("dial") or not (self.wanted or self.owed() or self.options.get("always")):
                self.wake.clear()
                await self.wake.wait()
                continue
            where = self.options["dial"]
            try:
                reader, writer = await asyncio.open_connection(where.get("host", "127.0.0.1"), where["port"])
            except OSError as error:
                if not unreachable:
                    tell("unreachable", text=str(error))
                unreachable = True
                await asyncio.sleep(self.options.get("retry", 0.2))
                continue
            unreachable = self.wanted = False
            try:
                if await self.bind(reader, writer, where):
                    await self.serve(reader, writer)
            except codec.Broken as broken:
                tell("broken", text=str(broken))
            self.writer = None
            writer.close()
            tell("hung-up", owed=self.owed())
            await asyncio.sleep(self.options.get("retry", 0.2))

    async def bind(self, reader, writer, where):
        bind = {
            "command": "bind",
            "sequence": self.sequences.next(),
            "login_type": self.options.get("login_type", self.login_type),
            "name": where.get("name", ""),
            "password": where.get("password", ""),
        }
        writer.write(codec.encode(bind))
        octets = await read_pdu(reader)
        if octets is None:
            tell("dialled", result=None)
            return False
        answer = codec.decode(octets)
        if answer["command"] != "bind_resp" or tuple(answer["sequence"]) != bind["sequence"]:
            raise codec.Broken(f"the bind was answered by {answer}")
        tell("dialled", result=answer["result"])
        return answer["result"] == 0

    async def serve(self, reader, writer):
        self.writer = writer
        self.flying = 0
        again = [command for commands in self.unanswered.values() for command in commands]
        self.unanswered.clear()
        for command in again:
            if self.options.get("resend", True):
                tell("resent", sequence=command.pdu["sequence"])
                command.left = command.times
                self.emit(command)
        sender = background(self.tasks, self.pump())
        try:
            while (octets := await read_pdu(reader)) is not None:
                pdu = codec.decode(octets)
                if not pdu["command"].endswith("_resp"):
                    await self.refuse(writer, octets, pdu)
                elif pdu["command"] == "unbind_resp":
                    tell("unbound")
                    return
                else:
                    self.answered(octets[8:20], pdu)
        finally:
            sender.cancel()
            for commands in self.unanswered.values():
                for command in commands:
                    self.rest(command)

    async def refuse(self, writer, octets, pdu):
        if self.options.get("duplex"):
            self.listener.connections.setdefault(writer, 0)
            await self.listener.command(writer, octets, pdu)
        else:
            tell("violation", **pdu)
            self.listener.answer(writer, pdu, 5)

    async def pump(self):
        while True:
            while self.waiting and self.flying < self.options.get("window", 32):
                self.emit(self.waiting.popleft())
            await self.writer.drain()
            self.wake.clear()
            if not self.waiting or self.flying >= self.options.get("window", 32):
                await self.wake.wait()

    def emit(self, command):
        for _ in range(command.left):
            self.writer.write(command.octets)
        self.unanswered[command.octets[8:20]].append(command)
        self.flying += 1
        self.counts["sent"] += 1
        if not self.options.get("quiet"):
            tell("sent", **command.pdu)
        self.clock(command)

    def clock(self, command):
        if self.options.get("resend", True):
            loop = asyncio.get_running_loop()
            command.timer = loop.call_later(self.options.get("timeout", 30), self.late, command)

    def late(self, command):
        tell("resent", sequence=command.pdu["sequence"])
        self.writer.write(command.octets)
        self.clock(command)

    def rest(self, command):
        if command.timer:
            command.timer.cancel()

    def answered(self, key, pdu):
        commands = self.unanswered.get(key)
        if not commands or pdu["command"] != commands[0].pdu["command"] + "_resp":
            tell("unasked", **pdu)
            return
        command = commands[0]
        command.left -= 1
        self.counts["answered"] += 1
        if not self.options.get("quiet"):
            tell(
                "answered",
                **pdu,
                tag=command.tag,
                times=command.times - command.left,
                about=command.pdu.get("submit_sequence"),
                user=command.pdu.get("user_number"),
            )
        if command.left == 0:
            self.rest(command)
            commands.popleft()
            if not commands:
                del self.unanswered[key]
            self.flying -= 1
            self.wake.set()

    def unbind(self):
        if self.writer:
            self.writer.write(codec.encode({"command": "unbind", "sequence": self.sequences.next()}))


class SgipPeer:
    """A gateway or an SP.

    Options beside those of its halves: "node" and "counter" of its sequences; of a gateway "report": "before" | "after" |
    unset (Reports for each Submit that is taken, as its ReportFlag wants, before or after the answer), "states":
    [[state, error], …] one Report each and user (default [[0, 0]]), "report_times": n (the same octets so often).
    """

    def __init__(self, options, gateway):
        self.options = options
        self.tasks = set()
        self.sequences = Sequences(options)
        self.reference = 0
        handles = {"submit", "trace"} if gateway else {"deliver", "report", "user_rpt"}
        self.listener = Listener(options, 1 if gateway else 2, handles, self.tasks)
        self.dialler = Dialler(options, 2 if gateway else 1, self.sequences, self.tasks)
        self.dialler.listener = self.listener
        if gateway:
            self.listener.taken = self.taken

    async def start(self):
        await self.listener.listen()

    async def taken(self, pdu, moment):
        """Sends a gateway's Reports for a new Submit."""
        states = self.options.get("states", [[0, 0]])
        flag = pdu.get("report_flag")
        failed = any(state == 2 for state, _ in states)
        wanted = flag in (1, 3) or (flag == 0 and failed)
        if pdu["command"] != "submit" or self.options.get("report") != moment or not wanted:
            return
        for state, error in states:
            for user in pdu["user_numbers"]:
                self.report({"sequence": pdu["sequence"], "user": user, "state": state, "error": error}, {})

    def report(self, fields, how):
        pdu = {
            "command": "report",
            "submit_sequence": fields["sequence"],
            "report_type": fields.get("type", 0),
            "user_number": fields["user"],
            "state": fields.get("state", 0),
            "error_code": fields.get("error", 0),
            "reserve": fields.get("reserve", ""),
        }
        how = {"times": self.options.get("report_times", 1), **how}
        self.dialler.queue(pdu, how.get("tag"), how["times"], how.get("now", False))

    def text(self, command, fields, how):
        """Submit or Deliver: a text becomes as many segments as it needs; a content is sent unchanged."""
        pdu = {"command": command, **fields}
        pieces = [{}]
        if "text" in fields:
            coding = pdu.setdefault("message_coding", 0 if fields["text"].isascii() else 8)
            self.reference += 1
            made = codec.parts(fields["text"], coding, self.reference, how.get("room"))
            pieces = [{"tp_udhi": udhi, "content": content.hex()} for udhi, content in made]
        if command == "submit":
            defaults = {"mo_relate_to_mt_flag": 2, "report_flag": 1, "fee_type": 1, "fee_value": "0", "given_value": "0"}
            pdu = {**defaults, "charge_number": "0" * 21, **pdu}
        for piece in pieces:
            self.dialler.queue({**pdu, **piece}, how.get("tag"), how.get("times", 1), how.get("now", False))

    def act(self, action):
        if "set" in action:
            self.options.update(action["set"])
            self.dialler.wake.set()
        if "send" in action:
            how = action
            self.dialler.queue(action["send"], how.get("tag"), how.get("times", 1), how.get("now", False))
        if "report" in action:
            self.report(action["report"], action)
        for command in ("submit", "deliver"):
            if command in action:
                self.text(command, action[command], action)
        if "answer" in action:
            self.listener.release(action["answer"])
        if "dial" in action:
            self.dialler.dial(action["dial"])
        if "unbind" in action:
            self.dialler.unbind()
        if action.get("drop") in ("dialled", "all"):
            self.dialler.drop()
        if action.get("drop") in ("taken", "all"):
            self.listener.drop()
        if "count" in action:
            tell("counts", taken=self.listener.counts, dialled=self.dialler.counts, owed=self.dialler.owed())


class RawSocket:
    """A bare connection: dials "port", or listens if there is none.

    Actions: {"hex": "…", "chunk": n} (n octets a time), {"close": true}, {"connect": true}. Events: "listening",
    "connected", "received" {"hex"}, "pdu" (as far as what came is whole PDUs), "closed".
    """

    def __init__(self, options):
        self.options, self.tasks, self.writer = options, set(), None

    async def start(self):
        if "port" in self.options:
            await self.connect()
        else:
            server = await asyncio.start_server(self.read, "127.0.0.1", 0)
            tell("listening", port=server.sockets[0].getsockname()[1])

    async def connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.options["port"])
        background(self.tasks, self.read(reader, writer))

    async def read(self, reader, writer):
        self.writer = writer
        tell("connected")
        pending = b""
        try:
            while octets := await reader.read(65536):
                tell("received", hex=octets.hex())
                pending += octets
                while len(pending) >= 4 and len(pending) >= codec.length(pending):
                    pdu, pending = pending[: codec.length(pending)], pending[codec.length(pending) :]
                    tell("pdu", **codec.decode(pdu))
        except codec.Broken as broken:
            tell("broken", text=str(broken))
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        tell("closed")
        writer.close()

    async def write(self, octets, chunk):
        for at in range(0, len(octets), chunk):
            self.writer.write(octets[at : at + chunk])
            await self.writer.drain()
            await asyncio.sleep(0)

    def act(self, action):
        if "hex" in action:
            octets = bytes.fromhex(action["hex"])
            background(self.tasks, self.write(octets, action.get("chunk", len(octets) or 1)))
        if "close" in action:
            self.writer.close()
        if "connect" in action:
            background(self.tasks, self.connect())


class CodecOnly:
    """{"decode": hex} gives "decoded" {the PDU} or "broken"; {"encode": {PDU}} gives "encoded" {"hex"};
    {"read": hex, "coding": n, "udhi": n} gives "read" {"text", "part"}; {"cut": text, "coding": n} gives "cut"
    {"parts": [hex, …]}."""

    async def start(self):
        tell("ready")

    def act(self, action):
        try:
            if "decode" in action:
                tell("decoded", **codec.decode(bytes.fromhex(action["decode"])))
            if "encode" in action:
                tell("encoded", hex=codec.encode(action["encode"]).hex())
            if "read" in action:
                tell("read", **codec.shown(bytes.fromhex(action["read"]), action["coding"], action.get("udhi", 0)))
            if "cut" in action:
                made = codec.parts(action["cut"], action["coding"], action.get("reference", 1))
                tell("cut", parts=[content.hex() for _, content in made])
        except codec.Broken as broken:
            tell("broken", text=str(broken))


async def main():
    options = json.loads(sys.argv[1])
    role = options.pop("role")
    peer = CodecOnly() if role == "codec" else RawSocket(options) if role == "raw" else SgipPeer(options, role == "gateway")
    await peer.start()
    lines = asyncio.StreamReader(limit=1 << 22)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        peer.act(json.loads(line))


asyncio.run(main())
