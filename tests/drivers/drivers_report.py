"""Writes how each test ended, for pytest (`-p drivers_report`) and for unittest's runners (`Result`)."""

import os
import random
import unittest


def write(outcome, test):
    with open(os.environ["DRIVERS_RESULTS"], "a", encoding="utf-8", errors="replace") as file:
        file.write(f"{outcome} {' '.join(test.split())}\n")


def pytest_runtest_setup(item):
    # Tests with random data have the same on both sides.
    random.seed(item.nodeid)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        outcome = report.outcome.upper()
        if hasattr(report, "wasxfail"):
            # Whether an expected failure is one depends on the server's version: it is one of its ways to pass.
            outcome = "PASSED"
        write(outcome, report.nodeid)


class Result(unittest.TextTestResult):
    def addSuccess(self, test):
        super().addSuccess(test)
        write("PASSED", test.id())

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        write("PASSED", test.id())

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        write("FAILED", test.id())

    def addFailure(self, test, err):
        super().addFailure(test, err)
        write("FAILED", test.id())

    def addError(self, test, err):
        super().addError(test, err)
        write("FAILED", test.id())

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        write("SKIPPED", test.id())

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            write("FAILED", test.id())
