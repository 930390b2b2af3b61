"""``graphrag eval methods``: what can be named in eval_config.yaml, and where it is from."""

from graphrag.eval.cli.command import Quiet
from graphrag.eval.cli.location import Place
from graphrag.eval.cli.terminal import DONE, starting
from graphrag.eval.errors import ConfigError
from graphrag.eval.records.judged import JUDGED, SUFFICIENCY, JudgedMetric
from graphrag.eval.records.plug_ins import KINDS, Kind, list_plug_ins
from graphrag.eval.report.table import Line, show
from graphrag.installation import extras, missing_requirements, pip_install
from graphrag.query.methods import METHODS
from graphrag.text.console import open_console


def methods(place: Place, quiet: Quiet = False) -> int:
    """List methods, metrics, measures, exporters, and missing extras.

    A package brings parts of its own by entry points; all of them are loaded to see whether they
    can be.
    """
    with starting(quiet):
        from graphrag.eval.config.sections import CONTROLS
        from graphrag.eval.metrics.measures import MEASURES, Measure
        from graphrag.eval.metrics.scorer import Scorer
        from graphrag.eval.report.files import SUFFIXES

    built_in: dict[Kind, tuple[list[str], tuple[type, ...]]] = {
        "methods": ([*METHODS, *CONTROLS], ()),
        "metrics": ([metric.name for metric in (*JUDGED, SUFFICIENCY)], (JudgedMetric, Scorer)),
        "measures": ([measure.name for measure in MEASURES], (Measure,)),
        "exporters": ([suffix.removeprefix(".") for suffix in SUFFIXES], ()),
    }
    console, lines = open_console(quiet=quiet), list[Line]()
    for kind in KINDS:
        names, types = built_in[kind]
        origins = {"built in": names}
        for plug_in in list_plug_ins(kind):
            try:
                plug_in.check(names, types)
                origins.setdefault(plug_in.package, []).append(plug_in.name)
            except ConfigError as error:
                if (line := Line(str(error), "yellow")) not in lines:
                    lines.append(line)
        listed = (f"{kind.capitalize()}, {k}: {', '.join(v)}" for k, v in origins.items())
        show(console, map(Line, listed))
    for extra in extras():
        missing = missing_requirements(extra)
        state = f"missing; {pip_install(missing)}" if missing else "installed"
        lines.append(Line(f"Extra {extra}: {state}", is_command=True))
    show(console, lines)
    return DONE
