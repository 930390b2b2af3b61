"""Which names are taken for the same entity."""

from pathlib import Path

import pandas as pd
import pytest

from graphrag.eval.validation.validators import validate_index

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
def test_a_twin_is_named(tmp_path, twin):
    (warning,) = warnings_for(tmp_path, [*DISTINCT, "AGNES THORNE", twin])
    assert "2 of 12" in warning
    assert f"'AGNES THORNE' = {twin!r}" in warning


def test_different_names_are_left_alone(tmp_path):
    assert warnings_for(tmp_path, [*DISTINCT, "", "--", "..."]) == []
