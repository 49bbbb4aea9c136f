# SPDX-License-Identifier: Apache-2.0
"""The ranks of one job as processes of this machine, with the environment that torchrun would give them."""
import itertools
import os
import random
import socket
import subprocess
import time


# Below those that the system gives to any connection, and none twice: jobs may start at the same time.
PORTS = itertools.count(random.randrange(12000, 30000))


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


def run(command, ranks, log, timeout=None, each=None):
    """Starts the command once a rank, each writing to log.rankN.log, in the environments `each` or those above. None where
    all did well; else how the first that failed ended, and its last words. The others are ended then, and all after so many
    seconds."""
    processes = []
    for rank, environment in enumerate(each or environments(ranks)):
        file = open(f"{log}.rank{rank}.log", "w+")
        processes.append((subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT), file))
    began, timed_out = time.monotonic(), False
    bad = lambda: next((each for each in processes if each[0].poll() not in (None, 0)), None)
    while not bad() and not timed_out and any(process.poll() is None for process, _ in processes):
        time.sleep(0.1)
        timed_out = timeout is not None and time.monotonic() - began > timeout
    failed = bad() or (next(each for each in processes if each[0].poll() is None) if timed_out else None)
    code = failed and failed[0].poll()
    for process, _ in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
    if failed is None:
        return None
    failed[1].seek(0)
    return f"exit {'timeout' if code is None else code}: " + failed[1].read()[-2000:]
