// Everything that says what a training run does. Stored in every checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "memory/settings.h"
#include "pooler/weights.h"

namespace spool::train {

/// What learns. Each stage can continue from a bundle or checkpoint of any other.
enum class Stage {
    frozen, ///< the pooler alone
    lora,   ///< pooler and adapter
    qlora,  ///< the same over a base in NF4
    full,   ///< pooler and all of the model but embedding and head
    scratch ///< everything, embedding and head too: small models
};

/// Who writes memory.
enum class MemoryKind {
    embedding, ///< the pooler, from the embeddings of distant tokens
    hidden,    ///< the pooler, from what the model's first blocks made of them
    slots      ///< the model itself, into learned vectors fed after each chunk
};

std::string_view to_string(MemoryKind kind);
/// Throws Error{invalid_argument} naming all.
MemoryKind memory_from_string(std::string_view text);

std::string_view to_string(Stage stage);
/// Throws Error{invalid_argument} naming all stages.
Stage stage_from_string(std::string_view text);

struct Settings {
    std::filesystem::path model;
    std::vector<std::filesystem::path> data;
    std::filesystem::path out;
    std::filesystem::path from;

    Stage stage = Stage::lora;
    MemoryKind memory = MemoryKind::embedding;
    Layout layout = Layout::carry;
    uint32_t window_min = 128;
    uint32_t window_max = 128;
    uint32_t chunk = 64;
    uint32_t max_distant_min = 4096;
    uint32_t max_distant = 4096;

    uint32_t slots = 4;
    uint32_t max_slots = 256;
    uint32_t hidden_blocks = 2;
    uint32_t n_sp = 32;
    uint32_t pooler_heads = 8;
    uint32_t pooler_layers = 3;
    uint32_t pooler_ffn = 2048;
    uint32_t rank = 16;
    double alpha = 32;

    double kl = 0;
    double answer_weight = 1;
    double help_weight = 0;
    double full_share = 0;
    double window_share = 0;
    uint64_t recite_steps = 0;

    uint64_t steps = 1000;
    double minutes = 0;
    uint32_t batch_tokens = 2048;
    uint32_t max_tokens = 2048;
    double lr = 2e-4;
    double pooler_lr = 3e-4;
    uint32_t warmup = 20;
    double final_lr = 0.1;
    double weight_decay = 0;
    double clip = 1;
    bool adam8 = false;
    bool nested_nf4 = false;
    bool recompute = false;
    bool bf16 = false;
    std::string device = "auto";
    uint64_t seed = 1;
    uint32_t threads = 0;

    uint32_t eval_every = 100;
    uint32_t eval_traces = 16;
    uint32_t save_every = 100;
    uint32_t keep = 2;
};

/// Calls visit(name, member, what it means) for every setting, in the order of the help text.
template <typename AnySettings, typename Visitor>
void visit_settings(AnySettings& s, Visitor&& visit) {
    visit("model", s.model, "the model to train for, a GGUF file");
    visit("data", s.data, "folders made by spool prepare; each gives as many traces as any other");
    visit("out", s.out, "folder for checkpoints, log.jsonl and curve.html; a run found there goes on");
    visit("from", s.from, "bundle or checkpoint to start from (default: fresh weights)");
    visit("stage", s.stage, "what learns: frozen, lora, qlora, full, scratch");
    visit("memory", s.memory,
          "who writes it: embedding (the pooler, from token embeddings), hidden (the pooler, from hidden "
          "states; cannot be exported) or slots (the model itself)");
    visit("layout", s.layout, "of a pooler's memory: carry or rebuild");
    visit("window-min", s.window_min, "each trace's window is drawn from window-min to window-max tokens");
    visit("window-max", s.window_max, "the bundle's window");
    visit("chunk", s.chunk, "tokens between two compactions");
    visit("max-distant-min", s.max_distant_min,
          "each trace's buffer is drawn from max-distant-min to max-distant tokens");
    visit("max-distant", s.max_distant, "tokens the distant buffer keeps");
    visit("slots", s.slots, "slots written after each chunk");
    visit("max-slots", s.max_slots, "slots kept, the newest");
    visit("hidden-blocks", s.hidden_blocks, "memory hidden: blocks behind which the states are taken");
    visit("n-sp", s.n_sp, "soft-prompt vectors");
    visit("pooler-heads", s.pooler_heads, "attention heads of the pooler");
    visit("pooler-layers", s.pooler_layers, "layers of the pooler");
    visit("pooler-ffn", s.pooler_ffn, "inner width of the pooler");
    visit("rank", s.rank, "of the adapter");
    visit("alpha", s.alpha, "the adapter's update is scaled by alpha / rank");
    visit("kl", s.kl, "weight of KL(the model with its full context || with memory)");
    visit("answer-weight", s.answer_weight,
          "loss weight of the answers in synthetic traces; other tokens have 1");
    visit("help-weight", s.help_weight,
          "further loss weight of a token for each nat that its full context is worth to the model without "
          "adapter (costs two passes more)");
    visit("full-share", s.full_share, "share of traces read in full");
    visit("window-share", s.window_share, "share of traces read with the window alone");
    visit("recite-steps", s.recite_steps,
          "first steps, in which the pooler alone learns to let the model recite text");
    visit("steps", s.steps, "optimiser steps");
    visit("minutes", s.minutes, "stop and save after so many minutes of training in all (0: no limit)");
    visit("batch-tokens", s.batch_tokens, "tokens a step, at least one trace");
    visit("max-tokens", s.max_tokens, "longer traces are cut");
    visit("lr", s.lr, "peak learning rate of adapter or model");
    visit("pooler-lr", s.pooler_lr, "peak learning rate of the pooler");
    visit("warmup", s.warmup, "steps of linear warm-up");
    visit("final-lr", s.final_lr, "where the cosine ends, as a share of the peak");
    visit("weight-decay", s.weight_decay, "AdamW's");
    visit("clip", s.clip, "largest norm of the gradient (0: any)");
    visit("adam8", s.adam8, "optimiser state in 8 bits");
    visit("nested-nf4", s.nested_nf4, "qlora: quantise the scales too");
    visit("recompute", s.recompute, "keep only the blocks' inputs and compute the rest twice");
    visit("bf16", s.bf16, "make the model's matrix products in bfloat16; pooler and loss stay in float32");
    visit("device", s.device, "cpu, cuda, cuda:N, or auto: CUDA where LibTorch has it");
    visit("seed", s.seed, "of weights, order and random choices");
    visit("threads", s.threads, "threads (0: as many as cores)");
    visit("eval-every", s.eval_every, "steps between evaluations");
    visit("eval-traces", s.eval_traces, "validation traces in each");
    visit("save-every", s.save_every, "steps between checkpoints");
    visit("keep", s.keep, "checkpoints kept");
}

/// Throws Error{invalid_argument} naming the option for values that contradict one another.
void check(const Settings& settings);

/// Window, chunk, buffer and layout as the run's bundle will have them.
MemorySettings memory_settings(const Settings& settings);

Json to_json(const Settings& settings);

} // namespace spool::train
