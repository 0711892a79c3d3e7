"""Django's test runner, with each test's result written for `make drivers`."""

import drivers_report
from django.test.runner import DiscoverRunner


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return drivers_report.Result
