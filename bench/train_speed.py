#!/usr/bin/env python3
"""Speed and memory of a LoRA step on SmolLM2-135M, spool-train's and eager PyTorch's, by turns.

    ~/.cache/spool/torch/bin/python bench/train_speed.py SHARDS [TOKENS] [STEPS] [ROUNDS]

SHARDS is a folder made by `spool prepare` for the default model, with traces of TOKENS or more. Run it from the repository's
root. Prints tokens a second (of the fastest step) and peak resident memory; then what spool-train's options
save.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

MODEL = "models/SmolLM2-135M-Instruct.Q4_1.gguf"
HERE = os.path.dirname(os.path.abspath(__file__))


def finished(command):
    """Runs it; its output and peak resident memory in MiB."""
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        output.seek(0)
        text = output.read()
    if status != 0:
        sys.exit(f"{' '.join(command)} failed:\n{text}")
    return text, usage.ru_maxrss / 1024


def spool(shards, tokens, steps, *options):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        _, memory = finished(["build/bin/spool-train", "run", "--model", MODEL, "--data", shards, "--out", out, "--steps", str(steps),
                              "--full-share", "1", "--batch-tokens", "1", "--max-tokens", str(tokens), "--eval-every", "1000000",
                              "--save-every", "1000000", *options])
        with open(os.path.join(out, "log.jsonl"), encoding="utf-8") as log:
            entries = [json.loads(line) for line in log]
    losses = [entry for entry in entries if "loss" in entry]
    return max(entry["tokens_per_second"] for entry in losses), memory


def peer(tokens, steps):
    text, memory = finished([sys.executable, os.path.join(HERE, "train_peer.py"), str(tokens), str(steps)])
    return float(re.search(r"([0-9.]+) tokens", text)[1]), memory


def main():
    shards = sys.argv[1]
    tokens, steps, rounds = (int(value) for value in (sys.argv[2:] + ["1024", "4", "2"][len(sys.argv) - 2:]))
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(spool(shards, tokens, steps))
        theirs.append(peer(tokens, steps))
    speed = statistics.median(value[0] for value in ours)
    peer_speed = statistics.median(value[0] for value in theirs)
    print(f"{'':24}{'tokens/s':>10}{'peak MiB':>10}")
    print(f"{'spool-train, LoRA':24}{speed:10.1f}{max(value[1] for value in ours):10.0f}")
    print(f"{'PyTorch, eager':24}{peer_speed:10.1f}{max(value[1] for value in theirs):10.0f}")
    print(f"ratio {speed / peer_speed:.3f}")
    for name, options in (("--recompute", ["--recompute"]), ("--stage qlora", ["--stage", "qlora"]),
                          ("both", ["--stage", "qlora", "--recompute"])):
        value = spool(shards, tokens, steps, *options)
        print(f"{name:24}{value[0]:10.1f}{value[1]:10.0f}")


if __name__ == "__main__":
    main()
