"""Identities: who may connect, with which key, and what the NATS server is told about it.

Everything stands in one directory that is its owner's alone: a list of identities (public keys only), a seed file for
each, and the configuration for nats-server that is written anew from the list each time.
"""
