#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a folder's drive does at best: a file written and read past the page cache (O_DIRECT) in blocks of 8 MiB, some at a
time, as offload to NVMe does. Prints both rates, and with --moved how long a step that moves so much each way would take if
it did nothing else.

    tests/bench/disk_rate.py FOLDER [--gib 4] [--depth 4] [--moved GIB]
"""
import argparse
import concurrent.futures
import mmap
import os
import sys
import tempfile
import time

BLOCK = 8 << 20
GIB = 1 << 30


def rate(file, blocks, depth, move):
    """Bytes a second of move(file, buffers, offset) over all blocks, `depth` of them at a time."""
    buffers = [mmap.mmap(-1, BLOCK) for _ in range(depth)]  # aligned to pages, as O_DIRECT wants
    for buffer in buffers:
        buffer.write(os.urandom(BLOCK))  # a drive may compress what repeats

    def lane(first):
        for block in range(first, blocks, depth):
            done = move(file, [buffers[first]], block * BLOCK)
            if done != BLOCK:
                raise OSError(f"{done} of {BLOCK} bytes were moved at {block * BLOCK}")

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(depth) as threads:
        list(threads.map(lane, range(depth)))
    return blocks * BLOCK / (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--gib", type=float, default=4, help="size of the file")
    parser.add_argument("--depth", type=int, default=4, help="blocks at a time")
    parser.add_argument("--moved", type=float, metavar="GIB", help="that a step reads, and writes again")
    a = parser.parse_args()
    blocks = max(a.depth, int(a.gib * GIB) // BLOCK)
    with tempfile.NamedTemporaryFile(dir=a.folder, prefix="disk-rate-") as place:
        try:
            file = os.open(place.name, os.O_RDWR | os.O_DIRECT)
        except OSError as error:
            sys.exit(f"{a.folder} does not take O_DIRECT ({error.strerror}): there is no rate of its drive to measure.")
        try:
            write = rate(file, blocks, a.depth, os.pwritev)
            read = rate(file, blocks, a.depth, os.preadv)
        finally:
            os.close(file)
    text = f"{a.folder}: O_DIRECT write {write / GIB:.2f} GiB/s, read {read / GIB:.2f} GiB/s"
    if a.moved:
        text += f"; {a.moved:.2f} GiB each way take {a.moved * GIB * (1 / write + 1 / read) * 1e3:.0f} ms one after the other"
    print(text, flush=True)


if __name__ == "__main__":
    main()
