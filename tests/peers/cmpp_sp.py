"""An SP that uses PyPI `pycmpp`: CMPP 2.1, without reports.

Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
Actions: {"submit": "text", "to": ["138…"]}. Events: "connected" {"status"}, "answered" {"status"}, "tested".
Start: python cmpp_sp.py '{"port": 7890, "name": "901234", "password": "1234"}'
"""

import json
import os
import sys
import threading

from pycmpp import handlers
from pycmpp.cmpp import Cmpp
from pycmpp.response import ConnectResponseInstance, SubmitResponseInstance

options = json.loads(sys.argv[1])


def tell(**event):
    print(json.dumps(event), flush=True)


class Connected(handlers.CmppConnectRespHandler):
    def __call__(self):
        answer = ConnectResponseInstance()
        answer.resolve(self.message)
        tell(event="connected", status=answer.status)


class Answered(handlers.CmppSubmitRespHandler):
    def __call__(self):
        answer = SubmitResponseInstance()
        answer.resolve(self.message)
        tell(event="answered", status=answer.status)


class Tested(handlers.CmppActiveTestRespHandler):
    def __call__(self):
        tell(event="tested")


sp = Cmpp(
    host="127.0.0.1",
    port=options["port"],
    sp_id=options["name"],
    sp_secret=options["password"],
    src_id="10655",
    delivery=1,
)
for handler in (Connected, Answered, Tested):
    sp.handlers[handler.command_id] = handler
threading.Thread(target=sp.run, daemon=True).start()
for line in sys.stdin:
    action = json.loads(line)
    sp.submit(action["submit"], action["to"])
# Its threads never end by themselves.
os._exit(0)
