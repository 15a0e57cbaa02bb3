"""Coordination: runs that tell each other what they edit before they collide.

The channel is advisory: it locks nothing, pauses nothing, decides nothing, and proves nothing about what was published.

Pure: ``wire`` (requests, codes, bounds), ``budgets``, ``radar``. Durable: ``schema``, ``state``, ``mailing``,
``reporting``, tables in the SQL store's database. Around them ``surfaces`` (directories and sockets), ``watching``
and ``observing`` (what a checkout edits, and when it is looked at), ``processes`` (whether a run's lives),
``connections``, ``methods``, ``control``, ``reports``, and ``daemon``, whose parts share ``office``. ``client`` is the
other end of a socket, ``mcp`` offers it as tools. What a run leaves behind: ``pty`` (a command on a pseudo-terminal),
``transcript`` (what it showed), ``gitcommit`` (the work tree as it stands), ``evidence`` (all of it, for a report).
"""
