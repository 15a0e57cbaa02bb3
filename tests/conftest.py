"""Fixtures that tests of every folder use, and one profile for generated tests."""

from hypothesis import HealthCheck, settings
from tests.stores.postgres_server import own_postgres, postgres_database, postgres_server, postgres_url

__all__ = ["own_postgres", "postgres_database", "postgres_server", "postgres_url"]

# How fast examples come says how busy the machine is and nothing about the code.
settings.register_profile("mergepub", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mergepub")
