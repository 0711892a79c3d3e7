"""Django's settings for its tests: two databases on the server that the environment names."""

import os


def database(name):
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "USER": os.environ["PGUSER"],
        # The tests run in databases that Django creates, with test_ before this name.
        "NAME": name,
        # Whether values are bound to statements, or written into them.
        "OPTIONS": {"server_side_binding": os.environ.get("DRIVERS_BINDING") == "server"},
    }


DATABASES = {
    "default": database(os.environ["PGDATABASE"]),
    "other": database(os.environ["PGDATABASE"] + "_other"),
}
SECRET_KEY = "tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "drivers_runner.Runner"
