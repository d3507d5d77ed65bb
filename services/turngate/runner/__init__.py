"""The SDK that a runner imports: report turns, end them, take prompts, answer cards, follow events."""

from turngate.runner.client import IncomingPrompt, TurnClient, VerdictTimeout

__all__ = ["IncomingPrompt", "TurnClient", "VerdictTimeout"]
