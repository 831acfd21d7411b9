"""`python -m crag_core`: what it prints, where, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crag_core.__main__ import main
from crag_core.app import workbench
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.protocols import Cancel, WebReply
from crag_core.base.types.answers import AnswerState
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import StepState
from crag_core.base.types.web import WebOutcome
from crag_core.evaluators import shipped
from crag_core.evaluators.policies import OWN_JUDGE
from crag_core.observability.logs import show_logs
from crag_core.trace.trace import SCHEMA, Trace
from crag_core.websearch import PROVIDERS
from tests.fakes import FakeSearcher, found_web
from tests.judge import heard, judging
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.word_embedder import WordEmbedder

FERRY = "The ferry to Vennick leaves at nine in the morning. It carries forty cars and two hundred people."
BREAD = "# Bread\n\nKnead the dough for ten minutes. Let it rise for an hour. Bake it at 220 degrees."
QUESTION = "When does the ferry to Vennick leave?"

GOOD_ENOUGH = ("--lower", "0", "--upper", "0")
"""Thresholds by which everything is CORRECT."""

Output = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CRAG_HOME", str(folder))
    return folder


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home that `ingest` makes of one file."""
    folder = tmp_path_factory.mktemp("filled")
    file = folder / "ferry.txt"
    file.write_text(FERRY, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRAG_HOME", str(folder / "home"))
        patch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
        assert main(["ingest", str(file)]) == 0
    return folder / "home"


@pytest.fixture
def indexed(home: Path, filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(workbench, "HuggingFaceEmbedder", WordEmbedder)
    return Path(shutil.copytree(filled, home))


# --- the whole way, with the real embedding model -------------------------------------------------------------------


def test_ingest_and_ask_with_the_real_embedding_model(home: Path, tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "ferry.txt").write_text(FERRY, "utf-8")
    (folder / "bread.md").write_text(BREAD, "utf-8")
    (folder / ".hidden").write_text("not for the index", "utf-8")

    assert main(["ingest", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "bread.md: indexed, 1 chunk.\n" in told and "ferry.txt: indexed, 1 chunk.\n" in told
    assert "hidden" not in told
    assert (home / "crag.db").is_file()

    assert main(["ingest", str(folder / "ferry.txt")]) == 0
    assert capsys.readouterr().out == "ferry.txt: already indexed, 1 chunk.\n"

    assert main(["ask", QUESTION, *GOOD_ENOUGH]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Retrieval: CORRECT. Best answer 0.")
    assert "“The ferry to Vennick leaves at nine in the morning.” [1]" in shown.out
    assert "ferry.txt" in shown.out and "bread.md" in shown.out
    steps = [line.split()[0] for line in shown.err.splitlines() if " ms " in line]
    assert steps == ["retrieve", "grade", "route", "score", "assemble", "answer", "check"]
    assert "model calls by route: Correct 0, Ambiguous 0, Incorrect 0" in shown.err
    assert re.search(r"^corrections: refinement; 0 model calls, \d+ ms to the context$", shown.out, re.MULTILINE)

    assert main(["ask", QUESTION, "--json", "--top-k", "1", *GOOD_ENOUGH]) == 0
    shown = capsys.readouterr()
    trace = Trace.from_json(shown.out)
    assert shown.err == "" or " ms " not in shown.err, "progress would only be in the way of a program"
    assert trace.decision is not None and trace.decision.action is Action.CORRECT
    assert trace.passages is not None and [passage.source for passage in trace.passages] == ["ferry.txt"]
    assert trace.settings.embedding == "all-MiniLM-L6-v2"
    assert trace.answer is not None and trace.answer.state is AnswerState.COMPLETE

    assert main(["ask", "Who won the football cup?", "--json"]) == 0
    other = Trace.from_json(capsys.readouterr().out)
    assert other.decision is not None and (other.decision.score or 0.0) < (trace.decision.score or 0.0)

    assert main(["ask", "Who won the football cup?", "--lower", "1", "--upper", "1"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Retrieval: INCORRECT.") and "web search is off" in shown.out


def test_a_later_question_follows_a_kept_run_or_its_record(indexed: Path, tmp_path: Path, capsys: Output) -> None:
    assert main(["ask", QUESTION, "--json", *GOOD_ENOUGH]) == 0
    record = capsys.readouterr().out
    file = tmp_path / "first.json"
    file.write_text(record, "utf-8")
    Workbench(Config(home=indexed)).history.save(Trace.from_json(record))  # as the application does
    typed = "And how many cars does it carry?"
    for before in (Trace.from_json(record).id, str(file)):
        assert main(["ask", typed, "--after", before, "--json", *GOOD_ENOUGH]) == 0
        later = Trace.from_json(capsys.readouterr().out)
        assert later.asked == typed and later.question == f"{QUESTION} {typed}" and later.answer is not None
    (indexed / "no-run.json").write_text("{}", "utf-8")
    for wrong, told, code in (
        ("none", "There is no kept run 'none'.", 2),
        (str(tmp_path / "none.json"), "There is no file", 2),
        (str(indexed / "no-run.json"), "no-run.json: This is not a recorded run: it has no schema.", 1),
    ):
        assert main(["ask", typed, "--after", wrong]) == code
        assert told in capsys.readouterr().err


# --- ingest ---------------------------------------------------------------------------------------------------------


def test_refused_file_gives_its_reason_and_exit_code_1(indexed: Path, tmp_path: Path, capsys: Output) -> None:
    empty, good = tmp_path / "empty.txt", tmp_path / "good.txt"
    empty.write_bytes(b"")
    good.write_text(BREAD, "utf-8")
    capsys.readouterr()
    assert main(["ingest", str(empty), str(good)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "empty.txt: refused"
    assert told[1].startswith("  ") and "empty" in told[1]
    assert told[2] == "good.txt: indexed, 1 chunk.", "the others go in"


def test_a_collection_is_put_into_and_asked_alone(indexed: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "pier.txt").write_text("The north pier opens at six.")
    assert main(["ingest", str(tmp_path / "pier.txt"), "--collection", "piers"]) == 0
    capsys.readouterr()
    assert main(["ask", "When does the north pier open?", "--collection", "piers", "--json"]) == 0
    run = Trace.from_json(capsys.readouterr().out)
    assert run.settings.collection == "piers" and {one.source for one in run.passages or ()} == {"pier.txt"}


def test_a_question_is_asked_as_plain_rag(indexed: Path, capsys: Output) -> None:
    assert main(["ask", QUESTION, "--plain", "--json"]) == 0
    run = Trace.from_json(capsys.readouterr().out)
    assert run.settings.policy.name == "plain" and run.grades is None and run.web is None
    assert main(["ask", QUESTION, "--plain"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("Not graded. ") and "CORRECT" not in told.out and "model calls: 0" in told.err


@pytest.mark.parametrize("idle", [("--policy", "paper"), ("--upper", "0.5"), ("--web", "auto"), ("--evaluator", "llm")])
def test_what_plain_rag_would_not_heed_is_refused(idle: tuple[str, str], indexed: Path, capsys: Output) -> None:
    assert main(["ask", QUESTION, "--plain", *idle]) == 2
    told = capsys.readouterr().err
    assert f"grades nothing and searches no web: {idle[0][2:]} would change nothing." in told


def test_an_interrupted_adding_is_finished_by_the_next(
    indexed: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: object, texts: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "pier.txt").write_text("The north pier opens at six.")
    (tmp_path / "crane.txt").write_text("The crane lifts six tonnes.")
    with monkeypatch.context() as patched:
        patched.setattr(WordEmbedder, "embed_texts", interrupt)
        assert main(["ingest", str(tmp_path / "pier.txt")]) == 130
    assert "the next start continues from there" in capsys.readouterr().err
    assert main(["ingest", str(tmp_path / "crane.txt")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == ["Finished what was interrupted before:", "pier.txt: indexed, 1 chunk."]
    assert told[2] == "crane.txt: indexed, 1 chunk."


def test_all_passages_are_made_anew(indexed: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "long.txt").write_text(" ".join(f"Sentence {number} is about the pier." for number in range(60)))
    main(["ingest", str(tmp_path / "long.txt")])
    capsys.readouterr()
    assert main(["reindex", "--tokens", "60", "--overlap", "5"]) == 0
    shown = capsys.readouterr()
    assert "indexed again: at most 60 tokens, 5 of them repeated, by all-MiniLM-L6-v2" in shown.out
    assert "long.txt" in shown.err
    assert main(["reindex", "--tokens", "60", "--overlap", "31"]) == 2
    assert "expected 0 to half of 60, found 31" in capsys.readouterr().err


def test_path_that_is_not_there_is_refused(home: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "there.txt").write_text(BREAD)
    assert main(["ingest", str(tmp_path / "there.txt"), str(tmp_path / "nowhere.txt")]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and f"no file or folder {tmp_path / 'nowhere.txt'}. Nothing was indexed." in shown.err


# --- ask ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lower", "1.5"], "expected 0 to 1, found 1.5"),
        (["--upper", "-0.1"], "expected 0 to 1"),
        (["--upper", "nan"], "expected 0 to 1"),
        (["--lower", "low"], "--lower"),
        (["--top-k", "0"], "--top-k"),
        (["--top-k", "21"], "--top-k"),
        (["--web", "maybe"], "--web"),
        (["--bogus"], "--bogus"),
    ],
)
def test_wrong_use_is_exit_code_2(home: Path, capsys: Output, arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["ask", QUESTION, *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", ""], "Expected a question, found nothing."),
        (["ask", " \t\n"], "Expected a question, found nothing."),
        (["ask", "x" * 2001], "at most 2,000 characters, found 2,001"),
        (["ask", QUESTION, "--collection", "nowhere"], "Unknown collection 'nowhere'. Known: main."),
        (["ask", QUESTION, "--preset", "no.toml"], "There is no file no.toml."),
        (["ask", QUESTION, "--preset", "../x"], "Unknown preset '../x' of policy 'two-signal'."),
        (["evaluate", "--set", "no.csv"], "There is no file no.csv."),
        (["evaluate", "--set", ""], "Unknown labelled set ''"),
        (["evaluate", "--set", "../../etc/sets"], "Unknown labelled set '../../etc/sets'"),
        (["tune", "--set", "x.csv", "--policy", "papre"], "Did you mean 'paper'?"),
        (["compare", "--set", "x", "--with", "papre"], "Did you mean 'paper'?"),
        (["policy", "no.toml"], "There is no file no.toml."),
        (["report", "no.json"], "There is no file no.json. Make one with: python -m crag_core ask"),
        (["restore", "no.zip"], "no.zip is not a file."),
        (["reindex", "--tokens", "-5"], "expected 50 to"),
        (["reindex", "--overlap", "99999999999999999999"], "expected 0 to half of"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_names_and_values_that_cannot_be_are_wrong_use(
    indexed: Path, capsys: Output, arguments: list[str], words: str
) -> None:
    capsys.readouterr()
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err and shown.err.startswith("error: ") and shown.out == ""


def test_a_question_from_standard_input_has_an_end(home: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    for data, code, words in (
        (b"", 2, "found nothing"),
        (b"x" * 10**6, 2, "at most 2,000 characters"),
        (QUESTION.encode("utf-16"), 0, ""),
        ("Zoë?".encode("latin-1"), 2, "Expected a question in UTF-8 on standard input"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert main(["ask", "-"]) == code
        assert words in capsys.readouterr().err


def test_letters_of_a_question_that_are_no_text_are_signs_in_its_record(home: Path, capsys: Output) -> None:
    assert main(["ask", os.fsdecode(b"Why does Zo\xeb leave?"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["question"] == "Why does Zo? leave?"


def test_a_model_that_the_server_has_not_is_an_unknown_name(
    indexed: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaServer(ScriptedModel(lambda messages: "At nine [1].")) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert main(["ask", QUESTION, "--model", "ollama/nobody", *GOOD_ENOUGH]) == 2
    told = capsys.readouterr()
    assert "Unknown language model 'ollama/nobody'" in told.err and "grade" not in told.err


def test_bad_setting_is_named_with_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("CRAG_TOP_K", "many")
    assert main(["ask", QUESTION]) == 1
    assert capsys.readouterr().err.startswith("error: CRAG_TOP_K: expected a whole number, found 'many'.")


def test_a_doubtful_ending_is_printed_as_no_answer(indexed: Path, capsys: Output) -> None:
    middle = ["ask", QUESTION, "--lower", "0", "--upper", "1"]
    assert main(middle) == 0
    shown = capsys.readouterr().out
    assert "Nearest sentences\nNot certain enough for an answer" in shown and "\nEnding: Doubtful\n" in shown
    assert main([*middle, "--doubtful", "abstain"]) == 0
    withheld = capsys.readouterr().out
    assert withheld.index("Not certain enough for an answer") < withheld.index("Nearest sentences\n“")


def test_json_is_the_whole_record_and_nothing_else(indexed: Path, capsys: Output) -> None:
    capsys.readouterr()
    assert main(["ask", QUESTION, "--json", "--policy", "worst-chunk"]) == 0
    shown = capsys.readouterr()
    trace = Trace.from_json(shown.out)
    assert json.loads(shown.out)["schema"] == SCHEMA
    assert trace.settings.policy.name == "worst-chunk"
    assert trace.settings.evaluator.name == OWN_JUDGE, "its own judge needs a model, and none is there"
    assert shown.err == ""


# --- the trained evaluator is not there ------------------------------------------------------------------------------


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "EVALUATOR_FOLDER", tmp_path / "nowhere")


def test_without_the_trained_evaluator_the_question_breaks_off_and_says_what_to_do(
    indexed: Path, nowhere: None, capsys: Output
) -> None:
    capsys.readouterr()
    assert main(["ask", QUESTION]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("Broke off at grade: The trained evaluator is not there: expected its file evaluator.")
    assert "Restore data/models/retrieval-evaluator from the repository." in shown.out
    assert "  [1] ferry.txt  not graded" in shown.out and "Traceback" not in shown.err


# --- thresholds by name, whole files, cost --------------------------------------------------------------------------


def record(capsys: Output, *arguments: str) -> Trace:
    """The record of one question; nothing but that record may stand on standard output."""
    capsys.readouterr()
    assert main(["ask", QUESTION, "--json", *arguments]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return Trace.from_json(shown.out)


@pytest.fixture
def two_files(indexed: Path, tmp_path: Path) -> Path:
    (tmp_path / "bread.md").write_text(BREAD, "utf-8")
    assert main(["ingest", str(tmp_path / "bread.md")]) == 0
    return indexed


def test_pinned_file_is_read_whole_instead_of_a_search(two_files: Path, capsys: Output) -> None:
    trace = record(capsys, "--pin", "bread.md", "--policy", "agentic")
    assert trace.passages is not None and trace.decision is not None
    (passage,) = trace.passages
    assert (passage.source, passage.found_by) == ("bread.md", ("read_file",))
    assert passage.text.split() == BREAD.split()
    assert trace.decision.rule == "read_file" and trace.grades is None
    assert not trace.settings.search_too


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ferri.txt", "Unknown document 'ferri.txt'. Did you mean 'ferry.txt'? Known: bread.md, ferry.txt."),
        ("x", "Unknown document 'x'. Known: bread.md, ferry.txt."),
    ],
)
def test_unknown_file_names_the_near_one_and_nothing_is_run(
    two_files: Path, capsys: Output, name: str, words: str
) -> None:
    capsys.readouterr()
    assert main(["ask", QUESTION, "--pin", "bread.md", "--pin", name]) == 2
    shown = capsys.readouterr()
    assert shown.err == f"error: {words}\n" and shown.out == ""


def test_cost_comes_before_the_run_and_what_was_done_after_it(
    two_files: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaServer(ScriptedModel(judging())) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        monkeypatch.setenv("CRAG_MODEL", f"ollama/{MODEL}")
        capsys.readouterr()
        assert main(["ask", QUESTION, "--policy", "worst-chunk", "--top-k", "2"]) == 0
        assert heard(server) == {"judge": 2, "answer": 1}
    shown = capsys.readouterr()
    assert shown.err.startswith("model calls by route: Correct 3, Ambiguous 5, Incorrect ")
    assert re.search(r"^corrections: none; 3 model calls, \d+ ms to the context$", shown.out, re.MULTILINE)


def test_logs_go_to_standard_error_and_the_record_stays_alone(
    indexed: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_LOG", "json")
    capsys.readouterr()
    try:
        assert main(["ask", QUESTION, "--json"]) == 0
    finally:
        show_logs("off")
    shown = capsys.readouterr()
    trace = Trace.from_json(shown.out)
    told = [json.loads(line) for line in shown.err.splitlines()]
    assert {line["run"] for line in told} == {trace.id}
    assert sum("[CRAG_METRICS] decision=" in line["message"] for line in told) == 1
    assert (told[0]["event"], told[-1]["event"]) == ("begun", "ended")


# --- policy files ---------------------------------------------------------------------------------------------------


# --- the web --------------------------------------------------------------------------------------------------------


class SearcherOfOurs(FakeSearcher):
    """Stands where DuckDuckGo stands."""

    needs = ""
    made: list[SearcherOfOurs] = []  # noqa: RUF012  emptied by the fixture

    @classmethod
    def build(cls, settings: Mapping[str, Any]) -> SearcherOfOurs:
        cls.made.append(cls(found_web()))
        return cls.made[-1]

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        return super().search(query, limit, cancel)


@pytest.fixture
def web(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> list[SearcherOfOurs]:
    monkeypatch.setitem(PROVIDERS, "duckduckgo", SearcherOfOurs)
    SearcherOfOurs.made.clear()
    return SearcherOfOurs.made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


AMBIGUOUS = ["ask", QUESTION, "--lower", "0", "--upper", "1", "--json", "--web"]


def test_without_a_terminal_nothing_leaves_the_machine(
    web: list[SearcherOfOurs], capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    capsys.readouterr()
    assert main([*AMBIGUOUS, "ask"]) == 0
    trace = Trace.from_json(capsys.readouterr().out)
    assert trace.web is not None and trace.web.outcome is WebOutcome.REFUSED
    assert web[-1].asked == []


@pytest.mark.parametrize(
    ("reply", "queries", "outcome"),
    [
        ("y\n", [QUESTION], WebOutcome.USED),
        ("YES\n", [QUESTION], WebOutcome.USED),
        ("n\n", [], WebOutcome.REFUSED),
        ("\n", [], WebOutcome.REFUSED),
        ("", [], WebOutcome.REFUSED),
        ("Vennick harbour\n", ["Vennick harbour"], WebOutcome.USED),
    ],
)
def test_query_is_shown_and_waits_for_a_word(
    web: list[SearcherOfOurs],
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
    reply: str,
    queries: list[str],
    outcome: WebOutcome,
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(reply))
    capsys.readouterr()
    assert main([*AMBIGUOUS, "ask"]) == 0
    shown = capsys.readouterr()
    trace = Trace.from_json(shown.out)  # the question to the user is not among it
    assert f"Ask Fake search for “{QUESTION}”?" in shown.err
    assert trace.web is not None and trace.web.outcome is outcome
    assert [query for query, _ in web[-1].asked] == queries


# --- a language model -----------------------------------------------------------------------------------------------


def test_model_writes_the_answer_and_an_outage_is_exit_code_1(
    indexed: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OllamaServer(ScriptedModel(lambda messages: "At nine [1].")) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        monkeypatch.setenv("CRAG_MODEL", f"ollama/{MODEL}")
        capsys.readouterr()
        assert main(["ask", QUESTION, "--evaluator", "embedding", "--upper", "0", "--lower", "0"]) == 0
        assert "\nAt nine [1].\n" in capsys.readouterr().out
        server.engine = ScriptedModel(lambda messages: "At nine [1]. " * 500, piece_chars=1)
        assert main(["ask", QUESTION, "--evaluator", "embedding", "--upper", "0", "--lower", "0"]) == 0
        told = capsys.readouterr().out
        assert "Ending: Cut after 768 tokens\n" in told and told.count("Cut after") == 2
        server.stop()
        assert main(["ask", QUESTION, "--evaluator", "embedding", "--upper", "0", "--lower", "0"]) == 1
        told = capsys.readouterr().out
        assert "Broke off at answer" in told and "ollama serve" in told
        assert main(["ask", QUESTION, "--evaluator", "llm", "--json"]) == 1
        trace = Trace.from_json(capsys.readouterr().out)
        assert trace.failure is not None
        assert (trace.failure.name, trace.failure.state) == ("grade", StepState.FAILED)
