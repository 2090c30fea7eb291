// Models and bundles from a Hugging Face hub, through llama.cpp's own client: the same cache folder, resumed
// downloads. What llama.cpp leaves out is done here: every file is compared with the hash the hub lists.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace spool {

struct HubOptions {
    std::string token;    ///< for private repositories; as HF_TOKEN
    bool offline = false; ///< only what is in the cache
};

/// Local path of the model "user/repo[:quant]", fetched if it is not in the cache; of several parts, the
/// first. Without a quant Q4_K_M is taken, else Q8_0, else the first model there is; `file` names one itself.
/// The hub is MODEL_ENDPOINT or HF_ENDPOINT, else huggingface.co; the cache LLAMA_CACHE, HF_HUB_CACHE,
/// HF_HOME/hub, else ~/.cache/huggingface/hub.
/// Throws Error{invalid_argument} for a name of another form, Error{not_found} naming what there is instead,
/// Error{io} for a download that broke off (it resumes next time), Error{bad_file} for a wrong hash.
std::filesystem::path fetch_model(const std::string& name, const std::string& file,
                                  const HubOptions& options);

/// Local folder with those files of the repository "user/repo" that `wanted` accepts by their path.
/// Throws as fetch_model does.
std::filesystem::path fetch_folder(const std::string& repository,
                                   const std::function<bool(const std::string& path)>& wanted,
                                   const HubOptions& options);

/// What a model folder, a pooler or an adapter consists of: safetensors, GGUF, pickles of a pooler, JSON,
/// templates and tokenizers; not pictures, texts or weights of other frameworks.
bool belongs_to_bundle(const std::string& path);

} // namespace spool
