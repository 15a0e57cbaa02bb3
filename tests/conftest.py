"""Fixtures that tests of every folder use, one profile for generated tests, the signals that programs start with."""

import signal

from hypothesis import HealthCheck, settings
from mergepub import calm
from tests.stores.postgres_server import own_postgres, postgres_database, postgres_server, postgres_url

__all__ = ["own_postgres", "postgres_database", "postgres_server", "postgres_url"]

# How fast examples come says how busy the machine is and nothing about the code.
settings.register_profile("mergepub", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mergepub")

# Files are made just before they are read here, and saved by nobody meanwhile; a test that saves one sets this itself.
calm.MOMENT = 0

# A suite run in the background of a shell, or under nohup, has these ignored, and programs under test inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
