"""One service for all tests of this folder that do not stop it; each test makes documents of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.service.wire import Client
from tests.stores.http_service import HttpService


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpService]:
    service = HttpService(str(tmp_path_factory.mktemp("service") / "store.sqlite")).start()
    yield service
    service.remove()


@pytest.fixture
def client(running: HttpService) -> Client:
    return Client(running.url)
