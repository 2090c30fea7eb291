#include "core/staged_folder.h"

#include <string>
#include <system_error>
#include <unistd.h>

#include "core/error.h"

namespace spool {

namespace {

namespace fs = std::filesystem;

/// Without the slash at the end that would make "data/" a folder named "" in "data".
fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

fs::path beside(const fs::path& path, const char* kind) {
    return path.string() + "." + kind + "-" + std::to_string(::getpid());
}

[[noreturn]] void fail_io(const fs::path& path, const char* action, const std::error_code& error) {
    fail(ErrorCode::io, "{}: cannot {}: {}", path.string(), action, error.message());
}

void check_destination(const fs::path& path, const fs::path& marker, bool overwrite) {
    std::error_code error;
    const auto status = fs::symlink_status(path, error);
    if (!fs::exists(status)) {
        return;
    }
    if (!fs::is_directory(status)) {
        fail(ErrorCode::invalid_argument, "{}: exists and is not a folder; choose another destination",
             path.string());
    }
    if (fs::is_empty(path)) {
        return;
    }
    if (!fs::exists(path / marker)) {
        fail(ErrorCode::invalid_argument,
             "{}: is a folder with other files in it (no {}); choose another destination", path.string(),
             marker.string());
    }
    if (!overwrite) {
        fail(ErrorCode::invalid_argument,
             "{}: holds {} of an earlier run; choose another destination, or replace it with --overwrite",
             path.string(), marker.string());
    }
}

} // namespace

StagedFolder::StagedFolder(const fs::path& destination, const fs::path& marker, bool overwrite)
    : destination_(without_slash(destination)), staging_(beside(destination_, "partial")) {
    check_destination(destination_, marker, overwrite);
    std::error_code error;
    fs::create_directories(staging_, error);
    if (error) {
        fail_io(staging_, "create the folder", error);
    }
}

StagedFolder::~StagedFolder() {
    if (!committed_) {
        std::error_code ignored;
        fs::remove_all(staging_, ignored);
    }
}

void StagedFolder::commit() {
    std::error_code error;
    const fs::path old = beside(destination_, "old");
    const bool replaces = fs::exists(destination_) && !fs::is_empty(destination_);
    if (replaces) {
        fs::rename(destination_, old, error);
        if (error) {
            fail_io(destination_, "move the former folder away", error);
        }
    }
    fs::rename(staging_, destination_, error);
    if (error) {
        if (replaces) {
            std::error_code ignored;
            fs::rename(old, destination_, ignored);
        }
        fail_io(destination_, "rename the finished folder to its name", error);
    }
    committed_ = true;
    if (replaces) {
        fs::remove_all(old, error);
    }
}

} // namespace spool
