#include "corpus/compressed.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "core/error.h"

namespace spool {

namespace {

[[noreturn]] void damaged(const std::filesystem::path& path, const char* format, const char* reason) {
    fail(ErrorCode::bad_file,
         "{}: the {} stream is damaged or truncated: {}; fetch or compress the file again", path.string(),
         format, reason);
}

struct FileCloser {
    void operator()(std::FILE* file) const {
        static_cast<void>(std::fclose(file)); // NOLINT(cppcoreguidelines-owning-memory): this is the owner
    }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

File open_file(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) {
        fail(ErrorCode::not_found, "{}: does not exist", path.string());
    }
    if (std::filesystem::is_directory(path)) {
        fail(ErrorCode::io, "{}: is a folder, expected a file", path.string());
    }
    File file(std::fopen(path.c_str(), "rb"));
    if (!file) {
        fail(ErrorCode::io, "{}: cannot be opened: {}", path.string(), std::strerror(errno));
    }
    return file;
}

/// gzip; zlib passes anything else through unchanged.
class GzipStream final : public ByteStream {
  public:
    explicit GzipStream(const std::filesystem::path& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
        if (!file_) {
            fail(ErrorCode::io, "{}: cannot be opened as a file", path.string());
        }
        gzbuffer(file_.get(), 1U << 17U);
    }

    size_t read(std::span<char> out) override {
        const int count = gzread(file_.get(), out.data(), static_cast<unsigned>(out.size()));
        if (count > 0) {
            return static_cast<size_t>(count);
        }
        int status = Z_OK;
        const char* message = gzerror(file_.get(), &status);
        if (status == Z_ERRNO) {
            fail(ErrorCode::io, "{}: cannot be read: {}", path_.string(), std::strerror(errno));
        }
        if (status != Z_OK && status != Z_STREAM_END) {
            damaged(path_, "gzip", message);
        }
        return 0;
    }

    uint64_t position() const override {
        const auto offset = gzoffset(file_.get());
        return offset < 0 ? 0 : static_cast<uint64_t>(offset);
    }

  private:
    struct Closer {
        void operator()(gzFile file) const { gzclose(file); }
    };
    std::filesystem::path path_;
    std::unique_ptr<gzFile_s, Closer> file_;
};

class ZstdStream final : public ByteStream {
  public:
    explicit ZstdStream(const std::filesystem::path& path)
        : path_(path), file_(open_file(path)), context_(ZSTD_createDCtx()), buffer_(ZSTD_DStreamInSize()) {
        if (!context_) {
            fail(ErrorCode::out_of_memory, "{}: no memory to decompress it", path.string());
        }
    }

    size_t read(std::span<char> out) override {
        ZSTD_outBuffer output{out.data(), out.size(), 0};
        while (output.pos == 0) {
            if (input_.pos == input_.size && !refill()) {
                if (inside_frame_) {
                    damaged(path_, "zstd", "unexpected end of file");
                }
                return 0;
            }
            const size_t status = ZSTD_decompressStream(context_.get(), &output, &input_);
            if (ZSTD_isError(status) != 0) {
                damaged(path_, "zstd", ZSTD_getErrorName(status));
            }
            inside_frame_ = status != 0; // 0: a frame ended here, another one may follow
        }
        return output.pos;
    }

    uint64_t position() const override { return consumed_ - (input_.size - input_.pos); }

  private:
    struct Freer {
        void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
    };

    bool refill() {
        const size_t count = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
        if (count == 0 && std::ferror(file_.get()) != 0) {
            fail(ErrorCode::io, "{}: cannot be read: {}", path_.string(), std::strerror(errno));
        }
        consumed_ += count;
        input_ = {buffer_.data(), count, 0};
        return count > 0;
    }

    std::filesystem::path path_;
    File file_;
    std::unique_ptr<ZSTD_DCtx, Freer> context_;
    std::vector<char> buffer_;
    ZSTD_inBuffer input_{nullptr, 0, 0};
    uint64_t consumed_ = 0;
    bool inside_frame_ = false;
};

bool is_zstd(const std::filesystem::path& path) {
    constexpr std::array<unsigned char, 4> magic = {0x28, 0xB5, 0x2F, 0xFD};
    std::array<unsigned char, 4> start{};
    const File file = open_file(path);
    return std::fread(start.data(), 1, start.size(), file.get()) == start.size() && start == magic;
}

} // namespace

std::unique_ptr<ByteStream> open_compressed(const std::filesystem::path& path) {
    if (is_zstd(path)) {
        return std::make_unique<ZstdStream>(path);
    }
    return std::make_unique<GzipStream>(path);
}

} // namespace spool
