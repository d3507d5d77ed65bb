"""What a process measures of itself, and how Prometheus reads it.

The services count in plain integers, whether anybody asks or not. With `metrics_port` set, a monitor hangs watches into
their consume loops and requests, samples the server now and then in the background, and gathers all of it when it is
asked. Nothing of this is in the way of a message where no port is set.
"""
