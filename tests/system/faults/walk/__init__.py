"""The walk over the crash points: each service is ended at each step of each of its effects, and nothing is lost.

One cycle: a service is started with a crash point, a flow is played that gets there, the process ends there, a clean
one takes its place, and the flow comes to its end all the same. The accounts are settled after the last cycle.
"""
