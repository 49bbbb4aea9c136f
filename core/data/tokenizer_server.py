# SPDX-License-Identifier: Apache-2.0
# Tokenises for core/data/json_tokenizer.cpp, which starts it as `python3 -c <this> TOKENIZER_JSON [TOKEN...]`.
# First it writes a line of JSON: {"missing": why} without the tokenizers package, {"error": why}, or
# {"vocabulary": n, "ids": [id or null of each TOKEN]}. Then it answers requests until its input ends, in uint32:
# (count, lengths in bytes, UTF-8 texts) by (counts of tokens, ids).
import sys

sys.path = [folder for folder in sys.path if folder]  # no module of the folder that the user happens to be in
import array
import json

source, sink = sys.stdin.buffer, sys.stdout.buffer
sys.stdout = sys.stderr  # whatever else prints must not disturb


def say(answer):
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


def read(size):
    data = source.read(size)
    if len(data) < size:
        sys.exit(0)
    return data


def numbers(count):
    return array.array("I", read(4 * count))


try:
    import tokenizers
except Exception as error:
    say({"missing": str(error)})
    sys.exit(0)
try:
    tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values())
except Exception as error:
    say({"error": str(error)})
    sys.exit(0)
say({"vocabulary": largest + 1, "ids": [tokenizer.token_to_id(token) for token in sys.argv[2:]]})

encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)  # the fast one counts no offsets
while True:
    lengths = numbers(numbers(1)[0])
    texts = [read(length).decode("utf-8", "replace") for length in lengths]
    encodings = [encoding.ids for encoding in encode(texts, add_special_tokens=False)]
    sink.write(array.array("I", map(len, encodings)).tobytes())
    for ids in encodings:
        sink.write(array.array("I", ids).tobytes())
    sink.flush()
