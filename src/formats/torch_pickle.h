// Reading a PyTorch state dict (torch.save's zip archive) without executing anything in its pickle.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "formats/tensor.h"

namespace spool {

/// A torch.save archive of a flat dict of contiguous tensors (nested dicts and lists get dotted names; what
/// is no tensor is left out), mapped. The pickle is interpreted by a small machine that knows dicts, tuples,
/// strings, numbers, persistent storage ids and the two rebuild functions of torch tensors; any other global
/// or opcode is refused by name.
class TorchPickleFile {
  public:
    /// Throws Error{not_found|io|bad_file|unsupported} naming file, archive member and offset.
    explicit TorchPickleFile(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return file_.path(); }
    const std::vector<TensorView>& tensors() const { return tensors_; }
    /// nullptr when absent.
    const TensorView* find(std::string_view name) const;

  private:
    MappedFile file_;
    std::vector<TensorView> tensors_;
};

} // namespace spool
