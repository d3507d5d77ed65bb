"""`turngate demo`: a fleet of agent runners in real processes, and what becomes of their turns."""
