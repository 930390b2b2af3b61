"""Removes a model's thoughts from its replies, complete or streamed.

Reasoning models write thoughts in tags into the reply if their server doesn't send them apart. Some
models' templates open the thoughts themselves, so that only the closing tag is in the reply.
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


def _find_tags(text: str, prompt: str) -> Iterator[_Tag]:
    """Yield the tags of thoughts, without tags that the text only mentions."""
    for match in _TAG.finditer(text):
        before, after = text[: match.start()][-1:], text[match.end() :][:1]
        is_quoted = bool(before and after) and before in _QUOTES and after in _QUOTES
        is_inside = not (before in ("", "\n") or after in ("", "\n", "\r"))
        if not is_quoted and not (is_inside and match.group() in prompt):
            yield _Tag(match.start(), match.end(), match.lastgroup == "open")


def lone_ends(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of closing tags in a text that opens no thoughts itself."""
    return [(tag.start, tag.end) for tag in _find_tags(text, "") if not tag.opens]


def without_opened(text: str) -> str:
    """Return a reply without the thoughts that it opens with; "" if they are not closed."""
    while (tag := next(_find_tags(text, ""), None)) and tag.opens and not text[: tag.start].strip():
        rest = text[tag.end :]
        end = next((other for other in _find_tags(rest, "") if not other.opens), None)
        text = "" if end is None else rest[end.end :]
    return text


def begins_in_thoughts(text: str, is_complete: bool) -> bool | None:
    """Say whether the model's template began a reply's thoughts; None if that is not clear.

    ``text`` is the reply to a request without a form, because a form may keep a model from
    thinking; ``is_complete``: whether it was not cut off.
    """
    if lone_ends(without_opened(text)):
        return True
    return False if is_complete and text.strip() else None


def without_thoughts(
    text: str, prompt: str = "", goes_on: bool = False, is_open: bool = False
) -> str:
    """Return a reply without its thoughts; "" if it contains nothing else.

    Thoughts are the text between an opening and a closing tag, the text after an opening tag that
    is never closed and begins a line, and all text before a closing tag that was never opened.
    Quoted tags don't count, nor do tags inside a line that also occur in ``prompt``, the text
    shown to the model. A reply that begins as JSON has no thoughts.

    - ``goes_on``: whether the reply is still being written.
    - ``is_open``: whether the model's template began the thoughts, so that a reply without a
      closing tag is all thoughts.
    """
    if _JSON.match(text):
        return text
    if is_open and not lone_ends(text):
        return ""
    kept: list[str] = []
    begin, opened = 0, None
    for tag in _find_tags(text, prompt):
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
    elif (
        not goes_on and text[: opened.start].rpartition("\n")[2].strip()
    ):  # a tag mentioned in a line
        kept.append(text[opened.start :])
    rest = "".join(kept)
    return rest.lstrip() if len(rest) < len(text) else text


class SpokenText:
    """Passes on a streamed reply without its thoughts.

    If a template may have begun the thoughts (``may_be_open``), nothing but JSON is passed on
    before a closing tag or the end of the reply: until then thoughts look like an answer.
    """

    def __init__(self, prompt: str, may_be_open: bool) -> None:
        self._prompt, self.may_be_open = prompt, may_be_open
        self._received = self.passed_on = ""

    def feed(self, piece: str) -> str:
        """Take the next piece; return the further part of the answer that is known by now."""
        self._received += piece
        text = _HALF_TAG.sub("", self._received)
        is_clear = _JSON.match(text) is not None or bool(lone_ends(text))
        if not text.strip() or (self.may_be_open and not is_clear):
            return ""
        return self._add(without_thoughts(text, self._prompt, goes_on=True))

    def end(self, is_open: bool = False) -> str:
        """Return the rest of the answer at the end of the reply; see :func:`without_thoughts`."""
        return self._add(without_thoughts(self._received, self._prompt, is_open=is_open))

    def _add(self, spoken: str) -> str:
        new = spoken[len(self.passed_on) :] if spoken.startswith(self.passed_on) else ""
        self.passed_on += new
        return new
