#!/usr/bin/env python3
"""Writes traces.parquet beside itself: needs pyarrow. Two row groups, the columns of OpenR1-Math-220k."""
import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

message = pa.struct([("role", pa.string()), ("content", pa.string())])
schema = pa.schema([
    ("problem", pa.string()),
    ("generations", pa.list_(pa.string())),
    ("correctness_math_verify", pa.list_(pa.bool_())),
    ("messages", pa.list_(message)),
    ("problem_is_valid", pa.dictionary(pa.int32(), pa.string())),
    ("uuid", pa.int64()),
    ("when", pa.date32()),
])
rows = [
    {
        "problem": f"What is {i} + {i}?",
        "generations": [f"<think>\nTwice {i}.\n</think>\n\n{2 * i}", f"<think>\nHm.\n</think>\n\n{2 * i + 1}"],
        "correctness_math_verify": [True, False],
        "messages": [{"role": "user", "content": f"What is {i} + {i}?"}],
        "problem_is_valid": "Yes",
        "uuid": i,
        "when": None,
    }
    for i in range(5)
]
rows.append({"problem": "No generations?", "generations": None, "correctness_math_verify": None, "messages": None,
             "problem_is_valid": None, "uuid": None, "when": None})
table = pa.Table.from_pylist(rows, schema=schema)
pq.write_table(table, pathlib.Path(__file__).with_name("traces.parquet"), row_group_size=4, compression="zstd")
