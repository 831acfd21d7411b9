"""A disk of a few megabytes that can be filled and freed; by one's own limit where nothing may be mounted."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE = "8m"


class Disk:
    """`folder` lies on it. `fill` leaves not a byte, `free` gives all back; a test that ends frees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self) -> None:
        raise NotImplementedError

    def free(self) -> None:
        raise NotImplementedError


class Mounted(Disk):
    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (65_536, 4096, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class Limited(Disk):
    """No file of this process may grow: "File too large" instead of "No space left"."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, self._before[1]))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    disk: Disk = Mounted(folder) if is_mounted else Limited(folder)
    try:
        yield disk
    finally:
        disk.free()
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
