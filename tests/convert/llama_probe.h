// What plain libllama makes of a converted file: it must load it and compute what the original computes.
#pragma once

#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <llama.h>

#include "core/error.h"
#include "formats/safetensors.h"

namespace spool::test {

class LlamaProbe {
  public:
    explicit LlamaProbe(const std::filesystem::path& path, bool vocab_only = false) {
        llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
        llama_model_params params = llama_model_default_params();
        params.vocab_only = vocab_only;
        model_.reset(llama_model_load_from_file(path.c_str(), params));
        if (!model_) {
            fail(ErrorCode::bad_file, "{}: libllama does not load it", path.string());
        }
    }

    bool takes_adapter(const std::filesystem::path& path) {
        adapter_.reset(llama_adapter_lora_init(model_.get(), path.c_str()));
        return adapter_ != nullptr;
    }

    /// [tokens][vocabulary], all in float32 on one thread, with the adapter if one was taken.
    std::vector<float> logits(const std::vector<llama_token>& tokens) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = 256;
        params.n_threads = params.n_threads_batch = 1;
        params.type_k = params.type_v = GGML_TYPE_F32;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        const std::unique_ptr<llama_context, decltype(&llama_free)> context(
            llama_init_from_model(model_.get(), params), llama_free);
        if (adapter_) {
            llama_adapter_lora* adapter = adapter_.get();
            float scale = 1.0F;
            llama_set_adapters_lora(context.get(), &adapter, 1, &scale);
        }
        llama_batch batch = llama_batch_init(static_cast<int32_t>(tokens.size()), 0, 1);
        for (size_t i = 0; i < tokens.size(); ++i) {
            batch.token[i] = tokens[i];
            batch.pos[i] = static_cast<llama_pos>(i);
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = 1;
        }
        batch.n_tokens = static_cast<int32_t>(tokens.size());
        const int32_t failed = llama_decode(context.get(), batch);
        llama_batch_free(batch);
        EXPECT_EQ(failed, 0);
        const float* all = llama_get_logits(context.get());
        return {all, all + tokens.size() * vocabulary()};
    }

    /// The vector of a text whose encoder pools as its file says; of length 1.
    std::vector<float> embedding(const std::vector<llama_token>& tokens) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = params.n_batch = params.n_ubatch = 256;
        params.n_threads = params.n_threads_batch = 1;
        params.embeddings = true;
        const std::unique_ptr<llama_context, decltype(&llama_free)> context(
            llama_init_from_model(model_.get(), params), llama_free);
        std::vector<llama_token> fed = tokens;
        EXPECT_EQ(
            llama_decode(context.get(), llama_batch_get_one(fed.data(), static_cast<int32_t>(fed.size()))),
            0);
        const float* values = llama_get_embeddings_seq(context.get(), 0);
        if (values == nullptr) {
            ADD_FAILURE() << "the file states no pooling";
            return {};
        }
        std::vector<float> vector(values, values + llama_model_n_embd(model_.get()));
        const float length =
            std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0F));
        for (float& value : vector) {
            value /= length;
        }
        return vector;
    }

    std::vector<llama_token> encode(const std::string& text, bool add_special) const {
        std::vector<llama_token> tokens(text.size() + 8);
        const int32_t count = llama_tokenize(llama_model_get_vocab(model_.get()), text.data(),
                                             static_cast<int32_t>(text.size()), tokens.data(),
                                             static_cast<int32_t>(tokens.size()), add_special, true);
        EXPECT_GE(count, 0);
        tokens.resize(static_cast<size_t>(std::max(count, 0)));
        return tokens;
    }

    size_t vocabulary() const {
        return static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model_.get())));
    }

  private:
    struct Free {
        void operator()(llama_model* model) const { llama_model_free(model); }
        void operator()(llama_adapter_lora* adapter) const { llama_adapter_lora_free(adapter); }
    };
    std::unique_ptr<llama_model, Free> model_;
    std::unique_ptr<llama_adapter_lora, Free> adapter_; // freed before the model that knows it
};

/// The token ids of a golden file.
inline std::vector<llama_token> golden_tokens(const SafetensorsFile& golden) {
    const TensorView& tensor = golden.at("tokens");
    std::vector<llama_token> tokens(tensor.elements());
    std::memcpy(tokens.data(), tensor.data.data(), tensor.data.size());
    return tokens;
}

/// The largest difference to the golden logits called `name`.
inline float logit_error(LlamaProbe& probe, const std::filesystem::path& golden_path,
                         const std::string& name = "logits") {
    const SafetensorsFile golden(golden_path);
    const auto found = probe.logits(golden_tokens(golden));
    const auto expected = to_float(golden.at(name));
    EXPECT_EQ(found.size(), expected.size());
    float largest = 0;
    for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
        largest = std::max(largest, std::abs(found[i] - expected[i]));
    }
    return largest;
}

} // namespace spool::test
