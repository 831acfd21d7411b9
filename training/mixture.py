"""What an epoch of training is made of: labelled pairs and pairs made from them, in chosen numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from crag_core.base.text.sentences import split
from crag_core.base.text.words import words
from training.everyday import Everyday, everyday_pairs, in_groups
from training.exchange import exchange
from training.forms import reword
from training.pairs import Pair, Row, known_pairs
from training.wording import make_question, names_of, perturb, stems, without

_SHIFTS = tuple(f"squadshifts_{name}" for name in ("amazon_reviews", "new_wiki", "reddit"))
_ARES = ("ares_nq", "ares_hotpotqa", "ares_wow")
NUMBERS: Mapping[str, int] = {
    **{"squad2/answers": 300, "squad2/human_unanswerable": 500, "squad2/bm25": 60},
    **{"squad_train_parts/answers": 330, "squad_train_parts/human_unanswerable": 60},
    **{"squad_train_parts/answer_removed": 140, "squad_train_parts/on_topic_same_article": 150},
    **{"squad_train_parts/bm25": 40},
    **{f"{name}/answers": 150 for name in _SHIFTS},
    **{f"{name}/answer_removed": 100 for name in _SHIFTS},
    **{f"{name}/bm25": 25 for name in _SHIFTS},
    **{"squadshifts_new_wiki/on_topic_same_article": 80, "squadshifts_amazon_reviews/on_topic_same_article": 25},
    **{"nq/answers": 90, "nq/bm25": 80, "nq_qed/answers": 180, "nq_qed/on_topic_same_article": 30},
    **{"nq_qed/answer_removed": 60, "nq_qed/bm25": 30},
    **{"tydiqa_en/answers": 120, "tydiqa_en/answer_removed": 50, "tydiqa_en/on_topic_same_article": 25},
    **{"afriqa_en/answers": 140, "afriqa_en/answer_removed": 50, "afriqa_en/on_topic_same_article": 50},
    **{"tydiqa_en/bm25": 45, "afriqa_en/bm25": 45},
    **{"covidqa/answers": 30, "covidqa/on_topic_same_article": 50},
    **{"quoref_contrast/answers": 30, "quoref_contrast/answer_removed": 20, "quoref_contrast/bm25": 5},
    **{"boolq_val/answers": 110, "boolq_val/bm25": 60, "pubmedqa/answers": 20, "pubmedqa/bm25": 10},
    **{"qamr/answers": 120, "qamr/bm25_sentence": 80},
    **{"squad_reqa_sent/answers": 120, "squad_reqa_sent/bm25_sentence": 80},
    **{"selqa/answers": 45, "selqa/bm25": 40, "selqa_sent/answers": 70, "selqa_sent/human_sentence": 110},
    **{f"{name}/{kind}": 25 for name in _ARES for kind in ("answers", "synthetic")},
    **{f"{name}/bm25": 10 for name in _ARES},
    **{"medquad/answers": 80, "medquad/bm25": 50},
}
"""Labelled pairs of a kind in an epoch, in turn, so that fifty epochs see nearly all of most kinds; a kind that is not
named does not come. Automatic negatives, some of which answer, come less often than those made by people, which come
nine times in fifty epochs."""
EXCHANGED, CHANGED, SHORTENED, MADE, FOREIGN, OFF_CORPUS = 1300, 100, 150, 80, 100, 150
"""Numbers of answered pairs whose question and passage are exchanged in one thing, whose question asks for something
else, and whose passage loses a sentence that does not answer; of passages that get a made-up question; of pairs in
other languages and of other corpora."""
DOCUMENTS, ASKED = 288, 3
"""Everyday documents and groups of siblings in an epoch, of whose pairs every third comes: a little less than half of
its tokens. Their near misses are what the labelled pairs lack."""
CLOSE = 0.6
"""Share of the pairs of `LOCATED` of which only some sentences are shown, those around the answer or around the one
with most of the question's words: twice as many questions are read in the same time."""
LOCATED = ("squad_train_parts", *_SHIFTS, "nq_qed", "tydiqa_en", "afriqa_en", "quoref_contrast")
"""Sources that tell the sentence of the answer."""
TITLED = 0.4
"""Share of the labelled pairs whose passage begins with its title, as passages of many stores do."""
AGAIN, INSTEAD = 0.15, 0.3
"""Shares of the labelled pairs that come with a second wording of the question, or with that alone."""

Count = Callable[[str], int]
Item = TypeVar("Item")


class Mixture:
    """Makes epochs of `rows`, of `foreign` ones in other languages, and of everyday documents.

    The same rows, documents, seed and number make the same pairs. `count` tells the tokens of a text.
    """

    def __init__(self, rows: Sequence[Row], foreign: Sequence[Row], count: Count, seed: int) -> None:
        self._count, self._seed = count, seed
        self._pools: dict[str, list[Pair]] = {}
        for pair in _with_evidence(rows):
            self._pools.setdefault(pair.kind, []).append(pair)
        self._located = [pair for pool in self._pools.values() for pair in pool if pair.evidence]
        self._answered: dict[str, list[Pair]] = {}
        for pair in (one for kind, pool in self._pools.items() if kind.endswith("/answers") for one in pool):
            self._answered.setdefault(pair.passage, []).append(pair)
        self._foreign = known_pairs(list(foreign))
        self._passages = sorted({row.passage for row in rows if not row.source.endswith("_sent")})
        self._names = names_of(self._passages[::5])
        self._off_corpus = list(search_elsewhere(rows, Random(seed)))

    def epoch(self, number: int, everyday: Sequence[Everyday]) -> list[Pair]:
        """One epoch, shuffled."""
        random = Random(f"{self._seed} {number}")

        def turn(name: str, pool: Sequence[Item], wanted: int) -> list[Item]:
            return take_turn(pool, wanted, number, f"{self._seed} {name}")

        pairs: list[Pair] = []
        for kind, wanted in NUMBERS.items():
            pairs += turn(kind, self._pools.get(kind, []), wanted)
        pairs = [self._beside(_close_up(pair, random), random) for pair in pairs]
        pairs = [self._titled(pair, random) for pair in pairs]
        for pair in turn("exchanged", self._located, EXCHANGED):
            pairs += self._exchanged(pair, random)
        pairs += filter(None, (self._changed(pair, random) for pair in turn("changed", self._located, CHANGED)))
        pairs += filter(None, (_shortened(pair, random) for pair in turn("shortened", self._located, SHORTENED)))
        for passage in turn("made", self._passages, MADE):
            pairs += self._make(passage, random)
        pairs += turn("off corpus", self._off_corpus, OFF_CORPUS)
        pairs = [_reworded(pair, random) for pair in pairs]
        pairs += turn("foreign", self._foreign, FOREIGN)
        groups = turn("everyday", in_groups(everyday), DOCUMENTS)
        every = everyday_pairs([one for group in groups for one in group], self._count, random)
        pairs += random.sample(every, len(every) // ASKED)
        random.shuffle(pairs)
        return pairs

    def _beside(self, pair: Pair, random: Random) -> Pair:
        """An unanswerable question against one that the same passage answers, where there is one."""
        answered = self._answered.get(pair.passage, []) if pair.kind.endswith("/human_unanswerable") else []
        return replace(random.choice(answered), against=(pair,)) if answered else pair

    def _titled(self, pair: Pair, random: Random) -> Pair:
        if not pair.title or random.random() >= TITLED:
            return pair
        against = tuple(replace(one, passage=f"{pair.title}: {one.passage}") for one in pair.against)
        return replace(pair, passage=f"{pair.title}: {pair.passage}", against=against)

    def _exchanged(self, pair: Pair, random: Random) -> Iterator[Pair]:
        """A pair in which question and passage agree, against one in which they do not, the changed text in either."""
        made = exchange(pair.question, pair.passage, pair.evidence, self._names, random)
        if made is None:
            return
        kind = "exchanged, both named" if made.both_named else "exchanged"
        own = (pair.passage, pair.evidence)
        other = (made.passage, made.evidence)
        if random.random() < 0.5:
            against = Pair(made.question, own[0], 0.0, None, kind)
            yield Pair(made.question, other[0], 1.0, 1.0, kind, evidence=other[1], against=(against,))
        else:
            against = Pair(pair.question, other[0], 0.0, None, kind)
            yield Pair(pair.question, own[0], 1.0, 1.0, kind, evidence=own[1], against=(against,))

    def _changed(self, pair: Pair, random: Random) -> Pair | None:
        changed = perturb(pair.question, pair.passage, self._names, random)
        return Pair(changed, pair.passage, 0.0, None, "changed", pair.title) if changed else None

    def _make(self, passage: str, random: Random) -> Iterator[Pair]:
        """A made-up question with the sentences around it, and with those without the answer."""
        spans = split(passage)
        made = make_question(passage, spans, random)
        if made is None:
            return
        first, last = max(0, made.sentence - random.randint(0, 3)), made.sentence + random.randint(0, 3)
        here = spans[first : last + 1]
        start, end = here[0][0], here[-1][1]
        shown = passage[start:end]
        a, b = spans[made.sentence]
        yield Pair(made.question, shown, 1.0, 1.0, "made", evidence=passage[a:b])
        if random.random() < 0.5 and len(here) > 1:
            yield Pair(made.question, without(shown, [(a - start, b - start)]), 0.0, 1.0, "made")
        else:
            gone = (made.answer[0] - start, made.answer[1] - start)
            yield Pair(made.question, without(shown, [gone]), 0.0, 1.0, "made")


def take_turn(pool: Sequence[Item], wanted: int, number: int, seed: str) -> list[Item]:
    """`wanted` items, all where there are fewer: those whose turn it is in the epoch of this number.

    Every item comes once before one comes again, each time in another order.
    """
    wanted = min(wanted, len(pool))
    found: list[Item] = []
    at = number * wanted
    while len(found) < wanted:
        time, start = divmod(at + len(found), len(pool))
        order = Random(f"{seed} {time}").sample(range(len(pool)), len(pool))
        found += [pool[place] for place in order[start : start + wanted - len(found)]]
    return found


def _reworded(pair: Pair, random: Random) -> Pair:
    way = random.random()
    pair = replace(pair, against=tuple(_reworded(one, random) for one in pair.against))
    if way < AGAIN:
        return replace(pair, again=reword(pair.question, random))
    if way < AGAIN + INSTEAD:
        return replace(pair, question=reword(pair.question, random))
    return pair


def _close_up(pair: Pair, random: Random) -> Pair:
    spans = split(pair.passage)
    is_located = pair.evidence or not pair.answering
    if pair.kind.split("/")[0] not in LOCATED or not is_located or len(spans) < 4 or random.random() > CLOSE:
        return pair
    start = pair.passage.find(pair.evidence)
    held = [number for number, (a, b) in enumerate(spans) if start < b and a < start + len(pair.evidence)]
    here = held if pair.evidence and held else [_nearest(pair.question, pair.passage, spans)]
    first, last = max(0, here[0] - random.randint(0, 2)), min(len(spans) - 1, here[-1] + random.randint(0, 2))
    return replace(pair, passage=pair.passage[spans[first][0] : spans[last][1]])


def _nearest(question: str, passage: str, spans: Sequence[tuple[int, int]]) -> int:
    """The sentence with most of the words of the question."""
    asked = stems(question)
    return max(range(len(spans)), key=lambda number: len(asked & stems(passage[slice(*spans[number])])))


def _shortened(pair: Pair, random: Random) -> Pair | None:
    """Without a sentence that holds no answer: a gap in a text must not mean that the answer is gone."""
    start = pair.passage.find(pair.evidence)
    spans = [(a, b) for a, b in split(pair.passage) if b <= start or a >= start + len(pair.evidence)]
    if not spans:
        return None
    shown = without(pair.passage, [random.choice(spans)])
    return replace(pair, passage=shown, evidence=pair.evidence if pair.evidence in shown else "")


def _with_evidence(rows: Sequence[Row]) -> list[Pair]:
    """What the labels say; where a row shows a passage without its answer, that tells the sentence that holds it."""
    removed = {row.qid: row.passage for row in rows if row.kind == "answer_removed"}
    pairs = known_pairs(list(rows))
    return [
        replace(pair, evidence=_missing(pair.passage, removed[row.qid])) if row.label and row.qid in removed else pair
        for row, pair in zip(rows, pairs, strict=True)
    ]


def _missing(passage: str, removed: str) -> str:
    """The sentence of `passage` that `removed` lacks, "" where that is not one or two that follow each other."""
    gone = [(a, b) for a, b in split(passage) if passage[a:b].strip() not in removed]
    if not gone or len(gone) > 2 or (len(gone) == 2 and gone[1][0] - gone[0][1] > 2):
        return ""
    return passage[gone[0][0] : gone[-1][1]].strip()


def search_elsewhere(rows: Sequence[Row], random: Random, share: float = 0.15) -> Iterator[Pair]:
    """That share of the questions, each with one of the best passages of another corpus by keyword search."""
    import bm25s

    families = {"squad2": "squad", "nq": "nq", "ares_nq": "ares", "ares_hotpotqa": "ares", "ares_wow": "ares"}
    for family in sorted(set(families.values())):
        asked = sorted({row.question for row in rows if families.get(row.source) == family})
        asked = random.sample(asked, int(len(asked) * share))
        passages = sorted({row.passage for row in rows if families.get(row.source, family) != family})
        if not asked or not passages:
            continue
        index = bm25s.BM25()
        index.index([words(text) for text in passages], show_progress=False)
        found, _ = index.retrieve([words(text) for text in asked], k=3, show_progress=False)
        for question, numbers in zip(asked, found, strict=True):
            yield Pair(question, passages[int(random.choice(list(numbers)))], 0.0, 0.0, "off corpus")
