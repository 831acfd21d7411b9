"""The wheel: what lies in it, what it asks for, and that it works where there is no checkout."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from importlib.metadata import packages_distributions
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import httpx
import psutil
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from crag_core.pipeline.run import VERSION
from tests.brought_packages import brought_by, read_requirements
from tests.browser.conftest import find_port
from tests.browser.visitor import Visitor
from tests.conftest import REPOSITORY
from tests.deployment.parts import copied
from tests.stand_ins.local_server import wait_until

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
CORE = [Requirement(text) for text in PROJECT["dependencies"]]
HEAVY = {"streamlit", "torch", "scipy"}
HIDE = """
import os, sys

class Hide:
    names = frozenset(os.environ.get("HIDDEN_MODULES", "").split())

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in cls.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide)
"""
GRADE = """
from llama_index.core.schema import NodeWithScore, TextNode

from crag_core import CRAGPostprocessor, reroute

traces = []
crag = CRAGPostprocessor(policy="two-signal", evaluator="cross-encoder", web="off", on_trace=traces.append)
nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("The ferry sails at nine.", "Soup needs salt.")]
kept = crag.postprocess_nodes(nodes, query_str="When does the ferry sail?")
print([one.text for one in kept])
print(reroute(traces[0], traces[0].settings.policy).decision.action.value)
"""


def extra(name: str) -> list[Requirement]:
    """What an extra asks for, with that of the extras that it names."""
    found = []
    for one in (Requirement(text) for text in PROJECT["optional-dependencies"][name]):
        found += [inner for asked in one.extras for inner in extra(asked)] if one.name == PROJECT["name"] else [one]
    return found


def bounds(requirements: list[Requirement]) -> set[str]:
    """Name, extras and versions of each; those of PyTorch, which requirements.txt fixes for `make`, left out."""
    return {str(one) for one in requirements if one.name != "torch"}


def test_core_and_the_extra_app_are_the_packages_of_the_application() -> None:
    assert bounds([*CORE, *extra("app")]) == bounds(read_requirements(REPOSITORY / "requirements.txt"))
    assert "torch" in brought_by(extra("app")), "without its fixed version it is still needed"
    servers = [*extra("postgres"), *extra("redis"), *extra("otel")]
    assert bounds(servers) == bounds(read_requirements(REPOSITORY / "requirements-servers.txt"))


def test_the_core_brings_nothing_heavy() -> None:
    names = brought_by(CORE)
    assert {"llama-index-core", "onnxruntime", "tokenizers"} <= names and not names & HEAVY
    assert {"httpx", "numpy", "pydantic", "sqlalchemy"} <= names, "which are imported and not listed"


def test_what_is_imported_and_not_listed_comes_with_what_is() -> None:
    assert {"pillow", "scipy", "huggingface-hub", "transformers"} <= brought_by(extra("app"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(REPOSITORY))
    return next(folder.glob("*.whl"))


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_the_files_of_the_image_are_in_it_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    places = {"crag_core": "", "data": "crag_core/"}
    ours = {name for _, name in copied()} - {"LICENSE", "requirements.txt", "requirements-servers.txt"}
    assert names == {places.get(name.partition("/")[0], "crag_app/") + name for name in ours}


def test_it_tells_version_and_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        folder = f"crag_explorer-{VERSION}.dist-info"
        told = message_from_string(files.read(f"{folder}/METADATA").decode())
        assert files.read(f"{folder}/licenses/LICENSE").startswith(b"MIT License")
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("crag-explorer", VERSION, "MIT")
    assert told["Requires-Python"] == ">=3.11"


class Installed:
    """The wheel in an environment of its own, away from the checkout; packages of others it takes from this one."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv", symlinks=True)
        self.programs = folder / "venv" / "bin"
        pip("--python", str(self.programs / "python"), "install", "--no-deps", "--no-index", "--no-compile", str(wheel))
        site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder / "venv")}))
        (site / "hide.py").write_text(HIDE, "utf-8")
        (site / "others.pth").write_text(f"import hide\n{sysconfig.get_path('purelib')}\n", "utf-8")

    def environment(self, hidden: set[str]) -> dict[str, str]:
        """`hidden` are modules that cannot be imported."""
        ours = {name: os.environ[name] for name in ("http_proxy", "https_proxy", "no_proxy", "HF_HUB_OFFLINE")}
        ours |= {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "HIDDEN_MODULES": " ".join(sorted(hidden))}
        return ours | {"CRAG_HOME": str(self.folder / "home"), "OLLAMA_HOST": "127.0.0.1:9", "CRAG_WEB": "off"}

    def run(self, program: str, *arguments: str, hidden: set[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / program, *arguments], cwd=self.folder, env=self.environment(hidden),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    @contextmanager
    def serve(self, *arguments: str, hidden: frozenset[str] = frozenset()) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [self.programs / "crag-explorer", *arguments], cwd=self.folder, env=self.environment({*hidden}), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


@pytest.fixture(scope="module")
def not_in_core() -> set[str]:
    """Modules that are here, and would not be where the core alone is installed."""
    core = brought_by(CORE)
    return {
        module
        for module, packages in packages_distributions().items()
        if not core & {canonicalize_name(package) for package in packages}
    }


def test_the_core_alone_grades_nodes_by_the_shipped_evaluator(installed: Installed, not_in_core: set[str]) -> None:
    assert {"streamlit", "torch", "pytest"} <= not_in_core
    done = installed.run("python", "-c", GRADE, hidden=not_in_core)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['The ferry sails at nine.']\nCORRECT\n"


def test_the_core_alone_says_what_the_application_needs(installed: Installed, not_in_core: set[str]) -> None:
    for arguments in ((), ("run", "--server.port", "1")):
        done = installed.run("crag-explorer", *arguments, hidden=not_in_core)
        assert done.returncode == 1
        assert (
            done.stderr == 'error: Expected the package streamlit, found none. Run: pip install "crag-explorer[app]"\n'
        )


@pytest.mark.exhaustive
def test_the_core_with_the_extra_serve_decides_over_http(installed: Installed, not_in_core: set[str]) -> None:
    brought = brought_by(extra("serve"))
    modules = {
        name for name, packages in packages_distributions().items() if brought & {*map(canonicalize_name, packages)}
    }
    port = find_port()
    url = f"http://127.0.0.1:{port}"
    asked = {"question": "When does the ferry sail?", "contexts": [{"text": "The ferry sails at nine."}]}
    with installed.serve("serve", "--port", str(port), hidden=frozenset(not_in_core - modules)) as process:
        assert wait_until(lambda: health(port, "/health") != b"" or process.poll() is not None, 60)
        assert process.poll() is None, process.stdout and process.stdout.read()
        told = httpx.post(f"{url}/route", json=asked, timeout=60, trust_env=False).json()
        assert told["decision"]["action"] == "CORRECT"
        empty = httpx.post(f"{url}/query", json={"query": "When?"}, timeout=60, trust_env=False)
        assert empty.status_code == 200, "an index without documents needs no package"
        assert httpx.get(f"{url}/health", timeout=60, trust_env=False).json()["status"] == "degraded"


def test_the_script_starts_the_application_with_its_pages_and_settings(installed: Installed) -> None:
    port = find_port()
    with installed.serve("run", "--server.port", str(port), "--server.headless", "true") as process:
        assert wait_until(lambda: health(port) == b"ok" or process.poll() is not None, 60)
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert b"<title>Streamlit</title>" in urlopen(f"http://localhost:{port}/", timeout=10).read()
        asyncio.run(visit(f"http://localhost:{port}"))
        listening = [one for one in psutil.Process(process.pid).net_connections() if one.status == psutil.CONN_LISTEN]
        assert {one.laddr.ip for one in listening} <= {"127.0.0.1", "::1"}, "as .streamlit/config.toml says"
        process.terminate()
        assert process.wait(30) == -15


async def visit(url: str) -> None:
    visitor = Visitor(url, "V")
    await visitor.open()
    await visitor.settled()
    for page in ("Policies", "Tune", "Settings"):
        await visitor.turn_to(page)
        await visitor.settled()
        assert visitor.errors == []
    await visitor.close()


def health(port: int, path: str = "/_stcore/health") -> bytes:
    try:
        return bytes(urlopen(f"http://localhost:{port}{path}", timeout=5).read())
    except (URLError, OSError):
        return b""
