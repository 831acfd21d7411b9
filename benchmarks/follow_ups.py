"""Follow-up questions: of real conversations (mtrag_un), and with `--sample` our own over the sample documents.

`--sample` asks each question of `tests/trace/follow_ups.jsonl` after the one before it, as the application does, and
answers in quotations, under the default policy: how many become one question, and the right one; how many are CORRECT,
with the right answer, with another, or with that of the question before. With `--model` the model rewrites first.

Later turns alone, at most `--questions` of each label drawn with a fixed seed. Over the passages of the set, found by
words and meaning: whether a relevant one is among the first five; then, by the default policy and evaluator on the
first six, the share of answerable turns that are routed CORRECT, of those with a relevant passage among the six, and of
unanswerable ones that are not. Last, how many turns labelled underspecified are asked back, and how many others.

The turns before are condensed by the rule in every row, as a conversation without a model has them; the answers are
those of the set. A turn that is asked back counts as asked where routes are counted. The small model of the tests has
no judgement: its row shows what such a model costs. The set is about its own passages alone, so retrieval is easier
than over a large index.

Run: python benchmarks/follow_ups.py --sample [--model small]  (two minutes, with a model ten)
     python benchmarks/follow_ups.py                          (some minutes)
     python benchmarks/follow_ups.py --model small --questions 20
     python benchmarks/follow_ups.py --model FILE.gguf --questions 40
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
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
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench, build_pipeline
from crag_core.base.data_files import DATA
from crag_core.base.protocols import LanguageModel
from crag_core.base.types.decisions import Action
from crag_core.base.types.questions import FollowUp, Turn, Understanding
from crag_core.decision.decide import decide
from crag_core.evaluators import EVALUATORS, shipped
from crag_core.evaluators.policies import DEFAULT, find_policy
from crag_core.evaluators.shared.parts import EvaluatorParts
from crag_core.evaluators.shipped import signal_meter, strip_evaluator
from crag_core.llamaindex.query_engine import CRAGQueryEngine
from crag_core.llms import ollama
from crag_core.llms.model import CallLimit
from crag_core.pipeline.condense import condense, needed
from crag_core.pipeline.run import Parts, Run
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.trace.standalone import LONGEST_ANSWER, MOST_TURNS, by_rule, follow, stands_alone
from crag_core.trace.trace import RunSettings, Trace

OWN = Path(__file__).parent.parent / "tests" / "trace" / "follow_ups.jsonl"
_FIRST, _GRADED, _DEEP = 5, 6, 50
_FUSION = 60
_LABELS = ("ANSWERABLE", "UNANSWERABLE", "UNDERSPECIFIED")


@dataclass(frozen=True)
class Understood:
    """What a turn became: the question to search with, whether that decides, and whether it was asked back instead."""

    question: str
    asks_back: bool = False
    decides: bool = True


Condense = Callable[[dict[str, Any]], Understood]


def as_asked(row: dict[str, Any]) -> Understood:
    return Understood(row["query"])


def history_of(row: dict[str, Any], stop_words: frozenset[str]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for said in row["history"]:
        if said["role"] == "user":
            text = said["text"]
            made, is_one = ("", False) if stands_alone(text, stop_words) else by_rule(text, turns, stop_words)
            turns.append(Turn(str(len(turns)), made if is_one else text))
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
        outcome = done.outcome
        question = done.question or row["query"]
        return Understood(question, outcome is Understanding.ASKS_BACK, outcome is not Understanding.UNSURE)

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
        self._policy = find_policy(DEFAULT).with_thresholds_for(evaluator.card, evaluator.card)

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
    changed = unsure = 0
    for row in rows:
        understood = made(row)
        unsure += not understood.decides
        changed += understood.question != row["query"]
        label = row["answerability"]
        (back if label == "UNDERSPECIFIED" else false_back).append(understood.asks_back)
        if label == "UNDERSPECIFIED":
            continue
        found = corpus.search(understood.question)
        relevant = {one for one, grade in corpus.source.judged.get(row["query_id"], {}).items() if grade >= 1}
        action = corpus.route(understood.question, found) if understood.decides else Action.AMBIGUOUS
        if label == "UNANSWERABLE":
            held.append(action is not Action.CORRECT)
        elif relevant:
            hits.append(bool(relevant & set(found[:_FIRST])))
            right.append(action is Action.CORRECT)
            grounded.append(action is Action.CORRECT and bool(relevant & set(found)))

    def cell(outcomes: list[bool]) -> str:
        return f"{share(sum(outcomes), len(outcomes))} of {len(outcomes)}"

    return {
        "changed": f"{changed} of {len(rows)}, {unsure} of them two questions",
        f"answerable: hit@{_FIRST}": cell(hits),
        "answerable: CORRECT": cell(right),
        "with a relevant one": cell(grounded),
        "unanswerable: not CORRECT": cell(held),
        "underspecified: asked back": cell(back),
        "others: asked back": cell(false_back),
    }


@dataclass(frozen=True)
class Answered:
    """One of our own follow-ups, and its run."""

    row: dict[str, str]
    run: Trace

    @property
    def is_one_question(self) -> bool:
        return not (self.run.is_unsure or self.run.asks_back)

    @property
    def is_correct(self) -> bool:
        return self.run.decision is not None and self.run.decision.verdict is Action.CORRECT

    @property
    def is_right(self) -> bool:
        return bool(self.row["answer"]) and self.row["answer"] in self.text

    @property
    def is_repeated(self) -> bool:
        """Whether it got the answer to the question before, as if that were its own."""
        return self.is_correct and self.row["earlier"] in self.text and not self.is_right

    @property
    def text(self) -> str:
        return self.run.answer.text if self.run.answer else ""


def own_follow_ups(engine: CRAGQueryEngine, model: LanguageModel | None = None) -> list[Answered]:
    """Of the sample documents; `engine` answers in quotations, whoever makes the question."""
    first: dict[str, Trace] = {}
    found = []
    for row in map(json.loads, OWN.read_text("utf-8").splitlines()):
        before = first.get(row["before"]) or first.setdefault(row["before"], engine.run(row["before"]))
        begun = engine.begin(row["asked"], follow_up=follow(row["asked"], before))
        understood = condense(begun, replace(engine.parts, model=model), Run())
        assert understood is not None
        found.append(Answered(row, engine.resume(replace(begun, **understood.changes))))
    return found


@contextmanager
def sample_engine() -> Iterator[CRAGQueryEngine]:
    with tempfile.TemporaryDirectory() as home:
        plain = {"cache": "off", "history": "off", "audit": "off", "ollama_host": "127.0.0.1:9"}
        settings = Config(home=Path(home), **plain)  # type: ignore[arg-type]
        Workbench(settings).store.ingest([(path.name, path) for path in sorted((DATA / "sample").iterdir())])
        yield build_pipeline(settings=settings)


def told(found: Sequence[Answered]) -> dict[str, Cell]:
    correct = [one for one in found if one.is_correct]
    wanted = [one for one in found if one.is_one_question and one.row["understood"]]
    refused = sum(bool(one.run.follow_up and one.run.follow_up.note) for one in found)
    return {
        "follow-ups": f"{len(found)}",
        "one question": f"{sum(one.is_one_question for one in found)}",
        "the expected one": f"{sum(one.run.question == one.row['understood'] for one in wanted)}",
        "what a model wrote refused": f"{refused}",
        "CORRECT": f"{len(correct)}",
        "with the right answer": f"{sum(one.is_right for one in correct)}",
        "with the answer before": f"{sum(one.is_repeated for one in found)}",
        "with another": f"{sum(not one.is_right and not one.is_repeated for one in correct)}",
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
    options.add_argument("--sample", action="store_true", help="our own follow-ups over the sample documents")
    given = options.parse_args()
    if given.sample:
        with sample_engine() as engine:
            measured = {"by the rule": told(own_follow_ups(engine))}
            if given.model:
                with serving(given.model) as model:
                    measured[f"by {Path(given.model).stem}"] = told(own_follow_ups(engine, model))
        print(Table("understood", measured))
        return
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
