#include "core/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/error.h"

namespace spool {

namespace {

[[noreturn]] void fail_errno(const std::filesystem::path& path, const char* action) {
    const int number = errno;
    fail(number == ENOENT ? ErrorCode::not_found : ErrorCode::io, "{}: cannot {}: {}", path.string(), action,
         std::strerror(number));
}

/// Makes a name that was created or replaced in `path`'s folder survive a power cut. A folder that may be
/// written but not read cannot be opened for it, and some network file systems have no such call: then the
/// rename stands as the file system does it.
void flush_folder_of(const std::filesystem::path& path) {
    const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        if (errno == EACCES) {
            return;
        }
        fail_errno(path, "open its folder");
    }
    const int number = ::fsync(descriptor) == 0 ? 0 : errno;
    ::close(descriptor);
    if (number != 0 && number != EINVAL && number != ENOTSUP) {
        errno = number;
        fail_errno(path, "flush its folder");
    }
}

} // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        fail_errno(path, "open");
    }
    struct stat status{};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        ::close(descriptor);
        fail(ErrorCode::io, "{}: is not a regular file", path.string());
    }
    const auto size = static_cast<size_t>(status.st_size);
    if (size > 0) {
        void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (address == MAP_FAILED) {
            const int number = errno;
            ::close(descriptor);
            errno = number;
            fail_errno(path, "map");
        }
        bytes_ = {static_cast<const std::byte*>(address), size};
    }
    ::close(descriptor);
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) {
        ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), partial_(path.string() + ".partial-" + std::to_string(::getpid())),
      descriptor_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) {
        fail_errno(path, "create");
    }
}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) {
        ::close(descriptor_);
        ::unlink(partial_.c_str());
    }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail_errno(path_, "write");
        }
        bytes = bytes.subspan(static_cast<size_t>(written));
        size_ += static_cast<size_t>(written);
    }
}

void AtomicFile::overwrite(size_t offset, std::span<const std::byte> bytes) {
    if (offset + bytes.size() > size_) {
        fail(ErrorCode::internal, "{}: overwrite past the end", path_.string());
    }
    if (::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
        static_cast<ssize_t>(bytes.size())) {
        fail_errno(path_, "write");
    }
}

void AtomicFile::commit() {
    if (::fsync(descriptor_) != 0) {
        fail_errno(path_, "flush");
    }
    ::close(std::exchange(descriptor_, -1));
    if (::rename(partial_.c_str(), path_.c_str()) != 0) {
        const int number = errno;
        ::unlink(partial_.c_str());
        errno = number;
        fail_errno(path_, "rename the finished file to its name");
    }
    flush_folder_of(path_);
}

std::string read_text(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        fail_errno(path, "open");
    }
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (in.bad()) {
        fail_errno(path, "read");
    }
    return text;
}

void write_text(const std::filesystem::path& path, std::string_view text) {
    AtomicFile file(path);
    file.write(text);
    file.commit();
}

} // namespace spool
