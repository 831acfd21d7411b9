"""Configurations as people write them: every key, what is refused and with which words, and presets of both kinds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crag_core.app.choice import KEYS, Configuration, read_configuration, read_configurations
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.errors import CragError, WrongUse
from crag_core.decision.policy import Doubtful
from crag_core.evaluators.policies import PLAIN, load_policies, plain_rag, suit
from crag_core.experiments.labelled.graded import Conditions
from crag_core.experiments.thresholds.preset import TunedPreset
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from tests.policy_files import use_folder

MODEL = "ollama/llama3.2"


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    return Workbench(Config(home=tmp_path / "home", top_k=7))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One policy, `paper`, whose thresholds no training moves."""
    return use_folder(tmp_path / "policies", monkeypatch)


def read(text: str, workbench: Workbench) -> Configuration:
    return read_configuration(text, workbench)


def refused(text: str, workbench: Workbench) -> CragError:
    with pytest.raises(CragError) as refusal:
        read(text, workbench)
    return refusal.value


# --- what is given --------------------------------------------------------------------------------------------------


def test_every_key_has_its_say(workbench: Workbench) -> None:
    text = (
        "paper, name=strict, evaluator=heuristic, model=openai/mine, lower=0.1, upper=0.9, cutoff=0.4, "
        "sentences=8, doubtful=abstain, web=auto, top_k=12"
    )
    assert {part.partition("=")[0].strip() for part in text.split(",")[1:]} == set(KEYS) - {"preset"}
    found = read(text, workbench)
    chosen = found.choice
    assert (found.name, chosen.evaluator, chosen.model) == ("strict", "heuristic", "openai/mine")
    assert chosen.policy.thresholds == (0.1, 0.9, 0.4) and chosen.policy.doubtful is Doubtful.ABSTAIN
    assert chosen.policy.refinement.top == 8
    assert (chosen.web, chosen.top_k) == (WebMode.AUTO, 12)


@pytest.mark.parametrize(
    ("text", "lower", "upper", "cutoff"),
    [
        ("paper", 0.40, 0.55, None),
        ("paper,lower=0.3", 0.3, 0.55, None),
        ("paper,upper=1", 0.40, 1.0, None),
        ("paper,cutoff=0", 0.40, 0.55, 0.0),
        ("paper,lower=0,upper=0", 0.0, 0.0, None),
        ("paper,preset=popqa", 0.005, 0.795, 0.25),
        ("paper,preset=popqa,upper=0.5", 0.005, 0.5, 0.25),
    ],
)
def test_thresholds_that_are_not_named_stay(
    text: str, lower: float, upper: float, cutoff: float | None, folder: Path, workbench: Workbench
) -> None:
    own = suit(load_policies()[0]["paper"], "embedding").cutoff  # comes with the scorer of sentences
    found = read(f"{text},evaluator=embedding", workbench).choice.policy
    assert found.thresholds == (lower, upper, own if cutoff is None else cutoff)


def test_the_model_of_the_settings_is_taken_where_none_is_named(workbench: Workbench) -> None:
    settled = workbench.using(replace(workbench.config, model=MODEL))
    assert read("paper", settled).choice.model == read("plain", settled).choice.model == MODEL
    assert read("paper,model=extractive", settled).choice.model == EXTRACTIVE


# --- plain RAG ------------------------------------------------------------------------------------------------------


def test_plain_is_the_policy_that_grades_nothing(workbench: Workbench) -> None:
    found = read("plain", workbench)
    assert found.name == PLAIN and found.choice.policy == plain_rag()
    assert (found.choice.model, found.choice.top_k, found.choice.web) == (EXTRACTIVE, 7, WebMode.OFF)
    written = read(f"plain,name=baseline,model={MODEL},top_k=3", workbench)
    assert (written.name, written.choice.model, written.choice.top_k) == ("baseline", MODEL, 3)


@pytest.mark.parametrize(
    "idle",
    ["upper=0.8", "lower=0.1", "cutoff=0.5", "evaluator=embedding", "preset=popqa", "web=auto", "doubtful=abstain"],
)
def test_what_plain_rag_would_not_heed_is_refused(idle: str, workbench: Workbench) -> None:
    error = refused(f"plain,{idle}", workbench)
    key = idle.partition("=")[0]
    assert f"Plain RAG grades nothing and searches no web: {key} would change nothing. Leave out either." in str(error)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "",
            "Expected a configuration such as “paper” or “paper,upper=0.8”, found ''. Begin with the name of a policy",
        ),
        (" , upper=0.8", "Begin with the name of a policy, or with plain."),
        (
            "paper,uper=0.8",
            "unknown key 'uper'. Did you mean upper? Keys: name, evaluator, model, pre",
        ),
        ("paper,policy=plain", "'paper,policy=plain': unknown key 'policy'. Keys: name, eval"),
        ("paper,upper", "expected key=value, found 'upper'. Keys: "),
        ("paper,upper=0.8,upper=0.9", "expected upper once, found '0.8' and '0.9'."),
        ("paper,upper=high", "upper: expected a valid number, unable to parse string as a number, found str 'high'."),
        ("paper,sentences=-1", "sentences: expected greater than or equal to 0, found str '-1'."),
        ("paper,upper=1.2", "upper: expected less than or equal to 1, found str '1.2'."),
        ("paper,cutoff=80", "cutoff: expected less than or equal to 1, found str '80'."),
        ("paper,upper=nan", "upper: expected a finite number, found str 'nan'."),
        (
            "paper,lower=0.9,upper=0.8",
            "'paper,lower=0.9,upper=0.8': lower must not exceed upper, found lower 0.9 and up",
        ),
        ("paper,top_k=0", "top_k: expected greater than or equal to 1, found str '0'."),
        ("paper,top_k=²", "found str '²'."),
        ("paper,web=ask", "web: expected auto or off, found 'ask': there is nobody to ask."),
        ("paper,doubtful=hide", "doubtful: expected 'show' or 'abstain', found str 'hide'."),
        (
            "papr",
            "Unknown policy 'papr'. Did you mean 'paper'? Known: adaptive-rag, agentic, astute-rag, heuristic, paper, ",
        ),
        ("paper,evaluator=llms", "Unknown evaluator 'llms'. Did you mean 'llm'? Known: cross-encoder, "),
        ("paper,preset=unheard", "Unknown preset 'unheard' of policy 'paper'. Known: "),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_was_expected(text: str, told: str, workbench: Workbench) -> None:
    assert told in str(refused(text, workbench))


# --- presets --------------------------------------------------------------------------------------------------------


def tuned(name: str = "careful", policy: str = "paper", evaluator: str = "embedding") -> TunedPreset:
    conditions = Conditions(evaluator, "1", "", "", "none", 11, "corpus")
    return TunedPreset(name, policy, 0.31, 0.62, 0.23, conditions)


def test_a_tuned_preset_brings_its_evaluator_and_its_number_of_passages(workbench: Workbench) -> None:
    workbench.experiments.save_preset(tuned())
    found = read("paper,preset=careful", workbench)
    assert found.name == "paper,preset=careful"
    assert found.choice.policy.thresholds == (0.31, 0.62, 0.23)
    assert (found.choice.evaluator, found.choice.top_k) == ("embedding", 11)
    assert read("paper,preset=careful,top_k=2", workbench).choice.top_k == 2
    assert read(f"paper,preset=careful,model={MODEL}", workbench).choice.model == MODEL
    assert read("paper,preset=careful,lower=0", workbench).choice.policy.thresholds == (0.0, 0.62, 0.23)


def test_a_tuned_preset_is_found_by_the_path_of_its_file_too(tmp_path: Path, workbench: Workbench) -> None:
    file = tmp_path / "elsewhere.toml"
    file.write_text(tuned().to_toml(), "utf-8")
    assert read(f"paper,preset={file}", workbench).choice.policy.thresholds == (0.31, 0.62, 0.23)
    assert f"There is no file {tmp_path / 'none.toml'}." in str(
        refused(f"paper,preset={tmp_path / 'none.toml'}", workbench)
    )


def test_a_tuned_preset_goes_with_its_own_policy_and_evaluator_only(workbench: Workbench) -> None:
    workbench.experiments.save_preset(tuned())
    assert "was chosen for the policy 'paper', not for 'signals'" in str(refused("signals,preset=careful", workbench))
    other = refused("paper,preset=careful,evaluator=heuristic", workbench)
    assert "was chosen for the evaluator 'embedding', not for 'heuristic'" in str(other)
    workbench.experiments.save_preset(tuned("odd", evaluator="gone"))
    assert "Unknown evaluator 'gone'" in str(refused("paper,preset=odd", workbench))


def test_a_preset_of_the_file_comes_before_a_tuned_one_of_its_name(folder: Path, workbench: Workbench) -> None:
    workbench.experiments.save_preset(tuned("popqa"))
    assert read("paper,preset=popqa", workbench).choice.policy.thresholds == (0.005, 0.795, 0.25)


# --- several --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (["paper", "paper"], "paper"),
        (["paper", "paper "], "paper"),
        (["paper,name=mine", "signals,name=mine"], "mine"),
        (["plain", "paper", "signals,name=plain"], "plain"),
    ],
)
def test_two_of_one_name_are_refused(texts: list[str], name: str, workbench: Workbench) -> None:
    with pytest.raises(WrongUse) as refusal:
        read_configurations(texts, workbench)
    assert str(refusal.value) == (f"Two configurations are called {name!r}. Give one another name: paper,name=strict")
