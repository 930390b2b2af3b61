"""Questions that seem to be about other documents: names are told by capitals of any alphabet."""

from support.language_worlds import read_world

from graphrag.eval.dataset.dataset_reader import Sample
from graphrag.eval.runner.indexes import read_headers
from graphrag.eval.runner.preflight import list_data_warnings


async def test_words_without_a_capital_are_no_names(tmp_path):
    world = read_world("ru")
    truths = ["рано утром, когда светает", "вовсе нигде, насколько знаю", "чаще всего, говорят"]
    headers = await read_headers({"world": world.write(tmp_path / "project")})
    samples = [
        Sample(str(n), "world", question, truth)
        for n, (question, truth) in enumerate(zip(world.questions, truths, strict=False))
    ]
    assert await list_data_warnings(samples, headers) == []
