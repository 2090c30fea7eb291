#!/usr/bin/env python3
"""Writes the fixtures of the convert tests, with no help from spool's own code.

  python3 -m venv venv && venv/bin/pip install torch==2.13.0 safetensors==0.8.0 transformers==5.24.0 tokenizers==0.23.3
  venv/bin/python make_fixtures.py                the small files beside this script
  venv/bin/python make_fixtures.py --full FOLDER  pooler files of upstream's real shape, for checks by hand

Models are random; their logits come from transformers, token ids from tokenizers, dequantised values from numpy.
"""
import argparse
import copy
import hashlib
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForMaskedLM, BertModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

HERE = Path(__file__).parent
VOCAB = 304  # more than the tokenizers hold: the last ids have no token

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")

CORPUS = ["the quick brown fox jumps over the lazy dog and then the other one",
          "there are 1234567 things that the model thinks about in the window",
          "I'm sure they're there, don't you think? We've seen that he'll go."]
TEXTS = ["Hello, the world!", "I'm YOU'RE don't WE'VE he'll", "12 345 6789 1234567", "  two  spaces   three ", "\n\n\tx\r\n\r\n y",
         "naïve café — déjà vu", "日本語のテキスト 我想在apple工作1314151天", "🚀 (normal) 😶‍🌫️", "'''''' ``` \"\"\" ......!!!", "a_b-c=d/e\\f",
         "the spool's then", "<|im_start|>user\nthe<|im_end|>\n", " ", "Ünïcödé\u00a0nbsp Ⅷ ²³ ½"]


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------------ poolers

def pooler_state(hidden, n_sp, layers, ffn, generator):
    def random(*shape, around=0.0):
        return around + 0.1 * torch.randn(*shape, generator=generator)

    state = {"query": random(n_sp, hidden)}
    for i in range(layers):
        for attention in ("cross", "selfa"):
            state[f"blocks.{i}.{attention}.in_proj_weight"] = random(3 * hidden, hidden)
            state[f"blocks.{i}.{attention}.in_proj_bias"] = random(3 * hidden)
            state[f"blocks.{i}.{attention}.out_proj.weight"] = random(hidden, hidden)
            state[f"blocks.{i}.{attention}.out_proj.bias"] = random(hidden)
        for norm in ("lnq1", "lnk", "lnq2", "lnq3"):
            state[f"blocks.{i}.{norm}.weight"] = random(hidden, around=1.0)
            state[f"blocks.{i}.{norm}.bias"] = random(hidden)
        state[f"blocks.{i}.ffn.0.weight"] = random(ffn, hidden)
        state[f"blocks.{i}.ffn.0.bias"] = random(ffn)
        state[f"blocks.{i}.ffn.2.weight"] = random(hidden, ffn)
        state[f"blocks.{i}.ffn.2.bias"] = random(hidden)
    state["ln_out.weight"] = random(hidden, around=1.0)
    state["ln_out.bias"] = random(hidden)
    state["out_scale"] = torch.tensor(1.25 + 1 / 3)
    return state


def pooler_config(hidden, n_sp, heads, layers, ffn, state):
    return {"hidden_dim": hidden, "num_soft_tokens": n_sp, "heads": heads, "layers": layers, "ffn": ffn,
            "out_scale": state["out_scale"].item()}


def is_pooler_matrix(name, tensor):
    return tensor.dim() == 2 and name != "query"


def quantize_mlx(weight, group, scale_dtype):
    """MLX's affine 4-bit layout; half of the groups get a negative scale, as MLX writes where |min| > |max|."""
    rows, cols = weight.shape
    groups = weight.float().numpy().reshape(rows, cols // group, group)
    low, high = groups.min(-1), groups.max(-1)
    negative = np.abs(low) > np.abs(high)
    scale = np.where(negative, low - high, high - low) / 15
    bias = np.where(negative, high, low)
    scale, bias = (torch.tensor(x).to(scale_dtype) for x in (scale, bias))
    s, b = (x.float().numpy()[..., None] for x in (scale, bias))
    codes = np.clip(np.round((groups - b) / np.where(s == 0, 1, s)), 0, 15).astype(np.uint32)
    values = (codes.astype(np.float32) * s + b).reshape(rows, cols)
    words = codes.reshape(rows, cols // 8, 8)
    packed = np.zeros((rows, cols // 8), dtype=np.uint32)
    for i in range(8):  # the first column in the low bits
        packed |= words[..., i] << np.uint32(4 * i)
    return torch.from_numpy(packed), scale, bias, torch.from_numpy(values)


def write_pooler_4bit(path, state):
    """Returns the state dict as a reader of the file must see it."""
    stored, seen = {}, {}
    for name, tensor in state.items():
        if is_pooler_matrix(name, tensor):
            codes, scale, bias, seen[name] = quantize_mlx(tensor, 64, torch.float16)
            stored[name], stored[name + ".scales"], stored[name + ".biases"] = codes, scale, bias
        else:
            stored[name] = tensor if name == "out_scale" else tensor.half()
            seen[name] = stored[name].float()
    save_file(stored, path)
    return seen


def write_poolers():
    generator = torch.Generator().manual_seed(1)
    folder = HERE / "pooler"
    folder.mkdir(exist_ok=True)
    state = pooler_state(16, 4, 2, 32, generator)
    save_file(state, folder / "pooler.safetensors")
    torch.save(state, folder / "pooler.pt")
    write_json(folder / "pooler_config.json", pooler_config(16, 4, 2, 2, 32, state))

    folder = HERE / "pooler_4bit"  # no config: 8 heads, as upstream
    folder.mkdir(exist_ok=True)
    state = pooler_state(64, 4, 1, 64, generator)
    seen = write_pooler_4bit(folder / "pooler_4bit.safetensors", state)
    write_json(folder / "golden.json",
               {name: hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()
                for name, tensor in seen.items()})


def write_full(folder):
    folder.mkdir(parents=True, exist_ok=True)
    state = pooler_state(1536, 32, 3, 2048, torch.Generator().manual_seed(2))
    print(sum(t.numel() for t in state.values()), "parameters")
    save_file(state, folder / "pooler.safetensors")
    torch.save(state, folder / "pooler.pt")
    seen = write_pooler_4bit(folder / "pooler_4bit.safetensors", state)
    save_file(seen, folder / "dequantised_4bit.safetensors")
    write_json(folder / "pooler_config.json", pooler_config(1536, 32, 8, 3, 2048, state))


# ------------------------------------------------------------------------------------------------ tokenizers

def pre_tokenizer_of(kind):
    split = lambda pattern: pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return {"smollm": lambda: pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)]),
            "gpt-2": lambda: pre_tokenizers.ByteLevel(add_prefix_space=False),
            "qwen2": lambda: split(QWEN2), "deepseek-r1-qwen": lambda: split(QWEN2),
            "llama-bpe": lambda: split(LLAMA3), "smaug-bpe": lambda: split(LLAMA3)}[kind]()


def write_tokenizer(folder, kind, bos, eos):
    """`bos` None: the tokenizer adds none."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer_of(kind)
    tokenizer.decoder = decoders.ByteLevel()
    if kind == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    specials = [token for token in (bos, eos, "<|im_start|>", "<|im_end|>") if token]
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=296, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False))
    tokenizer.add_special_tokens(list(dict.fromkeys(specials)))
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    tokenizer.post_processor = (processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]) if bos
        else processors.ByteLevel(trim_offsets=False))
    data = json.loads(tokenizer.to_str())
    if kind == "llama-bpe":  # a word that no merge leads to
        data["model"]["ignore_merges"] = True
        taken = next(token for token, id in data["model"]["vocab"].items() if id == 295)
        data["model"]["merges"] = [m for m in data["model"]["merges"] if "".join(m) != taken]
        del data["model"]["vocab"][taken]
        data["model"]["vocab"]["Ġspool"] = 295
    if kind == "smollm":  # the older form of merges
        data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    write_json(folder / "tokenizer.json", data)
    write_json(folder / "tokenizer_config.json",
               {"bos_token": {"__type": "AddedToken", "content": bos or eos, "lstrip": False, "normalized": False,
                              "rstrip": False, "single_word": False}, "eos_token": eos, "pad_token": eos, "add_bos_token": bos is not None,
                "add_eos_token": False, "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})
    tokenizer = Tokenizer.from_str(json.dumps(data))
    texts = TEXTS + ([f"{bos}the{eos}"] if bos else []) + ["a <tool> b"]
    return [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids,
             "ids_with_special": tokenizer.encode(text).ids} for text in texts]


def write_tokenizers():
    goldens = {
        "smollm": write_tokenizer(HERE / "llama", "smollm", None, "<|endoftext|>"),
        "qwen2": write_tokenizer(HERE / "qwen2", "qwen2", None, "<|endoftext|>"),
        "gpt-2": write_tokenizer(HERE / "tokenizers/gpt-2", "gpt-2", None, "<|endoftext|>"),
        "llama-bpe": write_tokenizer(HERE / "tokenizers/llama-bpe", "llama-bpe", "<|begin_of_text|>", "<|end_of_text|>"),
        "smaug-bpe": write_tokenizer(HERE / "tokenizers/smaug-bpe", "smaug-bpe", "<|begin_of_text|>", "<|end_of_text|>"),
        "deepseek-r1-qwen": write_tokenizer(HERE / "tokenizers/deepseek-r1-qwen", "deepseek-r1-qwen",
                                            "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>")}
    write_json(HERE / "tokenizers/golden.json", goldens)


# ------------------------------------------------------------------------------------------------ models

def randomize(model, generator):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            around, spread = (1.0, 0.2) if "norm" in name.lower() and not name.endswith("bias") else (0.0, 0.25)
            parameter.copy_(around + spread * torch.randn(parameter.shape, generator=generator))


def round_to(model, dtype):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(dtype).float())


def logits(model):
    tokens = torch.tensor([[(37 * i * i + 11 * i + 5) % 290 for i in range(12)]])
    with torch.inference_mode():
        return tokens[0].to(torch.int32), model(tokens).logits[0].float()


def save_sharded(state, folder, count):
    names = sorted(state)
    weight_map = {}
    for i in range(count):
        shard = f"model-{i + 1:05}-of-{count:05}.safetensors"
        part = {name: state[name] for name in names[i::count]}
        save_file(part, folder / shard, metadata={"format": "pt"})
        weight_map.update({name: shard for name in part})
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map})


def write_llama():
    """SmolLM2's kind: tied, bf16, two shards; Llama 3's rope scaling with a short original context, so that it
    shows within a few tokens; an adapter on all seven matrices."""
    generator = torch.Generator().manual_seed(3)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": VOCAB,
              "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 100.0, "hidden_act": "silu",
              "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "torch_dtype": "bfloat16",
              "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 64}, "bos_token_id": 1, "eos_token_id": 2}
    model = LlamaForCausalLM(LlamaConfig(**config)).eval()
    randomize(model, generator)
    round_to(model, torch.bfloat16)
    folder = HERE / "llama"
    state = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in model.state_dict().items()
             if name != "lm_head.weight"}
    save_sharded(state, folder, 2)
    write_json(folder / "config.json", config)
    tokens, plain = logits(model)

    rank, alpha = 4, 12
    adapter, adapted = {}, copy.deepcopy(model)
    for name, parameter in adapted.named_parameters():
        if not name.endswith("_proj.weight"):
            continue
        module = "base_model.model." + name.removesuffix(".weight")
        a = (0.2 * torch.randn(rank, parameter.shape[1], generator=generator)).half()
        b = (0.2 * torch.randn(parameter.shape[0], rank, generator=generator)).half()
        adapter[module + ".lora_A.weight"], adapter[module + ".lora_B.weight"] = a, b
        with torch.no_grad():
            parameter += alpha / rank * b.float() @ a.float()
    folder = HERE / "llama-adapter"
    folder.mkdir(exist_ok=True)
    save_file(adapter, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    write_json(folder / "adapter_config.json",
               {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "bias": "none", "task_type": "CAUSAL_LM",
                "base_model_name_or_path": "tiny", "use_rslora": False, "use_dora": False, "fan_in_fan_out": False,
                "init_lora_weights": True, "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {}})
    save_file({"tokens": tokens, "logits": plain, "logits_with_adapter": logits(adapted)[1]}, HERE / "llama/golden.safetensors")


def write_qwen2():
    """Qwen2's kind: untied, biases on q, k and v, f16; config.json as transformers writes it today."""
    config = Qwen2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         intermediate_size=64, vocab_size=VOCAB, max_position_embeddings=512, tie_word_embeddings=False,
                         rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = Qwen2ForCausalLM(config).eval()
    randomize(model, torch.Generator().manual_seed(4))
    round_to(model, torch.float16)
    folder = HERE / "qwen2"
    save_file({name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}, folder / "model.safetensors",
              metadata={"format": "pt"})
    config.architectures = ["Qwen2ForCausalLM"]
    config.save_pretrained(folder)
    tokens, plain = logits(model)
    save_file({"tokens": tokens, "logits": plain}, folder / "golden.safetensors")


def write_mlx():
    """A Llama folder as mlx_lm writes it. One matrix has f32 scales, which f16 cannot hold; those of the embedding are bf16.
    No tokenizer: the test takes it from the other Llama folder's GGUF."""
    generator = torch.Generator().manual_seed(5)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
              "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": VOCAB,
              "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True}
    model = LlamaForCausalLM(LlamaConfig(**config)).eval()
    randomize(model, generator)
    round_to(model, torch.float16)
    stored = {}
    for name, parameter in model.named_parameters():
        if parameter.dim() != 2:
            stored[name] = parameter.detach().half()
            continue
        dtype = {"model.embed_tokens.weight": torch.bfloat16,
                 "model.layers.0.mlp.down_proj.weight": torch.float32}.get(name, torch.float16)
        module = name.removesuffix(".weight")
        codes, scale, bias, values = quantize_mlx(parameter.detach(), 64, dtype)
        stored[name], stored[module + ".scales"], stored[module + ".biases"] = codes, scale, bias
        with torch.no_grad():
            parameter.copy_(values)
    folder = HERE / "llama-mlx"
    folder.mkdir(exist_ok=True)
    save_file(stored, folder / "model.safetensors", metadata={"format": "mlx"})
    write_json(folder / "config.json", config | {"quantization": {"group_size": 64, "bits": 4}})
    tokens, plain = logits(model)
    save_file({"tokens": tokens, "logits": plain}, folder / "golden.safetensors")


def write_wordpiece(folder, lowercase, bert_processing):
    """A tokenizer of BERT's kind. Returns it."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(CORPUS + ["Naive 我想", "a-b, c!"], trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=specials, show_progress=False))
    first, last = (("[CLS]", tokenizer.token_to_id("[CLS]")), ("[SEP]", tokenizer.token_to_id("[SEP]")))
    tokenizer.post_processor = (processors.BertProcessing(last, first) if bert_processing
                                else processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[first, last]))
    tokenizer.enable_padding(length=128)  # as published folders have it; neither reads it
    write_json(folder / "tokenizer.json", json.loads(tokenizer.to_str()))
    write_json(folder / "tokenizer_config.json", {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]",
                                                  "unk_token": "[UNK]", "do_lower_case": lowercase, "model_max_length": 64})
    tokenizer.no_padding()
    return tokenizer


def write_bert(name, model_class, size, dtype, pooling, lowercase, prompts=None):
    """A BERT encoder as sentence-transformers keeps it; the golden vectors are its own pooling, normalised."""
    folder = HERE / name
    tokenizer = write_wordpiece(folder, lowercase, bert_processing=pooling == "cls")
    config = BertConfig(hidden_size=size, num_hidden_layers=2, num_attention_heads=4, intermediate_size=2 * size, vocab_size=VOCAB,
                        max_position_embeddings=64, type_vocab_size=2)
    model = model_class(config).eval()
    randomize(model, torch.Generator().manual_seed(6))
    round_to(model, dtype)
    encoder = getattr(model, "bert", model)
    state = {key: tensor.to(dtype).clone().contiguous() for key, tensor in model.state_dict().items()
             if not key.startswith("cls.predictions.decoder")}
    state["bert.embeddings.position_ids" if hasattr(model, "bert") else "embeddings.position_ids"] = torch.arange(64)[None]
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    config.architectures = [model_class.__name__]
    config.save_pretrained(folder)
    write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (path, kind)
                                         in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])])
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": size, "pooling_mode_cls_token": pooling == "cls",
                                                  "pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_max_tokens": False})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 48, "do_lower_case": False})
    if prompts:
        write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    goldens = []
    for text in TEXTS + CORPUS + ["", "The Fox [SEP] jumps [MASK]"]:
        ids = tokenizer.encode(text).ids
        with torch.inference_mode():
            hidden = encoder(torch.tensor([ids])).last_hidden_state[0]
        vector = hidden[0] if pooling == "cls" else hidden.mean(0)
        goldens.append({"text": text, "ids": ids, "vector": [round(x, 6) for x in (vector / vector.norm()).tolist()]})
    write_json(folder / "golden.json", goldens)


def write_berts():
    write_bert("bert", BertModel, 32, torch.float32, "mean", lowercase=True)
    write_bert("bert-masked", BertForMaskedLM, 16, torch.float16, "cls", lowercase=False,
               prompts={"query": "search: ", "document": ""})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.full:
        write_full(arguments.full)
    else:
        write_poolers()
        write_tokenizers()
        write_llama()
        write_qwen2()
        write_mlx()
        write_berts()
