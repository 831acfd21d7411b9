"""The commands `serve-metrics`, Prometheus figures of the shared history, and `audit`, the lines of the audit log."""

from __future__ import annotations

import argparse
import signal
import sys
from threading import Event
from typing import Any

from crag_core.app.workbench import Workbench
from crag_core.base.errors import BadRecord, HistoryUnavailable, WrongUse
from crag_core.observability.history_metrics import registry_of
from crag_core.observability.logs import show_logs
from crag_core.observability.metrics import serve
from crag_core.pipeline.run import VERSION


def add_commands(commands: Any) -> None:
    command = commands.add_parser("serve-metrics", help="serve the figures of kept runs to Prometheus, until Ctrl-C")
    command.add_argument("--port", type=int, metavar="N", help="default: CRAG_METRICS_PORT")
    command.add_argument("--address", help="default: CRAG_METRICS_ADDRESS")
    command.set_defaults(command=serve_metrics)
    lines = commands.add_parser("audit", help="print the audit log, one JSON object a line, oldest first")
    lines.add_argument("--delete", action="store_true", help="forget what was printed, once all of it is")
    lines.set_defaults(command=audit)


def serve_metrics(options: argparse.Namespace) -> int:
    workbench = Workbench()
    settings, history = workbench.config, workbench.history
    port = settings.metrics_port if options.port is None else options.port
    address = options.address or settings.metrics_address
    if not 1 <= port <= 65535:
        kind = BadRecord if options.port is None else WrongUse
        raise kind(f"Expected a port of 1 to 65535 to serve at, found {port}.", hint="Set CRAG_METRICS_PORT.")
    if not history.is_on:
        raise HistoryUnavailable("No runs are kept: CRAG_HISTORY is off.", hint="Set CRAG_HISTORY=disk, or a URL.")
    show_logs(settings.log)
    serve(registry_of(history.measured, VERSION), port, address)
    print(f"figures of the kept runs at http://{address}:{port}/metrics", file=sys.stderr, flush=True)
    ended = Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        ended.wait()
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return 0


def audit(options: argparse.Namespace) -> int:
    log = Workbench().audit
    if log is None:
        raise WrongUse("There is no audit log: CRAG_AUDIT is off.", hint="Set CRAG_AUDIT=on.")
    last = 0
    for number, line in log.lines():
        print(line)
        last = number
    sys.stdout.flush()
    if options.delete and last:
        log.forget(last)
    return 0
