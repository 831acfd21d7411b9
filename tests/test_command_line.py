"""`python -m crag_core`: what it prints, where, and with which exit code."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from crag_core import build
from crag_core.__main__ import main
from crag_core.protocols import Cancel, WebReply
from crag_core.trace import Trace
from crag_core.types import Action, AnswerState, Passage, StepState, WebOutcome
from tests.fakes import FakeSearcher, found_web
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer

FERRY = "The ferry to Vennick leaves at nine in the morning. It carries forty cars and two hundred people."
BREAD = "# Bread\n\nKnead the dough for ten minutes. Let it rise for an hour. Bake it at 220 degrees."
QUESTION = "When does the ferry to Vennick leave?"

Output = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CRAG_HOME", str(folder))
    return folder


class WordEmbedder:
    """In place of the embedding model, for tests that are not about it: texts that share words lie close together."""

    name = "words"

    def __init__(self, name: str = "") -> None:
        pass

    def embed_question(self, text: str) -> Sequence[float]:
        vector = [0.1] * 32
        for word in text.lower().replace(".", "").replace("?", "").split():
            vector[sum(word.encode()) % 32] += 1.0
        return vector

    def embed_texts(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self.embed_question(text) for text in texts]

    def tokenize(self, text: str) -> list[str]:
        return text.split()


@pytest.fixture
def indexed(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    file = tmp_path / "ferry.txt"
    file.write_text(FERRY, "utf-8")
    assert main(["ingest", str(file)]) == 0
    return home


# --- the whole way, with the real embedding model -------------------------------------------------------------------


@pytest.mark.embedding
def test_ingest_and_ask_with_the_real_embedding_model(home: Path, tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "ferry.txt").write_text(FERRY, "utf-8")
    (folder / "bread.md").write_text(BREAD, "utf-8")
    (folder / ".hidden").write_text("not for the index", "utf-8")

    assert main(["ingest", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "bread.md: indexed (1 passages)" in told and "ferry.txt: indexed (1 passages)" in told
    assert "hidden" not in told
    assert (home / "index").is_dir()

    assert main(["ingest", str(folder / "ferry.txt")]) == 0
    assert "ferry.txt: already indexed" in capsys.readouterr().out

    assert main(["ask", QUESTION]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("CORRECT: best score 0.")
    assert "“The ferry to Vennick leaves at nine in the morning.” [1]" in shown.out
    assert "ferry.txt" in shown.out and "bread.md" in shown.out
    steps = [line.split()[0] for line in shown.err.splitlines() if " ms " in line]
    assert steps == ["retrieve", "grade", "score", "route", "assemble", "answer"]

    assert main(["ask", QUESTION, "--json", "--top-k", "1"]) == 0
    shown = capsys.readouterr()
    trace = Trace.from_json(shown.out)
    assert shown.err == "" or " ms " not in shown.err, "progress would only be in the way of a program"
    assert trace.decision is not None and trace.decision.action is Action.CORRECT
    assert trace.passages is not None and [passage.source for passage in trace.passages] == ["ferry.txt"]
    assert trace.settings.embedding == "all-MiniLM-L6-v2"
    assert trace.answer is not None and trace.answer.state is AnswerState.COMPLETE

    assert main(["ask", "Who won the football cup?"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("INCORRECT:") and "web search is off" in shown.out


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
    assert told[2] == "good.txt: indexed (1 passages)", "the others go in"


def test_files_of_one_name_in_two_folders_are_two_documents(indexed: Path, tmp_path: Path, capsys: Output) -> None:
    for folder, text in (("north", "The north pier opens at six."), ("south", "The south pier opens at seven.")):
        (tmp_path / "both" / folder).mkdir(parents=True)
        (tmp_path / "both" / folder / "notes.txt").write_text(text)
    assert main(["ingest", str(tmp_path / "both")]) == 0
    told = capsys.readouterr().out
    assert "north/notes.txt: indexed" in told and "south/notes.txt: indexed" in told


def test_path_that_is_not_there_is_refused(home: Path, tmp_path: Path, capsys: Output) -> None:
    assert main(["ingest", str(tmp_path / "nowhere.txt")]) == 1
    assert "nowhere.txt: refused" in capsys.readouterr().out


def test_folder_without_files_is_refused(home: Path, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "nothing").mkdir()
    assert main(["ingest", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err == "error: no file found there.\n"


# --- ask ------------------------------------------------------------------------------------------------------------


def test_empty_store_says_that_nothing_was_retrieved(home: Path, capsys: Output) -> None:
    assert main(["ask", QUESTION]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("INCORRECT: nothing was retrieved")
    assert "This cannot be answered from the evidence" in shown.out
    assert "nothing found" in shown.err


def test_unknown_policy_names_the_near_one_and_all_others(home: Path, capsys: Output) -> None:
    assert main(["ask", QUESTION, "--policy", "papre"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: Unknown policy 'papre'. Did you mean 'paper'? Known: agentic, heuristic, paper")


def test_unknown_evaluator_names_the_known_ones(home: Path, capsys: Output) -> None:
    assert main(["ask", QUESTION, "--evaluator", "embeding"]) == 1
    assert "Did you mean 'embedding'?" in capsys.readouterr().err


def test_judge_without_a_model_says_what_it_needs(home: Path, capsys: Output) -> None:
    assert main(["ask", QUESTION, "--evaluator", "llm"]) == 1
    assert "needs a language model" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["gpt", "ollama/", "openai/x"])
def test_unknown_model_says_what_is_expected(home: Path, capsys: Output, model: str) -> None:
    assert main(["ask", QUESTION, "--model", model]) == 1
    assert '"ollama/NAME"' in capsys.readouterr().err


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


@pytest.mark.parametrize("arguments", [["--lower", "0.8", "--upper", "0.6"], ["--lower", "0.95"], ["--upper", "0.1"]])
def test_thresholds_the_wrong_way_round_are_wrong_use_not_a_crash(
    home: Path, capsys: Output, arguments: list[str]
) -> None:
    assert main(["ask", QUESTION, *arguments]) == 2
    assert "lower must not exceed upper" in capsys.readouterr().err


def test_no_command_is_wrong_use(capsys: Output) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2


def test_bad_setting_is_named_with_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setenv("CRAG_TOP_K", "many")
    assert main(["ask", QUESTION]) == 1
    assert capsys.readouterr().err.startswith("error: CRAG_TOP_K: expected a whole number, found 'many'.")


def test_thresholds_decide(indexed: Path, capsys: Output) -> None:
    for arguments, label in (
        (["--lower", "0.0", "--upper", "0.0"], "CORRECT"),
        (["--lower", "0.0", "--upper", "1.0"], "AMBIGUOUS"),
        (["--lower", "1.0", "--upper", "1.0"], "INCORRECT"),
    ):
        capsys.readouterr()
        assert main(["ask", QUESTION, *arguments]) == 0
        assert capsys.readouterr().out.startswith(label)


def test_json_is_the_whole_record_and_nothing_else(indexed: Path, capsys: Output) -> None:
    capsys.readouterr()
    assert main(["ask", QUESTION, "--json", "--policy", "worst-chunk"]) == 0
    shown = capsys.readouterr()
    trace = Trace.from_json(shown.out)
    assert json.loads(shown.out)["schema"] == 1
    assert trace.settings.policy.name == "worst-chunk"
    assert trace.settings.evaluator.name == "embedding", "its own judge needs a model, and none is there"
    assert shown.err == ""


# --- the web --------------------------------------------------------------------------------------------------------


class SearcherOfOurs(FakeSearcher):
    """Stands where DuckDuckGo stands."""

    made: list[SearcherOfOurs] = []  # noqa: RUF012  emptied by the fixture

    def __init__(self, timeout: float) -> None:
        super().__init__(found_web())
        self.made.append(self)

    def search(self, query: str, limit: int, cancel: Cancel) -> WebReply:
        return super().search(query, limit, cancel)


@pytest.fixture
def web(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> list[SearcherOfOurs]:
    monkeypatch.setattr(build, "DuckDuckGo", SearcherOfOurs)
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
        ("y\n", ["ferry Vennick leave"], WebOutcome.USED),
        ("YES\n", ["ferry Vennick leave"], WebOutcome.USED),
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
    assert "Search the web for “ferry Vennick leave”?" in shown.err
    assert trace.web is not None and trace.web.outcome is outcome
    assert [query for query, _ in web[-1].asked] == queries


def test_web_auto_searches_at_once_and_shows_the_addresses(web: list[SearcherOfOurs], capsys: Output) -> None:
    assert main(["ask", QUESTION, "--lower", "1", "--upper", "1", "--web", "auto"]) == 0
    assert len(web[-1].asked) == 1
    assert "https://example.org/1" in capsys.readouterr().out


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
        server.stop()
        assert main(["ask", QUESTION, "--evaluator", "embedding", "--upper", "0", "--lower", "0"]) == 1
        told = capsys.readouterr().out
        assert "Broke off at answer" in told and "ollama serve" in told
        assert main(["ask", QUESTION, "--evaluator", "llm", "--json"]) == 1
        trace = Trace.from_json(capsys.readouterr().out)
        assert trace.failure is not None
        assert (trace.failure.name, trace.failure.state) == ("grade", StepState.FAILED)


def test_hostile_question_is_printed_as_it_is(indexed: Path, capsys: Output) -> None:
    capsys.readouterr()
    assert main(["ask", "<script>alert(1)</script> “ferry”\u202e", "--json"]) == 0
    trace = Trace.from_json(capsys.readouterr().out)
    assert trace.question == "<script>alert(1)</script> “ferry”\u202e"
    assert all(isinstance(passage, Passage) for passage in trace.passages or ())
