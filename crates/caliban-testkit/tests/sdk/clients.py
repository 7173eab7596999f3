"""Drives the vendors' own clients against a scripted server.

Usage: clients.py BASE_URL. Prints `ok NAME` per client; exits non-zero with a reason otherwise.
Each client does the same five things, in the order of the script it is paired with: stream a text,
stream thinking with two parallel tool calls, return the results, ask without streaming, and meet
an error status.
"""

import sys
import traceback

import anthropic
import google.genai
import google.genai.errors
import google.genai.types as gt
import ollama
import openai

TEXT = "Hello from the scripted model."
THOUGHT = "Two files are worth a look."
DONE = "Both files are fine."
WHOLE = "In one piece."
CALLS = [("read_file", {"path": "a.rs"}), ("read_file", {"path": "b.rs"})]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def same(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def strict(model):
    """The clients build their types without validating them; this does, and returns the model."""
    type(model).model_validate(model.to_dict(mode="python"))
    return model


def run_anthropic(base):
    client = anthropic.Anthropic(api_key="test-key", base_url=base, max_retries=0)
    common = {"model": "claude-opus-4-7", "max_tokens": 4096}
    question = {"role": "user", "content": "look"}
    events = [strict(event) for event in client.messages.create(messages=[question], stream=True, **common)]
    same(events[-1].type, "message_stop", "last event")
    texts = [event.delta.text for event in events if event.type == "content_block_delta"]
    same("".join(texts), TEXT, "text")
    final = events[-2]
    same((final.delta.stop_reason, final.usage.output_tokens), ("end_turn", 7), "end")

    tools = [{"name": "read_file", "description": "reads", "input_schema": SCHEMA}]
    common |= {"tools": tools, "thinking": {"type": "adaptive", "display": "summarized"}}
    with client.messages.stream(messages=[question], **common) as stream:
        final = strict(stream.get_final_message())
    same((final.usage.input_tokens, final.usage.output_tokens), (12, 7), "usage")
    same(final.content[0].thinking, THOUGHT, "thinking")
    calls = [block for block in final.content if block.type == "tool_use"]
    same([(call.name, call.input) for call in calls], CALLS, "calls")
    same(final.stop_reason, "tool_use", "stop reason")
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "fine"} for call in calls]
    assistant = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in final.content]}
    for block in assistant["content"]:
        for extra in set(block) - {"type", "thinking", "signature", "id", "name", "input", "text"}:
            del block[extra]
    messages = [question, assistant, {"role": "user", "content": results}]
    with client.messages.stream(messages=messages, **common) as stream:
        same("".join(stream.text_stream), DONE, "text after tools")

    whole = strict(client.messages.create(messages=[question], **common))
    same(whole.content[0].text, WHOLE, "whole")
    counted = client.messages.count_tokens(model=common["model"], messages=[question])
    if counted.input_tokens < 1:
        raise AssertionError("no tokens counted")
    same(strict(client.models.list().data[0]).type, "model", "model list")
    try:
        client.messages.create(messages=[question], **common)
    except anthropic.RateLimitError as error:
        same(error.body["error"]["type"], "rate_limit_error", "error type")
    else:
        raise AssertionError("no error")


def run_openai_chat(base):
    client = openai.OpenAI(api_key="test-key", base_url=base + "/v1", max_retries=0)
    common = {"model": "gpt-4.1"}
    question = {"role": "user", "content": "look"}
    stream = client.chat.completions.create(
        messages=[question], stream=True, stream_options={"include_usage": True}, **common
    )
    chunks = [strict(chunk) for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    same(text, TEXT, "text")
    same((chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens), (12, 7), "usage")

    tools = [{"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}}]
    with client.chat.completions.stream(messages=[question], tools=tools, **common) as stream:
        for event in stream:
            if event.type == "chunk":
                strict(event.chunk)
        message = stream.get_final_completion().choices[0].message
    calls = message.tool_calls
    same([call.function.arguments for call in calls], ['{"path":"a.rs"}', '{"path":"b.rs"}'], "calls")
    assistant = {
        "role": "assistant",
        "content": message.content,
        "tool_calls": [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in calls
        ],
    }
    results = [{"role": "tool", "tool_call_id": call.id, "content": "fine"} for call in calls]
    stream = client.chat.completions.create(
        messages=[question, assistant, *results], tools=tools, stream=True, **common
    )
    same("".join(c.choices[0].delta.content or "" for c in stream), DONE, "text after tools")

    whole = strict(client.chat.completions.create(messages=[question], **common))
    same((whole.choices[0].message.content, whole.choices[0].finish_reason), (WHOLE, "stop"), "whole")
    same(client.models.list().data[0].object, "model", "model list")
    try:
        client.chat.completions.create(messages=[question], **common)
    except openai.RateLimitError as error:
        same(error.code, "rate_limit_exceeded", "error code")
    else:
        raise AssertionError("no error")


def run_openai_responses(base):
    client = openai.OpenAI(api_key="test-key", base_url=base + "/v1", max_retries=0)
    common = {
        "model": "gpt-5.5",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "auto"},
    }
    question = {"role": "user", "content": [{"type": "input_text", "text": "look"}]}
    events = [strict(event) for event in client.responses.create(input=[question], stream=True, **common)]
    final = events[-1].response
    same((final.output_text, final.status), (TEXT, "completed"), "text")
    same((final.usage.input_tokens, final.usage.output_tokens), (12, 7), "usage")

    tools = [{"type": "function", "name": "read_file", "parameters": SCHEMA, "strict": False}]
    with client.responses.stream(input=[question], tools=tools, **common) as stream:
        for event in stream:
            strict(event)
        final = stream.get_final_response()
    same(final.output[0].summary[0].text, THOUGHT, "summary")
    calls = [item for item in final.output if item.type == "function_call"]
    same([call.arguments for call in calls], ['{"path":"a.rs"}', '{"path":"b.rs"}'], "calls")
    replay = []
    for item in final.output:
        item = item.model_dump(exclude_none=True)
        replay.append({key: value for key, value in item.items() if key not in ("parsed_arguments", "status")})
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "fine"} for call in calls]
    with client.responses.stream(input=[question, *replay, *results], tools=tools, **common) as stream:
        for _ in stream:
            pass
        same(stream.get_final_response().output_text, DONE, "text after tools")

    whole = strict(client.responses.create(input=[question], **common))
    same(whole.output_text, WHOLE, "whole")
    try:
        client.responses.create(input=[question], **common)
    except openai.RateLimitError as error:
        same(error.code, "rate_limit_exceeded", "error code")
    else:
        raise AssertionError("no error")


def run_gemini(base):
    client = google.genai.Client(api_key="test-key", http_options=gt.HttpOptions(base_url=base))
    model = "gemini-3.8-flash"
    question = gt.Content(role="user", parts=[gt.Part(text="look")])
    chunks = list(client.models.generate_content_stream(model=model, contents=[question]))
    same("".join(chunk.text or "" for chunk in chunks), TEXT, "text")
    usage = chunks[-1].usage_metadata
    same((usage.prompt_token_count, usage.candidates_token_count), (12, 7), "usage")

    declaration = gt.FunctionDeclaration(name="read_file", description="reads", parameters_json_schema=SCHEMA)
    config = gt.GenerateContentConfig(
        tools=[gt.Tool(function_declarations=[declaration])],
        thinking_config=gt.ThinkingConfig(include_thoughts=True, thinking_level="HIGH"),
        automatic_function_calling=gt.AutomaticFunctionCallingConfig(disable=True),
    )
    parts = []
    for chunk in client.models.generate_content_stream(model=model, contents=[question], config=config):
        parts.extend(chunk.candidates[0].content.parts)
    same("".join(part.text for part in parts if part.thought), THOUGHT, "thoughts")
    calls = [part for part in parts if part.function_call]
    same([(part.function_call.name, part.function_call.args) for part in calls], CALLS, "calls")
    answers = [
        gt.Part(function_response=gt.FunctionResponse(id=c.function_call.id, name=c.function_call.name, response={"output": "fine"}))
        for c in calls
    ]
    history = [question, gt.Content(role="model", parts=calls), gt.Content(role="user", parts=answers)]
    chunks = client.models.generate_content_stream(model=model, contents=history, config=config)
    same("".join(chunk.text or "" for chunk in chunks), DONE, "text after tools")

    whole = client.models.generate_content(model=model, contents=[question])
    same(whole.text, WHOLE, "whole")
    counted = client.models.count_tokens(model=model, contents=[question])
    if counted.total_tokens < 1:
        raise AssertionError("no tokens counted")
    if not [entry.name for entry in client.models.list()][0].startswith("models/"):
        raise AssertionError("model list")
    try:
        client.models.generate_content(model=model, contents=[question])
    except google.genai.errors.APIError as error:
        same((error.code, error.status), (429, "RESOURCE_EXHAUSTED"), "error")
    else:
        raise AssertionError("no error")


def run_ollama(base):
    client = ollama.Client(host=base)
    model = "qwen3"
    question = {"role": "user", "content": "look"}
    chunks = list(client.chat(model=model, messages=[question], stream=True))
    same("".join(chunk.message.content or "" for chunk in chunks), TEXT, "text")
    same((chunks[-1].done_reason, chunks[-1].prompt_eval_count, chunks[-1].eval_count), ("stop", 12, 7), "end")

    tools = [{"type": "function", "function": {"name": "read_file", "description": "reads", "parameters": SCHEMA}}]
    thinking, calls = "", []
    for chunk in client.chat(model=model, messages=[question], tools=tools, think=True, stream=True):
        thinking += chunk.message.thinking or ""
        calls.extend(chunk.message.tool_calls or [])
    same(thinking, THOUGHT, "thinking")
    same([(call.function.name, dict(call.function.arguments)) for call in calls], CALLS, "calls")
    assistant = {"role": "assistant", "content": "", "thinking": thinking, "tool_calls": calls}
    results = [{"role": "tool", "tool_name": call.function.name, "content": "fine"} for call in calls]
    messages = [question, assistant, *results]
    chunks = client.chat(model=model, messages=messages, tools=tools, think=True, stream=True)
    same("".join(chunk.message.content or "" for chunk in chunks), DONE, "text after tools")

    whole = client.chat(model=model, messages=[question])
    same(whole.message.content, WHOLE, "whole")
    same(client.list().models[0].model, model, "model list")
    if "thinking" not in client.show(model).capabilities:
        raise AssertionError("capabilities")
    try:
        client.chat(model=model, messages=[question])
    except ollama.ResponseError as error:
        same(error.status_code, 429, "error status")
    else:
        raise AssertionError("no error")


CLIENTS = {
    "anthropic": run_anthropic,
    "openai-chat": run_openai_chat,
    "openai-responses": run_openai_responses,
    "gemini": run_gemini,
    "ollama": run_ollama,
}


def main():
    for name, client in CLIENTS.items():
        try:
            client(sys.argv[1])
        except Exception:
            # The script is shared: after one failure the others would be out of step.
            traceback.print_exc(file=sys.stdout)
            sys.exit(f"failed {name}")
        print(f"ok {name}")


if __name__ == "__main__":
    main()
