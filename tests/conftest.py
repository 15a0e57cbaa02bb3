"""Fixtures that tests of every folder use."""

from tests.stores.postgres_server import own_postgres, postgres_database, postgres_server, postgres_url

__all__ = ["own_postgres", "postgres_database", "postgres_server", "postgres_url"]
