"""Which names are taken for the same entity."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag.eval.validation.pipeline import validate_index

SETTINGS = "vector_store: {type: azure_ai_search, url: 'https://localhost'}\n"
DISTINCT = ["C", "C++", "C#", "कि", "का", "PORT MERROW", "PORT MARROW", "ROOM 12", "ROOM 1", "♥"]


def warnings_for(folder: Path, titles: list[str]) -> list[str]:
    output = folder / "output"
    output.mkdir(exist_ok=True)
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    pd.DataFrame({"title": titles}).to_parquet(output / "entities.parquet")
    report = validate_index(folder)
    return [w for w in report.all_warnings() if w.startswith("Near-duplicate")]


@pytest.mark.parametrize(
    "twin",
    [
        "Agnes Thorne",
        "AGNES  THORNE",
        "Thorne, Agnes",
        "AgnesThorne",
        "agnes-thorne",
        "\N{FULLWIDTH LATIN CAPITAL LETTER A}GNES Thorne",
    ],
)
def test_a_twin_is_named(tmp_path: Path, twin: str) -> None:
    (warning,) = warnings_for(tmp_path, [*DISTINCT, "AGNES THORNE", twin])
    assert "2 of 12" in warning
    assert f"'AGNES THORNE' = {twin!r}" in warning


def test_different_names_are_left_alone(tmp_path: Path) -> None:
    assert warnings_for(tmp_path, [*DISTINCT, "", "--", "..."]) == []


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    words=st.lists(
        st.from_regex(r"[A-Z]{2,8}", fullmatch=True), min_size=1, max_size=4, unique=True
    ),
    data=st.data(),
)
def test_order_case_and_punctuation_never_hide_a_twin(
    tmp_path: Path, words: list[str], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(words))
    mark = data.draw(st.sampled_from([" ", "  ", "-", ", ", "_", " / "]))
    twin = mark.join(order).lower()
    assert warnings_for(tmp_path, [" ".join(words), twin, "12345"])
