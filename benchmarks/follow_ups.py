"""Follow-up questions of real conversations (mtrag_un): with and without making them stand alone.

Later turns alone, at most `--questions` of each label drawn with a fixed seed. Over the passages of the set, found by
words and meaning: whether a relevant one is among the first five; then, by the default policy and evaluator on the
first six, the share of answerable turns that are routed CORRECT, of those with a relevant passage among the six, and of
unanswerable ones that are not. Last, how many turns labelled underspecified are asked back, and how many others.

The turns before are condensed by the rule in every row, as a conversation without a model has them; the answers are
those of the set. A turn that is asked back counts as asked where routes are counted. The small model of the tests has
no judgement: its row shows what such a model costs. The set is about its own passages alone, so retrieval is easier
than over a large index.

Run: python benchmarks/follow_ups.py                          (some minutes)
     python benchmarks/follow_ups.py --model small --questions 20
     python benchmarks/follow_ups.py --model FILE.gguf --questions 40
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.measures import SEED, share
from benchmarks.nearest import Nearest, RememberingEmbedder
from benchmarks.sets import Source
from benchmarks.tables import Cell, Table
from crag_core.base.protocols import LanguageModel
from crag_core.base.types import Action, FollowUp, Turn, Understanding
from crag_core.decision.decide import decide
from crag_core.evaluators import EVALUATORS, shipped
from crag_core.evaluators.policies import DEFAULT, find_policy
from crag_core.evaluators.shared.parts import EvaluatorParts
from crag_core.evaluators.shipped import signal_meter, strip_evaluator
from crag_core.llms import ollama
from crag_core.llms.model import CallLimit
from crag_core.pipeline.condense import condense, needed
from crag_core.pipeline.run import Parts, Run
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.trace.standalone import LONGEST_ANSWER, MOST_TURNS, by_rule, stands_alone
from crag_core.trace.trace import RunSettings, Trace

_FIRST, _GRADED, _DEEP = 5, 6, 50
_FUSION = 60
_LABELS = ("ANSWERABLE", "UNANSWERABLE", "UNDERSPECIFIED")


@dataclass(frozen=True)
class Understood:
    """What a turn became: the question to search with, and whether it was asked back instead."""

    question: str
    asks_back: bool = False


Condense = Callable[[dict[str, Any]], Understood]


def as_asked(row: dict[str, Any]) -> Understood:
    return Understood(row["query"])


def history_of(row: dict[str, Any], stop_words: frozenset[str]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for said in row["history"]:
        if said["role"] == "user":
            text = said["text"]
            alone = not turns or stands_alone(text, stop_words)
            turns.append(Turn(str(len(turns)), text if alone else by_rule(text, turns, stop_words) or text))
        elif turns:
            turns[-1] = Turn(turns[-1].run, turns[-1].question, said["text"][:LONGEST_ANSWER])
    return tuple(turns[-MOST_TURNS:])


def condensed_by(parts: Parts, settings: RunSettings) -> Condense:
    """As the pipeline does, its stage run on a record of nothing but the turn."""

    def made(row: dict[str, Any]) -> Understood:
        known = FollowUp(row["query"], history_of(row, parts.meter.stop_words))
        if not needed(known, parts.meter.stop_words):
            return as_asked(row)
        result = condense(Trace("", "", row["query"], settings, follow_up=known), parts, Run())
        assert result is not None
        done = result.changes["follow_up"]
        return Understood(done.question or row["query"], done.outcome is Understanding.ASKS_BACK)

    return made


class Corpus:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.ids = list(source.corpus)
        self._near = Nearest([source.text(one) for one in self.ids], source.embedder)
        evaluator = EVALUATORS["cross-encoder"].build(
            EvaluatorParts(source.embedder, signal_meter(), shipped.EVALUATOR_FOLDER)
        )
        self._evaluator = evaluator
        self._policy = find_policy(DEFAULT).suited_to(evaluator.card, evaluator.card)

    def search(self, question: str) -> list[str]:
        fused: Counter[int] = Counter()
        for ranked in (self._near.by_meaning(question), self._near.by_words(question)):
            for rank, (place, _) in enumerate(ranked[:_DEEP]):
                fused[place] += 1 / (_FUSION + rank)  # type: ignore[assignment]  # a Counter adds up any number
        return [self.ids[place] for place, _ in fused.most_common(_GRADED)]

    def route(self, question: str, found: Sequence[str]) -> Action:
        passages = tuple(self.source.passage(one) for one in found)
        return decide(self._policy, passages, self._evaluator.grade(question, passages, Event())).action


def measure(made: Condense, rows: Sequence[dict[str, Any]], corpus: Corpus) -> dict[str, Cell]:
    hits: list[bool] = []
    right: list[bool] = []
    grounded: list[bool] = []
    held: list[bool] = []
    back: list[bool] = []
    false_back: list[bool] = []
    changed = 0
    for row in rows:
        understood = made(row)
        changed += understood.question != row["query"]
        label = row["answerability"]
        (back if label == "UNDERSPECIFIED" else false_back).append(understood.asks_back)
        if label == "UNDERSPECIFIED":
            continue
        found = corpus.search(understood.question)
        relevant = {one for one, grade in corpus.source.judged.get(row["query_id"], {}).items() if grade >= 1}
        action = corpus.route(understood.question, found)
        if label == "UNANSWERABLE":
            held.append(action is not Action.CORRECT)
        elif relevant:
            hits.append(bool(relevant & set(found[:_FIRST])))
            right.append(action is Action.CORRECT)
            grounded.append(action is Action.CORRECT and bool(relevant & set(found)))

    def cell(outcomes: list[bool]) -> str:
        return f"{share(sum(outcomes), len(outcomes))} of {len(outcomes)}"

    return {
        "changed": f"{changed} of {len(rows)}",
        f"answerable: hit@{_FIRST}": cell(hits),
        "answerable: CORRECT": cell(right),
        "with a relevant one": cell(grounded),
        "unanswerable: not CORRECT": cell(held),
        "underspecified: asked back": cell(back),
        "others: asked back": cell(false_back),
    }


def drawn(rows: Sequence[dict[str, Any]], limit: int | None) -> list[dict[str, Any]]:
    found = []
    for label in _LABELS:
        own = [row for row in rows if row["history"] and row["answerability"] == label]
        found += own if limit is None else random.Random(SEED).sample(own, min(limit, len(own)))
    return found


@contextmanager
def serving(model: str) -> Iterator[LanguageModel]:
    """SmolLM2 of the tests for "small", else the weights in this file, on one thread, behind the real client."""
    from tests.stand_ins import real_model
    from tests.stand_ins.ollama_server import MODEL, OllamaServer

    if model != "small":
        real_model.WEIGHTS = str(Path(model).resolve())
    with OllamaServer(real_model.RealModel(max_tokens=160)) as server:
        yield ollama.model(server.url, MODEL, 600.0, CallLimit(1))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=Path(os.environ.get("CRAG_SHARED_DATA", "data")) / "dev")
    options.add_argument("--model", default="", help="small, or a file of weights; without: the rule alone")
    options.add_argument("--questions", type=int, help="of each label")
    given = options.parse_args()
    source = Source(given.data / "sets" / "mtrag_un", sys.maxsize, RememberingEmbedder(HuggingFaceEmbedder()))
    corpus, rows = Corpus(source), drawn(source.rows, given.questions)
    card = EVALUATORS["cross-encoder"].card
    settings = RunSettings(find_policy(DEFAULT), card, card, "minilm", "", "off", _GRADED, "", "")
    parts = Parts(
        EVALUATORS["cross-encoder"].build(EvaluatorParts(source.embedder, signal_meter(), shipped.EVALUATOR_FOLDER)),
        strip_evaluator(),
        signal_meter(),
    )
    table = {
        "as asked": measure(as_asked, rows, corpus),
        "by the rule": measure(condensed_by(parts, settings), rows, corpus),
    }
    if given.model:
        with serving(given.model) as model:
            asked = condensed_by(replace(parts, model=model), settings)
            table[f"by {Path(given.model).stem}"] = measure(asked, rows, corpus)
    print(Table("question", table))


if __name__ == "__main__":
    main()
