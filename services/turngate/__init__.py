"""The processes of Turngate and the SDK that a runner imports."""
