"""Starting and ending the service: the socket, the checks before it opens, uvicorn, signals."""

from __future__ import annotations

import signal
import socket
import ssl
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from uvicorn.server import Server
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from mergepub.errors import InputError, MergepubError, NotFoundError, OutputError
from mergepub.service import logs
from mergepub.service.app import create_app
from mergepub.service.patience import Patience
from mergepub.service.protocol import ServiceConfig, ServiceProtocol
from mergepub.service.targets import is_loopback
from mergepub.stores import open_store
from mergepub.stores.tokens import token_store

if TYPE_CHECKING:
    from mergepub.service.gateway import Gateway
    from mergepub.service.settings import Settings

Say = Callable[[str], None]

START_FAILED = 3
"""The exit status of a worker that cannot serve: another one could not either."""


def serve(settings: Settings, say: Say) -> None:
    """Serve until SIGTERM or SIGINT; what is under way then is finished. ``say`` tells a person one line.

    Raises:
        InputError: host, port or certificate cannot be used, or the service would be open to everyone.
        UnavailableError, InvalidStoreError: the store cannot be used.
    """
    store_url = _check_store(settings, say)
    config = _config(settings)
    listener = _listen(settings)
    scheme = "https" if settings.tls_cert else "http"
    name = f"[{settings.host}]" if ":" in settings.host else settings.host
    server = _Several(config, [listener]) if settings.workers > 1 else _Single(config, listener)
    say(f"mergepub: serving {store_url} on {scheme}://{name}:{listener.getsockname()[1]}")
    server.run()


class _Single:
    """One process, ended by SIGTERM from the first moment on."""

    def __init__(self, config: ServiceConfig, listener: socket.socket) -> None:
        self._server = Server(config)
        self._listener = listener
        # uvicorn raises a signal again after the graceful end that it asked for; here that end is the whole answer.
        signal.signal(signal.SIGTERM, self._server.handle_exit)

    def run(self) -> None:
        """Serve until then."""
        self._server.run(sockets=[self._listener])


class _Several(Multiprocess):
    """Several processes on one socket; one that has died is replaced.

    uvicorn also kills those that do not answer for five seconds. Here they are left alone: on a busy machine that is
    how long a start takes, and who is killed while it works leaves its callers without an answer.
    """

    _interrupted = False

    def run(self) -> None:
        """Serve until then."""
        super().run()
        if self._interrupted:
            raise KeyboardInterrupt
        if any(process.process.exitcode == START_FAILED for process in self.processes):
            sys.exit(START_FAILED)

    def init_processes(self) -> None:
        """Start all of them."""
        self.processes = [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace who has died; where one cannot even start, end."""
        for index, process in enumerate(self.processes):
            if process.process.is_alive():
                continue
            if process.process.exitcode == START_FAILED:
                self.should_exit.set()
                return
            self.processes[index] = self._started()

    def handle_int(self) -> None:
        """SIGINT ends the service as it ends any command."""
        self._interrupted = True
        super().handle_int()

    def _started(self) -> Process:
        """A new worker, which never sees a SIGINT: a terminal sends one to all, and this process ends the others."""
        process = Process(self.config, self.sockets)
        resource_tracker.ensure_running()  # when it begins, it lets signals through again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return process


def _check_store(settings: Settings, say: Say) -> str:
    """Open the store once before the socket opens, and refuse to be open to everyone by mistake."""
    store = open_store(settings.store_url)
    try:
        try:
            list(store.list(limit=1))
        except NotFoundError:
            say(f"mergepub: there is nothing at {store.url} yet; the first publish makes it")
        tokens = token_store(store)
        closed = tokens is not None and bool(tokens.load())
        if not closed and not is_loopback(settings.host):
            _check_open(settings, say)
        return store.url
    finally:
        store.close()


def _check_open(settings: Settings, say: Say) -> None:
    if not settings.open_to_everyone:
        raise InputError(
            f"{settings.host} can be reached from other machines, and this store has no tokens: everybody could write",
            hint="make one first: mergepub token create --name NAME --allow 'publish:/**'; or say --open-to-everyone",
        )
    line = "!" * 78
    say(line)
    say(f"WARNING: everybody who reaches {settings.host} may read, publish and delete every document.")
    say("WARNING: a token closes the service: mergepub token create --name NAME --allow 'publish:/**'")
    say(line)


def _config(settings: Settings) -> ServiceConfig:
    _check_certificate(settings)
    limits = settings.limits
    config = ServiceConfig(
        partial(create_worker_app, settings),
        factory=True,
        interface="asgi3",
        http=ServiceProtocol,
        ws="none",
        lifespan="on",
        workers=settings.workers,
        log_config=logs.configuration(settings.log_format),
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(limits.idle_time),
        timeout_graceful_shutdown=int(limits.shutdown_time),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    config.limits, config.log_format = limits, settings.log_format
    config.idle_time = Patience(limits.idle_time)
    return config


def create_worker_app(settings: Settings) -> Gateway:
    """The application of one worker; a store that cannot be opened ends the process with one line."""
    try:
        return create_app(settings)
    except MergepubError as error:
        logs.write(settings.log_format, "error", said=error.message)
        sys.exit(START_FAILED)


def _check_certificate(settings: Settings) -> None:
    if settings.tls_key and not settings.tls_cert:
        raise InputError("--tls-key needs --tls-cert beside it", hint="name the certificate chain with --tls-cert")
    if not settings.tls_cert:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise InputError(
            f"the certificate {settings.tls_cert} or its key cannot be used: {reason}",
            hint="name PEM files with --tls-cert and --tls-key: the chain, and the private key that belongs to it",
        ) from error


def _listen(settings: Settings) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
        listener.set_inheritable(True)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise OutputError(
            f"cannot listen on {settings.host} port {settings.port}: {said}",
            hint="name another --port, 0 for a free one",
        ) from error
    return listener
