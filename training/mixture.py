"""What an epoch of training is made of: the labelled pairs, and pairs made from them, in chosen shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from crag_core.base.text.sentences import split
from crag_core.base.text.words import words
from training.pairs import Pair, Row, known_pairs
from training.wording import make_question, names_of, perturb, stems, without

Locate = Callable[[str, str, Sequence[tuple[int, int]]], list[int]]
"""(question, passage, spans of its sentences) -> numbers of the sentences that hold the answer, likeliest first."""


@dataclass(frozen=True)
class Recipe:
    """What an epoch is made of.

    `shares`: how often a labelled pair of a kind comes; a kind that is not named does not. Of the answered pairs, the
    share `deleted` comes again without the sentence that holds the answer, `perturbed` with a question that asks for
    something else, `windowed` as the few sentences around the answer. `made`: passages that get a made-up question.
    """

    shares: Mapping[str, float]
    deleted: float
    perturbed: float
    windowed: float
    made: int


_ARES = ("ares_nq", "ares_hotpotqa", "ares_wow")
BROAD = Recipe(
    {
        **{"squad2/answers": 1.0, "squad2/human_unanswerable": 2.0, "squad2/bm25": 0.15, "squad2/random": 0.3},
        **{"nq/answers": 1.0, "nq/bm25": 0.3, "nq/random": 0.5},
        **{"selqa/answers": 1.0, "selqa/bm25": 0.4, "selqa/random": 0.4},
        **{"selqa_sent/answers": 1.0, "selqa_sent/human_sentence": 0.7, "selqa_sent/random": 0.5},
        **{"medquad/answers": 0.18, "medquad/bm25": 0.1, "medquad/random": 0.1},
        **{f"{name}/{kind}": 1.0 for name in _ARES for kind in ("answers", "synthetic", "random")},
        **{f"{name}/bm25": 0.4 for name in _ARES},
        **{"ares_fever/answers": 0.5, "ares_fever/synthetic": 0.5},
        **{"ares_record/answers": 0.3, "ares_record/synthetic": 0.3},
    },
    deleted=0.5,
    perturbed=0.6,
    windowed=0.5,
    made=14_000,
)
"""Everything, with many made-up questions; medical texts, two fifths of the data, are held below a tenth."""
HUMAN = Recipe(
    {
        **{"squad2/answers": 1.0, "squad2/human_unanswerable": 2.0, "squad2/bm25": 0.1, "squad2/random": 0.2},
        **{"nq/answers": 0.6, "nq/bm25": 0.2, "nq/random": 0.3},
        **{"selqa/answers": 0.5, "selqa/bm25": 0.2},
        **{"selqa_sent/answers": 0.7, "selqa_sent/human_sentence": 0.5, "selqa_sent/random": 0.3},
        **{"medquad/answers": 0.03, "medquad/bm25": 0.03},
        **{f"{name}/{kind}": 0.25 for name in _ARES for kind in ("answers", "synthetic")},
        **{f"{name}/bm25": 0.1 for name in _ARES},
    },
    deleted=0.2,
    perturbed=0.3,
    windowed=0.25,
    made=1_500,
)
"""Mostly questions that people wrote, with those that people wrote to have no answer twice."""

TITLED = 0.2
"""Share of the labelled pairs whose passage begins with its title, as passages of many stores do."""
OFF_CORPUS = 0.15
"""Share of the questions that come with the best passage which keyword search finds in another source."""


def locate_by_words(question: str, passage: str, spans: Sequence[tuple[int, int]]) -> list[int]:
    """The sentences by how many of the question's words each holds."""
    asked = stems(question)
    return sorted(range(len(spans)), key=lambda i: -len(asked & stems(passage[spans[i][0] : spans[i][1]])))


class Mixture:
    """Makes epochs from `rows`. The same rows, seed and `locate` make the same pairs."""

    def __init__(self, rows: list[Row], foreign: list[Row], seed: int) -> None:
        self._random = Random(seed)
        self._known = known_pairs(rows)
        self._foreign = known_pairs(foreign)
        self._passages = sorted({row.passage for row in rows if row.source != "selqa_sent"})
        self._names = names_of(self._passages[::5])
        self._off_corpus = list(search_elsewhere(rows, self._random))

    def epoch(self, recipe: Recipe, locate: Locate = locate_by_words) -> list[Pair]:
        """One epoch, shuffled."""
        pairs: list[Pair] = []
        for pair in self._known:
            pairs += self._repeat(pair, recipe.shares.get(pair.kind, 0.0))
            if pair.kind.endswith("/answers") and not pair.kind.startswith(("selqa_sent", "medquad", "ares_fever")):
                pairs += self._derive(pair, recipe, locate)
        for passage in self._random.sample(self._passages, min(recipe.made, len(self._passages))):
            pairs += self._make(passage)
        pairs += self._random.sample(self._foreign, len(self._foreign) // 8)
        pairs += self._off_corpus
        self._random.shuffle(pairs)
        return pairs

    def _repeat(self, pair: Pair, share: float) -> list[Pair]:
        times = int(share) + (self._random.random() < share % 1)
        return [self._titled(pair) if self._random.random() < TITLED else pair for _ in range(times)]

    def _titled(self, pair: Pair) -> Pair:
        return replace(pair, passage=f"{pair.title}: {pair.passage}") if pair.title else pair

    def _derive(self, pair: Pair, recipe: Recipe, locate: Locate) -> Iterator[Pair]:
        random = self._random
        wanted = [random.random() < share for share in (recipe.deleted, recipe.windowed, recipe.perturbed)]
        spans = split(pair.passage)
        if len(spans) > 2 and any(wanted[:2]):
            first, second = locate(pair.question, pair.passage, spans)[:2]
            if wanted[0]:
                gone = [first, second] if random.random() < 0.5 and len(spans) > 3 else [first]
                yield Pair(pair.question, without(pair.passage, [spans[i] for i in gone]), 0.0, 1.0, "deleted")
            if wanted[1]:
                window = self._window(spans, first, 1 + (random.random() < 0.5))
                yield Pair(pair.question, pair.passage[window[0] : window[1]], 1.0, 1.0, "window")
        if wanted[2] and (changed := perturb(pair.question, pair.passage, self._names, random)):
            yield Pair(changed, pair.passage, 0.0, None, "perturbed")

    def _window(self, spans: Sequence[tuple[int, int]], around: int, reach: int) -> tuple[int, int]:
        start = max(0, around - self._random.randint(0, reach))
        end = min(len(spans), around + 1 + self._random.randint(0, reach))
        return spans[start][0], spans[end - 1][1]

    def _make(self, passage: str) -> Iterator[Pair]:
        random = self._random
        spans = split(passage)
        made = make_question(passage, spans, random)
        if made is None:
            return
        start, end = self._window(spans, made.sentence, 3)
        shown = passage[start:end]
        yield Pair(made.question, shown, 1.0, 1.0, "made")
        here = [(a - start, b - start) for a, b in spans if start <= a and b <= end]
        asked = (spans[made.sentence][0] - start, spans[made.sentence][1] - start)
        answer = (made.answer[0] - start, made.answer[1] - start)
        way = random.random()
        if way < 0.3 and len(here) > 1:
            yield Pair(made.question, without(shown, [asked]), 0.0, 1.0, "made, sentence gone")
        elif way < 0.65:
            yield Pair(made.question, without(shown, [answer]), 0.0, 1.0, "made, answer gone")
        elif changed := perturb(made.question, shown, self._names, random):
            yield Pair(changed, shown, 0.0, None, "made, perturbed")


def search_elsewhere(rows: list[Row], random: Random) -> Iterator[Pair]:
    import bm25s

    families = {"squad2": "squad", "nq": "nq", "ares_nq": "ares", "ares_hotpotqa": "ares", "ares_wow": "ares"}
    for family in sorted(set(families.values())):
        asked = sorted({row.question for row in rows if families.get(row.source) == family})
        asked = random.sample(asked, int(len(asked) * OFF_CORPUS))
        passages = sorted({row.passage for row in rows if families.get(row.source, family) != family})
        if not asked or not passages:
            continue
        index = bm25s.BM25()
        index.index([words(text) for text in passages], show_progress=False)
        found, _ = index.retrieve([words(text) for text in asked], k=3, show_progress=False)
        for question, numbers in zip(asked, found, strict=True):
            yield Pair(question, passages[int(random.choice(list(numbers)))], 0.0, 0.0, "off corpus")
