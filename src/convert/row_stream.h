// Converting a matrix a block of rows at a time, so that a model of any size is converted in constant memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "formats/mlx.h"
#include "formats/tensor.h"

namespace spool {

/// Row i of what is written is row order[i] of the source; an empty order keeps the rows as they are.
using RowOrder = std::vector<int64_t>;

/// Producers for GgufWriter::add. The files behind the views must live until the writer has written. Every
/// value is checked while it is streamed: Error{bad_file} for one that is not finite, Error{unsupported} for
/// one beyond the range of f16 when `type` is F16; both name `source`.
GgufProducer stream_rows(std::string source, TensorView tensor, ggml_type type, RowOrder order = {});
GgufProducer stream_rows(std::string source, GgufTensor tensor, ggml_type type);
/// `type` Q4_1 moves the codes without loss: fits_q4_1(matrix) must hold. Other types go through float32.
GgufProducer stream_rows(std::string source, MlxMatrix matrix, ggml_type type, RowOrder order = {});

/// Rows `order` of `tensor`, copied.
std::vector<std::byte> gather_rows(const TensorView& tensor, const RowOrder& order);

/// True if each scale and bias survives the round trip through f16, as GGUF stores them.
bool fits_q4_1(const MlxMatrix& matrix);

} // namespace spool
