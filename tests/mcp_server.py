"""A small MCP server over stdio that misbehaves as it is told. The standard library only: it starts
in a moment, and it can do what the `mcp` package would not let it.

python mcp_server.py BEHAVIOUR: plain, hang, garbage, flood, empty-lines, banner, many, paged,
bad-schema, ask, stubborn (ignores the end of its input and SIGTERM, and has a grandchild in a
session of its own).
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

BEHAVIOUR = sys.argv[1] if len(sys.argv) > 1 else "plain"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object", "properties": {}}
READ = {"readOnlyHint": True}


def tool(name, schema=NONE, **more):
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}


TOOLS = [
    tool("echo", TEXT, annotations=READ),
    tool("note", TEXT, annotations={"idempotentHint": True}),
    tool("wait", TEXT, annotations=READ),
    tool("die", TEXT, annotations={"readOnlyHint": False}),
    tool("environment"),
    tool("grow"),
    tool("dotted.name/x", TEXT),
    tool("fail"),
    tool("flaky", TEXT, annotations=READ),
]
if BEHAVIOUR == "many":
    TOOLS = [tool(f"tool_{n:03}", TEXT) for n in range(500)]
if BEHAVIOUR == "bad-schema":
    doubling = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    doubling["d60"] = {"type": "string"}
    TOOLS += [
        tool("wrong_type", {"type": "object", "properties": {"a": {"type": "strnig"}}}),
        tool("no_object", {"type": "string"}),
        tool("bad_key", {"type": "object", "properties": {"a b": {"type": "string"}}}),
        tool("bomb", {**TEXT, "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": doubling}),
        tool("union", {"type": "object", "oneOf": [TEXT, NONE]}),
    ]
if BEHAVIOUR == "ask":
    TOOLS = [tool("order", TEXT)]


def say(stream, line):
    stream.write(line + "\n")
    stream.flush()


def send(message):
    say(sys.stdout, json.dumps({"jsonrpc": "2.0", **message}))


def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}


def listed(params):
    if BEHAVIOUR != "paged":
        return {"tools": TOOLS}
    at = int((params or {}).get("cursor", 0))
    rest = {"nextCursor": str(at + 3)} if at + 3 < len(TOOLS) else {}
    return {"tools": TOOLS[at : at + 3], **rest}


def ask(arguments):
    """Ask a person how many; give the answer back."""
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
    params = {"message": f"How many {arguments['text']}?", "requestedSchema": schema}
    send({"id": 77, "method": "elicitation/create", "params": params})
    answer = json.loads(sys.stdin.readline())
    return text(json.dumps(answer["result"]))


def called(name, arguments, request_id, token):
    match name:
        case "echo" | "note" | "dotted.name/x":
            return text(f"{name}: {arguments['text']}")
        case "wait":
            if token is not None:
                params = {"progressToken": token, "progress": 1, "total": 2}
                send({"method": "notifications/progress", "params": params})
            time.sleep(float(arguments["text"]))
            return text("waited")
        case "die":
            os._exit(3)
        case "flaky":  # ends the first time; `text` is a file that says whether it was that
            if not (marker := Path(arguments["text"])).exists():
                marker.touch()
                os._exit(3)
            return text("again")
        case "environment":
            return text(json.dumps(dict(os.environ)))
        case "grow":
            TOOLS.append(tool("grown"))
            send({"method": "notifications/tools/list_changed"})
            return text("grown")
        case "fail":
            return text("it did not work", isError=True)
        case "order":
            return ask(arguments)
        case _:
            return text("done")


def answer(message):
    request_id, params = message["id"], message.get("params") or {}
    match message["method"]:
        case "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "test", "version": "1"},
            }
        case "tools/list":
            result = listed(params)
        case "tools/call":
            token = (params.get("_meta") or {}).get("progressToken")
            result = called(params["name"], params.get("arguments") or {}, request_id, token)
        case "ping":
            result = {}
        case _:
            send({"id": request_id, "error": {"code": -32601, "message": "no such method"}})
            return
    send({"id": request_id, "result": result})


def misbehave():
    match BEHAVIOUR:
        case "hang":
            time.sleep(3600)
        case "garbage":
            while True:
                say(sys.stdout, "this is no JSON")
        case "flood":
            while True:
                send({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
        case "empty-lines":
            while True:
                say(sys.stdout, "\n" * 1000)
        case "banner":
            say(sys.stdout, "Welcome to the server!")
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.Popen(["sleep", "3600"], start_new_session=True)
        case "exit":
            say(sys.stderr, "no configuration found")
            sys.exit(7)


misbehave()
for line in sys.stdin:
    received = json.loads(line)
    if "id" in received and "method" in received:
        answer(received)
if BEHAVIOUR == "stubborn":
    time.sleep(3600)
