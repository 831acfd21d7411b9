"""The parts put together for real: policy files, settings of the agent, every judge with every policy, kept grades."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.app import config
from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.data_files import DATA
from crag_core.base.errors import BadRecord
from crag_core.base.prompts.messages import VERSION
from crag_core.base.types.decisions import Handling
from crag_core.evaluators import EVALUATORS
from crag_core.evaluators.policies import DEFAULT, find_policy, known_card, load_policies, suit
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import Trace
from tests.judge import grading_calls, heard, judging
from tests.matrix import diagonal
from tests.policy_files import use_folder
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import MODEL, OllamaServer
from tests.storage.conftest import valkey as valkey
from tests.word_embedder import WordEmbedder

SHIPPED = (
    "two-signal", "agentic", "heuristic", "paper", "rank-weighted", "signals", "worst-chunk", "adaptive-rag",
    "astute-rag", "self-route", "sufficient-context",
)  # fmt: skip
WRITER = f"ollama/{MODEL}"
QUESTION = "What does a yacht of nine metres pay for a night?"
DOCUMENTS = {
    "harbour-dues.md": "A yacht of up to ten metres pays 14 pounds a night. Longer yachts pay 21 pounds.",
    "crane.txt": "The crane lifts at most 6 tonnes. It is inspected every March by an outside firm.",
    "berths.csv": "berth,length,depth\nA1,12 m,2.1 m\nB4,18 m,3.0 m\n",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
        fill(Workbench(Config(home=folder)))
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filled: Path) -> Path:
    """A small index and no kept grade, made without the embedding model; workbenches of this test do without it too."""
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    return Path(shutil.copytree(filled, tmp_path / "home"))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """The same index with the real embedding model, and no cache."""
    workbench = Workbench(Config(home=tmp_path_factory.mktemp("home"), cache="off"))
    fill(workbench)
    return workbench


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel(judging())) as running:
        yield running


def fill(workbench: Workbench) -> None:
    workbench.store.ingest([(name, text.encode()) for name, text in DOCUMENTS.items()])


def suited(workbench: Workbench, policy: str, evaluator: str, top_k: int = 6) -> Choice:
    """Written by the model where the judge needs one, else in quotations."""
    chosen = suit(workbench.policies[policy], evaluator)
    model = WRITER if known_card(evaluator).calls_model else EXTRACTIVE
    return Choice(chosen, evaluator, model, top_k=top_k)


# --- the files in data/policies -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_folder(tmp_path / "policies", monkeypatch)


def test_all_shipped_policies_load_and_the_default_comes_first() -> None:
    found, problems = load_policies()
    assert tuple(found) == SHIPPED and SHIPPED[0] == DEFAULT
    assert problems == ()
    assert all(policy.name == name for name, policy in found.items())


# --- the settings of the agent --------------------------------------------------------------------------------------


def test_settings_of_the_agent_reach_the_policy_agentic_and_no_other() -> None:
    environment = {
        "KB_AGENT_MAX_ITERATIONS": "5",
        "KB_AGENT_AUTO_APPROVE_MAX_ITEMS": "4",
        "KB_AGENT_VECTOR_SCORE_THRESHOLD": "0.65",
    }
    found, _ = load_policies(settings=config.load(environment))
    plain, _ = load_policies()
    agent = found["agentic"]
    assert agent.max_rounds == 5
    assert agent.skip == (("read_file", None), ("few_context", 4), ("high_vector_score", 0.65))
    assert agent.incorrect == plain["agentic"].incorrect
    assert {**found, "agentic": None} == {**plain, "agentic": None}
    assert find_policy("agentic", config.load(environment)) == agent


def test_defaults_of_the_settings_are_those_of_the_file() -> None:
    assert load_policies(settings=Config())[0] == load_policies()[0]


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_agent_retrieves_as_often_as_its_setting_allows(home: Path, iterations: int) -> None:
    environment = {"KB_AGENT_MAX_ITERATIONS": str(iterations), "KB_AGENT_AUTO_APPROVE_MAX_ITEMS": "0"}
    workbench = Workbench(config.load({"CRAG_HOME": str(home), **environment}))
    choice = suited(workbench, "agentic", "embedding")
    trace = workbench.engine(replace(choice, policy=choice.policy.with_thresholds(0.99, 1.0))).run(QUESTION)
    assert (len(trace.rounds), len(trace.earlier)) == (iterations - 1, iterations - 1)


# --- every judge with every policy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "evaluator"), diagonal(SHIPPED, EVALUATORS))
def test_every_judge_works_with_every_policy(
    real: Workbench, server: OllamaServer, policy: str, evaluator: str
) -> None:
    workbench = real.using(replace(real.config, ollama_host=server.url))
    trace = workbench.engine(suited(workbench, policy, evaluator)).run(QUESTION)
    assert trace.failure is None
    assert None not in (trace.passages, trace.decision, trace.context, trace.corrections, trace.answer)
    assert trace.decision is not None and (trace.grades is not None or trace.decision.rule)
    assert trace.passages is not None and len(trace.passages) == len(DOCUMENTS)
    assert Trace.from_json(trace.to_json()) == trace
    assert (server.chat_calls > 0) is known_card(evaluator).calls_model
    assert trace.usage.calls == server.chat_calls, "every call is on the bill, and nothing else is"
    own = reroute(trace, trace.settings.policy)
    asks_nobody = own.decision.handling is Handling.EXTRACT and trace.settings.writer == EXTRACTIVE
    unmade = (Missing.EXTRACTION,) if asks_nobody else ()
    assert (own.decision, own.answer, own.missing) == (trace.decision, trace.answer, unmade)
    for other in workbench.policies.values():
        routed = reroute(trace, other.with_thresholds_for(trace.settings.evaluator, trace.settings.strip_evaluator))
        assert routed.decision.reason and (Missing.GRADES not in routed.missing or trace.grades is None)
    assert trace.usage.calls == server.chat_calls, "deciding again asks nobody"


# --- kept grades ----------------------------------------------------------------------------------------------------


def ask(home: Path, server: OllamaServer, evaluator: str = "llm", question: str = QUESTION, **settings: Any) -> Trace:
    """One question to a workbench of its own."""
    workbench = Workbench(Config(home=home, ollama_host=server.url, **settings))
    return workbench.engine(suited(workbench, "worst-chunk", evaluator)).run(question)


@pytest.mark.parametrize(("evaluator", "calls"), [("llm", 3), ("llm-logprob", 3), ("llm-batch", 1), ("llm-list", 1)])
def test_same_question_again_makes_no_grading_call(
    home: Path, server: OllamaServer, evaluator: str, calls: int
) -> None:
    workbench = Workbench(Config(home=home, ollama_host=server.url))
    first, again = (workbench.engine(suited(workbench, "worst-chunk", evaluator)).run(QUESTION) for _ in range(2))
    elsewhere = ask(home, server, evaluator)  # a second workbench on the same home
    assert grading_calls(server) == calls
    assert heard(server)["answer"] == 3, "an answer is always written anew"
    for trace in (again, elsewhere):
        assert trace.grades is not None and first.grades is not None
        assert [grade.score for grade in trace.grades] == [grade.score for grade in first.grades]
        assert all(grade.from_cache for grade in trace.grades)
        assert trace.usage.calls == 1 and "3 from the cache" in trace.steps[1].summary


# --- prompts in other words -------------------------------------------------------------------------------------------


@pytest.fixture
def reworded(tmp_path: Path) -> Path:
    """A folder with another wording of the judge's prompt."""
    (tmp_path / "prompts").mkdir()
    wording = (DATA / "prompts" / "judge.txt").read_text("utf-8").replace("You grade", "You grade strictly")
    (tmp_path / "prompts" / "judge.txt").write_text(wording, "utf-8")
    return tmp_path / "prompts"


def test_a_prompt_in_other_words_is_asked_with_and_no_grade_is_reused_across_wordings(
    home: Path, server: OllamaServer, reworded: Path
) -> None:
    as_shipped = Workbench(Config(home=home, ollama_host=server.url))
    own = as_shipped.using(replace(as_shipped.config, prompts=str(reworded)))
    turns = (as_shipped, own, own, as_shipped)
    traces = [one.engine(suited(one, "worst-chunk", "llm")).run(QUESTION) for one in turns]
    reused = [{grade.from_cache for grade in trace.grades or ()} for trace in traces]
    assert reused == [{False}, {False}, {True}, {True}]
    version = own.prompts.version
    assert [trace.settings.prompts for trace in traces] == [VERSION, version, version, VERSION]
    assert version.startswith(f"{VERSION}+")
    asked = [body["messages"][0]["content"] for path, body in server.requests if path == server.chat_path]
    judged = [text.startswith("You grade strictly how well") for text in asked if text.startswith("You grade")]
    assert judged == [False] * 3 + [True] * 3


def test_a_prompt_that_cannot_be_used_is_refused_where_the_setting_is_named(home: Path, reworded: Path) -> None:
    (reworded / "judge.txt").write_text("[system]\nGrade.\n[user]\n{question}", "utf-8")
    missing = r"^CRAG_PROMPTS: .*judge\.txt: {evidence}, {evidence_is_data}, {reply} is missing"
    for make in (Workbench, Workbench(Config(home=home)).using):
        with pytest.raises(BadRecord, match=missing):
            make(Config(home=home, prompts=str(reworded)))


# --- who checks the sentences of an answer ----------------------------------------------------------------------------


@pytest.fixture
def writing(server: OllamaServer) -> OllamaServer:
    """Its answer claims something, in other words than the evidence."""
    server.engine = ScriptedModel(judging(answer="It costs you fourteen pounds [1]."))
    return server


def test_the_settings_say_who_checks_an_answer_and_the_record_tells(home: Path, writing: OllamaServer) -> None:
    words = Workbench(Config(home=home, ollama_host=writing.url, cache="off"))
    judged = words.using(replace(words.config, support=WRITER))
    choice = replace(suited(words, "paper", "embedding"), model=WRITER)
    first, second = (bench.engine(choice).run(QUESTION) for bench in (words, judged))
    assert (first.settings.support, second.settings.support) == ("words", WRITER)
    assert first.support is not None and first.steps[-1].usage.calls == 0
    assert [one.score for one in second.support or ()] == [0.45] and second.steps[-1].usage.calls == 1
    assert heard(writing) == {"answer": 2, "check": 1}
    assert words.using(words.config).engine(choice).run(QUESTION).settings.support == "words", "and back again"
