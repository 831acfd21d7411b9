"""Checkers by name: entailment and spans by real transformers on tiny models, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from crag_core.base.data_files import DATA
from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.protocols import Backing, Piece
from crag_core.evaluators.named.files import ModelFiles
from crag_core.evaluators.named.reader import read_at_once
from crag_core.evaluators.support import SUPPORT, open_support
from crag_core.evaluators.support.by_name import NamedSupport
from crag_core.evaluators.support.entailment import entailment_label
from crag_core.evaluators.support.parts import SupportParts
from crag_core.evaluators.support.reading import Reading, files_of, is_name
from crag_core.evaluators.support.spans import PROMPT, Token, hallucination_label, spans
from crag_core.evaluators.support.words import WordSupport
from crag_core.trace.grounding.checkers import Checker, asks_language_model, checker_of
from crag_core.trace.grounding.citation_check import LACKING
from tests.evaluators.support_models import change_config, save_entailment, save_other, save_spans

STOP_WORDS = frozenset((DATA / "stopwords.txt").read_text("utf-8").split())
PIECES = (
    Piece("p1#0", "Dogs travel free on a leash.", 1),
    Piece("p1#1", "Bicycles cost two pounds.", 1),
    Piece("p2", "A yacht pays 14 pounds a night.", 2),
)


def measured(folder: Path, *said: str, pieces: tuple[Piece, ...] = PIECES, question: str = "") -> tuple[Backing, ...]:
    return NamedSupport(f"hf:{folder}", STOP_WORDS).measure(said, pieces, Event(), question)


# --- what a setting names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "kind", "asks"),
    [
        ("words", Checker.WORDS, False),
        ("ollama/llama3.2", Checker.LANGUAGE_MODEL, True),
        ("openai/org/x", Checker.LANGUAGE_MODEL, True),
        ("ollama/bespoke-minicheck", Checker.MINICHECK, True),
        ("ollama/bespoke-minicheck:7b-q4_K_M", Checker.MINICHECK, True),
        ("ollama/jmorgan/bespoke-minicheck:latest", Checker.MINICHECK, True),
        ("ollama/bespoke-minicheck-clone", Checker.LANGUAGE_MODEL, True),
        ("hf:KRLabsOrg/lettucedect-base-modernbert-en-v1", Checker.NAMED_MODEL, False),
        ("hf:/srv/models/nli", Checker.NAMED_MODEL, False),
    ],
)
def test_the_setting_names_the_class_that_is_built(setting: str, kind: Checker, asks: bool) -> None:
    from tests.fakes import FakeModel

    assert (checker_of(setting), asks_language_model(setting)) == (kind, asks)
    made = open_support(setting, SupportParts(Path("nowhere"), STOP_WORDS, lambda choice: FakeModel()))
    assert type(made) is SUPPORT[kind]


@pytest.mark.parametrize(
    ("setting", "is_one"),
    [
        ("hf:owner/name", True),
        ("hf:name", True),
        ("hf:owner/name@v1.0", True),
        ("hf:/a/folder", True),
        ("hf:", False),
        ("hf:../secret", False),
        ("hf:owner/name?as=span", False),
        ("hf:a/b/c", False),
        ("hf:https://x", False),
        ("owner/name", False),
    ],
)
def test_names_of_models(setting: str, is_one: bool) -> None:
    assert is_name(setting) is is_one


# --- entailment -----------------------------------------------------------------------------------------------------


def test_the_score_is_the_best_chance_of_entailment_with_the_evidence_as_premise(tmp_path: Path) -> None:
    folder = save_entailment(tmp_path / "nli")
    (found,) = measured(folder, "Yachts pay 14 pounds [2].")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    together = "A yacht pays 14 pounds a night."
    premises = ["Dogs travel free on a leash. Bicycles cost two pounds.", "A yacht pays 14 pounds a night.", together]
    with torch.no_grad():
        read = [tokenizer(one, "Yachts pay 14 pounds .", return_tensors="pt") for one in premises]
        chances = [float(model(**one).logits[0].softmax(-1)[1]) for one in read]
    assert found.score == pytest.approx(max(chances), abs=1e-5)


def test_the_order_of_the_labels_is_the_models_own(tmp_path: Path) -> None:
    said = "Dogs pay nothing."
    scores = [
        measured(save_entailment(tmp_path / str(place), {place: "ENTAILMENT", other: "neutral", last: "x"}), said)[
            0
        ].score
        for place, other, last in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    ]
    assert len({round(score or 0.0, 6) for score in scores}) == 3


def test_no_more_is_read_at_once_than_config_and_tokenizer_allow(tmp_path: Path) -> None:
    """CamemBERT and MPNet count positions as RoBERTa does, which their tokenizers alone tell."""
    tokenizer = SimpleNamespace(model_max_length=512)
    (tmp_path / "config.json").write_text('{"model_type": "camembert", "max_position_embeddings": 514}')
    files = ModelFiles(tmp_path, "")
    assert read_at_once(files, tokenizer, 4096) == 512 and read_at_once(files, tokenizer, 64) == 64
    tokenizer.model_max_length = 10**30
    change_config(tmp_path, model_type="xlm-roberta")
    assert read_at_once(ModelFiles(tmp_path, ""), tokenizer, 4096) == 512


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, 1),
        ({0: "ENTAILMENT", 1: "NEUTRAL", 2: "CONTRADICTION"}, 0),
        ({0: "not_entailment", 1: "entailment"}, 1),
        ({0: "entailment", 1: "non-entailment"}, 0),
        ({0: "no_entailment", 1: "entailment"}, 1),
        ({0: "entailment"}, None),
        ({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, None),
        ({0: "positive", 1: "negative"}, None),
        ({}, None),
    ],
    ids=str,
)
def test_the_label_of_entailment_is_told_by_its_name(labels: dict[int, str], place: int | None) -> None:
    if place is not None:
        assert entailment_label(labels) == place
        return
    with pytest.raises(EvaluatorUnavailable, match="Expected a label of entailment") as refused:
        entailment_label(labels)
    assert "id2label" in refused.value.hint or "names its labels" in refused.value.hint


def test_long_evidence_is_read_in_parts_and_all_of_it(tmp_path: Path) -> None:
    folder = save_entailment(tmp_path / "short", positions=64)
    pieces = tuple(Piece(f"p1#{at}", f"Berth {at} costs {at} pounds a night.", 1) for at in range(30))
    (found,) = measured(folder, "Berth 29 is dear.", pieces=pieces)
    assert found.score is not None and 0.0 <= found.score <= 1.0


def test_quotations_code_and_empty_phrases_are_not_read(tmp_path: Path) -> None:
    found = measured(
        save_entailment(tmp_path / "nli"),
        "“Dogs travel free on a leash.” [1]",
        "According to the documents:",
        "Cats pay.",
    )
    assert [one.score for one in found[:2]] == [1.0, None] and found[0].pieces == ("p1#0",)
    assert found[2].score is not None and all(one.usage.calls == 0 for one in found)


def test_without_evidence_nothing_is_supported_and_nothing_read() -> None:
    assert measured(Path("/nowhere"), "Dogs pay nothing.", pieces=())[0].score == 0.0


# --- spans ----------------------------------------------------------------------------------------------------------


def test_unsupported_words_are_spans_of_their_sentence_and_keep_its_score_down(tmp_path: Path) -> None:
    folder = save_spans(tmp_path / "spans", ["gold", "captain", "pays"])
    said = ("Dogs travel without cost [1].", "The captain [2] of 14 pounds had gold [2].", "Captain pays gold")
    first, second, third = measured(folder, *said, question="What does it cost?")
    assert first.spans == () and first.score == pytest.approx(0.98, abs=0.01) and first.pieces
    assert [said[1][start:end] for start, end in second.spans] == ["captain", "gold"]
    assert second.score == LACKING and second.pieces, "some of it is supported"
    assert [said[2][start:end] for start, end in third.spans] == ["Captain pays gold"]
    assert third.score == pytest.approx(0.02, abs=0.01) and third.pieces == ()


def test_a_long_answer_is_read_in_parts_and_keeps_its_places(tmp_path: Path) -> None:
    folder = save_spans(tmp_path / "short", ["gold"], positions=256)
    said = [f"Berth {at} of the harbour is paid for in {'gold' if at % 3 == 0 else 'cash'} there." for at in range(12)]
    found = measured(folder, *said)
    assert [[said[at][start:end] for start, end in one.spans] for at, one in enumerate(found)] == [
        ["gold"] if at % 3 == 0 else [] for at in range(12)
    ]


def test_a_sentence_that_leaves_no_room_for_evidence_is_not_measured(tmp_path: Path) -> None:
    folder = save_spans(tmp_path / "short", ["gold"], positions=128)
    found = measured(folder, "Yachts pay gold.", f"Yachts pay {'a very big heap of ' * 10} gold.", "Dogs pay gold.")
    assert [one.score is None for one in found] == [False, True, False] and found[2].spans


def test_the_prompt_is_that_of_the_models_training() -> None:
    written = PROMPT.format(question="Q?", count=1, passages="passage 1: T.")
    assert written.startswith("Briefly answer the following question:\nQ?\nBear in mind")
    assert "following 1 passages:\npassage 1: T.\nIn case" in written and written.endswith('passages."\noutput:')


@pytest.mark.parametrize(
    ("sentence", "tokens", "found"),
    [
        ("It cost 1990 pounds", [(8, 10, 0.9), (10, 12, 0.2)], ["1990"]),  # half a word
        ("a bad thing here", [(2, 5, 0.9), (5, 11, 0.8), (12, 16, 0.1)], ["bad thing"]),
        ("a bad thing", [(1, 5, 0.9), (6, 11, 0.4)], ["bad"]),  # with the space before it
        ("bad and bad", [(0, 3, 0.5), (4, 7, 0.49), (8, 11, 0.5)], ["bad", "bad"]),
        ("sub-word", [(0, 3, 0.9), (3, 4, 0.1), (4, 8, 0.9)], ["sub-word"]),
        ("die Fähre, süß", [(4, 6, 0.9)], ["Fähre"]),
        ("渡し船は九時", [(0, 1, 0.9)], ["渡し船は九時"]),
        ("fine", [(0, 4, 0.2)], []),
    ],
)
def test_spans_are_whole_words(sentence: str, tokens: list[tuple[int, int, float]], found: list[str]) -> None:
    made = spans(sentence, [Token(*one) for one in tokens])
    assert [sentence[start:end] for start, end in made] == found


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({0: "LABEL_0", 1: "LABEL_1"}, 1),
        ({}, 1),
        ({0: "hallucinated", 1: "supported"}, 0),
        ({0: "non_hallucinated", 1: "hallucinated"}, 1),
        ({0: "O", 1: "B-PER"}, None),
        ({0: "O", 1: "B-PER", 2: "I-PER"}, None),
    ],
    ids=str,
)
def test_the_label_of_hallucination(labels: dict[int, str], place: int | None) -> None:
    if place is not None:
        assert hallucination_label(labels) == place
        return
    with pytest.raises(EvaluatorUnavailable, match="Expected a classifier of tokens with two labels"):
        hallucination_label(labels)


# --- what is refused ------------------------------------------------------------------------------------------------


def test_a_model_that_checks_nothing_is_refused_with_what_was_found(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorUnavailable, match=r"found BertForMaskedLM"):
        measured(save_other(tmp_path), "Dogs pay nothing.")


def test_pickled_weights_and_missing_files_are_refused(tmp_path: Path) -> None:
    folder = save_entailment(tmp_path / "nli")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(EvaluatorUnavailable, match="Pickled weights are not read"):
        measured(folder, "Dogs pay nothing.")
    with pytest.raises(EvaluatorUnavailable, match=r"Expected the file config\.json"):
        measured(tmp_path / "absent", "Dogs pay nothing.")


def test_code_of_a_model_is_not_run(tmp_path: Path) -> None:
    folder = change_config(
        save_entailment(tmp_path / "nli"),
        model_type="theirs",
        auto_map={"AutoModelForSequenceClassification": "theirs.Model", "AutoConfig": "theirs.Config"},
    )
    (folder / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", "utf-8")
    with pytest.raises(EvaluatorUnavailable, match="cannot be read"):
        measured(folder, "Dogs pay nothing.")
    assert not (tmp_path / "ran").exists()


def test_weights_that_are_missing_are_not_made_up(tmp_path: Path) -> None:
    folder = change_config(save_spans(tmp_path / "spans", ["gold"]), architectures=["BertForSequenceClassification"])
    change_config(folder, id2label={"0": "entailment", "1": "neutral"})
    with pytest.raises(EvaluatorUnavailable, match="expected weights for"):
        measured(folder, "Dogs pay nothing.")


def test_broken_weights_are_said_to_be(tmp_path: Path) -> None:
    folder = save_entailment(tmp_path / "nli")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(EvaluatorUnavailable, match="cannot be read") as refused:
        measured(folder, "Dogs pay nothing.")
    assert refused.value.hint == "Check that its files are whole."
    weights.write_bytes(b"version https://git-lfs")
    with pytest.raises(EvaluatorUnavailable, match="no safetensors file"):
        measured(folder, "Dogs pay nothing.")


@pytest.mark.parametrize("save", [save_entailment, lambda folder: save_spans(folder, ["gold"])])
def test_weights_that_are_no_numbers_are_no_score(tmp_path: Path, save: Callable[[Path], Path]) -> None:
    from safetensors.torch import load_file, save_file

    weights = save(tmp_path) / "model.safetensors"
    save_file({name: torch.full_like(one, torch.nan) for name, one in load_file(weights).items()}, weights)
    with pytest.raises(EvaluatorUnavailable, match="found none that are numbers"):
        measured(tmp_path, "Dogs pay nothing.")


def test_another_model_in_the_same_folder_is_read_anew(tmp_path: Path) -> None:
    first, second = (measured(save_entailment(tmp_path, seed=seed), "Dogs pay nothing.")[0] for seed in (1, 2))
    assert first.score != second.score


def test_a_stop_is_heard_between_two_readings(tmp_path: Path) -> None:
    stopped = Event()
    stopped.set()
    for folder in (save_entailment(tmp_path / "nli"), save_spans(tmp_path / "spans", ["gold"])):
        with pytest.raises(Stopped):
            NamedSupport(f"hf:{folder}", STOP_WORDS).measure(["Dogs pay nothing."], PIECES, stopped)


def test_marks_of_the_tokenizer_in_evidence_are_letters(tmp_path: Path) -> None:
    files = files_of(f"hf:{save_entailment(tmp_path / 'nli')}")
    tokenizer = Reading(files, "AutoModelForSequenceClassification").tokenizer
    read = tokenizer("Dogs [SEP] yachts [CLS]", "pay [SEP]")["input_ids"]
    assert [read.count(tokenizer.convert_tokens_to_ids(sign)) for sign in ("[CLS]", "[SEP]")] == [1, 2]


def test_words_are_the_default_and_read_no_model() -> None:
    assert SUPPORT[Checker.WORDS] is WordSupport
