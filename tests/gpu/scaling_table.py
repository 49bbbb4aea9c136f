#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of tests/gpu/two_gpus.sh: what peer_bench.py --json wrote, a row each, with the scaling of tokens/s from one GPU
at equal work a GPU: beside the first card alone, and beside the slowest of the cards that work apart at the same time
(rows with `apart`, of one rank each).

    tests/gpu/scaling_table.py FILE
"""
import argparse
import json


def kind(row):
    """Rows of one kind differ in the number of ranks alone."""
    return row["size"], row["strategy"].split()[0], row["dtype"], row["batch"], row["seq"], tuple(row["settings"])


def cell(value, text):
    return "" if value is None else text.format(value)


def ratio(ours, theirs):
    return ours / theirs if ours and theirs else None


def side(row, who, text):
    """Its time in these words; in how many turns it was out of memory; empty where neither was measured."""
    parts = [text.format(**row)] if row[f"{who}_ms"] else []
    if turns := row[f"{who}_out_of_memory"]:
        parts.append(f"out of memory in {turns} of {row['turns']} turns")
    return ", ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", type=argparse.FileType())
    with parser.parse_args().file as file:
        rows = [json.loads(line) for line in file]
    alone, apart = {}, {}
    for row in rows:
        if row["ranks"] == 1 and row["ours_ms"]:
            if row.get("apart"):
                apart[kind(row)] = max(apart.get(kind(row), 0), row["ours_ms"])
            else:
                alone[kind(row)] = row["ours_ms"]
                if row["strategy"] == "full":  # whose one rank shards nothing, in groups of any size
                    alone.setdefault((kind(row)[0], "hybrid", *kind(row)[2:]), row["ours_ms"])
    print("| model, tokens a GPU | strategy | GPUs | ours | exposed | PyTorch | time ratio | our peak | their peak | memory ratio | scaling | cards apart |")
    print("|---" * 12 + "|")
    for row in rows:
        if row.get("apart"):
            continue
        many = row["ranks"] > 1
        print("| " + " | ".join([
            f"{row['size']} {row['dtype']}, {row['batch']} × {row['seq']}", " ".join([row["strategy"], *row["settings"]]), str(row["ranks"]),
            side(row, "ours", "{ours_ms:.1f} ms (min {ours_min_ms:.1f})"),
            cell(row["exposed"], "{:.1%}"), side(row, "peer", "{peer_ms:.1f} ms"), cell(ratio(row["ours_ms"], row["peer_ms"]), "**{:.2f}**"),
            cell(row["ours_peak"] and row["ours_peak"] / 2**30, "{:.2f} GiB"), cell(row["peer_peak"] and row["peer_peak"] / 2**30, "{:.2f} GiB"),
            cell(ratio(row["ours_peak"], row["peer_peak"]), "**{:.3f}**"),
            cell(ratio(alone.get(kind(row)), row["ours_ms"]) if many else None, "{:.1%}"),
            cell(ratio(apart.get(kind(row)), row["ours_ms"]) if many else None, "{:.1%}")]) + " |")


if __name__ == "__main__":
    main()
