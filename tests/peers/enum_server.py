"""A DNS server with PyPI dnslib: NAPTR records of an ENUM tree (RFC 6116), over UDP and TCP.

Options: {"records": {NUMBER: URI}}. Actions: {"do": "silence", "on": true|false}, {"do": "count"}.
Events: {"event": "ready", "port": N}, {"event": "asked", "number": NUMBER, "silent": true|false}, {"event": "count", "numbers": {NUMBER: N}}.
"""

import collections
import json
import sys
import threading

from dnslib import NAPTR, QTYPE, RCODE, RR, SOA
from dnslib.server import BaseResolver, DNSHandler, DNSServer

APEX = "e164.arpa"
TTL = 60


def tell(**event):
    print(json.dumps(event), flush=True)


def pointer(request, order, services, uri):
    regexp = f"!^.*$!{uri}!"
    data = NAPTR(order, 10, b"u", services.encode(), regexp.encode())
    return RR(request.q.qname, QTYPE.NAPTR, ttl=TTL, rdata=data)


class Tree(BaseResolver):
    """The tree; while it is silent, questions get no answer."""

    def __init__(self, records):
        self.records = records
        self.silent = False
        self.asked = collections.Counter()

    def resolve(self, request, handler):
        name = str(request.q.qname).rstrip(".").lower()
        number = name.removesuffix("." + APEX).replace(".", "")[::-1]
        silent = self.silent
        self.asked[number] += 1
        tell(event="asked", number=number, silent=silent)
        if silent:
            # The server reports an exception and sends nothing.
            raise TimeoutError("silent")
        reply = request.reply()
        uri = self.records.get(number)
        if uri is None:
            reply.header.rcode = RCODE.NXDOMAIN
            times = (1, 60, 60, 60, TTL)
            reply.add_auth(RR(APEX, QTYPE.SOA, ttl=TTL, rdata=SOA("ns." + APEX, "admin." + APEX, times)))
            return reply
        # Others come first in the packet, and a long text behind makes the answer too long for UDP.
        for order, services, text in [(20, "E2U+sip", "sip:a@example.org"), (10, "E2U+pstn:tel", uri)]:
            reply.add_answer(pointer(request, order, services, text))
        if "long" in uri:
            for order in range(30, 36):
                reply.add_answer(pointer(request, order, "E2U+web:http", "https://example.org/" + "x" * 150))
        return reply


class Handler(DNSHandler):
    """Truncates answers over UDP as servers do for questions without EDNS (RFC 1035 §4.2.1)."""

    udplen = 512


class Quiet:
    """Standard output is for events."""

    def __getattr__(self, _):
        return lambda *_: None


def main():
    tree = Tree(json.loads(sys.argv[1])["records"])
    stream = DNSServer(tree, address="127.0.0.1", port=0, tcp=True, logger=Quiet())
    port = stream.server.server_address[1]
    datagrams = DNSServer(tree, address="127.0.0.1", port=port, logger=Quiet(), handler=Handler)
    for server in (stream, datagrams):
        # An exception of a question is no output.
        server.server.handle_error = lambda *_: None
        server.start_thread()
    tell(event="ready", port=port)
    for line in sys.stdin:
        action = json.loads(line)
        if action["do"] == "silence":
            tree.silent = action["on"]
            tell(event="silence", on=tree.silent)
        elif action["do"] == "count":
            tell(event="count", numbers=dict(tree.asked))


if __name__ == "__main__":
    threading.current_thread().name = "control"
    main()
