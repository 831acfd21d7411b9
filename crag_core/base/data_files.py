"""Where files that are no modules lie: in a checkout, or where a wheel puts them (`pyproject.toml`)."""

import errno
import sys
from contextlib import nullcontext
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_IS_INSTALLED = (_PACKAGE / "data").is_dir()

DATA = (_PACKAGE if _IS_INSTALLED else _PACKAGE.parent) / "data"
"""Policies, the trained evaluator, word lists, sample documents, labelled questions and recorded runs."""
APPLICATION = _PACKAGE.parent / "crag_app" if _IS_INSTALLED else _PACKAGE.parent


def read_named(name: str, most_mb: int) -> bytes:
    """A file, or standard input by the name "-". Raises `OSError`, also for more than that: a device has no end."""
    with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
        content = file.read(most_mb * 2**20 + 1)
    if len(content) > most_mb * 2**20:
        raise OSError(errno.EFBIG, f"it has more than {most_mb} MB")
    return content
