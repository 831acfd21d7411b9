"""Two versions of one model name are told apart: in the settings of a run, in its grades, in what is reused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.types.grades import Grade, Opinion
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.evaluators.policies import suit
from crag_core.experiments.labelled.graded import conditions_of
from crag_core.llms.servers import ServerState, version_of
from crag_core.trace.opinions import judge_of, same_judge, with_grades_of
from crag_core.trace.trace import Trace
from tests import builders
from tests.stand_ins.engines import ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer

DIGEST = sha256(b"llama3.2:latest").hexdigest()[:12]
JUDGE = replace(builders.CARD, name="llm", calls_model=True)
PAPER = builders.policy("paper")
OLD, ONE, TWO = (
    replace(builders.settings(PAPER), evaluator=JUDGE, writer="ollama/x", writer_version=version)
    for version in ("", "a1", "b2")
)


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(ScriptedModel([]), models=["llama3.2"]) as made:
        yield made


def workbench(home: Path, server: OllamaServer | None = None) -> Workbench:
    address = server.url if server else "127.0.0.1:9"
    return Workbench(Config(home=home, ollama_host=address, web="off", history="off"))


def choice(bench: Workbench, model: str, evaluator: str = "llm") -> Choice:
    return Choice(suit(bench.policies["paper"], evaluator), evaluator, model)


def looks(server: OllamaServer) -> int:
    return sum(path == "/api/tags" for path, _ in server.requests)


@pytest.mark.parametrize("name", ["ollama/llama3.2", "ollama/llama3.2:latest"])
def test_a_run_tells_the_version_of_its_model_and_asks_for_it_once(
    tmp_path: Path, server: OllamaServer, name: str
) -> None:
    bench = workbench(tmp_path, server)
    made = [bench.engine(choice(bench, name)).settings.writer_version for _ in range(3)]
    assert made == [DIGEST] * 3 and looks(server) == 1
    bench.servers.look()
    assert bench.engine(choice(bench, name)).settings.writer_version == DIGEST and looks(server) == 2


def test_after_a_look_at_the_models_nobody_is_asked(tmp_path: Path, server: OllamaServer) -> None:
    bench = workbench(tmp_path, server)
    bench.servers.look()
    assert bench.using(replace(bench.config, web="auto")).servers.version_of("ollama/llama3.2") == DIGEST
    assert looks(server) == 1


def test_without_a_model_or_a_server_that_tells_there_is_no_version(tmp_path: Path, server: OllamaServer) -> None:
    bench = workbench(tmp_path, server)
    assert bench.engine(choice(bench, "extractive", "embedding")).settings.writer_version == ""
    assert bench.servers.version_of("openai/gpt") == "" and looks(server) == 0
    assert bench.servers.version_of("ollama/another") == ""


def test_a_server_that_is_away_costs_one_look_and_no_version(tmp_path: Path) -> None:
    assert [workbench(tmp_path).servers.version_of("ollama/llama3.2") for _ in range(2)] == ["", ""]


def test_a_server_that_goes_away_has_the_models_that_it_had(tmp_path: Path, server: OllamaServer) -> None:
    bench = workbench(tmp_path, server)
    bench.servers.look()
    server.stop()
    assert not bench.servers.look().ollama.reachable and bench.servers.version_of("ollama/llama3.2") == DIGEST


def test_a_version_is_that_of_the_model_or_of_its_latest() -> None:
    state = ServerState(True, ("x", "z:latest"), versions=(("x", "b2"), ("z:latest", "a1")))
    assert [version_of(name, state) for name in "xyz"] == ["b2", "", "a1"]


def test_a_record_of_a_model_that_several_servers_had_is_still_read() -> None:
    """Until lists of servers went, different versions of one name were recorded together."""
    several = graded(replace(ONE, writer_version="a1+b2"))
    assert Trace.from_dict(several.to_dict()) == several
    assert with_grades_of(several, ONE).grades is None, "nobody knows which of them graded"


def test_grades_of_another_version_are_not_reused_and_an_unknown_one_may_be_any() -> None:
    assert not same_judge(ONE, TWO) and same_judge(ONE, ONE) and same_judge(OLD, ONE) and same_judge(TWO, OLD)
    assert judge_of(ONE) != judge_of(TWO)
    without = [replace(one, evaluator=builders.CARD) for one in (ONE, TWO)]
    assert same_judge(*without), "who asks no model does not depend on one"


def graded(settings: object) -> Trace:
    found, grades = builders.graded(0.9, 0.2)
    return replace(builders.trace(PAPER, passages=found, grades=grades), settings=settings)  # type: ignore[arg-type]


def test_a_record_graded_by_another_version_is_graded_anew() -> None:
    assert with_grades_of(graded(ONE), ONE).grades is not None
    assert with_grades_of(graded(OLD), ONE).grades is not None, "as before versions were known"
    assert with_grades_of(graded(ONE), TWO).grades is None


def test_an_opinion_keeps_the_version_that_it_was_made_by() -> None:
    opinion = Opinion(JUDGE, "ollama/x", (Grade("p1", 0.1), Grade("p2", 0.2)), "b2")
    taken = replace(graded(ONE), opinions=(opinion,))
    decided = with_grades_of(taken, TWO)
    assert decided.settings.writer_version == "b2" and decided.grades == opinion.grades
    assert with_grades_of(taken, ONE).grades == taken.grades


def test_kept_grades_are_those_of_the_version(tmp_path: Path, server: OllamaServer) -> None:
    bench = workbench(tmp_path, server)
    keys = []
    for digest in ("a1", "b2", ""):
        bench.servers._seen[bench.config.ollama_url] = ServerState(True, versions=(("llama3.2:latest", digest),))
        made = bench.evaluator("llm", bench.servers.model("ollama/llama3.2"), "ollama/llama3.2")
        assert isinstance(made, CachedEvaluator)
        keys.append(made._identity)
    assert len(set(keys)) == 3 and keys[2].startswith("llm|ollama/llama3.2|prompts"), "as it was before"


def test_fingerprints_of_before_versions_were_known_stay() -> None:
    assert graded(OLD).fingerprint != graded(ONE).fingerprint != graded(TWO).fingerprint
    plain = graded(OLD).to_dict()
    del plain["settings"]["writer_version"]
    assert Trace.from_dict(plain) == graded(OLD)
    assert conditions_of(OLD, "c").changed(conditions_of(ONE, "c")) == ()
    assert conditions_of(ONE, "c").changed(conditions_of(TWO, "c")) == ("the language model that grades",)
