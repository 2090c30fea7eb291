#include "hub/repository.h"

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "common.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/progress.h"
#include "download.h"
#include "hf-cache.h"
#include "log.h"

namespace spool {

namespace {

using hf_cache::hf_file;
using hf_cache::hf_files;

/// Shows one file's download; llama.cpp calls it from the thread that downloads.
class DownloadProgress : public common_download_callback {
  public:
    explicit DownloadProgress(std::string file) : file_(std::move(file)) {}

    void on_start(const common_download_progress& /*p*/) override {}
    void on_update(const common_download_progress& p) override {
        constexpr size_t unit = 1 << 20;
        if (!progress_) {
            progress_ = std::make_unique<Progress>(fmt::format("fetching {} (MiB)", file_),
                                                   p.total / unit + 1, p.downloaded / unit);
        }
        progress_->update(p.downloaded / unit);
    }
    void on_done(const common_download_progress& /*p*/, bool /*ok*/) override { progress_.reset(); }

  private:
    std::string file_;
    std::unique_ptr<Progress> progress_;
};

/// llama.cpp's client says why it failed in its log only: errors go to the user, chatter does not.
void quieten_client() {
    common_log_set_verbosity_thold(log_level() == LogLevel::debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
    common_log_set_prefix(common_log_main(), false);
}

std::string hash_of(const std::filesystem::path& path, const std::string& like) {
    constexpr size_t sha256_digits = 64;
    return like.size() == sha256_digits ? sha256_file(path) : git_blob_sha1_file(path);
}

/// A download that a kill ended after its last byte: the client would ask for bytes beyond the end.
void adopt_complete_partial(const hf_file& file) {
    const std::filesystem::path partial = file.local_path + ".downloadInProgress";
    if (!file.oid.empty() && std::filesystem::exists(partial) && hash_of(partial, file.oid) == file.oid) {
        std::filesystem::rename(partial, file.local_path);
    }
}

void download(const hf_file& file, const HubOptions& options) {
    adopt_complete_partial(file);
    DownloadProgress progress(file.path);
    common_download_opts download;
    download.bearer_token = options.token;
    download.offline = options.offline;
    download.callback = &progress;
    const int status = common_download_file_single(file.url, file.local_path, download, true);
    common_log_flush(common_log_main());
    if (status < 200 || status >= 400) {
        fail(
            ErrorCode::io,
            "{} of {}: the download broke off{}. What has arrived is kept in {}.downloadInProgress; the same "
            "command goes on from there.",
            file.path, file.repo_id, status > 0 ? fmt::format(" (HTTP status {})", status) : "",
            file.local_path);
    }
}

/// Fetches one file and gives it its name in the cache once its hash is the one the hub lists.
std::filesystem::path fetch(const hf_file& file, const HubOptions& options) {
    if (file.local_path == file.final_path && std::filesystem::exists(file.final_path)) {
        return file.final_path; // had been compared before it got this name
    }
    download(file, options);
    if (!file.oid.empty()) {
        const std::string found = hash_of(file.local_path, file.oid);
        if (found != file.oid) {
            std::filesystem::remove(file.local_path);
            fail(ErrorCode::bad_file,
                 "{} of {}: its hash is {}, the hub lists {}; the file was removed. Fetch it again; if that "
                 "repeats, the hub or something on the way to it alters files.",
                 file.path, file.repo_id, found, file.oid);
        }
    }
    return hf_cache::finalize_file(file);
}

hf_files list(const std::string& repository, const HubOptions& options) {
    hf_files files;
    if (!options.offline) {
        files = hf_cache::get_repo_files(repository, options.token);
        common_log_flush(common_log_main());
    }
    if (files.empty()) {
        files = hf_cache::get_cached_files(repository);
    }
    if (files.empty() && options.offline) {
        fail(ErrorCode::not_found, "{}: not in the cache ({}); without --offline it would be fetched",
             repository, hf_cache::get_cache_path());
    }
    if (files.empty()) {
        fail(ErrorCode::not_found,
             "{}: the hub at {} does not list it and it is not in the cache ({}). Check the name and the "
             "network; a private one needs --hf-token.",
             repository, common_get_model_endpoint(), hf_cache::get_cache_path());
    }
    return files;
}

[[noreturn]] void no_such_model(const std::string& name, const std::string& file, const hf_files& files) {
    std::string found;
    for (const auto& candidate : files) {
        if (candidate.path.ends_with(".gguf")) {
            found += (found.empty() ? "" : ", ") + candidate.path;
        }
    }
    fail(ErrorCode::not_found, "{}: no {} there. {}", name,
         file.empty() ? "GGUF model of that quantisation" : file,
         found.empty()
             ? "The repository has no GGUF file; fetch it with `spool pull` and use `spool convert`."
             : "GGUF files: " + found);
}

/// "user/repo" of "user/repo:quant".
std::string repository_of(const std::string& name) {
    try {
        return common_download_split_repo_tag(name).first;
    } catch (const std::invalid_argument&) {
        fail(ErrorCode::invalid_argument,
             "\"{}\" names no hub repository; expected user/repo or user/repo:quant", name);
    }
}

} // namespace

std::filesystem::path fetch_model(const std::string& name, const std::string& file,
                                  const HubOptions& options) {
    quieten_client();
    const std::string repository = repository_of(name);
    common_params_model wanted;
    wanted.hf_repo = name;
    wanted.hf_file = file;
    common_download_opts choice;
    choice.bearer_token = options.token;
    choice.offline = options.offline;
    const common_download_hf_plan plan = common_download_get_hf_plan(wanted, choice);
    common_log_flush(common_log_main());
    if (!plan.preset.path.empty()) {
        fail(ErrorCode::unsupported, "{}: a preset of llama.cpp's server, not a model", name);
    }
    if (plan.primary.path.empty()) {
        common_log_set_verbosity_thold(LOG_LEVEL_OUTPUT); // it has said why already
        no_such_model(name, file, list(repository, options));
    }
    for (const hf_file& part : plan.model_files) {
        fetch(part, options);
    }
    return fetch(plan.primary, options);
}

std::filesystem::path fetch_folder(const std::string& repository,
                                   const std::function<bool(const std::string& path)>& wanted,
                                   const HubOptions& options) {
    quieten_client();
    if (repository_of(repository) != repository) {
        fail(ErrorCode::invalid_argument, "\"{}\": a folder has no quantisation; expected user/repo",
             repository);
    }
    std::filesystem::path folder;
    for (const hf_file& file : list(repository, options)) {
        if (!wanted(file.path)) {
            continue;
        }
        folder = fetch(file, options).string();
        for (const auto& part : std::filesystem::path(file.path)) {
            static_cast<void>(part);
            folder = folder.parent_path();
        }
    }
    if (folder.empty()) {
        fail(ErrorCode::not_found, "{}: none of its files is wanted", repository);
    }
    return folder;
}

bool belongs_to_bundle(const std::string& path) {
    constexpr std::array<std::string_view, 6> endings = {".safetensors", ".gguf",  ".json",
                                                         ".jinja",       ".model", "pooler.pt"};
    return std::ranges::any_of(endings, [&](std::string_view ending) { return path.ends_with(ending); });
}

} // namespace spool
