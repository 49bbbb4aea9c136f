#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run of `tiny` that records everything, packed to be brought back: what the tests of the views open as a recording of real
GPUs. Each rank has a GPU of its own, or, with --share-device, its turns on the first one.

    tests/gpu/small_recording.py --ranks 2 --out recording.tar.xz      SHARDSCOPE_BIN names bin/
"""
import argparse
import os
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
import rank_processes

SETTINGS = {"model.preset": "tiny", "train.micro_batch": 2, "train.sequence_length": 128, "optimizer.warmup_steps": 0,
            "parallel.strategy": "full", "parallel.device": "cuda", "record.level": "full", "checkpoint.at_end": "false"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--share-device", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    worker = rank_processes.worker()
    with tempfile.TemporaryDirectory(prefix="recording-") as base:
        name = f"{options.ranks}-{'ranks' if options.share_device else 'gpus'}"
        folder = os.path.join(base, name)
        open(folder + ".toml", "w").close()
        settings = {**SETTINGS, "run.name": name, "data.path": rank_processes.SOURCE + "/LICENSES", "train.steps": options.steps,
                    "parallel.share_device": str(options.share_device).lower()}
        settings.update(assignment.split("=", 1) for assignment in options.set)
        command = [worker, folder + ".toml", "--out", folder]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        if failed := rank_processes.run(command, options.ranks, folder, timeout=300):
            sys.exit(failed.text)
        with tarfile.open(options.out, "w:xz") as archive:
            archive.add(folder, name)
    print(f"{options.out}: {os.path.getsize(options.out)} bytes")


if __name__ == "__main__":
    main()
