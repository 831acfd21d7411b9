"""The benchmark of support scores: its sentences, right and wrong, and the whole of it on made-up sets."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sentences, support
from benchmarks.sentences import Case
from benchmarks.support import agreement
from crag_core.base.protocols import Backing, Cancel, Piece
from crag_core.base.types.steps import Usage
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

RIGHT = "In 1994 the Ferry of Vennick was sold to Karl Baker of Bergen."


def write(folder: Path, **files: list[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True)
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return folder


def write_written(folder: Path, count: int = 6) -> Path:
    """Each answer stands in its own passage; every one has a number and two names."""
    answers = [RIGHT.replace("1994", str(1990 + n)).replace("Baker", f"Baker{n}") for n in range(count)]
    queries = [
        {"query_id": f"q{n}", "query": "?", "answers": [answer], "answerable": True, "collection": "one"}
        for n, answer in enumerate(answers)
    ]
    candidates = [
        {"query_id": f"q{n}", "passages": [{"text": f"{answer} It was blue."}]} for n, answer in enumerate(answers)
    ]
    return write(folder, queries=queries, candidates=candidates)


def write_claims(folder: Path) -> Path:
    rows = [("q1", "d1", "When was it sold?", "1994"), ("q2", "d1", "Who bought it?", "Karl Baker")]
    rows += [("q3", "d2", "When was it built?", "1870"), ("q4", "d2", "Who built it?", "Ada Smith")]
    queries = [
        {"query_id": id_, "query": asked, "answers": [answer], "answerable": True} for id_, _, asked, answer in rows
    ]
    texts = {"d1": "It was sold in 1994. Karl Baker bought it.", "d2": "It was built in 1870. Ada Smith built it."}
    write(folder, queries=queries, corpus=[{"doc_id": name, "text": text} for name, text in texts.items()])
    judged = "\n".join(f"{id_}\t{document}\t2" for id_, document, _, _ in rows)
    (folder / "qrels.tsv").write_text(f"query_id\tdoc_id\tgrade\n{judged}\n", "utf-8")
    return folder


def test_written_answers_are_altered_in_one_thing_only(tmp_path: Path) -> None:
    found = sentences.read_written(write_written(tmp_path / "mtrag_un"), random.Random(1))
    pairs = {kind: list(zip(cases[::2], cases[1::2], strict=True)) for kind, cases in found.items()}
    for kind in (sentences.NUMBER, sentences.NAME, sentences.DENIED, sentences.SWAPPED):
        assert len(pairs[kind]) == 6
        for right, wrong in pairs[kind]:
            assert right.is_right and not wrong.is_right and right.evidence == wrong.evidence
            changed = set(right.sentence.split()) ^ set(wrong.sentence.split())
            assert len(changed) == {sentences.DENIED: 1, sentences.SWAPPED: len(changed)}.get(kind, 2), kind
    swapped = pairs[sentences.SWAPPED][0][1].sentence
    assert sorted(swapped.replace(".", "").split()) == sorted(RIGHT.replace("1994", "1990").replace("Baker", "Baker0")
                                                              .replace(".", "").split())  # fmt: skip
    assert "was not sold" in pairs[sentences.DENIED][0][1].sentence


def test_written_answers_are_wrong_for_the_passages_of_others(tmp_path: Path) -> None:
    cases = sentences.read_written(write_written(tmp_path / "mtrag_un"), random.Random(1))[sentences.WRITTEN]
    for case in cases:
        assert (case.sentence in case.evidence) is case.is_right


class Meter:
    """Gives each sentence the score that is named for its home."""

    def __init__(self, **scores: float | None) -> None:
        self._scores = scores

    def measure(
        self, said: Sequence[str], pieces: Sequence[Piece], cancel: Cancel, question: str = ""
    ) -> tuple[Backing, ...]:
        return tuple(Backing(self._scores[one], usage=Usage(calls=1)) for one in said)


def test_agreement_is_counted_on_the_sentences_that_both_judge() -> None:
    cases = [Case(home, ("Evidence.",), home in "abc", home) for home in "abcde"]
    meters = {"words": Meter(a=0.9, b=0.4, c=0.3, d=0.5, e=0.6), "ollama/x": Meter(a=1.0, b=0.45, c=None, d=0.0, e=0.0)}
    rows = agreement({"a set": cases}, meters)
    words, judge = rows["a set: words"], rows["a set: ollama/x"]
    assert (words["sentences"], judge["sentences"]) == ("4", "4")
    assert (words["not read"], judge["not read"]) == ("0", "1")
    names = ("AUROC", "right: supported", "wrong: unsupported", "kappa")
    assert [getattr(judge[name], "value", None) for name in names] == [1.0, 0.5, 1.0, 0.5]
    assert [getattr(words[name], "value", None) for name in names] == [0.5, 0.5, 0.0, 0.0]


def test_the_whole_benchmark_with_a_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    write_written(tmp_path / "dev" / "sets" / "mtrag_un", 30)
    write_claims(tmp_path / "dev" / "sets" / "squad2_dev")
    monkeypatch.setattr(support, "DATA", tmp_path)
    with OllamaServer(ScriptedModel(lambda messages: {"verdict": "supported", "sentences": [1]})) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        support.main(["--limit", "40", "--judge", f"ollama/{MODEL}", "--judged", "8"])
        assert 0 < server.chat_calls <= 8
    out = capsys.readouterr().out
    rates, judged = out[out.index("## On the other half") :].split("## Agreement with the labels, on the other half")
    assert "supported, so that 85% of what is right are" in out and "5 sentences against 30:" in out
    assert any(line.startswith(f"| {sentences.WRITTEN} ") and "1.000" in line for line in rates.splitlines())
    assert f"| {sentences.WRITTEN}: words" in judged and f"| {sentences.WRITTEN}: ollama/{MODEL}" in judged
