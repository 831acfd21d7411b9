"""Prompts from files: which are taken, how they are filled, and how one that cannot be used is refused."""

import re
from pathlib import Path

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.prompts.messages import SHIPPED, VERSION, prompts_in, shipped
from crag_core.base.prompts.templates import FOLDER, LONGEST, NEEDED

JUDGE = (FOLDER / "judge.txt").read_text("utf-8")
REPHRASE = (FOLDER / "rephrase.txt").read_text("utf-8")


def folder_with(place: Path, **files: str | bytes) -> Path:
    """A folder of its own, since each is read once a process."""
    for name, content in files.items():
        whole = content if isinstance(content, bytes) else content.encode("utf-8")
        (place / f"{name.replace('_', '-')}.txt").write_bytes(whole)
    return place


def test_the_shipped_prompts_are_read_once_and_known_by_their_version() -> None:
    assert shipped() is prompts_in("") and set(shipped().templates) == set(NEEDED)
    assert shipped().version == VERSION, f"raise VERSION, and set SHIPPED, which is {SHIPPED}, to the new fingerprint"


def test_a_file_of_ones_own_is_taken_and_the_others_stay(tmp_path: Path) -> None:
    own = prompts_in(str(folder_with(tmp_path, rephrase="[system]\nAnders, bitte.\n[user]\nFrage: {question}")))
    assert own.rephrase("Why?") == (("system", "Anders, bitte."), ("user", "Frage: Why?"))
    assert own.judge("Why?", "Text") == shipped().judge("Why?", "Text")
    assert own is prompts_in(str(tmp_path)), "read once"


def test_what_is_put_in_is_not_searched_for_placeholders() -> None:
    asked = shipped().judge("{evidence} {reply}", "{question}")
    assert asked[1][1] == "Question: {evidence} {reply}\n\n<evidence>\n{question}\n</evidence>"


LONG = "expected at most 8,000 characters, found "
BAD: dict[str, tuple[str, bytes | str, str, str]] = {
    "empty": ("judge", "", r"expected the parts \[system\] and \[user\], found none", "as data/prompts/judge"),
    "blank": ("judge", " \n\n", r"expected the parts \[system\] and \[user\], found none", "line of its own"),
    "no heading": ("judge", "You grade.\n" + JUDGE, r"expected \[system\] or \[user\] first, found 'You gra", "above"),
    "one part": ("judge", JUDGE.split("[user]")[0], r"expected the parts .*, found \[system\]\.", "line of its own"),
    "parts the other way": ("rephrase", "[user]\n{question}\n[system]\nx", r"found \[user\] and \[system\]", "line"),
    "a part twice": ("rephrase", REPHRASE + "\n[user]\nx", "expected each part once", "Join them"),
    "a part too many": ("again", "[system]\nx\n[user]\n{failure}", r"parts \[user\], found \[system\] and", "line"),
    "an empty part": ("rephrase", "[system]\n\n[user]\n{question}", r"\[system\] is empty", "Write what"),
    "not UTF-8": ("judge", "größer".encode("latin-1"), "in UTF-8, found another encoding from byte 2", "UTF-8"),
    "long": ("judge", JUDGE + "x" * LONGEST, rf"{LONG}8,\d\d\d", "Shorten it"),
    "without end": ("judge", "x" * 10_000_000, f"{LONG}more than 32,000 bytes", "Shorten"),
    "unknown placeholder": ("judge", JUDGE + "{evidense}", "unknown placeholder {evidense}", "mean {evidence}"),
    "of another prompt": (
        "judge",
        JUDGE + "{tried}",
        "unknown placeholder {tried}",
        "Known in this prompt: {question}, ",
    ),
    "with spaces": ("judge", JUDGE + "{ Question }", "unknown placeholder { Question }", "Did you mean {question}"),
    "no question": ("judge", JUDGE.replace("{question}", "?"), "{question} is missing; expected each", "Put it"),
    "no evidence": ("judge", JUDGE.replace("{evidence}", "."), "{evidence} is missing; expected each", "Put it"),
    "no warning": ("judge", JUDGE.replace("{evidence_is_data}", ""), "{evidence_is_data} is missing", "Put it"),
    "no form": ("judge", JUDGE.replace("{reply}", "a number"), "{reply} is missing", "Put it"),
    "among the rules": ("judge", JUDGE.replace("one question.", "{question}."), r"stands under \[system\]", "Move"),
    "a tag of ours": ("judge", JUDGE + "</evidence>", r"\[user\] holds a tag such as <evidence>", "brings its own"),
    "a chat template": ("judge", JUDGE + "<|im_start|>", "or a mark of a chat template; expected none", "Take it"),
    "unknown name": ("jugde", JUDGE, "Unknown prompt 'jugde'", r"Did you mean 'judge'\?.*Rename the file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_cannot_be_used_is_refused_by_name(kind: str, tmp_path: Path) -> None:
    name, content, found, hint = BAD[kind]
    with pytest.raises(BadRecord, match=found) as refused:
        prompts_in(str(folder_with(tmp_path, **{name: content})))
    assert refused.value.message.startswith(f"{tmp_path / name}.txt: ")
    assert re.search(hint, refused.value.hint)


def test_a_prompt_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "judge.txt").mkdir()
    with pytest.raises(BadRecord, match=r"judge\.txt cannot be read: "):
        prompts_in(str(tmp_path))
