"""Word lists of the rules, as lexicon.txt has them: general English."""

from pathlib import Path

from graphrag.text.words import word_lists, words_of

_TEXTS = word_lists(Path(__file__).with_name("lexicon.txt"))
_LISTS = {name: words_of(words) for name, words in _TEXTS.items()}
QUESTION_WORDS = _LISTS["question_words"]
"""Words that shape a question and say little about its answer; they count half."""
TITLES = _LISTS["titles"]
PARTICLES = _LISTS["particles"]
PLACE_HEADS = _LISTS["place_heads"]
PLACE_FIRST = _LISTS["place_first"]
ORGANIZATION_HEADS = _LISTS["organization_heads"]
EVENT_HEADS = _LISTS["event_heads"]
OBJECT_HEADS = _LISTS["object_heads"]
PLACE_NAMES = _LISTS["place_names"]
DEMONYMS = _LISTS["demonyms"]
NOT_NAMES = _LISTS["not_names"]
SPEECH_AND_ACTION = _LISTS["speech_and_action"]
MOTION = _LISTS["motion"]

PLACE_BEFORE = {
    word: weight
    for weight, words in {
        2.0: "in into near outside inside",
        1.5: "through across",
        1.0: "towards toward at reach reaches",
        0.7: "from",
        0.5: "leave",
        0.3: "to",
    }.items()
    for word in words.split()
}
