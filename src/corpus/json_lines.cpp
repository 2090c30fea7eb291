#include "corpus/json_lines.h"

#include <array>
#include <string>

#include <zlib.h>

#include "core/error.h"

namespace spool {

namespace {

gzFile as_gz(void* file) { return static_cast<gzFile>(file); }

} // namespace

void JsonLines::Closer::operator()(void* file) const { gzclose(as_gz(file)); }

JsonLines::JsonLines(const std::filesystem::path& path) : path_(path) {
    if (!std::filesystem::exists(path)) {
        fail(ErrorCode::not_found, "{}: does not exist", path.string());
    }
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_ || std::filesystem::is_directory(path)) {
        fail(ErrorCode::io, "{}: cannot be opened as a file", path.string());
    }
}

JsonLines::~JsonLines() = default;

bool JsonLines::read_line(std::string& text) {
    constexpr size_t longest = size_t{64} << 20U;
    text.clear();
    std::array<char, 65536> part{};
    while (gzgets(as_gz(file_.get()), part.data(), static_cast<int>(part.size())) != nullptr) {
        text += part.data();
        if (text.back() == '\n') {
            text.pop_back();
            return true;
        }
        if (text.size() > longest) {
            fail(ErrorCode::bad_file, "{}:{}: a line of more than 64 MiB; is this JSON Lines?",
                 path_.string(), line_ + 1);
        }
    }
    int status = Z_OK;
    const char* message = gzerror(as_gz(file_.get()), &status);
    if (status != Z_OK && status != Z_STREAM_END) {
        fail(ErrorCode::bad_file, "{}: the gzip stream is damaged or truncated after line {}: {}",
             path_.string(), line_, message);
    }
    return !text.empty();
}

std::optional<Json> JsonLines::next() {
    std::string text;
    while (read_line(text)) {
        ++line_;
        if (text.find_first_not_of(" \t\r") == std::string::npos) {
            continue;
        }
        Json value = Json::parse(text, nullptr, false);
        if (value.is_discarded()) {
            fail(ErrorCode::bad_file, "{}:{}: the line is not JSON", path_.string(), line_);
        }
        return value;
    }
    return std::nullopt;
}

} // namespace spool
