"""What no source of ours may do: read pickles, run texts, let markup through, or leave certificates unread."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("crag_core", "ui", "pages", "training")
PYTHON = [ROOT / "app.py", *sorted(path for top in FOLDERS for path in (ROOT / top).rglob("*.py"))]
SCRIPTS = sorted((ROOT / "ui").rglob("*.js"))
TEMPLATES = sorted((ROOT / "crag_core").rglob("*.html"))
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "jsonpickle", "xmlrpc"}
"""What makes objects out of bytes; `yaml` is not needed by the application."""
FORBIDDEN = {
    "shell": "True",
    "unsafe_allow_html": "True",
    "allow_pickle": "True",
    "verify": "False",
    "trust_remote_code": "True",
    "autoescape": "False",
}


def wrong_in(source: str) -> list[str]:
    return [what for node in ast.walk(ast.parse(source)) for what in _wrong(node)]


def _wrong(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        yield from (f"imports {name}" for name in names if name.partition(".")[0] in MODULES)
    if not isinstance(node, ast.Call):
        return
    called = ast.unparse(node.func)
    given = {one.arg: ast.unparse(one.value) for one in node.keywords if one.arg}
    if called in ("eval", "exec", "compile", "os.system", "os.popen", "tempfile.mktemp"):
        yield f"calls {called}"
    if called == "torch.load" and given.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    for name, value in FORBIDDEN.items():
        if given.get(name) == value:
            yield f"{called}({name}={value})"


def test_a_source_does_nothing_of_it() -> None:
    assert len(PYTHON) > 100
    found = {str(path.relative_to(ROOT)): wrong for path in PYTHON if (wrong := wrong_in(path.read_text("utf-8")))}
    assert found == {}


def test_scripts_of_the_page_make_no_elements_out_of_text() -> None:
    assert len(SCRIPTS) > 3
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|fetch\(|XMLHttp"
    )
    found = {path.name: hits for path in SCRIPTS if (hits := forbidden.findall(path.read_text("utf-8")))}
    assert found == {}


def test_templates_of_reports_let_no_value_through_unescaped() -> None:
    assert len(TEMPLATES) > 5
    found = {path.name for path in TEMPLATES if re.search(r"\|\s*safe\b|autoescape\s+false", path.read_text("utf-8"))}
    assert found == set()


HTML_OF_OURS = {"app.py", "ask.py", "page.py", "demo.py", "run_page.py", "fragments.py"}


def test_few_places_write_html_and_each_is_known() -> None:
    """Styles and anchors of ours, and no other text."""
    assert {path.name for path in PYTHON if "st.html(" in path.read_text("utf-8")} <= HTML_OF_OURS
