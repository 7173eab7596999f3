"""A small MCP server on standard input and output, for tests of the program that talks to it."""
import base64
import json
import os
import sys

SEEN = os.environ.get("SEEN")
GATE = os.environ.get("GATE")
MANY = int(os.environ.get("MANY", "0"))
DESCRIPTION = os.environ.get("DESCRIPTION")
PICTURE = os.environ.get("PICTURE")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value, is_error=False):
    return {"content": [{"type": "text", "text": value}], "isError": is_error}


def tool(called, description="Does it.", **properties):
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": called, "description": description, "inputSchema": schema}


TOOLS = [
    tool("add", open(DESCRIPTION).read() if DESCRIPTION else "Adds two numbers.", a="number", b="number"),
    tool("fail", "Always fails."),
    tool("environment", "Tells a variable.", name="string"),
    tool("approve", "Decides about calls.", tool_name="string"),
    tool("ask", "Asks the user first."),
    tool("judge", "Judges an event."),
    tool("raw", "Answers with this line, `ID` being that of the call.", line="string"),
] + ([tool("picture", "Shows a picture.")] if PICTURE else []) + [tool(f"extra_{number}", "x" * 400, value="string") for number in range(MANY)]


def picture():
    return base64.b64encode(open(PICTURE, "rb").read()).decode()


def call(name, arguments):
    if name == "add":
        return text(str(arguments["a"] + arguments["b"]))
    if name == "fail":
        return text("it broke", is_error=True)
    if name == "environment":
        return text(os.environ.get(arguments["name"], "(unset)"))
    if name == "approve":
        return text(os.environ["APPROVE"])
    if name == "picture":
        return {"content": [{"type": "image", "data": picture(), "mimeType": "image/png"}]}
    if name == "judge":
        return text(os.environ["JUDGE"])
    if name == "ask":
        send({"id": "question", "method": "elicitation/create", "params": {
            "message": "Really?",
            "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}}})
        for line in sys.stdin:
            answer = json.loads(line)
            if answer.get("id") == "question":
                return text("the user said " + answer["result"]["action"])
    return text("extra", is_error=False)


def answer(method, params):
    if method == "initialize":
        if GATE:
            # Opening a pipe waits until somebody opens its other end.
            open(GATE).read()
        return {"protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "stub", "version": "1"},
                "instructions": "Numbers are in metres."}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}))
    if method == "resources/list":
        shot = [{"uri": "art://shot", "name": "shot", "mimeType": "image/png"}] if PICTURE else []
        return {"resources": [{"uri": "note://today", "name": "today", "mimeType": "text/plain"}] + shot}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "note://{day}/{hour}", "name": "note"}]}
    if method == "resources/read":
        uri = params["uri"]
        if uri == "art://shot":
            return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": picture()}]}
        said = open(uri[len("file://"):]).read() if uri.startswith("file://") else "read " + uri
        return {"contents": [{"uri": uri, "text": said}]}
    if method == "prompts/list":
        return {"prompts": [{"name": "greet", "arguments": [
            {"name": "who", "required": True}, {"name": "how"}]}]}
    if method == "prompts/get":
        given = params.get("arguments", {})
        return {"messages": [{"role": "user", "content": {
            "type": "text", "text": "Greet " + given["who"] + " " + given.get("how", "well")}}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if SEEN:
        with open(SEEN, "a") as log:
            log.write(line)
    if "id" in message and "method" in message:
        print("working on " + message["method"], file=sys.stderr, flush=True)
        if message.get("params", {}).get("name") == "raw":
            line = message["params"]["arguments"]["line"]
            print(line.replace("ID", json.dumps(message["id"])), flush=True)
            continue
        send({"id": message["id"], "result": answer(message["method"], message.get("params", {}))})
