"""Adapters: what runs an agent for the runner host, one module for each way to run one.

An adapter makes no decision about an objective and speaks to no server. It is given one `RoleRequest`, tells the
context what the agent does while it runs, and returns a `RoleResult`. `base` is the protocol.
"""

from turngate.runner.adapters.base import Adapter, RoleContext, RoleResult, failed

__all__ = ["Adapter", "RoleContext", "RoleResult", "failed"]
