"""The inbox on a terminal: keys, what they do to what is on the screen, and how that is drawn.

`keyboard` turns bytes into keys, `desk` is what a person has in front of them and what a key does to it (pure),
`drawn` turns that into rows, `actions` does what a key decided. `turngate.cli.watch` ties them to a connection.
"""
