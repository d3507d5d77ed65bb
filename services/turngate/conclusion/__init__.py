"""The conclusion service: it gives each delegated task that ended its one conclusion, and tells the parent once."""
