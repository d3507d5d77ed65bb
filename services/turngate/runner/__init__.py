"""The SDK that a runner imports: turns, questions, delegated tasks, prompts, cards and events."""

from turngate.evidence import start_record
from turngate.runner.calls import ClientClosed, Stored
from turngate.runner.client import TurnClient
from turngate.runner.decisions import VerdictTimeout
from turngate.runner.prompts import IncomingPrompt, NotTaken
from turngate.runner.questions import OutcomeTimeout
from turngate.runner.stat import StatService
from turngate.runner.tasks import NotConcluded, StoredTask, TaskNotStored

__all__ = [
    "ClientClosed",
    "IncomingPrompt",
    "NotConcluded",
    "NotTaken",
    "OutcomeTimeout",
    "StatService",
    "Stored",
    "StoredTask",
    "TaskNotStored",
    "TurnClient",
    "VerdictTimeout",
    "start_record",
]
