"""An ESME that uses PyPI `smpplib`.

Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
Actions: {"text": "…", "from": "…", "to": "…", "receipt": true, "tag": any} (long texts are split into segments, as the
library does it), {"unbind": true}.
Start: python esme.py '{"port": 2775, "system_id": "acme", "password": "secret", "bind": "transceiver"}'
"""

import json
import os
import select
import sys
import threading

import smpplib.client
import smpplib.consts
import smpplib.exceptions
import smpplib.gsm

options = json.loads(sys.argv[1])
telling = threading.Lock()


def tell(**event):
    with telling:
        print(json.dumps(event), flush=True)


def received(pdu):
    tell(
        event="deliver",
        esm_class=pdu.esm_class,
        source=pdu.source_addr.decode(),
        destination=pdu.destination_addr.decode(),
        text=pdu.short_message.decode("latin-1"),
        receipted_message_id=pdu.receipted_message_id.decode() if pdu.receipted_message_id else None,
        message_state=pdu.message_state,
    )


def answered(pdu):
    message_id = pdu.message_id.decode() if getattr(pdu, "message_id", None) else None
    tell(event="answer", tag=tags.get(pdu.sequence), status=pdu.status, id=message_id)


tags = {}
client = smpplib.client.Client("127.0.0.1", options["port"], allow_unknown_opt_params=True)
client.set_message_received_handler(received)
client.set_message_sent_handler(answered)
client.set_error_pdu_handler(answered)
client.connect()
try:
    bind = getattr(client, "bind_" + options.get("bind", "transceiver"))
    answer = bind(system_id=options["system_id"], password=options["password"])
    tell(event="bound", status=answer.status)
except smpplib.exceptions.PDUError as refusal:
    tell(event="bound", status=refusal.args[1])
    sys.exit(0)


def act(action):
    if action.get("unbind"):
        client.unbind()
        client.disconnect()
        tell(event="closed")
        return False
    parts, coding, kind = smpplib.gsm.make_parts(action["text"])
    for part in parts:
        pdu = client.send_message(
            source_addr_ton=smpplib.consts.SMPP_TON_INTL,
            source_addr=action["from"],
            dest_addr_ton=smpplib.consts.SMPP_TON_INTL,
            dest_addr_npi=smpplib.consts.SMPP_NPI_ISDN,
            destination_addr=action["to"],
            short_message=part,
            data_coding=coding,
            esm_class=kind,
            registered_delivery=bool(action.get("receipt")),
        )
        tags[pdu.sequence] = action.get("tag")
    return True


# One thread: the library is not thread-safe. Lines are split here, since a buffered reader would hide input from select.
pending = b""
bound = True
try:
    while bound:
        ready, _, _ = select.select([client._socket, sys.stdin], [], [])
        if client._socket in ready:
            client.read_once()
        if sys.stdin in ready:
            octets = os.read(sys.stdin.fileno(), 65536)
            if not octets:
                break
            *whole, pending = (pending + octets).split(b"\n")
            for line in whole:
                bound = bound and act(json.loads(line))
except smpplib.exceptions.ConnectionError as lost:
    tell(event="closed", text=str(lost))
