"""Close-ups of passages: the few sentences in which the answer would stand, if the passage held one.

A large network reads slowly, and learns more in its time from these than from whole paragraphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from crag_core.base.text.sentences import split
from training.mixture import locate_by_words
from training.pairs import Pair, Row, known_pairs
from training.wording import make_question, names_of, perturb

LESSONS = {
    **{"squad2/answers": 1.0, "squad2/human_unanswerable": 2.0, "nq/answers": 1.0},
    **{"squad2/bm25": 0.07, "nq/bm25": 0.07},
}
"""How often a labelled pair of a kind comes in what the teacher learns from."""
WHOLE = 0.25
"""Share of them that it reads whole."""

JUDGED = {
    **{"squad2/answers": 1.0, "squad2/human_unanswerable": 2.0, "squad2/bm25": 0.12},
    **{"nq/answers": 1.0, "nq/bm25": 0.3, "selqa/answers": 0.5, "selqa/bm25": 0.5, "selqa/random": 0.5},
    **{f"{name}/{kind}": 0.35 for name in ("ares_nq", "ares_hotpotqa", "ares_wow") for kind in ("synthetic", "bm25")},
}
"""How often a close-up of a labelled pair of a kind comes in what the teacher judges."""
JUDGED_WHOLE = {"squad2/answers": 0.25, "squad2/human_unanswerable": 0.7}
ELSEWHERE, CHANGED, MADE = 0.45, 0.35, 3_500
"""Of the answered pairs, the shares that come with sentences from elsewhere in the passage and with a changed question;
and the number of made-up questions. What is right for these the teacher alone tells."""


def lessons(rows: list[Row], random: Random) -> list[Pair]:
    """What the teacher learns from: questions that people wrote, shuffled."""
    pairs = [
        pair if random.random() < WHOLE else _close_up(pair, random)
        for pair in known_pairs(rows)
        for _ in range(_times(LESSONS, pair, random))
    ]
    random.shuffle(pairs)
    return pairs


def to_judge(rows: list[Row], random: Random) -> list[Pair]:
    """What the teacher judges, shuffled; `answering` is what the labels say, None where nothing does."""
    names = names_of(sorted({row.passage for row in rows})[::5])
    pairs: list[Pair] = []
    for pair in known_pairs(rows):
        pairs += [_close_up(pair, random) for _ in range(_times(JUDGED, pair, random))]
        pairs += [pair] * _times(JUDGED_WHOLE, pair, random)
        if pair.kind == "squad2/answers":
            pairs += _doubtful(pair, names, random)
    human = sorted({row.passage for row in rows if row.source in ("squad2", "nq")})
    for passage in random.sample(human, min(MADE, len(human))):
        spans = split(passage)
        if made := make_question(passage, spans, random):
            pairs.append(Pair(made.question, _around(passage, spans, made.sentence, random), None, None, "made"))
    random.shuffle(pairs)
    return pairs


def _doubtful(pair: Pair, names: list[str], random: Random) -> Iterator[Pair]:
    spans = split(pair.passage)
    here = _best(pair, spans)
    elsewhere = [number for number in range(len(spans)) if abs(number - here) > 2]
    if elsewhere and random.random() < ELSEWHERE:
        shown = _around(pair.passage, spans, random.choice(elsewhere), random)
        yield Pair(pair.question, shown, None, None, "elsewhere")
    if random.random() < CHANGED and (changed := perturb(pair.question, pair.passage, names, random)):
        yield Pair(changed, _around(pair.passage, spans, here, random), None, None, "changed")


def _close_up(pair: Pair, random: Random) -> Pair:
    spans = split(pair.passage)
    if len(spans) <= 3:
        return pair
    shown = _around(pair.passage, spans, _best(pair, spans), random)
    return Pair(pair.question, shown, pair.answering, pair.topical, pair.kind)


def _best(pair: Pair, spans: list[tuple[int, int]]) -> int:
    return locate_by_words(pair.question, pair.passage, spans)[0] if spans else 0


def _around(passage: str, spans: list[tuple[int, int]], number: int, random: Random) -> str:
    start, end = max(0, number - random.randint(0, 2)), min(len(spans), number + 1 + random.randint(1, 2))
    return passage[spans[start][0] : spans[end - 1][1]]


def _times(shares: Mapping[str, float], pair: Pair, random: Random) -> int:
    share = shares.get(pair.kind, 0.0)
    return int(share) + (random.random() < share % 1)
