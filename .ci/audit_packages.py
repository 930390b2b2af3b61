"""Ask PyPI's advisory service about every package of a list; a known weakness fails the build.

Run as ``python .ci/audit_packages.py PIP_AUDIT PACKAGES``: the program and a file with a line
``name==version`` a package. Where the service does not answer the build goes on, and says so: an
audit that did not happen must not look like one that found nothing.
"""

import json
import subprocess
import sys
from typing import Any

ALLOWED: dict[str, str] = {}
"""Advisory -> why it does not concern this project, and until when that is looked at again."""

LONGEST_S = 120


def main(pip_audit: str, packages: str) -> int:
    """Print what is known of the packages and return the exit code."""
    flags = ["--no-deps", "--disable-pip", "--format=json", "--progress-spinner=off"]
    command = [pip_audit, f"--requirement={packages}", "--timeout=10", *flags]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
        told: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError) as error:
        return _not_run(f"the advisory service gave no answer ({type(error).__name__})")
    return report(told)


def report(told: list[dict[str, Any]]) -> int:
    """Print what the service told of each package, and return the exit code."""
    audited = [package for package in told if "skip_reason" not in package]
    if not audited:
        return _not_run(f"the advisory service knows none of {len(told)} packages")
    found = {
        weakness["id"]: f"{package['name']} {package['version']}, {weakness['id']}"
        f" (fixed in {', '.join(weakness['fix_versions']) or 'no release'})"
        for package in audited
        for weakness in package["vulns"]
    }
    for name in sorted(found.keys() & ALLOWED.keys()):
        _say(f"Known and allowed: {found[name]}: {ALLOWED[name]}")
    for name in sorted(ALLOWED.keys() - found.keys()):
        _say(f"No longer found, take it off the list: {name}")
    wrong = sorted(found.keys() - ALLOWED.keys())
    for name in wrong:
        _say(f"Known weakness: {found[name]}")
    skipped = len(told) - len(audited)
    rest = f", {skipped} the service does not know" if skipped else ""
    _say(f"Audited {len(audited)} packages{rest}; {len(wrong)} with a known weakness to be mended.")
    return 1 if wrong else 0


def _not_run(why: str) -> int:
    _say(f"THE DEPENDENCY AUDIT WAS NOT RUN: {why}. Nothing is known of weaknesses.")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
