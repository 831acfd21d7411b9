"""Two versions of one model name are told apart: in the settings of a run, in its grades, in what is reused."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.evaluators.policies import suit
from crag_core.llms.servers import ServerState
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


def choice(bench: Workbench, model: str) -> Choice:
    return Choice(suit(bench.policies["paper"], "llm"), "llm", model)


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


def test_a_server_that_goes_away_has_the_models_that_it_had(tmp_path: Path, server: OllamaServer) -> None:
    bench = workbench(tmp_path, server)
    bench.servers.look()
    server.stop()
    assert not bench.servers.look().ollama.reachable and bench.servers.version_of("ollama/llama3.2") == DIGEST


def test_grades_of_another_version_are_not_reused_and_an_unknown_one_may_be_any() -> None:
    assert not ONE.same_judge(TWO) and ONE.same_judge(ONE) and OLD.same_judge(ONE) and TWO.same_judge(OLD)
    assert ONE.judge != TWO.judge
    without = [replace(one, evaluator=builders.CARD) for one in (ONE, TWO)]
    assert without[0].same_judge(without[1]), "who asks no model does not depend on one"


def graded(settings: object) -> Trace:
    found, grades = builders.graded(0.9, 0.2)
    return builders.trace(PAPER, passages=found, grades=grades, settings=settings)


def test_kept_grades_are_those_of_the_version(tmp_path: Path, server: OllamaServer) -> None:
    bench = workbench(tmp_path, server)
    keys = []
    for digest in ("a1", "b2", ""):
        bench.servers._seen[bench.config.ollama_url] = ServerState(True, versions=(("llama3.2:latest", digest),))
        made = bench.evaluator("llm", bench.servers.model("ollama/llama3.2"), "ollama/llama3.2")
        assert isinstance(made, CachedEvaluator)
        keys.append(made._identity)
    assert len(set(keys)) == 3 and keys[2].startswith("llm|ollama/llama3.2|prompts"), "as it was before"
