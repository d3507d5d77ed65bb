"""Each line of the vector files is one test."""

from typing import Any

import pytest

from tests.vectors import HERE, check, excused, load, vector_file

SUITES = [name for name in ("report", "question", "conclusion", "esm") if (HERE / f"{name}.py").exists()]


@pytest.mark.parametrize(
    "vector",
    [pytest.param(v, id=f"{v['id']}-{v['op']}") for s in SUITES for v in load(vector_file(s))],
)
def test_the_vector_holds(vector: dict[str, Any]):
    if vector["id"] in excused():
        pytest.skip("excused, see EXCUSED.md")
    problem = check(vector)
    assert problem is None, problem


@pytest.mark.parametrize("suite", SUITES)
def test_at_most_one_in_fifty_is_excused(suite: str):
    ids = {v["id"] for v in load(vector_file(suite))}
    assert len(ids & excused()) * 50 <= len(ids)
