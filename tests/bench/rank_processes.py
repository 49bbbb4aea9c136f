# SPDX-License-Identifier: Apache-2.0
"""The ranks of one job as processes of this machine, with the environment that torchrun would give them."""
import itertools
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from typing import NamedTuple

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Below those that the system gives to any connection, and none twice: jobs may start at the same time.
PORTS = itertools.count(random.randrange(12000, 30000))
# Ranks end with a script that is killed.
TIED = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
# Once a rank has failed, the others have so long to fail of themselves: the one that says why is seldom the first to end.
LAST_WORDS_S = 3
# What our worker (app/worker/failure_text.cpp), PyTorch, cuBLAS and cuDNN, and NCCL's allocator say. Not any mention: a
# worker that warns of its need, or an illegal memory access, is none.
OUT_OF_MEMORY = re.compile(r"Rank \d+ ran out of memory: |OutOfMemoryError: |CUDA error: out of memory|"
                           r"CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED|Cuda failure (?:\d+ )?'out of memory'|Failed to CUDA [cm]alloc|"
                           r"DefaultCPUAllocator: can't allocate memory")


class Failure(NamedTuple):
    """text: the rank, how it ended, and its words: of one that ran out of memory, if any did, else of the first that failed."""
    text: str
    out_of_memory: bool


def worker():
    """The path of shardscope-worker, in the folder that SHARDSCOPE_BIN names; ends with 2 where there is none."""
    folder = os.environ.get("SHARDSCOPE_BIN", os.path.join(SOURCE, "build/release/bin"))
    path = os.path.join(folder, "shardscope-worker")
    if not os.access(path, os.X_OK):
        print(f"There is no shardscope-worker in {folder}: build it (packaging/setup.sh) or name its folder in SHARDSCOPE_BIN.",
              file=sys.stderr)
        sys.exit(2)
    return path


def free_port():
    for port in PORTS:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def environments(ranks, **more):
    """A rank's environment each, for one job at a free port of this machine."""
    port = str(free_port())
    return [dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                 MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **more) for rank in range(ranks)]


def run(command, ranks, log, timeout=900, each=None):
    """Starts the command once a rank, each writing to log.rankN.log, in the environments `each` or those above. None where
    all did well, else a Failure: a rank failed, or some had not ended after so many seconds. None is left running."""
    processes = []
    try:
        for rank, environment in enumerate(each or environments(ranks)):
            with open(f"{log}.rank{rank}.log", "w") as file:
                processes.append(subprocess.Popen(TIED + command, env=environment, stdout=file, stderr=subprocess.STDOUT))
        codes, failed = wait(processes, timeout)
    finally:
        end(processes)
    late = "ended here, as another had failed" if failed else f"not ended after {timeout} s"
    first = None
    # Those that were ended here too: who is out of memory may hang while it tidies up.
    for rank in failed + [rank for rank, code in enumerate(codes) if code is None]:
        with open(f"{log}.rank{rank}.log", errors="replace") as file:
            text = file.read()
        title = f"rank {rank}, {late if codes[rank] is None else f'exit {codes[rank]}'}: "
        if found := OUT_OF_MEMORY.search(text):
            line = text.rfind("\n", 0, found.start()) + 1
            return Failure(title + text[line:line + 2000].strip(), True)
        first = first or Failure(title + text[-2000:].strip(), False)
    return first


def wait(processes, timeout):
    """Until all have ended, LAST_WORDS_S after the first failed, or so many seconds: the exit codes (None of those that still
    run) and the ranks that failed, in the order in which they did."""
    until, failed = time.monotonic() + timeout, []
    while True:
        codes = [process.poll() for process in processes]
        failed += [rank for rank, code in enumerate(codes) if code and rank not in failed]
        if failed:
            until = min(until, time.monotonic() + LAST_WORDS_S)
        if None not in codes or time.monotonic() > until:
            return codes, failed
        time.sleep(0.1)


def end(processes):
    """Kills those that still run."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.kill()
    for process in running:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            print(f"Process {process.pid} does not end, though killed.", file=sys.stderr)
