"""Several commands of dbt in one process, which takes it long enough to start: run.py seed -- run --threads 4."""

import sys
from itertools import groupby

from dbt.cli.main import dbtRunner

runner = dbtRunner()
outcomes = []
for ends, words in groupby(sys.argv[1:], "--".__eq__):
    if not ends:
        outcomes.append(runner.invoke([*words, "--no-use-colors"]).success)
sys.exit(not all(outcomes))
