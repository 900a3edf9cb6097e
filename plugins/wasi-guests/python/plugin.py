"""Uses the system functions of Python's library that the policy document names, and notes the results."""

import os
import socket
import sys
import time

from wit_world import exports
from wit_world.exports.routing import Decision, Verdict_Reject
from wit_world.imports.types import RejectReason

wanted = ""


class Routing(exports.Routing):
    def configure(self, document):
        global wanted
        wanted = document

    def route(self, message):
        return Decision(Verdict_Reject(RejectReason.PROHIBITED), str(TRIED[wanted]()), [])


def read():
    try:
        with open("/etc/passwd") as file:
            return file.read()
    except OSError as error:
        return f"no file: {type(error).__name__}"


def write():
    try:
        with open("/tmp/out", "w") as file:
            return file.write("x")
    except OSError as error:
        return f"no file: {type(error).__name__}"


def connect():
    try:
        return socket.socket()
    except OSError as error:
        return f"no socket: {type(error).__name__}"


def say():
    print("one line\nanother\x1b line")
    print("in trouble", file=sys.stderr)
    sys.stdout.flush()
    return "said"


def sleep():
    before = time.monotonic()
    time.sleep(3600)
    return f"slept {time.monotonic() - before}"


def leave():
    os._exit(3)


TRIED = {
    "": lambda: "nothing",
    "time": lambda: int(time.time() * 1000),
    "random": lambda: os.urandom(16).hex(),
    "environment": lambda: dict(os.environ),
    "arguments": lambda: sys.argv,
    "input": lambda: repr(sys.stdin.read()),
    "read": read,
    "write": write,
    "connect": connect,
    "say": say,
    "sleep": sleep,
    "leave": leave,
}
