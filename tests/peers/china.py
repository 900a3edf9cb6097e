"""CMPP 2.0/3.0 and SMGP 3.0 in plain Python: a gateway, an SP, and the codec alone. Written only from the protocols'
tables, as an independent reference.

Reads one JSON line per action from standard input, and writes one JSON line per event to standard output; ends at the
end of its input. Start: python3 china.py '{"role": "gateway" | "sp" | "codec", "protocol": "cmpp" | "smgp", "version":
n, …}'
Versions: CMPP 32 (2.0) or 48 (3.0), SMGP 48; SMGP 19 (1.3, no FixedFee) is understood too.

Nothing is sent unasked but answers, the login of an SP and the configured reports; nothing is ever sent again by
itself.

A PDU is a dict: {"command": "submit", "sequence": n, fields…}. Both protocols use the same names: commands login, exit,
submit, deliver, query, cancel, active_test, each also with _resp; fields as in the layouts below. Message ids,
contents, reserved octets and authenticators are hex. Padded texts are cut at the first NUL ("unclean" lists those with
other octets behind it). SMGP: "tlvs" {"0002": hex, …} in their order ("tlv_list" [[tag, hex], …] if a tag is repeated);
known ones also under their names (udhi, link_id, pk_total, pk_number, source_id, …).

GATEWAY. Options: "host" (127.0.0.1), "port" (0 = any), "name", "password" (of the SP), "window" (unanswered Delivers,
16), "result": n (answer to every Submit), "flow_every": n (every n-th new Submit gets flow control: CMPP 8, SMGP 1),
"silent": n (the next n Submits get no answer), "cut": n (at the next n Submits the connection is closed instead),
"hold": true (answers wait for the action "answer"), "report": "after" | "before" | "none" (a report after or before the
answer to a Submit that wants one; "before" also if the answer never comes), "stat" ("DELIVRD"), "err" ("000"; SMGP),
"report_length": 60 | 71 (CMPP; by version), "double": true (each report twice), "report_on": "same" | "other"
(connection), "one_id": true (all users of a Submit have the same id, instead of a range), "no_proof": true
(authenticator of zeros), "login_status": n (answer to every login), "link_test_silent": true (link tests stay
unanswered), "first_sequence" (1), "code" (of the gateway, in message ids: CMPP a number, SMGP 6 digits), "quiet": true
(no events about single messages). Only the login is checked; an SP that offers a higher major version than "version" is
refused. SMGP connections of LoginMode 0 get no Delivers.
Actions: {"set": {options}} (null removes one); {"deliver": {"source", "destination", "text" (a long one becomes parts) or "content": hex,
  "format", "udhi", "link_id", "service", "id": hex, "tlvs"}, "times": n (same id, new sequences)}; {"report": {"id":
  hex of the Submit, "number", "stat", "err", "report_length", "report_on", …}, "times": n}; {"answer": true | n |
  "backwards"} (sends held answers); {"link_test": true}; {"exit": true}; {"drop": true} (aborts all connections);
  {"count": true}; {"raw": hex} (on the newest connection). What has no connection, or no room in the window, waits.
Events: "listening" {"port"}; "login" {"name", "version", "timestamp", "status", "padded", "mode"}; "submitted" {the
  PDU, "text", "part", "id" (answered), "status", "duplicate" (same sequence and body on this connection: same answer,
  not new), "conflict" (same sequence, other body: new), "silent", "cut"}; "answered" {"id", "status", "about":
  "deliver" | "report", "wrong_id"}; "queried"; "counts" {"submits", "new", "accepted", "refused", "duplicates",
  "conflicts", "delivers" (reports too), "reports", "answers", "refused_delivers", "most_unanswered" (Submits, on one
  connection)}.

SP. Options: "host" (127.0.0.1), "port", "name", "password", "mode" (SMGP LoginMode, 2), "connections" (1), "window"
(16, each), "source" (number), "deliver_result": n (status that Delivers get), "deliver_silent": n (the next n get no
answer), "unpadded": true (MD5 of the unpadded name), "timestamp": n, "login": false (connects without login; Submits go
out all the same), "link_test_silent", "first_sequence", "quiet".
Actions: {"set": {options}}; {"connect": {options}} (sets them and logs in); {"submit": {"destinations": […],
  "text" (a long one becomes parts) or "content": hex, "format" (0 or 8 by the text), "report": 0 | 1 | 2, "sequence",
  any other field}, "tag": any, "times": n (same octets n times)}; {"burst": {"count", "first", "text", …}} (numbers
  first, first + 1, …, no single events); "link_test", "exit", "drop", "count", "raw" as above.
Events: "unreachable"; "logged_in" {"status", "version", "proof" (authenticator right, status hashed in its wire width),
  "zeros", "octets" (of the answer)}; "answered" {"status", "id", "tag", "sequence", "part"}; "delivered" {"id",
  "source", "destination", "text", "content", "format", "udhi", "part", "link_id", "service", "result", "duplicate",
  "silent"}; "reported" {"id", "submission", "stat", "err", "submit_time", "done_time", "number", "length" (octets of
  the content), …}; "burst" {"count", "accepted", "refused": {status: n}, "lost", "seconds"}; "counts" {"answers",
  "accepted", "reports" (all), "duplicate_reports" (same submission, number and stat), "delivers" (without reports),
  "duplicate_delivers"}.
Both: "link_test" (the other side's), "link_tested" (answer to ours), "exit" {"by": "peer" | "us"}, "closed"
  {"unanswered", "rest"}, "broken" {"text"}, "foreign" (a request that this role does not serve: refused), "unasked" (an
  answer that nobody waits for), "error" {"text"}. Events of a connection have its number, "connection".

CODEC. {"decode": hex, "version": n} gives "decoded" {the PDU, "text", "part", "report"} or "broken"; {"encode": {PDU},
"version": n} gives "encoded" {"hex"} or "broken". Decoding is strict: an octet too many or too few is "broken".
"""

import asyncio
import collections
import datetime
import hashlib
import itertools
import json
import re
import struct
import sys
import time

BEIJING = datetime.timezone(datetime.timedelta(hours=8))
ANSWER = 0x8000_0000
HEADER = 12


def tell(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)


def now(form):
    return datetime.datetime.now(BEIJING).strftime(form)


class Broken(Exception):
    """Octets that are not a PDU."""


# Layouts: name:kind and width; "2/" and "3/" mark fields of that major version only. Kinds: I = number, T = text padded
# with NUL, X = octets as hex, L = length and content, U = count and numbers, V = TLVs to the end, O = last octet that
# may be missing (written as zero), E = last octet that may be there.
QUERY = "time:T8 query_type:I1 query_code:T10"
QUERIED = "mt_messages:I4 mt_users:I4 mt_sent:I4 mt_waiting:I4 mt_failed:I4 mo_sent:I4 mo_waiting:I4 mo_failed:I4"
STATUS, TAIL = "2/status:I1 3/status:I4", "content:L1 2/reserve:X8 3/link_id:T20"
#: CMPP 3.0 §8.4, with the widths of 2.0: name → command, layout, layout of the answer
CMPP = {
    "login": (1, "name:T6 authenticator:X16 version:I1 timestamp:I4", f"{STATUS} authenticator:X16 version:I1"),
    "exit": (2, "", ""),
    "submit": (
        4,
        "msg_id:X8 pk_total:I1 pk_number:I1 registered_delivery:I1 level:I1 service:T10 fee_user_type:I1 "
        "2/fee_number:T21 3/fee_number:T32 3/fee_number_type:I1 tp_pid:I1 udhi:I1 format:I1 source_id:T6 fee_type:T2 "
        "fee_code:T6 valid_time:T17 at_time:T17 source:T21 2/destinations:U21 3/destinations:U32 3/destination_type:I1 "
        f"{TAIL}",
        f"msg_id:X8 {STATUS}",
    ),
    "deliver": (
        5,
        "msg_id:X8 destination:T21 service:T10 tp_pid:I1 udhi:I1 format:I1 2/source:T21 3/source:T32 3/source_type:I1 "
        f"is_report:I1 {TAIL}",
        f"msg_id:X8 {STATUS}",
    ),
    "query": (6, f"{QUERY} reserve:X8", f"{QUERY} {QUERIED}"),
    "cancel": (7, "msg_id:X8", STATUS),
    "active_test": (8, "", "reserve:O1"),
}
TAIL = "content:L1 reserve:X8 tlvs:V0"
#: SMGP 3.0.3 §5.2.2; 1.3 has no FixedFee
SMGP = {
    "login": (1, "name:T8 authenticator:X16 mode:I1 timestamp:I4 version:I1", "status:I4 authenticator:X16 version:I1"),
    "submit": (
        2,
        "msg_type:I1 registered_delivery:I1 priority:I1 service:T10 fee_type:T2 fee_code:T6 3/fixed_fee:T6 format:I1 "
        f"valid_time:T17 at_time:T17 source:T21 fee_number:T21 destinations:U21 {TAIL}",
        "msg_id:X10 status:I4",
    ),
    "deliver": (
        3,
        f"msg_id:X10 is_report:I1 format:I1 time:T14 source:T21 destination:T21 {TAIL}",
        "msg_id:X10 status:I4",
    ),
    "active_test": (4, "extra:E1", "extra:E1"),
    "exit": (6, "extra:E1", "extra:E1"),
    "query": (7, QUERY, f"{QUERY} {QUERIED} reserve:X8"),
}
#: SMGP 3.0.3 §6.3: tag → name, kind, width
TLVS = {
    **{0x1: ("tp_pid", "I", 1), 0x2: ("udhi", "I", 1), 0x3: ("link_id", "T", 20), 0x4: ("fee_user_type", "I", 1)},
    **{0x5: ("fee_number_type", "I", 1), 0x7: ("destination_type", "I", 1), 0x9: ("pk_total", "I", 1)},
    **{0xA: ("pk_number", "I", 1), 0xB: ("submit_msg_type", "I", 1), 0xC: ("sp_deal_result", "I", 1)},
    **{0xD: ("source_type", "I", 1), 0x10: ("source_id", "T", 8), 0x12: ("mservice", "T", 21)},
}
#: Reports: name, from, to. CMPP 3.0 §8.4.5, SMGP 3.0.3 §6.2.63.
CMPP_REPORT = [("stat", 8, 15), ("submit_time", 15, 25), ("done_time", 25, 35), ("number", 35, -4)]
SMGP_REPORT = [("sub", 18, 21), ("dlvrd", 28, 31), ("submit_time", 44, 54), ("done_time", 65, 75), ("stat", 81, 88)]
SMGP_REPORT += [("err", 93, 96)]
SMGP_LABELS = {0: b"id:", 13: b" sub:", 21: b" dlvrd:", 31: b" submit date:", 54: b" done date:", 75: b" stat:"}
SMGP_LABELS |= {88: b" err:", 96: b" text:"}
ENCODINGS = {0: "ascii", 8: "utf-16-be", 15: "gb18030"}


def padded(text, size, what):
    octets = text.encode("latin-1")
    if len(octets) > size:
        raise Broken(f"{what} of {len(octets)} octets, at most {size} fit")
    return octets.ljust(size, b"\0")


def cut_text(octets):
    return octets.split(b"\0", 1)[0].decode("latin-1")


class Codec:
    """Octets and fields of one protocol; the version selects the layout."""

    def __init__(self, protocol):
        self.cmpp = protocol == "cmpp"
        self.id_size, self.name_size, self.zeros = (8, 6, 9) if self.cmpp else (10, 8, 7)
        # The largest Submit has 99 or 100 users and 160 octets: 3491 octets in CMPP 3.0, 2366 and the TLVs in SMGP.
        self.largest = 4096 if self.cmpp else 8192
        self.ids, self.names, self.layouts = {}, {}, {}
        for name, (number, *layouts) in (CMPP if self.cmpp else SMGP).items():
            for command, number, layout in zip((name, name + "_resp"), (number, number | ANSWER), layouts):
                self.ids[command], self.names[number] = number, command
                fields = [re.fullmatch(r"(?:(\d)/)?(\w+):(\w)(\d+)", each).groups() for each in layout.split()]
                for major in "23":
                    these = [(name, kind, int(size)) for only, name, kind, size in fields if only in (None, major)]
                    self.layouts[command, major == "3"] = these

    def layout(self, command, version):
        return self.layouts[command, version >= (0x30 if self.cmpp else 0x20)]

    def length(self, start):
        announced = int.from_bytes(start[:4], "big")
        if not HEADER <= announced <= self.largest:
            raise Broken(f"a length of {announced}")
        return announced

    def decode(self, octets, version):
        if len(octets) < HEADER or self.length(octets) != len(octets):
            raise Broken(f"{len(octets)} octets, and another length in the header")
        _, number, sequence = struct.unpack(">III", octets[:HEADER])
        command = self.names.get(number)
        if command is None:
            raise Broken(f"no such command: {number:#010x}")
        if self.cmpp and command == "login_resp":
            # The length tells the width of Status, whatever was asked.
            version = 0x30 if len(octets) == 33 else 0x20
        pdu, at, end = {"command": command, "sequence": sequence}, HEADER, len(octets)
        for name, kind, size in self.layout(command, version):
            count = 1
            if kind in "LU":
                if at >= end:
                    raise Broken(f"{command}: {name} is missing")
                size, count = (octets[at], 1) if kind == "L" else (size, octets[at])
                at += 1
            elif kind in "OEV":
                size = end - at if kind == "V" else min(size, end - at)
            stop = at + size * count
            if stop > end:
                raise Broken(f"{command}: {name} goes beyond the end")
            taken, at = octets[at:stop], stop
            if kind == "I":
                pdu[name] = int.from_bytes(taken, "big")
            elif kind in "TU":
                pieces = [taken[each : each + size] for each in range(0, len(taken), size)]
                texts = [cut_text(piece) for piece in pieces]
                pdu[name] = texts if kind == "U" else texts[0]
                if any(piece[len(text) :].strip(b"\0") for piece, text in zip(pieces, texts)):
                    pdu.setdefault("unclean", []).append(name)
            elif kind == "V":
                self.read_tlvs(taken, pdu)
            elif taken or kind != "E":
                pdu[name] = taken.hex()
        if at != end:
            raise Broken(f"{command}: {end - at} octets too many")
        return pdu

    @staticmethod
    def read_tlvs(octets, pdu):
        at, pairs = 0, []
        while at < len(octets):
            tag, size = int.from_bytes(octets[at : at + 2], "big"), int.from_bytes(octets[at + 2 : at + 4], "big")
            value = octets[at + 4 : at + 4 + size]
            if at + 4 > len(octets) or len(value) < size:
                raise Broken(f"TLV {tag:04x} goes beyond the end")
            at += 4 + size
            pairs.append((f"{tag:04x}", value.hex()))
            if tag in TLVS:
                name, kind, _ = TLVS[tag]
                pdu[name] = int.from_bytes(value, "big") if kind == "I" else cut_text(value)
        pdu["tlvs"] = dict(pairs)
        if len(pdu["tlvs"]) < len(pairs):
            pdu["tlv_list"] = pairs

    def encode(self, pdu, version):
        """The octets of a PDU; missing numbers are 0, missing texts empty, missing octets zeros."""
        body = []
        for name, kind, size in self.layout(pdu["command"], version):
            value = pdu.get(name)
            if kind == "I":
                body.append((value or 0).to_bytes(size, "big"))
            elif kind == "T":
                body.append(padded(value or "", size, name))
            elif kind == "U":
                body += [bytes([len(value or [])]), *(padded(each, size, name) for each in value or [])]
            elif kind == "V":
                body.append(self.written_tlvs(pdu))
            else:
                octets = bytes.fromhex(value) if value is not None else bytes(size if kind in "XO" else 0)
                if kind == "X" and len(octets) != size:
                    raise Broken(f"{name} of {len(octets)} octets instead of {size}")
                body.append(len(octets).to_bytes(size, "big") + octets if kind == "L" else octets)
        body = b"".join(body)
        sequence = pdu.get("sequence", 0).to_bytes(4, "big")
        return struct.pack(">II", HEADER + len(body), self.ids[pdu["command"]]) + sequence + body

    @staticmethod
    def written_tlvs(pdu):
        """Those of "tlvs" first, then the named ones that are not among them."""
        given = pdu.get("tlv_list") or pdu.get("tlvs", {}).items()
        pairs = [(int(tag, 16), bytes.fromhex(value)) for tag, value in given]
        tags = {tag for tag, _ in pairs}
        for tag, (name, kind, size) in TLVS.items():
            if name in pdu and tag not in tags:
                value = pdu[name]
                pairs.append((tag, value.to_bytes(size, "big") if kind == "I" else padded(value, size, name)))
        return b"".join(struct.pack(">HH", tag, len(value)) + value for tag, value in pairs)

    def authenticator(self, name, password, timestamp, pad):
        """CMPP 3.0 §8.4.1.1, SMGP 3.0.3 §6.2.2."""
        name = padded(name, self.name_size, "name") if pad else name.encode("latin-1")
        return hashlib.md5(name + bytes(self.zeros) + password.encode() + b"%010d" % timestamp).digest()

    @staticmethod
    def proof(status, width, authenticator, password):
        """The authenticator of the answer: CMPP 3.0 §8.4.1.2, SMGP 3.0.3 §6.2.6."""
        return hashlib.md5(status.to_bytes(width, "big") + authenticator + password.encode()).digest()

    def report(self, msg_id, stat, submitted, done, number, length, sequence, err, text):
        """The content of a report; CMPP has no err and no text, SMGP no number and no sequence."""
        msg_id, stat, dates = bytes.fromhex(msg_id), padded(stat, 7, "stat"), (submitted.encode(), done.encode())
        if self.cmpp:
            return b"".join([msg_id, stat, *dates, padded(number, length - 39, "number"), sequence.to_bytes(4, "big")])
        text = b"%03d%s" % (len(text), text[:17].ljust(17, b"\0"))
        values = [msg_id, b"001", b"001", *dates, stat, padded(err, 3, "err"), text]
        return b"".join(label + value for label, value in zip(SMGP_LABELS.values(), values))

    def read_report(self, content):
        """The fields of a report, or None if it has another form."""
        if self.cmpp:
            fields = CMPP_REPORT if len(content) in (60, 71) else None
            more = {"submission": content[:8].hex(), "err": "", "smsc_sequence": int.from_bytes(content[-4:], "big")}
        else:
            right = all(content[at : at + len(label)] == label for at, label in SMGP_LABELS.items())
            fields = SMGP_REPORT if right and len(content) == 122 else None
            more = {"submission": content[3:13].hex(), "report_text": content[102:].hex()}
        return fields and {**more, **{name: cut_text(content[start:end]) for name, start, end in fields}}

    def explained(self, pdu):
        """The PDU with its text and part, or its report."""
        if "content" not in pdu:
            return pdu
        content = bytes.fromhex(pdu["content"])
        if pdu.get("is_report"):
            return {**pdu, "report": self.read_report(content), "length": len(content)}
        header, rest, part = split_header(content, pdu.get("udhi", 0))
        more = {"text": rest.decode(ENCODINGS.get(pdu["format"], "latin-1"), "replace"), "part": part}
        return {**pdu, **more, **({"udh": header.hex()} if header else {})}

    def parts(self, pdu, text, form, reference):
        """PDUs with a text: one, or as many as needed, without cutting a character."""
        form = (0 if text.isascii() else 8) if form is None else form
        encoding = ENCODINGS.get(form, "latin-1")
        # CMPP 3.0 §8.4.3: less than 160 octets in format 0, otherwise 140; SMGP 3.0.3: 140.
        limit = 159 if self.cmpp and form == 0 else 140
        whole = text.encode(encoding)
        if len(whole) <= limit:
            return [{**pdu, "format": form, "content": whole.hex()}]
        pieces = [b""]
        for octets in (character.encode(encoding) for character in text):
            if len(pieces[-1]) + len(octets) > limit - 6:
                pieces.append(b"")
            pieces[-1] += octets
        made, total = [], len(pieces)
        for number, piece in enumerate(pieces, 1):
            content = (bytes([5, 0, 3, reference & 0xFF, total, number]) + piece).hex()
            more = {"pk_total": total, "pk_number": number} if pdu["command"] == "submit" else {}
            made.append({**pdu, "format": form, "content": content, "udhi": 1, **more})
        return made


def split_header(content, udhi):
    """User data header, the rest, and the place among the parts."""
    if udhi not in (1, 0x40) or not content or content[0] >= len(content):
        return b"", content, None
    header, rest = content[: content[0] + 1], content[content[0] + 1 :]
    at, part = 1, None
    while at + 2 <= len(header):
        element, value = header[at], header[at + 2 : at + 2 + header[at + 1]]
        if (element, len(value)) in ((0, 3), (8, 4)):
            part = {"reference": int.from_bytes(value[:-2], "big"), "total": value[-2], "number": value[-1]}
        at += 2 + header[at + 1]
    return header, rest, part


#: A request to be sent. "number" replaces the destinations of the PDU, which all of a burst share.
Entry = collections.namedtuple("Entry", "pdu tag number times burst", defaults=(None, None, 1, None))


class Link:
    """A connection. "ready": logged in, "usable": takes our requests, "flying": how many are unanswered."""

    def __init__(self, peer, reader, writer, number):
        self.peer, self.reader, self.writer, self.number = peer, reader, writer, number
        self.version = peer.options.get("version", 48)
        self.sequence = peer.options.get("first_sequence", 1)
        self.ready = self.usable = False
        self.flying = self.sent = 0
        self.pending = collections.defaultdict(collections.deque)
        self.waiting = collections.deque()
        self.login, self.rest = None, b""
        #: Submits of the other side: sequence → (body, status, id), and the sequences without answer
        self.seen, self.unanswered = {}, set()

    def next_sequence(self):
        sequence, self.sequence = self.sequence, (self.sequence + 1) & 0xFFFF_FFFF
        return sequence

    def send(self, command, sequence, **fields):
        if not self.writer.is_closing():
            pdu = {"command": command, "sequence": sequence, **fields}
            self.writer.write(self.peer.codec.encode(pdu, self.version))

    def request(self, entry):
        sequence = entry.pdu["sequence"] if "sequence" in entry.pdu else self.next_sequence()
        more = {} if entry.number is None else {"destinations": [str(entry.number)]}
        try:
            octets = self.peer.codec.encode({**entry.pdu, "sequence": sequence, **more}, self.version)
        except (Broken, OverflowError, ValueError) as wrong:
            tell("error", text=str(wrong), tag=entry.tag)
            return entry.burst and entry.burst.settled(None)
        self.pending[sequence].extend([entry] * entry.times)
        self.flying += entry.times
        self.sent += 1
        self.writer.write(octets * entry.times)

    def settle(self, pdu):
        """The entry that an answer is for, or None."""
        sequence = pdu["sequence"]
        if sequence not in self.pending:
            tell("unasked", connection=self.number, **pdu)
            return None
        entry = self.pending[sequence].popleft()
        if not self.pending[sequence]:
            del self.pending[sequence]
        self.flying -= 1
        return entry

    async def pdus(self):
        while octets := await self.reader.read(65536):
            self.rest += octets
            at = 0
            while len(self.rest) - at >= 4:
                end = at + self.peer.codec.length(self.rest[at : at + 4])
                if end > len(self.rest):
                    break
                yield self.rest[at:end]
                at = end
            self.rest = self.rest[at:]


class Peer:
    """What an SP and a gateway have in common."""

    counted = ()

    def __init__(self, options):
        self.options, self.codec = options, Codec(options["protocol"])
        self.links, self.tasks, self.waiting = [], set(), collections.deque()
        self.opened = self.reference = 0
        self.counts = collections.Counter()

    async def start(self):
        pass

    def host(self):
        return self.options.get("host", "127.0.0.1")

    def background(self, coroutine):
        """Runs a coroutine; keeps a reference, since an unreferenced task may be collected."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def once(self, name):
        """True for the next n, if the option is n."""
        left = self.options.get(name, 0)
        self.options[name] = max(left - 1, 0)
        return left > 0

    def change(self, options):
        """Sets options; null removes one."""
        self.options.update(options)
        self.options = {name: value for name, value in self.options.items() if value is not None}

    def say(self, event, link, **more):
        """An event about a single message."""
        if not self.options.get("quiet"):
            tell(event, connection=link.number, **more)

    def attach(self, reader, writer):
        self.opened += 1
        link = Link(self, reader, writer, self.opened)
        self.links.append(link)
        self.background(self.run(link))
        return link

    async def run(self, link):
        try:
            async for octets in link.pdus():
                if not self.handle(link, octets, self.codec.decode(octets, link.version)):
                    link.rest = b""
                    break
        except Broken as broken:
            tell("broken", text=str(broken), connection=link.number)
        except ConnectionError:
            pass
        except Exception as error:
            tell("error", text=repr(error), connection=link.number)
        self.links.remove(link)
        link.writer.close()
        tell("closed", connection=link.number, unanswered=link.flying, rest=len(link.rest))
        for entry in itertools.chain(*link.pending.values()):
            if entry.burst:
                entry.burst.settled(None)
        self.waiting.extendleft(reversed(link.waiting))
        self.pump()

    def pump(self, link=None):
        """Sends what waits for a connection, or else for any: over the one with the fewest unanswered requests."""
        window = self.options.get("window", 16)
        while link and link.usable and link.flying < window and (queue := link.waiting or self.waiting):
            link.request(queue.popleft())
        while self.waiting and (free := [each for each in self.links if each.usable and each.flying < window]):
            min(free, key=lambda link: (link.flying, link.sent)).request(self.waiting.popleft())

    def queue(self, entry, link=None):
        link = link if link and link.usable else None
        (link or self).waiting.append(entry)
        self.pump(link)

    def handle(self, link, octets, pdu):
        """Handles a PDU; False if the connection must be closed."""
        command, sequence = pdu["command"], pdu["sequence"]
        if not link.ready and not command.startswith("login"):
            raise Broken(f"{command} before the login")
        if command == "active_test":
            if not self.options.get("link_test_silent"):
                link.send("active_test_resp", sequence)
            self.say("link_test", link)
        elif command == "active_test_resp":
            tell("link_tested", connection=link.number)
        elif command in ("exit", "exit_resp"):
            if command == "exit":
                link.send("exit_resp", sequence)
            tell("exit", by="peer" if command == "exit" else "us", connection=link.number)
            return False
        elif taker := getattr(self, "take_" + command, None):
            return taker(link, octets, pdu) is not False
        elif command.endswith("_resp"):
            tell("unasked", connection=link.number, **pdu)
        else:
            tell("foreign", connection=link.number, **pdu)
            link.send(command + "_resp", sequence, status=2 if self.codec.cmpp else 11)
        return True

    def act(self, action):
        self.change(action.get("set", {}))
        for key, command in (("link_test", "active_test"), ("exit", "exit")):
            for link in self.links if action.get(key) else []:
                link.send(command, link.next_sequence())
        for link in self.links if action.get("drop") else []:
            link.writer.transport.abort()
        if action.get("count"):
            tell("counts", **{name: self.counts[name] for name in self.counted})
        if "raw" in action:
            self.links[-1].writer.write(bytes.fromhex(action["raw"]))


class Gateway(Peer):
    counted = ("submits", "new", "accepted", "refused", "duplicates", "conflicts", "delivers", "reports", "answers")
    counted += ("refused_delivers", "most_unanswered")

    def __init__(self, options):
        super().__init__(options)
        self.counter = 0
        #: message id → what a report about it needs
        self.submits = {}
        self.held = collections.deque()

    async def start(self):
        self.server = await asyncio.start_server(self.attach, self.host(), self.options.get("port", 0), backlog=100)
        tell("listening", port=self.server.sockets[0].getsockname()[1])

    def next_ids(self, count=1):
        """Ids of a message to so many users: a range in the counter. CMPP 3.0 §8.4.3.2 and §9, SMGP 3.0.3 annex B."""
        limit = 0x1_0000 if self.codec.cmpp else 1_000_000
        counters = [(self.counter + each) % limit for each in range(1, max(count, 1) + 1)]
        self.counter = counters[-1]
        if self.options.get("one_id"):
            counters = counters[:1] * len(counters)
        if not self.codec.cmpp:
            return [f"{self.options.get('code', '010061')}{now('%m%d%H%M')}{each:06}" for each in counters]
        start = 0
        for value, bits in zip(now("%m %d %H %M %S").split(), (4, 5, 5, 6, 6)):
            start = start << bits | int(value)
        return [f"{(start << 22 | self.options.get('code', 101001)) << 16 | each:016x}" for each in counters]

    def take_login(self, link, _, login):
        cmpp, own, offered = self.codec.cmpp, self.options.get("version", 48), login["version"]
        shown = {key: login[key] for key in ("name", "version", "timestamp", "mode") if key in login}
        shown["connection"] = link.number
        if link.ready:
            link.send("login_resp", login["sequence"], version=own, status=5 if cmpp else 11)
            tell("login", **shown, status=5 if cmpp else 11, again=True)
            return True
        password, given = self.options.get("password", ""), bytes.fromhex(login["authenticator"])
        name, timestamp = login["name"], login["timestamp"]
        full, bare = (self.codec.authenticator(name, password, timestamp, pad) for pad in (True, False))
        right = {"version": offered >> 4 <= own >> 4, "name": name == self.options.get("name")}
        right["proof"] = given in (full, bare)
        wrong = next((each for each in right if not right[each]), None)
        statuses = {"version": 4, "name": 2, "proof": 3} if cmpp else {"version": 22, "name": 21, "proof": 21}
        status = self.options.get("login_status", statuses.get(wrong, 0))
        # The answer has the layout of the offered version, also if it is refused.
        link.version, answer = offered, {"version": own}
        if status == 0:
            width = 1 if cmpp and offered < 0x30 else 4
            proof = bytes(16) if self.options.get("no_proof") else self.codec.proof(0, width, given, password)
            answer = {"authenticator": proof.hex(), "version": offered if cmpp else own}
        link.send("login_resp", login["sequence"], status=status, **answer)
        tell("login", **shown, status=status, padded=given == full)
        link.ready = status == 0
        link.usable = link.ready and login.get("mode") != 0
        self.pump()
        return link.ready

    def take_submit(self, link, octets, pdu):
        sequence, body, zeros = pdu["sequence"], octets[HEADER:], "00" * self.codec.id_size
        counts, options = self.counts, self.options
        counts["submits"] += 1
        link.unanswered.add(sequence)
        counts["most_unanswered"] = max(counts["most_unanswered"], len(link.unanswered))
        before = link.seen.get(sequence)
        duplicate, conflict = bool(before and before[0] == body), bool(before and before[0] != body)
        if duplicate:
            _, status, ids = before
        else:
            counts["new"] += 1
            limited = bool(options.get("flow_every")) and counts["new"] % options["flow_every"] == 0
            status = (8 if self.codec.cmpp else 1) if limited else options.get("result", 0)
            ids = self.next_ids(len(pdu["destinations"])) if status == 0 else [zeros]
            counts["refused" if status else "accepted"] += 1
            link.seen[sequence] = (body, status, ids)
            if limited:
                # It may come again with its old sequence, and gets a new answer then.
                del link.seen[sequence]
        flags = {"duplicate": duplicate, "conflict": conflict, "silent": self.once("silent"), "cut": self.once("cut")}
        counts.update({"duplicates": duplicate, "conflicts": conflict})
        if not options.get("quiet"):
            shown = {"udhi": 0, "link_id": "", **self.codec.explained(pdu), "id": ids[0], "status": status}
            self.say("submitted", link, **shown, **{name: True for name, flag in flags.items() if flag})
        about = []
        if status == 0 and not duplicate:
            text = split_header(bytes.fromhex(pdu["content"]), pdu.get("udhi", 0))[1]
            common = {"source": pdu["source"], "service": pdu["service"], "time": now("%y%m%d%H%M"), "text": text}
            about = [{"id": each, "number": number, **common} for each, number in zip(ids, pdu["destinations"])]
            self.submits.update((each["id"], each) for each in about)
        when = options.get("report", "none") if pdu["registered_delivery"] == 1 else "none"

        def report():
            for each in about:
                self.report(link, {"id": each["id"], "number": each["number"]})

        def answer():
            if link in self.links:
                link.unanswered.discard(sequence)
                link.send("submit_resp", sequence, msg_id=ids[0], status=status)
            if when == "after":
                report()

        if when == "before":
            report()
        if flags["cut"]:
            return False
        if not flags["silent"]:
            self.held.append(answer) if options.get("hold") else answer()
        return True

    def report(self, link, fields, times=1):
        """Sends a report; its fields are those of the action, else the options, else as the Submit was."""
        fields = {**self.options, **fields}
        unknown = {"source": "", "service": "", "number": "", "time": now("%y%m%d%H%M"), "text": b""}
        about = self.submits.get(fields["id"], unknown)
        others = [each for each in self.links if each.usable and each is not link]
        if fields.get("report_on") == "other" and others:
            link = others[-1]
        version = link.version if link else self.options.get("version", 48)
        number, stat = fields.get("number", about["number"]), fields.get("stat", "DELIVRD")
        length = fields.get("report_length", 71 if version >= 0x30 else 60)
        dates = fields.get("submit_time", about["time"]), fields.get("done_time", now("%y%m%d%H%M"))
        more = number, length, self.counts["reports"], fields.get("err", "000"), about["text"]
        content = self.codec.report(fields["id"], stat, *dates, *more)
        pdu = {"source": number, "destination": about["source"], "service": about["service"], "content": content.hex()}
        times *= 2 if fields.get("double") else 1
        self.counts["reports"] += times
        self.push("report", {**pdu, "is_report": 1, "msg_id": self.next_ids()[0]}, times, link)

    def push(self, about, pdu, times, link=None):
        pdu = {"command": "deliver", "time": now("%Y%m%d%H%M%S"), **pdu}
        self.counts["delivers"] += times
        for _ in range(times):
            self.queue(Entry(pdu, about), link)

    def deliver(self, fields, times):
        pdu = {"command": "deliver", "format": 4} | {key: fields[key] for key in fields if key not in ("text", "id")}
        self.reference += 1
        text, form = fields.get("text"), fields.get("format")
        for part in [pdu] if text is None else self.codec.parts(pdu, text, form, self.reference):
            self.push("deliver", {**part, "msg_id": fields.get("id") or self.next_ids()[0]}, times)

    def take_deliver_resp(self, link, _, pdu):
        if entry := link.settle(pdu):
            self.counts.update(answers=1, refused_delivers=pdu["status"] != 0)
            more = {} if pdu["msg_id"] == entry.pdu["msg_id"] else {"wrong_id": True}
            self.say("answered", link, id=pdu["msg_id"], status=pdu["status"], about=entry.tag, **more)
            self.pump(link)

    def take_query(self, link, _, pdu):
        echo, sent = {key: pdu[key] for key in ("time", "query_type", "query_code")}, self.counts["accepted"]
        link.send("query_resp", pdu["sequence"], **echo, mt_messages=sent, mt_users=sent, mt_sent=sent)
        self.say("queried", link, **pdu)

    def act(self, action):
        super().act(action)
        if "deliver" in action:
            self.deliver(action["deliver"], action.get("times", 1))
        if "report" in action:
            self.report(None, action["report"], action.get("times", 1))
        if how := action.get("answer"):
            for _ in range(how if type(how) is int else len(self.held)):
                if self.held:
                    (self.held.pop if how == "backwards" else self.held.popleft)()()


class Burst:
    def __init__(self, count):
        self.count, self.start, self.answers = count, time.monotonic(), collections.Counter()

    def settled(self, status):
        """Takes the status of an answer, or None if it will never come."""
        self.answers[status] += 1
        if self.answers.total() == self.count:
            accepted, lost = self.answers.pop(0, 0), self.answers.pop(None, 0)
            seconds = round(time.monotonic() - self.start, 3)
            tell("burst", count=self.count, accepted=accepted, refused=self.answers, lost=lost, seconds=seconds)


class Sp(Peer):
    counted = ("answers", "accepted", "reports", "duplicate_reports", "delivers", "duplicate_delivers")

    def __init__(self, options):
        super().__init__(options)
        self.known = set()

    async def connect(self, options):
        for _ in range(options.get("connections", 1)):
            try:
                link = self.attach(*await asyncio.open_connection(self.host(), options["port"]))
            except OSError as error:
                tell("unreachable", text=str(error))
                continue
            if not options.get("login", True):
                link.ready = link.usable = True
                self.pump()
                continue
            name, timestamp = options.get("name", ""), options.get("timestamp", int(now("%m%d%H%M%S")))
            proof = self.codec.authenticator(name, options.get("password", ""), timestamp, not options.get("unpadded"))
            link.login = {"name": name, "authenticator": proof.hex(), "timestamp": timestamp, "version": link.version}
            link.send("login", link.next_sequence(), **link.login, mode=options.get("mode", 2))

    def take_login_resp(self, link, octets, pdu):
        status, given = pdu["status"], pdu["authenticator"]
        if not link.login or link.ready:
            tell("unasked", connection=link.number, **pdu)
            return
        own, password = bytes.fromhex(link.login["authenticator"]), self.options.get("password", "")
        # All but Status are 29 octets, so that its width is the rest.
        proof = self.codec.proof(status, len(octets) - 29, own, password).hex()
        if status == 0:
            link.ready = link.usable = True
            link.version = min(link.version, pdu["version"]) if self.codec.cmpp else link.version
        more = {"proof": given == proof, "zeros": not given.strip("0"), "octets": len(octets)}
        tell("logged_in", connection=link.number, status=status, version=pdu["version"], **more)
        self.pump()

    def templates(self, fields):
        """The Submits for the fields of an action."""
        pdu = {"command": "submit", "source": self.options.get("source", ""), "fee_code": "000000", "format": 4}
        if self.codec.cmpp:
            pdu |= {"pk_total": 1, "pk_number": 1, "fee_user_type": 2, "fee_type": "01"}
            pdu["source_id"] = self.options.get("name", "")
        else:
            pdu |= {"msg_type": 6, "fee_type": "00", "fixed_fee": "000000", "priority": fields.get("level", 0)}
        pdu |= {"registered_delivery": fields.get("report", 0), **fields}
        text = pdu.pop("text", None)
        self.reference += 1
        return [pdu] if text is None else self.codec.parts(pdu, text, fields.get("format"), self.reference)

    def act(self, action):
        super().act(action)
        if "connect" in action:
            self.change(action["connect"])
            self.background(self.connect(dict(self.options)))
        if "submit" in action:
            for number, pdu in enumerate(self.templates(action["submit"])):
                if "sequence" in pdu:
                    pdu["sequence"] = (pdu["sequence"] + number) & 0xFFFF_FFFF
                self.queue(Entry(pdu, action.get("tag"), times=action.get("times", 1)))
        if "burst" in action:
            count, first = action["burst"]["count"], action["burst"].get("first", 13800000000)
            pdu, burst = self.templates(action["burst"])[0], Burst(count)
            self.waiting.extend(Entry(pdu, number=first + each, burst=burst) for each in range(count))
            self.pump()

    def take_submit_resp(self, link, _, pdu):
        if entry := link.settle(pdu):
            self.counts.update(answers=1, accepted=pdu["status"] == 0)
            if entry.burst:
                entry.burst.settled(pdu["status"])
            else:
                more = {"part": entry.pdu["pk_number"]} if entry.pdu.get("pk_total", 1) > 1 else {}
                more |= {"tag": entry.tag, "sequence": pdu["sequence"]}
                self.say("answered", link, status=pdu["status"], id=pdu["msg_id"], **more)
            self.pump(link)

    def take_deliver(self, link, _, pdu):
        shown, result = self.codec.explained(pdu), self.options.get("deliver_result", 0)
        is_report, report = bool(pdu["is_report"]), shown.pop("report", None)
        name, key = "reports" if is_report else "delivers", pdu["msg_id"]
        if report:
            key = (report["submission"], report["stat"], pdu["source"])
        flags = {"duplicate": key in self.known, "silent": self.once("deliver_silent")}
        self.known.add(key)
        self.counts.update({name: 1, "duplicate_" + name: flags["duplicate"]})
        if not flags["silent"]:
            link.send("deliver_resp", pdu["sequence"], msg_id=pdu["msg_id"], status=result)
        more = {"number": pdu["source"], **(report or {"submission": None, "stat": None})} if is_report else {}
        more |= {name: True for name, flag in flags.items() if flag} | {"id": shown.pop("msg_id"), "result": result}
        self.say("reported" if is_report else "delivered", link, **{"udhi": 0, "link_id": "", **shown, **more})


class CodecOnly(Peer):
    def act(self, action):
        codec = Codec(action.get("protocol", self.options["protocol"]))
        version = action.get("version", self.options.get("version", 48))
        try:
            if "decode" in action:
                tell("decoded", **codec.explained(codec.decode(bytes.fromhex(action["decode"]), version)))
            if "encode" in action:
                tell("encoded", hex=codec.encode(action["encode"], version).hex())
        except (Broken, OverflowError, ValueError, KeyError) as wrong:
            tell("broken", text=f"{type(wrong).__name__}: {wrong}")


async def main():
    options = json.loads(sys.argv[1])
    peer = {"gateway": Gateway, "sp": Sp, "codec": CodecOnly}[options.pop("role")](options)
    await peer.start()
    lines = asyncio.StreamReader(limit=1 << 22)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        try:
            peer.act(json.loads(line))
        except Exception as error:  # a wrong action must not end the peer
            tell("error", text=repr(error))


asyncio.run(main())
