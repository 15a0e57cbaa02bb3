"""Assertions of the suite explain themselves like those of any test module."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.branching.suite")
