"""Each endpoint, asked over HTTP at a service that runs as a program."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from crag_core.app import workbench as build
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench, build_pipeline
from crag_core.base.types.questions import FollowUp, Understanding
from crag_core.service import answers, schemas
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace
from tests import builders
from tests.conftest import REPOSITORY
from tests.service.parts import DOCUMENTS, QUESTION, TOKEN, Served
from tests.word_embedder import WordEmbedder

CONTEXTS = [
    {"id": "dues", "text": DOCUMENTS["harbour-dues.md"], "source": "harbour-dues.md", "score": 0.7},
    {"id": "crane", "text": DOCUMENTS["crane.txt"], "source": "crane.txt", "score": 0.4},
]


def given(reply: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert reply.status_code == status, reply.text
    found: dict[str, Any] = reply.json()
    return found


def asked(client: httpx.Client, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
    return given(client.post(path, json=body), status)


# --- /query ---


def test_a_question_is_answered_with_its_decision_and_the_fields_of_the_description(
    client: httpx.Client, open_bench: Workbench
) -> None:
    told = asked(client, "/query", query=QUESTION)
    schemas.QueryResponse.model_validate(told)
    assert told["decision"]["action"] == "CORRECT" and "14 pounds" in told["answer"] and not told["doubtful"]
    assert {"cragDecision", "cragScore", "cragCorrectionStrategy", "cragWebSearchUsed"} <= set(told["metadata"])
    assert told["metadata"]["cragDecision"] == "CORRECT" and told["metadata"]["cragWebSearchUsed"] is False
    assert told["metadata"]["cragScore"] == told["decision"]["score"]
    assert told["sources"][0]["source"] == "harbour-dues.md" and told["sources"][0]["number"] == 1
    kept = open_bench.history.load(told["id"])
    assert told["kept"] and kept is not None and kept.question == QUESTION
    assert (found := open_bench.history.find(told["id"])) is not None and found.asked_by == "service"


def test_the_decision_is_that_of_the_pipeline_of_reroute_and_of_route(
    client: httpx.Client, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "HuggingFaceEmbedder", WordEmbedder)
    for question in (QUESTION, "How much does the crane lift?", "Who wrote Hamlet?"):
        told = asked(client, "/query", query=question, record=True)
        settings = Config(home=served.home, ollama_host="127.0.0.1:9", cache="off", history="off", audit="off")
        taken = Trace.from_dict(dict(build_pipeline(settings=settings).query(question).metadata or {})["crag"])
        assert taken.decision is not None
        assert told["decision"]["action"] == taken.decision.action
        assert told["decision"]["reason"] == taken.decision.reason
        record = Trace.from_dict(told["record"])
        assert reroute(record, record.settings.policy).decision.reason == told["decision"]["reason"]
        again = asked(client, "/reroute", id=told["id"])
        assert again["decision"] == told["decision"] and again["missing"] == []
        contexts = [
            {"id": one.id, "text": one.text, "source": one.source, "score": one.score("cosine")}
            for one in record.passages or ()
        ]
        routed = asked(client, "/route", question=question, contexts=contexts, scores="cosine")
        assert routed["decision"] == told["decision"] and routed["flips"] == told["flips"]


def test_what_a_request_names_takes_the_place_of_what_the_service_was_started_with(client: httpx.Client) -> None:
    told = asked(client, "/query", query=QUESTION, policy="paper", upper=1.0, lower=0.1, top_k=1)
    assert (told["policy"]["name"], told["policy"]["upper"], told["policy"]["lower"]) == ("paper", 1.0, 0.1)
    assert told["decision"]["action"] == "AMBIGUOUS" and len(told["chunks"]) == 1
    assert told["doubtful"] and told["message"].startswith("Not certain enough for an answer")
    plain = asked(client, "/query", query=QUESTION, use_crag=False)
    assert plain["decision"]["action"] is None and plain["metadata"]["cragDecision"] == "NOT_GRADED"
    assert plain["metadata"]["cragScore"] is None and plain["answer"]


def test_a_later_question_is_understood_from_the_one_before(client: httpx.Client) -> None:
    first = asked(client, "/query", query=QUESTION)
    assert first["query"] == first["asked"] == QUESTION and first["asks_back"] == ""
    later = asked(client, "/query", query=f"{QUESTION[:-1]} in winter?", after=first["id"], record=True)
    assert later["asked"] == later["query"] and later["record"]["steps"][0]["name"] == "condense"
    assert later["decision"]["action"] == "CORRECT"
    unsure = asked(client, "/query", query="And why?", after=first["id"])
    assert (unsure["query"], unsure["asked"]) == (f"{QUESTION} And why?", "And why?")
    assert unsure["doubtful"] and unsure["decision"]["action"] == "AMBIGUOUS" and unsure["sources"]
    assert "no one question is made" in unsure["message"]
    assert asked(client, "/query", 404, query="And?", after="none")["kind"] == "UnknownRun"
    assert "expected after with query" in asked(client, "/query", 422, resume="x", after="y")["error"]


def test_a_question_that_is_asked_back_has_no_decision() -> None:
    known = FollowUp("And that?", outcome=Understanding.ASKS_BACK, asks="Which of the boats?")
    run = builders.trace(builders.policy("paper"), passages=None, grades=None, answer=None, follow_up=known)
    told = answers.answered(run, kept=True, with_record=True)
    assert (told.asks_back, told.asked, told.answer, told.state) == ("Which of the boats?", "And that?", "", None)
    assert told.decision.action is None and told.chunks == [] and told.flips == []


# --- /route ---


def test_contexts_are_graded_and_decided_upon_and_nothing_else(client: httpx.Client, open_bench: Workbench) -> None:
    before = open_bench.history.count()
    told = asked(client, "/route", question=QUESTION, contexts=CONTEXTS, record=True)
    schemas.RouteResponse.model_validate(told)
    assert told["decision"]["action"] == "CORRECT" and "upper" in told["decision"]["reason"]
    assert [(one["id"], one["action"]) for one in told["chunks"]] == [("dues", "CORRECT"), ("crane", "INCORRECT")]
    assert told["chunks"][0]["score"] > 0.7 > 0.2 > told["chunks"][1]["score"]
    assert all(one["kept"] for one in told["chunks"])
    off_topic = asked(client, "/route", question="Who wrote Hamlet?", contexts=CONTEXTS)
    assert not any(one["kept"] for one in off_topic["chunks"]), "INCORRECT discards them"
    assert told["flips"][0]["to"] == "AMBIGUOUS" and told["flips"][0]["threshold"] == "upper"
    record = Trace.from_dict(told["record"])
    assert [step.name for step in record.steps] == ["grade", "route"] and record.answer is None
    assert not told["kept"] and open_bench.history.count() == before, "it is kept only if that is wanted"
    higher = asked(client, "/reroute", record=told["record"], upper=1.0)
    assert higher["decision"]["action"] == "AMBIGUOUS"


def test_a_decision_is_kept_if_that_is_wanted(client: httpx.Client, open_bench: Workbench) -> None:
    told = asked(client, "/route", question=QUESTION, contexts=CONTEXTS, keep=True)
    assert told["kept"] and open_bench.history.load(told["id"]) is not None
    assert asked(client, "/reroute", id=told["id"], policy="paper")["policy"]["name"] == "paper"
    done = asked(client, "/query", resume=told["id"])
    assert [one["id"] for one in done["chunks"]] == ["dues", "crane"] and "14 pounds" in done["answer"]
    assert done["decision"]["action"] == told["decision"]["action"], "answered from the chunks that were given"


# --- /reroute ---


def test_an_answer_is_given_only_where_it_was_written_from_the_same_evidence(client: httpx.Client) -> None:
    told = asked(client, "/query", query=QUESTION)
    same = asked(client, "/reroute", id=told["id"])
    schemas.RerouteResponse.model_validate(same)
    assert same["answer"] == told["answer"] and same["sources"] == told["sources"]
    other = asked(client, "/reroute", id=told["id"], lower=1.0, upper=1.0)
    assert other["decision"]["action"] == "INCORRECT" and told["answer"] not in (other["answer"] or "")
    record = asked(client, "/route", question=QUESTION, contexts=CONTEXTS, record=True)["record"]
    bare = asked(client, "/reroute", record=record)
    assert bare["answer"] is None and bare["missing"][0].startswith("strip scores: ")


# --- /health ---


def test_health_tells_the_parts_and_hides_what_is_wrong_from_strangers(client: httpx.Client, served: Served) -> None:
    told = given(client.get("/health"))
    schemas.HealthResponse.model_validate(told)
    assert told["status"] == "ok"
    assert {"index", "evaluator", "embedding model", "history", "cache", "audit"} == set(told["parts"])
    with served.client(token="") as stranger:
        assert given(stranger.get("/health"))["status"] == "ok"


# --- bad input ---

BAD: list[tuple[str, Any, int, str]] = [
    ("/query", {}, 422, "expected either query or resume"),
    ("/query", {"query": "x" * 1001}, 422, "query: String should have at most 1000 characters"),
    ("/query", {"query": "  \n"}, 422, "query: expected some text, found none"),
    ("/query", {"query": "Why?", "polcy": "paper"}, 422, "polcy: unknown field"),
    ("/query", {"query": "Why?", "policy": "papier"}, 422, "Unknown policy 'papier'."),
    ("/query", {"query": "Why?", "evaluator": "hf:somebody/model"}, 422, "Unknown evaluator 'hf:somebody/model'."),
    ("/query", {"query": "Why?", "preset": "/etc/passwd"}, 422, "Unknown preset"),
    ("/query", {"query": "Why?", "preset": "pyproject.toml"}, 422, "Unknown preset 'pyproject.toml'."),
    ("/query", {"query": "Why?", "collection": "none"}, 422, "Unknown collection 'none'."),
    ("/query", {"query": "Why?", "lower": 0.9, "upper": 0.1, "policy": "paper"}, 422, "lower must not exceed upper"),
    ("/query", {"query": "Why?", "upper": 2}, 422, "upper: Input should be less than or equal to 1"),
    ("/query", {"query": "Why?", "use_web_search": True}, 422, "Web search is off here."),
    ("/query", {"query": "Why?", "use_crag": False, "upper": 0.5}, 422, "Plain RAG grades nothing"),
    ("/query", {"resume": "none"}, 404, "No run 'none' is kept."),
    ("/route", {"question": "Why?"}, 422, "contexts: Field required"),
    ("/route", {"question": "Why?", "contexts": [{"text": "a", "id": "1"}, {"text": "b", "id": "1"}]}, 422, "an id"),
    (
        "/route",
        {"question": "Why?", "contexts": [{"text": "a" * 2000}] * 51},
        422,
        "100,000 characters together, found 102",
    ),
    ("/route", {"question": "Why?", "contexts": [{"text": "a"}] * 101}, 422, "contexts: List should have at most 100"),
    ("/reroute", {}, 422, "expected either id or record"),
    ("/reroute", {"id": "../../etc/passwd"}, 404, "No run '../../etc/passwd' is kept."),
    ("/reroute", {"record": {"schema": 99}}, 422, "This run has schema 99"),
    ("/reroute", [], 422, "expected an object"),
]


@pytest.mark.parametrize(("path", "body", "status", "error"), BAD, ids=range(len(BAD)))
def test_what_cannot_be_used_is_refused_in_words(
    client: httpx.Client, path: str, body: Any, status: int, error: str
) -> None:
    told = given(client.post(path, json=body), status)
    assert error in told["error"] and told["hint"] and set(told) >= {"error", "hint", "kind"}
    assert "Traceback" not in json.dumps(told)


def test_what_is_no_json_and_no_address_is_told_as_such(client: httpx.Client) -> None:
    json_type = {"content-type": "application/json"}
    for content in (b'{"query": ', b"\xff\xfe", b'{"query": "\\ud800"}'):
        told = given(client.post("/query", content=content, headers=json_type), 422 if b"ud800" in content else 400)
        assert told["error"] and "Traceback" not in told["error"]
    for kind in ({}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}):
        told = given(client.post("/query", content=b'{"query": "Why?"}', headers=kind), 400)
        assert told["error"] == "Expected JSON, with the header Content-Type: application/json"
    latin = given(client.post("/query", content='{"query": "caf\xe9"}'.encode("latin-1"), headers=json_type), 400)
    assert latin["hint"] == "Send JSON in UTF-8."
    infinite = client.post(
        "/route", content=b'{"question":"a","contexts":[{"text":"b","score":NaN}]}', headers=json_type
    )
    assert "contexts.0.score: Input should be a finite number" in given(infinite, 422)["error"]
    deep = b'{"record":' + b'{"a":' * 100_000
    assert client.post("/reroute", content=deep, headers=json_type).status_code in (400, 422)
    assert given(client.get("/nowhere"), 404)["error"] == "Not Found."
    assert given(client.get("/query"), 405)["error"] == "Method Not Allowed."


def test_hostile_text_stays_json_text(client: httpx.Client) -> None:
    hostile = "<script>alert(1)</script>\u202e\u2028 {{7*7}}"
    reply = client.post("/route", json={"question": hostile, "contexts": [{"text": hostile, "source": hostile}]})
    assert given(reply)["chunks"][0]["source"] == hostile
    assert reply.headers["content-type"] == "application/json" and reply.headers["x-content-type-options"] == "nosniff"
    assert "\u202e" not in reply.text and "\u2028" not in reply.text, "in ASCII, escaped"


# --- many clients at the same time ---


QUESTIONS = (QUESTION, "How many yachts pay harbour dues each year?", "Who wrote Hamlet?")
PIECES = [{"id": name, "text": text, "source": name} for name, text in DOCUMENTS.items()]
ASKED = [("/route", {"question": one, "contexts": PIECES}) for one in QUESTIONS]
ASKED += [("/query", {"query": one}) for one in QUESTIONS]


def test_many_clients_get_what_one_gets(client: httpx.Client) -> None:
    def decided(asked: tuple[str, Any]) -> tuple[Any, ...]:
        told = given(client.post(asked[0], json=asked[1]))
        return told["decision"], told["flips"], [one["score"] for one in told["chunks"]], told.get("answer")

    alone = list(map(decided, ASKED))
    assert len({told[0]["action"] for told in alone}) == 3, "every action is among them"
    with ThreadPoolExecutor(24) as threads:
        assert list(threads.map(decided, ASKED * 8)) == alone * 8
    told = client.get("/health").json()
    assert (told["runs_under_way"], told["runs_waiting"]) == (0, 0)


# --- docs/service.md ---


def commands() -> Iterator[str]:
    for block in re.findall(
        r"^```bash\n(.*?)^```", (REPOSITORY / "docs" / "service.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    ):
        if block.startswith("curl"):
            yield block


def test_the_page_has_an_example_of_each_endpoint_that_works(served: Served) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("skipped: curl is not on this machine")
    with served.client() as client:
        run = client.post("/query", json={"query": QUESTION}).json()["id"]
    seen = set()
    for command in commands():
        asked = command.replace("http://127.0.0.1:8600", served.url).replace('"RUN"', f'"{run}"')
        done = subprocess.run(
            ["sh", "-c", asked.replace("curl -s", "curl -s --noproxy '*' -w '\\n%{http_code}'")], cwd=REPOSITORY,
            env={"CRAG_SERVICE_TOKEN": TOKEN, "PATH": str(Path(curl).parent) + ":/usr/bin:/bin"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        body, status = done.stdout.rsplit("\n", 1)
        assert status == "200", (command, body)
        seen.add(re.findall(r"8600(/\w+)", command)[0])
    assert seen == {"/query", "/route", "/reroute", "/health"}
