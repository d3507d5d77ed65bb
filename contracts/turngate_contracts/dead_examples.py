"""The examples of dead letters: a report whose turn is no number, retried by mistake and dropped with a reason."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate_contracts.dead import (
    DeadDecided,
    DeadEntry,
    DeadFound,
    DeadLetter,
    DeadPage,
    Decided,
    DropDead,
    GetDead,
    LetterStatus,
    ListDead,
    RetryDead,
    letter_id,
)
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.question_examples import Story
from turngate_contracts.subjects import Subjects, last_token

_MINUTE: Final = 60_000
_BODY: Final = b'{"session":"orders-4812","turn":"seven","attempt":1,"runner":"runner-eu-1","pool":"backend"}'
_WHY: Final = "The runner was repaired; it sends turns as numbers now."


def of_dead(story: Story) -> tuple[Struct, ...]:
    """Return an example of every message of dead letters."""
    subjects = Subjects()
    stream, subject = subjects.stream("turns"), subjects.turn_report(story.pool, story.runner, story.session)
    reason = InvalidMessage(
        "the body is not a ReportSubmitted: Expected `int`, got `str` - at `$.turn`",
        reason="Expected `int`, got `str` - at `$.turn`",
    )
    letter = DeadLetter(
        stream,
        story.revision,
        subject,
        reason.body(),
        1,
        story.began,
        _BODY,
        letter_id(stream, story.revision, subject, _BODY),
        len(_BODY),
        {"Turngate-Schema": "report_submitted.v1"},
        "validation",
    )
    dropped = Decided(story.person, story.began + 3 * _MINUTE, _WHY)
    return (
        letter,
        ListDead(stream=stream, session=story.session),
        DeadPage((_entry(letter, 12),), cursor=12),
        GetDead(letter.letter),
        DeadFound(letter, 12),
        RetryDead(letter.letter, "The service was upgraded meanwhile."),
        DropDead(letter.letter, _WHY),
        DeadDecided(_entry(replace(letter, body=b"", status=LetterStatus.DROPPED, decided=dropped), 13)),
    )


def _entry(letter: DeadLetter, revision: int) -> DeadEntry:
    return DeadEntry(
        letter.letter,
        letter.stream,
        letter.sequence,
        letter.subject,
        letter.reason.code,
        letter.reason.message,
        letter.deliveries,
        letter.at,
        revision,
        letter.size,
        last_token(letter.subject),
        letter.found_by,
        letter.status,
        letter.decided,
        letter.first,
    )
