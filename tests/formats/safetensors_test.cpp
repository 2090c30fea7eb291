#include <array>
#include <bit>

#include <gtest/gtest.h>

#include "formats/safetensors.h"
#include "support/corruption.h"
#include "support/data.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace spool {
namespace {

using test::expect_error;
using test::fixture;
using test::TemporaryFolder;

template <typename T>
std::vector<T> elements(const TensorView& tensor) {
    std::vector<T> values(tensor.elements());
    EXPECT_EQ(values.size() * sizeof(T), tensor.data.size());
    std::copy_n(tensor.data.data(), tensor.data.size(), reinterpret_cast<std::byte*>(values.data()));
    return values;
}

TEST(Safetensors, a_file_with_every_type_is_read) {
    const SafetensorsFile file(fixture("formats/data/types.safetensors"));
    EXPECT_EQ(file.tensors().size(), 12U);
    EXPECT_EQ(file.metadata(),
              (std::map<std::string, std::string>{{"format", "pt"}, {"note", "every type"}}));
    const std::vector<float> ramp = {-0.375F, -0.25F, -0.125F, 0.0F, 0.125F, 0.25F};
    for (const char* name : {"f64", "f32", "f16", "bf16"}) {
        EXPECT_EQ(dtype_name(file.at(name).dtype), name);
        EXPECT_EQ(file.at(name).shape, (std::vector<int64_t>{2, 3}));
        EXPECT_EQ(to_float(file.at(name)), ramp) << name;
    }
    EXPECT_EQ(elements<int64_t>(file.at("i64")), (std::vector<int64_t>{-3, -2, -1, 0, 1, 2}));
    EXPECT_EQ(elements<int32_t>(file.at("i32")), (std::vector<int32_t>{-3, -2, -1, 0, 1, 2}));
    EXPECT_EQ(elements<int16_t>(file.at("i16")), (std::vector<int16_t>{-3, -2, -1, 0, 1, 2}));
    EXPECT_EQ(elements<int8_t>(file.at("i8")), (std::vector<int8_t>{-3, -2, -1, 0, 1, 2}));
    EXPECT_EQ(elements<uint32_t>(file.at("u32")), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(elements<uint16_t>(file.at("u16")), (std::vector<uint16_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(elements<uint8_t>(file.at("u8")), (std::vector<uint8_t>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(elements<uint8_t>(file.at("bool")), (std::vector<uint8_t>{1, 0, 0, 1, 0, 0}));
    EXPECT_EQ(file.at("bool").dtype, DType::boolean);
    EXPECT_EQ(file.find("absent"), nullptr);
    expect_error(ErrorCode::bad_file, {"types.safetensors", "'absent'"}, [&] { file.at("absent"); });
}

TEST(Safetensors, what_is_written_is_read_back_aligned) {
    const TemporaryFolder folder;
    const auto path = folder / "out.safetensors";
    const SafetensorsFile source(fixture("formats/data/types.safetensors"));
    auto tensors = source.tensors();
    std::ranges::reverse(tensors); // narrow types first: the writer has to sort
    write_safetensors(path, tensors, source.metadata());

    const SafetensorsFile copy(path);
    EXPECT_EQ(copy.metadata(), source.metadata());
    ASSERT_EQ(copy.tensors().size(), source.tensors().size());
    for (const TensorView& tensor : source.tensors()) {
        EXPECT_EQ(copy.at(tensor.name).dtype, tensor.dtype);
        EXPECT_EQ(copy.at(tensor.name).shape, tensor.shape);
        EXPECT_TRUE(std::ranges::equal(copy.at(tensor.name).data, tensor.data)) << tensor.name;
        EXPECT_EQ(std::bit_cast<uintptr_t>(copy.at(tensor.name).data.data()) % dtype_size(tensor.dtype), 0U);
    }
}

TEST(Safetensors, a_file_without_tensors_is_a_file) {
    const TemporaryFolder folder;
    write_safetensors(folder / "none.safetensors", {});
    EXPECT_TRUE(SafetensorsFile(folder / "none.safetensors").tensors().empty());
}

TEST(Safetensors, the_writer_refuses_tensors_that_contradict_themselves) {
    const TemporaryFolder folder;
    const std::array<std::byte, 8> bytes{};
    const auto write = [&](const std::vector<TensorView>& tensors) {
        write_safetensors(folder / "out.safetensors", tensors);
    };
    const TensorView good{.name = "a", .dtype = DType::f32, .shape = {2}, .data = bytes};
    const TensorView small{.name = "b", .dtype = DType::f32, .shape = {3}, .data = bytes};
    const TensorView reserved{.name = "__metadata__", .dtype = DType::f32, .shape = {2}, .data = bytes};
    const TensorView binary{.name = "\xff", .dtype = DType::f32, .shape = {2}, .data = bytes};
    expect_error(ErrorCode::invalid_argument, {"'a'", "twice"}, [&] { write({good, good}); });
    expect_error(ErrorCode::invalid_argument, {"'b'", "8 bytes", "[3]"}, [&] { write({small}); });
    expect_error(ErrorCode::invalid_argument, {"reserved"}, [&] { write({reserved}); });
    expect_error(ErrorCode::invalid_argument, {"UTF-8"}, [&] { write({binary}); });
    EXPECT_FALSE(std::filesystem::exists(folder / "out.safetensors"));
}

class SafetensorsHostile : public ::testing::Test {
  protected:
    void write(std::string_view header, size_t data_size, uint64_t length) {
        std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
        bytes.append(header).append(data_size, '\0');
        write_text(path_, bytes);
    }
    void refused(std::string_view header, size_t data_size, std::initializer_list<std::string_view> words,
                 ErrorCode code = ErrorCode::bad_file) {
        write(header, data_size, header.size());
        expect_error(code, words, [&] { const SafetensorsFile file(path_); });
        expect_error(code, {path_.string(), "byte "}, [&] { const SafetensorsFile file(path_); });
    }

    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "hostile.safetensors";
};

TEST_F(SafetensorsHostile, lengths_that_are_none) {
    write_text(path_, "1234567");
    expect_error(ErrorCode::bad_file, {path_.string(), "byte 0", "length"},
                 [&] { const SafetensorsFile f(path_); });
    for (const uint64_t length : {uint64_t{3}, uint64_t{100}, uint64_t{1} << 31, ~uint64_t{0}}) {
        write("{}", 0, length);
        expect_error(ErrorCode::bad_file, {"byte 0", "header"}, [&] { const SafetensorsFile f(path_); });
    }
    refused("", 0, {"does not start with '{'"});
    refused("[]", 0, {"does not start with '{'"});
}

TEST_F(SafetensorsHostile, json_that_is_not_the_formats) {
    refused("{", 0, {"JSON"});
    refused("{} {}", 0, {"JSON"});
    refused(R"({"a":1})", 0, {"number"});
    refused(R"({"a":null})", 0, {"null"});
    refused(R"({"a":[]})", 0, {"array"});
    refused(R"({"a":{}})", 0, {"'a'", "missing"});
    refused(R"({"a":{"dtype":"F32","shape":[1]}})", 4, {"'a'", "missing"});
    refused(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, {"'a'", "number"});
    refused(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, {"'a'", "1.5"});
    refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, {"'a'", "-1"});
    refused(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4,
            {"'a'", "2^63"});
    refused(R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4, {"'a'"});
    refused(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4, {"'a'", "array"});
    refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, {"'a'", "two"});
    refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[]}})", 4, {"'a'", "0 numbers"});
    refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, {"'a'", "'x'"});
    refused(R"({"__metadata__":{"k":1}})", 0, {"number"});
    refused(R"({"__metadata__":{"k":{"l":"m"}}})", 0, {"object"});
    refused(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1, {"'a'", "F8_E4M3"},
            ErrorCode::unsupported);
}

TEST_F(SafetensorsHostile, duplicates) {
    const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
    refused("{" + a + "," + a + "}", 4, {"duplicate tensor 'a'"});
    refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
            {"duplicate", "dtype"});
    refused(R"({"__metadata__":{"k":"1","k":"2"}})", 0, {"duplicate", "'k'"});
    refused(R"({"__metadata__":{},"__metadata__":{}})", 0, {"duplicate"});
}

TEST_F(SafetensorsHostile, places_that_overlap_leave_holes_or_leave_the_file) {
    const auto two = [](std::string_view a, std::string_view b) {
        return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(a) +
               R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(b) + "}}";
    };
    refused(two("[0,4]", "[0,4]"), 8, {"overlap"});
    refused(two("[0,4]", "[2,6]"), 8, {"'b'", "overlap"});
    refused(two("[0,4]", "[8,12]"), 12, {"'b'", "hole"});
    refused(two("[0,4]", "[4,8]"), 12, {"8 bytes", "12"});
    refused(two("[0,4]", "[4,8]"), 7, {"'b'", "[4, 8]", "7 bytes"});
    refused(two("[4,0]", "[4,8]"), 8, {"'a'", "[4, 0]"});
    refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, {"'a'", "[2]", "4 bytes"});
    refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4, {"'a'"});
}

TEST_F(SafetensorsHostile, nesting_needs_neither_stack_nor_memory) {
    refused(R"({"a":)" + std::string(1'000'000, '['), 0, {"array"});
    refused(R"({"a":)" + std::string(1'000'000, '{'), 0, {"JSON"});
    std::string shape = "1";
    for (int i = 0; i < 100; ++i) {
        shape += ",1";
    }
    refused(R"({"a":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,4]}})", 4,
            {"'a'", "32 dimensions"});
}

TEST_F(SafetensorsHostile, every_cut_and_flip_is_refused_or_read) {
    test::Corruption corruption(
        fixture("formats/data/types.safetensors"), path_, [](const std::filesystem::path& path) {
            const SafetensorsFile file(path);
            for (const TensorView& tensor : file.tensors()) {
                elements<std::byte>(
                    {.name = tensor.name, .dtype = DType::u8, .shape = {}, .data = tensor.data});
            }
        });
    const auto counts = corruption.run(4096);
    EXPECT_EQ(counts.truncated_refused, counts.truncated);
    EXPECT_GT(counts.changed_refused, counts.changed / 2);
}

TEST(Safetensors, the_reference_bundle_is_read) {
    const auto path = test::shared_data("bundle-smollm2/pooler.safetensors");
    if (!path) {
        GTEST_SKIP() << "shared data (bundle-smollm2) is absent";
    }
    const SafetensorsFile file(*path);
    EXPECT_EQ(file.at("query").shape.size(), 2U);
    EXPECT_EQ(to_float(file.at("query")).size(), file.at("query").elements());
}

} // namespace
} // namespace spool
