"""Cut a text into sentences, and learn who speaks where it is written as a script."""

import re
from dataclasses import dataclass

from graphrag.text.words import sentences

_MAX_CUE_WORDS = 4
_MAX_HEADING_WORDS = 12
_HEADING_START = re.compile(r"(?:scene|chapter|act|part)\s+[\divxlc]+\b", re.IGNORECASE)
_SLUG = re.compile(r"^(?:INT|EXT|I/E|CUT|FADE|DISSOLVE|CLOSE|ANGLE|INSERT|MONTAGE|THE END|TITLE)\b")
_PARENTHESIS = re.compile(r"\([^()\n]*\)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and, in a script, the name in the cue line right above it."""

    text: str
    speaker: str | None = None


def read_sentences(text: str) -> list[Sentence]:
    """Sentences of prose or of a script; headings and stage marks are left out.

    Parameters
    ----------
    text : str
        Any text. A line in capitals of at most four words with text below it is read as the
        cue of a speaker, who is credited with the one sentence that follows it.
    """
    found: list[Sentence] = []
    block: list[str] = []
    speaker: str | None = None

    def close() -> None:
        nonlocal speaker
        prose = sentences("\n".join(block))
        if speaker is None and len(prose) == 1 and is_heading(prose[0]):
            prose = []
        for position, sentence in enumerate(prose):
            found.append(Sentence(sentence, speaker if position == 0 else None))
        block.clear()
        if prose:
            speaker = None

    for line in text.splitlines():
        line = line.strip()
        if not line:
            close()
        elif _SLUG.match(line) or _HEADING_START.match(line):
            close()
            speaker = None
        elif _is_cue(line):
            close()
            speaker = _PARENTHESIS.sub("", line).strip().title()
        else:
            bare = _PARENTHESIS.sub("", line).strip() if line[0] == "(" else line
            if bare:
                block.append(bare)
    close()
    return found


def _is_cue(line: str) -> bool:
    bare = _PARENTHESIS.sub("", line).strip()
    if not bare or bare[-1] in "!?,;:-" or bare[0] in "\"“'(":
        return False
    return (
        bare.isupper()
        and len(bare.split()) <= _MAX_CUE_WORDS
        and sum(letter.isalpha() for letter in bare) > 1
        and not any(letter.isdigit() for letter in bare)
    )


def is_heading(sentence: str) -> bool:
    """Whether a line reads like a heading: short, no full stop, mostly capitalised."""
    if _HEADING_START.match(sentence):
        return True
    parts = sentence.split()
    if len(parts) > _MAX_HEADING_WORDS or sentence[-1] in '.!?…"”\u2019。\uff01\uff1f,;':
        return False
    return sum(part[0].isupper() for part in parts) * 2 >= len(parts)
