"""The command `serve`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from crag_core.app.choice import Request, choose
from crag_core.app.cli.options import add_choice, check_collection
from crag_core.app.config import Config, listed
from crag_core.app.workbench import Workbench
from crag_core.base.errors import CragError, WrongUse
from crag_core.observability.logs import show_logs
from crag_core.observability.metrics import serve as serve_metrics
from crag_core.pipeline.run import WebMode

PORT = 8600
_MODES = (WebMode.OFF.value, WebMode.AUTO.value)


def add_commands(commands: Any) -> None:
    command = commands.add_parser("serve", help="answer programs over HTTP: decisions and answers")
    command.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="default: 127.0.0.1, this machine only")
    command.add_argument("--port", type=int, default=PORT, metavar="N", help=f"default: {PORT}")
    add_choice(command)
    command.add_argument(
        "--web", choices=_MODES, help="web search, where the policy wants one; default: off unless CRAG_WEB=auto"
    )
    command.set_defaults(command=serve)


def serve(options: argparse.Namespace) -> int:
    """Returns when the server has broken off; else the program ends by a signal."""
    from crag_core.service.guards import LOCAL_NAMES, Rules
    from crag_core.service.server import Serving, listen
    from crag_core.service.service import Service

    if not 1 <= options.port <= 65535:
        raise WrongUse(f"Expected a port of 1 to 65535, found {options.port}.")
    workbench = Workbench()
    settings = workbench.config
    tokens = settings.service_tokens
    web = WebMode(options.web or (WebMode.AUTO if settings.web == WebMode.AUTO else WebMode.OFF))
    choice = choose(workbench, replace(Request.of(options), web=web))
    check_collection(options.collection, workbench)
    if web is not WebMode.OFF:
        workbench.searcher  # noqa: B018  a bad address is refused here, not at the first search
    show_logs(settings.log)
    hosts = frozenset(name.lower() for name in listed(settings.service_hosts))
    rules = Rules(tokens, hosts or (None if tokens else LOCAL_NAMES))
    listener = listen(options.host, options.port, only_here=not tokens)
    service = Service(workbench, choice)
    serving = Serving(service, rules, listener)
    service.start()
    serving.start()
    print(_told(options, settings, workbench, has_token=bool(tokens)), file=sys.stderr, flush=True)
    serving.wait()
    return 1


def _told(options: argparse.Namespace, settings: Config, workbench: Workbench, *, has_token: bool) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    who = "for who has the token" if has_token else "without a token: for this machine only (CRAG_SERVICE_TOKEN)"
    lines = [f"serving at http://{host}:{options.port}, {who}; Ctrl-C ends it"]
    if settings.metrics_port:
        try:
            serve_metrics(workbench.metrics.registry, settings.metrics_port, settings.metrics_address)
        except CragError as error:  # no reason not to answer
            lines.append(f"note: {error}")
    return "\n".join(lines)
