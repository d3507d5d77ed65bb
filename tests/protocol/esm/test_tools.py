import pytest

from turngate_protocol.esm import (
    GET_ESM,
    UPDATE_ESM,
    InvalidArgumentError,
    Objective,
    format_objective,
    get_esm,
    update_answer,
    update_arguments,
)


def test_the_schemas_take_what_the_functions_take():
    assert GET_ESM["input_schema"]["properties"] == {}
    assert UPDATE_ESM["input_schema"]["required"] == ["status", "reason"]
    assert UPDATE_ESM["input_schema"]["properties"]["status"]["enum"] == ["complete", "blocked"]


def test_a_model_reads_what_people_read():
    objective = Objective("s1", "e1", "build")
    assert get_esm(objective) == format_objective(objective)
    assert get_esm(None) == "No objective."


def test_a_call_gives_a_status_and_a_trimmed_reason():
    assert update_arguments({"status": "blocked", "reason": " no steel "}) == ("blocked", "no steel")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"status": "complete"},
        {"status": "complete", "reason": " "},
        {"status": "complete", "reason": 7},
        {"status": "Complete", "reason": "r"},
        {"status": "paused", "reason": "r"},
        {"status": ["complete"], "reason": "r"},
        {"status": "complete", "reason": "\ud800"},
        {"status": "complete", "reason": "r", "run_id": "another"},
    ],
)
def test_a_call_of_another_shape_is_a_typed_error(arguments):
    with pytest.raises(InvalidArgumentError):
        update_arguments(arguments)


def test_the_answer_shows_where_the_objective_stands_now():
    assert "Status: active" in update_answer(Objective("s1", "e1", "build"))
