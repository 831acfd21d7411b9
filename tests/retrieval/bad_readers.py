"""What hostile files make of a parser, by extension; the parsing process gets these readers beside our own."""

from __future__ import annotations

import ctypes
import json
import os
import re
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from crag_core.retrieval.readers.page import Page

NEVER = 300.0
_FRAMES = range(3, 64)
_GONE_BAD: list[str] = []


def sleep(content: bytes, name: str) -> tuple[Page, ...]:
    time.sleep(NEVER)
    return ()


def hold_all_threads(content: bytes, name: str) -> tuple[Page, ...]:
    """A regular expression that ends when the sun has gone out, and lets no other thread run meanwhile."""
    re.match(r"(a*)*$", "a" * 40 + "b")
    return ()


def crash(content: bytes, name: str) -> tuple[Page, ...]:
    ctypes.string_at(0)
    return ()


def crash_later(content: bytes, name: str) -> tuple[Page, ...]:
    """The file is read; the next one meets a process that is broken."""
    _GONE_BAD.append(name)
    return (Page("fine so far"),)


def crash_if_gone_bad(content: bytes, name: str) -> tuple[Page, ...]:
    if _GONE_BAD:
        os.abort()
    return (Page("as good as new"),)


def leave(content: bytes, name: str) -> tuple[Page, ...]:
    os._exit(0)


def be_killed(content: bytes, name: str) -> tuple[Page, ...]:
    os.kill(os.getpid(), 9)
    return ()


def eat_memory(content: bytes, name: str) -> tuple[Page, ...]:
    eaten = []
    while True:
        eaten.append(bytearray(10 * 2**20))


def blame_file(content: bytes, name: str) -> tuple[Page, ...]:
    """As a library that calls a refused allocation a fault of the file."""
    try:
        return eat_memory(content, name)
    except MemoryError:
        pass
    raise ValueError("unknown error")


def eat_memory_outside_python(content: bytes, name: str) -> tuple[Page, ...]:
    system = ctypes.CDLL(None)
    system.malloc.restype = ctypes.c_void_p
    while place := system.malloc(ctypes.c_size_t(10 * 2**20)):
        ctypes.memset(place, 1, 10 * 2**20)
    os.write(2, b"memory allocation of 10485760 bytes failed\nnote: run with RUST_BACKTRACE=1\n")
    system.abort()
    return ()


def chatter(content: bytes, name: str) -> tuple[Page, ...]:
    print("printed " * 50_000, flush=True)
    os.write(1, b"\xff" * 200_000)
    os.write(2, b"\nthe last line <b>of it</b>\n")
    return (Page(f"read, and stdin held {len(os.read(0, 10))} bytes"),)


def write_garbage(content: bytes, name: str) -> tuple[Page, ...]:
    """The garbage stands in the file, in hexadecimal digits."""
    _write_everywhere(bytes.fromhex(content.decode()))
    return (Page("garbage came first"),)


def forge_next(content: bytes, name: str) -> tuple[Page, ...]:
    """A second reply, for whoever asks next."""
    _write_everywhere(b"")
    header = json.dumps({"id": 1, "numbers": [None], "left_out": [""]}).encode()
    frame = struct.pack(">II", len(header), 6) + header + b"forged"
    _write_everywhere(frame + frame)
    time.sleep(0.2)
    return (Page("the true one"),)


def flood(content: bytes, name: str) -> tuple[Page, ...]:
    return tuple(Page("a" * 1_000_000, number) for number in range(1, 12))


def spawn(content: bytes, name: str) -> tuple[Page, ...]:
    """Two processes that would outlive it; the text is their numbers."""
    numbers = []
    try:
        numbers.append(subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({NEVER})"]).pid)
        child = os.fork()
        if not child:
            time.sleep(NEVER)
        numbers.append(child)
    except BlockingIOError:  # it may not
        pass
    return (Page(f"spawned {numbers}"),)


def tell_surroundings(content: bytes, name: str) -> tuple[Page, ...]:
    tried = {
        "environment": dict(os.environ),
        "pid": os.getpid(),
        "group": os.getpgid(0),
        "nice": os.nice(0),
        "modules": sorted(sys.modules),
        "argv": sys.argv,
        "network": _try(lambda: Path("/proc/self/net/dev").read_text()),
        "file": _try(lambda: Path(content.decode()).write_text("taken over")),
        "open": len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0,
    }
    return (Page(json.dumps(tried)),)


def _write_everywhere(content: bytes) -> None:
    for number in _FRAMES:
        try:
            os.write(number, content)
        except OSError:
            continue


def _try(what: Callable[[], object]) -> str:
    try:
        return str(what())
    except OSError as error:
        return type(error).__name__


READERS = {
    ".sleep": sleep,
    ".hold": hold_all_threads,
    ".crash": crash,
    ".later": crash_later,
    ".fine": crash_if_gone_bad,
    ".leave": leave,
    ".killed": be_killed,
    ".eat": eat_memory,
    ".blame": blame_file,
    ".malloc": eat_memory_outside_python,
    ".chatter": chatter,
    ".garbage": write_garbage,
    ".forge": forge_next,
    ".flood": flood,
    ".spawn": spawn,
    ".tell": tell_surroundings,
}
