"""The HTTP service: a store on HTTP, content-agnostic, stateless, never merging.

    runner.py      sockets, uvicorn, signals              protocol.py   the connection: limits, slow clients, lingering
    app.py         the FastAPI application                gateway.py    what every request passes: host, limits, log
    documents.py   GET PUT POST DELETE of documents       listings.py   history and listings
    operations.py  health, ready, metrics, description    access.py     who asks, and what they may
    writing.py     which writes share a transaction       hand.py       the processes that make the transactions
    patience.py    time limits, many at a time            exchange.py   one request, and what a worker's requests share
    targets.py conditions.py labels.py problems.py tokens.py            the wire's forms, pure

Importing this package costs nothing: FastAPI and uvicorn are imported when the service starts.
"""
