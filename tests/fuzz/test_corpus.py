"""Every kept input, and a batch of inputs made from them, keeps the promises of its target; atheris is not needed."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.mutation import mutate_json
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS, corpus

KEPT = [
    pytest.param(target, path, id=f"{target.name}-{path.name}") for target in TARGETS for path in corpus(target.name)
]
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize(("target", "path"), KEPT)
def test_a_kept_input_breaks_no_promise(target: Target, path: Path):
    target.run(path.read_bytes())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_inputs_made_from_the_kept_ones_break_no_promise(target: Target):
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(made_from([path.read_bytes() for path in corpus(target.name)], is_json=target.is_json))
    def check(data: bytes) -> None:
        target.run(data)

    check()


@st.composite
def made_from(draw: st.DrawFn, kept: list[bytes], *, is_json: bool) -> bytes:
    """A kept input with a part replaced by any bytes or by a part of another, or with changed values."""
    data = draw(st.sampled_from(kept))
    if is_json and draw(st.booleans()):
        return mutate_json(data, draw(SEEDS)) or data
    at = draw(st.integers(0, len(data)))
    until = draw(st.integers(at, min(len(data), at + 40)))
    other = draw(st.sampled_from(kept))
    begin = draw(st.integers(0, len(other)))
    put = draw(st.one_of(st.binary(max_size=20), st.just(other[begin : begin + 60])))
    return data[:at] + put + data[until:]
