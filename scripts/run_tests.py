#!/usr/bin/env python3
"""Builds the tests as `cargo test` does and runs the test programs side by side.

    scripts/run_tests.py [--jobs N] [options of cargo test]

Each program's output comes whole when it has ended, with cargo's heading. All are run, also after one that fails; what
failed is named at the end. The longest come first: how long each took is kept in target/test-times.json. Examples in
documentation, of which there are none that run, are left to `cargo test --doc`.

N is how many programs run at once (JOBS in the environment; else one more than there are processors: a test often waits).

Servers' files are kept in memory where there is enough of it (unless TMPDIR says where): tests make and drop thousands of
databases and tables, and a file system on disk takes a third of all time for that.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

MEMORY = "/dev/shm"
# What servers of side by side programs have needed at most, and as much again.
MEMORY_MIN_BYTES = 10 << 30

# Seconds where nothing is known yet: the long ones.
KNOWN = {"differential": 430, "corpus": 120, "definitions": 110, "guides": 75, "fuzz": 60, "commit_faults": 50,
         "tools": 250}


def options(words):
    """Splits into our own and cargo's; what `cargo test` would not need is dropped."""
    jobs = os.environ.get("JOBS", "")
    rest = []
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--jobs":
            jobs = words.pop(0) if words else ""
        elif word != "--no-fail-fast":
            rest.append(word)
    behind = rest[rest.index("--") + 1:] if "--" in rest else []
    cargo = rest[:rest.index("--")] if "--" in rest else rest
    # As for cargo: a word that is no option, or an option's value, chooses tests by name.
    valued = ("-p", "--package", "--test", "--bin", "--example", "--features", "--exclude", "--target", "--profile")
    names = [w for at, w in enumerate(cargo) if not w.startswith("-") and (at == 0 or cargo[at - 1] not in valued)]
    cargo = [w for w in cargo if w not in names]
    return int(jobs or (os.cpu_count() or 1) + 1), cargo, names + behind


def build(cargo):
    """The test programs: what they are called, where they are, and from where they run."""
    command = ["cargo", "test", "--locked", "--no-run", "--message-format=json-render-diagnostics", *cargo]
    programs = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            message = json.loads(line)
            if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message.get("executable"):
                directory = os.path.dirname(message["manifest_path"])
                source = os.path.relpath(message["target"]["src_path"], directory)
                unit = "unittests " if set(message["target"]["kind"]) & {"lib", "bin"} else ""
                package = os.path.basename(directory)
                programs.append({"name": f"{package} {unit}{source}", "path": message["executable"], "directory": directory})
    if process.returncode != 0:
        sys.exit(process.returncode)
    return programs


def seconds_of(program, times):
    stem = os.path.splitext(os.path.basename(program["name"]))[0]
    return times.get(program["name"], KNOWN.get(stem, 5))


def directory_in_memory():
    """For the servers' files; none where there is not enough memory, or somebody has said where."""
    try:
        system = os.statvfs(MEMORY)
        with open("/proc/meminfo", encoding="ascii") as file:
            available = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None
    if os.environ.get("TMPDIR") or min(system.f_bavail * system.f_frsize, available) < MEMORY_MIN_BYTES:
        return None
    directory = tempfile.mkdtemp(prefix="pgherd-tests-", dir=MEMORY)
    os.chmod(directory, 0o1777)
    return directory


def run(program, behind, directory):
    """The exit status, and all that was printed."""
    environment = dict(os.environ, CARGO_MANIFEST_DIR=program["directory"])
    if directory:
        environment["TMPDIR"] = directory
    with tempfile.TemporaryFile() as output:
        # A file: what a test leaves running in the background would keep a pipe open.
        process = subprocess.run(
            [program["path"], *behind], cwd=program["directory"], env=environment, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, check=False)
        output.seek(0)
        return process.returncode, output.read().decode(errors="replace")


def main():
    jobs, cargo, behind = options(sys.argv[1:])
    programs = build(cargo)
    if not programs:
        sys.exit("run_tests: there is nothing to run")
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    times_file = os.path.join(target, "test-times.json")
    try:
        with open(times_file, encoding="utf-8") as file:
            times = json.load(file)
    except (OSError, ValueError):
        times = {}
    queue = sorted(programs, key=lambda program: -seconds_of(program, times))
    lock = threading.Lock()
    ended, failed = [], []
    directory = directory_in_memory()
    began = time.monotonic()

    def work():
        while True:
            with lock:
                if not queue:
                    return
                program = queue.pop(0)
            since = time.monotonic()
            try:
                status, text = run(program, behind, directory)
            except Exception as error:  # pylint: disable=broad-except
                status, text = 1, f"cannot be run: {error}"
            seconds = time.monotonic() - since
            with lock:
                times[program["name"]] = round(seconds, 1)
                ended.append(program["name"])
                if status != 0:
                    failed.append(program["name"])
                shown = os.path.relpath(program["path"])
                print(f"     Running {program['name']} ({shown})\n{text.rstrip()}\n", flush=True)
                if status != 0:
                    print(f"error: test failed: {program['name']} (exit status {status})\n", flush=True)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if directory:
        shutil.rmtree(directory, ignore_errors=True)
    try:
        with open(times_file, "w", encoding="utf-8") as file:
            json.dump(times, file, indent=1, sort_keys=True)
    except OSError as error:
        print(f"{times_file}: {error}")
    print(f"{len(programs)} test programs in {time.monotonic() - began:.0f} s, {jobs} at a time; {len(failed)} failed", flush=True)
    for name in failed:
        print(f"    FAILED {name}", flush=True)
    sys.exit(101 if failed or len(ended) < len(programs) else 0)


if __name__ == "__main__":
    main()
