"""One set of payloads in every text that somebody else writes, through every page, in a real browser.

Nothing of it may run, load, link or leave the page; all of it must be seen as text.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import SETTLED
from tests.browser.conftest import PATIENCE, QUICK, ask, download, index_files, serve, settled
from tests.browser.test_history import FIRST_COLUMN, HEAD, MIDDLE
from tests.report.test_report_hostile import evil_run
from tests.security.servers import Asked, Said, answering
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.engines import Message, Reply, ScriptedModel
from tests.stand_ins.ollama_server import OllamaServer
from tests.stand_ins.searxng_server import SearXNGServer

pytestmark = pytest.mark.browser

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=2>",
    "<svg/onload=window.pwned=3>",
    "<iframe src=javascript:window.pwned=4></iframe>",
    '"><b onmouseover=window.pwned=5>bold</b>',
    "[link](javascript:window.pwned=6)",
    "[click](https://evil.example/a)",
    "![picture](http://evil.example/p.png)",
    "<https://evil.example/auto> https://evil.example/bare www.evil.example eve@evil.example",
    "[ref]: http://evil.example/r",
    ":red[boo] :material/delete: :streamlit: :smile:",
    "$\\frac{1}{2}$ $$x^2$$",
    "**bold** ~~struck~~ `code` # heading",
    "&lt;script&gt; &#60;img src=x&#62;",
    "{{ 7 * 7 }} ${window.pwned=7}",
    "\u202egnp.exe\u202c zero\u200bwidth",
    "w" * 300,
)
EVIL = " ".join(PAYLOADS)
SEEN = "<script>window.pwned=1</script>"
NAME = "<img src=x onerror=window.pwned=8> [x](javascript:1) :red[n] $a$.md"


@dataclass
class Watch:
    """What the page did that it must not do."""

    app: str
    dialogs: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def over(self, page: Page) -> None:
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request.url))

    def _dialog(self, dialog) -> None:  # type: ignore[no-untyped-def]
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(self.app).netloc:
            self.left.append(url)


FOREIGN = """() => {
  const found = [];
  const add = (kind, one) => found.push(kind + ': ' + one.outerHTML.slice(0, 200));
  const walk = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.shadowRoot) walk(one.shadowRoot);
      for (const name of one.getAttributeNames()) if (name.startsWith('on')) add('handler', one);
      const tag = one.tagName.toLowerCase();
      if (tag === 'script' && /pwned/.test(one.textContent)) add('script', one);
      if (['iframe', 'object', 'embed', 'base'].includes(tag) && /evil|pwned/.test(one.outerHTML)) add(tag, one);
      if (tag === 'img' && (/evil/.test(one.src) || one.getAttribute('src') === 'x')) add('img', one);
      if (tag === 'img' && /streamlit/i.test(one.alt + one.src)) add('logo', one);
      if (one.classList && one.classList.contains('katex')) add('formula', one);
      if (tag === 'b' && one.textContent === 'bold') add('bold', one);
      if (tag === 'a' && /^(javascript|data|vbscript|mailto):/i.test(one.getAttribute('href') || '')) add('link', one);
      if (tag === 'a' && /evil[.]example/.test(one.href)) add('web', one);
    }
  };
  walk(document);
  return found;
}"""
WORDS = """() => {
  const told = [];
  const walk = (root) => {
    told.push(root.innerText ?? root.textContent ?? '');
    for (const one of root.querySelectorAll('*')) if (one.shadowRoot) walk(one.shadowRoot);
    for (const one of root.querySelectorAll('input, textarea')) told.push(one.value);
  };
  walk(document.body);
  return told.join('\\n');
}"""


def check(page: Page, watch: Watch, where: str, *, is_seen: bool = True, links: int = 0) -> None:
    """`links`: how many links to the web are meant at most, each to the address of a web result."""
    if is_seen:
        page.wait_for_function(f"() => ({WORDS})().includes({SEEN[:20]!r})")
    found = page.evaluate(FOREIGN)
    meant = [one for one in found if one.startswith("web: ") and "https://evil.example/result" in one]
    assert [one for one in found if one not in meant] == [], where
    assert len(meant) <= links, where
    assert all('rel="noopener' in one or "noopener" in one for one in meant), where
    assert page.evaluate("() => window.pwned") is None, where
    assert watch.dialogs == [] and watch.left == [], where
    expect(page.get_by_test_id("stException")).to_have_count(0)


def settle(page: Page) -> None:
    """Until the script has run, and what it says is drawn."""
    settled(page)
    page.evaluate(SETTLED)


def replies(messages: tuple[Message, ...]) -> Reply:
    asked = str(messages[0]["content"])
    if "grade how well" in asked:
        return {"score": 0.5, "reasoning": EVIL[:250]}
    return f"{EVIL} The dues are 14 pounds [1] [2]."


@pytest.fixture(scope="module")
def result() -> Iterator[Asked]:
    """A server that a web result leads to; it counts whoever comes."""
    with answering(lambda path: Said(pieces=lambda: [b"<script>window.pwned=9</script>"])) as server:
        yield server


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, result: Asked) -> Iterator[str]:
    home = tmp_path_factory.mktemp("hostile")
    (home / "sample-indexed").touch()
    results = [
        WebResult(EVIL, "https://evil.example/result?q=<script>window.pwned=1</script>", f"Harbour dues: {EVIL}"),
        WebResult(EVIL, "javascript:window.pwned=10", "Harbour dues."),
        WebResult("Dues", f"{result.url}/page", f"Dues are 14 pounds. {EVIL}"),
    ]
    with OllamaServer(ScriptedModel(replies, piece_chars=200)) as ollama, SearXNGServer(results) as searxng:
        more = {"CRAG_WEB": "auto", "CRAG_WEB_PROVIDERS": "searxng", "CRAG_SEARXNG_URL": searxng.url}
        with serve(home, program=QUICK, OLLAMA_HOST=ollama.url, CRAG_CACHE="off", **more) as url:
            yield url


def document() -> bytes:
    heading = f"# Harbour dues {' '.join(PAYLOADS[:2])} {PAYLOADS[5]} {PAYLOADS[7]}"
    heading += f"\n\n## {PAYLOADS[10]} {PAYLOADS[11]}\n\n"
    return (heading + "\n\n".join(f"Harbour dues of a yacht are 14 pounds. {one}" for one in PAYLOADS)).encode()


@pytest.mark.timeout(600)
def test_no_page_runs_loads_or_links_what_somebody_else_has_written(
    page: Page, app: str, result: Asked, tmp_path: Path
) -> None:
    watch = Watch(app)
    watch.over(page)
    page.goto(f"{app}/documents")
    expect(page.get_by_role("button", name="Index", exact=True)).to_be_visible()
    expect(page.get_by_text("Reading the index")).to_have_count(0)
    index_files(page, [{"name": NAME, "mimeType": "text/markdown", "buffer": document()}])
    expect(page.get_by_text(re.compile(r"indexed, \d+ chunk")).first).to_be_visible()
    check(page, watch, "Documents", is_seen=False)
    assert NAME[:30] in page.evaluate(WORDS)

    # Ask: question, passages, path, web results, answer.
    page.get_by_role("link", name="Ask").click()
    ask(page, f"What are the harbour dues of a yacht? {EVIL}"[:900])
    expect(page.get_by_text("Record of this run")).to_be_visible()
    page.get_by_text("Record of this run").click()
    check(page, watch, "Ask", links=4)
    upper = page.get_by_test_id("stSidebar").get_by_role("slider", name="Bar for an answer")
    upper.focus()
    page.keyboard.press("End")  # AMBIGUOUS: refined, and the web too
    check(page, watch, "Ask, thresholds moved", links=4)
    page.get_by_role("button", name="Show in the document").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    settle(page)
    check(page, watch, "the document", links=4)
    page.keyboard.press("Escape")
    shared = page.url

    # The report of the run, opened as a file.
    page.get_by_role("button", name="Share").click()
    report = tmp_path / "report.html"
    download(page, "Report (HTML)").save_as(report)
    other = page.context.new_page()
    file_watch = Watch(app)
    file_watch.over(other)
    other.goto(report.as_uri())
    check(other, file_watch, "the report", links=2)
    other.close()

    # Every other page.
    for name in ("Tune", "Logs", "Policies", "History", "Metrics", "Settings", "Documents", "Compare"):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page).to_have_url(re.compile(name.lower()))
        expect(page.locator("h1").first).to_be_visible()
        settle(page)
        check(page, watch, name, is_seen=False, links=4)

    # Compare, with the question for two policies.
    page.get_by_label("Question for all of them").fill(f"What are the harbour dues? {EVIL}"[:900])
    page.keyboard.press("Enter")
    expect(page.get_by_text("Evidence of each answer")).to_be_visible()
    settle(page)
    check(page, watch, "Compare, asked", is_seen=False, links=8)

    # The link to the run, and one whose every part is hostile.
    page.goto(shared)
    expect(page.get_by_text("Retrieval: ").first).to_be_visible()
    settle(page)
    check(page, watch, "a shared link", links=4)
    bad = {
        name: EVIL
        for name in ("run", "policy", "evaluator", "thresholds", "lower", "upper", "strips", "dropped", "pinned", "web")
    }
    page.goto(f"{app}/?{urlencode(bad)}")
    expect(page.get_by_text("This link was opened without").first).to_be_visible()
    check(page, watch, "a hostile link", is_seen=False)

    # A record that came from somebody else.
    record = tmp_path / "record.json"
    record.write_text(json.dumps(evil_run(EVIL).to_dict()), "utf-8")
    page.goto(app)
    page.get_by_test_id("stMain").get_by_role("button", name="Open", exact=True).click()
    page.locator("input[type=file]").last.set_input_files(str(record))
    expect(page.locator("h2").first).to_be_visible()
    settle(page)
    check(page, watch, "an imported record", links=2)

    assert result.paths == []  # what a search found is shown, and fetched by nobody


MORE = (
    "\x00\x07\x1b[31m\x7f\x85\ufeff\u2066hidden\u2069",
    '{"lower": 1, "__class__": "x"}',
    "</script></style></td></table>",
    "::::red[a] :blue-badge[x] :shimmer[z]",
    "$$\\href{javascript:window.pwned=11}{x}$$",
    "\u202eevil\u202c " * 50,
)
WORD = "w" * 99_000
ROOM = """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
  .map((one) => one.scrollWidth - one.clientWidth)"""


@pytest.mark.timeout(600)
def test_a_log_of_another_system_runs_loads_and_breaks_nothing(page: Page, app: str, tmp_path: Path) -> None:
    watch, whole = Watch(app), " ".join((*PAYLOADS, *MORE))
    watch.over(page)

    def look(where: str) -> None:
        settle(page)
        check(page, watch, where, is_seen=False)
        page.set_viewport_size({"width": 400, "height": 1000})
        settle(page)
        assert page.evaluate(ROOM) == [0, 0], where
        page.set_viewport_size({"width": 1440, "height": 1000})
        settle(page)

    pairs = map(" ".join, zip_longest(PAYLOADS, MORE, fillvalue=""))
    texts = [f"Harbour dues are 14 pounds. {one}" for one in (*pairs, WORD)]
    chunks = [{"id": f"{whole} {n}", "text": one, "source": one[:300]} for n, one in enumerate(texts)]
    rows = [
        {"id": whole, "question": f"Dues? {whole}", "contexts": chunks[:9], "answer": whole, "ground_truth": whole},
        {"question": "w" * 1900, "contexts": chunks[9:], "answer": WORD, "ground_truth": WORD, whole: whole},
        {"question": whole, whole: 1},
    ]
    page.goto(f"{app}/logs")
    expect(page.locator("input[type=file]")).to_have_count(1)
    settle(page)
    name = f"{NAME} {'w' * 120}.jsonl"
    content = "\n".join(map(json.dumps, rows)).encode()
    page.locator("input[type=file]").set_input_files([{"name": name, "mimeType": "text/plain", "buffer": content}])
    expect(page.get_by_text("1 row refused").first).to_be_visible()
    look("a log before it is imported")
    page.get_by_role("button", name="Import 2 records").click()
    page.get_by_role("button", name="Grade 2 records").click()
    expect(page.get_by_text("Which stage failed?")).to_be_visible(timeout=4 * PATIENCE)
    settle(page)
    download(page, "Report (HTML)").save_as(tmp_path / "stages.html")
    other = page.context.new_page()
    watch.over(other)
    other.goto((tmp_path / "stages.html").as_uri())
    check(other, watch, "the report of a log", is_seen=False)
    other.close()
    box = page.get_by_test_id("stDataFrame").first.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + FIRST_COLUMN, box["y"] + HEAD + MIDDLE)
    expect(page.get_by_text("Answer in the log", exact=True)).to_be_visible()
    look("a record of a log")


@pytest.mark.timeout(600)
def test_a_labelled_set_of_somebody_else_is_compared_as_words(page: Page, app: str) -> None:
    watch = Watch(app)
    watch.over(page)
    questions = [f"What are the dues? {' '.join(one)}" for one in (PAYLOADS[:3], MORE[:3])]
    rows = [{"question": one, "expected": "correct", "note": one, "answers": [one]} for one in questions]
    page.goto(f"{app}/compare")
    page.get_by_role("radio", name="Labelled set").click()
    page.get_by_role("radio", name="Upload").click()
    content = "\n".join(map(json.dumps, rows)).encode()
    page.locator("input[type=file]").set_input_files(
        [{"name": NAME + ".jsonl", "mimeType": "text/plain", "buffer": content}]
    )
    page.get_by_role("button", name=f"Run {len(rows)} questions").click()
    expect(page.get_by_text("Results by measure")).to_be_visible(timeout=4 * PATIENCE)
    settle(page)
    check(page, watch, "a labelled set, compared", is_seen=False)


def handshake(app: str, origin: str) -> int:
    """The status that a page of `origin` gets when it opens a session's WebSocket."""
    where = urlsplit(app)
    with socket.create_connection((where.hostname, where.port), timeout=10) as connection:
        lines = [
            "GET /_stcore/stream HTTP/1.1", f"Host: {where.netloc}", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13", f"Origin: {origin}", "", "",
        ]  # fmt: skip
        connection.sendall("\r\n".join(lines).encode())
        return int(connection.recv(100).split()[1])


def test_a_page_of_another_site_cannot_open_a_session(app: str) -> None:
    assert handshake(app, app) == 101
    assert handshake(app, "https://evil.example") == 403
