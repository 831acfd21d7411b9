"""An object store that speaks Amazon's protocol (moto), in a thread of this process or as a program of its own.

Writes are carried out one after the other: moto looks at a condition and writes in two steps, which a real store does
in one. As a program: `python -m tests.stand_ins.s3_server`, which prints its address.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Self
from uuid import uuid4

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_REGION": "us-east-1"}


class S3Server(AbstractContextManager["S3Server"]):
    """`refusing` makes every request fail; `requests` are the method and path of each."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._writing = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.requests: list[tuple[str, str]] = []
        self.refusing = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {**KEYS, "AWS_ENDPOINT_URL": self.url}

    def make_bucket(self) -> str:
        """The URL of a new, empty one."""
        import httpx

        name = f"bucket-{uuid4().hex[:12]}"
        httpx.put(f"{self.url}/{name}", headers={"Host": self.url.removeprefix("http://")}).raise_for_status()
        return f"s3://{name}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _answer(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        method = environment["REQUEST_METHOD"]
        self.requests.append((method, environment["PATH_INFO"]))
        if self.refusing:
            start_response("503 Service Unavailable", [])
            return [b""]
        if method in ("GET", "HEAD"):
            return self._app(environment, start_response)
        with self._writing:
            return list(self._app(environment, start_response))


if __name__ == "__main__":
    with S3Server() as server:
        print(server.url, flush=True)
        threading.Event().wait()
