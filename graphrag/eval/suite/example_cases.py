"""Test cases to begin with, of this project's own texts."""

from graphrag.eval.suite.evaluation import TestCase

# Language, text, the names that stand in it; a question on it, keywords and aspects of its answer.
_TEXTS = (
    (
        "en",
        "Marta Lindqvist runs the paper mill of Sorrento Falls. The mill takes its water from the "
        "Aller River and sells to the Halden Press.",
        ("Marta Lindqvist", "Sorrento Falls", "Aller River", "Halden Press"),
        "Who runs the paper mill of Sorrento Falls, and to whom does it sell?",
        ("Marta Lindqvist", "Halden Press"),
        ("owner of the mill", "its customer, a press"),
    ),
    (
        "de",
        "Die Ingenieurin Greta Anders plante die Bergbahn von Oberlauf. Bezahlt hat sie die "
        "Sparkasse Oberlauf.",
        ("Greta Anders", "Oberlauf", "Sparkasse Oberlauf"),
        "Wer plante die Bergbahn von Oberlauf, und wer bezahlte sie?",
        ("Greta Anders", "Sparkasse"),
        ("Planung durch die Ingenieurin", "Bezahlung durch die Sparkasse"),
    ),
    (
        "es",
        "El Observatorio Cerro Blanco fue fundado por Lucía Ferrer. Desde 1962 trabaja allí el "
        "astrónomo Pedro Salas.",
        ("Observatorio Cerro Blanco", "Lucía Ferrer", "Pedro Salas"),
        "¿Quién fundó el Observatorio Cerro Blanco y quién trabaja allí?",
        ("Lucía Ferrer", "Pedro Salas"),
        ("la fundadora Lucía Ferrer", "el astrónomo Pedro Salas"),
    ),
)


def create_entity_extraction_test_cases() -> list[TestCase]:
    """Return three texts, English, German and Spanish, with the names that stand in them."""
    return [
        TestCase(
            id=f"entity_{number:03}",
            name=f"The names of a text ({language})",
            description="Every name of a short text is found, and nothing else",
            input_data={"text": text, "language": language},
            expected_output={"entities": list(names), "max_processing_time": 2.0},
            metadata={"language": language},
        )
        for number, (language, text, names, _, _, _) in enumerate(_TEXTS, 1)
    ]


def create_query_response_test_cases() -> list[TestCase]:
    """Return three questions on the same texts, with the words that an answer must hold."""
    return [
        TestCase(
            id=f"query_{number:03}",
            name=query,
            description="The answer names everyone who is asked for",
            input_data={
                "query": query,
                "language": language,
                "context": {"language": language, "text": text},
            },
            expected_output={
                "keywords": list(keywords),
                "aspects": list(aspects),
                "max_processing_time": 5.0,
            },
            metadata={"language": language},
        )
        for number, (language, text, _, query, keywords, aspects) in enumerate(_TEXTS, 1)
    ]
