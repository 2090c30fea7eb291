#!/usr/bin/env python3
"""Writes goldens.safetensors: AttnPoolSP of the reference shape computed by PyTorch's own modules.

    pip install torch==2.13.0 numpy safetensors        python make_goldens.py

Weights (75.5 M) and token rows are not stored: generated.h makes the same ones from the same integer hash. All
scales are powers of two, so that both sides agree to the last bit. For L = 4096 the whole soft prompt is stored, for the
other lengths the columns c of vector v with (v + c) % 4 == 0; the mass always in full.

Everything runs in float32 on one thread. The position encoding is the usual float32 one,
    sin(arange(L) * exp(arange(0, H, 2) * (-log(10000) / H)))
except that the frequencies are the correctly rounded exponentials: torch.exp differs from them by one unit in the last
place for 8 of the 768 frequencies with MKL, and for other ones with other backends, which at position 4,096 is
enough to move a token's mass by 1.6e-5 of its value.
"""

import math
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file

HIDDEN, N_SP, HEADS, LAYERS, FFN, OUT_SCALE = 1536, 32, 8, 3, 2048, -1.5
LENGTHS = (1, 2, 31, 576, 4096)
ROWS_SEED = 1000


def uniform(seed, count):
    """[-1, 1) in steps of 2^-23: the splitmix64 finaliser of seed and index."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return ((x >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float32) * np.float32(2.0**-23)


def generated(name, seed, shape):
    """Sizes as in a trained pooler; cross-attention's projections are wide enough for a peaked attention."""
    values = uniform(seed, math.prod(shape)).reshape(shape)
    if name.split(".")[-2:][0].startswith("ln"):
        return 1 + values * np.float32(2.0**-3) if name.endswith("weight") else values * np.float32(2.0**-4)
    if name.endswith("cross.in_proj_weight"):
        return values * np.float32(2.0**-4)
    if name == "query" or name.endswith("in_proj_weight"):
        return values * np.float32(2.0**-5)
    return values * np.float32(2.0**-6 if name.endswith("bias") else 2.0**-5)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cross = torch.nn.MultiheadAttention(HIDDEN, HEADS, batch_first=True)
        self.selfa = torch.nn.MultiheadAttention(HIDDEN, HEADS, batch_first=True)
        self.lnq1, self.lnk, self.lnq2, self.lnq3 = (torch.nn.LayerNorm(HIDDEN) for _ in range(4))
        self.ffn = torch.nn.Sequential(torch.nn.Linear(HIDDEN, FFN), torch.nn.GELU(), torch.nn.Linear(FFN, HIDDEN))

    def forward(self, q, past):
        keys = self.lnk(past)
        out, weights = self.cross(self.lnq1(q), keys, keys, need_weights=True, average_attn_weights=True)
        q = q + out
        normed = self.lnq2(q)
        q = q + self.selfa(normed, normed, normed, need_weights=False)[0]
        return q + self.ffn(self.lnq3(q)), weights


class AttnPoolSP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Parameter(torch.empty(N_SP, HIDDEN))
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_out = torch.nn.LayerNorm(HIDDEN)

    def forward(self, past):
        q = self.query[None]
        mass = torch.zeros(past.shape[0])
        for block in self.blocks:
            q, weights = block(q, past[None])
            mass = mass + weights[0].sum(0)
        sp = self.ln_out(q)[0]
        return sp / sp.norm(dim=-1, keepdim=True) * abs(OUT_SCALE), mass


def position_encoding(length):
    exponent = np.arange(0, HIDDEN, 2, dtype=np.float32) * np.float32(-math.log(10000.0) / HIDDEN)
    frequency = torch.from_numpy(np.exp(exponent.astype(np.float64)).astype(np.float32))
    angle = torch.arange(length, dtype=torch.float32)[:, None] * frequency
    encoding = torch.empty(length, HIDDEN)
    encoding[:, 0::2] = torch.sin(angle)
    encoding[:, 1::2] = torch.cos(angle)
    return encoding


def tensor_names():
    """The order of pooler_tensors()."""
    names = ["query"]
    for i in range(LAYERS):
        block = f"blocks.{i}."
        for attention in ("cross.", "selfa."):
            names += [block + attention + part for part in ("in_proj_weight", "in_proj_bias", "out_proj.weight",
                                                            "out_proj.bias")]
        names += [f"{block}{norm}.{part}" for norm in ("lnq1", "lnk", "lnq2", "lnq3") for part in ("weight", "bias")]
        names += [f"{block}ffn.{part}" for part in ("0.weight", "0.bias", "2.weight", "2.bias")]
    return names + ["ln_out.weight", "ln_out.bias"]


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    pooler = AttnPoolSP()
    parameters = dict(pooler.named_parameters())
    assert sorted(parameters) == sorted(tensor_names())
    for seed, name in enumerate(tensor_names()):
        parameters[name].copy_(torch.from_numpy(generated(name, seed, tuple(parameters[name].shape))))

    goldens = {}
    for length in LENGTHS:
        rows = uniform(ROWS_SEED, length * HIDDEN).reshape(length, HIDDEN) * np.float32(2.0**-4)
        sp, mass = pooler(torch.from_numpy(rows) + position_encoding(length))
        if length != 4096:
            sp = torch.stack([sp[v, (-v) % 4 :: 4] for v in range(N_SP)])
        goldens[f"soft_prompt.{length}"] = sp.contiguous().numpy()
        goldens[f"mass.{length}"] = mass.numpy()
        print(f"L={length}: |sp| element {sp.std():.4f}, mass {mass.min():.4f} to {mass.max():.4f}")
    save_file(goldens, pathlib.Path(__file__).parent / "goldens.safetensors")


main()
