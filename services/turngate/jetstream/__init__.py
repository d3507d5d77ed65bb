"""How every process uses NATS: connection, topology, consume loop, state store, reconcile loop, timers and events."""
