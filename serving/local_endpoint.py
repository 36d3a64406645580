"""A local OpenAI-compatible endpoint for simulated users and judges, by engines that exist.

On a CPU llama.cpp's server, from the prebuilt package `xllamacpp`, on a GPU SGLang's.

Promises: the endpoint answers before anybody is told of it; a port that is taken or a model that
is not there is an error before anything starts. Knows nothing of who calls.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class EndpointError(ValueError):
    """The endpoint cannot be started; the message says why and what to do."""


@dataclass(frozen=True)
class LocalEndpoint:
    """What to serve, and where.

    Attributes:
        model: A GGUF file for llama.cpp, a Hugging Face folder or name for SGLang.
        name: What clients call the model.
        host, port: Where it listens.
        parallel: Requests that decode together.
        context: Longest conversation of each, in tokens.
        threads: CPU threads; None for half of the cores. llama.cpp only.
    """

    model: Path
    name: str
    host: str = "127.0.0.1"
    port: int = 8700
    parallel: int = 4
    context: int = 4096
    threads: int | None = None

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"http://{self.host}:{self.port}/v1"

    def check(self) -> None:
        """Check what can be known before the start.

        Raises:
            EndpointError: If a number is out of range, the model is not there or the port taken.
        """
        for key, least in (("parallel", 1), ("context", 256), ("threads", 1)):
            value = getattr(self, key)
            if value is not None and value < least:
                raise EndpointError(f"--{key} {value}: must be a whole number from {least} up")
        if not self.model.exists():
            raise EndpointError(f"--model {self.model}: there is no such file or folder")
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except (OSError, OverflowError) as error:
                raise EndpointError(
                    f"{self.host}:{self.port}: cannot listen there ({error}); choose another with "
                    "--host and --port"
                ) from error


@contextmanager
def llama_server(endpoint: LocalEndpoint) -> Iterator[None]:
    """Serve a GGUF file with llama.cpp while the context lasts.

    Raises:
        EndpointError: If the package is not installed or the model cannot be loaded.
    """
    endpoint.check()
    try:
        import xllamacpp
    except ImportError as error:
        raise EndpointError(
            "llama.cpp's server is not installed: pip install xllamacpp (part of the extra `cpu`)"
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = str(endpoint.model)
    params.model_alias = {endpoint.name}
    params.hostnames = [endpoint.host]
    params.port = endpoint.port
    params.n_parallel = endpoint.parallel
    params.n_ctx = endpoint.parallel * endpoint.context
    # Its threads spin while they wait for each other: where a policy decodes beside it, a thread
    # for every core makes both crawl.
    params.cpuparams.n_threads = endpoint.threads or max(1, (os.cpu_count() or 1) // 2)
    params.verbosity = 0
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise EndpointError(
            f"--model {endpoint.model}: llama.cpp cannot serve it: {error}"
        ) from error
    try:
        yield
    finally:
        del server


def sglang_command(endpoint: LocalEndpoint) -> list[str]:
    """Return the command that serves a Hugging Face model with SGLang on a GPU."""
    return [
        sys.executable, "-m", "sglang.launch_server",
        "--model-path", str(endpoint.model),
        "--served-model-name", endpoint.name,
        "--host", endpoint.host,
        "--port", str(endpoint.port),
        "--max-running-requests", str(endpoint.parallel),
        "--context-length", str(endpoint.context),
    ]  # fmt: skip
