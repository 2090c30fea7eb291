// A folder that appears under its name only when everything in it is complete.
#pragma once

#include <filesystem>

namespace spool {

/// Files are written to path(), a folder beside the destination; commit() renames it. Destroyed without a
/// commit, it removes what was written, and whatever stood at the destination is untouched.
class StagedFolder {
  public:
    /// A destination that exists must be an empty folder, or, with `overwrite`, a folder that holds a file
    /// named `marker` (by which a former result is known). Throws Error{invalid_argument} saying which, or
    /// Error{io}.
    StagedFolder(const std::filesystem::path& destination, const std::filesystem::path& marker,
                 bool overwrite);
    ~StagedFolder();
    StagedFolder(const StagedFolder&) = delete;
    StagedFolder& operator=(const StagedFolder&) = delete;

    const std::filesystem::path& path() const { return staging_; }
    /// Throws Error{io}; the destination is then what it was.
    void commit();

  private:
    std::filesystem::path destination_;
    std::filesystem::path staging_;
    bool committed_ = false;
};

} // namespace spool
