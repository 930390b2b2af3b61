"""Takes a model's thoughts off its replies: what stands in thinking tags, or before a closing one.

Models that think before they answer write their thoughts into the reply where their server doesn't
tell the two apart. Templates of some open the thoughts themselves: only the end is in the reply.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAME = r"(?:[\w-]+:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
_TAG = re.compile(
    rf"(?P<open><\s*{_NAME}(?:\s[^<>]*)?>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|think)\|>"
    r"|<\|channel\|>\s*analysis\s*<\|message\|>)"
    rf"|(?P<close><\s*/\s*{_NAME}\s*>|\[/THINK\]|◁/think▷|<\|(?:end_of_thought|/think)\|>"
    r"|(?:<\|end\|>)?(?:<\|start\|>\s*assistant)?<\|channel\|>\s*final\s*<\|message\|>)",
    re.IGNORECASE,
)
_HALF_TAG = re.compile(r"(?:<|\[|◁)[^>\]▷]{0,60}\Z")
_QUOTES = "`'\"“”\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}«»「」"
_JSON = re.compile(r"\s*(?:```[\w-]*\s*)?(?:[{\uff5b]|\[\s*[{\"\]])")


@dataclass(frozen=True, slots=True)
class _Tag:
    start: int
    end: int
    opens: bool


def _find_tags(text: str, material: str) -> Iterator[_Tag]:
    """Yield the tags of thoughts, but not those that the text speaks of."""
    for match in _TAG.finditer(text):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        is_quoted = bool(before and after) and before in _QUOTES and after in _QUOTES
        is_inside = not (before in ("", "\n") or after in ("", "\n", "\r"))
        if not is_quoted and not (is_inside and match.group() in material):
            yield _Tag(match.start(), match.end(), match.lastgroup == "open")


def lone_ends(text: str) -> list[tuple[int, int]]:
    """Return the places of closing tags; ``text`` has no thoughts that it opens itself."""
    return [(tag.start, tag.end) for tag in _find_tags(text, "") if not tag.opens]


def without_opened(text: str) -> str:
    """Return a reply without the thoughts that it opens with; "" while it thinks."""
    while (tag := next(_find_tags(text, ""), None)) and tag.opens and not text[: tag.start].strip():
        rest = text[tag.end :]
        end = next((other for other in _find_tags(rest, "") if not other.opens), None)
        text = "" if end is None else rest[end.end :]
    return text


def begins_in_thoughts(text: str, is_whole: bool) -> bool | None:
    """Say whether the model's template began a reply's thoughts; None if it can't be told.

    ``text`` is the reply to a request without a form, which may have kept the model from thinking;
    ``is_whole``: it was not cut off.
    """
    if lone_ends(without_opened(text)):
        return True
    return False if is_whole and text.strip() else None


def without_thoughts(
    text: str, material: str = "", goes_on: bool = False, is_open: bool = False
) -> str:
    """Return a reply without its thoughts: "" if it holds nothing else.

    Thoughts are what stands between an opening and a closing tag, after an opening tag at the
    beginning of a line that nothing closes, and all before a closing tag that nothing opened. A
    quoted tag is none, nor one within a line that stands in the ``material`` shown to the model. A
    reply that begins as JSON holds none. ``goes_on``: the reply is still being written;
    ``is_open``: the model's template began thoughts, so that without an end it holds nothing else.
    """
    if _JSON.match(text):
        return text
    if is_open and not lone_ends(text):
        return ""
    kept: list[str] = []
    begin, opened = 0, None
    for tag in _find_tags(text, material):
        if opened is not None:
            if not tag.opens:
                begin, opened = tag.end, None
        elif tag.opens:
            kept.append(text[begin : tag.start])
            opened = tag
        else:
            kept, begin = [], tag.end
    if opened is None:
        kept.append(text[begin:])
    elif not goes_on and text[: opened.start].rpartition("\n")[2].strip():  # spoken of in a line
        kept.append(text[opened.start :])
    whole = "".join(kept)
    return whole.lstrip() if len(whole) < len(text) else text


class SpokenText:
    """Hands on a streamed reply without its thoughts.

    Where a template may have begun the thoughts (``may_be_open``), nothing is handed on before a
    closing tag or the end of the reply, except JSON: until then thoughts look as an answer does.
    """

    def __init__(self, material: str, may_be_open: bool) -> None:
        self._material, self.may_be_open = material, may_be_open
        self._received = self.told = ""

    def feed(self, piece: str) -> str:
        """Take the next piece; return what of the reply is known to be spoken since the last."""
        self._received += piece
        text = _HALF_TAG.sub("", self._received)
        is_told_apart = _JSON.match(text) is not None or bool(lone_ends(text))
        if not text.strip() or (self.may_be_open and not is_told_apart):
            return ""
        return self._tell(without_thoughts(text, self._material, goes_on=True))

    def end(self, is_open: bool = False) -> str:
        """Return what is left at the end of the reply; see :func:`without_thoughts`."""
        return self._tell(without_thoughts(self._received, self._material, is_open=is_open))

    def _tell(self, spoken: str) -> str:
        new = spoken[len(self.told) :] if spoken.startswith(self.told) else ""
        self.told += new
        return new
