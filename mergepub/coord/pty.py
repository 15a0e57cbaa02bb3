"""A command on a pseudo-terminal, as it would run without one, while its output is kept besides.

    this process ──┬── the monitor: leads the pseudo-terminal's session, tells of stops and of the end
                   └──── the command: a process group of its own, in the foreground there

Where standard output is no terminal there is no pseudo-terminal either: the command shares our process group and our
standard input, and its two outputs come through pipes, so that what it writes stays byte for byte what it wrote.

The monitor is there for job control: without a parent in its own session a command could not be stopped with Ctrl-Z.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import selectors
import signal
import struct
import subprocess
import termios
import threading
import tty
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

_TOLD = struct.Struct("=ci")
_STARTED, _REFUSED, _STOPPED, _CONTINUED, _ENDED = b"s", b"r", b"t", b"c", b"e"
_PASSED_ON = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
_KEYS = {signal.SIGINT, signal.SIGQUIT}
_HELD = {signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH, signal.SIGTTOU}
_PIECE = 64 * 1024
_WINDOW = 8  # bytes of struct winsize
_LAST = (
    256  # pieces read after the end: more than pipes and terminals hold, and no endless wait for who goes on writing
)

Mask = Collection[int]

Show = Callable[[bytes], None]


def run(command: Sequence[str], environment: Mapping[str, str], keep: Show) -> int:
    """Run ``command`` to its end: its exit status, 128 + N where signal N ended it.

    ``keep`` is given all that it writes. Signals and the size of the window are passed on, a stop stops us too.

    Raises:
        OSError: it cannot be started.
    """
    on_terminal = os.isatty(1)
    held = _PASSED_ON | (_HELD if on_terminal else set())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        if on_terminal:
            return _OnTerminal(command, environment, keep, before).run(held)
        return _OnPipes(command, environment, keep, before).run(held)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Relay:
    """Carries bytes between the command and us until it has ended."""

    def __init__(self, keep: Show) -> None:
        self._keep = keep
        self._selector = selectors.DefaultSelector()
        self._told, self._teller = os.pipe()
        self._pid = 0
        self._status: int | None = None

    def run(self, held: Mask) -> int:
        """Start the command and return its exit status once it has ended and all it wrote was shown."""
        try:
            self._start()
            passing = threading.Thread(target=self._pass_on, args=(held,), daemon=True)
            passing.start()
            self._relay()
            signal.pthread_kill(passing.ident or 0, signal.SIGUSR1)
            passing.join()
        finally:
            self._end()
        assert self._status is not None, "the relay ends with the command"
        code = os.waitstatus_to_exitcode(self._status)
        return 128 - code if code < 0 else code

    def _relay(self) -> None:
        self._selector.register(self._told, selectors.EVENT_READ, self._hear)
        while self._status is None:
            self._turn(None)
        self._type_no_more()
        for _ in range(_LAST):
            if not self._turn(0.0):
                return

    def _start(self) -> None:
        raise AssertionError("each kind starts in its own way")

    def _type_no_more(self) -> None:
        """What is typed from now on is for whoever comes after us."""

    def _end(self) -> None:
        self._selector.close()
        os.close(self._told)
        os.close(self._teller)

    def _turn(self, patience: float | None) -> bool:
        """Wait for something to do and do it; whether there was anything but news of the command."""
        moved = False
        for key, _ in self._selector.select(patience):
            moved |= key.fd != self._told
            if key.fd in self._selector.get_map():  # not let go of by the one before
                key.data()
        return moved

    def _tell(self, what: bytes, value: int) -> None:
        os.write(self._teller, _TOLD.pack(what, value))

    def _hear(self) -> None:
        self._hear_of(*_TOLD.unpack(os.read(self._told, _TOLD.size)))

    def _hear_of(self, what: bytes, value: int) -> None:
        if what == _ENDED:
            self._status = value

    def _show(self, source: int, to: int) -> None:
        """Carry a piece from ``source`` to ``to``; at the end of the one or the other, no more."""
        try:
            data = os.read(source, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # a pseudo-terminal whose last user is gone
            data = b""
        if data:
            self._keep(data)
        if not data or not _written(to, data):
            self._lose(source, at_end=not data)

    def _lose(self, source: int, *, at_end: bool) -> None:  # noqa: ARG002 - a pseudo-terminal is lost in two ways
        self._selector.unregister(source)
        os.close(source)  # where nobody reads what it writes, it is told so with SIGPIPE, as it would be without us

    # ── signals: in a thread of its own, for this one may wait for somebody to read ──────────────────────────────────

    def _pass_on(self, held: Mask) -> None:
        while True:
            met = _next_signal(held)
            if self._status is not None:
                return
            self._met(*met)

    def _met(self, number: int, by_key: bool) -> None:
        raise AssertionError(f"each kind passes on what its command does not get by itself: {number}, {by_key}")

    def _kill_group(self, number: int) -> None:
        if self._status is None and self._pid:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, number)


class _OnPipes(_Relay):
    """A command whose output is no terminal."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], keep: Show, mask: Mask) -> None:
        super().__init__(keep)
        self._popen = partial(_popen, command, environment, mask)

    def _start(self) -> None:
        child = self._popen(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._pid = child.pid
        for stream, to in ((child.stdout, 1), (child.stderr, 2)):
            assert stream is not None, "both are pipes"
            source = os.dup(stream.fileno())
            stream.close()
            self._selector.register(source, selectors.EVENT_READ, partial(self._show, source, to))
        threading.Thread(target=self._wait, args=(child,), daemon=True).start()

    def _wait(self, child: subprocess.Popen[bytes]) -> None:
        code = child.wait()
        self._tell(_ENDED, -code if code < 0 else code << 8)

    def _met(self, number: int, by_key: bool) -> None:
        if not by_key and self._status is None:  # a key's signal went to the whole group, the command among it
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)


class _OnTerminal(_Relay):
    """A command on a pseudo-terminal; of our standard streams, those that are terminals are it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], keep: Show, mask: Mask) -> None:
        super().__init__(keep)
        self._popen = partial(_popen, command, environment, mask)
        self._typing = os.isatty(0)
        self._modes: list[Any] | None = None
        self._typed = b""
        self._master = self._news = self._monitor = -1

    def _start(self) -> None:
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        _copy_terminal(0 if self._typing else 1, slave)
        errors = None if os.isatty(2) else os.pipe()
        self._news, teller = os.pipe()
        self._monitor = os.fork()
        if self._monitor == 0:
            self._teller = teller
            self._be_monitor(slave, errors)
        os.close(slave)
        os.close(teller)
        if errors:
            os.close(errors[1])
            self._selector.register(errors[0], selectors.EVENT_READ, partial(self._show, errors[0], 2))
        what, value = _TOLD.unpack(os.read(self._news, _TOLD.size) or _TOLD.pack(_REFUSED, errno.EIO))
        if what != _STARTED:
            raise OSError(value, os.strerror(value))
        self._pid = value
        self._selector.register(self._news, selectors.EVENT_READ, self._hear_monitor)
        self._selector.register(self._master, selectors.EVENT_READ, self._master_ready)
        self._take_terminal()

    def _end(self) -> None:
        self._give_terminal()
        super()._end()
        for fd in (self._master, self._news):
            if fd >= 0:
                os.close(fd)
        if self._monitor > 0:
            with suppress(ProcessLookupError):
                os.kill(self._monitor, signal.SIGKILL)
            os.waitpid(self._monitor, 0)

    # ── the terminal that we were started on ────────────────────────────────────────────────────────────────────────

    def _take_terminal(self) -> None:
        """Let every key through to the command; in the background there are none, and it is left alone."""
        if self._typing and self._modes is None and _in_foreground():
            with suppress(termios.error):
                self._modes = termios.tcgetattr(0)
                tty.setraw(0, termios.TCSADRAIN)
                self._read_keys()

    def _read_keys(self) -> None:
        if not self._typed:  # otherwise once that is taken
            self._selector.register(0, selectors.EVENT_READ, self._type)

    def _give_terminal(self) -> None:
        self._type_no_more()
        if self._modes is not None:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, self._modes)
            self._modes = None

    def _type_no_more(self) -> None:
        with suppress(KeyError):
            self._selector.unregister(0)

    def _type(self) -> None:
        try:
            self._typed = os.read(0, _PIECE)
        except OSError:
            self._typed = b""
        if not self._typed:  # the terminal is gone
            self._selector.unregister(0)
            return
        self._selector.modify(self._master, selectors.EVENT_READ | selectors.EVENT_WRITE, self._master_ready)
        self._selector.unregister(0)  # until this is taken

    def _master_ready(self) -> None:
        if self._typed:
            with suppress(OSError):
                self._typed = self._typed[os.write(self._master, self._typed) :]
            if not self._typed:
                if self._modes is not None:
                    self._read_keys()
                self._selector.modify(self._master, selectors.EVENT_READ, self._master_ready)
        self._show(self._master, 1)

    def _lose(self, source: int, *, at_end: bool) -> None:
        if source != self._master:
            super()._lose(source, at_end=at_end)
        elif at_end:  # it closed its terminal, or has ended
            self._typing = False
            self._type_no_more()
            self._selector.unregister(source)
        # Our terminal is gone, and the command is told so with SIGHUP: it may end in its own way, and is recorded.

    # ── stops ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _hear_monitor(self) -> None:
        told = os.read(self._news, _TOLD.size)  # nothing: it was killed, and the session is at its end
        self._hear_of(*_TOLD.unpack(told or _TOLD.pack(_ENDED, signal.SIGHUP)))

    def _hear_of(self, what: bytes, value: int) -> None:
        super()._hear_of(what, value)
        if what == _STOPPED:
            self._give_terminal()
            if _can_be_continued():
                os.killpg(0, signal.SIGSTOP)
            self._go_on()
        elif what == _CONTINUED:
            self._go_on()

    def _go_on(self) -> None:
        self._take_terminal()
        _copy_window(self._master)
        self._kill_group(signal.SIGCONT)

    def _met(self, number: int, by_key: bool) -> None:  # noqa: ARG002 - the command is in a session of its own
        if number == signal.SIGWINCH:
            _copy_window(self._master)
        elif number == signal.SIGCONT:
            self._tell(_CONTINUED, 0)
        elif number != signal.SIGTTOU:
            self._kill_group(number)

    # ── the monitor, in a process of its own ────────────────────────────────────────────────────────────────────────

    def _be_monitor(self, slave: int, errors: tuple[int, int] | None) -> NoReturn:
        try:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            os.close(self._master)
            child = self._popen(
                stdin=slave if self._typing else None,
                stdout=slave,
                stderr=errors[1] if errors else slave,
                terminal=slave,
            )
            self._tell(_STARTED, child.pid)
            for fd in (slave, *(errors or ())):
                os.close(fd)
            self._attend(child.pid)
        except Exception as error:  # whatever it is, nobody else tells of it
            self._tell(_REFUSED, getattr(error, "errno", None) or errno.EIO)
        finally:
            os._exit(0)

    def _attend(self, pid: int) -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which comes when the other process has died
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                break
            self._tell(_STOPPED, os.WSTOPSIG(status))
        self._tell(_ENDED, status)
        signal.pause()  # until all was read: the end of a session's leader may cost what is still on its terminal


def _popen(
    command: Sequence[str],
    environment: Mapping[str, str],
    mask: Mask,
    *,
    stdin: int | None = None,
    stdout: int,
    stderr: int,
    terminal: int | None = None,
) -> subprocess.Popen[bytes]:
    def prepare() -> None:
        if terminal is not None:
            os.tcsetpgrp(terminal, os.getpid())  # SIGTTOU is held back still
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return subprocess.Popen(
        list(command),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=dict(environment),
        preexec_fn=prepare,  # noqa: PLW1509 - there are no threads yet
        process_group=None if terminal is None else 0,
    )


def _next_signal(held: Mask) -> tuple[int, bool]:
    """The next signal, and whether a key of the terminal made it."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(held)
        return info.si_signo, info.si_code > 0
    number = signal.sigwait(held)  # a system that does not tell who sent it
    return number, number in _KEYS


def _can_be_continued() -> bool:
    """Whether somebody is there to continue us: a parent in our session, as the shell is that started us."""
    parent = os.getppid()
    return parent > 0 and os.getsid(parent) == os.getsid(0)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _copy_terminal(outer: int, inner: int) -> None:
    with suppress(termios.error):
        termios.tcsetattr(inner, termios.TCSANOW, termios.tcgetattr(outer))
    _copy_window(inner)


def _copy_window(inner: int) -> None:
    with suppress(OSError):
        fcntl.ioctl(inner, termios.TIOCSWINSZ, fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(_WINDOW)))


def _written(to: int, data: bytes) -> bool:
    """Write all of it; False where nobody takes it."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(to, view) :]
        except BlockingIOError:
            select.select([], [to], [])
        except OSError:
            return False
    return True
