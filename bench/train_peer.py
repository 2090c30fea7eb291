#!/usr/bin/env python3
"""The step of `spool-train run --full-share 1`, in eager PyTorch: a LoRA step of SmolLM2-135M's shapes, float32.

    ~/.cache/spool/torch/bin/python bench/train_peer.py [TOKENS] [STEPS] [THREADS]

Prints tokens a second and the peak memory. Weights are random: speed depends on the shape alone.
"""
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, KV, DIM, FFN, VOCAB, RANK = 30, 576, 9, 3, 64, 1536, 49152, 16


class Adapted(nn.Module):
    def __init__(self, inner, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, inner) * 0.02, requires_grad=False)
        self.a = nn.Parameter(torch.randn(RANK, inner) * 0.02)
        self.b = nn.Parameter(torch.zeros(out, RANK))

    def forward(self, x):
        return F.linear(x, self.weight) + F.linear(F.linear(x, self.a), self.b) * 2.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = Adapted(WIDTH, WIDTH), Adapted(WIDTH, KV * DIM), Adapted(WIDTH, KV * DIM)
        self.o, self.gate, self.up = Adapted(WIDTH, WIDTH), Adapted(WIDTH, FFN), Adapted(WIDTH, FFN)
        self.down = Adapted(FFN, WIDTH)
        self.norms = nn.ParameterList(nn.Parameter(torch.ones(WIDTH), requires_grad=False) for _ in range(2))

    def forward(self, x, cosine, sine):
        def heads(t, n):
            return t.view(1, -1, n, DIM).transpose(1, 2)

        def rotate(t):
            a, b = t.chunk(2, -1)
            return t * cosine + torch.cat((-b, a), -1) * sine

        h = F.rms_norm(x, (WIDTH,), self.norms[0], 1e-5)
        q, k, v = rotate(heads(self.q(h), HEADS)), rotate(heads(self.k(h), KV)), heads(self.v(h), KV)
        k, v = k.repeat_interleave(HEADS // KV, 1), v.repeat_interleave(HEADS // KV, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(1, -1, WIDTH)
        x = x + self.o(y)
        h = F.rms_norm(x, (WIDTH,), self.norms[1], 1e-5)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def main():
    tokens, steps, threads = (int(a) for a in (sys.argv[1:] + ["1500", "4", "2"][len(sys.argv) - 1:]))
    torch.set_num_threads(threads)
    embedding = torch.randn(VOCAB, WIDTH) * 0.02
    blocks = nn.ModuleList(Block() for _ in range(LAYERS))
    optimizer = torch.optim.AdamW([p for p in blocks.parameters() if p.requires_grad], lr=2e-4, fused=True)
    angles = torch.outer(torch.arange(tokens).float(), 1e5 ** (-torch.arange(0, DIM, 2) / DIM)).repeat(1, 2)
    times = []
    for _ in range(steps):
        ids = torch.randint(0, VOCAB, (1, tokens + 1))
        start = time.monotonic()
        x = F.embedding(ids[:, :-1], embedding)
        for block in blocks:
            x = block(x, angles.cos(), angles.sin())
        logits = F.linear(F.rms_norm(x, (WIDTH,), torch.ones(WIDTH), 1e-5), embedding)
        F.cross_entropy(logits[0], ids[0, 1:]).backward()
        torch.nn.utils.clip_grad_norm_(blocks.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.monotonic() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{tokens / min(times):.1f} tokens/s (best of {steps}), peak {peak:.0f} MiB")


main()
