"""The supervisor protocol: the rules of an objective and the machine that drives it."""
