"""A business system that uses only Python's standard library: receives pushes, and calls both interfaces.

Reads one JSON line per action from standard input, and writes one JSON line per event to standard output.
Start: python3 business.py '{"port": 0, "secret": "…"}'   ("secret": the key of the signatures; unset = not looked at)

Actions:
  {"fail": [how, …]}  what becomes of the next pushes, one each: a status such as 500 or 400, "close" (the connection is
                      cut without an answer), "fault" (an XML-RPC fault), "hang" (never answered while we run), "ok"
  {"rpc": {"url": "http://user:password@host:port/xmlrpc", "method": "sms.submit", "args": […]}, "tag": any}
                      a call with xmlrpc.client.ServerProxy: event "rpc" {"result"} or {"fault", "text"} or {"error"}
  {"http": {"url": "http://user:password@…", "method": "POST", "json": … | "body": "…", "headers": {…}}, "tag": any}
                      a call with urllib: event "http" {"status", "type", "headers", "body"}
Calls run beside each other; "again": n repeats one n times one after the other.

Events: "listening" {"port"}; "push" for each push {"format": "json" | "xmlrpc", "body": what it says, "method" (XML-RPC),
"id" and other headers in "headers", "signature": "good" | "bad" | "old" | "missing" | null, "answered": status or word};
"error".
"""

import base64
import collections
import hashlib
import hmac
import http.server
import json
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import xmlrpc.client

options = json.loads(sys.argv[1])
telling = threading.Lock()
failures = collections.deque()
never = threading.Event()

#: Maximum deviation of a signature's time, in seconds.
SKEW = 300


def plain(value):
    """Converts XML-RPC types that JSON lacks to text."""
    if isinstance(value, xmlrpc.client.DateTime):
        return value.value
    if isinstance(value, xmlrpc.client.Binary):
        return value.data.hex()
    raise TypeError(type(value))


def tell(event, **more):
    with telling:
        print(json.dumps({"event": event, **more}, default=plain), flush=True)


def check_signature(header, body):
    """Checks a signature: `t=<unix seconds>,v1=<hex of hmac-sha256 of "<t>.<body>">`."""
    if "secret" not in options:
        return None
    if header is None:
        return "missing"
    fields = dict(field.split("=", 1) for field in header.split(",") if "=" in field)
    stamp = fields.get("t", "")
    wanted = hmac.new(options["secret"].encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted, fields.get("v1", "")):
        return "bad"
    return "good" if abs(time.time() - int(stamp)) < SKEW else "old"


class PushHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        push = {"path": self.path, "headers": {name.lower(): value for name, value in self.headers.items()}}
        push["signature"] = check_signature(self.headers.get("Switchyard-Signature"), body)
        try:
            if self.headers.get_content_type() == "text/xml":
                arguments, method = xmlrpc.client.loads(body)
                push |= {"format": "xmlrpc", "method": method, "body": arguments[0] if len(arguments) == 1 else arguments}
            else:
                push |= {"format": "json", "body": json.loads(body)}
        except Exception as error:  # Whatever a parser of the library says about it, the test is to see it.
            tell("error", text=f"a push that cannot be read: {error!r}", hex=body.hex())
        with telling:
            how = failures.popleft() if failures else "ok"
        if push["signature"] not in ("good", None):
            how = 401
        tell("push", **push, answered=200 if how == "ok" else how)
        self.answer(how, push.get("format"))

    def answer(self, how, kind):
        if how == "hang":
            never.wait()
        if how in ("close", "hang"):
            self.close_connection = True
            return
        answer, content_type = b"", "application/json"
        if kind == "xmlrpc":
            content_type = "text/xml"
            said = xmlrpc.client.Fault(1, "not now") if how == "fault" else (True,)
            answer = xmlrpc.client.dumps(said, methodresponse=True).encode()
        self.send_response(200 if how in ("ok", "fault") else how)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, request, address):
        # The other side may be killed by the test.
        pass


def rpc(call):
    # One per thread: a ServerProxy is not thread-safe.
    server = xmlrpc.client.ServerProxy(call["url"], allow_none=call.get("allow_none", False), use_builtin_types=True)
    try:
        return {"result": getattr(server, call["method"])(*call.get("args", []))}
    except xmlrpc.client.Fault as fault:
        return {"fault": fault.faultCode, "text": fault.faultString}
    except xmlrpc.client.ProtocolError as error:
        return {"error": error.errcode, "text": error.errmsg}
    except (OSError, xmlrpc.client.Error) as error:
        return {"error": None, "text": repr(error)}


def web(call):
    parts = urllib.parse.urlsplit(call["url"])
    headers = dict(call.get("headers", {}))
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers.setdefault("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())
    url = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    data = call["body"].encode() if "body" in call else None
    if "json" in call:
        data = json.dumps(call["json"]).encode()
        headers.setdefault("Content-Type", "application/json")
    request = urllib.request.Request(url, data=data, headers=headers, method=call.get("method"))
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as refusal:
        answer = refusal
    except OSError as error:
        return {"status": None, "text": repr(error)}
    with answer:
        text = answer.read().decode()
        content_type = answer.headers.get_content_type()
        body = json.loads(text) if text and content_type.endswith("json") else text
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return {"status": answer.status, "type": content_type, "headers": headers, "body": body}


def work(calls):
    while True:
        name, how, action = calls.get()
        for _ in range(action.get("again", 1)):
            try:
                tell(name, tag=action.get("tag"), **how(action[name]))
            except Exception as error:  # A wrong action is the test's fault, and is to be seen there.
                tell("error", text=repr(error), tag=action.get("tag"))


server = Server(("127.0.0.1", options.get("port", 0)), PushHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
calls = queue.Queue()
for _ in range(options.get("callers", 8)):
    threading.Thread(target=work, args=(calls,), daemon=True).start()
tell("listening", port=server.server_address[1])
for line in sys.stdin:
    action = json.loads(line)
    if "fail" in action:
        with telling:
            failures.extend(action["fail"])
    if "rpc" in action:
        calls.put(("rpc", rpc, action))
    if "http" in action:
        calls.put(("http", web, action))
