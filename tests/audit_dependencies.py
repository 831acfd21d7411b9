"""`make audit`: asks a service of known vulnerabilities about every installed package.

Fails (1) when one is vulnerable. Where the service cannot be reached nothing was checked: it says so, and ends well, so
that a machine without a network can still run the tests. AUDIT_SERVICE names another server that speaks OSV's protocol.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

SERVICE = "https://api.osv.dev/v1/query"
PATIENCE = 600  # seconds for the whole audit, which asks once a package


def main(service: str) -> int:
    if why := why_silent(service):
        print(f"AUDIT: NOTHING WAS CHECKED. The service {service} cannot be reached ({why}).")
        print("AUDIT: run “make audit” on a machine with a network before you release.")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "audit.json"
        command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv", "--osv-url", service]
        command += ["--format", "json", "--output", str(made), "--progress-spinner", "off", "--skip-editable"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if not made.exists():
            print(f"AUDIT: FAILED. pip-audit ended with {done.returncode} and no result:\n{done.stderr[-2000:]}")
            return 2
        return tell(json.loads(made.read_text("utf-8"))["dependencies"])


def why_silent(service: str) -> str:
    """Why the service does not answer a question about a package that does not exist; "": it answers."""
    question = json.dumps({"package": {"name": "no-such-package", "ecosystem": "PyPI"}, "version": "0"}).encode()
    try:
        with urlopen(Request(service, question, {"content-type": "application/json"}), timeout=15) as reply:
            return "" if isinstance(json.load(reply), dict) else "it does not speak OSV's protocol"
    except HTTPError as error:
        return f"HTTP {error.code}"
    except (OSError, ValueError, HTTPException) as error:
        return str(getattr(error, "reason", error))


def tell(dependencies: list[dict[str, object]]) -> int:
    checked = [one for one in dependencies if "vulns" in one]
    skipped = [one for one in dependencies if "vulns" not in one]
    print(f"AUDIT: {len(checked)} packages checked, {len(skipped)} could not be.")
    for one in skipped:
        print(f"AUDIT: not checked: {one['name']} ({one.get('skip_reason')})")
    found = [(one, vulnerability) for one in checked for vulnerability in one["vulns"]]  # type: ignore[attr-defined]
    for one, vulnerability in found:
        mended = ", ".join(vulnerability["fix_versions"]) or "no version yet"
        print(f"AUDIT: VULNERABLE: {one['name']} {one['version']}: {vulnerability['id']}, mended in {mended}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(os.environ.get("AUDIT_SERVICE", SERVICE)))
