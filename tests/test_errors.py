"""The error tree: what its docstring draws is what stands, and every error survives a trip between processes."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest
from mergepub import errors
from mergepub.errors import MergepubError

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, MergepubError)]

DATA = {
    "UnresolvedMarkersError": {"line": 3},
    "RejectedError": {"limit": 16},
    "VersionConflictError": {"expected": 5, "current": 7},
    "DocumentExistsError": {"expected": 0, "current": 7},
    "DocumentDeletedError": {"expected": 5, "current": 7},
    "RecreatedError": {"expected": 5, "current": None},
    "BaseUnavailableError": {"expected": 5, "current": 3},
    "NotFoundError": {"tombstone": 7, "path": "/docs/guide.md"},
    "ThrottledError": {"after": 1.5},
    "BranchError": {"reason": "fenced"},
}


def drawn_tree():
    """(class, parent, exit status or None) for each line of the tree in the module's docstring."""
    above = []
    for line in errors.__doc__.splitlines():
        found = re.match(r"^ {4}([│├└─ ]*)(\w+Error)\b(?:\s+exit (\d))?", line)
        if not found:
            continue
        depth = len(found[1]) // 4
        above[depth:] = [found[2]]
        yield found[2], above[depth - 1] if depth else None, int(found[3]) if found[3] else None


def test_the_tree_in_the_docstring_names_every_error_with_its_parent_and_exit_status():
    drawn = {name: parent for name, parent, _ in drawn_tree()}
    assert drawn == {c.__name__: None if c is MergepubError else c.__mro__[1].__name__ for c in CLASSES}
    for name, _, status in drawn_tree():
        assert status in (None, getattr(errors, name).exit_status)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_error_carries_its_data_and_survives_pickling(cls):
    data = DATA.get(cls.__name__, {})
    error = cls("a whole sentence", hint="mergepub --help", **data)
    for copy in (error, pickle.loads(pickle.dumps(error))):
        assert type(copy) is cls
        assert str(copy) == copy.message == "a whole sentence"
        assert copy.hint == "mergepub --help"
        assert {name: getattr(copy, name) for name in data} == data


def test_the_reason_is_one_word_for_machines_and_only_where_there_is_one():
    assert {c.__name__: c.reason for c in CLASSES if c.reason} == {
        "BaseUnavailableError": "base-unavailable",
        "BinaryBodyError": "binary",
        "DocumentDeletedError": "deleted",
        "RecreatedError": "recreated",
    }


@pytest.mark.parametrize("cls", CLASSES)
def test_every_exit_status_is_one_that_the_command_line_promises(cls):
    assert cls.exit_status in {1, 2, 3, 4}
