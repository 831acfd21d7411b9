"""`python -m ui`: starts the application; `make run` calls it. Options that it does not know are for Streamlit."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread


def arguments(given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own, and those that are left for Streamlit."""
    parser = argparse.ArgumentParser(
        "python -m ui", description="Starts CRAG Explorer and prints its address.",
        epilog="Options of `streamlit run` are taken too, such as --server.address. Settings: docs/settings.md.",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, metavar="N", help="where to listen; default: 8501, or the next that is free"
    )
    parser.add_argument("--home", type=Path, metavar="FOLDER", help="where documents and runs are kept (CRAG_HOME)")
    parser.add_argument(
        "--demo", action="store_true", help="with the sample documents alone, in a new temporary folder"
    )
    known, others = parser.parse_known_args(given)
    if known.demo and known.home:
        parser.error("--demo has a home of its own: leave out --home")
    return known, others


def prepare() -> None:
    """Once the server is up: index the sample and load the models, while nobody has opened a page yet.

    What fails here, the first page tells.
    """
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # until Streamlit has set its own
        time.sleep(0.05)
    from ui.shell.shutdown import take_signals

    if take_signals():
        from crag_core.base.errors import CragError
        from ui.session.startup import warm_up

        with suppress(CragError):
            warm_up().start()


if __name__ == "__main__":
    known, others = arguments(sys.argv[1:])
    if known.port:
        others = ["--server.port", str(known.port), *others]
    if known.demo or known.home:
        os.environ["CRAG_HOME"] = str(known.home or tempfile.mkdtemp(prefix="crag-demo-"))
    # Python would show where in an import of Streamlit it was interrupted. Streamlit listens once its server is up.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from streamlit.web.cli import main

    Thread(target=prepare, daemon=True).start()
    sys.argv[1:] = ["run", str(Path(__file__).resolve().parents[1] / "app.py"), *others]
    main(prog_name="streamlit")
