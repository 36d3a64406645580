"""A chat endpoint that misbehaves to order: a real HTTP server with a script of faults.

Promises: answers follow the script, one step a call, then the last one for ever; remembers the
most calls in flight, the requests and their headers.
Knows nothing of the client.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = Callable[["Handler"], None]


@dataclass
class Log:
    """What the server saw."""

    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, steps: tuple[Step, ...], models: list[str] | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.steps = list(steps)
        self.models = models
        self.log = Log()
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        with self.lock:
            self.log.in_flight += 1
            self.log.most_in_flight = max(self.log.most_in_flight, self.log.in_flight)
        try:
            yield
        finally:
            with self.lock:
                self.log.in_flight -= 1

    def next_step(self) -> Step:
        with self.lock:
            return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the game."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.log.bodies.append(body)
            self.server.log.headers.append({k.lower(): v for k, v in self.headers.items()})
            self.server.log.times.append(time.time())
        self.body = body
        self.server.next_step()(self)

    def do_GET(self) -> None:
        if self.server.models is None:
            self.answer({"error": {"message": "no such path"}}, 404)
        else:
            data = [{"id": name, "object": "model"} for name in self.server.models]
            self.answer({"object": "list", "data": data})

    def answer(self, value: Any, status: int = 200, missing: int = 0, **headers: str) -> None:
        """Send JSON; `missing` bytes of it are promised and not sent."""
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(raw[: len(raw) - missing])
        if missing:
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def fault_server(*steps: Step, models: list[str] | None = None) -> Iterator[Server]:
    """Run a server in a thread for the time of a `with` block."""
    server = Server(steps, models)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def completion(content: str | None, finish: str = "stop") -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content},
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }


def says(content: str | None, finish: str = "stop") -> Step:
    return lambda handler: handler.answer(completion(content, finish))


def status(code: int, message: str = "no", **headers: str) -> Step:
    return lambda handler: handler.answer({"error": {"message": message}}, code, **headers)


def raw(value: Any) -> Step:
    return lambda handler: handler.answer(value)


def cut_body(handler: Handler) -> None:
    handler.answer(completion("a whole answer"), missing=40)


def drop(handler: Handler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def hang(handler: Handler) -> None:
    handler.server.stopped.wait(10)
    handler.close_connection = True


def dribble(handler: Handler) -> None:
    """A byte now and then: no read takes long, and there is no end."""
    handler.send_response(200)
    handler.send_header("content-length", "1000000")
    handler.end_headers()
    while not handler.server.stopped.wait(0.05):
        handler.wfile.write(b" ")


def slow(seconds: float, content: str = "hi") -> Step:
    """Answers after a while, and counts itself as in flight until then."""

    def step(handler: Handler) -> None:
        with handler.server.in_flight():
            time.sleep(seconds)
        handler.answer(completion(content))

    return step


def refuses(argument: str, otherwise: Step) -> Step:
    """400 to every request that holds an argument."""

    def step(handler: Handler) -> None:
        if argument in handler.body:
            handler.answer({"error": {"message": f"unknown parameter: {argument}"}}, 400)
        else:
            otherwise(handler)

    return step
