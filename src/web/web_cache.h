// Pages already seen, and the hosts that do not want to be asked for a while, in a folder that all processes
// share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace spool {

struct CachedPage {
    std::string url; ///< after the redirects
    std::string content_type;
    std::string text;    ///< the body as UTF-8
    int64_t fetched = 0; ///< seconds since 1970
};

/// One JSON file a page, written atomically. A cache is never a reason to fail: a file that is damaged counts
/// as absent, and a folder that cannot be written is said once and then left alone.
class WebCache {
  public:
    /// An empty `folder` keeps nothing.
    WebCache(std::filesystem::path folder, std::chrono::seconds max_age, size_t max_bytes);

    /// The page stored for `url` if it is younger than max_age.
    std::optional<CachedPage> find(const std::string& url) const;
    /// Stores it, then removes the oldest files until what is left fits max_bytes.
    void store(const std::string& url, const CachedPage& page);

    /// Until when `host` is not to be asked (seconds since 1970); nothing if it may be.
    std::optional<int64_t> blocked_until(const std::string& host) const;
    /// `host` showed a challenge: 15 minutes of rest, twice as long each further time within a day, 4 hours
    /// at most. Returns until when.
    int64_t block(const std::string& host);

  private:
    struct Block {
        int64_t until = 0;   ///< seconds since 1970
        int64_t seconds = 0; ///< how long it was
    };

    std::optional<Block> stored_block(const std::string& host) const;
    std::filesystem::path path_of(const std::string& kind, const std::string& key) const;
    void write(const std::filesystem::path& path, const std::string& text);
    void trim() const;

    std::filesystem::path folder_;
    std::chrono::seconds max_age_;
    size_t max_bytes_;
    std::map<std::string, Block> blocks_; ///< by host: those of this process, so that no folder is needed
    bool warned_ = false;
};

} // namespace spool
