"""The trained evaluator as it ships: it loads without PyTorch, and nothing that people feed it does harm."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from crag_core.base.errors import EvaluatorUnavailable
from crag_core.base.types.grades import Grade
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from crag_core.evaluators.shipped import EVALUATOR_FOLDER
from tests.fakes import passage

ROOT = Path(__file__).parents[2]
QUESTION = "When does the first ferry to Vennick leave in winter?"
ANSWER = "From November to March the first ferry to Vennick leaves at 9:15, and the last one returns at 16:40."
ON_TOPIC = "The ferry to Vennick carries bicycles free of charge. Dogs must be kept on a lead in the saloon."
OFF_TOPIC = "Photosynthesis turns light into chemical energy that plants store in molecules of sugar."


@pytest.fixture(scope="module")
def shipped() -> Path:
    if not (EVALUATOR_FOLDER / "evaluator.json").is_file():
        pytest.skip("the trained evaluator is not shipped yet: data/models/retrieval-evaluator is not there")
    return EVALUATOR_FOLDER


@pytest.fixture(scope="module")
def evaluator(shipped: Path) -> CrossEncoderEvaluator:
    return CrossEncoderEvaluator(shipped)


def ask(evaluator: CrossEncoderEvaluator, *texts: str, question: str = QUESTION) -> tuple[Grade, ...]:
    return evaluator.grade(question, [passage(n, text) for n, text in enumerate(texts, start=1)], Event())


def test_answer_topic_and_nothing_are_told_apart(evaluator: CrossEncoderEvaluator) -> None:
    answer, topic, off = (dict(grade.parts) for grade in ask(evaluator, ANSWER, ON_TOPIC, OFF_TOPIC))
    assert answer["answering"] > topic["answering"] > off["answering"]
    assert min(answer["topical"], topic["topical"]) > off["topical"] + 0.2


def test_it_loads_and_grades_without_pytorch(shipped: Path) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('torch', 'transformers', 'llama_index', 'onnx')))\n"
        "from pathlib import Path; from threading import Event; from crag_core.base.types.passages import Passage\n"
        "from crag_core.evaluators.cross_encoder import CrossEncoderStripEvaluator\n"
        f"made = CrossEncoderStripEvaluator(Path({str(shipped)!r}))\n"
        f"print(made.grade({QUESTION!r}, [Passage('p', {ANSWER!r}, 's')], Event())[0].score)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert 0.0 < float(done.stdout) < 1.0
    assert done.stderr == "", "nothing is written to the server's log"


READ = {
    "chunk equal to the question": QUESTION,
    "one letter": "a",
    "digits": "9:15 16:40",
    "signs": "--- *** ---",
    "NUL": "The ferry\x00 leaves at nine.",
    "half of a pair": "The ferry \ud83d leaves at nine \ude00.",
    "emoji among words": "The ferry ⛴️ to Vennick leaves at nine 😀.",
    "right to left marks": "\u202eThe ferry\u202c leaves\u200b at nine.",
    "accents": "Die Fähre nach Vennick fährt um neun Uhr ab, größtenteils pünktlich.",
    "ends the chunk by itself": f"[SEP] {QUESTION} [SEP] [CLS]",
    "100 kB": (f"{ON_TOPIC} " * 1100)[:100_000],
}


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=name, marks=[pytest.mark.exhaustive] * (name == "100 kB")) for name, text in READ.items()],
)
def test_ugly_passage_gets_a_sane_score(evaluator: CrossEncoderEvaluator, text: str) -> None:
    (grade,) = ask(evaluator, text)
    parts = dict(grade.parts)
    assert grade.score == pytest.approx((parts["answering"] + parts["topical"]) / 2)
    assert all(0.0 <= value <= 1.0 for value in parts.values()) and grade.cause == ""


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "rarity.json"])
def test_altered_file_is_refused(shipped: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(shipped, tmp_path / "copy"))
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(EvaluatorUnavailable, match=f"altered: expected {name}"):
        ask(CrossEncoderEvaluator(folder), ANSWER)


def test_it_is_small_enough_to_ship_and_names_its_files(shipped: Path) -> None:
    files = [file for file in shipped.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) < 60_000_000
    named = set(json.loads((shipped / "evaluator.json").read_text("utf-8"))["files"])
    assert named | {"evaluator.json", "README.md"} <= {file.name for file in files}
