"""Takes telemetry by the collector of oteltest and prints what it took, one JSON object a line.

The first line tells the ports: {"grpc": N, "http": N}.
"""

import json
import logging
import socket
import sys
import threading
import time

from google.protobuf.json_format import MessageToDict
from oteltest.sink import GrpcSink, HttpSink
from oteltest.sink.handler import RequestHandler

TAKING = threading.Lock()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port):
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


class Teller(RequestHandler):
    def tell(self, signal, message, headers):
        line = {"signal": signal, "headers": dict(headers or {}), "body": MessageToDict(message)}
        with TAKING:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def handle_logs(self, request, headers):
        self.tell("logs", request, headers)

    def handle_metrics(self, request, headers):
        self.tell("metrics", request, headers)

    def handle_trace(self, request, headers):
        self.tell("traces", request, headers)


def main():
    logger = logging.getLogger()
    ports = {"grpc": free_port(), "http": free_port()}
    sinks = [
        GrpcSink(Teller(), logger, port=ports["grpc"]),
        HttpSink(Teller(), logger, port=ports["http"], daemon=False),
    ]
    for sink in sinks:
        sink.start()
    while not all(listens(port) for port in ports.values()):
        time.sleep(0.01)
    print(json.dumps(ports), flush=True)
    sinks[0].wait_for_termination()


main()
