"""Hold the judge of the real run against string match and labels, in the terminal.

In accepted.csv, "|" stands between alternatives, "&" asks for all, and "a < b" for a, before b if
b is named at all. Words count as a whole, whatever their case and the punctuation around them.
"""

import csv
import re
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from statistics import mean

from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

HERE = Path(__file__).parent
DECLINED = (
    "not mentioned|not mention|not specified|not specify|not provided|not provide|not stated|"
    "not state|not say|no information|not given|not explicitly|not contain|unknown|"
    "cannot be determined|not available|no mention|not include|not know"
)
CITATION = re.compile(r"\[Data:[^\]]*\]")


def plain(text: str) -> str:
    """Return the words in small letters, without citations, a blank between and around them."""
    return f" {' '.join(re.findall(r'[a-z0-9]+', CITATION.sub(' ', text).casefold()))} "


def holds(response: str, accepted: str) -> bool:
    """Return whether a response holds the accepted words."""
    said = plain(response)
    if "<" in accepted:
        first, second = (said.find(plain(words)) for words in accepted.split("<"))
        return first >= 0 and not 0 <= second < first
    groups = (DECLINED if accepted == "DECLINES" else accepted).split("&")
    return all(any(plain(words) in said for words in group.split("|")) for group in groups)


def share(marks: Iterable[bool]) -> str:
    """Return a share in percent with its 95 % Wilson interval and n."""
    every = list(marks)
    if not every:
        return "- (n 0)"
    low, high = proportion_confint(sum(every), len(every), method="wilson")
    return f"{100 * sum(every) / len(every):.0f} ({100 * low:.0f}-{100 * high:.0f}, n {len(every)})"


def main() -> None:
    """Print how many responses are right by the judge, by string match and by labels."""
    with (HERE / "accepted.csv").open(encoding="utf-8") as file:
        accepted = {row["id"]: row["accepted"] for row in csv.DictReader(file)}
    with (HERE / "rows.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["correctness"]]
    says = {
        "the judge": {n: row["correctness"] == "1" for n, row in enumerate(rows)},
        "string match": {
            n: holds(row["response"], accepted[row["sample_id"]]) for n, row in enumerate(rows)
        },
        "labels": {
            n: row["label"] == "1" for n, row in enumerate(rows) if row["label"] or row["failure"]
        },
    }
    methods = list(dict.fromkeys(row["method"] for row in rows))
    print("right %, with the 95 % interval of each\n")
    print(f"{'by':8}" + "".join(f"{who:>19}" for who in says))
    for method in [*methods, "all"]:
        own = [n for n, row in enumerate(rows) if method in (row["method"], "all")]
        print(
            f"{method:8}"
            + "".join(f"{share(of[n] for n in own if n in of):>19}" for of in says.values())
        )
    labels = says.pop("labels")
    print(f"\n{'finds, in %, of the labeled':28}{'right ones':>19}{'wrong ones':>19}")
    for who, of in says.items():
        found = [share(of[n] == labels[n] for n in labels if labels[n] == r) for r in (True, False)]
        print(f"{who:28}{found[0]:>19}{found[1]:>19}")
    print("\nby labels: right where the other is wrong; p of McNemar's exact test, with Holm's\n")
    right = {(rows[n]["method"], rows[n]["sample_id"]): mark for n, mark in labels.items()}
    pairs = []
    for a, b in combinations(methods, 2):
        both = [q for m, q in right if m == a and (b, q) in right]
        won = sum(right[a, q] > right[b, q] for q in both)
        lost = sum(right[a, q] < right[b, q] for q in both)
        test = mcnemar([[0, won], [lost, 0]], exact=True)
        pairs.append((f"{a} {won}, {b} {lost} (n {len(both)})", test.pvalue))
    corrected = multipletests([p for _, p in pairs], method="holm")[1]
    for (pair, _), p in zip(pairs, corrected, strict=True):
        print(f"{pair:32}{f'{p:.4f}' if p >= 0.0001 else '< 0.0001':>8}")
    compare_with_before([row for row in rows if row["method"] == "tog"])


def compare_with_before(after: list[dict[str, str]]) -> None:
    """Print what the rule of tog that this run led to changed in it, by labels."""
    with (HERE / "before.csv").open(encoding="utf-8") as file:
        of_question = {row["sample_id"]: row for row in csv.DictReader(file)}
    before = [of_question[row["sample_id"]] for row in after]
    print("\ntog before and after it takes a cited answer for one: right % by labels, tokens\n")
    for name, rows in (("before", before), ("after", after)):
        tokens = mean(int(row["prompt_tokens"]) + int(row["output_tokens"]) for row in rows)
        print(f"{name:8}{share(row['label'] == '1' for row in rows):>19}{tokens:>8,.0f}")
    pairs = [(a["label"], b["label"]) for a, b in zip(after, before, strict=True)]
    won, lost = pairs.count(("1", "0")), pairs.count(("0", "1"))
    p = mcnemar([[0, won], [lost, 0]], exact=True).pvalue
    print(f"right after alone {won}, before alone {lost}: p {p:.4f}")


if __name__ == "__main__":
    main()
