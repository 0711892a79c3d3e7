#!/usr/bin/env python3
"""Runs the corpus and the guides on the newest release of each major version of PostgreSQL, and writes docs/versions.md.

    scripts/versions.py PGHERD [MAJOR …]

PGHERD is the program, which downloads what is not installed. Exit status 1 where a statement answers otherwise.
"""

import os
import re
import shutil
import subprocess
import sys

from run_tests import directory_in_memory

PAGE = "docs/versions.md"
# Statements that read are executed six times so, half of them with binary results.
MODE = "prepared"
SUMMARY = re.compile(
    r"^=== \d+x\d+: (\d+) statements, (\d+) executions: (\d+) different, \d+ known to differ, (\d+) refused by name", re.M)
FILE = re.compile(r"^(\S+\.sql): (\d+) statements, \d+ executions, (\d+) different", re.M)


def run(command, environment):
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", check=False)
    return process.returncode, process.stdout


def on(program, major, directory_of_files):
    """A line of the table, and whether all is well."""
    installed = f"/usr/lib/postgresql/{major}/bin"
    if os.path.exists(f"{installed}/postgres"):
        directory = installed
    else:
        directory = subprocess.check_output([program, "download", "--pg", major], text=True).strip()
    release = subprocess.check_output([f"{directory}/postgres", "--version"], text=True).split()[2]
    environment = dict(os.environ, PGHERD_TEST_PG_BIN=directory, PGHERD_DIFF_SHAPES="3x4", PGHERD_DIFF_MODES=MODE)
    if directory_of_files:
        environment["TMPDIR"] = directory_of_files
    test = ["cargo", "test", "--locked", "-p", "pgherd"]
    status, text = run([*test, "--test", "differential", "--", "--nocapture"], environment)
    print(text, flush=True)
    found = SUMMARY.search(text)
    if not found:
        sys.exit(f"versions: PostgreSQL {release} gave no summary")
    statements, executions, different, refused = found.groups()
    of = {name: (int(count), int(other)) for name, count, other in FILE.findall(text)}
    parts = []
    for name in ["extensions.sql", "everyday.sql"]:
        count, other = of[name]
        parts.append(f"all {count}" if other == 0 else f"**{other} of {count} differ**")
    guides, text = run([*test, "--test", "guides"], environment)
    print(text, flush=True)
    passed = "all" if guides == 0 else "**not all**"
    line = f"| {release} | {statements} | {executions} | {different} | {refused} | {parts[0]} | {parts[1]} | {passed} |"
    return line, status == 0 and guides == 0


HEAD = """# PostgreSQL's versions

Written by `make versions`: the corpus of `tests/differential` as prepared statements on a cluster of three workers with tables of 4
shards, and the guides, on a release of each major version (installed from the operating system's packages, else as `pgherd up` gets
it), each beside one plain server of the same release. A statement is different where a client could see another answer than the plain
server's; refused are those that [the interface's page](sql-interface.md) lists.

| PostgreSQL | statements | executions | different | refused by name | extensions alike | everyday statements alike | guides that hold |
|---|---|---|---|---|---|---|---|
"""


def write(major, line):
    """Puts the line of this major version in the page, whose other lines stay."""
    lines = {}
    if os.path.exists(PAGE):
        with open(PAGE, encoding="utf-8") as file:
            lines = {re.match(r"\| (\d+)", other)[1]: other for other in file.read().splitlines() if re.match(r"\| \d", other)}
    lines[major] = line
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(HEAD + "".join(f"{lines[each]}\n" for each in sorted(lines)))


def main():
    program, *majors = sys.argv[1:]
    well = True
    directory = directory_in_memory()
    for major in majors or ["15", "16", "17", "18"]:
        line, fine = on(program, major, directory)
        well &= fine
        write(major, line)
        print(line, flush=True)
    if directory:
        shutil.rmtree(directory, ignore_errors=True)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
