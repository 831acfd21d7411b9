"""Documents, questions, web pages and models are other people's: in a report all of it is text, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Correction, CorrectionKind
from crag_core.base.types.grades import Grade, Opinion
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Step, StepState, Usage
from crag_core.base.types.web import WebAttempt, WebOutcome, WebSearch
from crag_core.report.text import web_address
from crag_core.trace.trace import Trace
from tests.builders import policy, settings, strips_of, trace, web_page
from tests.made_up_runs import JUDGE
from tests.report.pages import Page, answered, page_of, recorded, said
from tests.report.sound_pages import assert_sound

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)> {{ 7 * 7 }} {% raw %} "
    "</style></title></textarea><!-- ]]> &lt;b&gt; [x](javascript:alert(4)) https://evil.example"
)
SHOWN = " ".join(EVIL.split())
DISGUISED = "\x00a\x07b\x1b[31mc\u202egpj.exe\u202c\u2066d\u2069\x85\ufeff\ud800"


def evil_run(text: str = EVIL) -> Trace:
    """A run in which everything that comes from outside is `text`."""
    first = Passage("p1", f"{text} One more sentence.", text, page=3, found_by=(text,), scores=((text, 0.5),))
    second = Passage('"><b>', "مرحبا بالعالم.", "ملف.pdf", page=2)
    web = replace(web_page("w", text), source=text, url=text)
    grades = (Grade("p1", 0.5, text, parts=((text, 0.4),), raw=text), Grade('"><b>', None, cause=text, raw=text))
    search = WebSearch(
        *(WebOutcome.USED, text, text, text, text, (web,)), attempts=(WebAttempt(text, WebOutcome.FAILED, text),)
    )
    of = policy("paper")
    of = replace(of, title=text, summary=text, source=text, labels=("Correct", text, "Incorrect"))
    made = settings(of)
    card = replace(made.evaluator, title=text, scale=text, version=text)
    made = replace(made, evaluator=card, embedding=text, writer=text, web_mode=text, prompts=text, version=text)
    run = trace(
        of,
        settings=made,
        id=text,
        created=text,
        question=text,
        passages=(first, second),
        grades=grades,
        strips=strips_of(first, (text, 0.7), ("One more sentence.", None)),
        web=search,
        opinions=(Opinion(replace(JUDGE, name="not known here", title=text), text, grades),),
        corrections=(Correction(CorrectionKind.REFINE, text, '"><b>', text),),
        steps=(Step(text, text, StepState.FAILED, 1.5, Usage(2, 3, 4), text, text),),
    )
    return answered(run, f"{text} [1] [99]")


@pytest.fixture(scope="module")
def evil() -> Page:
    return page_of(evil_run())


def test_nothing_but_our_own_kinds_of_elements_and_attributes_comes_out(evil: Page) -> None:
    assert_sound(evil)


def test_all_of_it_is_there_as_text(evil: Page) -> None:
    assert SHOWN in evil.head("1") and SHOWN in evil.head("3", "web")
    for place in ("h1", "head title", "#passage-1 .text", "#passage-1 pre", ".answer", "#web"):
        assert SHOWN in evil.told(place), place
    assert evil.told("body").count(SHOWN) >= 30


def test_an_address_of_the_web_is_a_link_whatever_stands_in_it() -> None:
    web = replace(web_page("w", "x"), url='https://ok.example/?q="><script>alert(1)</script>')
    page = page_of(recorded("paper", 0.5, 0.5, 0.1, web=WebSearch(WebOutcome.USED, "q", "me", passages=(web,))))
    assert page.part("#web-4 .address a")["href"] == web.url
    assert_sound(page)


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//evil.example/x"),
        *("http://[::1", "https://", "https:///x", "ftp://a.example/", "mailto:a@b.example", "https://a b.example", ""),
        *(
            "\njavascript:alert(1)",
            "java\tscript:alert(1)",
            "https://a.example/\u202egpj",
            "https://a.example/\x00",
            None,
        ),
    ],
)
def test_what_is_no_address_of_the_web_is_no_link(url: str | None) -> None:
    assert web_address(url) is None
    web = replace(web_page("w", "x"), url=url)
    page = page_of(recorded("paper", 0.5, 0.5, 0.1, web=WebSearch(WebOutcome.USED, "q", "me", passages=(web,))))
    assert not page.soup.select("#web-4 .address a")


def test_no_text_can_disguise_itself_or_break_the_file() -> None:
    page = page_of(evil_run(DISGUISED))
    assert_sound(page)
    assert "ab[31mcgpj.exed\ufffd" in page.told("h1")


def test_other_peoples_text_has_a_direction_and_a_language_of_its_own(evil: Page) -> None:
    for place in ("h1", "#passage-2 .text", "#passage-1 pre", ".answer"):
        assert (evil.part(place)["dir"], evil.part(place)["lang"]) == ("auto", ""), place
    name = evil.card("2").select("summary bdi")[0]
    assert (name["dir"], said(name)) == ("auto", "ملف.pdf"), "the page number stands outside of the name"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["# " + " " * 200_000 + "x", "#" * 200_000, "[1, " * 50_000, "\n" * 200_000, "W" * 200_000]
)
def test_long_strange_texts_do_not_hang(text: str) -> None:
    run: dict[str, Any] = {
        "passages": (Passage("p1", text, "long.txt"),),
        "grades": (Grade("p1", 0.9),),
        "strips": None,
    }
    page_of(answered(recorded(**run), text))


def test_an_answer_of_spaces_is_no_crash() -> None:
    run = recorded()
    assert run.answer is not None
    for text in ("", " \n "):
        blank = Answer(text, AnswerState.COMPLETE, "model-7", run.answer.context_key)
        assert page_of(replace(run, answer=blank)).told("#answers h2") == "Answer"
