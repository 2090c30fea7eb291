#include <gtest/gtest.h>

#include "core/error.h"
#include "llm/token_rows.h"
#include "support/expect_error.h"
#include "support/small_model.h"

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;

/// token_embd.weight as ggml dequantises it in one go: [n_vocab, n_embd].
std::vector<float> whole_table(const GgufFile& file) {
    const GgufTensor* tensor = file.find_tensor("token_embd.weight");
    std::vector<float> table(static_cast<size_t>(tensor->elements()));
    if (tensor->type == GGML_TYPE_F32) {
        std::copy_n(tensor->data.data(), tensor->data.size(), reinterpret_cast<std::byte*>(table.data()));
    } else {
        ggml_get_type_traits(tensor->type)->to_float(tensor->data.data(), table.data(), tensor->elements());
    }
    return table;
}

void expect_rows_of_the_table(const std::filesystem::path& path, const std::vector<Token>& tokens) {
    const GgufFile file(path);
    const TokenRows rows(file);
    const auto table = whole_table(file);
    const auto width = static_cast<size_t>(rows.width());
    ASSERT_EQ(table.size(), width * static_cast<size_t>(rows.vocab_size()));
    std::vector<float> read(tokens.size() * width + 1, 77.0F);
    rows.read(tokens, read.data());
    for (size_t i = 0; i < tokens.size(); ++i) {
        const auto first =
            table.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(tokens[i]) * width);
        EXPECT_TRUE(
            std::equal(first, first + rows.width(), read.begin() + static_cast<std::ptrdiff_t>(i * width)))
            << "token " << tokens[i] << " of " << path;
    }
    EXPECT_EQ(read.back(), 77.0F) << "written past the end";
}

TEST(TokenRows, EqualTheTableDequantisedWhole) {
    const TemporaryFolder folder;
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_Q4_1}) {
        RandomModelShape shape;
        shape.type = type;
        expect_rows_of_the_table(test::write_small_model(folder, shape), {0, 303, 17, 17, 200});
    }
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0}) {
        gguf_to_gguf(folder / "vocabulary.gguf", folder / "typed.gguf", type);
        expect_rows_of_the_table(folder / "typed.gguf", {303, 0, 5});
    }
}

TEST(TokenRows, EqualTheDefaultModelsTable) {
    const auto model = test::default_model();
    if (!model) {
        GTEST_SKIP() << "the default model is absent: run `make model`";
    }
    expect_rows_of_the_table(*model, {0, 1, 2, 1000, 49151});
}

TEST(TokenRows, AnIdOutsideTheVocabularyIsNamed) {
    const TemporaryFolder folder;
    const TokenRows rows{GgufFile(test::write_small_model(folder))};
    EXPECT_EQ(rows.vocab_size(), 304);
    std::vector<float> out(static_cast<size_t>(2 * rows.width()));
    for (const Token bad : {-1, 304, 1 << 30}) {
        const std::vector<Token> tokens = {5, bad};
        expect_error(ErrorCode::invalid_argument, {std::to_string(bad), "304"},
                     [&] { rows.read(tokens, out.data()); });
    }
}

TEST(TokenRows, AFileWithoutATableIsRefused) {
    const TemporaryFolder folder;
    GgufWriter writer;
    writer.set("general.architecture", std::string("llama"));
    writer.write(folder / "part.gguf");
    expect_error(ErrorCode::unsupported, {"part.gguf", "token_embd.weight"},
                 [&] { const TokenRows rows{GgufFile(folder / "part.gguf")}; });
}

} // namespace
} // namespace spool
