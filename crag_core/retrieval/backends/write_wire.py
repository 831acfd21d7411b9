"""What the application and the process that writes to its index say to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crag_core.documents import Generation


@dataclass(frozen=True)
class Write:
    """`call` with `arguments` of a part of the index that `open_backend(setting, folder)` gives.

    The part is the passages of `generation`, or the list of rows named `part`.
    """

    setting: str
    folder: str
    call: str
    arguments: tuple[Any, ...] = ()
    generation: Generation | None = None
    part: str = ""


@dataclass(frozen=True)
class Sent:
    """The bytes of the frame are a pickled `Write`: what reads them trusts the application that started it."""

    id: int


@dataclass(frozen=True)
class Answer:
    """`kind` is the name of the error that the call raised; "": it was carried out. A bug has its traceback."""

    id: int
    kind: str = ""
    message: str = ""
    hint: str = ""
    bug: str = ""


Send = Callable[[Write], None]
"""Carries a write out elsewhere; raises what the call raises, and `WriteLost` when whoever was at it died."""
