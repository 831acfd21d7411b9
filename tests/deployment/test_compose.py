"""compose.yaml, as far as it goes without Docker: its schema, its variables, its files, and what it opens to whom."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from crag_core.app import config
from crag_core.app.config import Config, load
from tests.conftest import REPOSITORY
from tests.deployment.parts import COMPOSE, compose, example, filled, rests, variables_of_compose

SERVICES: dict[str, dict[str, Any]] = compose()["services"]
APP = SERVICES["app"]
ONCE = {"ollama-model"}
YAML_FILES = (COMPOSE, *sorted((REPOSITORY / "deploy").rglob("*.yml")))


def given(secret: str = "s3cret") -> dict[str, str]:
    """The example with passwords in it."""
    return {name: value or (secret if name != "TORCH_INDEX" else "") for name, value in example().items()}


def settings_of(service: dict[str, Any], values: dict[str, str]) -> dict[str, str]:
    return {name: filled(str(value), values) for name, value in service["environment"].items()}


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_key_is_written_twice(path: Path) -> None:
    """The reader of YAML takes the last one and says nothing."""

    class Strict(yaml.SafeLoader):
        pass

    def read(loader: Strict, node: yaml.MappingNode) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        assert len(keys) == len(set(keys)), f"twice at {node.start_mark}"
        return yaml.SafeLoader.construct_mapping(loader, node, deep=True)

    Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, read)
    assert isinstance(yaml.load(path.read_text("utf-8"), Strict), dict)


def test_every_variable_stands_in_the_example_and_the_other_way_round() -> None:
    asked = variables_of_compose()
    assert set(asked) == set(example())
    assert {name for name, default in asked.items() if default is None} == {
        name for name in example() if re.search("PASSWORD|SECRET", name)
    }
    for name, default in asked.items():
        assert default is None or default == example()[name], f"{name}: another default in the example"


def test_no_password_is_written_down() -> None:
    assert all(not value for name, value in example().items() if re.search("PASSWORD|SECRET|KEY", name))
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY", name):
                assert re.fullmatch(r"\$\{\w+:\?[^}]+\}", str(value)), name
            if "://" in str(value) and "@" in str(value):
                assert re.search(r"://\w*:\$\{\w+:\?[^}]+\}@", str(value)), name


def test_the_settings_of_the_application_are_known_and_of_use() -> None:
    settings = settings_of(APP, given())
    assert set(settings) <= {field.metadata["variable"] for field in fields(Config)}
    loaded = load(settings, Path("no-such-folder/.env"))
    assert loaded.history == "postgresql://crag:s3cret@postgres:5432/crag"
    assert loaded.cache == "redis://:s3cret@valkey:6379/0" and loaded.providers == ("searxng",)
    assert loaded.model.startswith("ollama/") and loaded.metrics_port == 9464
    assert set(re.findall(r"(?://|@)([\w-]+):\d+", " ".join(settings.values()))) <= set(SERVICES), "services by name"


def test_every_file_that_is_mounted_is_there() -> None:
    mounts = [mount.split(":") for service in SERVICES.values() for mount in service.get("volumes", [])]
    for source, target, *mode in mounts:
        if source.startswith("./"):
            assert (REPOSITORY / source).exists(), source
            assert mode == ["ro"], f"{source} could be written to"
        else:
            assert source in compose()["volumes"] and not mode
        assert target.startswith("/")
    assert {source for source, *_ in mounts} >= set(compose()["volumes"]), "a volume that nobody uses"
    assert "home" in compose()["volumes"] and f"home:{rests('VOLUME')[0]}" in APP["volumes"]


def test_only_the_application_is_reached_and_only_from_this_machine() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["app"]
    assert [filled(port, given()) for port in APP["ports"]] == ["127.0.0.1:8501:8501"]
    assert [filled(port, {}) for port in APP["ports"]] == ["127.0.0.1:8501:8501"], "without a setting too"
    assert not [name for name, service in SERVICES.items() if "network_mode" in service or service.get("privileged")]


def test_what_keeps_documents_reaches_no_network_beyond() -> None:
    networks = compose()["networks"]
    inside = {name for name, one in networks.items() if one and one.get("internal")}
    for name in ("postgres", "valkey", "prometheus", "grafana"):
        assert set(SERVICES[name]["networks"]) <= inside, name
    assert all(set(service["networks"]) <= set(networks) for service in SERVICES.values())
    assert "out" not in APP["networks"]


def test_every_service_is_looked_after() -> None:
    for name, service in SERVICES.items():
        assert service["restart"] in ("unless-stopped", "on-failure:5"), name
        assert service["logging"]["options"], f"{name}: a log without end"
        if name not in ONCE:
            assert service["deploy"]["resources"]["limits"]["memory"], name
        if name not in {*ONCE, "app"}:
            assert {"test", "interval", "timeout", "retries"} <= set(service["healthcheck"]), name
    assert rests("HEALTHCHECK"), "that of the application"
    for service in SERVICES.values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"} and other not in ONCE


@pytest.mark.parametrize("name", ["app", "valkey"])
def test_what_needs_no_rights_has_none(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["tmpfs"] == ["/tmp"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_prometheus_asks_services_at_the_port_that_they_serve() -> None:
    scraped = yaml.safe_load((REPOSITORY / "deploy" / "prometheus" / "prometheus.yml").read_text("utf-8"))
    targets = [
        target for job in scraped["scrape_configs"] for one in job["static_configs"] for target in one["targets"]
    ]
    assert {target.partition(":")[0] for target in targets} == {"app"}
    assert {target.partition(":")[2] for target in targets} == {APP["environment"]["CRAG_METRICS_PORT"]}


def test_searxng_answers_as_json() -> None:
    settings = yaml.safe_load((REPOSITORY / "deploy" / "searxng" / "settings.yml").read_text("utf-8"))
    assert "json" in settings["search"]["formats"] and settings["use_default_settings"] is True
    assert "secret_key" not in settings["server"] and SERVICES["searxng"]["environment"]["SEARXNG_SECRET"]
    assert config.load(settings_of(APP, given())).searxng_url == "http://searxng:8080"
