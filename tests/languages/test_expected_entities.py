"""Expected entities and aliases of datasets in many languages, against the titles of an index."""

import pytest
from support.answers import answer
from support.language_worlds import LANGUAGES, NAMED, NAMES, World, read_world

from graphrag.eval.config.sections import MeasuresSettings
from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.metrics.entities import (
    FoldedNames,
    NameRule,
    fold_name,
    score_entities,
    score_relationships,
)
from graphrag.eval.metrics.failure_stage import trace_loss
from graphrag.eval.metrics.index_view import IndexView
from graphrag.eval.metrics.measures import measure
from graphrag.eval.metrics.quote_matching import inflection_of, phrase_key
from graphrag.eval.suite import EntityExtractionEvaluator, TestCase
from graphrag.eval.types.query_results import Retrieved
from graphrag.query.index.tables import IndexTables
from graphrag.text.languages import Languages

# A name of a language's world, and what a dataset may call it.
FORMS = [
    ("ru", "miller", "Анны Гариной"),
    ("ru", "island", "Чаячьем острове"),
    ("ru", "workshop", "Севертку"),
    ("uk", "miller", "Ганною Горенко"),
    ("uk", "festival", "Свята ліхтарів"),
    ("pl", "village", "Wierzbowcu"),
    ("fi", "river", "Hopeajoella"),
    ("fi", "island", "Lokkisaaren"),
    ("fi", "miller", "Anni Harjulan"),
    ("tr", "miller", "Işıl Kaya'nın"),
    ("tr", "island", "Martı Adası’nda"),
    ("tr", "village", "SÖĞÜTLÜ’DEN"),
    ("ko", "village", "버들마을은"),
    ("ko", "miller", "한예린이"),
    ("ko", "ship", "제비호를"),
    ("hi", "festival", "दीपक मेले"),
    ("hi", "workshop", "उत्तरी करघे"),
    ("hi", "island", "बगुले टापू"),
    ("hu", "village", "Fűzfarévben"),
    ("ar", "village", "للصفصافة"),
    ("he", "keeper", "לטוביה"),
]


def view_of(world: World, without: str = "") -> IndexView:
    tables = world.tables()
    tables["entities"] = tables["entities"][tables["entities"]["id"] != without]
    return IndexView(IndexTables(**tables))


def recalls(view: IndexView, expected: str, shown: str, aliases: dict[str, str] | None = None):
    """Return both recalls of an answer that was shown one entity."""
    sample = Sample("s1", "a", "?", "!", expected_entities=(expected,))
    result = answer("local", "", retrieved=Retrieved("local", entities=(shown,)))
    values = measure(sample, result, view, MeasuresSettings(aliases=aliases or {})).values
    return values["indexed_entity_recall"], values["retrieved_entity_recall"]


@pytest.mark.parametrize(("language", "name", "form"), FORMS)
def test_an_expected_entity_may_have_an_ending_or_a_particle(language, name, form):
    world = read_world(language)
    title = world.names[name].upper()
    assert recalls(view_of(world), form, title) == (1, 1)
    assert recalls(view_of(world, without=name), form, "1874") == (0, 0)
    if language not in ("ko", "ar", "he"):  # a model may take a name from a text with its ending
        assert recalls(view_of(world), world.names[name], form.upper()) == (1, 1)


@pytest.mark.parametrize(("language", "name", "form"), FORMS)
def test_an_alias_may_have_an_ending_or_a_particle(language, name, form):
    world = read_world(language)
    title, view = world.names[name], view_of(world)
    assert recalls(view, "1874", title, {"1874": form}) == (1, 1)
    assert recalls(view, form, "1874", {title: "1874"}) == (1, 1)


@pytest.mark.parametrize(("language", "name", "form"), FORMS)
def test_an_entity_with_an_ending_is_not_lost_in_the_extraction(language, name, form):
    world = read_world(language)
    sample = Sample("s1", "a", "?", "!", evidence=(world.passages[0],), expected_entities=(form,))
    lost = answer("local", "", retrieved=Retrieved("local", ()), correctness=0)
    for without, stage in (("", "retrieved"), (name, "extracted")):
        view = view_of(world, without)
        assert trace_loss(sample, lost, view, needed=("extracted",)).first_break == stage


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_as_their_passages_have_them_are_found_and_are_no_others(language):
    world, inflection = read_world(language), inflection_of(language)
    languages = Languages.named([language])
    titles = {name: fold_name(world.names[name].upper()) for name in NAMES}
    known = FoldedNames(titles.values(), languages)
    others = {n: FoldedNames(set(titles.values()) - {t}, languages) for n, t in titles.items()}
    for passage, names in zip(world.passages, NAMED, strict=True):
        words = phrase_key(passage).split()
        for name in names:
            own = phrase_key(titles[name]).split()
            spans = [words[at : at + len(own)] for at in range(len(words))]
            forms = {
                " ".join(span)
                for span in spans
                if len(span) == len(own)
                and (span == own or (inflection and inflection.distance(own, span) is not None))
            }
            assert forms, (passage, name)
            for form in forms:
                key = form.replace("^", "")
                assert [*known.find(key)] == [titles[name]], form
                assert not others[name].find(key), form
    for name, title in titles.items():
        assert not others[name].find(title), title


@pytest.mark.parametrize(
    ("language", "name", "other"),
    [
        ("fi", "Anna", "Annika"),
        ("fi", "Kaisa", "Kaisaniemi"),
        ("ru", "Иван", "Иваново"),
        ("ru", "Волга", "Волгоград"),
        ("tr", "Kaya", "Kayseri"),
        ("tr", "Selim", "Selimiye"),
        ("pl", "Karol", "Karolina"),
        ("pl", "Nowak", "Nowakowski"),
        ("hu", "Péter", "Péterfi"),
        ("cs", "Karel", "Karolina"),
        ("de", "Anna", "Annika"),
        ("ko", "박지", "박지은"),
        ("ko", "삼성", "삼성전자"),
    ],
)
def test_a_name_that_begins_as_another_one_is_another(language, name, other):
    languages = Languages.named([language])
    assert not FoldedNames([name.upper()], languages).find(fold_name(other))
    assert not FoldedNames([other.upper()], languages).find(fold_name(name))


def test_names_in_english_are_compared_as_they_are():
    english = Languages.named(["en"])
    titles = FoldedNames(["MARTA QUILL", "LANTERN", "ОСТРОВ"], english)
    for form in ("Marta Quills", "Lanterns", "Marta Quill's", "Lantern."):
        assert not titles.find(fold_name(form))
    assert titles.find(fold_name("острова"))
    korean = FoldedNames(["SAMSUNG", "삼성"], Languages.named(["ko"]))
    assert not korean.find("samsungs")
    assert korean.find("삼성의")


def test_forms_of_one_name_count_once():
    rule = NameRule({"Аня": "Анна Гарина"}, Languages.named(["ru"]))
    score = score_entities(["АНЕ", "ЯСЕНКА"], ["Анной Гариной", "Анна Гарина", "Вербиново"], rule)
    assert (score.n_found, score.n_expected, score.n_matched) == (2, 2, 1)
    assert (score.missed, score.unexpected) == (("вербиново",), ("ясенка",))
    pairs = score_relationships([("АННА ГАРИНА", "ЯСЕНКА")], [("Ясенке", "Анну Гарину")], rule)
    assert (pairs.n_matched, pairs.n_found, pairs.n_expected) == (1, 1, 1)


async def test_a_suite_compares_names_in_the_languages_of_its_text():
    world = read_world("ru")
    found = {"extracted_entities": [world.names[name].upper() for name in ("miller", "town")]}
    expected = {"entities": ["Анны Гариной", "Ясенке"]}
    case = TestCase("c1", "a name", "a text", {"text": world.passages[0]}, expected)
    assert (await EntityExtractionEvaluator().evaluate(case, found)).score == 1
    extraction = view_of(world).extraction()
    rule = NameRule(languages=extraction.languages)
    assert score_entities(extraction.entities, expected["entities"], rule).recall == 1
