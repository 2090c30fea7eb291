#include "web/web_cache.h"

#include <algorithm>
#include <ctime>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/json_file.h"
#include "core/log.h"

namespace spool {

namespace {

namespace fs = std::filesystem;

constexpr int64_t shortest_block = int64_t{15} * 60;
constexpr int64_t longest_block = int64_t{4} * 3600;
constexpr int64_t day = int64_t{24} * 3600;

int64_t now() { return static_cast<int64_t>(std::time(nullptr)); }

/// Nothing if the file is absent or is not what was written.
std::optional<JsonFields> read_if_right(const fs::path& path) {
    try {
        return read_json_file(path, size_t{64} << 20);
    } catch (const Error&) {
        return std::nullopt;
    }
}

} // namespace

WebCache::WebCache(fs::path folder, std::chrono::seconds max_age, size_t max_bytes)
    : folder_(std::move(folder)), max_age_(max_age), max_bytes_(max_bytes) {}

fs::path WebCache::path_of(const std::string& kind, const std::string& key) const {
    return folder_ / (kind + "-" + sha256(std::as_bytes(std::span(key))) + ".json");
}

std::optional<CachedPage> WebCache::find(const std::string& url) const {
    if (folder_.empty()) {
        return std::nullopt;
    }
    try {
        const auto fields = read_if_right(path_of("page", url));
        if (!fields || fields->string("asked") != url) {
            return std::nullopt;
        }
        const auto fetched = static_cast<int64_t>(fields->number("fetched"));
        const int64_t age = now() - fetched;
        if (age < 0 || age > max_age_.count()) {
            return std::nullopt;
        }
        return CachedPage{.url = fields->string("url"),
                          .content_type = fields->string("content_type"),
                          .text = fields->string("text"),
                          .fetched = fetched};
    } catch (const Error&) { // a field is missing or of another type
        return std::nullopt;
    }
}

void WebCache::store(const std::string& url, const CachedPage& page) {
    if (folder_.empty()) {
        return;
    }
    write(path_of("page", url), json_text({{"asked", url},
                                           {"url", page.url},
                                           {"content_type", page.content_type},
                                           {"fetched", page.fetched},
                                           {"text", page.text}}));
    trim();
}

std::optional<int64_t> WebCache::blocked_until(const std::string& host) const {
    const auto found = blocks_.find(host);
    int64_t until = found == blocks_.end() ? 0 : found->second.until;
    if (const auto stored = stored_block(host)) {
        until = std::max(until, stored->until);
    }
    return until > now() ? std::optional(until) : std::nullopt;
}

int64_t WebCache::block(const std::string& host) {
    Block block = blocks_[host];
    if (const auto stored = stored_block(host); stored && stored->until > block.until) {
        block = *stored;
    }
    const bool again = block.seconds > 0 && now() - block.until < day;
    block.seconds = again ? std::min(2 * block.seconds, longest_block) : shortest_block;
    block.until = now() + block.seconds;
    blocks_[host] = block;
    if (!folder_.empty()) {
        write(path_of("block", host),
              json_text({{"host", host}, {"until", block.until}, {"seconds", block.seconds}}));
    }
    return block.until;
}

std::optional<WebCache::Block> WebCache::stored_block(const std::string& host) const {
    try {
        const auto fields = folder_.empty() ? std::nullopt : read_if_right(path_of("block", host));
        if (!fields || fields->string("host") != host) {
            return std::nullopt;
        }
        return Block{.until = static_cast<int64_t>(fields->number("until")),
                     .seconds = static_cast<int64_t>(fields->number("seconds"))};
    } catch (const Error&) {
        return std::nullopt;
    }
}

void WebCache::write(const fs::path& path, const std::string& text) {
    try {
        std::error_code error;
        fs::create_directories(folder_, error);
        AtomicFile file(path);
        file.write(text);
        file.commit();
    } catch (const Error& error) {
        if (!std::exchange(warned_, true)) {
            log_warning("the cache of web pages cannot be written, searching goes on without it: {}",
                        error.what());
        }
    }
}

void WebCache::trim() const {
    struct File {
        fs::file_time_type time;
        uintmax_t bytes;
        fs::path path;
    };
    std::vector<File> files;
    uintmax_t total = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
        if (entry.path().filename().string().starts_with("page-")) {
            const File file{entry.last_write_time(error), entry.file_size(error), entry.path()};
            if (!error) { // another process may have removed it
                total += file.bytes;
                files.push_back(file);
            }
        }
    }
    std::ranges::sort(files, {}, &File::time);
    for (const File& file : files) {
        if (total <= max_bytes_) {
            break;
        }
        fs::remove(file.path, error);
        total -= file.bytes;
    }
}

} // namespace spool
