"""The processes of Turngate and the SDK that a runner imports."""

__version__ = "0.1.0"
