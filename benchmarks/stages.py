"""How often the stage at which a question of a log went wrong is named right, on faults that are planted.

Real questions with the chunk that answers them and four others that a keyword search finds, graded by the trained
evaluator. Into each, one fault at a time: the chunk that answers is taken away; a threshold is put above its score; the
sentence that answers is struck out; the answer is another sentence of the chunks, or "I don't know"; the answer has
another name or number, or says something from elsewhere. The faults behind the first are planted only where the policy
keeps the sentence that answers, so that there is no other one. Without a right answer in the log, a record can only be
doubted.

Run: python benchmarks/stages.py                (needs the shared evaluation data, see CRAG_SHARED_DATA; 5 minutes)
     python benchmarks/stages.py --questions 50 --show
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.evaluator import DATA
from benchmarks.measures import share
from crag_core.app.config import load
from crag_core.app.workbench import Choice, Workbench
from crag_core.decision.policy import Policy
from crag_core.evaluators import shipped
from crag_core.evaluators.policies import DEFAULT, default_evaluator, find_policy, suit
from crag_core.evaluators.support import WordSupport
from crag_core.experiments.comparison.outcome import contains
from crag_core.experiments.logs.record import Context, LogRecord, passages_of
from crag_core.experiments.logs.stages import Finding, Judged, Stage
from crag_core.trace.grounding.claims import sentences
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace

SEED = 7
CHUNKS = 5
DECLINED = "I don't know. The provided context does not mention this."


@dataclass(frozen=True)
class Question:
    """A question, a text that answers it, the right answers, and others without them that a keyword search finds.

    `elsewhere` has the words of the right answer and is about something else, "" where there is no such text.
    """

    id: str
    question: str
    gold: str
    answers: tuple[str, ...]
    others: tuple[str, ...]
    elsewhere: str = ""


@dataclass(frozen=True)
class Planted:
    """A fault in a record: what is expected to be found, under `policy`."""

    stage: Stage
    kind: str
    record: LogRecord
    trace: Trace
    policy: Policy


# --- the questions ----------------------------------------------------------------------------------------------------


def read_questions(name: str, count: int, seed: int) -> tuple[Question, ...]:
    corpus, asked = _everyday() if name == "everyday" else _public(name)
    ids = list(corpus)
    rank = _ranking([corpus[one] for one in ids])
    drawn = random.Random(seed).sample(asked, min(count, len(asked)))
    found = []
    for number, (question, answers, gold) in enumerate(drawn):
        ranked = [ids[at] for at in rank(question)]
        others = [corpus[one] for one in ranked if one != gold and not contains(corpus[one], answers)][: CHUNKS - 1]
        far = [text for id_, text in corpus.items() if id_ not in (gold, *ranked) and contains(text, answers)]
        elsewhere = random.Random(number).choice(far) if far else ""
        found.append(Question(f"{name} {number}", question, corpus[gold], answers, tuple(others), elsewhere))
    return tuple(found)


def _public(name: str) -> tuple[dict[str, str], list[tuple[str, tuple[str, ...], str]]]:
    folder = DATA / "dev" / "sets" / name
    corpus = {one["doc_id"]: one["text"] for one in _lines(folder / "corpus.jsonl")}
    gold: dict[str, list[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, document, *grade = line.split("\t")
        if grade and grade[0] == "2":
            gold.setdefault(query, []).append(document)
    asked = [
        (one["query"], tuple(one["answers"]), gold[one["query_id"]][0])
        for one in _lines(folder / "queries.jsonl")
        if one.get("answerable") and one.get("answers") and one["query_id"] in gold
    ]
    return corpus, [one for one in asked if contains(corpus[one[2]], one[1])]


def _everyday() -> tuple[dict[str, str], list[tuple[str, tuple[str, ...], str]]]:
    folder = DATA / "dev" / "everyday"
    corpus: dict[str, str] = {}
    for path in sorted((folder / "documents").iterdir()):
        text, pieces = path.read_text("utf-8", "replace"), [""]
        for part in re.split(r"\n\s*\n", text):
            pieces[-1:] = [f"{pieces[-1]}\n\n{part}".strip()] if len(pieces[-1]) < 500 else [pieces[-1], part]
        corpus |= {f"{path.name} {number}": piece for number, piece in enumerate(pieces)}
    asked = []
    for one in _lines(folder / "questions.jsonl"):
        holding = [id_ for id_, text in corpus.items() if one.get("evidence") and one["evidence"] in text]
        if one["expected"] == "CORRECT" and one.get("answers") and holding:
            asked.append((one["question"], tuple(one["answers"]), holding[0]))
    return corpus, asked


def _lines(path: Path) -> Iterator[dict]:  # type: ignore[type-arg]
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _ranking(texts: Sequence[str]):  # type: ignore[no-untyped-def]
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(list(texts), show_progress=False), show_progress=False)

    def rank(question: str) -> list[int]:
        found, _ = index.retrieve(
            bm25s.tokenize([question], show_progress=False), k=min(60, len(texts)), show_progress=False
        )
        return [int(at) for at in found[0]]

    return rank


# --- the faults -------------------------------------------------------------------------------------------------------


class Planting:
    """Grades the chunks of a question once, and plants each fault into the record."""

    def __init__(self, workbench: Workbench, policy: Policy, questions: Sequence[Question], seed: int) -> None:
        self._engine = workbench.engine(Choice(policy, default_evaluator(policy, "extractive")), observed=False)
        self._policy = policy
        self._random = random.Random(seed)
        self._questions = questions

    def plant(self, one: Question) -> Iterator[Planted]:
        texts = [*one.others, one.gold]
        self._random.shuffle(texts)
        base = LogRecord(one.id, 1, one.question, tuple(map(Context, texts)), references=one.answers)
        trace = self._graded(base)
        without = replace(base, contexts=tuple(context for context in base.contexts if context.text != one.gold))
        gone, other = self._graded(without), self._other_sentence(one)
        for kind, answer in (
            ("declined", DECLINED),
            ("another sentence", self._of_others(one)),
            ("made up", self._far(one)),
        ):
            yield Planted(Stage.NOT_RETRIEVED, kind, replace(without, answer=answer), gone, self._policy)
        if one.elsewhere:
            beside = replace(without, contexts=(*without.contexts, Context(one.elsewhere)), answer=DECLINED)
            yield Planted(Stage.NOT_RETRIEVED, "its words elsewhere", beside, self._graded(beside), self._policy)
        highest = max((grade.part("answering") or 0.0 for grade in trace.grades or ()), default=0.0)
        topical = max((grade.part("topical") or 0.0 for grade in trace.grades or ()), default=0.0)
        above = min(max(highest, topical) + 0.001, 1.0)
        strict = self._policy.with_thresholds(above, max(above, self._policy.upper))
        for kind, answer in (("declined", DECLINED), ("another sentence", other)):
            yield Planted(Stage.GRADED_LOW, kind, replace(base, answer=answer), trace, strict)
        sentence = self._kept_sentence(one, trace)
        if not sentence:
            return
        struck = self._struck(one, trace)
        for kind, answer in (("declined", DECLINED), ("another sentence", other)):
            yield Planted(Stage.STRUCK_OUT, kind, replace(base, answer=answer), struck, self._policy)
            yield Planted(Stage.NOT_USED, kind, replace(base, answer=answer), trace, self._policy)
        if swapped := self._swapped(one, sentence):
            yield Planted(Stage.BEYOND, "another name or number", replace(base, answer=swapped), trace, self._policy)
        yield Planted(Stage.BEYOND, "made up", replace(base, answer=self._far(one)), trace, self._policy)
        yield Planted(Stage.NONE, "the sentence", replace(base, answer=sentence), trace, self._policy)
        yield Planted(Stage.NONE, "the answer alone", replace(base, answer=one.answers[0]), trace, self._policy)

    def _graded(self, record: LogRecord) -> Trace:
        passages = passages_of(record)
        engine = self._engine.over(passages)
        return engine.score_strips(engine.grade(record.question), passages)

    def _kept_sentence(self, one: Question, trace: Trace) -> str:
        """The sentence that answers, where the policy keeps it; "" where it does not."""
        routed = reroute(trace, self._policy)
        for excerpt in routed.knowledge.internal:
            own = [strip for strip in trace.strips or () if strip.id in excerpt.strip_ids]
            texts = [strip.text for strip in own] or [excerpt.text]
            for text in texts if excerpt.passage.text == one.gold else ():
                if contains(text, one.answers):
                    return text
        return ""

    def _struck(self, one: Question, trace: Trace) -> Trace:
        """Every sentence that has the answer scores nothing."""
        strips = tuple(
            replace(strip, score=0.0) if contains(strip.text, one.answers) else strip for strip in trace.strips or ()
        )
        return replace(trace, strips=strips)

    def _other_sentence(self, one: Question) -> str:
        """Of the chunk that answers one that does not, else of the others."""
        return self._drawn(one, [one.gold]) or self._of_others(one)

    def _of_others(self, one: Question) -> str:
        return self._drawn(one, one.others) or DECLINED

    def _drawn(self, one: Question, texts: Sequence[str]) -> str:
        found = [text[start:end] for text in texts for start, end in sentences(text)]
        found = [text for text in found if 5 < len(text.split()) < 50 and not contains(text, one.answers)]
        found = [text for text in found if not re.search(r"\||,\S*,\S*,|^#", text)]  # no tables, no headings
        return self._random.choice(found) if found else ""

    def _far(self, one: Question) -> str:
        """A sentence about something else, that no chunk has."""
        while True:
            other = self._random.choice(self._questions)
            if other.gold not in (one.gold, *one.others) and (text := self._drawn(one, [other.gold])):
                return text

    def _swapped(self, one: Question, sentence: str) -> str:
        """The sentence with another question's answer in place of its own, of the same kind: a number, or a name."""
        answer = next((text for text in one.answers if text.lower() in sentence.lower()), "")
        is_number = any(sign.isdigit() for sign in answer)
        texts = " ".join((one.gold, *one.others)).lower()
        others = [
            text
            for other in self._questions
            for text in other.answers[:1]
            if any(sign.isdigit() for sign in text) == is_number
            and not any(part in texts for part in (re.findall(r"\d+", text) if is_number else [text.lower()]))
            and (is_number or text[:1].isupper())
            and len(text.split()) <= 4
        ]
        if not answer or not others or not (is_number or answer[:1].isupper()):
            return ""
        at = sentence.lower().index(answer.lower())
        swapped = sentence[:at] + self._random.choice(others) + sentence[at + len(answer) :]
        return "" if contains(swapped, one.answers) else swapped


# --- the figures ------------------------------------------------------------------------------------------------------


def named(found: Sequence[tuple[Planted, Finding]]) -> dict[str, tuple[int, int]]:
    """By stage and by kind, how many were named right, and of how many."""
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for planted, finding in found:
        for name in (planted.stage.value, f"  {planted.stage.value}: {planted.kind}", "all faults"):
            if name == "all faults" and planted.stage is Stage.NONE:
                continue
            total[name] += 1
            right[name] += planted.stage is finding.stage
    order = [stage.value for stage in Stage]
    names = sorted(total, key=lambda name: order.index(name.split(":")[0].strip()) if name != "all faults" else -1)
    return {name: (right[name], total[name]) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100, help="of each set")
    parser.add_argument("--sets", default="route_dev,squad2_dev,everyday")
    parser.add_argument("--policy", default=DEFAULT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", action="store_true", help="the faults that were named wrong")
    options = parser.parse_args()
    if not DATA.is_dir():
        print("skipped: shared data not found")
        return
    workbench = Workbench(load())
    chosen = find_policy(options.policy, workbench.config)
    policy = suit(chosen, default_evaluator(chosen, "extractive"))
    meter = WordSupport(shipped.EVALUATOR_FOLDER, shipped.signal_meter().stop_words)
    for name in options.sets.split(","):
        questions = read_questions(name, options.questions, options.seed)
        planting = Planting(workbench, policy, questions, options.seed)
        planted = [one for question in questions for one in planting.plant(question)]
        gold = {question.id: question.gold for question in questions}
        for title, change in TRUTHS.items():
            records = (change(one.record, gold[one.record.id]) for one in planted)
            found = [
                (one, Judged(one.trace, record, meter).under(one.policy))
                for one, record in zip(planted, records, strict=True)
            ]
            print(f"\n{name}, policy {policy.name}, {len(questions)} questions, {title}")
            for line, (right, total) in named(found).items():
                print(f"  {line:<55}{share(right, total)}")
            if options.show:
                _show(found)


TRUTHS = {
    "right answers of some words": lambda record, gold: record,
    "a right answer as a sentence": lambda record, gold: replace(record, references=(_sentence_of(record, gold),)),
    "without right answers": lambda record, gold: replace(record, references=()),
}


def _sentence_of(record: LogRecord, gold: str) -> str:
    """The sentence that answers, or question and answer where the answer stands in several."""
    found = [gold[start:end] for start, end in sentences(gold) if contains(gold[start:end], record.references)]
    return found[0] if found else f"{record.question.rstrip(' ?')}: {record.references[0]}"


def _show(found: Sequence[tuple[Planted, Finding]]) -> None:
    missed = [(one, finding) for one, finding in found if one.stage is not finding.stage]
    wrong = Counter((one.stage.value, one.kind, finding.stage.value) for one, finding in missed)
    for (stage, kind, taken), count in wrong.most_common():
        print(f"    {count:>4}  {stage} ({kind}) taken for: {taken}")
    for one, finding in missed[:60]:
        said = f"{one.record.question} | {one.record.references} | {one.record.answer[:90]!r}"
        print(f"    - {said} -> {one.stage.value} / {finding.stage.value}: {finding.reason}")


if __name__ == "__main__":
    main()
