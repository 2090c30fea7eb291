// GGUF files that lie. Each is built byte by byte, so that the lie is in view.
#include <limits>

#include <gguf.h>
#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "support/corruption.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::TemporaryFolder;

class Bytes {
  public:
    template <typename T>
    Bytes& number(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
        return *this;
    }
    Bytes& text(std::string_view value) {
        number(uint64_t{value.size()});
        bytes_.append(value);
        return *this;
    }
    Bytes& header(uint64_t tensors, uint64_t pairs, uint32_t version = 3) {
        bytes_.append("GGUF");
        return number(version).number(tensors).number(pairs);
    }
    Bytes& pair_u32(std::string_view key, uint32_t value) {
        return text(key).number(uint32_t{GGUF_TYPE_UINT32}).number(value);
    }
    Bytes& tensor(std::string_view name, const std::vector<int64_t>& ne, uint32_t type, uint64_t offset) {
        text(name).number(static_cast<uint32_t>(ne.size()));
        for (const int64_t n : ne) {
            number(n);
        }
        return number(type).number(offset);
    }
    /// Padding to the data section, then `size` bytes of data.
    Bytes& data(size_t size, size_t alignment = 32) {
        bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment + size);
        return *this;
    }
    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

constexpr uint32_t f32 = GGML_TYPE_F32;

class GgufHostile : public ::testing::Test {
  protected:
    void refused(const Bytes& bytes, std::initializer_list<std::string_view> words) {
        write_text(path_, bytes.bytes());
        expect_error(ErrorCode::bad_file, words, [&] { const GgufFile file(path_); });
        expect_error(ErrorCode::bad_file, {path_.string(), "byte "}, [&] { const GgufFile file(path_); });
    }
    GgufFile accepted(const Bytes& bytes) {
        write_text(path_, bytes.bytes());
        return GgufFile(path_);
    }

    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "hostile.gguf";
};

TEST_F(GgufHostile, the_builder_of_these_tests_makes_good_files) {
    const auto file = accepted(
        Bytes().header(2, 1).pair_u32("k", 1).tensor("a", {4}, f32, 0).tensor("b", {2}, f32, 32).data(40));
    EXPECT_EQ(file.find_tensor("b")->data.size(), 8U);
    EXPECT_EQ(accepted(Bytes().header(0, 0, 2)).version(), 2U);
    EXPECT_EQ(accepted(Bytes().header(1, 0).tensor("scalar", {}, f32, 0).data(4)).tensors()[0].elements(), 1);
}

TEST_F(GgufHostile, other_files_and_versions) {
    refused(Bytes(), {"magic"});
    refused(Bytes().text("PK something"), {"byte 0", "not a GGUF file"});
    refused(Bytes().header(0, 0, 1), {"byte 4", "version 1", "2 or 3"});
    refused(Bytes().header(0, 0, 4), {"version 4"});
    refused(Bytes().header(0, 0, 0), {"version 0"});
    refused(Bytes().header(0, 0, 0x03000000), {"byte 4", "big-endian"});
}

TEST_F(GgufHostile, counts_beyond_the_file) {
    constexpr uint64_t huge = std::numeric_limits<uint64_t>::max();
    refused(Bytes().header(huge, 0), {"byte 8", "tensor count"});
    refused(Bytes().header(0, huge), {"byte 16", "pair count"});
    refused(Bytes().header(0, 1).number(huge).data(32), {"byte 24", "key"});
    refused(Bytes().header(0, 1).text("key").number(uint32_t{GGUF_TYPE_STRING}).number(huge),
            {"key", "bytes long"});
    for (const uint32_t type : {0U, 5U, 6U, 7U, 8U, 10U, 12U}) {
        refused(Bytes().header(0, 1).text("key").number(uint32_t{GGUF_TYPE_ARRAY}).number(type).number(huge),
                {"key", "18446744073709551615"});
        refused(Bytes()
                    .header(0, 1)
                    .text("key")
                    .number(uint32_t{GGUF_TYPE_ARRAY})
                    .number(type)
                    .number(huge / 8 + 1),
                {"key"});
    }
}

TEST_F(GgufHostile, pairs_that_make_no_sense) {
    refused(Bytes().header(0, 1).text("").number(uint32_t{0}).number(uint8_t{0}).data(16), {"empty"});
    refused(Bytes().header(0, 2).pair_u32("twice", 1).pair_u32("twice", 2), {"duplicate key 'twice'"});
    refused(Bytes().header(0, 1).text("odd").number(uint32_t{13}).data(16), {"'odd'", "unknown type 13"});
    refused(Bytes()
                .header(0, 1)
                .text("odd")
                .number(uint32_t{9})
                .number(uint32_t{77})
                .number(uint64_t{1})
                .data(16),
            {"'odd'", "unknown type 77"});
    refused(Bytes()
                .header(0, 1)
                .text("nested")
                .number(uint32_t{9})
                .number(uint32_t{9})
                .number(uint64_t{1})
                .data(64),
            {"'nested'", "array of arrays"});
    refused(Bytes().header(0, 1).text("flag").number(uint32_t{7}).number(uint8_t{2}).data(16),
            {"'flag'", "boolean 2"});
    refused(Bytes().header(0, 1).text("bad\x1b[31mkey\n").number(uint32_t{13}).data(16), {"'bad?[31mkey?'"});
}

TEST_F(GgufHostile, alignments_that_are_none) {
    const auto with = [](uint32_t alignment) {
        return Bytes()
            .header(1, 1)
            .pair_u32("general.alignment", alignment)
            .tensor("a", {4}, f32, 0)
            .data(16, 64);
    };
    for (const uint32_t alignment : {0U, 1U, 4U, 33U, 48U}) {
        refused(with(alignment), {"general.alignment", std::to_string(alignment), "power of two"});
    }
    EXPECT_EQ(accepted(with(64)).tensors()[0].data.size(), 16U);
    refused(Bytes().header(0, 1).text("general.alignment").number(uint32_t{8}).text("32"), {"str", "u32"});
}

TEST_F(GgufHostile, an_alignment_of_64_moves_the_data_section) {
    Bytes bytes;
    bytes.header(1, 1).pair_u32("general.alignment", 64).tensor("a", {1}, f32, 0).data(0, 64).number(1.5F);
    EXPECT_EQ(to_float(accepted(bytes).tensors()[0]), std::vector<float>{1.5F});
}

TEST_F(GgufHostile, shapes_that_overflow) {
    constexpr int64_t big = int64_t{1} << 40;
    refused(Bytes().header(1, 0).tensor("a", {big, big}, f32, 0).data(64), {"'a'", "64 bits"});
    refused(Bytes().header(1, 0).tensor("a", {int64_t{1} << 62}, f32, 0).data(64), {"'a'"});
    refused(Bytes().header(1, 0).tensor("a", {0, big, big}, f32, 0).data(64), {"'a'", "64 bits"});
    refused(Bytes().header(1, 0).tensor("a", {-4}, f32, 0).data(64), {"'a'", "negative"});
    refused(Bytes().header(1, 0).tensor("a", {1, 1, 1, 1, 1}, f32, 0).data(64), {"'a'", "5 dimensions"});
    refused(Bytes().header(1, 0).text("a").number(uint32_t{0xFFFFFFFF}).data(64), {"'a'", "dimensions"});
    refused(Bytes().header(1, 0).tensor("a", {33}, GGML_TYPE_Q8_0, 0).data(64), {"'a'", "33", "block of 32"});
}

TEST_F(GgufHostile, types_that_do_not_exist) {
    for (const uint32_t type : {4U, 5U, 31U, 36U, 1000U, 0xFFFFFFFFU}) {
        refused(Bytes().header(1, 0).tensor("a", {32}, type, 0).data(256), {"'a'", "unknown type"});
    }
}

TEST_F(GgufHostile, names_that_clash_or_are_too_long) {
    refused(Bytes().header(2, 0).tensor("a", {1}, f32, 0).tensor("a", {1}, f32, 32).data(64),
            {"duplicate tensor 'a'"});
    refused(Bytes().header(1, 0).tensor(std::string(64, 'n'), {1}, f32, 0).data(64), {"64 bytes"});
}

TEST_F(GgufHostile, offsets_that_leave_the_file_overlap_or_are_misaligned) {
    constexpr uint64_t far = std::numeric_limits<uint64_t>::max() - 31;
    refused(Bytes().header(1, 0).tensor("a", {4}, f32, far).data(64), {"'a'", "64 bytes"});
    refused(Bytes().header(1, 0).tensor("a", {4}, f32, 64).data(64), {"'a'"});
    refused(Bytes().header(1, 0).tensor("a", {17}, f32, 0).data(64), {"'a'", "68 bytes"});
    refused(Bytes().header(1, 0).tensor("a", {4}, f32, 16).data(64), {"'a'", "16", "alignment 32"});
    refused(Bytes().header(2, 0).tensor("a", {16}, f32, 0).tensor("b", {1}, f32, 32).data(64),
            {"'b'", "overlaps", "'a'"});
    refused(Bytes().header(2, 0).tensor("a", {1}, f32, 0).tensor("b", {1}, f32, 0).data(64), {"overlaps"});
    refused(Bytes()
                .header(3, 0)
                .tensor("a", {16}, f32, 0)
                .tensor("none", {0}, f32, 32)
                .tensor("b", {8}, f32, 32)
                .data(64),
            {"'b'", "overlaps tensor 'a'"});
    refused(Bytes().header(1, 0).tensor("a", {4}, f32, 0), {"'a'", "of 0 bytes"});
}

TEST_F(GgufHostile, a_small_element_is_no_lever_on_memory) {
    // Empty strings take 8 bytes each in the file and four times that in memory.
    constexpr uint64_t count = uint64_t{9} << 20;
    Bytes bytes;
    bytes.header(0, 1).text("k").number(uint32_t{9}).number(uint32_t{8}).number(count).data(count * 8, 1);
    refused(bytes, {"k: ", "256 MiB"});
}

TEST_F(GgufHostile, a_large_vocabulary_is_read) {
    std::vector<std::string> tokens(150'000);
    for (size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = "token " + std::to_string(i);
    }
    GgufWriter writer;
    writer.set("tokenizer.ggml.tokens", tokens);
    writer.write(path_);
    EXPECT_EQ(GgufFile(path_).strings("tokenizer.ggml.tokens"), tokens);
}

TEST_F(GgufHostile, every_cut_and_flip_is_refused_or_read) {
    const std::vector<float> values(64, 0.5F);
    GgufWriter writer;
    writer.set("general.architecture", "test");
    writer.set("number", uint32_t{5});
    writer.set("flag", true);
    writer.set("general.alignment", uint32_t{32});
    writer.set("tokens", std::vector<std::string>{"a", "longer than fifteen bytes", ""});
    writer.set("scores", std::vector<float>{1, 2, 3});
    writer.add("one", GGML_TYPE_F32, {32, 2}, std::as_bytes(std::span(values)));
    const auto q8 = quantize(GGML_TYPE_Q8_0, values, 32);
    writer.add("two", GGML_TYPE_Q8_0, {32, 2}, q8);
    writer.write(path_);
    test::Corruption corruption(path_, folder_ / "damaged.gguf", [](const std::filesystem::path& path) {
        const GgufFile file(path);
        for (const GgufTensor& tensor : file.tensors()) {
            if (tensor.type == GGML_TYPE_F32 || ggml_is_quantized(tensor.type)) {
                try {
                    to_float(tensor);
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), ErrorCode::unsupported);
                }
            }
        }
    });
    const auto counts = corruption.run(4096);
    EXPECT_GE(counts.truncated_refused + 32, counts.truncated); // the padding at the end may be missing
    EXPECT_GT(counts.changed_refused, counts.changed / 4);
}

} // namespace
} // namespace spool
