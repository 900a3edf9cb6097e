"""SGIP 1.2/1.3: octets and fields, written only from the protocol's tables, as an independent reference.

A PDU is a dict: {"command": "submit", "sequence": [node, time, counter], fields…}. Numbers are numbers, padded texts are
text (latin-1, cut at the first NUL), contents and reserved octets are hex. `decode` is strict: what is a single octet too
long or too short is `Broken`.
"""

import struct

HEADER = 20
#: Maximum PDU length; 100 users and a text do not fit into the 2048 octets of the document.
LARGEST = 8192
ANSWER = 0x8000_0000

IDS = {
    "bind": 0x1,
    "unbind": 0x2,
    "submit": 0x3,
    "deliver": 0x4,
    "report": 0x5,
    "add_sp": 0x6,
    "modify_sp": 0x7,
    "delete_sp": 0x8,
    "query_route": 0x9,
    "add_tele_seg": 0xA,
    "modify_tele_seg": 0xB,
    "delete_tele_seg": 0xC,
    "add_smg": 0xD,
    "modify_smg": 0xE,
    "delete_smg": 0xF,
    "check_user": 0x10,
    "user_rpt": 0x11,
    "trace": 0x1000,
}
NAMES = {number: name for name, number in IDS.items()}
NAMES |= {number | ANSWER: name + "_resp" for name, number in IDS.items()}
NUMBERS = {name: number for number, name in NAMES.items()}


class Broken(Exception):
    """Octets that are not a PDU."""


# Kinds of field: I = number, T = text padded with NUL, X = raw octets as hex, S = sequence, L = length of the content and
# the content itself, U = count of the users and their numbers, R = one or more repeated groups, preceded by a count.
RESERVE = ("reserve", "X", 8)
RESULT = [("result", "I", 1), RESERVE]
LAYOUTS = {
    "bind": [("login_type", "I", 1), ("name", "T", 16), ("password", "T", 16), RESERVE],
    "unbind": [],
    "unbind_resp": [],
    "submit": [
        ("sp_number", "T", 21),
        ("charge_number", "T", 21),
        ("user_numbers", "U", 21),
        ("corp_id", "T", 5),
        ("service_type", "T", 10),
        ("fee_type", "I", 1),
        ("fee_value", "T", 6),
        ("given_value", "T", 6),
        ("agent_flag", "I", 1),
        ("mo_relate_to_mt_flag", "I", 1),
        ("priority", "I", 1),
        ("expire_time", "T", 16),
        ("schedule_time", "T", 16),
        ("report_flag", "I", 1),
        ("tp_pid", "I", 1),
        ("tp_udhi", "I", 1),
        ("message_coding", "I", 1),
        ("message_type", "I", 1),
        ("content", "L", 4),
        RESERVE,
    ],
    "deliver": [
        ("user_number", "T", 21),
        ("sp_number", "T", 21),
        ("tp_pid", "I", 1),
        ("tp_udhi", "I", 1),
        ("message_coding", "I", 1),
        ("content", "L", 4),
        RESERVE,
    ],
    "report": [
        ("submit_sequence", "S", 12),
        ("report_type", "I", 1),
        ("user_number", "T", 21),
        ("state", "I", 1),
        ("error_code", "I", 1),
        RESERVE,
    ],
    "user_rpt": [("sp_number", "T", 21), ("user_number", "T", 21), ("user_condition", "I", 1), RESERVE],
    "trace": [("submit_sequence", "S", 12), ("user_number", "T", 21), RESERVE],
    "check_user": [("user_name", "T", 16), ("password", "T", 16), ("user_number", "T", 21), RESERVE],
    "check_user_resp": [("result", "I", 1), ("status", "I", 1), RESERVE],
    "add_sp": [("smg_id", "T", 6), ("sp_number", "T", 21), ("service_tag", "T", 10), ("corp_id", "T", 5), RESERVE],
    "modify_sp": [
        ("smg_id", "T", 6),
        ("old_sp_number", "T", 21),
        ("old_service_tag", "T", 10),
        ("new_sp_number", "T", 21),
        ("new_service_tag", "T", 10),
        ("corp_id", "T", 5),
        RESERVE,
    ],
    "delete_sp": [("smg_id", "T", 6), ("sp_number", "T", 21), ("service_tag", "T", 10), RESERVE],
    "query_route": [("query_type", "I", 1), ("number", "T", 21), ("service_tag", "T", 10), RESERVE],
    "add_tele_seg": [("smg_id", "T", 6), ("tele_seg", "T", 7), ("tele_type", "T", 1), ("area_code", "T", 4), RESERVE],
    "modify_tele_seg": [
        ("smg_id", "T", 6),
        ("old_tele_seg", "T", 7),
        ("new_tele_seg", "T", 7),
        ("new_tele_type", "T", 1),
        ("new_area_code", "T", 4),
        RESERVE,
    ],
    "delete_tele_seg": [("smg_id", "T", 6), ("tele_seg", "T", 7), RESERVE],
    "add_smg": [
        ("smg_id", "T", 6),
        ("smg_ip", "I", 4),
        ("login_name", "T", 16),
        ("login_password", "T", 16),
        RESERVE,
    ],
    "modify_smg": [
        ("old_smg_id", "T", 6),
        ("new_smg_id", "T", 6),
        ("smg_ip", "I", 4),
        ("login_name", "T", 16),
        ("login_password", "T", 16),
        RESERVE,
    ],
    "delete_smg": [("smg_id", "T", 6), RESERVE],
}
for each in NUMBERS:
    if each.endswith("_resp"):
        LAYOUTS.setdefault(each, RESULT)


def _trace_group(node):
    return [("result", "I", 1), ("node_id", "T", node), ("receive_time", "T", 16), ("send_time", "T", 16), RESERVE]


ROUTE_GROUP = [
    ("type", "I", 1),
    ("number", "T", 21),
    ("mark", "T", 10),
    ("code", "T", 5),
    ("smg_id", "T", 6),
    ("smg_ip", "I", 4),
    ("login_user", "T", 16),
    ("password", "T", 16),
    RESERVE,
]


def size_of(group):
    return sum(size for _, _, size in group)


class _Octets:
    def __init__(self, octets):
        self.octets, self.at = octets, 0

    def take(self, count, what):
        if self.at + count > len(self.octets):
            raise Broken(f"{what} goes beyond the end of the PDU")
        taken = self.octets[self.at : self.at + count]
        self.at += count
        return taken

    def number(self, size, what):
        return int.from_bytes(self.take(size, what), "big")

    def text(self, size, what):
        return self.take(size, what).split(b"\0", 1)[0].decode("latin-1")


def _read(octets, layout):
    fields = {}
    for name, kind, size in layout:
        if kind == "I":
            fields[name] = octets.number(size, name)
        elif kind == "T":
            fields[name] = octets.text(size, name)
        elif kind == "X":
            fields[name] = octets.take(size, name).hex()
        elif kind == "S":
            fields[name] = list(struct.unpack(">III", octets.take(size, name)))
        elif kind == "L":
            fields[name] = octets.take(octets.number(size, name), name).hex()
        elif kind == "U":
            fields[name] = [octets.text(size, name) for _ in range(octets.number(1, "user_count"))]
    return fields


def _padded(text, size, what):
    octets = text.encode("latin-1")
    if len(octets) > size:
        raise ValueError(f"{what} of {len(octets)} octets, at most {size} fit")
    return octets.ljust(size, b"\0")


def _written(layout, fields):
    octets = b""
    for name, kind, size in layout:
        if kind == "I":
            octets += fields.get(name, 0).to_bytes(size, "big")
        elif kind == "T":
            octets += _padded(fields.get(name, ""), size, name)
        elif kind == "X":
            octets += bytes.fromhex(fields.get(name, "")).ljust(size, b"\0")
        elif kind == "S":
            octets += struct.pack(">III", *fields[name])
        elif kind == "L":
            content = bytes.fromhex(fields.get(name, ""))
            octets += fields.get("message_length", len(content)).to_bytes(size, "big") + content
        elif kind == "U":
            users = fields.get(name, [])
            octets += fields.get("user_count", len(users)).to_bytes(1, "big")
            octets += b"".join(_padded(user, size, name) for user in users)
    return octets


def length(header):
    """The length in the first four octets of a PDU, if valid."""
    announced = int.from_bytes(header[:4], "big")
    if not HEADER <= announced <= LARGEST:
        raise Broken(f"a length of {announced}")
    return announced


def decode(pdu):
    """The fields of a PDU; with content, also the decoded "text" and "part"."""
    if len(pdu) < HEADER or length(pdu) != len(pdu):
        raise Broken(f"{len(pdu)} octets, and another length in the header")
    _, number, *sequence = struct.unpack(">IIIII", pdu[:HEADER])
    name = NAMES.get(number)
    if name is None:
        raise Broken(f"no such command: {number:#010x}")
    octets = _Octets(pdu[HEADER:])
    if name == "trace_resp":
        count = octets.number(1, "count")
        # 1.2 has node ids of 6 octets, 1.3 of 10; the length distinguishes them.
        node = 10 if len(pdu) == HEADER + 1 + count * size_of(_trace_group(10)) else 6
        fields = {"entries": [_read(octets, _trace_group(node)) for _ in range(count)]}
    elif name == "query_route_resp":
        fields = {"result": octets.number(1, "result")} if len(pdu) > HEADER else {}
        if fields:
            fields["entries"] = [_read(octets, ROUTE_GROUP) for _ in range(octets.number(4, "count"))]
    else:
        fields = _read(octets, LAYOUTS[name])
    if octets.at != len(octets.octets):
        raise Broken(f"{len(octets.octets) - octets.at} octets too many in {name}")
    if "content" in fields:
        fields |= shown(bytes.fromhex(fields["content"]), fields["message_coding"], fields["tp_udhi"])
    return {"command": name, "sequence": sequence, **fields}


def encode(pdu):
    """The octets of a PDU. Missing numbers are 0, missing texts empty.

    To make wrong ones: "length", "user_count" and "message_length" overrule what is counted, "extra" (hex) is put behind,
    and "command" may be a number, with "body" (hex) as it is.
    """
    command = pdu["command"]
    number = command if isinstance(command, int) else NUMBERS[command]
    if "body" in pdu:
        body = bytes.fromhex(pdu["body"])
    elif command == "trace_resp":
        node = 10 if pdu.get("version") == "1.3" else 6
        entries = pdu.get("entries", [])
        body = bytes([len(entries)]) + b"".join(_written(_trace_group(node), each) for each in entries)
    elif command == "query_route_resp":
        entries = pdu.get("entries", [])
        body = struct.pack(">BI", pdu.get("result", 0), len(entries))
        body += b"".join(_written(ROUTE_GROUP, each) for each in entries)
    else:
        body = _written(LAYOUTS[command], pdu)
    body += bytes.fromhex(pdu.get("extra", ""))
    return struct.pack(">IIIII", pdu.get("length", HEADER + len(body)), number, *pdu["sequence"]) + body


def encoded_text(text, coding):
    """A text as octets of this MessageCoding."""
    if coding == 0:
        return text.encode("ascii")
    if coding == 8:
        return text.encode("utf-16-be")
    if coding == 15:
        return text.encode("gbk")
    return text.encode("latin-1")


def _decoded_text(octets, coding):
    encoding = {0: "ascii", 8: "utf-16-be", 15: "gb18030"}.get(coding, "latin-1")
    return octets.decode(encoding, "replace")


def shown(content, coding, udhi):
    """Decodes a content: its text and its segment position."""
    part, header = None, b""
    if udhi in (1, 0x40) and content and content[0] + 1 <= len(content):
        header, content = content[: content[0] + 1], content[content[0] + 1 :]
        at = 1
        while at + 2 <= len(header):
            element, size = header[at], header[at + 1]
            value = header[at + 2 : at + 2 + size]
            if element == 0 and size == 3 == len(value):
                part = {"reference": value[0], "total": value[1], "number": value[2]}
            if element == 8 and size == 4 == len(value):
                part = {"reference": int.from_bytes(value[:2], "big"), "total": value[2], "number": value[3]}
            at += 2 + size
    says = {"text": _decoded_text(content, coding)}
    if header:
        says["udh"] = header.hex()
    if part:
        says["part"] = part
    return says


def parts(text, coding, reference, room=None):
    """Splits a text into (tp_udhi, content) of as many messages as needed, without cutting characters."""
    whole = encoded_text(text, coding)
    if len(whole) <= (room or (160 if coding == 0 else 140)):
        return [(0, whole)]
    room = (room or 140) - 6
    pieces, piece = [], b""
    for character in text:
        octets = encoded_text(character, coding)
        if len(piece) + len(octets) > room:
            pieces.append(piece)
            piece = b""
        piece += octets
    pieces.append(piece)
    header = lambda number: bytes([5, 0, 3, reference & 0xFF, len(pieces), number])
    return [(1, header(number) + piece) for number, piece in enumerate(pieces, 1)]
