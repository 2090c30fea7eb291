#!/usr/bin/env python3
"""Makes reference.safetensors: ten optimiser steps of a tiny model with memory, by plain PyTorch autograd.

Written from the formulas alone, without spool's code: dense attention masks from a rule per pair of rows,
torch.nn.MultiheadAttention in the pooler, torch.optim.AdamW. Needs torch, numpy and safetensors.

    python3 tests/train/make_reference.py tests/train/reference.safetensors
"""
import math
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, KV, DIM, FFN, VOCAB = 2, 32, 4, 2, 8, 64, 64
N_SP, P_HEADS, P_LAYERS, P_FFN = 4, 4, 2, 48
RANK, ALPHA, EPS, BASE = 4, 8.0, 1e-5, 10000.0
PINNED, RAW, RW, CHUNK = 5, 55, 12, 8
STEPS, LR = 10, 3e-3
MATRICES = {"attn_q": (HEADS * DIM, WIDTH), "attn_k": (KV * DIM, WIDTH), "attn_v": (KV * DIM, WIDTH),
            "attn_output": (WIDTH, HEADS * DIM), "ffn_gate": (FFN, WIDTH), "ffn_up": (FFN, WIDTH),
            "ffn_down": (WIDTH, FFN)}


class PoolerLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cross = nn.MultiheadAttention(WIDTH, P_HEADS, batch_first=True)
        self.selfa = nn.MultiheadAttention(WIDTH, P_HEADS, batch_first=True)
        self.lnq1, self.lnk, self.lnq2, self.lnq3 = (nn.LayerNorm(WIDTH) for _ in range(4))
        self.ffn = nn.Sequential(nn.Linear(WIDTH, P_FFN), nn.GELU(), nn.Linear(P_FFN, WIDTH))

    def forward(self, q, past):
        k = self.lnk(past)
        q = q + self.cross(self.lnq1(q), k, k, need_weights=False)[0]
        h = self.lnq2(q)
        q = q + self.selfa(h, h, h, need_weights=False)[0]
        return q + self.ffn(self.lnq3(q))


class Pooler(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.randn(N_SP, WIDTH) * 0.3)
        self.blocks = nn.ModuleList(PoolerLayer() for _ in range(P_LAYERS))
        self.ln_out = nn.LayerNorm(WIDTH)
        self.out_scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, embedded):
        length = embedded.shape[0]
        angle = torch.arange(length)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))
        encoding = torch.zeros(length, WIDTH)
        encoding[:, 0::2], encoding[:, 1::2] = angle.sin(), angle.cos()
        past, q = (embedded + encoding)[None], self.query[None]
        for block in self.blocks:
            q = block(q, past)
        out = self.ln_out(q)[0]
        return out / out.norm(dim=-1, keepdim=True) * self.out_scale.abs()


def rms(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight


def rope(x, positions):  # [S, heads, DIM], neighbours rotate together
    angle = positions[:, None] * BASE ** (-torch.arange(0, DIM, 2) / DIM)
    c, s = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)


class Model:
    def __init__(self):
        self.w = {"token_embd.weight": torch.randn(VOCAB, WIDTH) * 0.5, "output_norm.weight": torch.rand(WIDTH) + 0.5}
        self.lora = {}
        for n in range(LAYERS):
            self.w[f"blk.{n}.attn_norm.weight"] = torch.rand(WIDTH) + 0.5
            self.w[f"blk.{n}.ffn_norm.weight"] = torch.rand(WIDTH) + 0.5
            for name, (out, inner) in MATRICES.items():
                self.w[f"blk.{n}.{name}.weight"] = torch.randn(out, inner) / math.sqrt(inner)
                self.lora[f"blk.{n}.{name}.weight.lora_a"] = nn.Parameter(torch.randn(RANK, inner) * 0.2)
                self.lora[f"blk.{n}.{name}.weight.lora_b"] = nn.Parameter(torch.randn(out, RANK) * 0.2)

    def linear(self, x, n, name):
        key = f"blk.{n}.{name}.weight"
        a, b = self.lora[key + ".lora_a"], self.lora[key + ".lora_b"]
        return x @ (self.w[key] + ALPHA / RANK * b @ a).T

    def forward(self, x, positions, visible):
        for n in range(LAYERS):
            h = rms(x, self.w[f"blk.{n}.attn_norm.weight"])
            q = rope(self.linear(h, n, "attn_q").view(-1, HEADS, DIM), positions)
            k = rope(self.linear(h, n, "attn_k").view(-1, KV, DIM), positions).repeat_interleave(HEADS // KV, 1)
            v = self.linear(h, n, "attn_v").view(-1, KV, DIM).repeat_interleave(HEADS // KV, 1)
            scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(DIM)
            weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
            x = x + self.linear(torch.einsum("hqk,khd->qhd", weights, v).flatten(1), n, "attn_output")
            h = rms(x, self.w[f"blk.{n}.ffn_norm.weight"])
            x = x + self.linear(F.silu(self.linear(h, n, "ffn_gate")) * self.linear(h, n, "ffn_up"), n, "ffn_down")
        return rms(x, self.w["output_norm.weight"]) @ self.w["token_embd.weight"].T


def boundaries(first_idle):
    length = (first_idle // CHUNK + 1) * CHUNK
    while length < RAW:
        yield length
        length += CHUNK


def carry_losses(model, pooler, tokens):
    embedding = model.w["token_embd.weight"]
    raw = tokens[PINNED:]
    rows = [("pin", i, i, None) for i in range(PINNED)]  # kind, position, index, compaction
    cuts = list(boundaries(RW + N_SP))
    vectors = {}
    for t in range(RAW):
        if t in cuts:
            k, w0 = cuts.index(t), t - RW
            vectors[k] = pooler(embedding[raw[:w0]])
            rows += [("sp", PINNED + w0 - N_SP + i, i, k) for i in range(N_SP)]
        rows.append(("raw", PINNED + t, t, sum(c <= t for c in cuts) - 1))

    def sees(q, key):
        (qk, _, qi, qc), (kk, _, ki, kc) = q, key
        if kk == "pin":
            return qk != "pin" or ki <= qi
        if qk == "pin":
            return False
        if qk == "sp":
            w0 = cuts[qc] - RW
            if kk == "sp":
                return kc == qc - 1 or (kc == qc and ki <= qi)
            return w0 - CHUNK <= ki < w0 - N_SP
        if kk == "sp":
            return kc == qc
        return ki <= qi and (qc < 0 or ki >= cuts[qc] - RW)

    visible = torch.tensor([[sees(q, k) for k in rows] for q in rows])
    positions = torch.tensor([float(r[1]) for r in rows])
    x = torch.stack([vectors[r[3]][r[2]] if r[0] == "sp" else embedding[(tokens if r[0] == "pin" else raw)[r[2]]]
                     for r in rows])
    logits = model.forward(x, positions, visible)
    place = {r[2]: i for i, r in enumerate(rows) if r[0] == "raw"}
    sources = [PINNED - 1] + [place[t] for t in range(RAW - 1)]
    return F.cross_entropy(logits[sources], raw, reduction="none")


def rebuild_losses(model, pooler, tokens):
    embedding = model.w["token_embd.weight"]
    raw = tokens[PINNED:]
    cuts = list(boundaries(RW))
    losses = []

    def causal(x):
        size = x.shape[0]
        return model.forward(x, torch.arange(size).float(), torch.tril(torch.ones(size, size, dtype=torch.bool)))

    logits = causal(embedding[tokens[:PINNED + cuts[0]]])
    losses.append(F.cross_entropy(logits[PINNED - 1:-1], raw[:cuts[0]], reduction="none"))
    for k, cut in enumerate(cuts):
        end = cuts[k + 1] if k + 1 < len(cuts) else RAW
        x = torch.cat([embedding[tokens[:PINNED]], pooler(embedding[raw[:cut - RW]]), embedding[raw[cut - RW:end]]])
        first = PINNED + N_SP + RW - 1
        losses.append(F.cross_entropy(causal(x)[first:first + end - cut], raw[cut:end], reduction="none"))
    return torch.cat(losses)


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    model, pooler = Model(), Pooler()
    with torch.no_grad():
        for parameter in pooler.parameters():  # no zero biases: every gradient is to be seen
            parameter.add_(torch.randn_like(parameter) * 0.05)
    tokens = torch.randint(0, VOCAB, (PINNED + RAW,))
    out = {"model/" + k: v.float() for k, v in model.w.items()}
    out |= {"lora/" + k: v.detach().float().clone() for k, v in model.lora.items()}
    out |= {"pooler/" + k: v.detach().float().clone() for k, v in pooler.state_dict().items()}
    out["tokens"] = tokens.to(torch.int32)
    # Both sides begin from the same rounded numbers; this side then computes in double precision.
    for store in (model.w, model.lora, dict(pooler.named_parameters())):
        for value in store.values():
            value.data = value.data.float().double()
    start = [p.detach().clone() for p in [*model.lora.values(), *pooler.parameters()]]
    trained = [*model.lora.values(), *pooler.parameters()]
    names = ["lora/" + k for k in model.lora] + ["pooler/" + k for k, _ in pooler.named_parameters()]
    for layout, run in (("carry", carry_losses), ("rebuild", rebuild_losses)):
        with torch.no_grad():
            for parameter, value in zip(trained, start):
                parameter.copy_(value)
        optimizer = torch.optim.AdamW(trained, lr=LR, weight_decay=0.01)
        losses = []
        for step in range(STEPS):
            optimizer.zero_grad()
            per_token = run(model, pooler, tokens)
            if step == 0:
                out[layout + "/per_token"] = per_token.detach().float()
            loss = per_token.mean()
            loss.backward()
            if step == 0:
                out |= {f"{layout}/gradient/{n}": p.grad.float().clone() for n, p in zip(names, trained)}
            losses.append(loss.item())
            optimizer.step()
        out[layout + "/losses"] = torch.tensor(losses, dtype=torch.float64)
        print(layout, losses)
    save_file(out, sys.argv[1])


main()
