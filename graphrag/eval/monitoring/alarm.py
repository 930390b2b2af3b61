"""An alarm on its way out: as JSON, in a file, to a webhook."""

import json
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from graphrag.eval.errors import UsageError
from graphrag.eval.monitoring.watch import LEVEL, WatchState, describe_figure
from graphrag.eval.store.records import now

_TIMEOUT_S = 10.0


def describe_alarm(state: WatchState, embedded_models: str | None = None) -> dict[str, Any]:
    """Return an alarm as JSON-ready values.

    Returns
    -------
    dict
        ``alarm`` true, ``message`` (one sentence), ``raised_at`` (ISO 8601, UTC), ``baseline``,
        ``level``, ``round``, ``pass``, ``falls`` (when each first fell), ``figures`` (of the
        latest round), ``embedded_models``.
    """
    fallen = ", ".join(f"{fall.method} {fall.metric}" for fall in state.falls)
    return {
        "alarm": True,
        "message": f"{fallen} fell against run {state.baseline} (level {100 * LEVEL:g} % over all "
        f"looks): {'; '.join(describe_figure(fall) for fall in state.falls)}.",
        "raised_at": now(),
        "baseline": state.baseline,
        "level": LEVEL,
        "round": state.round_number,
        "pass": state.pass_number,
        "falls": [asdict(fall) for fall in state.falls],
        "figures": [asdict(figure) for figure in state.figures],
        "embedded_models": embedded_models,
    }


def check_webhook(url: str) -> None:
    """Check an address before anything is paid for; raises UsageError if it is none."""
    try:
        parts = urlsplit(url)
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_fit = False
    if not is_fit:
        msg = "--webhook takes an address that begins with http:// or https://."
        raise UsageError(msg)


def post_alarm(url: str, alarm: Mapping[str, Any], timeout_s: float = _TIMEOUT_S) -> str | None:
    """Send an alarm to a webhook; return one sentence when that failed, else None.

    The sentence names the host alone: the rest of such an address is often a secret.
    """
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    headers = {"Content-Type": "application/json"}
    if user:  # in the address urllib takes the password for a port, and says so in its error
        headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
    url = urlunsplit(parts._replace(netloc=host))
    request = urllib.request.Request(
        url,
        data=json.dumps(alarm, ensure_ascii=False, allow_nan=False).encode(),
        headers=headers,
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_s):
            return None
    except urllib.error.HTTPError as error:
        why = f"it answered {error.code}"
    except TimeoutError:
        why = f"no answer within {timeout_s:g} s"
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        timed_out = isinstance(reason, TimeoutError)
        why = f"no answer within {timeout_s:g} s" if timed_out else f"{reason}".replace(url, host)
    return f"The webhook at {host} could not be told of the alarm: {why}."
