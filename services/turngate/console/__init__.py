"""The web console: people see the fleet, answer cards and questions, and steer objectives."""
