"""Takes telemetry with the official message classes and prints what it took, one JSON object a line.

The first line tells the ports: {"grpc": N, "http": N}.
"""

import gzip
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from google.protobuf.json_format import MessageToDict, Parse
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

KINDS = {
    "traces": ("Trace", trace_service_pb2, trace_service_pb2_grpc),
    "metrics": ("Metrics", metrics_service_pb2, metrics_service_pb2_grpc),
    "logs": ("Logs", logs_service_pb2, logs_service_pb2_grpc),
}


def tell(signal, headers, message):
    line = {"signal": signal, "headers": headers, "body": MessageToDict(message)}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def register(server, signal):
    word, messages, services = KINDS[signal]

    def export(_self, request, context):
        tell(signal, {key: str(value) for key, value in context.invocation_metadata()}, request)
        return getattr(messages, f"Export{word}ServiceResponse")()

    base = getattr(services, f"{word}ServiceServicer")
    servicer = type(word, (base,), {"Export": export})()
    getattr(services, f"add_{word}ServiceServicer_to_server")(servicer, server)


class Web(BaseHTTPRequestHandler):
    def do_POST(self):
        signal = self.path.rsplit("/", 1)[-1]
        word, messages, _ = KINDS[signal]
        message = getattr(messages, f"Export{word}ServiceRequest")()
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if self.headers["content-type"] == "application/json":
            written = json.loads(body)
            digits_to_base64(written)
            Parse(json.dumps(written), message)
        else:
            message.ParseFromString(body)
        tell(signal, {key.lower(): value for key, value in self.headers.items()}, message)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def digits_to_base64(value):
    """Telemetry writes ids as hexadecimal digits where messages in JSON usually have base64."""
    import base64

    if isinstance(value, dict):
        for key in value:
            if key in ("traceId", "spanId", "parentSpanId"):
                value[key] = base64.b64encode(bytes.fromhex(value[key])).decode()
            else:
                digits_to_base64(value[key])
    elif isinstance(value, list):
        for item in value:
            digits_to_base64(item)


def main():
    server = grpc.server(ThreadPoolExecutor(4))
    for signal in KINDS:
        register(server, signal)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    web = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    print(json.dumps({"grpc": port, "http": web.server_address[1]}), flush=True)
    web.serve_forever()


main()
