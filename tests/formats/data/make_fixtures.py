#!/usr/bin/env python3
"""Makes the files beside it, from PyTorch, safetensors and numpy: nothing of spool takes part.

    python3 make_fixtures.py        needs torch, safetensors, numpy

Values are multiples of 1/8 small enough to be exact in every floating-point type, so that a test can state them:
element i of a tensor with n elements is (i - n // 2) / 8; integers are i - n // 2, unsigned ones i, booleans i % 3 == 0.
"""

import pathlib
import pickle
import zipfile

import numpy as np
import safetensors.torch
import torch

HERE = pathlib.Path(__file__).parent


def ramp(shape, dtype=torch.float32):
    n = int(np.prod(shape))
    i = torch.arange(n)
    if dtype == torch.bool:
        return (i % 3 == 0).reshape(shape)
    if dtype.is_floating_point:
        return ((i - n // 2).double() / 8).to(dtype).reshape(shape)
    unsigned = dtype in (torch.uint8, torch.uint16, torch.uint32)
    return (i if unsigned else i - n // 2).to(dtype).reshape(shape)


TYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8,
    "u32": torch.uint32, "u16": torch.uint16, "u8": torch.uint8, "bool": torch.bool,
}


def torch_files():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 2), torch.nn.LayerNorm(4)])
            self.scale = torch.nn.Parameter(torch.tensor(0.5))

    model = Model()
    for parameter in model.parameters():
        if parameter.dim() > 0:
            parameter.data = ramp(parameter.shape)
    torch.save(model.state_dict(), HERE / "state_dict.pt")

    base = ramp((6, 4))
    torch.save({
        "step": 3, "rate": 1e-3, "note": "not a tensor", "shape": torch.Size([1, 2]), "nothing": None,
        "big": 2**40, "dtype": torch.float16,
        "types": {name: ramp((2, 3), dtype) for name, dtype in TYPES.items()},
        "parameter": torch.nn.Parameter(ramp((5,))),
        "slice": base[2:4], "tied": base, "empty": torch.zeros((0, 3)),
        "list": [ramp((2,)), ramp((3,))], 7: ramp((1,)),
    }, HERE / "checkpoint.pt")
    torch.save({"fine": ramp((2, 2)), "turned": ramp((2, 3)).t()}, HERE / "transposed.pt")
    torch.save({"wide": ramp((1,)).expand(1 << 20)}, HERE / "expanded.pt")
    torch.save({"a": ramp((2, 3))}, HERE / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save({"a": ramp((2, 3))}, HERE / "protocol4.pt", pickle_protocol=4)
    torch.save(model.layers[0], HERE / "module.pt")


def rezip(name, compression=zipfile.ZIP_STORED, force_zip64=False, **replaced):
    """state_dict.pt packed again by Python's zipfile, with some members' contents replaced (None: left out)."""
    with zipfile.ZipFile(HERE / "state_dict.pt") as source, \
         zipfile.ZipFile(HERE / name, "w", compression) as target:
        for info in source.infolist():
            member = info.filename.split("/", 1)[1]
            content = replaced.get(member.replace(".", "_"), source.read(info))
            if content is not None:
                new = zipfile.ZipInfo("archive/" + member, date_time=(1980, 1, 1, 0, 0, 0))
                new.compress_type = compression
                with target.open(new, "w", force_zip64=force_zip64) as out:
                    out.write(content)


class Command:
    def __reduce__(self):
        import os
        return os.system, ("touch executed-by-spool",)


def doubling_dict(levels):
    """A dict whose two entries are one dict, and so on: 2^levels names for one tensor. Written by hand because
    PyTorch has no reason to write one."""
    storage = (b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x001X\x03\x00\x00\x00cpuK\x06tQ")
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x02K\x03\x86K\x03K\x01\x86\x89N" + b"tR"
    out = b"\x80\x02" + tensor + b"q\x00"
    for level in range(1, levels + 1):
        # a new dict over the object in the slot below; the object itself stays beneath it on the stack
        out += b"}(" + b"X\x01\x00\x00\x00a" + b"h" + bytes([level - 1])
        out += b"X\x01\x00\x00\x00b" + b"h" + bytes([level - 1]) + b"uq" + bytes([level])
    # One object has to be left at the end, so the intermediate ones go into a tuple that nothing uses.
    everything = b"\x80\x02}(X\x01\x00\x00\x00t(" + out[2:] + b"tX\x01\x00\x00\x00dh" + bytes([levels]) + b"u."
    return everything


def evil_files():
    command = pickle.dumps({"weight": Command()}, protocol=2)
    rezip("evil_command.pt", data_pkl=command)
    rezip("evil_memo.pt", data_pkl=b"\x80\x02}r\xff\xff\xff\xff.")  # slot 4294967295: fine for a map, not a vector
    rezip("evil_doubling.pt", data_pkl=doubling_dict(30))
    rezip("evil_cycle.pt", data_pkl=b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.")
    rezip("evil_depth.pt", data_pkl=b"\x80\x02" + b"(" * 20000 + b"t" * 20000 + b".")
    rezip("evil_missing_storage.pt", **{"data/0": None})
    rezip("evil_short_storage.pt", **{"data/0": b"\0" * 12})
    rezip("compressed.pt", compression=zipfile.ZIP_DEFLATED)
    rezip("big_endian.pt", byteorder=b"big")
    rezip("zip64.pt", force_zip64=True)


def safetensors_files():
    safetensors.torch.save_file({name: ramp((2, 3), dtype) for name, dtype in TYPES.items()},
                                HERE / "types.safetensors", metadata={"format": "pt", "note": "every type"})


def pack_codes(codes):
    """uint8 [rows, cols] below 16 -> uint32 [rows, cols / 8], the first column in the low 4 bits."""
    words = np.zeros((codes.shape[0], codes.shape[1] // 8), np.uint32)
    for j in range(8):
        words |= codes[:, j::8].astype(np.uint32) << np.uint32(4 * j)
    return words


def bf16(values):
    return torch.from_numpy(values.astype(np.float32)).to(torch.bfloat16)


def mlx_files():
    rng = np.random.default_rng(7)
    rows, cols, group = 6, 192, 64
    codes = rng.integers(0, 16, (rows, cols)).astype(np.uint8)
    # Eighths with few bits: code * scale + bias is then exact in float32 whatever the order of rounding.
    scales = (rng.integers(-60, 60, (rows, cols // group)) / 64).astype(np.float32)
    biases = (rng.integers(-90, 90, (rows, cols // group)) / 32).astype(np.float32)
    expected = codes.astype(np.float32) * np.repeat(scales, group, 1) + np.repeat(biases, group, 1)
    assert (scales < 0).any() and (scales > 0).any()
    tiny = scales.copy()
    tiny[3, 1] = 2.0**-30  # a bfloat16, but below the smallest float16
    third = scales.copy()
    third[0, 0] = 1 / 3  # a float32 that is no float16
    words = torch.from_numpy(pack_codes(codes))
    half = {"scales": torch.from_numpy(scales).half(), "biases": torch.from_numpy(biases).half()}
    tensors = {
        "half.weight": words, "half.scales": half["scales"], "half.biases": half["biases"],
        # upstream's pooler keeps the matrix under its own name
        "blocks.0.ffn.0.weight": words, "blocks.0.ffn.0.weight.scales": bf16(scales),
        "blocks.0.ffn.0.weight.biases": bf16(biases),
        "tiny.weight": words, "tiny.scales": bf16(tiny), "tiny.biases": bf16(biases),
        "third.weight": words, "third.scales": torch.from_numpy(third), "third.biases": torch.from_numpy(biases),
        "plain.weight": ramp((2, 3)), "expected": torch.from_numpy(expected),
        "no_biases.weight": words, "no_biases.scales": half["scales"],
        "bad_rows.weight": words, "bad_rows.scales": half["scales"][:5].contiguous(),
        "bad_rows.biases": half["biases"][:5].contiguous(),
        "bad_group.weight": words, "bad_group.scales": half["scales"][:, :1].contiguous(),
        "bad_group.biases": half["biases"][:, :1].contiguous(),
    }
    safetensors.torch.save_file({name: tensor.clone() for name, tensor in tensors.items()},
                                HERE / "mlx.safetensors")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch_files()
    evil_files()
    safetensors_files()
    mlx_files()
