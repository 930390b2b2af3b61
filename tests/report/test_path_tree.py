"""Paths as a tree: each edge below what it was walked from, what was pruned counted."""

from rich.console import Console

from graphrag.text.path_tree import Leads, ShownEdge, find_leads, name_edges, path_tree


def drawn(edges: list[ShownEdge], full: bool = False, cited: list[str] | None = None) -> str:
    console = Console(record=True, width=200, markup=False)
    console.print(path_tree("Paths", ["A"], edges, full, cited or []))
    return console.export_text()


def test_an_edge_stands_below_the_entity_it_was_walked_from():
    shown = drawn(
        [
            ShownEdge(1, "A", "B", "knows", True, 0.9, "walked"),
            ShownEdge(2, "B", "C", "[red]owns[/red]", False, 0.5, "kept"),
            ShownEdge(2, "X", "Y", "meets", True, 0.4, "kept"),
        ]
    )
    assert shown.splitlines() == [
        "Paths",
        "├── A",
        "│   └── -[knows]-> B  0.90 walked",
        "│       └── <-[[red]owns[/red]]- C  0.50 kept",
        "└── X",
        "    └── -[meets]-> Y  0.40 kept",
    ]


def test_an_edge_without_a_description_is_named_by_its_row():
    edges = [
        ShownEdge(1, "B", "A", "7", False, 0, "pruned"),
        ShownEdge(1, "A", "C", "3", True, 0, ""),
    ]
    shown = [edge.relationship for edge in name_edges(edges, {("A", "B"): "A knows B"})]
    assert shown == ["A knows B", "Relationships (3)"]


def test_edges_that_lead_to_what_is_cited_are_marked_from_the_start_on():
    edges = [
        ShownEdge(1, "A", "B", "knows", True, 0.9, "walked", ("Relationships (1)",)),
        ShownEdge(1, "A", "C", "saw", True, 0.8, "walked", ("Sources (4)",)),
        ShownEdge(2, "B", "D", "owns", True, 0.5, "kept", ("Relationships (2)", "Sources (3)")),
        ShownEdge(1, "A", "C", "meets", True, 0.4, "pruned", ()),
    ]
    cited = ["Sources (3)", "Sources (12)", "Relationships (2)", "Sources (5)", "Reports (1)"]

    both = ("Relationships (2)", "Sources (3)")
    assert find_leads(edges, cited).rows == (both, (), both, ())
    assert drawn(edges, cited=cited).splitlines() == [
        "Paths",
        "├── A",
        "│   ├── -[knows]-> B  0.90 walked, leads to Relationships (2), Sources (3)",
        "│   │   └── -[owns]-> D  0.50 kept, leads to Relationships (2), Sources (3)",
        "│   ├── -[saw]-> C  0.80 walked",
        "│   └── -[meets]-> C  0.40 pruned",
        "└── The answer cites Sources (12, 5), which no edge of this walk leads to: they came from "
        "the ranking of texts.",
    ]
    assert find_leads(edges, ["Sources (3)"]).sentence == ""
    assert find_leads(edges, []) == Leads(((), (), (), ()), "")


def test_of_what_was_pruned_the_best_are_shown_and_the_rest_counted():
    edges = [ShownEdge(1, "A", f"B{i}", "r", True, i / 10, "pruned") for i in range(8)]
    shown = drawn(edges)
    assert "B7  0.70 pruned" in shown
    assert "B4" not in shown
    assert "... and 5 more pruned" in shown
    assert "B0  0.00 pruned" in drawn(edges, full=True)
