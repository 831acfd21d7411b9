"""What a model makes of evidence and its own knowledge (arXiv 2410.07176): its replies, read and put in words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from crag_core.base.reply_parsing import parse_records, without_thoughts
from crag_core.base.text.display import counted
from crag_core.base.types.knowledge import Consolidated, Consolidation

LONGEST = 1500  # characters of a passage that a model writes; of a longer one, its beginning is taken
MOST_PIECES = 30

_SOURCE = re.compile(r"(?:document|doc|excerpt|passage)?[\W_]*(\d{1,3})[\W_]*", re.IGNORECASE)
_MEMORY = re.compile(r"[\W_]*m(?:emory)?[\W_]*(\d{1,3})?[\W_]*", re.IGNORECASE)


_T = TypeVar("_T")


@dataclass(frozen=True)
class ListReply(Generic[_T]):
    """What a reply lists, () where it says that there is nothing; None with the `cause`."""

    listed: tuple[_T, ...] | None
    cause: str = ""


def parse_recalled(text: str, most: int) -> ListReply[str]:
    """Read the `passages` of a reply: texts, or records with a text; at most `most` of them."""
    listed, cause = _listed(text)
    if listed is None:
        return ListReply(None, cause)
    texts = [_text(one.get("text") if isinstance(one, dict) else one) for one in listed]
    if listed and not any(texts):
        return ListReply(None, "no passage in the reply has a text")
    return ListReply(tuple(dict.fromkeys(filter(None, texts)))[:most])


def parse_pieces(text: str, excerpts: int, own: int) -> ListReply[Consolidated]:
    listed, cause = _listed(text)
    if listed is None:
        return ListReply(None, cause)
    records = [one for one in listed[:MOST_PIECES] if isinstance(one, dict)]
    read = [(place, _piece(one, excerpts, own)) for place, one in enumerate(records, 1)]
    kept = [(place, one) for place, one in read if one.text and (one.excerpts or one.memory)]
    if listed and not kept:
        return ListReply(None, "no passage in the reply has a text and a source that was shown")
    numbers = {place: number for number, (place, _) in enumerate(kept, 1)}
    return ListReply(tuple(replace(one, contradicts=_renumbered(one, numbers, numbers[place])) for place, one in kept))


def _listed(text: str) -> tuple[list[Any] | None, str]:
    if not without_thoughts(text):
        return None, "the reply was empty"
    records = parse_records(text, "passages")
    if not records:
        return None, "the reply holds no list of passages, or was cut off"
    if len(records) > 1:
        return None, "the reply holds more than one list of passages"
    listed = records[0]["passages"]
    return (listed, "") if isinstance(listed, list) else (None, "the passages in the reply are no list")


def _piece(record: dict[str, Any], excerpts: int, own: int) -> Consolidated:
    sources = _as_list(record.get("sources"))
    contradicts = _numbers(_as_list(record.get("contradicts")), MOST_PIECES)
    memory = _numbers((_memory(one, own) for one in sources), own)
    return Consolidated(_text(record.get("text")), _numbers(sources, excerpts), memory, contradicts)


def _renumbered(one: Consolidated, numbers: dict[int, int], own: int) -> tuple[int, ...]:
    left = {numbers[place] for place in one.contradicts if place in numbers}
    return tuple(sorted(left - {own}))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _numbers(named: Iterable[Any], most: int) -> tuple[int, ...]:
    """1 to `most` of 3, "3", "[3]" and "Document 3", each once, in order."""
    plain = (str(one) for one in named if isinstance(one, int | str) and not isinstance(one, bool))
    found = (match for one in plain if not one.startswith("-") and (match := _SOURCE.fullmatch(one)))
    return tuple(sorted({number for match in found if 1 <= (number := int(match[1])) <= most}))


def _memory(named: Any, own: int) -> int | None:
    """2 of "M2" and "memory 2"; 1 of "memory" where there is one passage alone."""
    match = _MEMORY.fullmatch(named) if isinstance(named, str) else None
    if match is None:
        return None
    return int(match[1]) if match[1] else 1 if own == 1 else None


def _text(value: Any) -> str:
    return " ".join(value.split())[:LONGEST] if isinstance(value, str) else ""


# --- in words -------------------------------------------------------------------------------------------------------


def sources_in_words(piece: Consolidated, numbers: Sequence[int]) -> str:
    """ "[1] [3] and the model's memory"; `numbers` are those of the excerpts in order."""
    cited = " ".join(f"[{numbers[place - 1]}]" for place in piece.excerpts)
    return " and ".join(filter(None, (cited, "the model's memory" if piece.memory else "")))


def conflict_lines(found: Consolidation, numbers: Sequence[int]) -> tuple[str, ...]:
    """ "Conflict: [1] against the model's memory", one line a pair; `numbers` are those of the excerpts in order."""
    pairs = ((sources_in_words(found.pieces[place - 1], numbers) for place in pair) for pair in found.conflicts)
    return tuple("Conflict: {} against {}.".format(*pair) for pair in pairs)


def in_brief(found: Consolidation) -> str:
    """ "1 passage from memory, 2 consolidated, 1 conflict"; or why there is nothing."""
    if found.cause:
        return f"not consolidated: {found.cause}"
    own = f"{counted(len(found.own), 'passage')} from memory" if found.most else ""
    pieces = f"{len(found.pieces)} consolidated" if found.pieces else "nothing bears on the question"
    conflicts = counted(len(found.conflicts), "conflict") if found.conflicts else ""
    return ", ".join(filter(None, (own, pieces, conflicts)))
