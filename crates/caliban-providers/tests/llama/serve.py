"""Serves a tiny language model whose weights are written by hand, with a real llama.cpp server.

Usage: serve.py MODEL.gguf PORT

The model is a script of two states. Attention and feed-forward weights are zero, so the next token
depends on the last token of the prompt alone. The chat template ends the prompt with one of two
marker tokens: ask-for-a-call when tools are offered and the last message is not a tool's result,
ask-for-text otherwise. The output matrix maps the first marker to one token that spells a whole
call (Bash with "echo hi"), the second to one that spells the closing sentence, and either of those
to the end of the sequence. It prints `ready` once the server listens and then waits for its
standard input to close.
"""
import sys

import gguf
import numpy
import xllamacpp

CALL = '<tool_call>\n{"name": "Bash", "arguments": {"command": "echo hi"}}\n</tool_call>'
DONE = "All done."
WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT = 64, 2, 4, 128, 65536

TEMPLATE = """{%- if tools %}<|im_start|>system
<tools>{%- for tool in tools %}
{{ tool | tojson }}{%- endfor %}
</tools>
For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}{%- for message in messages %}{%- if message.role == "tool" %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.role == "assistant" and message.tool_calls %}<|im_start|>assistant
{%- if message.content %}
{{ message.content }}{%- endif %}{%- for call in message.tool_calls %}{%- set f = call.function if call.function else call %}
<tool_call>
{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}
</tool_call>{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% if tools and messages[-1].role != "tool" %}<|want_call|>{% else %}<|want_text|>{% endif %}{% endif %}"""


def write_model(path):
    normal, unknown, control, user, byte = 1, 2, 3, 4, 6
    vocabulary = [(b"<unk>", unknown), (b"<s>", control), (b"</s>", control)]
    vocabulary += [(f"<0x{value:02X}>".encode(), byte) for value in range(256)]
    vocabulary += [(bytes([code]), normal) for code in range(33, 127)]
    vocabulary += [("\u2581".encode(), normal)]
    call, text, want_call, want_text = range(len(vocabulary), len(vocabulary) + 4)
    vocabulary += [(CALL.encode(), user), (DONE.encode(), user)]
    vocabulary += [(b"<|want_call|>", control), (b"<|want_text|>", control)]
    end, size = 2, len(vocabulary)

    model = gguf.GGUFWriter(path, "llama")
    model.add_name("scripted")
    model.add_context_length(CONTEXT)
    model.add_embedding_length(WIDTH)
    model.add_block_count(LAYERS)
    model.add_feed_forward_length(HIDDEN)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_vocab_size(size)
    model.add_file_type(0)
    model.add_tokenizer_model("llama")
    model.add_token_list([token for token, _ in vocabulary])
    model.add_token_types([kind for _, kind in vocabulary])
    model.add_token_scores(
        [-float(i) if kind == normal else 0.0 for i, (_, kind) in enumerate(vocabulary)]
    )
    model.add_bos_token_id(1)
    model.add_eos_token_id(end)
    model.add_unk_token_id(0)
    model.add_add_bos_token(True)
    model.add_chat_template(TEMPLATE)

    embedding = numpy.zeros((size, WIDTH), numpy.float32)
    output = numpy.zeros((size, WIDTH), numpy.float32)
    embedding[:, 0] = 1.0
    for token, dimension in ((want_call, 1), (want_text, 2), (call, 3), (text, 3)):
        embedding[token] = 0
        embedding[token, dimension] = 1.0
    output[text, 0] = output[call, 1] = output[text, 2] = output[end, 3] = 5
    model.add_tensor("token_embd.weight", embedding)
    model.add_tensor("output.weight", output)
    model.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))

    def zeros(*shape):
        return numpy.zeros(shape, numpy.float32)

    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            model.add_tensor(f"{prefix}{name}.weight", zeros(WIDTH, WIDTH))
        model.add_tensor(prefix + "ffn_gate.weight", zeros(HIDDEN, WIDTH))
        model.add_tensor(prefix + "ffn_up.weight", zeros(HIDDEN, WIDTH))
        model.add_tensor(prefix + "ffn_down.weight", zeros(WIDTH, HIDDEN))
        model.add_tensor(prefix + "attn_norm.weight", numpy.ones(WIDTH, numpy.float32))
        model.add_tensor(prefix + "ffn_norm.weight", numpy.ones(WIDTH, numpy.float32))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def serve(path, port):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 2
    parameters.n_predict = 64
    parameters.warmup = False
    parameters.use_jinja = True
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    print("ready", server.listening_address, flush=True)
    sys.stdin.read()


write_model(sys.argv[1])
serve(sys.argv[1], int(sys.argv[2]))
