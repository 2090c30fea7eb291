// A model of random weights with the 304-token vocabulary of tests/convert/data/llama: it loads in
// milliseconds and needs nothing that is not in the repository. Every text can be spelled with its tokens,
// byte by byte.
#pragma once

#include <filesystem>
#include <memory>

#include "convert/model.h"
#include "eval/random_model.h"
#include "support/data.h"
#include "support/model.h"
#include "support/temporary_folder.h"

namespace spool::test {

/// Writes it to folder/small.gguf.
inline std::filesystem::path write_small_model(const TemporaryFolder& folder,
                                               const RandomModelShape& shape = {}) {
    const auto vocabulary = folder / "vocabulary.gguf";
    hugging_face_to_gguf(fixture("convert/data/llama"), vocabulary, {});
    write_random_model(folder / "small.gguf", shape, GgufFile(vocabulary));
    return folder / "small.gguf";
}

/// Tests derive from this to get it, loaded once a test.
class WithSmallModel : public ::testing::Test {
  protected:
    TemporaryFolder folder_;
    std::unique_ptr<Model> model_ = load_model(write_small_model(folder_));
};

} // namespace spool::test
