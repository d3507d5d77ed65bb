"""The SDK that a runner imports: report turns, end them, ask, take prompts, answer cards, follow events."""

from turngate.runner.calls import ClientClosed, Stored
from turngate.runner.client import TurnClient
from turngate.runner.decisions import VerdictTimeout
from turngate.runner.prompts import IncomingPrompt, NotTaken
from turngate.runner.questions import OutcomeTimeout

__all__ = [
    "ClientClosed",
    "IncomingPrompt",
    "NotTaken",
    "OutcomeTimeout",
    "Stored",
    "TurnClient",
    "VerdictTimeout",
]
