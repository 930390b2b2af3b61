"""``graphrag eval audit``: what is drawn, what is written, and what labels make of it."""

import csv
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.commands import code_of

from graphrag.eval.annotation.audit import (
    Audit,
    AuditItem,
    analyse_audit,
    draw_items,
    read_audited_run,
)
from graphrag.eval.annotation.sheet import read_sheet, write_sheet
from graphrag.eval.cli.judge import import_labels
from graphrag.eval.cli.view import draw_labels
from graphrag.eval.metrics.assertions import AssertionEvaluation, RuledAssertion
from graphrag.eval.results.analysis import analyse
from graphrag.eval.results.human_labels import correct_comparisons, read_labels
from graphrag.eval.results.runs import stored_rows
from graphrag.eval.store.database import EvaluationStore
from graphrag.eval.store.records import Judgement
from graphrag.query.client.usage import Usage

DONE, USAGE = 0, 2
METHODS = ("tog", "basic")


def random_ends(n: int, seed: int = 0) -> dict[str, tuple[int, int]]:
    chance = random.Random(seed)
    return {f"q{i}": (int(chance.random() < 0.7), int(chance.random() < 0.5)) for i in range(n)}


def export(run, metric: str = "correctness", **options: object) -> list[AuditItem]:
    (run.folder / f"audit_{metric}.csv").unlink(missing_ok=True)
    assert code_of(draw_labels, run.place, "latest", metric, **options) == DONE
    return read_sheet(run.folder / f"audit_{metric}.csv")


def name_of(item: AuditItem) -> tuple[str, str]:
    """Return question id and method, which the responses of the tests tell."""
    _, _, question, _, number = item.response.split()
    return question, METHODS[int(number)]


def labelled(items: list[AuditItem], truth: Mapping[tuple[str, str], int]) -> list[AuditItem]:
    return [replace(item, label=truth[name_of(item)]) for item in items]


def analysed(run, items: list[AuditItem]) -> Audit:
    with EvaluationStore(run.folder / "eval.db") as store:
        return analyse_audit(read_audited_run(store, run.run_id, items[0].metric), items)


def written(run) -> dict[str, dict]:
    return json.loads((run.folder / "audit_correctness.json").read_text("utf-8"))


def imported(run, items: list[AuditItem], name: str = "filled.csv") -> int:
    path = run.folder / name
    path.unlink(missing_ok=True)
    write_sheet(path, items)
    return code_of(import_labels, run.place, path)


def test_every_stratum_is_drawn_about_as_often_as_it_occurs(make_run):
    ends = random_ends(200)
    items = export(make_run(ends), questions=80)
    drawn: dict[str, set[str]] = {}
    for item in items:
        drawn.setdefault(item.group, set()).add(item.question.split()[1][:-1])
    assert (sum(map(len, drawn.values())), len(items)) == (80, 160)
    stratum = {q: (n % 2, verdicts) for n, (q, verdicts) in enumerate(ends.items())}
    shares = sorted(80 * size / 200 for size in Counter(stratum.values()).values())
    assert sorted(map(len, drawn.values())) == pytest.approx(shares, abs=1)
    assert all(len({stratum[q] for q in questions}) == 1 for questions in drawn.values())


def test_the_seed_decides_what_is_drawn_and_in_which_order(make_run, capsys):
    run = make_run(random_ends(100))
    first = export(run, questions=59)
    assert "59 questions are too few for corrected means" in capsys.readouterr().err
    assert export(run, questions=59) == first
    assert export(run, questions=59, seed=1) != first
    methods = [name_of(item)[1] for item in first]
    assert methods not in (sorted(methods), ["tog", "basic"] * 59, ["basic", "tog"] * 59)
    capsys.readouterr()
    export(run, questions=60)
    assert "too few" not in capsys.readouterr().err


def test_a_labeller_sees_neither_method_nor_verdict(make_run):
    run = make_run(random_ends(30))
    export(run, questions=30)
    text = (run.folder / "audit_correctness.csv").read_text("utf-8-sig")
    page = (run.folder / "audit_correctness.html").read_text("utf-8")
    header = text.splitlines()[0].replace('"', "").split(",")
    assert header == [
        *("item", "run", "metric", "group", "question", "ground_truth", "response", "context"),
        *("label", "comment"),
    ]
    data = page.split('type="application/json">')[1].split("</script>")[0]
    for shown in (text, data):
        assert not any(word in shown for word in ("tog", "basic", "verdict", "score", "said"))


@pytest.mark.parametrize(
    ("metric", "n_abstained", "has_context"),
    [("correctness", 0, False), ("faithfulness", 1, True), ("completeness", 0, False)],
)
def test_only_what_the_judge_scored_is_drawn(make_run, metric, n_abstained, has_context):
    ends = {"q0": (1, "search"), "q1": ("judge", 0), "q2": ("search", "search"), "q3": (1, 1)}

    run = make_run(ends, metric=metric, abstaining=["q3 tog"])
    items = export(run, metric, questions=80)
    assert len(items) == 4 - n_abstained
    assert all(bool(item.context) is has_context for item in items)
    assert not any(item.question == "Question q2?" for item in items)


def test_what_cannot_be_exported_is_said_and_no_label_is_overwritten(small_run, capsys):
    items = export(small_run)
    sheet = small_run.folder / "audit_correctness.csv"
    sheet.unlink()
    write_sheet(sheet, [replace(items[0], label=0), *items[1:]])
    before = sheet.read_bytes()
    for options, sentence in (
        (
            ("latest",),
            f"has 1 label; move the file away, or import it with: graphrag eval judge "
            f"--labels {sheet}",
        ),
        (("1999",), "has no run '1999'"),
        (("latest", "beauty"), "There is no metric 'beauty'"),
        (("latest", "relevance"), "has no verdict on relevance; judge it first"),
    ):
        assert code_of(draw_labels, small_run.place, *options) == USAGE
        assert sentence in capsys.readouterr().err
    assert sheet.read_bytes() == before


texts = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("'=+-@\t\r\n\",;\ufeff"), max_size=12
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None
)
@example(texts=["=1", "'=1", "''+1", "'quoted'"], label=None)
@given(texts=st.lists(texts, min_size=4, max_size=4), label=st.sampled_from([None, 0, 1]))
def test_the_sheet_keeps_every_text_and_holds_no_formula(tmp_path, texts, label):
    question, truth, response, comment = texts
    item = AuditItem("r1", "run", "m", "g1", question, truth, response, "", label, comment)
    path = tmp_path / "sheet.csv"
    path.unlink(missing_ok=True)
    write_sheet(path, [item])
    assert read_sheet(path) == [item]
    before = csv.field_size_limit()
    with path.open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not any(cell.startswith(tuple("=+-@\t\r\n")) for cell in cells)
    long = replace(item, context="word " * 30_000)  # more than csv reads by itself
    path.unlink()
    write_sheet(path, [long])
    assert (read_sheet(path), csv.field_size_limit()) == ([long], before)


def rewritten(
    path: Path, change: Callable[[list[dict[str, object]]], object], **form: object
) -> Path:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows: list[dict[str, object]] = list(csv.DictReader(file))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), **form)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_sheet_that_a_spreadsheet_saved_again_is_read(small_run):
    items = export(small_run)

    def fill(rows: list[dict[str, object]]) -> None:
        for row in rows:
            row |= {"label": " 1 ", "notes": "mine"}

    path = rewritten(small_run.folder / "audit_correctness.csv", fill, delimiter=";")
    assert read_sheet(path) == [replace(item, label=1) for item in items]
    path.unlink()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda rows: rows[2].update(label="yes"), "row 4: the label is 'yes'; it is 0, 1, or"),
        (lambda rows: rows[0].update(label="1.0"), "row 2: the label is '1.0'"),
        (lambda rows: rows[1].update(run="another"), "row 3 is of another run or metric"),
        (lambda rows: [row.pop("group") for row in rows], "has no column group"),
        (lambda rows: [row.update(label="") for row in rows], "has no label yet"),
        (lambda rows: rows.append(rows[0]), "is there twice"),
        (lambda rows: rows[0].update(item="r00"), "Item r00 of group"),
        (lambda rows: [row.update(group="g00") for row in rows], "have changed since the export"),
        (lambda rows: [row.update(run="r9") for row in rows], "has no run 'r9'"),
        *((content, "") for content in (None, b"", b"\xff\xfe", b"item\n", b'item,"run\n1,2')),
    ],
)
def test_a_wrong_sheet_is_refused_in_a_sentence(small_run, tmp_path, capsys, change, sentence):
    path = tmp_path / "filled.csv"
    if callable(change):
        write_sheet(path, [replace(item, label=1) for item in export(small_run)])
        rewritten(path, change)
    elif change is not None:
        path.write_bytes(change)
    capsys.readouterr()
    assert code_of(import_labels, small_run.place, path) == USAGE
    *steps, refusal = capsys.readouterr().err.splitlines()
    assert (sentence or str(path)) in refusal
    assert refusal.startswith("Error: ")
    assert all(step.endswith(" ...") for step in steps)
    assert not (small_run.folder / "audit_correctness.json").exists()


def test_verdicts_that_changed_since_the_export_are_refused(make_run, capsys):
    ends = random_ends(100)
    run = make_run(ends)
    items = export(run, questions=60)
    drawn = {name_of(item)[0] for item in items}
    other = next(question for question in ends if question not in drawn)
    run.judge_again(other, "tog", "correctness", 1 - ends[other][0])
    assert imported(run, [replace(item, label=1) for item in items]) == USAGE
    assert "have changed since the export; export the audit again" in capsys.readouterr().err


def judged_wrong(ends: Mapping[str, object], seed: int, share: float = 0.2) -> dict[object, int]:
    """Return what a person would say, where the judge is wrong only when it says 1."""
    chance = random.Random(seed)
    return {
        (question, method): int(end == 1 and chance.random() >= share)
        for question, of_question in ends.items()
        for method, end in zip(METHODS, of_question, strict=True)
    }


def test_labels_on_everything_give_the_figures_of_the_labels(make_run, capsys):
    from sklearn.metrics import cohen_kappa_score  # here, as every worker imports what is above

    ends: dict[str, object] = {**random_ends(90), "down": ("search", 1), "lost": (1, "judge")}
    run = make_run(ends, model="offline/rules")
    truth = judged_wrong(ends, seed=5)
    assert imported(run, labelled(export(run, questions=92), truth)) == DONE
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("(offline baseline models)") == 2  # on both tables
    found = written(run)
    assert found["embedded_models"] == "offline baseline models"
    assert (found["n_items"], found["n_labels"]) == (182, 182)

    for column, method in enumerate(METHODS):
        judge = {q: of_q[column] for q, of_q in ends.items() if isinstance(of_q[column], int)}
        human = [truth[q, method] for q in judge]
        agreement = found["agreement"][method]["weighted"]
        assert agreement["n"] == 91
        assert agreement["kappa"] == pytest.approx(cohen_kappa_score([*judge.values()], human))
        assert agreement["alpha"] == found["agreement"][method]["alpha_unweighted"]
        said = [human[i] for i, verdict in enumerate(judge.values()) if verdict == 0]
        assert agreement["sensitivity"]["mean"] == 1
        assert agreement["true_negative"] == len(said) == said.count(0)
        known = {q: truth[q, method] for q in judge}
        if method == "tog":
            known["down"] = 0
        assert found["means"][method]["estimate"]["mean"] == pytest.approx(
            sum(known.values()) / len(known)
        )
        assert found["means"][method]["uncorrected"] == pytest.approx(
            sum(judge.values()) / len(known)
        )
        assert found["means"][method]["n_labels"] == 91

    (difference,) = found["differences"]
    truth["down", "tog"] = 0
    differences = [truth[q, "tog"] - truth[q, "basic"] for q in ends if q != "lost"]
    assert (difference["a"], difference["b"]) == METHODS
    assert difference["corrected"]["estimate"]["mean"] == pytest.approx(sum(differences) / 91)
    assert difference["corrected"]["n_labels"] == 91


def test_assertions_are_held_against_labels_beside_the_verdict(make_run, capsys):
    ends = random_ends(90)
    run, truth = make_run(ends), judged_wrong(ends, seed=5)
    with EvaluationStore(run.folder / "eval.db") as store:
        for question in list(ends)[:40]:  # the others have none
            for method in METHODS:
                met = bool(truth[question, method])
                ruled = RuledAssertion("a", "vital", "say", "missing", "said", is_met=met)
                okay = replace(ruled, weight="okay", is_met=False)
                value = AssertionEvaluation((ruled, okay)).to_dict()
                judged = Judgement(f"{question} {method}", "assertions", value, False, Usage())
                store.append_judgement(run.run_id, judged)
    assert imported(run, labelled(export(run, questions=90), truth)) == DONE
    found = written(run)
    whole, verdict, both = found["by_assertions"].values()
    held = list(ends)[:40]
    same = [ends[q][m] == truth[q, name] for q in held for m, name in enumerate(METHODS)]
    assert verdict["weighted"]["n"] == whole["weighted"]["n"] == 80
    assert verdict["weighted"]["raw_agreement"]["mean"] == pytest.approx(sum(same) / 80)
    assert whole["weighted"]["raw_agreement"]["mean"] == 1
    assert both["weighted"]["n"] == 80
    assert both["weighted"]["raw_agreement"]["mean"] == pytest.approx(sum(same) / 80)
    assert "all vital met: 1 for an answer" in capsys.readouterr().out


def test_corrected_figures_are_right_on_average_and_their_limits_cover(make_run):
    ends = random_ends(300, seed=2)
    truth = judged_wrong(ends, seed=9)
    right = {m: sum(truth[q, m] for q in ends) / 300 for m in METHODS}
    run = make_run(ends)
    with EvaluationStore(run.folder / "eval.db") as store:
        audited = read_audited_run(store, run.run_id, "correctness")
    audits = [
        analyse_audit(audited, labelled(draw_items(audited, 80, seed), truth)) for seed in range(40)
    ]
    for method in METHODS:
        estimates = [audit.means[method].estimate for audit in audits]
        assert sum(e.mean or 0 for e in estimates) / 40 == pytest.approx(right[method], abs=0.02)
        covered = sum((e.low or 0) <= right[method] <= (e.high or 1) for e in estimates)
        assert covered >= 36
        assert (audits[0].means[method].uncorrected or 0) > right[method] + 0.05
    differences = [audit.differences[0].corrected.estimate.mean or 0 for audit in audits]
    assert sum(differences) / 40 == pytest.approx(right["tog"] - right["basic"], abs=0.02)


def test_an_import_keeps_what_corrects_the_comparisons_of_the_run(make_run, capsys):
    ends: dict[str, object] = {**random_ends(150), "down": ("search", 1), "lost": (1, "judge")}
    run = make_run(ends)
    assert imported(run, labelled(export(run, questions=80), judged_wrong(ends, seed=5))) == DONE
    own = run.folder / "runs" / run.run_id / "audit_correctness.json"
    kept = json.loads(own.read_text("utf-8"))
    assert "Response to" not in own.read_text("utf-8")
    with EvaluationStore(run.folder / "eval.db") as store:
        rows = stored_rows(store, store.runs()[0])
    labels = read_labels(run.folder, run.run_id, rows)
    analysis = analyse(rows, METHODS, ["correctness"])
    (compared,) = correct_comparisons(analysis, labels).comparisons
    (difference,) = kept["differences"]
    assert compared.corrected is not None
    assert compared.corrected.result is not None
    estimate = difference["corrected"]["estimate"]
    assert compared.corrected.result.difference == pytest.approx(estimate["mean"])
    assert compared.corrected.result.low == pytest.approx(estimate["low"])
    assert compared.corrected.se == pytest.approx(difference["corrected"]["se"])
    run.judge_again("q3", "tog", "correctness", 1 - ends["q3"][0])
    with EvaluationStore(run.folder / "eval.db") as store:
        rows = stored_rows(store, store.runs()[0])
    assert isinstance(read_labels(run.folder, run.run_id, rows)["correctness"], str)


def test_rare_strata_count_for_no_more_than_they_are(make_run):
    # Alternating films: each of the six questions is alone in its stratum, and drawn.
    rare = [(0, 1), (0, 1), (1, 0), (1, 0), (0, 0), (0, 0)]
    ends = {f"q{i}": rare[i] if i < 6 else (1, 1) for i in range(200)}
    truth = {(q, m): int(m == "basic" or end == (1, 1)) for q, end in ends.items() for m in METHODS}
    run = make_run(ends)
    items = export(run, questions=66)
    audit = analysed(run, labelled(items, truth))
    assert audit.means["tog"].estimate.mean == pytest.approx(194 / 200)
    assert audit.means["basic"].estimate.mean == pytest.approx(1)
    assert audit.differences[0].corrected.estimate.mean == pytest.approx(-6 / 200)
    audit = analysed(run, [replace(item, label=1) for item in items])
    assert audit.overall.weighted.n == 132
    assert audit.overall.weighted.raw_agreement.mean == pytest.approx(1 - 8 / 400)
    assert audit.overall.weighted.alpha is None
    assert audit.overall.alpha_unweighted is not None


def test_fewer_than_60_labels_are_refused_and_agreement_is_still_shown(make_run, capsys):
    ends = random_ends(100)
    run = make_run(ends)
    items = labelled(export(run, questions=80), judged_wrong(ends, seed=1))
    tog = [item for item in items if name_of(item)[1] == "tog"]
    kept = {item.item for item in tog[:59]}
    items = [replace(i, label=i.label if i.item in kept else None) for i in items]
    assert imported(run, items) == DONE
    shown = capsys.readouterr().out
    assert "Not corrected (tog): 59 labeled responses are too few for a correction" in shown
    assert "Not corrected (basic, tog - basic): 0 labeled responses" in shown
    tog = written(run)["agreement"]["tog"]["weighted"]
    assert (tog["n"], tog["raw_agreement"]["mean"] is None) == (59, False)
    tog = written(run)["means"]["tog"]
    assert (tog["estimate"]["mean"], tog["uncorrected"] is None) == (None, False)
    # Failed searches do not help to reach 60 labels; but labels for all that was judged are all.
    more: dict[str, object] = {f"p{i}": (int(i % 3 > 0), 1) for i in range(50)}
    run = make_run(more | {f"p{i}": ("search", "search") for i in range(50, 80)})
    items = export(run)
    audit = analysed(run, [replace(i, label=1 if name_of(i)[0] != "p7" else None) for i in items])
    for corrected in (*audit.means.values(), audit.differences[0].corrected):
        assert corrected.n_labels == 49
        assert corrected.refused is not None
        assert "49 labeled responses are too few" in corrected.refused
    audit = analysed(run, [replace(item, label=1) for item in items])
    assert [of.estimate.mean for of in audit.means.values()] == [50 / 80, 50 / 80]
    assert audit.differences[0].corrected.n_labels == 50
    assert audit.differences[0].corrected.is_complete


def test_without_the_extra_one_sentence_says_what_to_install(
    small_run, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "filled.csv"
    write_sheet(path, [replace(item, label=n % 2) for n, item in enumerate(export(small_run))])
    for name in ("krippendorff", "sklearn.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    assert code_of(import_labels, small_run.place, path) == USAGE
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert re.search("is missing; the statistics of an audit need: .*pip install ", sentence)
    packages = {"krippendorff", "scikit-learn"}
    assert set(re.findall(r'"([a-z-]+)[<>=]', sentence)) == packages
