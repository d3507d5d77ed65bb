"""Questions, answers and strategies that several tests of the question protocol share."""

from typing import Any

from hypothesis import strategies as st

from turngate_protocol.question import (
    Answer,
    AskQuestion,
    Option,
    Outcome,
    PendingQuestion,
    Question,
    Refusal,
    Request,
    Resolution,
    Spec,
    Step,
    ask,
    new_freeform_request,
    new_request,
    request_from_call,
)

NOW = 1_700_000_000_000

SINGLE = Question("Store", "Where shall the data go?", (Option("Disk", "a file"), Option("Memory", "gone at exit")))
MULTIPLE = Question(
    "Parts",
    "Which parts?",
    (Option("A", "first"), Option("B", "second", "# preview"), Option("C", "third")),
    multiple=True,
)
SPEC = Spec((SINGLE, MULTIPLE))
ARGS = (
    '{"questions":[{"header":"h","question":"q","options":'
    '[{"label":"A","description":"a"},{"label":"B","description":"b"}]}]}'
)


def structured(name: str = "q-1", spec: Spec = SPEC) -> Request:
    return new_request(name, f"call-{name}", spec)


def freeform(name: str = "q-f", prompt: str = "What now?") -> Request:
    return new_freeform_request(name, f"call-{name}", prompt)


def called(call: str = "call-1", args: str = ARGS) -> Request:
    return request_from_call("ask_user", call, args)


def chat(request: Request, text: str = "Let us talk.") -> Resolution:
    return Resolution(request.id, request.schema_digest, chat=text)


def answers(request: Request, *given: Answer) -> Resolution:
    return Resolution(request.id, request.schema_digest, given)


def picks(*labels: str) -> Answer:
    return Answer(labels)


def command(request: Request, **changes: Any) -> AskQuestion:
    fields: dict[str, Any] = {"session": "s1", "pool": "pool", "runner": "r1", "request": request}
    return AskQuestion(**(fields | changes))


def stepped(result: Step | Refusal) -> Step:
    assert isinstance(result, Step), result
    return result


def waiting(result: Step | Refusal) -> PendingQuestion:
    pending = stepped(result).pending
    assert pending is not None
    return pending


def decided(result: Step | Refusal) -> Outcome:
    outcome = stepped(result).outcome
    assert outcome is not None
    return outcome


def refused(result: Step | Refusal) -> Refusal:
    assert isinstance(result, Refusal), result
    return result


def asked(request: Request, **changes: Any) -> Step:
    return stepped(ask(None, command(request, **changes), NOW))


def texts(most: int) -> st.SearchStrategy[str]:
    """Texts that the protocol accepts: 1 to `most` characters of at most 4 bytes each, no NUL, no surrogate."""
    letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    return st.text(letters, min_size=1, max_size=most)


def said(most: int) -> st.SearchStrategy[str]:
    """Texts that count as an answer: not only white space."""
    return texts(most).map(lambda text: f"x{text}")


options = st.builds(Option, texts(30), texts(40), st.one_of(st.just(""), texts(60)))
questions = st.builds(
    Question,
    texts(16),
    texts(60),
    st.lists(options, min_size=2, max_size=4, unique_by=lambda option: option.label).map(tuple),
    st.booleans(),
)
specs = st.builds(
    Spec, st.lists(questions, min_size=1, max_size=4, unique_by=lambda question: question.header).map(tuple)
)
requests = st.one_of(
    specs.map(lambda spec: structured("q-1", spec)), texts(40).map(lambda prompt: freeform("q-f", prompt))
)


@st.composite
def answer_to(draw: st.DrawFn, question: Question) -> Answer:
    if draw(st.booleans()):
        return Answer(custom=draw(said(40)))
    labels = [option.label for option in question.options]
    if not question.multiple:
        return picks(draw(st.sampled_from(labels)))
    chosen = draw(st.sets(st.sampled_from(labels), min_size=1))
    return picks(*(label for label in labels if label in chosen))


@st.composite
def resolution_of(draw: st.DrawFn, request: Request) -> Resolution:
    """A resolution that fits `request`."""
    if not request.questions or draw(st.booleans()):
        return chat(request, draw(said(60)))
    return answers(request, *(draw(answer_to(question)) for question in request.questions))
