// Saving a session to one file and going on from it, in this process or another.
//
// The file is a GGUF container (docs/formats.md): it can be inspected, is checked like any other file before
// use, names its model, bundle and settings, and carries a hash of the cache's bytes.
#pragma once

#include <filesystem>
#include <string>

#include "context/session.h"
#include "core/json.h"

namespace spool {

/// Writes `session` to `path`, atomically, and reloads the cache from the saved bytes: restoring packs cells
/// in another order, attention sums in cell order, and near-ties could fall otherwise. So what follows a save
/// equals, token for token, what follows a restore. `chat`: anything to keep along with it. Throws Error{io};
/// the session is then unchanged.
void save_session(Session& session, SessionPool& pool, const Bundle* bundle,
                  const std::filesystem::path& path, const Json& chat = {});

/// Replaces `session` by what `path` holds; returns the `chat` it was saved with, or null.
/// Throws Error{incompatible} if it was saved with another model, bundle or settings (all differences are
/// named), Error{bad_file} if it is damaged.
Json restore_session(Session& session, SessionPool& pool, const Bundle* bundle,
                     const std::filesystem::path& path);

} // namespace spool
