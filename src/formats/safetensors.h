// Reading and writing safetensors: an 8-byte little-endian header length, a JSON header, tensor bytes.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"
#include "formats/tensor.h"

namespace spool {

/// One safetensors file, mapped. Checked on opening: header length, JSON shape, types, every offset inside
/// the file, no overlap, no hole, sizes equal to shape times type.
class SafetensorsFile {
  public:
    /// Throws Error{not_found|io|bad_file} naming file, tensor, field and offset; Error{unsupported} for a
    /// tensor of another type than DType's.
    explicit SafetensorsFile(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return file_.path(); }
    /// In file order of their data.
    const std::vector<TensorView>& tensors() const { return tensors_; }
    const std::map<std::string, std::string>& metadata() const { return metadata_; }
    /// nullptr when absent.
    const TensorView* find(std::string_view name) const;
    /// Throws Error{bad_file} naming file and tensor when absent.
    const TensorView& at(std::string_view name) const;

  private:
    MappedFile file_;
    std::vector<TensorView> tensors_;
    std::map<std::string, std::string> metadata_;
};

/// Writes atomically, header padded with spaces to a multiple of 8 bytes; wide types first, so that every
/// tensor is aligned. The views' data is referenced. Throws Error{invalid_argument} if a name is taken or not
/// UTF-8, or data and shape disagree.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

} // namespace spool
