"""How long the validation of a large index takes, and how much memory, next to reading its tables.

Writes an index of made-up tables, then runs two processes of their own in turn: one that validates
it, and one that only reads the same columns of the same files.
"""

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import lancedb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphrag.eval.validation.validators import validate_index

_COLUMNS = {
    "documents": ["id", "text", "text_unit_ids"],
    "text_units": ["id", "text", "document_id", "n_tokens", "entity_ids"],
    "entities": ["id", "title", "type", "text_unit_ids"],
    "relationships": ["id", "source", "target", "description", "text_unit_ids"],
}
_SETTINGS = """\
completion_models:
  default_completion_model: {type: offline, model_provider: offline, model: rules}
embedding_models:
  default_embedding_model:
    {type: offline, model_provider: offline, model: hashed-ngrams, dimensions: 384}
vector_store: {vector_size: 8}
embed_text: {names: [entity_description]}
"""
_UNITS_A_DOCUMENT = 100
_WORDS_A_UNIT = 200
_OVERLAP_WORDS = 30


def write_index(root: Path, n_entities: int, n_relationships: int) -> None:
    """Write the tables of a sound index, with a text unit for every five entities."""
    chance = np.random.default_rng(7)
    n_documents = max(1, n_entities // 5 // _UNITS_A_DOCUMENT)
    n_units = n_documents * _UNITS_A_DOCUMENT
    (root / "output").mkdir(parents=True)
    (root / "settings.yaml").write_text(_SETTINGS)
    unit_ids = pa.array([hashlib.sha512(str(i).encode()).hexdigest() for i in range(n_units)])
    entity_ids = pa.array([_uuid("entity", i) for i in range(n_entities)])
    titles = np.array([f"PERSON {i} OF {_word(i)}" for i in range(n_entities)])
    _write_texts(root, unit_ids, entity_ids, n_documents)
    _write(
        root,
        "entities",
        id=entity_ids,
        title=titles,
        type=np.array(["PERSON", "PLACE", "EVENT"])[chance.integers(0, 3, n_entities)],
        description=[
            f"{title} was seen by {i % 97} people in town." for i, title in enumerate(titles)
        ],
        text_unit_ids=_lists(unit_ids.take(chance.integers(0, n_units, 3 * n_entities)), 3),
    )
    ends = chance.integers(0, n_entities, (2, n_relationships))
    _write(
        root,
        "relationships",
        id=[_uuid("relationship", i) for i in range(n_relationships)],
        source=titles[ends[0]],
        target=titles[ends[1]],
        description=[
            f"They met {i} times on the way to the market of the old town." for i in ends[0]
        ],
        weight=np.ones(n_relationships),
        text_unit_ids=_lists(unit_ids.take(chance.integers(0, n_units, n_relationships)), 1),
    )
    vectors = pa.FixedSizeListArray.from_arrays(chance.random(8 * n_entities, np.float32), 8)
    stored = pa.table({"id": entity_ids, "vector": vectors})
    lancedb.connect(str(root / "output" / "lancedb")).create_table("entity_description", stored)


def _write_texts(root: Path, unit_ids, entity_ids, n_documents: int) -> None:
    texts, units = [], []
    step = _WORDS_A_UNIT - _OVERLAP_WORDS
    for document in range(n_documents):
        n_words = step * (_UNITS_A_DOCUMENT - 1) + _WORDS_A_UNIT
        words = [_word(document * n_words + i) for i in range(n_words)]
        texts.append(" ".join(words))
        units += [
            " ".join(words[step * i : step * i + _WORDS_A_UNIT]) for i in range(_UNITS_A_DOCUMENT)
        ]
    document_ids = np.array([_uuid("document", i) for i in range(n_documents)])
    _write(
        root,
        "documents",
        id=document_ids,
        title=[f"{i}.txt" for i in range(n_documents)],
        text=texts,
        text_unit_ids=_lists(unit_ids, _UNITS_A_DOCUMENT),
    )
    _write(
        root,
        "text_units",
        id=unit_ids,
        text=units,
        n_tokens=np.full(len(units), 300),
        document_id=np.repeat(document_ids, _UNITS_A_DOCUMENT),
        entity_ids=_lists(
            entity_ids.take(np.resize(np.arange(len(entity_ids)), 15 * len(units))), 15
        ),
    )


def _word(number: int) -> str:
    syllables = ("ba", "ke", "li", "mo", "nu", "ra", "so", "ti")
    return "".join(syllables[number * 2654435761 % 2**32 >> shift & 7] for shift in (5, 11, 17))


def _uuid(kind: str, number: int) -> str:
    digest = hashlib.md5(f"{kind}{number}".encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


def _lists(values, size: int) -> pa.Array:
    offsets = np.arange(0, len(values) + 1, size, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _write(root: Path, name: str, **columns) -> None:
    pq.write_table(pa.table(columns), root / "output" / f"{name}.parquet")


def run_here(what: str, root: Path, sizes: tuple[int, int]) -> None:
    """Do one of the three in this process and print seconds and peak memory as JSON."""
    begin = time.perf_counter()
    failed = 0
    if what == "write":
        write_index(root, *sizes)
    elif what == "validate":
        report = validate_index(root)
        failed = report.failed_checks
    else:
        for name, columns in _COLUMNS.items():
            pq.read_table(root / "output" / f"{name}.parquet", columns=columns)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
    print(json.dumps({"seconds": seconds, "peak_gb": peak / 1e9, "failed": failed}))


def measure(what: str, root: Path, sizes: tuple[int, int]) -> dict[str, float]:
    """Do one of the three in a process of its own.

    This process must stay small: Linux counts the peak of the process that starts another one as
    the other one's.
    """
    n_entities, n_relationships = map(str, sizes)
    command = [sys.executable, __file__, "--run", what, "--root", str(root)]
    command += ["--entities", n_entities, "--relationships", n_relationships]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--relationships", type=int, default=3_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--run", choices=["write", "validate", "read"], help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = (options.entities, options.relationships)
    if options.run:
        run_here(options.run, options.root, sizes)
        return
    with TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        measure("write", root, sizes)
        best: dict[str, dict[str, float]] = {}
        for _ in range(options.repeats):
            for what in ("read", "validate"):
                found = measure(what, root, sizes)
                if what not in best or found["seconds"] < best[what]["seconds"]:
                    best[what] = found
    read, validated = best["read"], best["validate"]
    print(
        f"{options.entities} entities, {options.relationships} relationships: validated in "
        f"{validated['seconds']:.1f} s with a peak of {validated['peak_gb']:.2f} GB "
        f"({validated['failed']} checks failed); reading the same columns alone takes "
        f"{read['seconds']:.1f} s and {read['peak_gb']:.2f} GB: "
        f"x{validated['seconds'] / read['seconds']:.1f} the time, "
        f"x{validated['peak_gb'] / read['peak_gb']:.2f} the memory "
        f"(best of {options.repeats} runs each)"
    )


if __name__ == "__main__":
    main()
