"""Print the table of index.md from rows.csv."""

import csv
from collections import defaultdict
from pathlib import Path

from statsmodels.stats.proportion import proportion_confint

Rows = list[dict[str, str]]


def mean(rows: Rows, *columns: str) -> float:
    """Return the mean of a column, or of the sum of several, over the rows that have it."""
    known = [row for row in rows if all(row[column] for column in columns)]
    return sum(float(row[column]) for row in known for column in columns) / max(len(known), 1)


def main() -> None:
    """Print how many answers are right, the evidence shown, tokens and calls, by run and method."""
    with Path(__file__).with_name("rows.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    of_runs: dict[str, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        of_runs[row["run"]][row["method"]].append(row)
    for run, methods in of_runs.items():
        second = "accepted" if run == "musique" else "label"
        told = "accepted words" if run == "musique" else "labels"
        n = len(methods["tog"])
        print(f"{run}, n {n}\n")
        print(f"| method | right by the judge | by {told} | evidence shown | tokens | calls |")
        print("|---|---|---|---:|---:|---:|")
        for method, own in sorted(methods.items(), key=lambda item: -mean(item[1], "correctness")):
            right = sum(row["correctness"] == "1" for row in own)
            low, high = proportion_confint(right, n, method="wilson")
            other = sum(row[second] == "1" for row in own)
            shown = f"{100 * mean(own, 'shown_recall'):.0f} %" if method != "closed_book" else "-"
            tokens = mean(own, "prompt_tokens", "output_tokens")
            print(
                f"| {method} | {right} ({100 * low:.0f} to {100 * high:.0f} %) | {other} | {shown}"
                f" | {tokens:,.0f} | {mean(own, 'llm_calls'):.2f} |"
            )
        print()


if __name__ == "__main__":
    main()
