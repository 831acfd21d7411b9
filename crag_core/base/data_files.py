"""Where files that are no modules lie: in a checkout, or where a wheel puts them (`pyproject.toml`)."""

import errno
import sys
from contextlib import nullcontext
from pathlib import Path

from crag_core.base.errors import BadRecord, UnknownName

_PACKAGE = Path(__file__).parents[1]
_IS_INSTALLED = (_PACKAGE / "data").is_dir()

DATA = (_PACKAGE if _IS_INSTALLED else _PACKAGE.parent) / "data"
"""Policies, the trained evaluator, word lists, sample documents, labelled questions and recorded runs."""
APPLICATION = _PACKAGE.parent / "crag_app" if _IS_INSTALLED else _PACKAGE.parent


def read_input(name: str, what: str, most_mb: int, hint: str = "") -> bytes:
    """A file, or standard input by the name "-"; raises `UnknownName` with the hint where there is no such file,
    `BadRecord` for other faults, and for more than that: a device has no end."""
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
            content = file.read(most_mb * 2**20 + 1)
        if len(content) > most_mb * 2**20:
            raise OSError(errno.EFBIG, f"it has more than {most_mb} MB")
        return content
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise UnknownName(f"There is no file {name[:200]}.", hint=hint) from error
    except OSError as error:
        raise BadRecord(f"The {what} {name[:200]} cannot be read: {error.strerror}.") from error
