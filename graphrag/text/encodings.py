"""Decodes bytes by their byte order mark, as UTF-8, or by a guess with its sureness."""

import codecs
import re
from dataclasses import dataclass

_MARKS = (  # UTF-32's mark begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MARKS = tuple(mark for mark, _ in _MARKS)
"""Byte order marks at the beginning of a text, which show its encoding."""
_MOST_SAMPLED = 200_000
_LEAD = 0.1
"""A guess is sure if its score is so much above the score of every other reading."""
_TIE = 0.06
"""Readings in western European encodings count as equal if their scores differ by less."""
_WESTERN = "Windows-1252"
_LANGUAGES = (*("äöüßé", "àâæçéèêëîïôœùûüÿ", "áéíóúüñªº", "áâãàçéêíóôõúªº", "àèéìîòóù", "åäöæøéü"),)
_WESTERN_LETTERS = [frozenset(f"{letters}{letters.upper()}") for letters in _LANGUAGES]
_WORD = re.compile(r"[^\W\d_]+")
_SIGNS = "\u2018\u2019“”„\u2013—…€§°«»¿¡·•™®©£½¼¾²³"
_NOT_WESTERN = re.compile(
    rf"[^\w\s\x00-\x7f{_SIGNS}]|[§°€·•™®©£]{{2}}|[^\W\d_][^\w\s\x00-\x7f·\u2019][^\W\d_]"
    r"|õ(?!e)|Õ(?!e|E)"
)
"""Signs that are rare or occur inside a word, and letters in positions where only Hungarian has
them."""
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
"""Katakana that hardly any text has, but that many a text shows when its encoding is misread."""
_NEARLY_ALL = 0.9
_LEAST_MARKED = 100
"""Bytes beyond ASCII that a sure guess needs, except for a western European text."""


class UnknownEncodingError(ValueError):
    """Raised when a text's encoding can't be detected; the message is a clause with the cause."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Records a guessed encoding; ``sureness`` is 0 to 1, ``word`` an example from the text."""

    encoding: str
    sureness: float
    word: str


def check_encoding(name: str) -> str:
    """Return the name of an encoding.

    Raises ValueError if Python knows no encoding of that name.
    """
    try:
        "".encode(name)
    except (LookupError, ValueError) as error:
        msg = f"there is no encoding {name!r}; names are, for example, gbk, cp949, cp1251 or big5"
        raise ValueError(msg) from error
    return name


def decode(content: bytes, encoding: str | None = None) -> tuple[str, Guess | None]:
    """Return a text, and the guess of its encoding; None if the encoding is known.

    ``encoding`` is one that the user names. Raises UnknownEncodingError if the content is no text
    in it, or no guess is sure.
    """
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    if not marked and not encoding and 0.25 < content.count(0) / max(1, len(content)) < 0.75:
        msg = "half of it are NUL characters, as in utf-16-le or utf-16-be without a mark"
        raise UnknownEncodingError(msg)
    known = marked or encoding or "utf-8"
    try:
        return content.decode(known), None
    except UnicodeDecodeError as error:
        if marked or encoding:
            line = content[: error.start].count(b"\n") + 1
            msg = f"it begins as {known} text, but is none" if marked else f"it is no {known} text"
            raise UnknownEncodingError(f"{msg} (line {line}: {error.reason})") from error
        _check_damaged(content)
    guess = _guess(_sample(content))
    try:
        text = content.decode(guess.encoding)
    except UnicodeDecodeError as error:
        raise UnknownEncodingError(f"it is neither UTF-8 nor {guess.encoding} text") from error
    return text, guess


def _check_damaged(content: bytes) -> None:
    """Raise UnknownEncodingError for UTF-8 text with a few damaged or differently encoded bytes."""
    read = content.decode("utf-8", "replace")
    n_wrong = read.count("\N{REPLACEMENT CHARACTER}")
    n_right = sum(not char.isascii() for char in read) - n_wrong
    if n_right > 2 * n_wrong:
        line = read[: read.index("\N{REPLACEMENT CHARACTER}")].count("\n") + 1
        raise UnknownEncodingError(
            f"it is UTF-8 except for {n_wrong:,} bytes, first in line {line}"
        )


def _sample(content: bytes) -> bytes:
    """Return the lines that are not ASCII, up to a size: only these show the encoding."""
    lines = [line for line in content.split(b"\n") if not line.isascii()]
    return b"\n".join(lines)[:_MOST_SAMPLED]


def _guess(sample: bytes) -> Guess:
    from charset_normalizer import from_bytes

    readable = [m for m in from_bytes(sample) if _decodes(sample, m.encoding)]
    matches = [m for m in readable if _HALF_WIDTH.search(str(m)) is None]
    if not matches:
        raise UnknownEncodingError("it is not UTF-8, and looks like text in no other encoding")
    scores = {match.encoding: match.coherence - match.chaos for match in matches}
    best = max(matches, key=lambda match: scores[match.encoding])
    text = str(best)
    others = [match for match in matches if str(match) != text]
    sureness = round(1 - best.chaos, 2)
    western = sample.decode(_WESTERN) if _decodes(sample, _WESTERN) else ""
    if western and _is_western(western):
        as_western = [scores[m.encoding] for m in matches if str(m) == western]
        if not as_western or max(as_western) >= scores[best.encoding] - _TIE:
            return Guess(_WESTERN, sureness, _find_word(western))
    others = [match for match in matches if str(match) != text]
    lead = min((scores[best.encoding] - scores[m.encoding] for m in others), default=1.0)
    # A script without capitals, such as Hebrew, looks like this if read in a wrong encoding.
    if (
        lead >= _LEAD
        and not _has_no_capitals(text)
        and sum(byte > 127 for byte in sample) >= _LEAST_MARKED
    ):
        return Guess(best.encoding, sureness, _find_word(text))
    names = [best.encoding, *(match.encoding for match in others)]
    readings = [f"{n} ({_find_word(sample.decode(n))!r})" for n in names[:3]]
    if len(readings) == 1:
        raise UnknownEncodingError(
            f"it is not UTF-8, and {readings[0]} is all that fits, but there is too little of it "
            "to be sure"
        )
    raise UnknownEncodingError(f"it is not UTF-8, and may as well be {', '.join(readings)}")


def _decodes(sample: bytes, encoding: str) -> bool:
    try:
        sample.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _is_western(text: str) -> bool:
    """Say whether nearly all words have letters of one western European language alone."""
    letters = [{char for char in word if not char.isascii()} for word in _WORD.findall(text)]
    marked = [own for own in letters if own]
    most = max(sum(own <= known for own in marked) for known in _WESTERN_LETTERS)
    return most >= _NEARLY_ALL * len(marked) and _NOT_WESTERN.search(text) is None


def _has_no_capitals(text: str) -> bool:
    """Say whether a text without any capital has letters that exist as capitals."""
    letters = "".join(char for char in text if not char.isascii())
    return letters.upper() != letters == letters.lower()


def _find_word(text: str) -> str:
    """Return the first word on which the encoding has an effect."""
    return next((word for word in _WORD.findall(text) if not word.isascii()), "")[:40]
