#include "corpus/record_source.h"

#include <array>
#include <fstream>
#include <string_view>

#include "core/error.h"
#include "corpus/json_lines.h"
#ifdef SPOOL_PARQUET
#include "corpus/parquet/parquet.h"
#endif

namespace spool {

namespace {

class JsonLinesSource final : public RecordSource {
  public:
    explicit JsonLinesSource(const std::filesystem::path& path) : path_(path), lines_(path) {}

    std::optional<Json> next() override {
        const std::string* text = lines_.next_text();
        return text == nullptr ? std::nullopt : std::optional(Json::parse(*text, nullptr, false));
    }
    std::string where() const override { return fmt::format("{}:{}", path_.string(), lines_.line()); }
    uint64_t position() const override { return lines_.position(); }

  private:
    std::filesystem::path path_;
    JsonLines lines_;
};

bool is_parquet(const std::filesystem::path& path) {
    std::array<char, 4> start{};
    std::ifstream in(path, std::ios::binary);
    in.read(start.data(), start.size());
    return in.gcount() == 4 && std::string_view(start.data(), start.size()) == "PAR1";
}

} // namespace

std::unique_ptr<RecordSource> open_records(const std::filesystem::path& path) {
    if (is_parquet(path)) {
#ifdef SPOOL_PARQUET
        return open_parquet(path);
#else
        fail(
            ErrorCode::unsupported,
            "{}: is a Parquet file, and this program was built without it; build with -DSPOOL_PARQUET=ON, or "
            "convert the file to JSON Lines",
            path.string());
#endif
    }
    return std::make_unique<JsonLinesSource>(path);
}

} // namespace spool
