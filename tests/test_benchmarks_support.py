"""The benchmark of support scores: its sentences, right and wrong, and the whole of it on made-up sets."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sentences, support
from benchmarks.sentences import Case

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


def write_claims(folder: Path, language: str = "") -> Path:
    rows = [("q1", "d1", "When was it sold?", "1994"), ("q2", "d1", "Who bought it?", "Karl Baker")]
    rows += [("q3", "d2", "When was it built?", "1870"), ("q4", "d2", "Who built it?", "Ada Smith")]
    queries = [
        {"query_id": id_, "query": asked, "answers": [answer], "answerable": True, "lang": language}
        for id_, _, asked, answer in rows
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


def test_claims_have_the_right_answer_one_from_elsewhere_or_one_beside(tmp_path: Path) -> None:
    found = sentences.read_claims(write_claims(tmp_path / "squad2_dev"), random.Random(1))
    claims = {case.sentence: case.is_right for case in found[sentences.ELSEWHERE]}
    assert claims["When was it sold: 1994"] is True and claims["When was it sold: 1870"] is False
    beside = {case.sentence: case.is_right for case in found[sentences.BESIDE]}
    assert beside["When was it sold: Karl Baker"] is False


def test_equally_long_answers_are_as_many_on_both_sides(tmp_path: Path) -> None:
    invented = ("It is ten", "Ten", "Ten", "Ten")
    rows = [
        {"knowledge": f"Paragraph {n}.Another.", "right_answer": "Nine", "hallucinated_answer": wrong}
        for n, wrong in enumerate(invented)
    ]
    found = sentences.read_halueval(write(tmp_path / "halueval_dev", qa=rows))
    assert len(found[sentences.HALLUCINATED]) == 8 and found[sentences.HALLUCINATED][0].evidence[1] == "Another."
    equal = found[sentences.SAME_LENGTH]
    assert sum(case.is_right for case in equal) == 3 and len(equal) == 6


def test_a_sample_holds_homes_whole() -> None:
    cases = [Case(f"{home}{n}", (), True, home) for home in "abcdef" for n in range(4)]
    drawn = sentences.sample(cases, 10)
    assert len(drawn) == 12 and drawn == sentences.sample(cases, 10)


def test_the_whole_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    sets = tmp_path / "dev" / "sets"
    write_written(sets / "mtrag_un", 30)
    write_claims(sets / "squad2_dev")
    write_claims(sets / "xquad_dev", "de")
    monkeypatch.setattr(support, "DATA", tmp_path)
    monkeypatch.setattr(sentences, "LANGUAGES", ("de",))
    support.main(["--words-only", "--limit", "40"])
    out = capsys.readouterr().out
    rates = out[out.index("## On the other half") :]
    assert support.SHIPPED in rates and "5 sentences against 30:" in out and "| de " in out
    row = next(line for line in rates.splitlines() if line.startswith(f"| {sentences.WRITTEN} ") and "1.000" in line)
    assert row.count("1.000") >= 1


def test_without_the_data_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(support, "DATA", tmp_path)
    support.main([])
    assert capsys.readouterr().out == "skipped: shared data not found\n"
