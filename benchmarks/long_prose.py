"""Made-up English prose in which names recur, with facts to ask about; the same for the same seed.

Names follow Zipf's law, and there are more of them the longer the text is (Heaps' law); each
chapter has a cast of its own. About every 1,500 characters a sentence states a fact that stands
nowhere else, and a question asks for it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass


def _words(listed: str) -> list[str]:
    return listed.split()


_FIRST = _words(
    "Agnes Albert Beatrice Bernard Caroline Clement Dorothea Edmund Eleanor Ferdinand Florence "
    "Gilbert Harriet Hector Imogen Josephine Julian Katherine Lambert Lucinda Magnus Matilda "
    "Nathaniel Octavia Oswald Philippa Quentin Rosalind Rupert Sabina Silas Theodora Tobias "
    "Ursula Valentine Winifred"
)
_SURNAME_STARTS = _words(
    "Al Ash Bar Black Bren Cal Carl Crom Dal Den Fair Fen Gar Glen Hal Har Hol Kel Lang Lock Mar "
    "Mer Nor Oak Pem Pren Rad Red Sel Shel Stan Thorn Ver Wal Wes Whit Win Wood"
)
_SURNAME_ENDS = _words(
    "bourne broke burn by combe cott den don field grave ham holt ingham land ley low man more "
    "ridge ser shaw stead stone ter thorpe ton vell wall way well wick worth"
)
_PLACE_ENDS = _words("bridge burgh bury dale ford gate haven mouth port stoke vale wich")
_HOUSES = _words("Museum Society Bank College Company Guild Hospital Library Theatre Trust")
_OBJECTS = _words(
    "astrolabe barometer bell casket chalice chart clock compass diary globe goblet harp ledger "
    "lantern locket manuscript mirror pendant portrait pistol ring sextant spyglass tapestry "
    "telescope trunk violin"
)
_KINDS = _words(
    "amber brass bronze carved copper cracked ebony enamelled engraved gilded green ivory jade "
    "lacquered leather painted pearl pewter scarlet silver stolen tarnished walnut wooden"
)
_SEASONS = ("spring", "summer", "autumn", "winter")
_MANNER = (
    "quietly",
    "slowly",
    "reluctantly",
    "without a word",
    "cheerfully",
    "with some irritation",
    "at once",
    "after a long pause",
    "with a shrug",
)
_THINGS = (
    "the price of corn",
    "a letter that had been opened before",
    "the repairs to the roof",
    "an unpaid account",
    "the drawings for the new harbour",
    "a quarrel that nobody wished to mention",
    "the missing keys",
    "the verdict of the court",
    "a horse that could not be sold",
    "the plans for the evening",
    "an old photograph",
    "the weather on the coast",
)
_NAMED = (
    "{a} met {b} in {p} and spoke {m} about {t}.",
    "{a} told {b} that {t} could wait until morning.",
    "When {a} came back from {p}, {b} was already at the door.",
    "{a} had known {b} since their years at the {h}.",
    "In {p} the name of {a} was seldom mentioned without that of {b}.",
    "{a} wrote to the {h} and asked {m} for {t}.",
    "{b} followed {a} through the streets of {p} until the lamps were lit.",
    "{a} laughed, and {b} put {t} back into the drawer.",
    "Nobody at the {h} believed what {a} said about {t}.",
    "{a} left {p} with {b} on the last train and did not look back.",
    "At the {h}, {a} waited {m} for {b}.",
    "{a} owed {b} a favour, and both of them knew it.",
)
_PLAIN = (
    "The rain had not stopped since noon, and the road was hardly to be seen.",
    "There was a fire in the grate, but nobody had thought of the lamps.",
    "It was the kind of evening on which one says more than one means.",
    "Somebody had left {t} on the table, beside the remains of the supper.",
    "For a while they talked about {t}, and then they did not talk at all.",
    "The clerk counted the money twice and shook his head.",
    "Down by the water the boats lay close together, and the ropes were stiff with frost.",
    "He answered {m} that {t} was no business of his.",
    "She folded the paper and put it away {m}.",
    "Years later it seemed to all of them that the matter had been settled then.",
    "The door stood open, and a draught moved the curtains.",
    "That left {t}, which nobody wanted to speak of.",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that stands in one place of the text, and a question that it answers."""

    question: str
    answer: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents, and the facts in them in their order."""

    documents: tuple[str, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class _World:
    """All names that a corpus may mention, the commonest first."""

    people: list[str]
    places: list[str]
    houses: list[str]


def write_corpus(n_documents: int, n_characters: int, seed: int = 7, lines: bool = True) -> Corpus:
    """Write documents of at least so many characters each.

    Parameters
    ----------
    n_documents, n_characters : int
        How many documents (>= 1), and the least length of each (>= 1).
    seed : int
    lines : bool
        Whether paragraphs end with an empty line; otherwise a document is one single line.
    """
    chance = random.Random(seed)
    world = _make_world(n_documents * n_characters / 1e6, chance)
    facts = _make_facts(world, chance)
    documents: list[str] = []
    told: list[Fact] = []
    for _ in range(n_documents):
        paragraphs: list[str] = []
        length = 0
        while length < n_characters:
            fact = next(facts)
            chapter = _write_paragraphs(world, fact, chance)
            told.append(fact)
            paragraphs += chapter
            length += sum(len(each) + 2 for each in chapter)
        documents.append(("\n\n" if lines else " ").join(paragraphs))
    return Corpus(tuple(documents), tuple(told))


def _make_world(megabytes: float, chance: random.Random) -> _World:
    n_people = 40 + round(160 * megabytes**0.6)
    surnames = [start + end for start in _SURNAME_STARTS for end in _SURNAME_ENDS]
    towns = [start + end for start in _SURNAME_STARTS for end in _PLACE_ENDS]
    people = [f"{first} {last}" for first in _FIRST for last in chance.sample(surnames, 80)]
    chance.shuffle(people)
    chance.shuffle(towns)
    places = towns[: 10 + n_people // 8]
    houses = [f"{place} {kind}" for place in places for kind in chance.sample(_HOUSES, 2)]
    chance.shuffle(houses)
    return _World(people[:n_people], places, houses)


def _make_facts(world: _World, chance: random.Random) -> Iterator[Fact]:
    """Yield facts; no person sells the same thing twice."""
    sold: set[tuple[str, str]] = set()
    while True:
        seller, buyer = chance.sample(world.people, 2)
        thing = f"{chance.choice(_KINDS)} {chance.choice(_OBJECTS)}"
        if (seller, thing) in sold:
            continue
        sold.add((seller, thing))
        season, year = chance.choice(_SEASONS), chance.randint(1702, 1899)
        place, price = chance.choice(world.places), chance.randint(11, 990)
        yield Fact(
            question=f"To whom did {seller} sell the {thing}?",
            answer=f"To {buyer}",
            sentence=f"In the {season} of {year}, {seller} sold the {thing} to {buyer} in {place} "
            f"for {price} crowns.",
        )


def _write_paragraphs(world: _World, fact: Fact, chance: random.Random) -> list[str]:
    """Write about 1,500 characters with one cast, a fact among them."""
    cast = _draw(world.people, 4, chance)
    places, houses = _draw(world.places, 2, chance), _draw(world.houses, 2, chance)
    sentences: list[str] = []
    for _ in range(20):
        form = chance.choice(_NAMED if chance.random() < 0.5 else _PLAIN)
        first, second = chance.sample(cast, 2)
        said = form.format(
            a=first,
            b=second,
            p=chance.choice(places),
            h=chance.choice(houses),
            m=chance.choice(_MANNER),
            t=chance.choice(_THINGS),
        )
        sentences.append(said[0].upper() + said[1:])
    sentences.insert(chance.randrange(len(sentences)), fact.sentence)
    return [" ".join(sentences[at : at + 7]) for at in range(0, len(sentences), 7)]


def _draw(names: list[str], count: int, chance: random.Random) -> list[str]:
    """Draw different names, the first of the list most often."""
    found: dict[str, None] = {}
    while len(found) < min(count, len(names)):
        rank = int(len(names) ** chance.random()) - 1
        found[names[min(rank, len(names) - 1)]] = None
    return list(found)
