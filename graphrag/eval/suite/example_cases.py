"""Test cases to begin with, of this project's own texts."""

from graphrag.eval.suite.evaluation import TestCase

_MILL = (
    "Marta Lindqvist runs the paper mill of Sorrento Falls. The mill takes its water from the "
    "Aller River and sells to the Halden Press."
)
_TRAMWAY = (
    "Die Ingenieurin Greta Anders plante die Bergbahn von Oberlauf. Bezahlt hat sie die "
    "Sparkasse Oberlauf."
)
_OBSERVATORY = (
    "El Observatorio Cerro Blanco fue fundado por Lucía Ferrer. Desde 1962 trabaja allí el "
    "astrónomo Pedro Salas."
)


def create_entity_extraction_test_cases() -> list[TestCase]:
    """Return three texts, English, German and Spanish, with the names that stand in them."""
    texts = (
        (
            "The paper mill",
            "en",
            _MILL,
            ["Marta Lindqvist", "Sorrento Falls", "Aller River", "Halden Press"],
        ),
        (
            "The mountain railway",
            "de",
            _TRAMWAY,
            ["Greta Anders", "Oberlauf", "Sparkasse Oberlauf"],
        ),
        (
            "The observatory",
            "es",
            _OBSERVATORY,
            ["Observatorio Cerro Blanco", "Lucía Ferrer", "Pedro Salas"],
        ),
    )
    return [
        TestCase(
            id=f"entity_{number:03}",
            name=name,
            description="Every name of a short text is found, and nothing else",
            input_data={"text": text, "language": language},
            expected_output={"entities": entities, "max_processing_time": 2.0},
            metadata={"language": language},
        )
        for number, (name, language, text, entities) in enumerate(texts, 1)
    ]


def create_query_response_test_cases() -> list[TestCase]:
    """Return three questions on the same texts, with the words that an answer must hold."""
    questions = (
        (
            "Who runs the mill",
            "en",
            "Who runs the paper mill of Sorrento Falls, and to whom does it sell?",
            ["Marta Lindqvist", "Halden Press"],
            ["owner of the mill", "its customer, a press"],
            _MILL,
        ),
        (
            "Who paid for the railway",
            "de",
            "Wer plante die Bergbahn von Oberlauf, und wer bezahlte sie?",
            ["Greta Anders", "Sparkasse"],
            ["Planung durch die Ingenieurin", "Bezahlung durch die Sparkasse"],
            _TRAMWAY,
        ),
        (
            "Who founded the observatory",
            "es",
            "¿Quién fundó el Observatorio Cerro Blanco y quién trabaja allí?",
            ["Lucía Ferrer", "Pedro Salas"],
            ["la fundadora Lucía Ferrer", "el astrónomo Pedro Salas"],
            _OBSERVATORY,
        ),
    )
    return [
        TestCase(
            id=f"query_{number:03}",
            name=name,
            description="The answer names everyone who is asked for",
            input_data={
                "query": query,
                "language": language,
                "context": {"language": language, "text": text},
            },
            expected_output={"keywords": keywords, "aspects": aspects, "max_processing_time": 5.0},
            metadata={"language": language},
        )
        for number, (name, language, query, keywords, aspects, text) in enumerate(questions, 1)
    ]
