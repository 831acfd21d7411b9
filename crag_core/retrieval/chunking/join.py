"""Joins the chunks of a document back together, without their overlap: all of them, or those around one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

from crag_core.base.types.passages import Passage
from crag_core.retrieval.chunking.split import USUAL, Cut, counter
from crag_core.retrieval.chunking.text_splitter import (
    Count,
    split_clauses,
    split_lines,
    split_paragraphs,
    split_words,
)

_BLANK_LINE = "\n\n"
# So many bytes of UTF-8 that occur once in a passage are not equal by chance.
_TELLING = 20
_MOST = 1_500
"""Characters on either side."""
_WORD = 40  # so far a cut moves to the next gap between words; a text without gaps is cut where it is


def join_passages(passages: Sequence[Passage], cut: Cut = USUAL) -> str:
    """The text of one document from all its passages in reading order, with a blank line between pages.

    `cut` is what they were split with. White space at the ends of passages is not stored: without overlap, a line
    break takes its place. That does little harm in a paragraph, while table rows must stay apart.
    """
    return _BLANK_LINE.join(text for _, text in join_pages(passages, cut))


def join_pages(passages: Sequence[Passage], cut: Cut = USUAL) -> list[tuple[int | None, str]]:
    """The number and the text of each page, likewise; (None, …) where the format has no pages."""
    pages = groupby(passages, key=lambda passage: passage.page)
    count = counter(cut)
    return [(number, _join_page([passage.text for passage in page], cut, count)) for number, page in pages]


def find_overlap(before: str, after: str, cut: Cut, count: Count) -> int:
    """How many characters at the start of `after` repeat the end of `before`.

    Equal text is not enough: a row of dashes may end one passage and open the next. Only what the splitter could have
    repeated there is overlap; in doubt there is none, since words shown twice do less harm than words lost.
    """
    for split in _SPLITS:
        pieces = [*split(before)]
        sizes: list[int] = []
        for first, start in enumerate(accumulate(map(len, pieces[:-1]), initial=0)):
            repeated = before[start:].lstrip()
            rest = after[len(repeated) :]
            if not repeated or not after.startswith(repeated):
                continue
            sizes = sizes or [count(piece) for piece in pieces]
            if split is _split_lines:
                sizes[-1] = count(pieces[-1] + _line_end(rest))
            # First, since the rest would take quadratic time on a letter that is repeated forever.
            if sum(sizes[first : first + cut.overlap + 1]) > cut.overlap:
                continue
            next_piece = _first_piece(rest, split_paragraphs if rest.startswith(_BLANK_LINE) else split)
            following = count(next_piece)
            is_full = len(before) + len(next_piece) > cut.size.characters
            telling = len(repeated.encode()) >= _TELLING and before.count(repeated) == 1
            if _could_repeat(sizes[:first], sizes[first:], following, cut, telling, is_full):
                return len(repeated)
    return 0


def _could_repeat(
    left_out: Sequence[int], repeated: Sequence[int], following: int, cut: Cut, telling: bool, is_full: bool
) -> bool:
    """Whether the splitter, with pieces of these sizes, would have ended the passage here and repeated just these.

    It ends one where the tokens are too many, or (`is_full`) the characters. It repeats as many pieces as fit the
    overlap and leave room for the following one. Where it cut some pieces more finely than others, their number is
    uncertain: then it is enough that the text is `telling`.
    """
    size = sum(repeated)
    if not is_full and sum(left_out) + size + following <= cut.tokens:
        return False
    if size > cut.overlap or size + following > cut.tokens:
        return False
    longer = size + left_out[-1] if left_out else cut.tokens
    return telling or longer > cut.overlap or longer + following > cut.tokens


def _split_lines(text: str) -> Iterator[str]:
    return (line for paragraph in split_paragraphs(text) for line in split_lines(paragraph))


def _first_piece(text: str, split: Callable[[str], Iterable[str]]) -> str:
    return next(filter(str.strip, split(text)), "")


def _line_end(rest: str) -> str:
    """The white space that the last line of a passage had: some tokenizers count it."""
    space = rest[: len(rest) - len(rest.lstrip())]
    return "" if space.startswith(_BLANK_LINE) else space


def _join_page(texts: Sequence[str], cut: Cut, count: Count) -> str:
    joined = [texts[0]]
    for before, after in pairwise(texts):
        overlap = find_overlap(before, after, cut, count)
        joined.append(after[overlap:] if overlap else f"\n{after}")
    return "".join(joined)


_SPLITS: tuple[Callable[[str], Iterable[str]], ...] = (split_paragraphs, _split_lines, split_clauses, split_words, list)


@dataclass(frozen=True)
class Surroundings:
    """The text on either side of a passage. `starts`, `ends`: the document starts or ends there."""

    before: str
    after: str
    starts: bool
    ends: bool


def surround(passage: Passage, document: Sequence[Passage], cut: Cut = USUAL) -> Surroundings | None:
    """About 1,500 characters on either side, in whole words; None when the passage does not stand in `document`.

    `document` are all passages of the passage's document in reading order; what neighbours repeat is shown once. Around
    a file that was read whole there is nothing. `cut` is how it was split.
    """
    if document and "read_file" in passage.found_by:
        return Surroundings("", "", starts=True, ends=True)
    at = next((index for index, one in enumerate(document) if (one.id, one.text) == (passage.id, passage.text)), None)
    if at is None:
        return None
    first, last = _reach(document[:at][::-1]), _reach(document[at + 1 :])
    joined = join_passages(document[at - first : at + 1], cut)
    before = joined[: len(joined) - len(passage.text)]
    after = join_passages(document[at : at + 1 + last], cut)[len(passage.text) :]
    start, end = _cut_before(before), _cut_after(after)
    return Surroundings(
        before=before[start:],
        after=after[:end],
        starts=first == at and not start,
        ends=at + 1 + last == len(document) and end == len(after),
    )


def _reach(neighbours: Sequence[Passage]) -> int:
    """How many of them it takes to have enough; half of one may be overlap."""
    size = 0
    for count, passage in enumerate(neighbours):
        if size > _MOST + _WORD:
            return count
        size += len(passage.text) // 2
    return len(neighbours)


def _cut_before(text: str) -> int:
    start = max(len(text) - _MOST, 0)
    gap = next((at for at in range(start, min(start + _WORD, len(text))) if text[at].isspace()), start)
    return gap if start else 0


def _cut_after(text: str) -> int:
    if len(text) <= _MOST:
        return len(text)
    return next((at for at in range(_MOST, _MOST - _WORD, -1) if text[at].isspace()), _MOST)
