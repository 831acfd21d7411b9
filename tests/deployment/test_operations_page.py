"""docs/operations.md names files, tests, commands and settings that there are."""

from __future__ import annotations

import re
from dataclasses import fields

from crag_core.__main__ import _parser
from crag_core.app.config import Config
from tests.conftest import REPOSITORY
from tests.deployment.parts import compose, example

PAGE = (REPOSITORY / "docs" / "operations.md").read_text("utf-8")


def test_files_and_pages_that_it_names_are_there() -> None:
    for name in re.findall(r"`((?:deploy|docs|tests|benchmarks|crag_core)/[\w./-]+\.\w+)`", PAGE):
        assert (REPOSITORY / name).is_file(), name
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (REPOSITORY / "docs" / target).is_file(), target


def test_commands_that_it_names_are_known() -> None:
    choices = next(action.choices for action in _parser()._actions if action.choices)
    asked = set(re.findall(r"-m crag_core (\w[\w-]*)", PAGE))
    assert asked >= {"backup", "restore", "settings", "ask"} and asked <= set(choices or ())


def test_services_and_variables_that_it_names_are_known() -> None:
    services = set(compose()["services"])
    for line in re.findall(r"docker compose --env-file deploy/\.env (.*)", PAGE):
        found = re.match(r"(?:exec(?: -T)?|run --rm -T) ([\w-]+)", line)
        assert found is None or found[1] in services, line
    known = {one.metadata["variable"] for one in fields(Config)} | set(example())
    assert set(re.findall(r"\b(?:CRAG|KB_AGENT)_[A-Z_]+\b", PAGE)) <= known
    for name in re.findall(r"`(crag_\w+)`", PAGE):
        alerts = (REPOSITORY / "deploy" / "prometheus" / "alerts.yml").read_text("utf-8")
        assert name in alerts, f"{name}: nobody is told of it"
