"""What a request is answered under: what it names, and for the rest what the service was started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.evaluators.policies import suit
from crag_core.pipeline.run import WebMode
from crag_core.service import schemas
from crag_core.service.service import Service
from crag_core.trace.trace import RunSettings
from tests.app.test_configurations import tuned
from tests.word_embedder import WordEmbedder


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Started with a policy, evaluator, thresholds, number of chunks, collection and web that are no defaults."""
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    workbench = Workbench(Config(home=tmp_path, ollama_host="127.0.0.1:9"))
    workbench.store.ingest([("a.md", b"The boat leaves at nine.")], collection="mine")
    workbench.store.ingest([("b.md", b"The crane lifts six tonnes.")], collection="yours")
    policy = suit(workbench.policies["paper"], "heuristic").with_thresholds(0.1, 0.9)
    return Service(workbench, Choice(policy, "heuristic", web=WebMode.AUTO, top_k=3, collection="mine"))


def asked(service: Service, **body: Any) -> RunSettings:
    return service.begin_query(schemas.QueryRequest(query="When?", **body), "somebody")[0].settings


def told(made: RunSettings) -> tuple[str, str, float, float, int, str, str]:
    policy = made.policy
    return policy.name, made.evaluator.name, policy.lower, policy.upper, made.top_k, made.collection, made.web_mode


def test_what_is_not_named_is_as_it_was_started(service: Service) -> None:
    as_started = ("paper", "heuristic", 0.1, 0.9, 3, "mine", "auto")
    assert told(asked(service)) == as_started
    assert told(asked(service, policy="paper", evaluator="heuristic", use_web_search=True)) == as_started
    assert told(asked(service, upper=0.8)) == ("paper", "heuristic", 0.1, 0.8, 3, "mine", "auto")
    assert told(asked(service, top_k=5, collection="yours", use_web_search=False)) == (
        "paper", "heuristic", 0.1, 0.9, 5, "yours", "off",
    )  # fmt: skip
    limits = [asked(service, sentences=most).policy.refinement.top for most in (2, 0)]
    assert limits == [2, None]


def test_another_policy_or_evaluator_brings_its_own_thresholds(service: Service) -> None:
    other = service.workbench.policies["two-signal"]
    made = told(asked(service, policy="two-signal"))
    assert made[:4] == ("two-signal", other.evaluator, other.lower, other.upper) and made[4:] == (3, "mine", "auto")
    card = service.workbench.card("cross-encoder")
    paper = suit(service.workbench.policies["paper"], "cross-encoder")
    assert told(asked(service, evaluator="cross-encoder"))[:4] == ("paper", card.name, paper.lower, paper.upper)


def test_a_tuned_preset_brings_the_rest(service: Service) -> None:
    service.workbench.experiments.save_preset(tuned())
    assert told(asked(service, preset="careful")) == ("paper", "embedding", 0.31, 0.62, 11, "mine", "auto")
    assert told(asked(service, preset="careful", top_k=2, upper=0.7))[3:5] == (0.7, 2)


def test_plain_rag_has_the_model_and_the_documents_alone(service: Service) -> None:
    made = told(asked(service, use_crag=False))
    assert (made[0], *made[4:]) == ("plain", 3, "mine", "off")
