"""`python -m ui`: runs `streamlit run app.py` with a quiet Ctrl-C; `make run` calls it."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python would show where in an import of Streamlit it was interrupted. Streamlit listens once its server is up.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from streamlit.web.cli import main

    sys.argv[1:1] = ["run", str(Path(__file__).resolve().parents[1] / "app.py")]
    main(prog_name="streamlit")
