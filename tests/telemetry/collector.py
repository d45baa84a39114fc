"""A stand-in for a collector: takes OTLP over HTTP, and may be slow, broken or gone."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

LONG_S = 30.0


class Collector:
    """What came, decoded; `status` is what it answers, `gate` holds answers back until it is set."""

    def __init__(self) -> None:
        self.status = 200
        self.gate = threading.Event()
        self.gate.set()
        self.endpoint = ""
        self.spans: list[Span] = []
        self.metrics: set[str] = set()
        self.headers: dict[str, str] = {}
        self.resource: dict[str, str] = {}
        self.changed = threading.Condition()
        self.requests = 0
        self.bodies = bytearray()

    def take(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        with self.changed:
            self.requests += 1
            self.bodies += body
            self.headers = headers
            if path == "/v1/traces":
                for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self.resource = {one.key: one.value.string_value for one in part.resource.attributes}
                    self.spans += [span for scope in part.scope_spans for span in scope.spans]
            else:
                assert path == "/v1/metrics"
                request = ExportMetricsServiceRequest.FromString(body)
                self.metrics |= {
                    metric.name
                    for part in request.resource_metrics
                    for scope in part.scope_metrics
                    for metric in scope.metrics
                }
            self.changed.notify_all()

    def named(self, name: str) -> list[Span]:
        with self.changed:
            return [span for span in self.spans if span.name == name]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Runs a collector on a free port."""
    collector = Collector()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if collector.status == 200:
                collector.take(self.path, body, dict(self.headers))
            else:
                with collector.changed:
                    collector.requests += 1
                    collector.changed.notify_all()
            collector.gate.wait(LONG_S)
            try:
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:
                pass  # whoever asked has given up

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    collector.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield collector
    finally:
        collector.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()
