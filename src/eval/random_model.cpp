#include "eval/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/random.h"

namespace spool {

namespace {

constexpr int64_t q4_1_block = 20; // f16 scale, f16 minimum, 32 codes of 4 bits
constexpr float spread = 0.08F;    // uniform in [-0.04, 0.04]: the usual deviation of 0.02 of fresh weights

/// Random bytes of a tensor, made while the file is written: a gigabyte of weights needs no gigabyte of
/// memory.
GgufProducer random_data(ggml_type type, int64_t elements, uint64_t seed) {
    return [type, elements, seed](const GgufSink& sink) {
        Random random(seed);
        constexpr int64_t piece = 1 << 16;
        std::vector<float> floats;
        std::vector<std::byte> blocks;
        const ggml_fp16_t scale = ggml_fp32_to_fp16(spread / 15);
        const ggml_fp16_t minimum = ggml_fp32_to_fp16(-spread / 2);
        for (int64_t done = 0; done < elements; done += piece) {
            const int64_t count = std::min(piece, elements - done);
            if (type == GGML_TYPE_F32) {
                floats.resize(static_cast<size_t>(count));
                for (float& value : floats) {
                    value = static_cast<float>(random.uniform() - 0.5) * spread;
                }
                sink(std::as_bytes(std::span(floats)));
                continue;
            }
            blocks.resize(static_cast<size_t>(count / 32 * q4_1_block));
            for (size_t at = 0; at < blocks.size(); at += q4_1_block) {
                const uint64_t codes[2] = {random.bits(), random.bits()};
                std::memcpy(blocks.data() + at, &scale, 2);
                std::memcpy(blocks.data() + at + 2, &minimum, 2);
                std::memcpy(blocks.data() + at + 4, codes, 16);
            }
            sink(blocks);
        }
    };
}

void set_hyperparameters(GgufWriter& writer, const RandomModelShape& s, uint32_t vocab) {
    const std::string& a = s.architecture;
    writer.set("general.architecture", a);
    writer.set("general.name", s.name);
    writer.set("general.file_type", uint32_t{s.type == GGML_TYPE_F32 ? 0U : 3U});
    writer.set(a + ".block_count", s.layers);
    writer.set(a + ".context_length", s.context);
    writer.set(a + ".embedding_length", s.width);
    writer.set(a + ".feed_forward_length", s.ffn);
    writer.set(a + ".attention.head_count", s.heads);
    writer.set(a + ".attention.head_count_kv", s.kv_heads);
    writer.set(a + ".attention.layer_norm_rms_epsilon", 1e-6F);
    writer.set(a + ".rope.dimension_count", s.width / s.heads);
    writer.set(a + ".rope.freq_base", s.rope_base);
    writer.set(a + ".vocab_size", vocab);
}

/// A BPE tokenizer's first `size` tokens, and the merges that make them of one another. Throws
/// Error{unsupported} unless these spell every text: a token for each byte, all control tokens.
void shorten(std::vector<std::string>& tokens, const std::vector<int32_t>& types,
             std::vector<std::string>& merges, size_t size) {
    size_t bytes = 0;
    for (size_t id = 0; id < tokens.size(); ++id) {
        const bool control = id < types.size() && types[id] == 3; // LLAMA_TOKEN_TYPE_CONTROL
        const bool one_character =
            std::ranges::count_if(tokens[id], [](char c) { return (c & 0xC0) != 0x80; }) == 1;
        if (id < size && !control && one_character) {
            ++bytes;
        }
        if (id >= size && (control || (one_character && bytes < 256))) {
            fail(ErrorCode::unsupported,
                 "a vocabulary of {} tokens leaves out token {}, '{}', which cannot be done without; take at "
                 "least {}",
                 size, id, tokens[id], id + 1);
        }
    }
    tokens.resize(size);
    const std::set<std::string, std::less<>> kept(tokens.begin(), tokens.end());
    std::erase_if(merges, [&](const std::string& merge) {
        const size_t space = merge.find(' ', 1);
        const std::string left = merge.substr(0, space);
        const std::string right = merge.substr(space + 1);
        return !kept.contains(left) || !kept.contains(right) || !kept.contains(left + right);
    });
}

uint32_t copy_tokenizer(GgufWriter& writer, const GgufFile& tokenizer, uint32_t vocab_size) {
    auto tokens = tokenizer.strings("tokenizer.ggml.tokens");
    const bool shorter = vocab_size > 0 && vocab_size < tokens.size();
    std::vector<std::string> merges;
    if (shorter) {
        if (tokenizer.string("tokenizer.ggml.model") != "gpt2") {
            fail(ErrorCode::unsupported, "{}: only a byte-level BPE tokenizer can be shortened, not '{}'",
                 tokenizer.path().string(), tokenizer.string("tokenizer.ggml.model"));
        }
        merges = tokenizer.strings("tokenizer.ggml.merges");
        const GgufValue* types = tokenizer.find("tokenizer.ggml.token_type");
        shorten(tokens,
                types == nullptr ? std::vector<int32_t>()
                                 : std::get<std::vector<int32_t>>(std::get<GgufArray>(*types)),
                merges, vocab_size);
    }
    const auto known = static_cast<uint32_t>(tokens.size());
    for (uint32_t id = known; id < vocab_size; ++id) {
        tokens.push_back("[unused" + std::to_string(id) + "]");
    }
    for (const auto& [key, value] : tokenizer.pairs()) {
        if (!key.starts_with("tokenizer.") || key == "tokenizer.ggml.tokens") {
            continue;
        }
        GgufValue copy = value;
        if (key == "tokenizer.ggml.token_type") {
            auto& types = std::get<std::vector<int32_t>>(std::get<GgufArray>(copy));
            types.resize(tokens.size(), 5); // LLAMA_TOKEN_TYPE_UNUSED
        } else if (key == "tokenizer.ggml.merges" && shorter) {
            copy = GgufArray(merges);
        }
        writer.set(key, std::move(copy));
    }
    const auto count = static_cast<uint32_t>(tokens.size());
    writer.set("tokenizer.ggml.tokens", GgufArray(std::move(tokens)));
    return count;
}

} // namespace

RandomModelShape qwen_1_5b_shape() {
    RandomModelShape shape;
    shape.architecture = "qwen2";
    shape.layers = 28;
    shape.width = 1536;
    shape.heads = 12;
    shape.kv_heads = 2;
    shape.ffn = 8960;
    shape.context = 131072;
    shape.tied = false;
    shape.type = GGML_TYPE_Q4_1;
    return shape;
}

void write_random_model(const std::filesystem::path& path, const RandomModelShape& shape,
                        const GgufFile& tokenizer, uint32_t vocab_size) {
    if (shape.type != GGML_TYPE_F32 && shape.type != GGML_TYPE_Q4_1) {
        fail(ErrorCode::invalid_argument, "random models have f32 or q4_1 matrices, not {}",
             ggml_type_name(shape.type));
    }
    if (shape.heads == 0 || shape.kv_heads == 0 || shape.heads % shape.kv_heads != 0 ||
        shape.width % shape.heads != 0 || shape.width / shape.heads % 2 != 0) {
        fail(
            ErrorCode::invalid_argument,
            "{} heads of a width of {} with {} for keys and values: the width must divide into heads of even "
            "size, and the heads by those of keys and values",
            shape.heads, shape.width, shape.kv_heads);
    }
    GgufWriter writer;
    const uint32_t tokens = copy_tokenizer(writer, tokenizer, vocab_size);
    set_hyperparameters(writer, shape, tokens);
    if (!shape.chat_template.empty()) {
        writer.set("tokenizer.chat_template", shape.chat_template);
    }
    const int64_t vocab = tokens;
    const int64_t width = shape.width;
    const int64_t kv = width / shape.heads * shape.kv_heads;
    const int64_t ffn = shape.ffn;

    const std::vector<float> ones(static_cast<size_t>(width), 1.0F);
    uint64_t seed = shape.seed * 1000003;
    const auto matrix = [&](const std::string& name, int64_t in, int64_t out) {
        writer.add(name, shape.type, {in, out}, random_data(shape.type, in * out, ++seed));
    };
    const auto vector = [&](const std::string& name, int64_t size, bool gain) {
        if (gain) {
            writer.add(name, GGML_TYPE_F32, {size}, std::as_bytes(std::span(ones)));
        } else {
            writer.add(name, GGML_TYPE_F32, {size}, random_data(GGML_TYPE_F32, size, ++seed));
        }
    };
    matrix("token_embd.weight", width, vocab);
    vector("output_norm.weight", width, true);
    if (!shape.tied) {
        matrix("output.weight", width, vocab);
    }
    for (uint32_t layer = 0; layer < shape.layers; ++layer) {
        const std::string block = "blk." + std::to_string(layer) + ".";
        vector(block + "attn_norm.weight", width, true);
        const std::map<std::string, int64_t> projections = {
            {"attn_q", width}, {"attn_k", kv}, {"attn_v", kv}};
        for (const auto& [name, out] : projections) {
            matrix(block + name + ".weight", width, out);
            if (shape.architecture == "qwen2") {
                vector(block + name + ".bias", out, false);
            }
        }
        matrix(block + "attn_output.weight", width, width);
        vector(block + "ffn_norm.weight", width, true);
        matrix(block + "ffn_gate.weight", width, ffn);
        matrix(block + "ffn_up.weight", width, ffn);
        matrix(block + "ffn_down.weight", ffn, width);
    }
    writer.write(path);
}

} // namespace spool
