"""Documents of an index that an earlier release kept in LanceDB: their names, and their files; without LanceDB.

Reads of its table of documents only the three columns of text that are needed, in the encodings that LanceDB 0.2x to
0.40 chose for such columns: constant, variable, FSST, and dictionary with bit-packed indices.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from crag_core.base.documents import MAIN

_TABLE, _ORIGINALS = "documents.lance", "originals"
_ID = re.compile(r"[0-9a-f]{32}")
_WANTED = ("id", "name", "collection")
_ESCAPE = 255
_ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
"""In which FastLanes keeps the eighths of 1,024 values."""
Message = dict[int, list[Any]]


@dataclass(frozen=True)
class EarlierDocument:
    id: str
    name: str
    collection: str
    path: Path


def is_there(folder: Path) -> bool:
    return os.path.isdir(folder / _ORIGINALS) and os.path.isdir(folder / _TABLE)


def documents(folder: Path) -> list[EarlierDocument]:
    """Those whose files are kept, by id; under a name made of its id where the table does not tell."""
    try:
        # A later row of an id replaces the earlier.
        told = {one: (name, collection) for one, name, collection in _rows(folder / _TABLE)}
    except (OSError, ValueError, KeyError, IndexError, struct.error):
        told = {}
    files = sorted(path for path in (folder / _ORIGINALS).iterdir() if _ID.fullmatch(path.name))
    named = ((path, *told.get(path.name, _unnamed(path))) for path in files)
    return [EarlierDocument(path.name, name, collection, path) for path, name, collection in named]


def remove(folder: Path, refused: Collection[str]) -> None:
    """What is not needed any more: all but the files of documents that were refused."""
    for path in [path for path in (folder / _ORIGINALS).iterdir() if path.name not in refused]:
        path.unlink()
    for path in [*folder.glob("*.lance"), *([] if refused else [folder / _ORIGINALS])]:
        shutil.rmtree(path, ignore_errors=True)
    (folder / "write.lock").unlink(missing_ok=True)


def _unnamed(path: Path) -> tuple[str, str]:
    head = path.read_bytes()[:4]
    return f"document-{path.name[:8]}{'.pdf' if head == b'%PDF' else '.docx' if head[:2] == b'PK' else '.txt'}", MAIN


def _rows(table: Path) -> Iterator[tuple[str, str, str]]:
    def age(manifest: Path) -> int:
        number = int(manifest.stem)
        return number if number < 2**63 else 2**64 - 1 - number

    newest = max((table / "_versions").glob("*.manifest"), key=age).read_bytes()
    (start,) = struct.unpack_from("<Q", newest, len(newest) - 16)
    (size,) = struct.unpack_from("<I", newest, start)
    manifest = _message(newest[start + 4 : start + 4 + size])
    ids = {}
    for given in map(_message, manifest[1]):
        ids[given[2][0].decode()] = given.get(3, [0])[0]
    for fragment in map(_message, manifest.get(2, [])):
        columns: dict[str, list[str]] = {}
        for file in map(_message, fragment[2]):
            held = dict(zip(_varints(file[2][0]), _varints(file.get(3, [b""])[0]), strict=False))
            content = (table / "data" / file[1][0].decode()).read_bytes()
            for name in _WANTED:
                if ids.get(name) in held:
                    columns[name] = list(_column(content, held[ids[name]]))
        yield from zip(columns["id"], columns["name"], columns["collection"], strict=True)


def _column(content: bytes, column: int) -> Iterator[str]:
    """The texts of a column in a file of Lance 2.1 or 2.2."""
    _, places, _, _, _ = struct.unpack_from("<QQQII", content, len(content) - 40)
    start, size = struct.unpack_from("<QQ", content, places + 16 * column)
    for page in map(_message, _message(content[start : start + size])[2]):
        offsets, sizes = (_varints(page.get(number, [b""])[0]) for number in (1, 2))
        buffers = [content[at : at + length] for at, length in zip(offsets, sizes, strict=True)]
        # An Any in a DirectEncoding in an Encoding: the layout is its value.
        layout = _message(_message(_message(_message(page[4][0])[2][0])[1][0])[2][0])
        count = page[3][0]
        texts = _constant(buffers) * count if 2 in layout else _mini_blocks(_message(layout[1][0]), buffers)
        yield from (text.decode() for text in texts[:count])


def _constant(buffers: list[bytes]) -> list[bytes]:
    """Offsets and text of one value, each of them with its size in front."""
    (parts,) = struct.unpack_from("<I", buffers[0])
    sizes = struct.unpack_from(f"<{parts}I", buffers[0], 4)
    return [buffers[0][len(buffers[0]) - sizes[-1] :] if sizes[-1] else b""]


def _mini_blocks(layout: Message, buffers: list[bytes]) -> list[bytes]:
    import numpy as np

    encoding, is_large = _message(layout[3][0]), layout.get(10, [0])[0]
    word = 4 if is_large else 2
    metas = np.frombuffer(buffers[0], dtype=f"<u{word}")
    found: list[bytes] = []
    indices: list[int] = []
    at = 0
    for meta in metas.tolist():
        chunk = buffers[1][at : at + 8 * ((meta >> 4) + 1)]
        at += len(chunk)
        size = int.from_bytes(chunk[2 : 2 + word], "little")
        start = -(-(2 + word) // 8) * 8
        body = chunk[start : start + size]
        if 4 in layout:
            indices += _unpacked(encoding, body)
        else:
            found += _texts(encoding, body)
    if 4 not in layout:
        return found
    # Its offsets have their width, and where they end, in front.
    words = _texts(*_dictionary(_message(layout[4][0]), buffers[2]), begin=8)
    return [words[index] for index in indices]


def _texts(encoding: Message, body: bytes, begin: int = 0) -> list[bytes]:
    """Offsets from `begin` on, then the texts."""
    if 6 in encoding:
        table = _message(encoding[6][0])
        symbols = _symbols(table[1][0])
        return [_expanded(text, symbols) for text in _texts(_message(table[2][0]), body)]
    if 2 not in encoding:
        raise ValueError("an encoding that is not known")
    (end,) = struct.unpack_from("<I", body, begin and begin - 4)
    offsets = struct.unpack_from(f"<{(end - begin) // 4}I", body, begin)
    text = body[end:] if begin else body
    return [text[one:other] for one, other in pairwise(offsets)]


def _dictionary(encoding: Message, body: bytes) -> tuple[Message, bytes]:
    if 10 in encoding:
        general = _message(encoding[10][0])
        return _message(general[3][0]), _lz4(body)
    return encoding, body


def _unpacked(encoding: Message, body: bytes) -> list[int]:
    import numpy as np

    if 1 in encoding:
        return [int(one) for one in np.frombuffer(body, dtype=f"<u{_message(encoding[1][0])[1][0] // 8}")]
    if 5 not in encoding:
        raise ValueError("an encoding that is not known")
    words = np.frombuffer(body, dtype="<u4")
    width = int(words[0])
    lanes = words[1 : 1 + 32 * width].reshape(width, 32).astype(np.uint64)
    values = np.zeros(1024, dtype=np.uint64)
    for row in range(32):
        low, shift = divmod(row * width, 32)
        value = lanes[low] >> np.uint64(shift) if width else np.zeros(32, np.uint64)
        if shift + width > 32:
            value |= lanes[low + 1] << np.uint64(32 - shift)
        place = _ORDER[row // 8] * 16 + row % 8 * 128
        values[place : place + 32] = value & np.uint64(2**width - 1)
    return [int(one) for one in values]


def _symbols(table: bytes) -> list[bytes]:
    (head,) = struct.unpack_from("<Q", table)
    count = head & 255
    if not head >> 24 & 255:  # stored as it is
        return []
    lengths = table[8 + 8 * count : 8 + 9 * count]
    return [table[8 + 8 * at : 8 + 8 * at + length] for at, length in enumerate(lengths)]


def _expanded(text: bytes, symbols: list[bytes]) -> bytes:
    if not symbols:
        return text
    made, at = bytearray(), 0
    while at < len(text):
        code = text[at]
        at += 1
        if code == _ESCAPE:
            made.append(text[at])
            at += 1
        else:
            made += symbols[code]
    return bytes(made)


def _lz4(body: bytes) -> bytes:
    """A block with its size in front."""
    made, at = bytearray(), 4

    def length(nibble: int) -> int:
        nonlocal at
        total, more = nibble, 255 if nibble == 15 else 0
        while more == 255:
            more = body[at]
            total, at = total + more, at + 1
        return total

    while at < len(body):
        token, at = body[at], at + 1
        size = length(token >> 4)
        made += body[at : at + size]
        at += size
        if at < len(body):  # the last one has text alone
            (back,) = struct.unpack_from("<H", body, at)
            at += 2
            for _ in range(length(token & 15) + 4):
                made.append(made[-back])
    return bytes(made)


def _message(content: bytes) -> Message:
    """A message of protocol buffers: the values of each field by its number."""
    found: Message = {}
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        if key & 7 == 0:
            number, at = _varint(content, at)
            found.setdefault(key >> 3, []).append(number)
        else:
            size, at = (8, at) if key & 7 == 1 else (4, at) if key & 7 == 5 else _varint(content, at)
            found.setdefault(key >> 3, []).append(content[at : at + size])
            at += size
    return found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _varints(content: bytes) -> list[int]:
    found, at = [], 0
    while at < len(content):
        value, at = _varint(content, at)
        found.append(value)
    return found
