"""A client of number pools that uses PyPI redis: reads one JSON line per action from standard input, and writes one JSON line per
event to standard output.
Start: python pools.py '{"port": …, "protocol": 2 or 3, "username": …, "password": …, "cluster": true}'   (the last three are optional; "cluster" uses the library's RedisCluster)

Actions, each answered by the event "done" with {"answer"}, or with {"error": class, "text"}:
  {"do": [word, …]}                 one command; the answer is the library's
  {"pipeline": [[word, …], …]}      a pipeline without MULTI; an answer may be {"error", "text"}
  {"transaction": [[word, …], …]}   the same as a transaction of the library
  {"script": text, "key": …, "arguments": […]}   a registered script: called by SHA-1, loaded if unknown
  {"info": section}                 INFO as the library parses it
  {"states": pool}                  HGETALL of its states: {"count", "kinds": {state: how many}, "first": the least number}
  {"command": null}                 COMMAND as the library parses it: the number of commands, and the pool commands
  {"close": null}                   closes the connection; the next action reconnects
"""

import collections
import json
import sys

import redis

options = json.loads(sys.argv[1])
kind = redis.RedisCluster if options.get("cluster") else redis.Redis
client = kind(
    host="127.0.0.1",
    port=options["port"],
    protocol=options.get("protocol", 2),
    username=options.get("username"),
    password=options.get("password"),
    decode_responses=True,
)


def wrong(error):
    return {"error": type(error).__name__, "text": str(error)}


def plain(answer):
    return wrong(answer) if isinstance(answer, Exception) else answer


def piped(lines, transaction):
    with client.pipeline(transaction=transaction) as pipe:
        for words in lines:
            pipe.execute_command(*words)
        return [plain(answer) for answer in pipe.execute(raise_on_error=False)]


def states(pool):
    found = client.hgetall(f"{{{pool}}}:numstate")
    kinds = collections.Counter(found.values())
    return {"count": len(found), "kinds": kinds, "first": min(found, default=None)}


def commands(_):
    known = client.command()
    return {"count": len(known), "pools": sorted(name for name in known if name.startswith("pool."))}


def script(action):
    registered = client.register_script(action["script"])
    return registered(keys=[action["key"]], args=action["arguments"])


def act(action):
    if "script" in action:
        return script(action)
    (name, what), = action.items()
    deeds = {
        "do": lambda words: client.execute_command(*words),
        "pipeline": lambda lines: piped(lines, False),
        "transaction": lambda lines: piped(lines, True),
        "info": client.info,
        "states": states,
        "command": commands,
        "close": lambda _: client.close(),
    }
    return deeds[name](what)


for line in sys.stdin:
    try:
        told = {"answer": act(json.loads(line))}
    except redis.RedisError as error:
        told = wrong(error)
    print(json.dumps({"event": "done", **told}, default=str), flush=True)
