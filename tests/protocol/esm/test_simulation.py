"""The machine in a world that drops, duplicates, reorders and crashes, for as many seeds as are asked for.

TURNGATE_SIMULATION_SEEDS says how many (300 by default), TURNGATE_SIMULATION_FIRST which is the first. A failure names
its seed; that seed alone fails again in the same way.
"""

import os

import pytest

from tests.protocol.esm.simulation import World

FIRST = int(os.environ.get("TURNGATE_SIMULATION_FIRST", "0"))
SEEDS = int(os.environ.get("TURNGATE_SIMULATION_SEEDS", "300"))
CHUNK = 100


def simulate(seed: int) -> World:
    try:
        return World(seed).run()
    except Exception as error:
        again = f"TURNGATE_SIMULATION_FIRST={seed} TURNGATE_SIMULATION_SEEDS=1"
        raise AssertionError(f"seed {seed} failed, run it again with {again}: {error}") from error


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, CHUNK))
def test_whatever_fails_every_objective_reaches_its_end_as_if_nothing_had(first):
    for seed in range(first, min(first + CHUNK, FIRST + SEEDS)):
        world = simulate(seed)
        assert set(world.settled.values()) <= {1}, f"seed {seed}: a role run was applied twice"
        assert world.inbox is None, f"seed {seed}: somebody is waited for and nobody is missing"


def test_a_seed_gives_the_same_history_every_time():
    assert simulate(7).history == simulate(7).history


def test_different_seeds_give_different_histories():
    assert len({tuple(simulate(seed).history) for seed in range(20)}) == 20
