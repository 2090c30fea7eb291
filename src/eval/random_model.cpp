#include "eval/random_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/random.h"

namespace spool {

namespace {

/// Data for every tensor of one kind: a prefix of one random buffer, as large as the largest tensor, serves
/// all, so that a gigabyte of weights does not need a gigabyte of memory.
class RandomData {
  public:
    explicit RandomData(const RandomModelShape& shape) : random_(shape.seed), type_(shape.type) {
        if (type_ != GGML_TYPE_F32 && type_ != GGML_TYPE_Q4_1) {
            fail(ErrorCode::invalid_argument, "random models have f32 or q4_1 matrices, not {}",
                 ggml_type_name(type_));
        }
    }

    void reserve(size_t elements) { elements_ = std::max(elements_, elements); }

    void fill() {
        floats_.resize(type_ == GGML_TYPE_F32 ? elements_ : size_t{1} << 16U);
        for (float& value : floats_) {
            value = static_cast<float>(random_.uniform() - 0.5) * 0.08F;
        }
        ones_.assign(size_t{1} << 16U, 1.0F);
        if (type_ != GGML_TYPE_Q4_1) {
            return;
        }
        // A block: f16 scale, f16 minimum, 32 codes of 4 bits; values spread over [-0.04, 0.04].
        constexpr size_t block = 20;
        blocks_.resize(elements_ / 32 * block);
        const ggml_fp16_t scale = ggml_fp32_to_fp16(0.08F / 15);
        const ggml_fp16_t minimum = ggml_fp32_to_fp16(-0.04F);
        for (size_t at = 0; at < blocks_.size(); at += block) {
            const uint64_t codes[2] = {random_.bits(), random_.bits()};
            std::memcpy(blocks_.data() + at, &scale, 2);
            std::memcpy(blocks_.data() + at + 2, &minimum, 2);
            std::memcpy(blocks_.data() + at + 4, codes, 16);
        }
    }

    ggml_type type() const { return type_; }
    std::span<const std::byte> matrix(size_t elements) const {
        return type_ == GGML_TYPE_F32 ? std::as_bytes(std::span(floats_).first(elements))
                                      : std::span(blocks_).first(elements / 32 * 20);
    }
    std::span<const std::byte> bias(size_t elements) const {
        return std::as_bytes(std::span(floats_).first(elements));
    }
    std::span<const std::byte> gain(size_t elements) const {
        return std::as_bytes(std::span(ones_).first(elements));
    }

  private:
    Random random_;
    ggml_type type_;
    size_t elements_ = 0;
    std::vector<float> floats_;
    std::vector<float> ones_;
    std::vector<std::byte> blocks_;
};

void set_hyperparameters(GgufWriter& writer, const RandomModelShape& s) {
    const std::string& a = s.architecture;
    writer.set("general.architecture", a);
    writer.set("general.name", std::string("random weights"));
    writer.set("general.file_type", uint32_t{s.type == GGML_TYPE_F32 ? 0U : 3U});
    writer.set(a + ".block_count", s.layers);
    writer.set(a + ".context_length", s.context);
    writer.set(a + ".embedding_length", s.width);
    writer.set(a + ".feed_forward_length", s.ffn);
    writer.set(a + ".attention.head_count", s.heads);
    writer.set(a + ".attention.head_count_kv", s.kv_heads);
    writer.set(a + ".attention.layer_norm_rms_epsilon", 1e-6F);
    writer.set(a + ".rope.dimension_count", s.width / s.heads);
    writer.set(a + ".rope.freq_base", 10000.0F);
}

uint32_t copy_tokenizer(GgufWriter& writer, const GgufFile& tokenizer, uint32_t vocab_size) {
    auto tokens = tokenizer.strings("tokenizer.ggml.tokens");
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
    GgufWriter writer;
    set_hyperparameters(writer, shape);
    const int64_t vocab = copy_tokenizer(writer, tokenizer, vocab_size);
    const int64_t width = shape.width;
    const int64_t kv = width / shape.heads * shape.kv_heads;
    const int64_t ffn = shape.ffn;

    RandomData data(shape);
    for (const int64_t columns : {vocab, ffn, width}) {
        data.reserve(static_cast<size_t>(width * columns));
    }
    data.fill();
    const auto matrix = [&](const std::string& name, int64_t in, int64_t out) {
        writer.add(name, data.type(), {in, out}, data.matrix(static_cast<size_t>(in * out)));
    };
    const auto vector = [&](const std::string& name, int64_t size, bool gain) {
        const auto elements = static_cast<size_t>(size);
        writer.add(name, GGML_TYPE_F32, {size}, gain ? data.gain(elements) : data.bias(elements));
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
